//! Ratios measured side by side in one run, with spread.
//!
//! `cargo bench` runs everything, `cargo bench -- fork domains events mutators control pastis cmin signatures
//! triage demo perf libpng same net log speed snapshot binaries` only what is named. Seconds a campaign:
//! `FFUZZ_BENCH_SECONDS` (5; the last three 20); number of pairs: `FFUZZ_BENCH_PAIRS` (7; those three 5); the core of
//! those three and of `log`: `FFUZZ_BENCH_CORE` (the last); only some of their cases: `FFUZZ_BENCH_CASE=words`. `fork`
//! and `cmin` need Debian's afl++, those three also what `benches/peers.sh` builds.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "parts/binaries.rs"]
mod binaries;
#[path = "../tests/common/broker.rs"]
mod broker;
#[path = "parts/cmin.rs"]
mod cmin;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "parts/control.rs"]
mod control;
#[path = "parts/events.rs"]
mod events;
#[path = "parts/log.rs"]
mod log;
#[path = "parts/mutators.rs"]
mod mutators;
#[path = "parts/net.rs"]
mod net;
#[path = "parts/pastis.rs"]
mod pastis;
#[path = "parts/peers.rs"]
mod peers;
#[path = "parts/same.rs"]
mod same;
#[path = "../tests/common/server.rs"]
mod server;
#[path = "parts/signatures.rs"]
mod signatures;
#[path = "parts/snapshot.rs"]
mod snapshot;
#[path = "parts/speed.rs"]
mod speed;
#[path = "parts/triage.rs"]
mod triage;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn main() {
    let names: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|given| given == name);
    let bench = Bench::new();
    if wanted("fork") {
        bench.against_afl();
    }
    if wanted("domains") {
        bench.cost_of_domains();
    }
    if wanted("events") {
        bench.events();
    }
    if wanted("mutators") {
        bench.mutators();
    }
    if wanted("control") {
        bench.control();
    }
    if wanted("pastis") {
        bench.pastis();
    }
    if wanted("cmin") {
        bench.cmin();
    }
    if wanted("signatures") {
        bench.signatures();
    }
    if wanted("triage") {
        bench.triage();
    }
    if wanted("demo") {
        for bytes in [DEMO_BYTES, DEMO_MOST] {
            bench.time_to_allocation("demo", bytes);
            bench.time_to_allocation("demo-manual", bytes);
        }
    }
    if wanted("perf") {
        bench.hottest_block("sort", 30);
        bench.hottest_block("words", 60);
    }
    if wanted("libpng") {
        bench.largest_allocation();
    }
    if wanted("same") {
        bench.same();
    }
    if wanted("net") {
        bench.net();
    }
    // Last, because they bind the benchmark to a core, and the next ones end it if a peer is missing.
    if wanted("log") {
        bench.log();
    }
    if wanted("speed") {
        speed::Speed::new(&bench).run();
    }
    if wanted("snapshot") {
        speed::Speed::new(&bench).run_snapshots();
    }
    if wanted("binaries") {
        speed::Speed::new(&bench).run_binaries();
    }
}

/// A number from the environment.
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Seconds within which the demo's allocation has to be found; a large one, and the largest there is.
const DEMO_LIMIT: u32 = 60;
const DEMO_BYTES: u64 = 2_000_000_000;
const DEMO_MOST: u64 = 2_147_483_645;

struct Bench {
    dir: PathBuf,
    seconds: u32,
    pairs: usize,
}

/// One campaign's command: fuzzer and its options.
type Campaign<'a> = dyn Fn(&Path, u32) -> Command + 'a;

