//! Executions a second beside those of AFL++ and libFuzzer, all on one core in the same run, and for
//! harnesses the edges that each side's inputs reach in a build that none of them made.
//!
//! `FFUZZ_BENCH_SECONDS` (20) a campaign, `FFUZZ_BENCH_PAIRS` (5) rounds, `FFUZZ_BENCH_CORE` (the last that is
//! allowed), `FFUZZ_BENCH_CASE` (words in the title of the cases that are wanted), `FFUZZ_BENCH_BASE` (the executable
//! of another revision, which is one more side with targets of its own). A round runs every side of a case once; each
//! second round goes backwards. A ratio is that of the two sides in one round. A rate is the executions that a fuzzer
//! counted by the time from its start to its end, start-up included, on all sides alike.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use ffuzz::sys::affinity;

use super::peers::{Afl, Peers};
use super::{Bench, copy_all, median, setting};

/// Every side's largest input, so that none is faster by shorter ones.
const LONGEST_INPUT: &str = "4096";
pub(super) const ONCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/targets/once.c");
const IN_PROCESS: &str = "-fsanitize=fuzzer";

/// One line of the comparison: a fuzzer with a target of its own.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) fuzzer: Fuzzer,
    pub(super) target: PathBuf,
    /// How many times as fast ffuzz should be.
    pub(super) wanted: &'static str,
}

pub(super) enum Fuzzer {
    /// Whatever takes AFL's options and leaves AFL's files.
    Afl {
        program: PathBuf,
        options: &'static [&'static str],
        persistent: bool,
    },
    LibFuzzer,
}

#[derive(Clone, Copy)]
struct Sample {
    rate: f64,
    /// Not of a program that has no harness.
    edges: Option<f64>,
}

/// A harness or a program, and how all sides run it.
pub(super) struct Case<'a> {
    pub(super) title: &'a str,
    pub(super) harness: &'a str,
    /// Of the target.
    pub(super) arguments: &'static [&'static str],
    pub(super) ours: Side,
    pub(super) others: Vec<Side>,
}

pub(super) struct Speed<'a> {
    pub(super) bench: &'a Bench,
    pub(super) peers: Peers,
    seconds: u32,
    rounds: usize,
    core: usize,
    base: Option<PathBuf>,
}

impl<'a> Speed<'a> {
    /// Ends the benchmark if a peer is missing: nothing else is comparable.
    #[expect(clippy::print_stderr, reason = "a benchmark says why it cannot run")]
    pub(super) fn new(bench: &'a Bench) -> Self {
        let peers = Peers::find().unwrap_or_else(|missing| {
            eprintln!("speed: {}\nspeed: {}", missing.cause, missing.remedy);
            std::process::exit(1)
        });
        let last = affinity::allowed().last().copied().unwrap_or(0);
        let core = setting("FFUZZ_BENCH_CORE").unwrap_or(last);
        // What is started inherits it.
        affinity::bind(core).unwrap_or_else(|error| panic!("core {core}: {error}"));
        Self {
            bench,
            peers,
            seconds: setting("FFUZZ_BENCH_SECONDS").unwrap_or(20),
            rounds: setting("FFUZZ_BENCH_PAIRS").unwrap_or(5),
            core,
            base: std::env::var_os("FFUZZ_BENCH_BASE").map(PathBuf::from),
        }
    }

    pub(super) fn run(&self) {
        self.print_head();
        for (harness, wanted) in
            [("tiny", ["≥ 8", "≥ 0.8"]), ("cjson", ["≥ 5", "≥ 1"]), ("libpng", ["≥ 2.5", "≥ 1"])]
        {
            self.compare(&self.persistent(harness, wanted));
        }
        self.compare(&self.stock());
        self.compare(&self.ordinary_main());
        self.compare(&self.domain());
    }

