//! Trimming: a seed's first turn begins with the removal of what changes nothing.

use crate::engine::coverage;
use crate::engine::executor::{Executor, Observation, RunError};
use crate::engine::feedback::{Judge, Verdict};
use crate::engine::minimize::trim::Trim;
use crate::engine::mutate::Candidate;
use crate::exec::Hooked;
use crate::mutators::Made;

/// Steps of a foreign mutator's trimming: one that never comes to its end would starve all seeds.
const MOST_FOREIGN_STEPS: u32 = 1 << 16;

/// What must stay the same: the classified edge map and, under `-p`, all domain values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Fingerprint(u64, u64);

impl Fingerprint {
    fn of(run: &Observation<'_>, judge: &Judge) -> Option<Self> {
        let dsf = if judge.watches_domains() { run.dsf.hash() } else { 0 };
        judge.accepts(run.exit).then(|| Self(coverage::path_hash(run.edges), dsf))
    }
}

/// Judges proposals. Every run is looked at for finds, too: they go to `found`. After each `go_on` says
/// whether there is time for another.
pub struct Trimmer<'a, F, G> {
    pub executor: &'a mut Hooked,
    pub judge: &'a mut Judge,
    /// Path of the seed, as its calibration saw it.
    pub path_hash: u64,
    pub min_len: usize,
    pub found: F,
    pub go_on: G,
}

