//! The programs of [`super::snapshot`] by snapshot and by fork, on the same inputs: do they show the same
//! edges, ends and domain values, and does anything grow over many runs?
//!
//! The inputs are the queue of a campaign by fork and what havoc makes of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ffuzz::config::env::AssetPlaces;
use ffuzz::config::net::NetOptions;
use ffuzz::config::options::{NativeEngine, NativeOptions, RunMode};
use ffuzz::engine::executor::Executor as _;
use ffuzz::engine::executor::ExitKind;
use ffuzz::exec::{ForkServer, RunResult};
use ffuzz::mutate::buffer::Buffer;
use ffuzz::mutate::dictionary::Dictionary;
use ffuzz::mutate::havoc::{HavocContext, havoc};
use ffuzz::mutate::{Rng, below, is_text};
use rand_core::SeedableRng as _;

use super::server::{self, candidates, shown};
use super::snapshot::{PROGRAMS, Program};
use super::speed::OURS;
use super::{Bench, copy_all};

const INPUTS: usize = 20_000;
const BATCH: usize = 64;
const LONGEST: usize = 4096;
/// Of a campaign that makes a queue, in seconds.
const CAMPAIGN: u32 = 10;
/// Runs that may not make a process grow, and how many show what it is before.
const RUNS: usize = 1_000_000;
const FIRST_RUNS: usize = 50_000;
const TIMEOUT: Duration = Duration::from_secs(5);

/// A program, and what a campaign has found for it.
pub(super) struct Case {
    title: String,
    target: PathBuf,
    arguments: String,
    /// How it is run if it is not instrumented.
    native: Option<NativeOptions>,
    /// The socket that takes its inputs.
    net: Option<NetOptions>,
    queue: Vec<Vec<u8>>,
}

/// What came of it.
#[derive(Default)]
struct Found {
    differences: usize,
    /// Inputs on which two runs by fork differ as well.
    unsteady: usize,
    first: Option<String>,
}

impl Bench {
    pub(super) fn same(&self) {
        print_head();
        let cases: Vec<Case> = PROGRAMS.iter().map(|program| self.case(program)).collect();
        for case in &cases {
            self.compare_runs(case);
        }
        println!(
            "\n| case | runs | memory before and behind them, kB | descriptors |\n|---|---|---|---|"
        );
        for case in &cases {
            self.grow(case);
        }
    }

    fn case(&self, program: &Program) -> Case {
        let (target, arguments) = (self.with_values(program), program.arguments.join(" "));
        let queue = queue_of(self, &target, &[], &arguments);
        let title = format!("{}, {}", program.harness, program.title);
        Case { title, target, arguments, native: None, net: None, queue }
    }

    /// With domains, so that values are compared as well.
    fn with_values(&self, program: &Program) -> PathBuf {
        let Program { harness, engine, flags, .. } = *program;
        let folder = self.dir.join("same").join(format!("{harness}{flags}"));
        let flags = ["-O2 -g", flags].join(" ");
        let variables = [("ENGINE", engine), ("CFLAGS", &*flags), ("WAYPOINTS", "cmp,mem")];
        self.harness_by(OURS, &variables, harness, &folder)
    }

    fn start(&self, case: &Case, mode: RunMode) -> ForkServer {
        let mut options = server::options(&case.target, &case.arguments, mode);
        options.native = case.native.clone();
        options.net = case.net.clone();
        options.places = AssetPlaces::read();
        // The same name for both: a program may look at it.
        server::start(&options, TIMEOUT, &self.dir.join("same-input"))
    }

    pub(super) fn compare_runs(&self, case: &Case) {
        let Case { title, queue, net, .. } = case;
        let [mut by_snapshot, mut by_fork] =
            [RunMode::Snapshot, RunMode::Fork].map(|mode| self.start(case, mode));
        let (mut rng, mut found) = (Rng::seed_from_u64(1), Found::default());
        for batch in inputs(queue, net.is_some(), &mut rng).chunks(BATCH) {
            let [here, there] = [&mut by_snapshot, &mut by_fork].map(|server| shown(server, batch));
            for (input, (here, there)) in batch.iter().zip(here.iter().zip(&there)) {
                if here != there {
                    found.add(here.difference(there), there, input, &mut by_fork);
                }
            }
        }
        let runs = by_snapshot.info().snapshot_runs().unwrap_or_default();
        let Found { differences, unsteady, first } = found;
        println!(
            "| {title} | {} | {INPUTS} | {differences} | {unsteady} | {} | {:.1} |",
            queue.len(),
            runs.by_fork,
            runs.pages as f64 / runs.runs.max(1) as f64
        );
        let mode = by_snapshot.info().run_mode().name();
        let notes = by_snapshot.take_notes();
        let words = first.into_iter().chain(notes).chain((mode != "snapshot").then(|| mode.into()));
        words.for_each(|text| println!("  {text}"));
    }

