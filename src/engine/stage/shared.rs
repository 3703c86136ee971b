//! State shared by the stages. The comment on each field names its writer.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batches::Batches;
use super::{Kept, Tactic};
use crate::corpus::{Alignment, BySeed, Corpus, Length, SeedId};
use crate::fuzzer::Fuzzer;
use crate::mutate::foreign::ForeignMutators;
use crate::schedule::bandit::Bandit;
use ffuzz_comparisons::checksums::Repairs;
use ffuzz_comparisons::results::Results;

/// Key of the shared state in [`Stages::save`](super::Stages::save).
pub(super) const NAME: &str = "inputs";

/// Each field has one writer, besides trimming, which updates positions in the trimmed seed.
pub struct Shared {
    /// Bandit of the competing stages: [`Stages::run_turn`](super::Stages::run_turn).
    pub(super) tactics: Bandit,
    /// True if foreign mutators have this turn instead of havoc: `custom.rs`.
    pub(super) is_custom_turn: bool,
    /// State shared by the batches of all stages: `batches.rs`.
    pub(super) batches: Batches,
    /// Lengths and offsets in seeds: `lengths.rs`.
    pub(super) lengths: BySeed<Box<[Length]>>,
    /// Written by every run with a log.
    pub(super) logs: Logs,
}

/// Knowledge from runs with a log.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Logs {
    /// Results of comparisons.
    pub(super) results: Results,
    /// Fields of inputs that must equal a value that the target calculates.
    pub(super) repairs: Repairs,
    /// Whether a seed has such fields, in which case its mutants are repaired: `repair.rs`.
    pub(super) fields: BySeed<Checked>,
    /// Bytes that decide open comparisons: `comparisons/probe.rs`.
    #[serde(skip)]
    deciding: BySeed<Deciding>,
    /// Last site of runs that crashed with a log but not without one.
    #[serde(skip)]
    pub(super) unrepeated: HashSet<Option<u32>>,
    /// True if the logs are from another build than the target (`-c`).
    #[serde(skip)]
    is_foreign: bool,
}

/// Result of checking a seed for the fields known at that time.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Checked {
    /// Number of fields that were known.
    pub(super) known: u32,
    pub(super) has_fields: bool,
}

/// Bytes of an input that decide open comparisons, found by a probe.
#[derive(Debug)]
pub(super) struct Deciding {
    input: Box<[u8]>,
    /// Positions, ascending.
    at: Box<[u32]>,
}

/// The saved fields.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Parts {
    lengths: BySeed<Box<[Length]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<Value>,
    /// Only of seeds that have not changed since the probe.
    deciding: BySeed<Box<[u32]>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            tactics: Bandit::new(Tactic::COUNT),
            is_custom_turn: false,
            batches: Batches::default(),
            lengths: BySeed::new(),
            logs: Logs::default(),
        }
    }
}

impl Shared {
    /// Serializes the state. Omits logs of another build, which may change before the next process.
    pub(super) fn save<M: ForeignMutators>(&self, fuzzer: &Fuzzer<M>) -> Option<Value> {
        let is_own = !fuzzer.has_logger();
        let logs = is_own.then(|| serde_json::to_value(&self.logs).ok()).flatten();
        let known = self.logs.deciding.iter();
        let known = known.filter(|(id, of)| is_own && fuzzer.corpus[**id].data == of.input);
        let deciding = known.map(|(id, of)| (*id, of.at.clone())).collect();
        serde_json::to_value(Parts { lengths: self.lengths.clone(), logs, deciding }).ok()
    }

    /// See [`Stage::load`](super::Stage::load).
    pub(super) fn load(&mut self, saved: Value, kept: Kept<'_>) -> bool {
        let Ok(Parts { mut lengths, logs, mut deciding }) = serde_json::from_value(saved) else {
            return false;
        };
        let logs = logs.map_or(Ok(Logs::default()), serde_json::from_value);
        let Some(mut logs) = logs.ok().filter(|logs| logs.repairs.is_possible()) else {
            return false;
        };
        kept.retain(&mut lengths);
        kept.retain(&mut logs.fields);
        kept.retain(&mut deciding);
        self.lengths = lengths;
        if !self.logs.is_foreign {
            for (id, at) in deciding {
                logs.note_deciding(id, &kept.corpus[id].data, at);
            }
            self.logs = logs;
        }
        true
    }

    /// Records all lengths and offsets of a seed.
    pub fn note_lengths(&mut self, id: SeedId, lengths: Box<[Length]>) {
        self.lengths.insert(id, lengths);
    }

    /// Lengths and offsets in a seed, see [`Shared::lengths_in`].
    pub(super) fn lengths_of(&self, corpus: &Corpus, id: SeedId) -> Vec<Length> {
        self.lengths_in(corpus, id, &corpus[id].data)
    }

