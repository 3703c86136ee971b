//! Runs by snapshot: how far they are believed, and when it is better to fork.
//!
//! A child that is put back after each run takes batches as a loop does (`runtime/snapshot.c`). It only ever
//! says which runs are dull: one that it shows is run again by fork before anybody sees it, and so is
//! whatever it cannot put back, or that ends it. Dull runs are checked now and then.

use std::collections::BTreeMap;

use super::batches::{End, nonsense};
use super::{ForkServer, NoRun, Pass};
use crate::config::options::RunMode;
use crate::target::delivery::Delivery;
use crate::target::launcher::{InputFrom, Setup, describe_end};
use crate::target::{ExitKind, Outcome, SnapshotRuns};

/// Runs between two checks: with fork twenty times dearer they cost a hundredth of the time.
const CHECK_EVERY: u64 = 2_000;
/// The first runs that are observed are all checked: they are the seeds.
const FIRST_CHECKS: u64 = 16;
/// So many differences are no accident.
const MOST_DIFFERENCES: u32 = 3;
/// A run that needs a fork costs that and a new snapshot: above a tenth of all it is better to fork at once.
/// Runs are counted in a window of this size; a few are free.
const WINDOW: u32 = 2_000;
const FREE_FORKS: u32 = 10;

/// `enum ffuzz_why` of `runtime/channel.h`, from its first value on that concerns all runs.
const WHY_EVERY_RUN: u32 = 32;
const WHY: [&str; 7] = [
    "",
    "it starts processes or threads",
    "it makes system calls that cannot be undone",
    "it changes memory mappings from before the run",
    "it maps or replaces more than can be noted",
    "it leaves signals pending, or handles SIGSYS",
    "its input cannot be put in place",
];
const WHY_ALL: [&str; 10] = [
    "userfaultfd is refused: Linux 6.7 or newer and leave to use it are needed",
    "the kernel has no PAGEMAP_SCAN: Linux 6.7 or newer is needed",
    "seccomp is refused: a container may forbid it",
    "it has threads before main, or before __AFL_INIT()",
    "it shares memory with others before its run",
    "file descriptors 180 to 196 are taken, or beyond the limit (ulimit -n)",
    "a timer runs before main, or before __AFL_INIT()",
    "there is no memory for the copy of its own: allow it more (-m)",
    "its restartable sequences cannot be switched off",
    "too many domain keys are touched before main",
];

/// What is known of the rung with this target.
#[derive(Debug, Default)]
pub(super) struct Policy {
    runs: SnapshotRuns,
    checks: u64,
    next_check: u64,
    /// Runs lately, and those of them that needed a fork.
    recent: (u32, u32),
    left: bool,
}

impl Policy {
    fn note_runs(&mut self, done: usize, pages: u32) {
        self.runs.runs += done as u64;
        self.runs.pages += u64::from(pages);
        self.recent.0 += done as u32;
        if self.recent.0 > WINDOW {
            self.recent = (self.recent.0 / 2, self.recent.1 / 2);
        }
    }

    fn note_fork(&mut self, why: Option<String>) {
        self.runs.by_fork += 1;
        self.recent.1 += 1;
        if why.is_some() {
            self.runs.why = why;
        }
    }

    fn forks_too_often(&self) -> bool {
        let (runs, forks) = self.recent;
        forks > FREE_FORKS + runs / 10
    }
}

/// All that is compared of a run.
#[derive(Eq, PartialEq)]
struct Seen {
    exit: ExitKind,
    edges: Vec<u8>,
    keys: BTreeMap<u32, u32>,
}