    fn grow(&self, case: &Case) {
        let Case { title, target, queue, .. } = case;
        // Not those that are made by fork each time.
        let mut batch = candidates(&inputs(queue, false, &mut Rng::seed_from_u64(2))[..4 * BATCH]);
        let mut server = self.start(case, RunMode::Snapshot);
        batch.retain(|input| server.observe(&input.bytes).expect("a run").exit == ExitKind::Ok);
        batch.truncate(BATCH);
        server.learn_edges(&vec![0; server.info().map_size()]);
        let mut measure = |runs: usize| {
            for _ in 0..runs / batch.len() {
                let mut next = 0;
                while server.run(&batch, &mut next).expect("a run").is_some() {}
            }
            server::memory_and_descriptors(target)
        };
        let (before, behind) = (measure(FIRST_RUNS), measure(RUNS));
        println!("| {title} | {RUNS} | {} {} | {} {} |", before.0, behind.0, before.1, behind.1);
    }
}

pub(super) fn print_head() {
    println!(
        "\n| case | queue | inputs | differ | unsteady by fork | made by fork | pages a run |"
    );
    println!("|---|---|---|---|---|---|---|");
}

impl Case {
    /// Of a program that is not instrumented.
    pub(super) fn native(bench: &Bench, name: &str, target: PathBuf, arguments: &str) -> Self {
        let queue = queue_of(bench, &target, &["-Q", "--native"], arguments);
        let engine = NativeEngine::Breakpoints;
        let native = Some(NativeOptions { engine, ..NativeOptions::default() });
        Self { title: name.into(), target, arguments: arguments.into(), native, net: None, queue }
    }

    /// A server or client, and the queue of a campaign. Its runs need its folder.
    pub(super) fn server(name: &str, command: &[String], net: &str, queue: &Path) -> Self {
        let (target, arguments) = (PathBuf::from(&command[0]), command[1..].join(" "));
        let net = Some(net.parse().expect("a socket"));
        Self { title: name.into(), target, arguments, native: None, net, queue: files_of(queue) }
    }
}

impl Found {
    fn add(
        &mut self,
        difference: String,
        there: &RunResult,
        input: &[u8],
        by_fork: &mut ForkServer,
    ) {
        let again = RunResult::of(&by_fork.observe(input).expect("a run"));
        if again != *there {
            self.unsteady += 1;
            return;
        }
        self.differences += 1;
        self.first.get_or_insert(format!("{difference}: {:?}", String::from_utf8_lossy(input)));
    }
}

/// Files of the queue of a campaign by fork, in order.
pub(super) fn queue_of(
    bench: &Bench,
    target: &Path,
    options: &[&str],
    arguments: &str,
) -> Vec<Vec<u8>> {
    let out = bench.dir.join("out");
    let options = [options, &["--run-mode=fork"]].concat();
    let mut command = bench.silent(&options, target, &out, 1, CAMPAIGN);
    command.args(arguments.split_whitespace());
    let _ = std::fs::remove_dir_all(bench.dir.join("in"));
    copy_all(&bench.seeds(target), &bench.dir.join("in"));
    assert!(command.status().expect("ffuzz starts").success());
    files_of(&out.join("queue"))
}

fn files_of(queue: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(queue).expect("queue").flatten();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).filter(|p| p.is_file()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("seed")).collect()
}

/// The queue, then mutants of its entries.
pub(super) fn inputs(queue: &[Vec<u8>], messages: bool, rng: &mut Rng) -> Vec<Vec<u8>> {
    let dictionary = Dictionary::default();
    let mut all: Vec<Vec<u8>> = queue.iter().take(INPUTS).cloned().collect();
    while all.len() < INPUTS {
        let mut pick = || &queue[below(rng, queue.len() as u32) as usize];
        let (seed, donor) = (pick(), pick());
        let context = HavocContext {
            dictionary: &dictionary,
            donor: Some(donor),
            min_len: 1,
            max_len: LONGEST,
            long_blocks: 2,
            stack_power: 4,
            text: is_text(seed),
            messages,
            words: false,
            exploit: all.len().is_multiple_of(2),
            gentle: false,
        };
        let mut mutant = Buffer::new(seed, &[]);
        if messages {
            mutant.reframe();
        }
        havoc(rng, &mut mutant, &context, |_| false);
        all.push(mutant.into_bytes());
    }
    all
}