impl Bench {
    fn new() -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("in")).expect("folder for the benchmark");
        std::fs::write(dir.join("in/seed"), "0\n0\n").expect("seed");
        // A program may write files into the folder that it is started in: not into the repository.
        let litter = dir.join("litter");
        std::fs::create_dir(&litter).expect("folder for what targets write");
        std::env::set_current_dir(litter).expect("it is there");
        Self {
            dir,
            seconds: setting("FFUZZ_BENCH_SECONDS").unwrap_or(5),
            pairs: setting("FFUZZ_BENCH_PAIRS").unwrap_or(7),
        }
    }

    /// `source` is a path in the repository.
    fn build(&self, compiler: &[&str], waypoints: &str, source: &str, name: &str) -> PathBuf {
        let target = self.dir.join(name);
        let status = Command::new(compiler[0])
            .args(&compiler[1..])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
            .arg("-o")
            .arg(&target)
            .env("WAYPOINTS", waypoints)
            .env("AFL_QUIET", "1")
            .status()
            .unwrap_or_else(|error| panic!("{}: {error} (run `make setup-test`)", compiler[0]));
        assert!(status.success(), "{source} does not compile");
        target
    }

    fn ffuzz<'a>(&'a self, options: &'a [&str], target: &'a Path) -> Box<Campaign<'a>> {
        self.fuzzer(env!("CARGO_BIN_EXE_ffuzz"), options, target)
    }

    fn fuzzer<'a>(
        &'a self,
        program: &'a str,
        options: &'a [&str],
        target: &'a Path,
    ) -> Box<Campaign<'a>> {
        Box::new(move |out, seed| {
            self.command(program, &[options, &["-s", &seed.to_string()]].concat(), target, out)
        })
    }

    /// Without `-s`, with which ffuzz makes all choices without times.
    fn command(&self, program: &str, options: &[&str], target: &Path, out: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .args(options)
            .args(["-V", &self.seconds.to_string(), "-i"])
            .arg(self.seeds(target))
            .arg("-o")
            .arg(out)
            .arg("--")
            .arg(target)
            .env("AFL_NO_UI", "1")
            .env("AFL_SKIP_CPUFREQ", "1")
            .env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1");
        command
    }

    /// Those beside the target, if it has some.
    fn seeds(&self, target: &Path) -> PathBuf {
        let mut own = target.as_os_str().to_owned();
        own.push("-seeds");
        Some(PathBuf::from(own)).filter(|own| own.is_dir()).unwrap_or_else(|| self.dir.join("in"))
    }

    /// Executions a second of one campaign.
    fn rate(&self, campaign: &Campaign<'_>, seed: u32) -> f64 {
        let out = self.dir.join("out");
        let _ = std::fs::remove_dir_all(&out);
        let output = campaign(&out, seed).output().expect("the fuzzer starts");
        let stats = std::fs::read_to_string(out.join("default/fuzzer_stats"));
        let stats = stats.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stdout)));
        let line = stats.lines().find(|line| line.starts_with("execs_per_sec"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("execs_per_sec")
    }

    /// Runs both sides in turn, the order changing, and prints rates and ratio of each pair.
    fn compare(&self, title: &str, ours: &Campaign<'_>, theirs: &Campaign<'_>) {
        let mut ratios = Vec::new();
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for pair in 0..self.pairs {
            let seed = u32::try_from(pair).expect("few pairs") + 1;
            let (a, b) = if pair % 2 == 0 {
                let a = self.rate(ours, seed);
                (a, self.rate(theirs, seed))
            } else {
                let b = self.rate(theirs, seed);
                (self.rate(ours, seed), b)
            };
            left.push(a);
            right.push(b);
            ratios.push(a / b);
        }
        let (rate, other) = (median(&mut left), median(&mut right));
        let ratio = median(&mut ratios);
        println!(
            "{title}: ratio {ratio:.3} ({:.3} to {:.3}, {} pairs of {} s); {rate:.0}/s against {other:.0}/s",
            ratios[0],
            ratios[ratios.len() - 1],
            self.pairs,
            self.seconds
        );
    }

    fn against_afl(&self) {
        let target = self.build(&["afl-clang-fast", "-O2"], "", "demo/demo.c", "demo-afl");
        let ours = self.ffuzz(&[], &target);
        let theirs = self.fuzzer("afl-fuzz", &[], &target);
        self.compare("fork server, AFL-built demo, ffuzz / afl-fuzz", &*ours, &*theirs);
    }

    /// In fork mode: the harness gets an ordinary main.
    fn cost_of_domains(&self) {
        let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc"];
        let demo = |waypoints: &str| {
            self.build(&cc, waypoints, "demo/demo.c", &format!("demo-{waypoints}"))
        };
        let main = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/targets/once.c");
        let libpng = |waypoints: &str| {
            self.harness_with("libpng", waypoints, &self.dir.join("once").join(waypoints), main)
        };
        for (name, build) in [("demo", &demo as &dyn Fn(&str) -> PathBuf), ("libpng", &libpng)] {
            let plain = build("");
            for waypoints in ["cmp,mem", "perf"] {
                let domains = build(waypoints);
                let (with, without) = (self.ffuzz(&["-p"], &domains), self.ffuzz(&[], &plain));
                let title = format!("fork server, {name}, {waypoints} with -p / no domains");
                self.compare(&title, &*with, &*without);
            }
        }
    }

    /// Ten campaigns with different seeds: CPU time until the allocation is found.
    fn time_to_allocation(&self, name: &str, bytes: u64) {
        let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc"];
        let waypoints = if name == "demo" { "cmp,mem" } else { "" };
        let target = self.build(&cc, waypoints, &format!("demo/{name}.c"), name);
        let mut times: Vec<f64> =
            (1..=10).filter_map(|seed| self.hunt(&target, seed, bytes)).collect();
        let found = times.len();
        println!(
            "{name}: {bytes} bytes found in {found} of 10 runs; CPU seconds median {:.2}, largest {:.2}",
            median(&mut times),
            times.last().copied().unwrap_or(f64::NAN)
        );
    }

    /// Campaigns on a program of `demo/` with `perf`: how much of what a hand-made input reaches does
    /// the hottest block get to? Fuzzer and target share a core, so CPU time is at most wall time.
    fn hottest_block(&self, name: &str, seconds: u32) {
        let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc"];
        let target = self.build(&cc, "perf", &format!("demo/{name}.c"), name);
        let worst = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("demo/{name}-worst"));
        let inputs = self.dir.join("worst");
        let _ = std::fs::remove_dir_all(&inputs);
        std::fs::create_dir_all(&inputs).expect("folder for the worst input");
        std::fs::copy(worst, inputs.join("worst")).expect("the worst input");
        let possible = largest_value(&inputs, &target);
        let out = self.dir.join("out");
        let share = |seed| {
            let status = self.guided(&target, &out, seed, seconds).status();
            assert!(status.expect("ffuzz starts").success());
            largest_value(&out.join("queue"), &target) / possible
        };
        let mut shares: Vec<f64> = (1..=self.pairs as u32).map(share).collect();
        let middle = median(&mut shares);
        println!(
            "{name}: hottest block after {seconds} s at {:.1} % of {possible} ({} runs, {:.1} to {:.1} %)",
            middle * 100.0,
            shares.len(),
            shares[0] * 100.0,
            shares[shares.len() - 1] * 100.0
        );
    }

    /// libpng from a seed of one byte: what it asks for at one place in a run, at most, after three
    /// minutes with and without guidance. Fuzzer and target share a core.
    fn largest_allocation(&self) {
        let target = self.harness("libpng", "cmp,mem", &self.dir.join("libpng-cmp-mem"));
        std::fs::write(self.dir.join("in/seed"), "0").expect("seed");
        let out = self.dir.join("out");
        for mode in ["-p", "--dsf-record"] {
            let most = |seed| {
                let status = self.silent(&[mode], &target, &out, seed, 180).status();
                assert!(status.expect("ffuzz starts").success());
                let log = std::fs::read_to_string(out.join("fuzzfactory.log")).expect("log");
                let names = log.lines().filter_map(|line| line.strip_prefix("# key "));
                let places = names.filter_map(|line| line.split_once(" is mem "));
                let keys: Vec<&str> = places.map(|(key, _)| key).collect();
                let is_mem = |line: &&str| keys.iter().any(|key| line.contains(*key));
                let values = log.lines().filter(is_mem).filter_map(aggregate);
                values.max().unwrap_or(0)
            };
            let mut bytes: Vec<u64> = (1..=5).map(most).collect();
            bytes.sort_unstable();
            println!("libpng, cmp,mem, {mode}: largest allocation after 180 s, 5 runs: {bytes:?}");
        }
    }

    fn guided(&self, target: &Path, out: &Path, seed: u32, seconds: u32) -> Command {
        self.silent(&["-p"], target, out, seed, seconds)
    }

    /// A silent campaign of so many seconds, in a new folder.
    fn silent(
        &self,
        options: &[&str],
        target: &Path,
        out: &Path,
        seed: u32,
        seconds: u32,
    ) -> Command {
        let _ = std::fs::remove_dir_all(out);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
        command
            .args(options)
            .args(["-s", &seed.to_string(), "-V", &seconds.to_string(), "-i"])
            .arg(self.dir.join("in"))
            .arg("-o")
            .arg(out)
            .arg(target)
            .env("AFL_NO_UI", "1")
            .env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// CPU seconds of fuzzer and target until such a value is logged.
    fn hunt(&self, target: &Path, seed: u32, bytes: u64) -> Option<f64> {
        let out = self.dir.join("hunt");
        let mut child = self.guided(target, &out, seed, DEMO_LIMIT).spawn().expect("ffuzz starts");
        let before = children_cpu();
        let mut found = false;
        while !found && child.try_wait().expect("child").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let log = std::fs::read_to_string(out.join("fuzzfactory.log")).unwrap_or_default();
            found = log.lines().filter_map(aggregate).any(|value| value >= bytes);
        }
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT);
        child.wait().expect("child");
        found.then(|| children_cpu() - before)
    }
}

/// The largest value that any of the inputs in `folder` reaches at any key.
fn largest_value(folder: &Path, target: &Path) -> f64 {
    let output = Command::new(env!("CARGO_BIN_EXE_ffuzz"))
        .args(["showdsf", "-q", "-i"])
        .arg(folder)
        .arg(target)
        .output()
        .expect("showdsf starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let values = text.lines().filter_map(|line| line.rsplit(' ').next()?.parse().ok());
    values.fold(0.0, f64::max)
}

/// The new aggregate in a line of `fuzzfactory.log`.
fn aggregate(line: &str) -> Option<u64> {
    line.split("new aggregate: ").nth(1)?.split(' ').next()?.parse().ok()
}

fn children_cpu() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage");
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("folder for seeds");
    for entry in std::fs::read_dir(from).expect("seeds").flatten() {
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copy of a seed");
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
