//! Files and messages that a campaign exchanges with custom mutators.

use std::fs;
use std::path::Path;

use super::outside::Outside;
use crate::engine::corpus::names::DESCRIPTION_MAX;
use crate::engine::corpus::{SeedId, Step};
use crate::engine::fuzzer::Fuzzer;
use crate::mutate::Candidate;
use crate::mutators::{Hook, Mutators};

/// Text of the mutator that made a candidate, for the file name.
pub(super) fn description(mutators: &mut Mutators, candidate: &Candidate) -> Option<String> {
    let Step::Custom { mutator, .. } = candidate.origin.step else { return None };
    mutators.describe(mutator.into(), DESCRIPTION_MAX)
}

impl Outside {
    /// Announces a new queue file to the mutators, and returns its content, which one of them may have changed.
    pub(super) fn announce_file(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        path: &Path,
        parent: Option<SeedId>,
        data: Vec<u8>,
    ) -> Vec<u8> {
        if !fuzzer.mutators.has(Hook::QueueNewEntry) {
            return data;
        }
        let parent = parent.map(|id| self.output.seed_path(&fuzzer.corpus[id].name));
        if !fuzzer.mutators.queue_new_entry(path, parent.as_deref()) {
            return data;
        }
        match fs::read(path) {
            Ok(mut changed) if !changed.is_empty() => {
                changed.truncate(fuzzer.mutation.max_len);
                changed
            }
            _ => {
                let path = path.display();
                self.warn(format!("a mutator's queue_new_entry left {path} empty or unreadable"));
                data
            }
        }
    }

    /// Returns true if the mutators want the seed to be fuzzed now.
    pub(super) fn mutators_want(&self, fuzzer: &mut Fuzzer<Mutators>, id: SeedId) -> bool {
        if !fuzzer.mutators.has(Hook::QueueGet) {
            return true;
        }
        let path = self.output.seed_path(&fuzzer.corpus[id].name);
        fuzzer.mutators.queue_get(&path)
    }
}
