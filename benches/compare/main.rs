//! `make compare`: edges that kinds of fuzzers reach in equal CPU time, on libraries of Debian's sources.
//!
//! Every campaign adds a line to a rows file; the report is made of the lines of that file. Settings, from the
//! environment: QUICK, TARGETS, KINDS, KIND, BASE, SEEDS, TIME (CPU seconds), ROUNDS, CORE, ROWS (the file).
//! CONTRIBUTING.md says how to read the tables.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

mod build;
mod kinds;
#[path = "../parts/peers.rs"]
#[expect(dead_code, reason = "another benchmark uses the rest")]
mod peers;
mod report;
mod row;
mod run;
mod sets;
mod statistics;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use ffuzz::sys::affinity;
use nix::fcntl::{Flock, FlockArg};

use build::{Builder, Built};
use kinds::{Fuzzer, Kind};
use report::{Functions, Report};
use row::Row;
use run::{Campaign, Outcome};
use sets::JUDGING;
use sets::{NoTarget, Sets};

/// Of every side, so that none is faster by shorter inputs.
const LONGEST_INPUT: u64 = 4096;
const QUICK_TARGETS: usize = 4;
/// Seeds that targets have besides the small ones, as a value of SEEDS and in the name of a row.
const ORDINARY: &str = "ordinary";
/// Edges after the seeds count from the first point on; a fuzzer without so many runs has not started.
const FEWEST_RUNS: u64 = 10;

/// Why nothing is measured, and what to do about it.
#[derive(Debug)]
struct Failure {
    cause: String,
    remedy: String,
}

fn fail(cause: String, remedy: &str) -> Failure {
    Failure { cause, remedy: remedy.into() }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !is_wanted(&words) {
        return;
    }
    if let Err(failure) = Settings::read().and_then(|settings| Compare::new(settings)?.run()) {
        eprintln!("compare: {}\ncompare: {}", failure.cause, failure.remedy);
        std::process::exit(1);
    }
}

/// `cargo test --benches` measures nothing, and `cargo bench -- speed` only what it names.
fn is_wanted(words: &[String]) -> bool {
    let (options, names): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with('-'));
    options.iter().any(|option| *option == "--bench") && names.iter().all(|name| *name == "compare")
}

struct Settings {
    sets: Sets,
    targets: Vec<String>,
    seeds: Seeds,
    kinds: Vec<Kind>,
    base: Option<String>,
    budget: f64,
    rounds: usize,
    core: usize,
    rows: PathBuf,
    folder: PathBuf,
}

enum Seeds {
    /// Those that each target has, of a few hundred bytes.
    Small,
    /// Those that most targets have, of some KiB.
    Ordinary,
    /// A folder for each target in this one.
    Folder(PathBuf),
}

impl Seeds {
    fn of(text: Option<&str>) -> Self {
        match text {
            None => Self::Small,
            Some(ORDINARY) => Self::Ordinary,
            Some(folder) => Self::Folder(folder.into()),
        }
    }

    /// The seeds of a target that is built in `built`.
    fn folder(&self, target: &str, built: &Path) -> PathBuf {
        match self {
            Self::Small => built.join(format!("{target}-seeds")),
            Self::Ordinary => built.join(format!("{target}-{ORDINARY}")),
            Self::Folder(folder) => folder.join(target),
        }
    }

    /// What a row calls a target with these seeds.
    fn label(&self, target: &str) -> String {
        match self {
            Self::Small => target.to_owned(),
            Self::Ordinary => format!("{target}+{ORDINARY}"),
            Self::Folder(folder) => match folder.file_name() {
                Some(name) => format!("{target}+{}", name.display()),
                None => target.to_owned(),
            },
        }
    }

    /// Whether all targets have them.
    fn check(&self, targets: &[String], built: &Path) -> Result<(), Failure> {
        let lacks = |target: &&String| fs::read_dir(self.folder(target, built)).is_err();
        let lacking: Vec<&str> = targets.iter().filter(lacks).map(String::as_str).collect();
        let Some(first) = lacking.first() else { return Ok(()) };
        Err(match self {
            Self::Folder(_) => fail(
                format!("{} is no folder", self.folder(first, built).display()),
                "SEEDS=FOLDER has a folder of seeds for each of TARGETS",
            ),
            _ => fail(
                format!("there are no {ORDINARY} seeds of {}", lacking.join(", ")),
                "leave them out, TARGETS=judging has them; or SEEDS=FOLDER, with a folder for each",
            ),
        })
    }
}

