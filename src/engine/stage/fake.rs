//! A search without files, for tests of stages.

use crate::executor::RunError;
use crate::fake::FakeExecutor;
use crate::fuzzer::admit::{Crash, Stored};
use crate::fuzzer::door::Door;
use crate::fuzzer::{AdmissionOptions, Fuzzer, Plan};
use crate::mutate::Candidate;
use crate::mutate::dictionary::Dictionary;
use crate::mutate::foreign::NoMutators;
use crate::options::{MutationOptions, Wanted};
use crate::runner::Runner;
use crate::schedule::ScheduleOptions;

/// With the inputs that crash, each kind once, or hang.
pub(super) struct Search(pub(super) Fuzzer<NoMutators>, pub(super) Vec<Vec<u8>>);

impl Search {
    pub(super) fn of(executor: FakeExecutor) -> Self {
        let plan = Plan {
            mutation: MutationOptions::default(),
            foreign_only: false,
            schedule: ScheduleOptions { fixed_seed: true, ..Default::default() },
            watch_domains: false,
            wanted: Wanted::default(),
            admission: AdmissionOptions::default(),
            rng_seed: 1,
        };
        let runner = Runner::new(Box::new(executor));
        Self(Fuzzer::new(runner, NoMutators, Dictionary::default(), plan), vec![])
    }
}

impl Door for Search {
    type Mutators = NoMutators;
    type Error = RunError;

    fn fuzzer(&self) -> &Fuzzer<NoMutators> {
        &self.0
    }

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<NoMutators> {
        &mut self.0
    }

    fn crashed(&mut self, candidate: &Candidate, crash: Crash) -> Result<Option<Stored>, RunError> {
        self.1.extend(crash.unique.then(|| candidate.bytes.clone()));
        Ok(None)
    }

    fn hung(&mut self, candidate: &Candidate) -> Result<Option<Stored>, RunError> {
        self.1.push(candidate.bytes.clone());
        Ok(None)
    }
}