impl<F: FnMut(&Candidate, Verdict), G: FnMut() -> bool> Trimmer<'_, F, G> {
    /// Shortens `input` in place, block by block.
    pub fn trim(&mut self, input: &mut Vec<u8>) -> Result<(), RunError> {
        let Some(wanted) = self.wanted(input)? else { return Ok(()) };
        let mut trim = Trim::new(input.len()).keep(self.min_len);
        let mut candidate = Candidate::default();
        while trim.next(input, &mut candidate.bytes).is_some() {
            if self.try_out(&candidate, wanted)? {
                std::mem::swap(input, &mut candidate.bytes);
                trim.accepted();
            } else {
                trim.rejected();
            }
            if !(self.go_on)() {
                break;
            }
        }
        Ok(())
    }

    /// Lets a foreign mutator propose what `input` is replaced by.
    pub fn trim_by(&mut self, mutator: usize, input: &mut Vec<u8>) -> Result<(), RunError> {
        let Some(wanted) = self.wanted(input)? else { return Ok(()) };
        let Some(mut planned) = self.executor.mutators.init_trim(mutator, input) else {
            return Ok(());
        };
        let mut candidate = Candidate::default();
        let mut step = 0;
        for _ in 0..MOST_FOREIGN_STEPS {
            if step >= planned || !(self.go_on)() {
                return Ok(());
            }
            let made = self.executor.mutators.trim(mutator, &mut candidate.bytes);
            let mut same = false;
            if made == Made::Input && candidate.bytes.len() >= self.min_len {
                same = self.try_out(&candidate, wanted)?;
            }
            let lengths = (input.len(), candidate.bytes.len());
            if same {
                std::mem::swap(input, &mut candidate.bytes);
            }
            let next = self.executor.mutators.post_trim(mutator, same);
            self.executor.mutators.tell_trim(mutator, (step, planned), lengths, same);
            step = next.filter(|_| made != Made::Over).unwrap_or(planned);
            planned = planned.max(1);
        }
        let text = format!("trimming did not end after {MOST_FOREIGN_STEPS} steps: stopped");
        self.executor.mutators.complain(mutator, text);
        Ok(())
    }

    /// What a proposal has to show. Without domains calibration has seen it.
    fn wanted(&mut self, input: &[u8]) -> Result<Option<Fingerprint>, RunError> {
        if !self.judge.watches_domains() {
            return Ok(Some(Fingerprint(self.path_hash, 0)));
        }
        Ok(Fingerprint::of(&self.executor.observe(input)?, self.judge))
    }

    /// Whether the run is as wanted.
    fn try_out(&mut self, candidate: &Candidate, wanted: Fingerprint) -> Result<bool, RunError> {
        let run = self.executor.observe(&candidate.bytes)?;
        let same = Fingerprint::of(&run, self.judge) == Some(wanted);
        let verdict = self.judge.judge(&run);
        if verdict.is_interesting() || verdict.finding.is_some() {
            (self.found)(candidate, verdict);
        }
        Ok(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::executor::ExitKind;
    use crate::engine::fake::FakeExecutor;
    use crate::mutators::fake::{Calls, FakeMutator};
    use crate::mutators::{Hook, Mutators};

    /// Counts the letter `x`, crashes without any `!`.
    fn executor() -> FakeExecutor {
        FakeExecutor::new(64, vec![], |input, edges, _| {
            edges[0] = u8::try_from(input.iter().filter(|b| **b == b'x').count()).unwrap();
            edges[1] = 1;
            match input.contains(&b'!') {
                true => ExitKind::Ok,
                false => ExitKind::Crash { signal: 6 },
            }
        })
    }

    #[test]
    fn what_changes_nothing_is_removed_and_finds_are_reported() {
        let mut input = b"aaaaaaaaaaaaaaaaaaaaaaaa!xxaaaaaaaaaaaaaaaaaaaaaa".to_vec();
        let mut judge = Judge::new(64, &[], false);
        let mut hooked = Hooked::new(Box::new(executor()), Mutators::default());
        let path_hash = coverage::path_hash(hooked.observe(&input).unwrap().edges);
        let mut crashes = 0;
        let found = |_: &Candidate, verdict: Verdict| {
            crashes += usize::from(verdict.finding.is_some());
        };
        let go_on = || true;
        let (executor, judge) = (&mut hooked, &mut judge);
        Trimmer { executor, judge, path_hash, min_len: 1, found, go_on }.trim(&mut input).unwrap();
        assert!(input.len() < 20, "{}", input.len());
        assert!(input.contains(&b'!') && input.iter().filter(|b| **b == b'x').count() == 2);
        assert!(crashes > 0);
    }

    /// Trims "abc!xx" by proposals of a mutator with three steps; returns what is left and the calls.
    fn trimmed_by(proposals: [&'static str; 3], end: Made) -> (Vec<u8>, Vec<String>) {
        let calls = Calls::default();
        let mut next = proposals.into_iter();
        let mut mutator = FakeMutator::new(&[Hook::Trim], &calls, move |_, out| {
            let Some(proposal) = next.next() else { return Ok(end) };
            out.extend_from_slice(proposal.as_bytes());
            Ok(Made::Input)
        });
        mutator.trim = (0, 4);
        let mutators = Mutators::new(vec![Box::new(mutator)], 1);
        let mut hooked = Hooked::new(Box::new(executor()), mutators);
        let mut input = b"abc!xx".to_vec();
        let path_hash = coverage::path_hash(hooked.observe(&input).unwrap().edges);
        let (executor, judge) = (&mut hooked, &mut Judge::new(64, &[], false));
        let found = |_: &Candidate, _: Verdict| {};
        let go_on = || true;
        let mut trimmer = Trimmer { executor, judge, path_hash, min_len: 2, found, go_on };
        trimmer.trim_by(0, &mut input).unwrap();
        (input, calls.take())
    }

    #[test]
    fn a_foreign_mutator_trims_in_its_own_steps() {
        // Less of x is another behaviour; the last proposal is below the smallest length.
        let (left, calls) = trimmed_by(["ab!xx", "!x", ""], Made::Nothing);
        assert_eq!(left, b"ab!xx");
        let step = |taken: bool| ["trim".to_owned(), format!("post_trim {taken}")];
        let steps = [step(true), step(false), step(false), step(false)].concat();
        assert_eq!(calls, [vec!["init_trim abc!xx".to_owned()], steps].concat());
        // Longer than before is allowed, and the end may come early.
        let (left, calls) = trimmed_by(["abcdefgh!xx", "!xx", "x"], Made::Over);
        assert_eq!((left, calls.len()), (b"!xx".to_vec(), 1 + 4 * 2));
    }
}
