//! Runs without breakpoints and detours, for a program instrumented with them (`-Q`), to detect behaviour that they
//! cause.
//!
//! A program that blocks SIGTRAP by its own system call, or removes the handler, is killed by the next breakpoint. So
//! is one whose system call filter forbids the handler's return. A program that reads its own code sees breakpoints
//! and detours, and one that handles signals on a small stack has no room for another signal. So each crashing run is
//! repeated without them, and so is a sample of all others. Detours are given up first.

use std::time::Duration;

use super::notes::ModeNote;
use super::{ForkServer, NoRun};
use crate::RunEnd;
use crate::native::Native;
use crate::runs::{Breakpoints, Child, RunChannel};
use ffuzz_engine::coverage::{self, Classes};
use ffuzz_engine::executor::ExitKind;

/// Number of first runs that are all repeated: they are the seeds.
const FIRST: u64 = 16;
/// After these, one run in this many is repeated.
const EVERY: u64 = 256;

/// Interval for runs that time out, whose repetition takes as long again.
const EVERY_HANG: u64 = 16;

/// Minimum speed-up without breakpoints at which a timed-out run is examined: breakpoints cost some time, and so does
/// a busy machine.
const SLOWER: u32 = 4;

/// Maximum total cost of hitting each breakpoint of a program once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Number of times that both ends of a run must recur before the breakpoints count as the cause. A crash that occurs
/// only sometimes is a find: at a rate of 2 in 5 runs, it would pass for an effect of breakpoints once in 30 000
/// times, and once in 30 after a first proof.
const PROOF: u32 = 8;
const NEXT_PROOF: u32 = 3;

/// Number of forked runs with breakpoints, by their end.
#[derive(Debug, Default)]
pub(super) struct BareChecks {
    runs: u64,
    hangs: u64,
    /// True if a run ended differently without breakpoints: each later hang is verified.
    has_differed: bool,
    /// True if a hang differed: even with more time it did not end.
    has_hung: bool,
}

impl BareChecks {
    /// Returns true if a run ended differently because of breakpoints; the end without them is reported.
    pub(super) fn has_differed(&self) -> bool {
        self.has_differed
    }

    /// Returns true if a run must be repeated. `is_shown`: the program's output is shown; then only a bad end
    /// justifies a second run, whose effects outside the process occur twice.
    fn is_due(&mut self, exit: ExitKind, is_shown: bool) -> bool {
        match exit {
            ExitKind::Ok => {
                self.runs += 1;
                !is_shown && (self.runs <= FIRST || self.runs.is_multiple_of(EVERY))
            }
            ExitKind::Crash { .. } => true,
            ExitKind::Hang => {
                self.hangs += 1;
                self.has_differed || self.hangs <= FIRST || self.hangs.is_multiple_of(EVERY_HANG)
            }
            ExitKind::Cut | ExitKind::Oom | ExitKind::Lost => false,
        }
    }
}

const TRAPPED: ExitKind = ExitKind::Crash { signal: libc::SIGTRAP };
const FILTERED: ExitKind = ExitKind::Crash { signal: libc::SIGSYS };

/// Returns true if the program ended by itself.
fn is_own(end: ExitKind) -> bool {
    matches!(end, ExitKind::Ok | ExitKind::Crash { .. })
}

/// Explains why a run ended like this only with breakpoints.
fn cause(exit: ExitKind) -> &'static str {
    match exit {
        TRAPPED => {
            "the target blocks or takes SIGTRAP, the signal of breakpoints, by itself: what it does after that is not \
             seen; --qemu needs no breakpoints"
        }
        FILTERED => {
            "the target's system call filter (seccomp) forbids the return from breakpoints (rt_sigreturn): what it \
             does after that is not seen; --qemu needs no breakpoints"
        }
        _ => {
            "a run of the target ends differently without breakpoints: it may read its own code, or handle signals on \
             a small stack; --modules leaves files out, --qemu needs no breakpoints"
        }
    }
}

impl ForkServer {
    /// The end of a run without breakpoints, which ended with `exit` under them. The maps stay unchanged.
    pub(super) fn end_without_breakpoints(
        &mut self,
        input: &[u8],
        exit: ExitKind,
    ) -> Result<ExitKind, NoRun> {
        if self.setup.way().copied().is_none()
            || !self.bare.is_due(exit, self.setup.options.show_output)
        {
            return Ok(exit);
        }
        let mut end = self.run_aside(Breakpoints::None, input)?;
        if !is_own(end.exit) && end.exit != exit {
            end = self.run_aside(Breakpoints::None, input)?;
        }
        let bare = end.exit;
        // A run that nearly reaches the timeout without breakpoints is slow, not changed by them.
        let is_slow = exit == ExitKind::Hang && end.duration * SLOWER > self.settings.timeout;
        if bare == exit || !is_own(bare) || is_slow {
            return Ok(exit);
        }
        let is_hang = exit == ExitKind::Hang;
        if is_hang && !self.bare.has_hung && self.run_patiently(input)?.exit == bare {
            return Ok(bare);
        }
        if !self.always_differs(input, exit, bare)? {
            return Ok(if bare == ExitKind::Ok { exit } else { bare });
        }
        let is_trap = matches!(exit, TRAPPED | FILTERED);
        if !is_trap && self.leave_detours() && self.run_again(input)?.exit == bare {
            return Ok(bare);
        }
        self.bare.has_differed = true;
        self.bare.has_hung |= is_hang;
        if self.reported.insert(ModeNote::Breakpoints) {
            self.notes.push(cause(exit).into());
        }
        Ok(bare)
    }

