//! Repair of checksums and of other fields calculated from the input (see [`checksums`]): corrects the fields of
//! inputs before they run.
//!
//! [`checksums`]: ffuzz_comparisons::checksums

use super::Turn;
use super::comparisons::are_solved;
use super::comparisons::runs::{logged, try_out};
use super::shared::{Checked, Logs};
use crate::executor::ExitKind;
use crate::fuzzer::door::{Host, Part};
use crate::mutate::Candidate;
use ffuzz_comparisons::log::ComparisonLog;

/// Maximum runs of one input; each corrects the fields that the previous run showed to be wrong. Checksums may be
/// nested.
const MOST_ROUNDS: usize = 4;
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
    let input = turn.door.fuzzer().corpus[id].data.to_vec();
    let ran = logged(turn, input, "repair")?;
    let Logs { fields, repairs, .. } = &mut turn.shared.logs;
    fields.insert(id, Checked { known, has_fields: repairs.concern(ran.log.view()) });
    if *turn.door.fuzzer().corpus[id].data == *ran.bytes {
        return Ok(());
    }
    try_out(turn, ran.bytes, "repair").map(drop)
}

/// Runs an input with its log, corrects wrong fields, and runs it again. Afterwards `input` is the input of the last
/// run, and the last call of `look` was for that run.
pub(super) fn run_logged<H: Host>(
    turn: &mut Turn<'_, H>,
    input: &mut Vec<u8>,
    mut look: impl FnMut(ComparisonLog<'_>),
) -> Result<ExitKind, H::Error> {
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
        let (exit, ()) = run?;
        if !is_changed || exit != ExitKind::Ok {
            return Ok(exit);
        }
        std::mem::swap(input, &mut repaired);
    }
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
            run_logged(turn, &mut candidate.bytes, |_| {})?;
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
    use ffuzz_comparisons::checksums::{Encoding, Field};
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
