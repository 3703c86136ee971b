//! Restores equalities that a change breaks. A program often checks that two fields are equal, or that one equals a
//! value calculated from others, before the comparison to solve: if one field changes, the other must follow.
//!
//! The equality is located where the paths of the two runs diverge. The changed operand replaces the copy of the
//! other one in the input, for up to eight equalities in sequence. This applies to edits, to the probe and to the
//! attempts of solvers. Bytes that follow others are not independent bytes for the solvers.

use std::iter;
use std::ops::Range;

use super::Base;
use super::ask::{Ask, Ran};
use crate::input_to_state::{Edit, Logged, edits};
use crate::log::{Comparison, ComparisonLog};
use crate::results::{Occurrences, Place};

/// Maximum number of copies tried for one equality, and of equalities restored in sequence.
const MOST_COPIES: usize = 16;
const MOST_EQUALITIES: usize = 8;

/// An input that reaches its comparison again.
pub(super) struct Restored {
    pub(super) ran: Ran,
    /// Bytes that had to follow the edit.
    pub(super) followers: Vec<Range<usize>>,
}

/// What a restored input must keep.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    /// The edited ranges.
    pub(super) edited: &'a [Range<usize>],
    /// Minimum length of a copy that is replaced, bytes.
    pub(super) least: usize,
    /// How the input was made.
    pub(super) op: &'static str,
}

/// The comparison at which two runs diverge.
struct Parting {
    place: Place,
    /// Number of comparisons that the runs have in common.
    common: usize,
}

/// Where the run of a changed input diverges from that of the input. None unless the operands there were equal in the
/// run of the input and both may come from the input.
fn parting(before: ComparisonLog<'_>, after: ComparisonLog<'_>) -> Option<Parting> {
    let (mut occurrences, mut last, mut common) = (Occurrences::default(), None, 0);
    for (old, new) in before.iter().zip(after.iter()) {
        if old.site != new.site {
            break;
        }
        let place = occurrences.place(&new);
        common += 1;
        if old.result() != new.result() {
            last = is_undone(&old, &new).then_some(place);
        }
    }
    last.map(|place| Parting { place, common })
}

fn is_undone(old: &Comparison<'_>, new: &Comparison<'_>) -> bool {
    old.a == old.b && new.constant == [false; 2]
}

pub(super) fn comes_to(log: ComparisonLog<'_>, place: Place) -> bool {
    let of_key = log.iter().filter(|comparison| comparison.key() == place.key);
    of_key.count() > place.occurrence as usize
}

/// Whether the run of a changed input diverges at a comparison that can be restored.
pub(super) fn may_restore(before: ComparisonLog<'_>, after: ComparisonLog<'_>) -> bool {
    parting(before, after).is_some()
}

/// Makes a changed input reach `place` again, as the input of `base` does. For each broken equality, replaces the
/// copy of one operand with the other operand until the path continues.
pub(super) async fn restore(
    ask: &Ask,
    base: &Base,
    place: Place,
    changed: &Ran,
    kept: Kept<'_>,
) -> Option<Restored> {
    let (mut bytes, mut log, mut followers) =
        (changed.bytes.clone(), changed.log.clone(), Vec::new());
    for _ in 0..MOST_EQUALITIES {
        let Parting { place: undone, common } = parting(base.log.view(), log.view())?;
        let colored = base.colored_like(&bytes);
        let Ran { bytes: colored, log: colored_log, .. } = match colored == bytes {
            true => Ran { bytes: colored, log: log.clone(), ends_well: true },
            false => ask.logged(colored, kept.op).await,
        };
        let run = Logged {
            input: &bytes,
            log: log.view(),
            colored: &colored,
            colored_log: colored_log.view(),
            messages: ask.rules.messages,
        };
        let is_free = |edit: &Edit| {
            let end = edit.at + edit.removed;
            let is_apart = |range: &Range<usize>| edit.at >= range.end || end <= range.start;
            edit.removed >= kept.least && kept.edited.iter().chain(&followers).all(is_apart)
        };
        let mut copies: Vec<Edit> =
            edits(run, |at, _| at == undone).into_iter().filter(is_free).collect();
        copies.sort_by_key(|copy| copy.removed != copy.inserted.len());
        let mut next = None;
        for copy in copies.into_iter().take(MOST_COPIES) {
            let ran = ask.logged(copy.applied(&bytes), kept.op).await;
            let is_there = comes_to(ran.log.view(), place);
            let goes_on = parting(base.log.view(), ran.log.view());
            // A change of length would move the ranges to keep.
            let keeps_places = ran.bytes.len() == bytes.len();
            if is_there || keeps_places && goes_on.is_some_and(|now| now.common > common) {
                followers.push(copy.at..copy.at + copy.inserted.len());
                next = Some(ran);
                if is_there {
                    return next.map(|ran| Restored { ran, followers });
                }
                break;
            }
        }
        Ran { bytes, log, .. } = next?;
    }
    None
}

/// Ranges in which two inputs of equal length differ; the whole of `after` if the lengths differ.
pub(super) fn changed_bytes(before: &[u8], after: &[u8]) -> Vec<Range<usize>> {
    if before.len() != after.len() {
        return iter::once(0..after.len()).collect();
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..after.len()).filter(|at| before[*at] != after[*at]) {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::OwnLog;

    #[test]
    fn runs_part_at_the_last_equality_before_their_paths_do() {
        let before = OwnLog::of_equalities(&[(1, 7, 7), (2, 5, 6), (1, 8, 8), (3, 1, 2)]);
        let at = |entries: &[(u32, u64, u64)]| {
            let parting = parting(before.view(), OwnLog::of_equalities(entries).view());
            parting.map(|parting| (parting.place.site, parting.place.occurrence, parting.common))
        };
        assert_eq!(at(&[(1, 7, 7), (2, 5, 6), (1, 8, 9)]), Some((1, 1, 3)));
        assert_eq!(at(&[(1, 6, 7)]), Some((1, 0, 1)));
        // Both are broken, and the path changes at the second one.
        assert_eq!(at(&[(1, 6, 7), (2, 5, 6), (1, 8, 9), (4, 0, 0)]), Some((1, 1, 3)));
        // An inequality, and nothing at all.
        assert_eq!(at(&[(1, 7, 7), (2, 6, 6)]), None);
        assert_eq!(at(&[(1, 7, 7), (2, 5, 6), (1, 8, 8), (3, 1, 2)]), None);
    }

    #[test]
    fn bytes_that_changed_are_ranges() {
        assert_eq!(changed_bytes(b"abcdef", b"aXYdeZ"), [1..3, 5..6]);
        assert_eq!(changed_bytes(b"abc", b"abcd"), vec![0..4; 1]);
        assert!(changed_bytes(b"abc", b"abc").is_empty());
    }
}
