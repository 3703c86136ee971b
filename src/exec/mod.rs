//! What is run, and what is seen of a run.
//!
//! [`ForkServer`] speaks AFL's fork server protocol in all its dialects, and over it offers our
//! channel (`runtime/channel.h`); [`Direct`] starts a process per run. Both are an [`Executor`],
//! which is all that the parts above know.

pub mod binary;
mod channel;
pub mod delivery;
mod direct;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod forkserver;
mod fresh;
mod handshake;
mod hooked;
mod launcher;
pub mod lines;
mod maps;
mod modules;
mod record;
mod runs;
mod seen;
mod sites;

pub use direct::Direct;
pub use error::TargetError;
pub use forkserver::ForkServer;
pub use fresh::{Ended, Fresh, Manner};
pub use hooked::Hooked;
pub use launcher::{InputFrom, Setup};
pub use modules::Module;
pub use seen::Seen;

use std::time::Duration;

use crate::engine::domain::{Domain, DsfView, Site};
use crate::engine::mutate::Candidate;
use crate::sys::stop::Stop;

/// Largest input, bytes: AFL's limit and the size of its shared-memory test case.
pub const MAX_INPUT: usize = 1 << 20;

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExitKind {
    Ok,
    /// Killed by a signal, or an exit code that counts as a crash (`signal` is 0 then).
    Crash {
        signal: i32,
    },
    /// Killed by us when its time was up.
    Hang,
    /// Killed by SIGKILL that we did not send: nearly always the kernel's out-of-memory killer.
    Oom,
}

/// What can be seen of one run. It borrows the executor, so no other run can start while the maps
/// are being read.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Position of the candidate in the batch.
    pub index: usize,
    pub exit: ExitKind,
    pub duration: Duration,
    /// Raw edge counters.
    pub edges: &'a [u8],
    /// Domain maps; empty if there are none.
    pub dsf: DsfView<'a>,
}

/// Where the time of runs went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub target: Duration,
    /// Waking each other, forking. Not known apart (and in `target`) where runs are ordered by pipes.
    pub hand_over: Option<Duration>,
}

/// Processor time of a fork server, and of its children, those that live included.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    pub server: Duration,
    pub children: Duration,
}

/// Runs by a process that is put back after each.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SnapshotRuns {
    pub runs: u64,
    /// Those that had to be made by fork in the end.
    pub by_fork: u64,
    /// Why, the last time, or for good.
    pub why: Option<String>,
    /// Memory pages that were put back.
    pub pages: u64,
    /// Runs that showed something else by fork.
    pub differences: u32,
    /// System calls of main that stand before the snapshot.
    pub prologue: u32,
}

impl Spent {
    fn add(&mut self, elapsed: Duration, work: Option<Duration>) {
        let work = work.map(|work| work.min(elapsed));
        self.target += work.unwrap_or(elapsed);
        if let Some(work) = work {
            *self.hand_over.get_or_insert_default() += elapsed - work;
        }
    }
}

/// Runs inputs. The unit is a batch; an executor that can only do one run at a time is one that
/// stops after each.
pub trait Executor {
    /// Runs one input, however dull, and shows what was seen.
    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, TargetError>;

