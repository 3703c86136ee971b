//! Finds fields of the input that must equal a value calculated from it, see [`checksums`](crate::checksums).
//!
//! A field is found by runs: flipped bytes of the field change one operand; other bytes, or one more at the end,
//! change the other one. If each of these bytes changes a different byte of the operand by the same bit, the operand
//! is a copy, not a calculated value: the program may want the two to differ.

use std::collections::BTreeSet;
use std::ops::Range;

use super::ask::Ask;
use super::with_end;
use crate::checksums::{Field, Suspect};
use crate::log::{ComparisonLog, Operand};
use crate::results::{Occurrences, Place};

/// Number of bytes tested for an effect on the calculated operand: before the field, after it, and spread over the
/// input.
const BEFORE: usize = 12;
const AFTER: usize = 6;
const EVERYWHERE: usize = 6;

/// Tests which of the equal operands of a run are fields, each in every way in which it may be encoded.
pub(super) async fn learn(ask: &Ask, input: &[u8], log: ComparisonLog<'_>) {
    let suspects = ask.lent().repairs.suspects(log, input);
    for alike in suspects.chunk_by(|one, other| one.place == other.place) {
        let site = alike[0].place.site;
        let mut field = None;
        for suspect in alike {
            field = Examined { ask, input, suspect }.understand().await;
            if field.is_some() {
                break;
            }
        }
        let mut lent = ask.lent();
        match field {
            Some(field) => lent.repairs.add(site, field),
            None => lent.repairs.failed(site),
        }
    }
}

/// A suspect that is tested by runs of changed inputs.
struct Examined<'a> {
    ask: &'a Ask,
    input: &'a [u8],
    suspect: &'a Suspect,
}

impl Examined<'_> {
    /// Runs an input with its log; returns what `look` makes of both operands, if the run reaches them.
    async fn look<T>(
        &self,
        input: Vec<u8>,
        look: impl FnOnce([Operand<'_>; 2]) -> Option<T>,
    ) -> Option<T> {
        let ran = self.ask.logged(input, "repair").await;
        operands(ran.log.view(), self.suspect.place).and_then(look)
    }

    /// The field; None if the suspect is none.
    async fn understand(&self) -> Option<Field> {
        let Suspect { place, encoding, len, .. } = *self.suspect;
        for at in self.suspect.at.iter().copied() {
            let window = at..at + len;
            let Some(wanted) = encoding.change(&self.input[window.clone()]) else { continue };
            let mut changed = self.input.to_vec();
            changed[window.clone()].copy_from_slice(&wanted);
            // The run repairs known fields, but not this one.
            let side = self.look(changed, |seen| {
                let [a, b] = seen.map(|operand| encoding.write(operand).as_ref() == Some(&wanted));
                (a != b).then_some(usize::from(b))
            });
            let Some(side) = side.await else { continue };
            let Some(count) = self.movers(window, 1 - side).await else { continue };
            let fewest = self.ask.lent().repairs.fewest_movers(place.site);
            if count >= fewest || self.is_length(1 - side).await {
                return Some(Field { side, encoding, at });
            }
        }
        None
    }

    /// Number of tested bytes outside `window` that change the calculated operand. None if each of them changes a
    /// different byte of it by the same bit: then it is a copy, not calculated, and may have to differ from the
    /// field.
    async fn movers(&self, window: Range<usize>, side: usize) -> Option<usize> {
        let (input, encoding) = (self.input, self.suspect.encoding);
        let before = window.start.saturating_sub(BEFORE)..window.start;
        let after = window.end..(window.end + AFTER).min(input.len());
        let everywhere = (0..EVERYWHERE).map(|part| part * input.len() / EVERYWHERE);
        let mut places: Vec<usize> = before.chain(after).chain(everywhere).collect();
        places.sort_unstable();
        places.dedup();
        places.retain(|at| !window.contains(at));
        let usual = &input[window];
        let (mut count, mut copied) = (0, BTreeSet::new());
        for at in places {
            let mut changed = input.to_vec();
            changed[at] ^= 1;
            let moved = self.look(changed, |seen| {
                Some(Moved::of(encoding.write(seen[side]).as_deref(), usual))
            });
            match moved.await {
                None | Some(Moved::Not) => {}
                Some(Moved::OneByte(at)) => {
                    count += 1;
                    copied.insert(at);
                }
                Some(Moved::Otherwise) => count += 1,
            }
        }
        (count == 0 || copied.len() < count).then_some(count)
    }

    /// True if the calculated operand grows by one when the input does.
    async fn is_length(&self, side: usize) -> bool {
        let value = |seen: [Operand<'_>; 2]| match seen[side] {
            Operand::Value(value) => Some(value),
            Operand::Bytes(_) => None,
        };
        let usual = self.look(self.input.to_vec(), value).await;
        let longer = self.look(with_end(&self.ask.rules, self.input, b"x"), value).await;
        let is_next = |(usual, longer): (u64, u64)| longer == usual.wrapping_add(1);
        usual.zip(longer).is_some_and(is_next)
    }
}

/// Effect of flipping the lowest bit of an input byte on an operand.
enum Moved {
    Not,
    /// Only the lowest bit of this byte changes.
    OneByte(usize),
    Otherwise,
}

impl Moved {
    fn of(operand: Option<&[u8]>, usual: &[u8]) -> Self {
        let Some(operand) = operand.filter(|operand| operand.len() == usual.len()) else {
            return Self::Otherwise;
        };
        let pairs = operand.iter().zip(usual).enumerate();
        let mut others = pairs.filter(|(_, (now, usual))| now != usual);
        match (others.next(), others.next()) {
            (None, _) => Self::Not,
            (Some((at, (now, usual))), None) if now ^ usual == 1 => Self::OneByte(at),
            _ => Self::Otherwise,
        }
    }
}

/// Both operands of the comparison at `place`, if the run reaches it.
fn operands(log: ComparisonLog<'_>, place: Place) -> Option<[Operand<'_>; 2]> {
    let mut occurrences = Occurrences::default();
    let mut all = log.iter();
    let found = all.find(|comparison| occurrences.place(comparison) == place)?;
    Some([found.a, found.b])
}
