//! Trimming: a seed's first turn begins with the removal of what changes nothing.

use crate::coverage;
use crate::feedback::{Judge, Verdict};
use crate::minimize::trim::Trim;
use crate::mutate::Candidate;
use crate::target::{Executor, ExitKind, Observation, TargetError};

/// What must stay the same: the classified edge map and, under `-p`, all domain values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Fingerprint(u64, u64);

impl Fingerprint {
    fn of(run: &Observation<'_>, domains: bool) -> Option<Self> {
        let dsf = if domains { run.dsf.hash() } else { 0 };
        (run.exit == ExitKind::Ok).then(|| Self(coverage::path_hash(run.edges), dsf))
    }
}

/// Shortens `input` in place. Every run is judged too, and what deserves to be kept goes to
/// `found`; it says whether to go on.
pub fn trim(
    executor: &mut dyn Executor,
    judge: &mut Judge,
    input: &mut Vec<u8>,
    min_len: usize,
    mut found: impl FnMut(&Candidate, Verdict) -> bool,
) -> Result<(), TargetError> {
    let domains = judge.watches_domains();
    let Some(wanted) = Fingerprint::of(&executor.observe(input)?, domains) else { return Ok(()) };
    let mut trim = Trim::new(input.len()).keep(min_len);
    let mut candidate = Candidate::default();
    while trim.next(input, &mut candidate.bytes).is_some() {
        let run = executor.observe(&candidate.bytes)?;
        let same = Fingerprint::of(&run, domains) == Some(wanted);
        let verdict = judge.judge(&run);
        if same {
            std::mem::swap(input, &mut candidate.bytes);
            trim.accepted();
        } else {
            trim.rejected();
        }
        let worth = verdict.is_interesting() || verdict.finding.is_some();
        if worth && !found(&candidate, verdict) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fake::FakeExecutor;

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
        let mut crashes = 0;
        trim(&mut executor(), &mut judge, &mut input, 1, |_, verdict| {
            crashes += usize::from(verdict.finding.is_some());
            true
        })
        .unwrap();
        assert!(input.len() < 20, "{}", input.len());
        assert!(input.contains(&b'!') && input.iter().filter(|b| **b == b'x').count() == 2);
        assert!(crashes > 0);
    }
}