    /// Runs an input that `send` hands to the target in our place: before the run, or `late`, once
    /// the process that has to take it is there.
    fn observe_sent(
        &mut self,
        late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, TargetError>;

    /// Whether a process that has this input as its standard input reads from there; None if inputs take
    /// another way. Makes a run of its own if the last one does not answer it, and does not show it.
    fn reads_stdin(&mut self, _input: &[u8]) -> Result<Option<bool>, TargetError> {
        Ok(None)
    }

    /// What the target got in the run shown last, if that is not what was given.
    fn delivered(&self) -> Option<&[u8]> {
        None
    }

    /// Runs `batch[*next..]` in order until a run may deserve to be judged, moves `next` behind it
    /// and shows what was seen; None when the batch is finished. `next` is 0 for a new batch.
    fn run(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, TargetError> {
        let index = *next;
        let Some(candidate) = batch.get(index) else { return Ok(None) };
        *next += 1;
        Ok(Some(Observation { index, ..self.observe(&candidate.bytes)? }))
    }

    /// Largest useful batch now.
    fn batch_size(&self) -> usize {
        1
    }

    /// [`Executor::run`] shows every run, dull ones as well.
    fn show_every_run(&mut self, _every: bool) {}

    /// From now on domains are looked at, too.
    fn watch_domains(&mut self) {}

    /// What is not new any more: per edge the hit-count classes that no run has shown yet.
    fn learn_edges(&mut self, _virgin: &[u8]) {}

    /// What a value of this key has to beat to be of interest.
    fn learn_key(&mut self, _key: u32, _bar: u32) {}

    /// Number of counters of the edge map.
    fn map_size(&self) -> usize;

    fn domains(&self) -> &[Domain];

    /// The names of static keys, as far as the target's files have them. Reads those files.
    fn sites(&self) -> Vec<Site> {
        Vec::new()
    }

    /// The program and the libraries whose edges are counted, as far as that is known.
    fn modules(&self) -> Vec<Module> {
        Vec::new()
    }

    /// The process that starts the target's; None if each run is a child of ours.
    fn server(&self) -> Option<i32> {
        None
    }

    /// Runs so far.
    fn execs(&self) -> u64;

    /// Where the time of those runs went.
    fn spent(&self) -> Spent {
        Spent::default()
    }

    /// What the scheduler gave to them; None if that is not known apart. Reads files of the kernel.
    fn processor_time(&self) -> Option<ProcessorTime> {
        None
    }

    fn timeout(&self) -> Duration;

    fn set_timeout(&mut self, timeout: Duration);

    /// AFL's words for `target_mode`, for example `persistent shmem_testcase`; `default` if none
    /// applies.
    fn mode(&self) -> String;

    /// Rung of the ladder of speed: `exec`, `pipe`, `fork`, `snapshot`, `persistent` or `batch`.
    fn rung(&self) -> &'static str;

    /// What came of snapshots, if there were any.
    fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        None
    }

    /// What the user should know of the target and was not told yet, a line each.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Tokens that the target offered at its start (AFL's "autodictionary").
    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// The process that made the last run, if one takes many inputs; None if each has a process of its own.
    fn process(&self) -> Option<i32> {
        None
    }

    /// Ends that process: the next run is the first of another one.
    fn end_process(&mut self) {}

    /// Why the target was started anew since the last call, if it was.
    fn take_restart(&mut self) -> Option<String> {
        None
    }

    /// How often it was started anew so far.
    fn restarts(&self) -> u64 {
        0
    }

    /// From now on [`Executor::run`] may return None before the end of a batch, and a run that takes long is
    /// given up ([`TargetError::Interrupted`]), once an end was asked for. None: nobody is heeded.
    fn heed(&mut self, _stop: Option<&Stop>) {}

    /// Somebody who is heeded has asked for an end: runs that need not be made should not be made.
    fn is_hurried(&self) -> bool {
        false
    }
}

/// The outcome of a run without its maps.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    exit: ExitKind,
    duration: Duration,
}

/// Meaning of a raw wait status. `killed`: we killed the process because its time was up.
fn exit_kind(status: i32, killed: bool, is_crash_code: impl Fn(u8) -> bool) -> ExitKind {
    if killed {
        return ExitKind::Hang;
    }
    if libc::WIFSIGNALED(status) {
        return match libc::WTERMSIG(status) {
            libc::SIGKILL => ExitKind::Oom,
            signal => ExitKind::Crash { signal },
        };
    }
    let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
    if libc::WIFEXITED(status) && is_crash_code(code) {
        return ExitKind::Crash { signal: 0 };
    }
    ExitKind::Ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_did_not_work_was_hand_over() {
        let us = Duration::from_micros;
        let mut spent = Spent::default();
        spent.add(us(10), None);
        assert_eq!((spent.target, spent.hand_over), (us(10), None));
        spent.add(us(10), Some(us(7)));
        // More than there was: the target says what it likes.
        spent.add(us(10), Some(us(99)));
        assert_eq!((spent.target, spent.hand_over), (us(27), Some(us(3))));
    }

    #[test]
    fn wait_statuses_have_afls_meaning() {
        let kind = |status| exit_kind(status, false, |code| code == 86);
        assert_eq!(kind(0), ExitKind::Ok);
        assert_eq!(kind(0x500), ExitKind::Ok);
        assert_eq!(kind(86 << 8), ExitKind::Crash { signal: 0 });
        assert_eq!(kind(11), ExitKind::Crash { signal: 11 });
        assert_eq!(kind(6 | 0x80), ExitKind::Crash { signal: 6 });
        assert_eq!(kind(9), ExitKind::Oom);
        assert_eq!(kind(0x137f), ExitKind::Ok);
        assert_eq!(exit_kind(9, true, |_| false), ExitKind::Hang);
    }
}
