//! Where the campaign meets foreign mutators: the files that they learn of, and their messages.

use std::fs;
use std::path::Path;

use super::Campaign;
use crate::engine::corpus::names::DESCRIPTION_MAX;
use crate::engine::corpus::{SeedId, Step};
use crate::engine::mutate::Candidate;
use crate::mutators::Hook;

impl Campaign {
    /// The words of the mutator that made a candidate, for its file name.
    pub(super) fn description(&mut self, candidate: &Candidate) -> Option<String> {
        let Step::Custom { mutator, .. } = candidate.origin.step else { return None };
        self.fuzzer.mutators.describe(mutator.into(), DESCRIPTION_MAX)
    }

    /// Tells of a new file in the queue, and returns its content: a mutator may have changed it.
    pub(super) fn tell_mutators(
        &mut self,
        path: &Path,
        parent: Option<SeedId>,
        data: Vec<u8>,
    ) -> Vec<u8> {
        if !self.fuzzer.mutators.has(Hook::QueueNewEntry) {
            return data;
        }
        let parent = parent.map(|id| self.output.seed_path(&self.fuzzer.corpus[id].name));
        if !self.fuzzer.mutators.queue_new_entry(path, parent.as_deref()) {
            return data;
        }
        match fs::read(path) {
            Ok(mut changed) if !changed.is_empty() => {
                changed.truncate(self.options.mutation.max_len);
                changed
            }
            _ => {
                let path = path.display();
                self.warn(format!("a mutator's queue_new_entry left {path} empty or unreadable"));
                data
            }
        }
    }

    /// Whether the mutators want the seed to be fuzzed now.
    pub(super) fn mutators_want(&mut self, id: SeedId) -> bool {
        if !self.fuzzer.mutators.has(Hook::QueueGet) {
            return true;
        }
        let path = self.output.seed_path(&self.fuzzer.corpus[id].name);
        self.fuzzer.mutators.queue_get(&path)
    }
}