    /// Gives up detours; false if there are none left.
    fn leave_detours(&mut self) -> bool {
        let Some(runs) = self.session.runs.as_mut().filter(|runs| !runs.has_left_detours()) else {
            return false;
        };
        runs.leave_detours();
        self.end_idle_child(Child::Lasting);
        let lost = match self.setup.way().copied().is_some_and(Native::counts_blocks) {
            true => "hit counts and edges, and the domains perf and slow count nothing",
            false => "hit counts and edges",
        };
        self.notes.push(format!(
            "a run of the target ends differently if its code is rewritten: from now on breakpoints alone show \
             blocks, without {lost}"
        ));
        true
    }

    /// Runs the input with all breakpoints; the maps are then those of this run.
    fn run_again(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let execs = self.execs;
        self.session.maps.clear();
        let run = self.run_once(input);
        self.execs = execs;
        run
    }

    /// Like [`Self::run_again`], with time for breakpoints, each of which takes some microseconds.
    fn run_patiently(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let limit = self.settings.timeout;
        self.settings.timeout = limit * SLOWER + PATIENCE;
        let end = self.run_again(input);
        self.settings.timeout = limit;
        end
    }

    /// Runs an input that most probably shows nothing new, with the breakpoints of unknown blocks only. If it hits
    /// one, or does not end well, it is repeated with all breakpoints, which costs much more.
    pub(super) fn run_sparingly(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let end = self.run_with(Breakpoints::Unseen, input)?;
        let shows = self.shows_edges() || self.beats_thresholds();
        if end.exit == ExitKind::Cut || (end.exit == ExitKind::Ok && !shows) {
            return Ok(end);
        }
        self.run_again(input)
    }

    /// Returns true if the last run has new edges or hit counts.
    fn shows_edges(&self) -> bool {
        let edges = self.session.maps.edges();
        let virgin = self.session.runs.as_ref().map(RunChannel::virgin);
        match virgin.filter(|virgin| virgin.len() == edges.len()) {
            Some(virgin) => coverage::is_new(edges, virgin, Classes::Counts),
            None => coverage::count(edges) > 0,
        }
    }

    /// Returns true if the last run has a value above a key's threshold.
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

    /// Returns true if repeated runs always end with `exit` with breakpoints, and with the other end without.
    fn always_differs(
        &mut self,
        input: &[u8],
        exit: ExitKind,
        bare: ExitKind,
    ) -> Result<bool, NoRun> {
        let times = if self.bare.has_differed { NEXT_PROOF } else { PROOF };
        for _ in 1..times {
            let ends = [(Breakpoints::None, bare), (Breakpoints::All, exit)];
            for (breakpoints, expected) in ends {
                let end = self.run_aside(breakpoints, input)?.exit;
                // A run ended from outside, as on a busy machine, proves nothing, unless that end is expected.
                if end != expected && (is_own(end) || expected == ExitKind::Hang) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Runs the input and leaves the maps unchanged, except for edges that only this run has.
    fn run_aside(&mut self, breakpoints: Breakpoints, input: &[u8]) -> Result<RunEnd, NoRun> {
        let (execs, keys) = (self.execs, self.session.maps.changed_keys());
        // Otherwise domains would add up the values of both runs.
        self.session.maps.restore_keys(&[]);
        let run = self.run_with(breakpoints, input);
        self.session.maps.restore_keys(&keys);
        self.execs = execs;
        run
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
    fn each_crash_is_repeated_and_a_sample_of_the_other_runs() {
        let mut checks = BareChecks::default();
        let mut due = |exit, is_shown| {
            (0..10 * EVERY).filter(|_| checks.is_due(exit, is_shown)).count() as u64
        };
        assert_eq!(due(ExitKind::Ok, false), FIRST + 10);
        assert_eq!(due(ExitKind::Ok, true), 0);
        assert_eq!(due(FILTERED, true), 10 * EVERY);
        assert_eq!(due(ExitKind::Hang, false), FIRST + 10 * EVERY / EVERY_HANG - 1);
        checks.has_differed = true;
        assert!((0..EVERY).all(|_| checks.is_due(ExitKind::Hang, false)));
    }
}