/// Empty is not set: make hands all of them on.
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn number<T: std::str::FromStr>(name: &str, default: T) -> Result<T, Failure> {
    let Some(text) = setting(name) else { return Ok(default) };
    text.trim().parse().map_err(|_| fail(format!("{name}={text} is no number"), "give a number"))
}

impl Settings {
    fn read() -> Result<Self, Failure> {
        let quick = setting("QUICK").is_some_and(|value| value != "0");
        let base = setting("BASE");
        let [chosen, own] = ["KINDS", "KIND"].map(|name| setting(name).unwrap_or_default());
        let names = kinds::FUZZERS.map(|(name, _)| name).join(", ");
        let kinds = kinds::wanted(&chosen, &own, base.is_some(), quick).map_err(|error| {
            fail(
                error.0,
                &format!(
                    "a kind is NAME=FUZZER:OPTIONS or a FUZZER, with +dict or without: {names}"
                ),
            )
        })?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("compare");
        fs::create_dir_all(&folder)
            .map_err(|error| fail(format!("{}: {error}", folder.display()), "make room there"))?;
        let cores = affinity::allowed();
        let core = number("CORE", cores.last().copied().unwrap_or(0))?;
        if !cores.contains(&core) {
            return Err(fail(
                format!("core {core} is not allowed"),
                &format!("CORE= one of {cores:?}"),
            ));
        }
        let budget: f64 = number("TIME", if quick { 20.0 } else { 300.0 })?;
        if budget.is_nan() || budget < 1.0 {
            return Err(fail(
                format!("TIME={budget} is no budget"),
                "give CPU seconds, one or more",
            ));
        }
        let sets = sets()?;
        let targets = targets(&sets, quick)?;
        let seeds = Seeds::of(setting("SEEDS").as_deref().map(str::trim));
        if matches!(seeds, Seeds::Folder(_)) {
            seeds.check(&targets, &folder)?;
        }
        Ok(Self {
            sets,
            targets,
            seeds,
            kinds,
            base,
            budget,
            rounds: number("ROUNDS", if quick { 2 } else { 5 })?,
            core,
            rows: setting("ROWS").map_or_else(|| folder.join("rows.jsonl"), PathBuf::from),
            folder,
        })
    }
}

