//! A search without files, for tests of stages.

use super::{Shared, Turn};
use crate::corpus::SeedId;
use crate::executor::RunError;
use crate::fake::FakeExecutor;
use crate::fuzzer::admit::Stored;
use crate::fuzzer::door::{Discovery, Door, Host};
use crate::fuzzer::{AdmissionOptions, Fuzzer, Plan};
use crate::mutate::Candidate;
use crate::mutate::dictionary::Dictionary;
use crate::mutate::foreign::NoMutators;
use crate::options::{MutationOptions, Wanted};
use crate::runner::Runner;
use crate::schedule::ScheduleOptions;

/// The fuzzer, the inputs that crash (each kind once) or hang, and the shared state of the stages.
pub(super) struct Search(pub(super) Fuzzer<NoMutators>, pub(super) Vec<Vec<u8>>, pub(super) Shared);

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
        let fuzzer = Fuzzer::new(runner, NoMutators, Dictionary::default(), plan);
        Self(fuzzer, vec![], Shared::default())
    }
}

impl Search {
    pub(super) fn door(&mut self) -> Door<'_, Self> {
        Door(self)
    }

    /// Does `work` as a part of the seed's turn.
    pub(super) fn turn<T>(&mut self, id: SeedId, work: impl FnOnce(&mut Turn<'_, Self>) -> T) -> T {
        let mut shared = std::mem::take(&mut self.2);
        let result = work(&mut Turn { door: Door(self), id, shared: &mut shared });
        self.2 = shared;
        result
    }
}

impl Host for Search {
    type Mutators = NoMutators;
    type Error = RunError;

    fn fuzzer(&self) -> &Fuzzer<NoMutators> {
        &self.0
    }

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<NoMutators> {
        &mut self.0
    }

    fn store(
        &mut self,
        candidate: &Candidate,
        as_what: Discovery<'_>,
    ) -> Result<Option<Stored>, RunError> {
        let is_kept = matches!(as_what, Discovery::Crash(crash) if crash.unique)
            || matches!(as_what, Discovery::Hang);
        self.1.extend(is_kept.then(|| candidate.bytes.clone()));
        Ok(None)
    }
}