impl Seen {
    /// In words, what another run of the same input has shown in its place.
    fn difference(&self, fork: &Self) -> String {
        if self.exit != fork.exit {
            return format!("it ended as {:?}, by fork as {:?}", self.exit, fork.exit);
        }
        let pairs = || self.edges.iter().zip(&fork.edges).enumerate();
        if let Some((edge, (here, there))) = pairs().find(|(_, (here, there))| here != there) {
            let count = pairs().filter(|(_, (here, there))| here != there).count();
            return format!("{count} edges, the first {edge}: {here} times, by fork {there}");
        }
        let keys = self.keys.keys().chain(fork.keys.keys());
        let values = |key: &u32| (self.keys.get(key).copied(), fork.keys.get(key).copied());
        let other = keys.map(|key| (key, values(key))).find(|(_, (here, there))| here != there);
        let said = |value: Option<u32>| value.map_or("nothing".into(), |value| value.to_string());
        other.map_or_else(String::new, |(key, (here, there))| {
            format!("domain key {key}: {}, by fork {}", said(here), said(there))
        })
    }
}

fn words(why: u32, detail: u32) -> String {
    let known = match why.checked_sub(WHY_EVERY_RUN) {
        None => WHY.get(why as usize),
        Some(place) => WHY_ALL.get(place as usize),
    };
    let known = known.copied().unwrap_or("for a reason that is unknown");
    if detail == 0 { known.into() } else { format!("{known} ({detail})") }
}

/// Whether children of this target may be put back at all.
fn is_wanted(setup: &Setup) -> bool {
    let options = &setup.options;
    options.snapshots
        && options.run_mode >= RunMode::Snapshot
        && !setup.persistent()
        && setup.input != InputFrom::Inherit
}

impl ForkServer {
    /// Prepares the rung for a session that has just begun.
    pub(super) fn offer_snapshots(&mut self) {
        let can = self.session.maps.channel().is_some_and(|channel| channel.can_snapshot);
        let is_left = self.snapshot.as_ref().is_some_and(|policy| policy.left);
        if is_left || !is_wanted(&self.setup) {
            return;
        }
        if !can {
            self.note_incapable();
            return;
        }
        let shared = matches!(self.session.delivery, Delivery::Shared { .. });
        let file = match &self.setup.input {
            InputFrom::File(path) if !shared => std::path::absolute(path).ok(),
            _ => None,
        };
        let file = file.as_ref().map(|path| path.as_os_str().as_encoded_bytes());
        let stdin = !shared && self.setup.input == InputFrom::Stdin;
        let codes: Vec<bool> = (0..=u8::MAX).map(|code| self.is_crash_code(code)).collect();
        let Some(runs) = &mut self.session.runs else { return };
        runs.tell_crash_codes(|code| codes[usize::from(code)]);
        if runs.tell_input(file, stdin) {
            self.snapshot.get_or_insert_default();
        }
    }

    /// Whoever asked for just this rung is told.
    fn note_incapable(&mut self) {
        if self.setup.options.run_mode == RunMode::Snapshot {
            self.notes.push(
                "runs go by fork, and not by snapshots: the target's runtime has none: build it with this ffuzz-cc"
                    .into(),
            );
        }
    }

    /// True while runs are made by snapshots.
    pub(super) fn puts_back(&self) -> bool {
        self.session.runs.is_some() && self.snapshot.as_ref().is_some_and(|policy| !policy.left)
    }

