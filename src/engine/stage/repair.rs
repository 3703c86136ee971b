//! Repair of checksums and of other fields calculated from the input (see [`repair`](ffuzz_comparisons::checksums)): finds
//! the comparisons that check such a field, and corrects the fields of inputs before they run.
//!
//! A field is found by runs: flipped bytes of the field change one operand; other bytes, or one more at the end,
//! change the other one. If each of these bytes changes a different byte of the operand by the same bit, the operand
//! is a copy, not a calculated value: the program may want the two to differ.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use super::Turn;
use super::comparisons::ask::Ask;
use super::comparisons::{add_at_end, are_solved, logged, origin, try_out};
use super::shared::{Checked, Logs};
use crate::executor::ExitKind;
use crate::fuzzer::door::{Host, Part};
use crate::mutate::Candidate;
use ffuzz_comparisons::checksums::{Field, Suspect};
use ffuzz_comparisons::log::{ComparisonLog, Operand};
use ffuzz_comparisons::results::{Occurrences, Place};

/// Maximum runs of one input; each corrects the fields that the previous run showed to be wrong. Checksums may be
/// nested.
const MOST_ROUNDS: usize = 4;
/// Number of bytes tested for an effect on the calculated operand: before the field, after it, and spread over the
/// input.
const BEFORE: usize = 12;
const AFTER: usize = 6;
const EVERYWHERE: usize = 6;
/// Candidates repaired together: switching between runs with and without the log needs a new process.
const TOGETHER: usize = 256;

/// Arms of a bandit: whether to repair the mutants of a seed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tactic {
    Leave,
    Repair,
}

/// Runs a seed with corrected fields and records whether it has any: once, and again when more fields are known. The
/// repaired copy may pass a check that the seed fails.
pub(super) fn repair_once<H: Host>(turn: &mut Turn<'_, H>) -> Result<(), H::Error> {
    let Logs { fields, repairs, .. } = &turn.shared.logs;
    let known = fields.get(&turn.id).map_or(0, |checked| checked.known);
    match known == repairs.known() || !are_solved(turn.door.fuzzer()) {
        true => Ok(()),
        false => turn.timed(Part::Comparisons, repair_seed),
    }
}

fn repair_seed<H: Host>(turn: &mut Turn<'_, H>) -> Result<(), H::Error> {
    let (id, known) = (turn.id, turn.shared.logs.repairs.known());
    let mut input = turn.door.fuzzer().corpus[id].data.to_vec();
    let log = logged(turn, origin(id, "repair"), &mut input, |log| log.own_copy())?;
    let Logs { fields, repairs, .. } = &mut turn.shared.logs;
    fields.insert(id, Checked { known, has_fields: repairs.concern(log.view()) });
    if *turn.door.fuzzer().corpus[id].data == *input {
        return Ok(());
    }
    try_out(turn, Candidate { bytes: input, origin: origin(id, "repair") })
}

/// Runs an input with its log, corrects wrong fields, and runs it again. Afterwards `input` is the input of the last
/// run, and the last call of `look` was for that run.
pub(super) fn run_logged<H: Host, T>(
    turn: &mut Turn<'_, H>,
    input: &mut Vec<u8>,
    mut look: impl FnMut(ComparisonLog<'_>) -> T,
) -> Result<(ExitKind, T), H::Error> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        let repairs = std::mem::take(&mut turn.shared.logs.repairs);
        let (mut repaired, mut is_changed) = (Vec::new(), false);
        let run = turn.door.logged(input, |log| {
            if !repairs.is_empty() && rounds < MOST_ROUNDS {
                repaired.clone_from(input);
                is_changed = repairs.repair(log, &mut repaired);
            }
            look(log)
        });
        turn.shared.logs.repairs = repairs;
        let (exit, seen) = run?;
        if !is_changed || exit != ExitKind::Ok {
            return Ok((exit, seen));
        }
        std::mem::swap(input, &mut repaired);
    }
}

/// Possible fields for the equal operands of a run, grouped by comparison. A group has one entry for each way in
/// which an operand may be encoded in the input.
pub(super) type Suspects = Vec<Vec<Suspect>>;

pub(super) fn suspects<H>(turn: &Turn<'_, H>, input: &[u8], log: ComparisonLog<'_>) -> Suspects {
    let suspects = turn.shared.logs.repairs.suspects(log, input);
    let alike = suspects.chunk_by(|one, other| one.place == other.place);
    alike.map(<[Suspect]>::to_vec).collect()
}