    /// Lengths and offsets in `input`, which is the seed or a mutant of it. Taken from the seed, or from its closest
    /// ancestor with known ones, as far as they still exist in the input.
    pub(super) fn lengths_in(&self, corpus: &Corpus, id: SeedId, input: &[u8]) -> Vec<Length> {
        let known = lineage(corpus, id).find_map(|id| Some((id, self.lengths.get(&id)?)));
        let Some((of, known)) = known else { return Vec::new() };
        let before = &*corpus[of].data;
        if before == input {
            return known.iter().filter(|length| length.fits(input.len())).copied().collect();
        }
        let alignment = Alignment::of(before, input);
        let moved = |length: &Length| {
            let last = alignment.moved(length.at + length.width - 1)?;
            let (at, from) = (alignment.moved(length.at)?, alignment.moved(length.from)?);
            (at + length.width == last + 1).then_some(Length { at, from, ..*length })
        };
        let is_there =
            |length: &Length| length.fits(input.len()) && length.end(input) <= input.len();
        known.iter().filter_map(moved).filter(is_there).collect()
    }
}

impl Logs {
    /// Records the deciding positions that a probe has found in a seed with the bytes `input`.
    pub(super) fn note_deciding(&mut self, id: SeedId, input: &[u8], at: Box<[u32]>) {
        self.deciding.insert(id, Deciding { input: input.into(), at });
    }

    /// Known deciding positions in `input`, which was made from the seed. Taken from the seed or its closest probed
    /// ancestor, as far as the bytes still exist in the input.
    pub(super) fn deciding(&self, corpus: &Corpus, id: SeedId, input: &[u8]) -> Box<[u32]> {
        let known = lineage(corpus, id).find_map(|id| self.deciding.get(&id));
        let Some(Deciding { input: before, at }) = known else { return Box::default() };
        let alignment = Alignment::of(before, input);
        let places = at.iter().filter_map(|at| alignment.moved(*at as usize));
        places.filter(|at| *at < input.len()).map(|at| at as u32).collect()
    }

    /// Clears all knowledge if it comes from another build than the one that logs now.
    pub(super) fn check_origin(&mut self, is_foreign: bool) {
        if is_foreign != self.is_foreign {
            *self = Self { is_foreign, ..Self::default() };
        }
    }

    /// Whether mutants of a seed are repaired: its last check found fields, or that of its closest checked ancestor
    /// did.
    pub(super) fn have_fields(&self, corpus: &Corpus, id: SeedId) -> bool {
        let checked = || lineage(corpus, id).find_map(|id| self.fields.get(&id));
        !self.repairs.is_empty() && checked().is_some_and(|checked| checked.has_fields)
    }
}

/// A seed followed by its ancestors.
fn lineage(corpus: &Corpus, id: SeedId) -> impl Iterator<Item = SeedId> {
    std::iter::successors(Some(id), |id| corpus[*id].parent)
}

#[cfg(test)]
mod tests {
    use super::super::fake::Search;
    use super::*;
    use crate::corpus::Origin;
    use crate::executor::ExitKind;
    use crate::fake::FakeExecutor;
    use crate::mutate::Candidate;
    use ffuzz_comparisons::checksums::{Encoding, Field};

    fn search() -> Search {
        let mut search = Search::of(FakeExecutor::new(8, vec![], |input, edges, _| {
            edges[usize::from(input[0] & 7)] = 1;
            ExitKind::Ok
        }));
        for byte in 0..3 {
            let candidate = Candidate { bytes: vec![byte; 8], origin: Origin::injected(0) };
            search.door().try_out(&candidate).unwrap();
        }
        search
    }

    #[test]
    fn what_is_known_of_seeds_that_are_as_they_were_is_taken_up() {
        let (first, mut shared) = (search(), Shared::default());
        let length = Length { at: 1, width: 2, is_big: true, from: 3 };
        let ids = [0, 1, 2].map(SeedId);
        for id in ids {
            shared.note_lengths(id, [length].into());
            shared.logs.fields.insert(id, Checked { known: 1, has_fields: true });
            let input =
                if id.0 == 0 { b"of another"[..].into() } else { &*first.0.corpus[id].data };
            shared.logs.note_deciding(id, input, [4, 5].into());
        }
        shared.logs.repairs.add(7, Field { side: 0, encoding: Encoding::Big(2), at: 5 });
        let saved = shared.save(&first.0).unwrap();
        let (next, mut restored) = (search(), Shared::default());
        let kept = [ids[0], ids[2]].into();
        assert!(restored.load(saved, Kept { corpus: &next.0.corpus, ids: &kept }));
        let corpus = &next.0.corpus;
        assert_eq!(ids.map(|id| restored.lengths_of(corpus, id).len()), [1, 0, 1]);
        assert_eq!(ids.map(|id| restored.logs.have_fields(corpus, id)), [true, false, true]);
        let deciding = ids.map(|id| restored.logs.deciding(corpus, id, &corpus[id].data).len());
        assert_eq!(deciding, [0, 0, 2], "the bytes of the first seed were others");
        assert_eq!(restored.logs.repairs.known(), 1);
        // Logs of another build are those of the campaign that began with it.
        let mut foreign = Shared::default();
        foreign.logs.check_origin(true);
        let saved = shared.save(&first.0).unwrap();
        assert!(
            foreign.load(saved, Kept { corpus, ids: &kept }) && foreign.logs.repairs.is_empty()
        );
        assert!(!restored.load(Value::from("x"), Kept { corpus, ids: &kept }));
    }
}