/// The names that the script has.
fn sets() -> Result<Sets, Failure> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare/targets.sh");
    let list = |set: &[&str]| {
        let output = Command::new(script).arg("--list").args(set).output();
        let output = output.map_err(|error| fail(format!("{script}: {error}"), "install bash"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    Ok(Sets::parse(&list(&[])?, &list(&[sets::JUDGING])?))
}

/// Those of TARGETS, else all, or the first ones.
fn targets(sets: &Sets, quick: bool) -> Result<Vec<String>, Failure> {
    let Some(chosen) = setting("TARGETS") else {
        let count = if quick { QUICK_TARGETS } else { sets.all.len() };
        return Ok(sets.all.iter().take(count).cloned().collect());
    };
    sets.named(&chosen).map_err(|NoTarget(name)| {
        fail(
            format!("there is no target {name}"),
            &format!("TARGETS= tuning, judging, or some of: {}", sets.all.join(" ")),
        )
    })
}

struct Compare {
    settings: Settings,
    kinds: Vec<(Kind, Built)>,
    neutral: Built,
    cmplog: Option<Built>,
}

impl Compare {
    /// Everything is built before the first campaign.
    fn new(settings: Settings) -> Result<Self, Failure> {
        let builder = Builder { folder: settings.folder.clone(), base: settings.base.clone() };
        let lock = fs::File::create(settings.folder.join("lock")).expect("lock");
        let _one_builds = Flock::lock(lock, FlockArg::LockExclusive);
        let mut kinds = vec![];
        for kind in &settings.kinds {
            kinds.push((kind.clone(), builder.of(kind)?));
        }
        let neutral = builder.neutral()?;
        let wants_cmplog = settings.kinds.iter().any(|kind| kind.fuzzer == Fuzzer::AflCmplog);
        let cmplog = if wants_cmplog { Some(builder.cmplog()?) } else { None };
        let mut builds: Vec<Built> = kinds.iter().map(|(_, built)| built.clone()).collect();
        builds.extend(cmplog.clone());
        builds.push(neutral.clone());
        builds.sort_by(|a, b| a.folder.cmp(&b.folder));
        builds.dedup_by(|a, b| a.folder == b.folder);
        builder.targets(&builds, &settings.targets)?;
        settings.seeds.check(&settings.targets, &neutral.folder)?;
        Ok(Self { settings, kinds, neutral, cmplog })
    }

    fn run(&self) -> Result<(), Failure> {
        run::adopt_orphans().expect("PR_SET_CHILD_SUBREAPER");
        let Settings { targets, rounds, .. } = &self.settings;
        let all = rounds * targets.len() * self.kinds.len();
        let mut done = 0;
        for round in 0..*rounds {
            for target in targets {
                let mut kinds: Vec<_> = self.kinds.iter().collect();
                if round % 2 == 1 {
                    kinds.reverse();
                }
                for (kind, built) in kinds {
                    let row = self.campaign(target, kind, built)?;
                    done += 1;
                    eprintln!(
                        "compare: {done} of {all}: {}, {}: {} edges, {} runs, {:.1} CPU s",
                        row.target, row.kind, row.edges, row.runs, row.cpu
                    );
                    self.append(&row)?;
                }
            }
        }
        self.report()
    }

    fn rows(&self) -> Vec<Row> {
        let (rows, broken) =
            row::parse(&fs::read_to_string(&self.settings.rows).unwrap_or_default());
        if broken > 0 {
            eprintln!("compare: {broken} lines of {} cannot be read", self.settings.rows.display());
        }
        rows
    }

    fn append(&self, row: &Row) -> Result<(), Failure> {
        let line = serde_json::to_string(row).expect("a row is JSON") + "\n";
        let file = fs::File::options().create(true).append(true).open(&self.settings.rows);
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| {
            fail(
                format!("{}: {error}", self.settings.rows.display()),
                "name another file: ROWS=FILE",
            )
        })
    }

    /// Seeds go on where the rows of this kind end, so that no campaign is made twice.
    fn campaign(&self, target: &str, kind: &Kind, built: &Built) -> Result<Row, Failure> {
        let label = self.settings.seeds.label(target);
        let same =
            |row: &&Row| row.target == label && row.kind == kind.name && row.build == built.id;
        let seed = 1 + self.rows().iter().filter(same).map(|row| row.seed).max().unwrap_or(0);
        let work = self.settings.folder.join(format!("run-{}", std::process::id()));
        let _ = fs::remove_dir_all(&work);
        for folder in ["points", "out/default"] {
            fs::create_dir_all(work.join(folder)).expect("folder for a campaign");
        }
        let (out, log) = (work.join("out"), work.join("log"));
        let command = self.command(target, kind, built, seed, &out);
        let points = work.join("points");
        let restarts = kind.fuzzer == Fuzzer::Libfuzzer;
        let (core, budget) = (self.settings.core, self.settings.budget);
        let campaign = Campaign { command, core, budget, points, out, log, restarts };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let kept = self.settings.folder.join("failed");
        let broken = |cause: String| {
            let _ = fs::remove_dir_all(&kept);
            let _ = fs::rename(&work, &kept);
            fail(cause, &format!("read {}", kept.join("log").display()))
        };
        let outcome = campaign.run();
        let outcome =
            outcome.ok_or_else(|| broken(format!("{} ends early on {target}", kind.name)))?;
        let runs = runs(&campaign);
        if runs < FEWEST_RUNS {
            return Err(broken(format!("{} has made {runs} runs of {target}", kind.name)));
        }
        let count = count(&self.neutral.program(target), &outcome.points);
        let count =
            count.ok_or_else(|| broken(format!("the edges of {target} cannot be counted")))?;
        let row = self.row(target, kind, built, &campaign, &outcome, count);
        let _ = fs::remove_dir_all(&work);
        Ok(Row { time, seed, runs, target: label, ..row })
    }

    fn row(
        &self,
        target: &str,
        kind: &Kind,
        built: &Built,
        campaign: &Campaign,
        outcome: &Outcome,
        count: Count,
    ) -> Row {
        let first = |file: &str, start: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
            line.rsplit(": ").next().unwrap_or_default().to_owned()
        };
        let source = fs::read_to_string(self.neutral.folder.join(format!("{target}.source")));
        let load = first("/proc/loadavg", "");
        Row {
            time: 0,
            seed: 0,
            runs: 0,
            commit: built.commit.clone(),
            build: built.id.clone(),
            profile: if is_ours(kind.fuzzer) { profile() } else { String::new() },
            machine: first("/proc/cpuinfo", "model name"),
            cores: affinity::allowed().len(),
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            target: target.into(),
            source: source.unwrap_or_default().trim().to_owned(),
            kind: kind.name.clone(),
            options: kind.words(),
            budget: campaign.budget,
            cpu: outcome.cpu,
            wall: outcome.wall,
            edges: count.samples.last().map_or(0, |(_, edges)| *edges),
            edges_total: count.total,
            queue: run::found(&campaign.out, &["queue"]).len(),
            crashes: run::found(&campaign.out, &["crashes"]).len(),
            starts: outcome.starts,
            samples: count.samples,
            bits: count.bits,
        }
    }

    /// Without the variables of whoever runs the benchmark: some of them make a fuzzer slower.
    fn command(&self, target: &str, kind: &Kind, built: &Built, seed: u64, out: &Path) -> Command {
        let program = built.program(target);
        let seeds = self.settings.seeds.folder(target, &built.folder);
        let dictionary = built.folder.join(format!("{target}.dict"));
        let lengths = fs::read_dir(&seeds).into_iter().flatten().flatten();
        let lengths = lengths.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        let longest = lengths.max().unwrap_or_default().max(LONGEST_INPUT).to_string();
        let mut command;
        if kind.fuzzer == Fuzzer::Libfuzzer {
            let folders = ["queue", "crashes"].map(|name| out.join("default").join(name));
            folders
                .iter()
                .for_each(|folder| fs::create_dir_all(folder).expect("folder for inputs"));
            command = Command::new(program);
            command.args([
                "-detect_leaks=0",
                "-print_final_stats=1",
                "-close_fd_mask=3",
                "-timeout=5",
            ]);
            command.arg(format!("-max_len={longest}")).arg(format!("-seed={seed}"));
            command.arg(format!("-artifact_prefix={}/", folders[1].display()));
            if kind.dictionary {
                command.arg(format!("-dict={}", dictionary.display()));
            }
            command.args(&kind.options).arg(&folders[0]).arg(seeds);
        } else {
            command = Command::new(&built.fuzzer);
            command.args(["-G", &longest]);
            // With a fixed seed ffuzz decides nothing by time, which is not how it is used.
            if !is_ours(kind.fuzzer) {
                command.args(["-s", &seed.to_string()]);
            }
            command.arg("-i").arg(seeds);
            command.arg("-o").arg(out);
            let mut dictionaries = vec![];
            dictionaries.extend(kind.dictionary.then_some(dictionary));
            let collected = built.collected(target);
            let wanted = kind.fuzzer == Fuzzer::AflDict2file && has_words(&collected);
            dictionaries.extend(wanted.then_some(collected));
            for file in dictionaries {
                command.arg("-x").arg(file);
            }
            if let (Fuzzer::AflCmplog, Some(cmplog)) = (kind.fuzzer, &self.cmplog) {
                command.arg("-c").arg(cmplog.program(target));
            }
            if kind.fuzzer == Fuzzer::Native {
                command.arg("-Q");
            }
            command.args(&kind.options).arg("--").arg(program);
        }
        for name in [
            "AFL_NO_UI",
            "AFL_SKIP_CPUFREQ",
            "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES",
            "AFL_NO_AFFINITY",
        ] {
            command.env(name, "1");
        }
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(kind.variables.iter().cloned());
        command
    }

    fn report(&self) -> Result<(), Failure> {
        let rows = row::comparable(self.rows(), self.settings.budget);
        let functions = self.functions(&rows);
        let report = Report::new(rows, self.settings.sets.clone());
        let text = report.text(&functions);
        let [page, picture] =
            ["report.md", "coverage.svg"].map(|name| self.settings.folder.join(name));
        for (file, content) in [(&page, &text), (&picture, &report.picture())] {
            fs::write(file, content)
                .map_err(|error| fail(format!("{}: {error}", file.display()), "make room there"))?;
        }
        println!("{text}\n{}\n{}", page.display(), picture.display());
        Ok(())
    }

    /// Of each target that is built here and may be looked into.
    fn functions(&self, rows: &[Row]) -> Functions {
        let mut functions = BTreeMap::new();
        for row in rows {
            let (target, _) = sets::parts(&row.target);
            if self.settings.sets.of(target) == JUDGING {
                continue;
            }
            let program = self.neutral.program(target);
            if !functions.contains_key(&row.target) && program.exists() {
                functions.insert(row.target.clone(), symbols(&program));
            }
        }
        functions
    }
}

