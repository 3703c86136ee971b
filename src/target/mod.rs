//! What is run, and what is seen of a run.

use std::time::Duration;

use crate::domain::Domain;
use crate::mutate::Candidate;

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

/// All domain maps of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct DsfView<'a> {
    pub domains: &'a [Domain],
    /// Values of all keys of all domains.
    pub values: &'a [u32],
    /// Keys that may differ from their initial value, in order of first touch, possibly repeated,
    /// every one a valid index. None: the whole array has to be looked at.
    pub touched: Option<&'a [u32]>,
}

/// Runs inputs. The unit is a batch; an executor that can only do one run at a time is one that
/// stops after each.
pub trait Executor {
    /// Runs `batch[*next..]` in order until a run deserves to be judged, moves `next` behind it and
    /// returns what was seen; None when the batch is finished.
    fn run(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, TargetError>;

    /// Largest useful batch now.
    fn batch_size(&self) -> usize;

    /// Number of counters of the edge map.
    fn map_size(&self) -> usize;

    fn domains(&self) -> &[Domain];

    /// Runs so far.
    fn execs(&self) -> u64;

    fn set_timeout(&mut self, timeout: Duration);
}

/// Why a target cannot be run (placeholder until the fork server lands).
#[derive(Debug, thiserror::Error)]
pub enum TargetError {}
