//! The engine inside another program: a closure is the target, with a domain of its own.
//!
//! The closure reports edges and the depth of nested brackets; the fuzzer looks for inputs that nest deeper.
//! Nothing here starts a process, opens a file or reads a clock.
//!
//! ```sh
//! cargo run --example in_process
//! ```

#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use ffuzz::config::options::{MutationOptions, Wanted};
use ffuzz::engine::calibrate::RUNS_FAST;
use ffuzz::engine::domain::{Domain, Reducer};
use ffuzz::engine::executor::{ExitKind, RunError};
use ffuzz::engine::fake::FakeExecutor;
use ffuzz::engine::fuzzer::admit::Stored;
use ffuzz::engine::fuzzer::door::{Discovery, Door, Host};
use ffuzz::engine::fuzzer::{AdmissionOptions, Fuzzer, Plan};
use ffuzz::engine::runner::Runner;
use ffuzz::engine::schedule::ScheduleOptions;
use ffuzz::engine::stage::Stages;
use ffuzz::mutate::Candidate;
use ffuzz::mutate::dictionary::Dictionary;
use ffuzz::mutate::foreign::NoMutators;

const EDGES: usize = 8;
const TURNS: u32 = 2000;
const WANTED_DEPTH: u32 = 200;

/// What is fuzzed: the first edges say what was read, the key says how deep the brackets were nested.
fn target(input: &[u8], edges: &mut [u8], values: &mut [u32]) -> ExitKind {
    let mut depth = 0;
    for byte in input {
        match byte {
            b'[' => (edges[0], depth) = (1, depth + 1),
            b']' if depth > 0 => (edges[1], depth) = (1, depth - 1),
            b']' => edges[2] = 1,
            _ => edges[3] = 1,
        }
        values[0] = values[0].max(depth);
    }
    // A fault: what was nested deep and is balanced.
    let is_bad = depth == 0 && values[0] > 8;
    if is_bad { ExitKind::Crash { signal: 11 } } else { ExitKind::Ok }
}

/// The fuzzer, and what becomes of its finds.
struct Search {
    fuzzer: Fuzzer<NoMutators>,
    crashes: Vec<Vec<u8>>,
}

impl Host for Search {
    type Mutators = NoMutators;
    type Error = RunError;

    fn fuzzer(&self) -> &Fuzzer<NoMutators> {
        &self.fuzzer
    }

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<NoMutators> {
        &mut self.fuzzer
    }

    /// Crashes go into a list. What is new goes into the corpus without our help.
    fn store(
        &mut self,
        candidate: &Candidate,
        _: Discovery<'_>,
    ) -> Result<Option<Stored>, RunError> {
        self.crashes.push(candidate.bytes.clone());
        Ok(None)
    }
}

fn main() -> Result<(), RunError> {
    let reducer = Reducer::Max;
    let depth = Domain { name: "depth".into(), start: 0, size: 1, reducer, initial: 0 };
    let executor = FakeExecutor::new(EDGES, vec![depth], target);
    let plan = Plan {
        mutation: MutationOptions { max_len: 512, ..MutationOptions::default() },
        foreign_only: false,
        schedule: ScheduleOptions { guided: true, fixed_seed: true, ..Default::default() },
        watch_domains: true,
        wanted: Wanted::default(),
        admission: AdmissionOptions { calibration_runs: RUNS_FAST, ..Default::default() },
        rng_seed: 1,
    };
    let runner = Runner::new(Box::new(executor));
    let fuzzer = Fuzzer::new(runner, NoMutators, Dictionary::default(), plan);
    let mut search = Search { fuzzer, crashes: Vec::new() };
    Door(&mut search).try_out(&Candidate { bytes: b"[x]".to_vec(), ..Candidate::default() })?;
    assert_eq!(search.fuzzer.corpus.len(), 1, "the first input is always new");
    let best = |search: &Search| search.fuzzer.judge().aggregates().values()[0];
    let mut stages = Stages::new();
    for turn in 0..TURNS {
        let Some(id) = search.fuzzer.pick() else { break };
        let runs = stages.run_turn(&mut search, id)?;
        let Fuzzer { scheduler, corpus, .. } = &mut search.fuzzer;
        scheduler.picked(corpus, id, runs);
        if best(&search) >= WANTED_DEPTH && !search.crashes.is_empty() {
            println!("turn {turn}: brackets nested {} deep, and a crash", best(&search));
            break;
        }
    }
    let Search { fuzzer, crashes } = &search;
    let (runs, seeds) = (fuzzer.target().execs(), fuzzer.corpus.len());
    println!("{runs} runs, {seeds} seeds, {} crashes", crashes.len());
    assert!(best(&search) >= WANTED_DEPTH && !crashes.is_empty(), "the search is broken");
    Ok(())
}