/// A fuzzer of this project.
fn is_ours(fuzzer: Fuzzer) -> bool {
    matches!(fuzzer, Fuzzer::Ffuzz | Fuzzer::Base | Fuzzer::Ordinary | Fuzzer::Native)
}

/// The profile of this executable, which is that of `ffuzz`: its folder's name.
fn profile() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_ffuzz")).parent().and_then(Path::file_name);
    folder.unwrap_or_default().to_string_lossy().into_owned()
}

fn has_words(dictionary: &Path) -> bool {
    fs::metadata(dictionary).is_ok_and(|data| data.len() > 0)
}

/// Of all instances, or of all starts.
fn runs(campaign: &Campaign) -> u64 {
    let sum = |text: &str, start: &str| -> u64 {
        let lines = text.lines().filter_map(|line| line.strip_prefix(start)?.split_once(':'));
        lines.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
    };
    if campaign.restarts {
        let log = fs::read(&campaign.log).unwrap_or_default();
        return sum(&String::from_utf8_lossy(&log), "stat::number_of_executed_units");
    }
    let instances = fs::read_dir(&campaign.out).into_iter().flatten().flatten();
    let stats = instances.filter_map(|it| fs::read_to_string(it.path().join("fuzzer_stats")).ok());
    stats.map(|stats| sum(&stats, "execs_done")).sum()
}

