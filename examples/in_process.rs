//! The engine inside another program: a closure is the target, with a domain of its own.
//!
//! The closure reports edges and the depth of nested brackets; the engine looks for inputs that nest deeper.
//! Nothing here starts a process, opens a file or reads a clock.
//!
//! ```sh
//! cargo run --example in_process
//! ```

#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use ffuzz::engine::corpus::{Corpus, Seed, SeedId};
use ffuzz::engine::domain::{Domain, Reducer};
use ffuzz::engine::executor::{Executor, ExitKind, RunError};
use ffuzz::engine::fake::FakeExecutor;
use ffuzz::engine::feedback::{Judge, Verdict};
use ffuzz::engine::mutate::dictionary::Dictionary;
use ffuzz::engine::mutate::foreign::{Made, NoMutators};
use ffuzz::engine::mutate::{Candidate, Rng, is_text};
use ffuzz::engine::schedule::{ScheduleOptions, Scheduler};
use ffuzz::engine::stage::calibrate::{RUNS_FAST, calibrate};
use ffuzz::engine::stage::produce::{Donors, Materials, Producer};
use rand_core::SeedableRng;

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

/// Everything that a search needs.
struct Search {
    executor: FakeExecutor,
    judge: Judge,
    corpus: Corpus,
    scheduler: Scheduler,
    rng: Rng,
    crashes: Vec<Vec<u8>>,
}

impl Search {
    fn new() -> Self {
        let reducer = Reducer::Max;
        let depth = Domain { name: "depth".into(), start: 0, size: 1, reducer, initial: 0 };
        let executor = FakeExecutor::new(EDGES, vec![depth], target);
        let judge = Judge::new(EDGES, executor.domains(), true);
        let options = ScheduleOptions { guided: true, fixed_seed: true, ..Default::default() };
        let scheduler = Scheduler::new(options, EDGES, executor.domains());
        let rng = Rng::seed_from_u64(1);
        Self { executor, judge, corpus: Corpus::default(), scheduler, rng, crashes: Vec::new() }
    }

    /// Runs an input, judges it, and keeps what is new.
    fn run(&mut self, candidate: &Candidate) -> Result<(), RunError> {
        let mut verdict = self.judge.judge(&self.executor.observe(&candidate.bytes)?);
        if verdict.finding.is_some() {
            self.crashes.push(candidate.bytes.clone());
        }
        if !verdict.gains.is_empty() {
            // A second run has to show the same.
            let second = self.executor.observe(&candidate.bytes)?;
            verdict.gains = self.judge.confirm(&verdict.gains, &second);
        }
        if verdict.is_interesting() { self.keep(candidate, &verdict) } else { Ok(()) }
    }

    fn keep(&mut self, candidate: &Candidate, verdict: &Verdict) -> Result<(), RunError> {
        let data = &candidate.bytes;
        let learned = calibrate(&mut self.executor, &mut self.judge, data, RUNS_FAST)?;
        if learned.failed.is_some() {
            return Ok(());
        }
        let id = self.corpus.add(Seed {
            id: self.corpus.next_id(),
            data: data.as_slice().into(),
            parent: candidate.origin.parent(),
            waypoint: !verdict.gains.is_empty(),
            exec_us: learned.exec_us,
            trace: learned.trace,
            path_hash: learned.path_hash,
            ..Seed::default()
        });
        self.scheduler.added(&mut self.corpus, id);
        for gain in &verdict.gains {
            self.scheduler.owns(&self.corpus, id, gain.key, gain.bits);
        }
        Ok(())
    }

    /// One turn: a seed is picked, and havoc changes it as often as its energy says.
    fn turn(&mut self, donors: &mut Donors) -> Result<(), RunError> {
        self.scheduler.cull(&mut self.corpus);
        let Some(id) = self.scheduler.pick(&self.corpus, &mut self.rng) else { return Ok(()) };
        let input = self.corpus[id].data.clone();
        let runs = u64::from(self.scheduler.energy(&self.corpus, id)).clamp(16, 256);
        let (dictionary, text) = (Dictionary::default(), is_text(&input));
        let (mut stage, mut candidate) = (Producer::havoc(runs), Candidate::default());
        donors.next_seed();
        loop {
            let from = Materials {
                seed: id,
                input: &input,
                text,
                dictionary: &dictionary,
                donors: donors.lend(&mut self.rng, &self.corpus, id, 1),
                min_len: 1,
                max_len: 256,
                long_blocks: 1,
                stack_power: 4,
                climbing: self.corpus[id].waypoint,
                exploit: false,
            };
            let with = (&mut NoMutators as _, &mut self.rng);
            if stage.next(&from, with, &mut candidate) != Made::Input {
                break;
            }
            self.run(&candidate)?;
        }
        self.scheduler.picked(&mut self.corpus, id, runs);
        Ok(())
    }

    fn depth(&self) -> u32 {
        self.judge.aggregates().values()[0]
    }
}

fn main() -> Result<(), RunError> {
    let mut search = Search::new();
    search.run(&Candidate { bytes: b"[x]".to_vec(), ..Candidate::default() })?;
    assert_eq!(search.corpus[SeedId(0)].data.len(), 3, "the first input is always new");
    let mut donors = Donors::default();
    for turn in 0..TURNS {
        search.turn(&mut donors)?;
        if search.depth() >= WANTED_DEPTH && !search.crashes.is_empty() {
            println!("turn {turn}: brackets nested {} deep, and a crash", search.depth());
            break;
        }
    }
    println!(
        "{} runs, {} seeds, {} crashes",
        search.executor.execs(),
        search.corpus.len(),
        search.crashes.len()
    );
    assert!(search.depth() >= WANTED_DEPTH && !search.crashes.is_empty(), "the search is broken");
    Ok(())
}