    pub(super) fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        self.snapshot.as_ref().map(|policy| policy.runs.clone())
    }

    /// Runs one input and shows it.
    pub(super) fn observe_by_snapshot(&mut self, input: &[u8]) -> Result<Outcome, NoRun> {
        let (pass, is_by_fork) = self.put_back(std::iter::once(input), true)?;
        let Some(outcome) = pass.shown else { return Err(nonsense()) };
        let is_first = self.snapshot.as_ref().is_some_and(|policy| policy.checks < FIRST_CHECKS);
        if is_first && !is_by_fork { self.check(input, outcome) } else { Ok(outcome) }
    }

    /// Runs inputs until one has to be judged; that one is run again by fork.
    pub(super) fn run_by_snapshot<'a>(
        &mut self,
        mut inputs: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Pass, NoRun> {
        let due = self.is_check_due();
        let (pass, is_by_fork) = match due {
            true => self.put_back(inputs.clone().take(1), true)?,
            false => self.put_back(inputs.clone(), self.every_run)?,
        };
        let Some(outcome) = pass.shown else { return Ok(pass) };
        let Some(input) = inputs.nth(pass.done - 1) else { return Ok(pass) };
        if is_by_fork || (self.every_run && !due) {
            return Ok(pass);
        }
        Ok(Pass { shown: Some(self.check(input, outcome)?), ..pass })
    }

    fn is_check_due(&mut self) -> bool {
        let Some(policy) = &mut self.snapshot else { return false };
        let due = policy.runs.runs >= policy.next_check;
        if due {
            policy.next_check = policy.runs.runs + CHECK_EVERY;
        }
        due
    }

    /// Also says whether the run that is shown was made by fork.
    fn put_back<'a>(
        &mut self,
        mut inputs: impl Iterator<Item = &'a [u8]> + Clone,
        each: bool,
    ) -> Result<(Pass, bool), NoRun> {
        let (end, elapsed) = self.order_lasting(inputs.clone(), each)?;
        let runs = self.session.runs.as_mut();
        let pages = runs.map_or(0, |runs| runs.take_pages());
        let Some(policy) = &mut self.snapshot else { return Err(nonsense()) };
        policy.note_runs(end.done(), pages);
        let (finished, status) = match end {
            End::Stopped { .. } => return Ok((self.conclude(end, elapsed), false)),
            End::Ended { finished, status } => (finished, Some(status)),
            End::Hung { finished } => (finished, None),
        };
        self.execs += finished as u64;
        self.spent.add(elapsed, None);
        if let Some(status) = status {
            self.note_end_of_child(status);
        }
        self.session.maps.collect(false);
        let Some(input) = inputs.nth(finished) else { return Err(nonsense()) };
        let outcome = self.run_by_channel(input)?;
        Ok((Pass { done: finished + 1, shown: Some(outcome) }, true))
    }

    fn note_end_of_child(&mut self, status: i32) {
        let why = self.session.runs.as_mut().and_then(|runs| runs.take_why());
        let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
        let ended_by_itself = libc::WIFEXITED(status) && !self.is_crash_code(code);
        let Some(policy) = &mut self.snapshot else { return };
        let text = match why {
            Some((why, detail)) => Some(words(why, detail)),
            None if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS => {
                Some(words(1, 0))
            }
            None => None,
        };
        policy.note_fork(text);
        match why {
            Some((why, detail)) if why >= WHY_EVERY_RUN => {
                self.leave_snapshots(&words(why, detail));
            }
            None if ended_by_itself => {
                self.leave_snapshots(
                    "its main is not started by the runtime: link it with ffuzz-cc",
                );
            }
            _ if policy.forks_too_often() => {
                let SnapshotRuns { why, .. } = &policy.runs;
                let last = why.clone().unwrap_or_else(|| describe_end(Some(status)));
                let (runs, forks) = policy.recent;
                let text = format!(
                    "{forks} of its last {} runs had to be made so: {last}",
                    runs.max(forks)
                );
                self.leave_snapshots(&text);
            }
            _ => {}
        }
    }

    fn leave_snapshots(&mut self, why: &str) {
        let Some(policy) = &mut self.snapshot else { return };
        policy.left = true;
        policy.runs.why = Some(why.into());
        self.notes.push(format!("runs go by fork, and not by snapshots: {why}"));
        self.drop_lasting_child();
    }

    fn seen(&self, outcome: Outcome) -> Seen {
        let run = self.observation(0, outcome);
        let mut keys = BTreeMap::new();
        run.dsf.for_each_changed(|_, key, value| {
            keys.insert(key, value);
        });
        Seen { exit: run.exit, edges: run.edges.to_vec(), keys }
    }

    /// Makes the run that is shown once more, by fork. Its maps are then the fork's.
    fn check(&mut self, input: &[u8], outcome: Outcome) -> Result<Outcome, NoRun> {
        if outcome.exit == ExitKind::Hang {
            return Ok(outcome);
        }
        let execs = self.execs;
        let snapshot = self.seen(outcome);
        let mut exit = self.run_by_channel(input)?.exit;
        let fork = self.seen(Outcome { exit, ..outcome });
        if snapshot != fork && exit != ExitKind::Hang {
            // A target that does not agree with itself proves nothing.
            exit = self.run_by_channel(input)?.exit;
            if self.seen(Outcome { exit, ..outcome }) == fork {
                self.note_difference(&snapshot.difference(&fork));
            }
        }
        self.execs = execs;
        if let Some(policy) = &mut self.snapshot {
            policy.checks += 1;
        }
        Ok(Outcome { exit, ..outcome })
    }

    fn note_difference(&mut self, what: &str) {
        let Some(policy) = &mut self.snapshot else { return };
        policy.runs.differences += 1;
        if policy.runs.differences >= MOST_DIFFERENCES {
            self.leave_snapshots(&format!("{MOST_DIFFERENCES} runs had other results: {what}"));
        } else {
            self.drop_lasting_child();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_runs_by_fork_is_too_much() {
        let mut policy = Policy::default();
        for _ in 0..FREE_FORKS {
            policy.note_fork(None);
            assert!(!policy.forks_too_often());
        }
        policy.note_fork(Some("it starts processes or threads".into()));
        assert!(policy.forks_too_often());
        // What was long ago counts less and less.
        for _ in 0..100 {
            policy.note_runs(64, 640);
        }
        assert!(!policy.forks_too_often());
        assert_eq!((policy.runs.runs, policy.runs.pages), (6_400, 64_000));
        for _ in 0..40 {
            policy.note_runs(9, 0);
            policy.note_fork(None);
        }
        assert!(!policy.forks_too_often(), "{:?}", policy.recent);
        for _ in 0..2_000 {
            policy.note_runs(4, 0);
            policy.note_fork(None);
        }
        assert!(policy.forks_too_often());
    }

    #[test]
    fn a_difference_names_what_differs_first() {
        let seen = |exit, edges: &[u8], keys: &[(u32, u32)]| Seen {
            exit,
            edges: edges.to_vec(),
            keys: keys.iter().copied().collect(),
        };
        let one = seen(ExitKind::Ok, &[0, 1, 2], &[(5, 7)]);
        let difference = |other: Seen| one.difference(&other);
        let edges = difference(seen(ExitKind::Ok, &[0, 3, 0], &[(5, 7)]));
        assert_eq!(edges, "2 edges, the first 1: 1 times, by fork 3");
        let keys = difference(seen(ExitKind::Ok, &[0, 1, 2], &[(5, 8), (6, 1)]));
        assert_eq!(keys, "domain key 5: 7, by fork 8");
        let more = difference(seen(ExitKind::Ok, &[0, 1, 2], &[(5, 7), (6, 1)]));
        assert_eq!(more, "domain key 6: nothing, by fork 1");
        let end = difference(seen(ExitKind::Hang, &[], &[]));
        assert_eq!(end, "it ended as Ok, by fork as Hang");
    }

    /// Each value of `enum ffuzz_why` has its words, in the order of the header.
    #[test]
    fn every_reason_has_words() {
        let header = include_str!("../../../runtime/channel.h");
        let start = header.find("enum ffuzz_why {").unwrap();
        let values = header[start..].split("};").next().unwrap();
        let names = values.lines().map(str::trim).filter(|line| line.starts_with("FFUZZ_WHY_"));
        let names: Vec<&str> = names.collect();
        let border = names.iter().position(|name| name.contains("_RUN = 31")).unwrap();
        assert_eq!((border, names.len() - border - 1), (WHY.len(), WHY_ALL.len()));
        assert_eq!(words(1, 0), "it starts processes or threads");
        assert_eq!(
            words(33, 25),
            "the kernel has no PAGEMAP_SCAN: Linux 6.7 or newer is needed (25)"
        );
        assert_eq!(words(99, 0), "for a reason that is unknown");
    }
}