    fn persistent(&self, harness: &'static str, [afl, in_process]: [&'static str; 2]) -> Case<'_> {
        let new = self.afl(&self.peers.new, harness, IN_PROCESS, afl);
        let debian = self.afl(&self.peers.debian, harness, IN_PROCESS, "");
        let libfuzzer = Side {
            name: "libFuzzer".into(),
            fuzzer: Fuzzer::LibFuzzer,
            target: self.build(self.peers.clang, harness, IN_PROCESS, "-fsanitize=fuzzer-no-link"),
            wanted: in_process,
        };
        let target = self.build(OURS, harness, IN_PROCESS, "");
        let mut others = vec![new, debian, libfuzzer];
        others.extend(self.base.as_ref().map(|base| Side {
            name: "the other revision".into(),
            fuzzer: Fuzzer::afl(base, false),
            target: self.build(&format!("{} cc", base.display()), harness, IN_PROCESS, ""),
            wanted: "≥ 0.98",
        }));
        Case { title: "persistent", harness, arguments: &[], ours: ours(target, &[]), others }
    }

    /// The same file for all.
    fn stock(&self) -> Case<'_> {
        let debian = self.afl(&self.peers.debian, "tiny", IN_PROCESS, "");
        let fuzzer = Fuzzer::afl(&self.peers.new.fuzzer, true);
        let target = debian.target.clone();
        let new = Side { name: self.peers.new.name.clone(), fuzzer, target, wanted: "≥ 1.0" };
        let ours = ours(debian.target.clone(), &[]);
        let (title, others) = ("built by Debian's AFL++", vec![new, debian]);
        Case { title, harness: "tiny", arguments: &[], ours, others }
    }

    fn ordinary_main(&self) -> Case<'_> {
        let new = self.afl(&self.peers.new, "tiny", ONCE, "≥ 1.0");
        let debian = self.afl(&self.peers.debian, "tiny", ONCE, "");
        let ours = ours(self.build(OURS, "tiny", ONCE, ""), &["--run-mode", "fork"]);
        let (title, others) = ("ordinary main by fork", vec![new, debian]);
        Case { title, harness: "tiny", arguments: &[], ours, others }
    }

    fn domain(&self) -> Case<'_> {
        let with = ours(self.build(OURS, "tiny", IN_PROCESS, "-DKEYS"), &["-p"]);
        let mut without = ours(self.build(OURS, "tiny", IN_PROCESS, ""), &[]);
        without.name = "ffuzz without it".into();
        without.wanted = "≥ 0.7";
        let title = "persistent, domain of 65,536 keys, 20 touched";
        Case { title, harness: "tiny", arguments: &[], ours: with, others: vec![without] }
    }

    /// AFL++ on its own build.
    fn afl(&self, afl: &Afl, harness: &str, engine: &str, wanted: &'static str) -> Side {
        Side {
            name: afl.name.clone(),
            fuzzer: Fuzzer::afl(&afl.fuzzer, engine == IN_PROCESS),
            target: self.build(&afl.compiler.to_string_lossy(), harness, engine, ""),
            wanted,
        }
    }

    /// The same optimisation for every compiler.
    pub(super) fn build(&self, compiler: &str, harness: &str, engine: &str, more: &str) -> PathBuf {
        let parts = [compiler, engine, more].map(|part| part.replace(['/', ' '], "_"));
        let folder = self.bench.dir.join("speed").join(parts.join("+"));
        let flags = ["-O2 -g", more].join(" ");
        self.bench.harness_by(compiler, &[("ENGINE", engine), ("CFLAGS", &flags)], harness, &folder)
    }

    /// Linked to what counts edges, with options that no fuzzer here uses. None without a harness.
    fn neutral(&self, harness: &str) -> Option<PathBuf> {
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/targets");
        if !Path::new(sources).join(harness).with_extension("c").exists() {
            return None;
        }
        let flags = "-O1 -g -fsanitize-coverage=trace-pc-guard,no-prune";
        let counter = self.bench.dir.join("speed/neutral.o");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/targets/neutral.c");
        let mut command = Command::new(self.peers.clang);
        let status = command.args(["-O2", "-c", source, "-o"]).arg(&counter).status();
        assert!(status.expect("clang starts").success(), "neutral.c does not compile");
        let variables = [("ENGINE", &*counter.to_string_lossy()), ("CFLAGS", flags)];
        let folder = self.bench.dir.join("speed/neutral");
        Some(self.bench.harness_by(self.peers.clang, &variables, harness, &folder))
    }

    /// All cases, or those with `FFUZZ_BENCH_CASE` in their title.
    pub(super) fn compare(&self, case: &Case<'_>) {
        if !is_wanted(&format!("{}, {}", case.harness, case.title)) {
            return;
        }
        let neutral = self.neutral(case.harness);
        let sides: Vec<&Side> = std::iter::once(&case.ours).chain(&case.others).collect();
        let mut samples = vec![vec![]; sides.len()];
        for round in 0..self.rounds {
            let mut order: Vec<usize> = (0..sides.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for side in order {
                let sample = self.sample(case, sides[side], round + 1, neutral.as_deref());
                samples[side].push(sample);
            }
        }
        for (side, theirs) in case.others.iter().zip(&samples[1..]) {
            print_row(case, side, &samples[0], theirs);
        }
    }

    /// One campaign.
    fn sample(&self, case: &Case<'_>, side: &Side, seed: usize, neutral: Option<&Path>) -> Sample {
        let out = self.bench.dir.join("out");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).expect("folder for a campaign");
        let seeds = self.bench.seeds(&case.ours.target);
        // A program may write files into the folder that it is started in.
        let litter = out.join("litter");
        fs::create_dir(&litter).expect("folder for what a target writes");
        let (mut command, folders) = match &side.fuzzer {
            Fuzzer::Afl { program, options, .. } => {
                let mut command = self.afl_command(program, options);
                command.arg("-i").arg(seeds).arg("-o").arg(&out).arg("--").arg(&side.target);
                command.args(case.arguments);
                (command, ["default/queue", "default/crashes"])
            }
            Fuzzer::LibFuzzer => {
                copy_all(&seeds, &out.join("corpus"));
                fs::create_dir(out.join("findings")).expect("folder for findings");
                (self.libfuzzer_command(&side.target, &out, seed), ["corpus", "findings"])
            }
        };
        command.current_dir(litter);
        let start = Instant::now();
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", side.name));
        let seconds = start.elapsed().as_secs_f64();
        let runs = match side.fuzzer {
            Fuzzer::Afl { persistent, .. } => {
                afl_runs(&side.name, &output, &out.join("default"), persistent)
            }
            Fuzzer::LibFuzzer => libfuzzer_runs(&output),
        };
        let found = folders.map(|folder| out.join(folder));
        let edges = neutral.map(|neutral| edges(neutral, &found));
        Sample { rate: runs / seconds, edges }
    }

    /// Without `-s`, with which ffuzz makes all choices without times: a slower search that can be repeated.
    fn afl_command(&self, program: &Path, options: &[&str]) -> Command {
        let mut command = clean(program);
        command.args(options).args(["-V", &self.seconds.to_string(), "-G", LONGEST_INPUT]);
        for name in ["NO_UI", "NO_AFFINITY", "SKIP_CPUFREQ", "I_DONT_CARE_ABOUT_MISSING_CRASHES"] {
            command.env(format!("AFL_{name}"), "1");
        }
        command
    }

    fn libfuzzer_command(&self, target: &Path, out: &Path, seed: usize) -> Command {
        let mut command = clean(target);
        command
            .arg(format!("-max_total_time={}", self.seconds))
            .arg(format!("-seed={seed}"))
            .arg(format!("-max_len={LONGEST_INPUT}"))
            .args(["-print_final_stats=1", "-detect_leaks=0", "-rss_limit_mb=0"])
            .arg(format!("-artifact_prefix={}/findings/", out.display()))
            .arg(out.join("corpus"));
        command
    }

    /// What belongs to the figures, then the head of the table.
    pub(super) fn print_head(&self) {
        let first = |file: &str, start: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
            line.rsplit(": ").next().unwrap_or_default().to_owned()
        };
        let clang = Command::new(self.peers.clang).arg("--version").output().expect("clang");
        let clang = String::from_utf8_lossy(&clang.stdout);
        println!(
            "ffuzz {}, {}, {}, libFuzzer of {}; {}, Linux {}, core {}, load {}.",
            env!("CARGO_PKG_VERSION"),
            self.peers.new.name,
            self.peers.debian.name,
            clang.lines().next().unwrap_or_default(),
            first("/proc/cpuinfo", "model name"),
            first("/proc/sys/kernel/osrelease", ""),
            self.core,
            first("/proc/loadavg", "").split(' ').next().unwrap_or_default()
        );
        println!(
            "Medians of {} campaigns of {} s a side, inputs of at most {LONGEST_INPUT} bytes: \
             `FFUZZ_BENCH_SECONDS={} FFUZZ_BENCH_PAIRS={} cargo bench -- NAME`.\n",
            self.rounds, self.seconds, self.seconds, self.rounds
        );
        println!("| case | ffuzz, runs/s | edges | against | runs/s | edges | ratio | wanted |");
        println!("|---|---|---|---|---|---|---|---|");
    }
}

