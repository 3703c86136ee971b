//! Runs the edits of an input as usual mutants.

use std::time::Duration;

use super::super::batches::run_producer;
use super::super::produce::{Materials, Producer, Tools};
use super::super::{StageEnd, Turn};
use crate::corpus::{Origin, Step};
use crate::fuzzer::door::Host;
use crate::mutate::Candidate;
use crate::mutate::foreign::Made;
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Left, Purpose};
use ffuzz_comparisons::work::Edits;

/// Runs the edits that have not run yet, within the budget and the share of the stage. Returns true if the share was
/// used up first.
pub(super) fn run_edits<H: Host>(
    turn: &mut Turn<'_, H>,
    edits: &mut Edits,
    budget: Budget,
) -> Result<bool, H::Error> {
    let (first, before) = (edits.done, turn.door.fuzzer().target().spent().whole());
    let left = turn.door.left(Purpose::Comparisons);
    let mut stage = EditRuns { edits: &mut *edits, budget, first, left, is_paused: false };
    let end = run_producer(turn, &mut stage)?;
    let is_paused = stage.is_paused && end == StageEnd::Finished;
    let fuzzer = turn.door.fuzzer_mut();
    for edit in &edits.edits[first..edits.done] {
        fuzzer.blockers.note_attempt(edit.place.site);
    }
    edits.spent += fuzzer.target().spent().whole().saturating_sub(before);
    Ok(is_paused)
}

struct EditRuns<'a> {
    edits: &'a mut Edits,
    budget: Budget,
    /// Number of edits that ran in earlier slices.
    first: usize,
    /// Share of the stage left for this slice.
    left: Left,
    /// True if the share was used up before the last edit.
    is_paused: bool,
}

impl Producer for EditRuns<'_> {
    fn name(&self) -> &'static str {
        "comparisons"
    }

    fn next(&mut self, from: &Materials<'_>, _: &mut Tools<'_>, out: &mut Candidate) -> Made {
        let Edits { input, edits, done, spent } = &mut *self.edits;
        if self.budget.is_used(*done as u64, *spent + from.spent) {
            return Made::Over;
        }
        let Some(edit) = edits.get(*done) else { return Made::Over };
        let effort = Effort { runs: (*done - self.first) as u64, time: from.spent };
        self.is_paused = self.left.is_used_by(effort);
        if self.is_paused {
            return Made::Over;
        }
        *done += 1;
        edit.apply(input, &mut out.bytes);
        if !(from.min_len..=from.max_len).contains(&out.bytes.len()) {
            return Made::Nothing;
        }
        let pos = u32::try_from(edit.at).unwrap_or(u32::MAX);
        let step = Step::At { op: edit.op, pos, value: None, big_endian: false };
        out.origin = Origin { parent: from.seed, other: None, step, by: 0 };
        Made::Input
    }

    fn progress(&self, _: Duration) -> (u64, u64) {
        (self.edits.done as u64, self.edits.edits.len() as u64)
    }
}
