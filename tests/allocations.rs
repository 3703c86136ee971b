//! A run that shows nothing new allocates nothing: neither the mutation nor the executor nor the judge.

#![expect(unsafe_code, reason = "an allocator that counts")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ffuzz::config::options::{MutationOptions, Wanted};
use ffuzz::engine::corpus::{Length, Origin, SeedId};
use ffuzz::engine::domain::{Domain, Reducer};
use ffuzz::engine::executor::{ExitKind, RunError};
use ffuzz::engine::fake::FakeExecutor;
use ffuzz::engine::fuzzer::admit::Stored;
use ffuzz::engine::fuzzer::door::{Discovery, Door, Host};
use ffuzz::engine::fuzzer::{AdmissionOptions, Fuzzer, Plan};
use ffuzz::engine::runner::Runner;
use ffuzz::engine::schedule::{Budget, ScheduleOptions};
use ffuzz::engine::stage::{Stacks, Stages};
use ffuzz::mutate::Candidate;
use ffuzz::mutate::dictionary::{Dictionary, Token};
use ffuzz::mutate::foreign::NoMutators;

/// Runs until buffers have their size.
const WARM_UP: u64 = 600_000;

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

struct Search(Fuzzer<NoMutators>);

impl Host for Search {
    type Mutators = NoMutators;
    type Error = RunError;

    fn fuzzer(&self) -> &Fuzzer<NoMutators> {
        &self.0
    }

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<NoMutators> {
        &mut self.0
    }

    fn store(&mut self, _: &Candidate, _: Discovery<'_>) -> Result<Option<Stored>, RunError> {
        panic!("nothing crashes")
    }
}

/// A search with four seeds of a target with a domain that shows nothing new any more.
fn search() -> Search {
    let domain = Domain { name: "d".into(), start: 0, size: 64, reducer: Reducer::Max, initial: 0 };
    let mut shown = 0;
    let executor = FakeExecutor::new(4096, vec![domain], move |input, edges, values| {
        edges[..100].fill(1);
        values[..10].fill(1);
        // Four inputs of one letter have an edge each.
        let letters = b"abcd".iter().position(|letter| input == [*letter; 512]);
        if let Some(place) = letters.filter(|_| shown < 100) {
            shown += 1;
            edges[200 + place] = 1;
        }
        ExitKind::Ok
    });
    let mut dictionary = Dictionary::default();
    dictionary.add_user(Token::new(b"word"));
    let plan = Plan {
        mutation: MutationOptions { max_len: 1 << 12, ..MutationOptions::default() },
        foreign_only: false,
        schedule: ScheduleOptions { guided: true, fixed_seed: true, ..Default::default() },
        watch_domains: true,
        wanted: Wanted::default(),
        admission: AdmissionOptions::default(),
        rng_seed: 1,
    };
    let mut search =
        Search(Fuzzer::new(Runner::new(Box::new(executor)), NoMutators, dictionary, plan));
    for letter in b"abcd" {
        let (bytes, origin) = (vec![*letter; 512], Origin::injected(0));
        Door(&mut search).try_out(&Candidate { bytes, origin }).unwrap();
    }
    assert_eq!(search.0.corpus.len(), 4);
    search
}

/// Allocations of a stage of this number of runs.
fn allocations((search, stages): &mut (Search, Stages<Search>), runs: u64) -> u64 {
    let (before, execs) = (COUNT.with(Cell::get), search.0.target().execs());
    let mut stacks = Stacks::new(Budget::of_runs(runs));
    stages.run_producer(search, SeedId(0), &mut stacks).unwrap();
    let after = COUNT.with(Cell::get);
    assert_eq!(search.0.target().execs() - execs, runs);
    after - before
}

#[test]
fn a_run_that_shows_nothing_new_allocates_nothing() {
    let mut search = (search(), Stages::new());
    // Parts of the seed that havoc copies, moves and deletes as a whole.
    let lengths = [8, 200].map(|at| Length { at, width: 1, is_big: true, from: at + 1 });
    search.1.parts().1.note_lengths(SeedId(0), lengths.into());
    allocations(&mut search, WARM_UP);
    let few = allocations(&mut search, 1000);
    assert!(few < 20, "{few} at the start of a stage");
    assert_eq!(allocations(&mut search, 100_000), few);
    assert_eq!(search.0.0.corpus.len(), 4);
}