/// Whether `FFUZZ_BENCH_CASE` is in the title; unless it is set, all are wanted.
pub(super) fn is_wanted(title: &str) -> bool {
    title.contains(&std::env::var("FFUZZ_BENCH_CASE").unwrap_or_default())
}

pub(super) const OURS: &str = concat!(env!("CARGO_BIN_EXE_ffuzz"), " cc");

pub(super) fn ours(target: PathBuf, options: &'static [&'static str]) -> Side {
    let program = env!("CARGO_BIN_EXE_ffuzz").into();
    // Which way it runs a target is what is measured.
    let fuzzer = Fuzzer::Afl { program, options, persistent: false };
    Side { name: "ffuzz".into(), fuzzer, target, wanted: "" }
}

impl Fuzzer {
    pub(super) fn afl(program: &Path, persistent: bool) -> Self {
        Self::Afl { program: program.to_owned(), options: &[], persistent }
    }
}

/// Without the variables of whoever runs the benchmark: some of them make a fuzzer slower.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    command
}

/// Executions. AFL++ has to use the target as it was built.
fn afl_runs(name: &str, output: &Output, folder: &Path, persistent: bool) -> f64 {
    let stats = fs::read_to_string(folder.join("fuzzer_stats"));
    let stats = stats.unwrap_or_else(|_| panic!("{name} does not start:\n{}", said(output)));
    let value = |key: &str| {
        let mut lines = stats.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    };
    let mode = value("target_mode").unwrap_or_default();
    if persistent {
        for word in ["shmem_testcase", "persistent"] {
            assert!(mode.contains(word), "{name} runs the target in mode {mode}, not {word}");
        }
    }
    value("execs_done").and_then(|count| count.parse().ok()).expect("execs_done")
}

