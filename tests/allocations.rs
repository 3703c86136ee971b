//! A run that shows nothing new allocates nothing: neither the mutation nor the executor nor the judge.

#![expect(unsafe_code, reason = "an allocator that counts")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use ffuzz::engine::corpus::{Corpus, Seed, SeedId};
use ffuzz::engine::domain::{Domain, Reducer};
use ffuzz::engine::executor::{Executor, ExitKind};
use ffuzz::engine::fake::FakeExecutor;
use ffuzz::engine::feedback::Judge;
use ffuzz::engine::mutate::dictionary::{Dictionary, Token};
use ffuzz::engine::mutate::donors::Donors;
use ffuzz::engine::mutate::foreign::{Made, NoMutators};
use ffuzz::engine::mutate::{Candidate, Rng};
use ffuzz::engine::schedule::Budget;
use ffuzz::engine::stage::produce::{Materials, Producer};
use rand_core::SeedableRng;

const RUNS: u64 = 100_000;
/// Candidates per hand-over.
const BATCH: usize = 64;
/// Runs until buffers have their size.
const WARM_UP: u64 = 20_000;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Counts the calls of each thread.
struct Counting;

fn count() {
    COUNT.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes and runs candidates of a stage; returns the allocations after the warm-up.
fn allocations(stage: impl Fn() -> Producer) -> u64 {
    let domain = Domain { name: "d".into(), start: 0, size: 64, reducer: Reducer::Max, initial: 0 };
    let mut executor = FakeExecutor::new(4096, vec![domain], |_, edges, values| {
        edges[..100].fill(1);
        values[..10].fill(1);
        ExitKind::Ok
    });
    let mut judge = Judge::new(4096, executor.info().domains(), true);
    let mut corpus = Corpus::default();
    for byte in b'a'..b'e' {
        let (id, data) = (corpus.next_id(), vec![byte; 512].into());
        corpus.add(Seed { id, data, ..Seed::default() });
    }
    let mut dictionary = Dictionary::default();
    dictionary.add_user(Token::new(b"word"));
    let mut rng = Rng::seed_from_u64(1);
    let first = judge.judge(&executor.observe(b"a").unwrap());
    let second = executor.observe(b"a").unwrap();
    judge.confirm(&first.gains, &second);
    let mut batch: Vec<Candidate> = Vec::new();
    batch.resize_with(BATCH, Candidate::default);
    batch.iter_mut().for_each(|candidate| candidate.bytes.reserve(1 << 16));
    let mut donors = Donors::default();
    let (mut runs, mut before) = (0, 0);
    let input = corpus[SeedId(0)].data.clone();
    while runs < WARM_UP + RUNS {
        let (mut stage, mut made) = (stage(), BATCH);
        while made == BATCH && runs < WARM_UP + RUNS {
            if runs < WARM_UP {
                before = COUNT.with(Cell::get);
            }
            let from = Materials {
                seed: SeedId(0),
                input: &input,
                text: true,
                words: true,
                dictionary: &dictionary,
                donors: donors.lend(&mut rng, &corpus, SeedId(0), BATCH),
                min_len: 1,
                max_len: 1 << 15,
                long_blocks: 1,
                stack_power: 4,
                climbing: false,
                exploit: false,
                spent: Duration::ZERO,
            };
            made = 0;
            while made < BATCH {
                let with = (&mut NoMutators as _, &mut rng);
                match stage.next(&from, with, &mut batch[made]) {
                    Made::Input => made += 1,
                    _ => break,
                }
            }
            let mut next = 0;
            judge.teach(&mut executor);
            while let Some(run) = executor.run(&batch[..made], &mut next).unwrap() {
                let verdict = judge.judge(&run);
                assert!(!verdict.is_interesting() && verdict.finding.is_none());
            }
            runs += made as u64;
        }
    }
    COUNT.with(Cell::get) - before
}

#[test]
fn a_run_that_shows_nothing_new_allocates_nothing() {
    assert_eq!(allocations(|| Producer::havoc(Budget::of_runs(u64::MAX))), 0);
}
