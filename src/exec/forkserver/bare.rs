//! Runs without breakpoints, of a program that has them for its instrumentation (`-Q`): what a breakpoint
//! did is not the program's doing.
//!
//! A program that blocks SIGTRAP by a system call of its own, or takes its handler away, is killed by the next
//! breakpoint; one that reads its own code finds the breakpoints in it. So a run that SIGTRAP has ended is
//! repeated without them, and so is a sample of all others.

use super::notes::ModeNote;
use super::{ForkServer, NoRun};
use crate::RunEnd;
use crate::runs::Breakpoints;
use ffuzz_engine::coverage;
use ffuzz_engine::executor::ExitKind;

/// The first runs are all repeated: they are the seeds.
const FIRST: u64 = 16;
/// From then on one in this many.
const EVERY: u64 = 256;

/// How often runs with breakpoints were made by fork.
#[derive(Debug, Default)]
pub(super) struct BareChecks {
    runs: u64,
}

impl BareChecks {
    fn is_due(&mut self) -> bool {
        self.runs += 1;
        self.runs <= FIRST || self.runs.is_multiple_of(EVERY)
    }
}

const TRAPPED: ExitKind = ExitKind::Crash { signal: libc::SIGTRAP };

impl ForkServer {
    /// How the run of this input ends, that has ended in this way with breakpoints. The maps stay as they are.
    pub(super) fn end_without_breakpoints(
        &mut self,
        input: &[u8],
        exit: ExitKind,
    ) -> Result<ExitKind, NoRun> {
        let ended = matches!(exit, ExitKind::Ok | ExitKind::Crash { .. });
        if self.setup.native().is_none() || !ended {
            return Ok(exit);
        }
        // What it prints is not to be seen twice.
        let is_due = !self.setup.options.show_output && self.bare.is_due();
        if !is_due && exit != TRAPPED {
            return Ok(exit);
        }
        let bare = self.run_bare(input)?;
        if bare == exit || !matches!(bare, ExitKind::Ok | ExitKind::Crash { .. }) {
            return Ok(exit);
        }
        // What differs from run to run proves nothing.
        if exit != TRAPPED && self.run_bare(input)? != bare {
            return Ok(exit);
        }
        if self.reported.insert(ModeNote::Breakpoints) {
            let text = if exit == TRAPPED {
                "the target blocks or takes SIGTRAP, the signal of breakpoints, by itself: what it does after that \
                 is not seen"
            } else {
                "a run of the target ends differently without breakpoints: it may read its own code; --modules \
                 leaves files out"
            };
            self.notes.push(text.into());
        }
        Ok(bare)
    }

    /// A run that most probably shows nothing: with the breakpoints of unknown blocks alone. If it meets one, or ends
    /// in another way than well, it is made again with all, which costs much more.
    pub(super) fn run_sparingly(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let end = self.run_with(Breakpoints::Unseen, input)?;
        let shows = coverage::count(self.session.maps.edges()) > 0 || self.beats_thresholds();
        if end.exit == ExitKind::Cut || (end.exit == ExitKind::Ok && !shows) {
            return Ok(end);
        }
        self.session.maps.clear();
        let execs = self.execs;
        let end = self.run_once(input);
        self.execs = execs;
        end
    }

    /// The last run has a key that the search wants to see.
    fn beats_thresholds(&self) -> bool {
        let Some(runs) = self.session.runs.as_ref().filter(|_| self.settings.watch_domains) else {
            return false;
        };
        let thresholds = runs.thresholds();
        let mut beats = false;
        self.session.maps.dsf().for_each_changed(|domain, key, value| {
            let threshold = thresholds[key as usize];
            beats |= domain.reducer.apply(threshold, value) != threshold;
        });
        beats
    }

    fn run_bare(&mut self, input: &[u8]) -> Result<ExitKind, NoRun> {
        let (execs, keys) = (self.execs, self.session.maps.changed_keys());
        // Domains would add the values of both runs.
        self.session.maps.restore_keys(&[]);
        let run = self.run_with(Breakpoints::None, input);
        self.session.maps.restore_keys(&keys);
        self.execs = execs;
        Ok(run?.exit)
    }

    fn run_with(&mut self, breakpoints: Breakpoints, input: &[u8]) -> Result<RunEnd, NoRun> {
        self.set_breakpoints(breakpoints);
        let run = self.run_once(input);
        self.set_breakpoints(Breakpoints::All);
        run
    }

    fn set_breakpoints(&mut self, breakpoints: Breakpoints) {
        self.session.runs.iter_mut().for_each(|runs| runs.set_breakpoints(breakpoints));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_runs_and_a_sample_of_the_others_are_repeated() {
        let mut checks = BareChecks::default();
        let due = (0..10 * EVERY).filter(|_| checks.is_due()).count() as u64;
        assert_eq!(due, FIRST + 10);
    }
}