/// Tests which suspects are fields. A field changes with its bytes in the input, while the other operand changes with
/// other bytes.
pub(super) async fn learn<H: Host>(ask: &Ask<H>, input: &[u8], suspects: Suspects) {
    let asking = Asking { ask, input };
    for alike in suspects {
        let site = alike[0].place.site;
        let mut field = None;
        for suspect in alike {
            field = asking.understand(&suspect).await;
            if field.is_some() {
                break;
            }
        }
        let note = ask.order(move |turn| {
            let repairs = &mut turn.shared.logs.repairs;
            match field {
                Some(field) => repairs.add(site, field),
                None => repairs.failed(site),
            }
            Ok(())
        });
        note.await;
    }
}

/// Tests suspects by runs of changed inputs.
struct Asking<'a, H: Host> {
    ask: &'a Ask<H>,
    input: &'a [u8],
}

impl<H: Host> Asking<'_, H> {
    /// Runs an input with its log; returns what `look` sees.
    async fn look<T: 'static>(
        &self,
        mut input: Vec<u8>,
        look: impl FnMut(ComparisonLog<'_>) -> Option<T> + 'static,
    ) -> Option<T> {
        let run = self.ask.order(move |turn| run_logged(turn, &mut input, look));
        let (_, seen) = run.await;
        seen
    }

    /// The field of a suspect; None if it is not a field.
    async fn understand(&self, suspect: &Suspect) -> Option<Field> {
        let (place, encoding) = (suspect.place, suspect.encoding);
        for at in &suspect.at {
            let window = *at..at + suspect.len;
            let Some(wanted) = encoding.change(&self.input[window.clone()]) else { continue };
            let mut changed = self.input.to_vec();
            changed[window.clone()].copy_from_slice(&wanted);
            // The run repairs known fields, but not this one.
            let sides = self.look(changed, move |log| {
                let seen = operands(log, place)?;
                let [a, b] = seen.map(|operand| encoding.write(operand).as_ref() == Some(&wanted));
                (a != b).then_some(u64::from(b))
            });
            let Some(side) = sides.await.map(|side| side as usize) else { continue };
            let Some(count) = self.movers(suspect, (&window, 1 - side)).await else { continue };
            let fewest =
                self.ask.order(move |turn| Ok(turn.shared.logs.repairs.fewest_movers(place.site)));
            if count >= fewest.await || self.is_length(suspect, 1 - side).await {
                return Some(Field { side, encoding, at: *at });
            }
        }
        None
    }

    /// Number of tested bytes outside `window` that change the calculated operand. None if each of them changes a
    /// different byte of it by the same bit: then it is a copy, not calculated, and may have to differ from the
    /// field.
    async fn movers(
        &self,
        suspect: &Suspect,
        (window, side): (&Range<usize>, usize),
    ) -> Option<usize> {
        let (input, place, encoding) = (self.input, suspect.place, suspect.encoding);
        let before = window.start.saturating_sub(BEFORE)..window.start;
        let after = window.end..(window.end + AFTER).min(input.len());
        let everywhere = (0..EVERYWHERE).map(|part| part * input.len() / EVERYWHERE);
        let mut places: Vec<usize> = before.chain(after).chain(everywhere).collect();
        places.sort_unstable();
        places.dedup();
        places.retain(|at| !window.contains(at));
        let usual: Rc<[u8]> = input[window.clone()].into();
        let (mut count, mut copied) = (0, BTreeSet::new());
        for at in places {
            let mut changed = input.to_vec();
            changed[at] ^= 1;
            let usual = usual.clone();
            let moved = self.look(changed, move |log| {
                let seen = operands(log, place)?;
                Some(Moved::of(encoding.write(seen[side]).as_deref(), &usual))
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
    async fn is_length(&self, suspect: &Suspect, side: usize) -> bool {
        let place = suspect.place;
        let value = move |log: ComparisonLog<'_>| match operands(log, place)?[side] {
            Operand::Value(value) => Some(value),
            Operand::Bytes(_) => None,
        };
        let usual = self.look(self.input.to_vec(), value).await;
        let mut longer = self.input.to_vec();
        let longer = self.ask.order(move |turn| {
            add_at_end(turn.door.fuzzer().mutation.messages, &mut longer, b"x");
            run_logged(turn, &mut longer, value)
        });
        let (_, longer) = longer.await;
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
fn operands<'a>(log: ComparisonLog<'a>, place: Place) -> Option<[Operand<'a>; 2]> {
    let mut occurrences = Occurrences::default();
    let mut all = log.iter();
    let found = all.find(|comparison| occurrences.place(comparison) == place)?;
    Some([found.a, found.b])
}

/// Mutants of one seed that wait for repair.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    candidates: Vec<Candidate>,
}

impl Waiting {
    pub(super) fn add(&mut self, batch: &[Candidate]) {
        self.candidates.extend_from_slice(batch);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.candidates.len() >= TOGETHER
    }

    /// Takes the candidates and returns those with wrong fields, corrected.
    pub(super) fn repaired<H: Host>(
        &mut self,
        turn: &mut Turn<'_, H>,
    ) -> Result<Vec<Candidate>, H::Error> {
        let mut repaired = Vec::new();
        for mut candidate in self.candidates.drain(..) {
            if turn.door.between_batches()? {
                break;
            }
            let before = candidate.bytes.clone();
            run_logged(turn, &mut candidate.bytes, |_| ())?;
            if candidate.bytes != before {
                repaired.push(candidate);
            }
        }
        Ok(repaired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Origin, SeedId};
    use crate::fake::FakeExecutor;
    use crate::stage::fake::Search;
    use ffuzz_comparisons::checksums::Encoding;
    use ffuzz_comparisons::log::{ComparisonKind, OwnLog};

    const SITE: u32 = 7;

    fn sum(input: &[u8]) -> u64 {
        input[..2].iter().map(|byte| u64::from(*byte)).sum()
    }

    /// Two letters and the sum of them, which is compared unless the first one is a small letter.
    fn search() -> Search {
        let executor = FakeExecutor::new(8, vec![], |input, edges, _| {
            edges[usize::from(input[0] & 1)] = 1;
            let is_right = u64::from(input[2]) == sum(input);
            edges[usize::from(input[0] & 1) + 2] = u8::from(is_right);
            ExitKind::Ok
        });
        Search::of(executor.logging(|input, log: &mut OwnLog| {
            if !input[0].is_ascii_lowercase() {
                let (a, b) = (input[2].into(), sum(input));
                log.add_integers(SITE, ComparisonKind::Equal, 1, a, b);
            }
        }))
    }

    fn add(search: &mut Search, bytes: &[u8]) -> SeedId {
        let candidate = Candidate { bytes: bytes.to_vec(), origin: Origin::injected(0) };
        assert!(search.door().run_batch(&[candidate], None).unwrap().found);
        SeedId(search.0.corpus.next_id().0 - 1)
    }

    /// Number of runs for the repair of a seed.
    fn runs(search: &mut Search, id: SeedId) -> u64 {
        let before = search.0.target().execs();
        search.turn(id, repair_once).unwrap();
        search.0.target().execs() - before
    }

    /// Most seeds enter the corpus for coverage before a checksum.
    #[test]
    fn a_seed_with_a_wrong_field_gets_a_copy_with_the_right_one() {
        let mut search = search();
        let id = add(&mut search, b"AB0");
        assert_eq!(runs(&mut search, id), 0, "no field is known");
        let field = Field { side: 0, encoding: Encoding::Big(1), at: 2 };
        search.2.logs.repairs.add(SITE, field);
        assert_ne!(runs(&mut search, id), 0);
        let copy = SeedId(id.0 + 1);
        assert_eq!(&*search.0.corpus[copy].data, b"AB\x83");
        assert_eq!(search.0.corpus[copy].parent, Some(id));
        assert!(search.2.logs.fields[&id].has_fields && runs(&mut search, id) == 0);
        // A correct input is not changed, even when more fields are known.
        assert_ne!(runs(&mut search, copy), 0);
        search.2.logs.repairs.add(SITE + 1, field);
        assert!(runs(&mut search, copy) > 0 && runs(&mut search, copy) == 0);
        assert_eq!(search.0.corpus.next_id(), SeedId(copy.0 + 1));
    }

    #[test]
    fn a_seed_that_does_not_come_to_a_field_has_none() {
        let mut search = search();
        let id = add(&mut search, b"aB0");
        let field = Field { side: 0, encoding: Encoding::Big(1), at: 2 };
        search.2.logs.repairs.add(SITE, field);
        search.2.logs.fields.insert(id, Checked { known: 0, has_fields: true });
        assert!(runs(&mut search, id) > 0 && runs(&mut search, id) == 0);
        assert!(!search.2.logs.fields[&id].has_fields);
        assert_eq!(search.0.corpus.next_id(), SeedId(id.0 + 1));
    }
}