struct Count {
    samples: Vec<(f64, u32)>,
    total: u32,
    bits: String,
}

/// Edges at each point, counted by a program that no fuzzer has made.
fn count(neutral: &Path, points: &[(f64, PathBuf)]) -> Option<Count> {
    let mut command = Command::new(neutral);
    command.arg("-s").args(points.iter().map(|(_, folder)| folder));
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The target may print lines of its own before.
    let lines: Vec<&str> = text.lines().rev().take(points.len() + 2).collect();
    let mut lines = lines.into_iter().rev();
    let mut samples = vec![];
    for (cpu, _) in points {
        samples.push((*cpu, lines.next()?.parse().ok()?));
    }
    Some(Count { samples, total: lines.next()?.parse().ok()?, bits: lines.next()?.to_owned() })
}

/// The function of each edge; nothing where there is no symbolizer.
fn symbols(neutral: &Path) -> Vec<String> {
    let Ok(addresses) = Command::new(neutral).arg("-a").output() else { return vec![] };
    let mut command = Command::new("llvm-symbolizer-19");
    command
        .args(["--no-inlines", "--functions=linkage", "--output-style=JSON", "--obj"])
        .arg(neutral);
    command.args(String::from_utf8_lossy(&addresses.stdout).lines());
    let Ok(output) = command.output() else { return vec![] };
    let text = String::from_utf8_lossy(&output.stdout);
    let symbols: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let name = |symbol: &serde_json::Value| {
        symbol["Symbol"][0]["FunctionName"].as_str().unwrap_or("?").to_owned()
    };
    symbols.as_array().map(|all| all.iter().map(name).collect()).unwrap_or_default()
}