fn libfuzzer_runs(output: &Output) -> f64 {
    let text = said(output);
    assert!(output.status.success(), "libFuzzer stops early:\n{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|count| count.trim().parse().ok()).expect("number_of_executed_units")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

fn edges(neutral: &Path, folders: &[PathBuf]) -> f64 {
    let output = clean(neutral).args(folders).output().expect("the neutral build starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text.split(' ').next().and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("the neutral build fails: {}", said(&output)))
}

fn print_row(case: &Case<'_>, side: &Side, ours: &[Sample], theirs: &[Sample]) {
    let rate = |samples: &[Sample]| {
        median(&mut samples.iter().map(|sample| sample.rate).collect::<Vec<f64>>())
    };
    let edges = |samples: &[Sample]| {
        let mut all: Vec<f64> = samples.iter().filter_map(|sample| sample.edges).collect();
        if all.is_empty() { "–".into() } else { median(&mut all).to_string() }
    };
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a.rate / b.rate).collect();
    let ratio = median(&mut ratios);
    println!(
        "| {}, {} | {:.0} | {} | {} | {:.0} | {} | {ratio:.2} ({:.2} to {:.2}) | {} |",
        case.harness,
        case.title,
        rate(ours),
        edges(ours),
        side.name,
        rate(theirs),
        edges(theirs),
        ratios[0],
        ratios[ratios.len() - 1],
        side.wanted
    );
}
