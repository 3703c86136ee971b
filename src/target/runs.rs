//! Runs ordered through the channel (`struct ffuzz_runs` of `runtime/channel.h`).
//!
//! Both sides wait for words in shared memory. A target in its persistent loop takes a batch of test
//! cases and stops at the first that shows something new; one without a loop runs one and ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::channel::Region;
use crate::domain::Domain;
use crate::sys::futex;
use crate::sys::memory::SharedMap;

/// Most test cases of a batch: with 64 the hand-over is a twentieth of a microsecond a run, and more
/// gain nothing.
pub(super) const MOST_CASES: usize = 64;
/// Bytes for the test cases of one batch.
pub(super) const ARENA: usize = 2 << 20;

pub(super) const RUNS: usize = 1024;
pub(super) const CASES: usize = 2048;
/// Bytes of a case in the table.
const CASE: usize = 8;
/// What is written into the arena begins at a multiple of this.
const ALIGN: usize = 16;

/// Unit of the target's clock, nanoseconds.
pub(super) const TICK: u64 = 256;

/// Byte offsets of `struct ffuzz_runs`.
mod field {
    pub(super) const WANT: usize = 0;
    pub(super) const GO: usize = 64;
    pub(super) const COUNT: usize = 68;
    pub(super) const EACH: usize = 72;
    pub(super) const WATCH: usize = 76;
    pub(super) const REPORT: usize = 128;
    pub(super) const STARTED: usize = 132;
    pub(super) const FINISHED: usize = 136;
    pub(super) const SHOWN: usize = 140;
    pub(super) const BEGAN: usize = 144;
    pub(super) const STOPPED: usize = 148;
    pub(super) const CHILD: usize = 192;
    pub(super) const ENDED: usize = 196;
    pub(super) const STATUS: usize = 200;
}

#[cfg(test)]
pub(super) const FIELDS: [(&str, usize); 14] = [
    ("want", field::WANT),
    ("go", field::GO),
    ("count", field::COUNT),
    ("each", field::EACH),
    ("watch", field::WATCH),
    ("report", field::REPORT),
    ("started", field::STARTED),
    ("finished", field::FINISHED),
    ("shown", field::SHOWN),
    ("began", field::BEGAN),
    ("stopped", field::STOPPED),
    ("child", field::CHILD),
    ("ended", field::ENDED),
    ("status", field::STATUS),
];

/// Orders to a target and its reports.
#[derive(Debug)]
pub(super) struct Runs {
    memory: SharedMap,
    arena: Region,
    virgin: Region,
    bars: Region,
    /// Number of the last child that was wanted; of the last batch; and its cases.
    child: u32,
    batch: u32,
    cases: u32,
    alive: bool,
    /// Children that ended between two runs, and the wait status of the last.
    idle_ends: u32,
    idle_status: i32,
}

/// What became of a batch so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    /// Nobody reported yet; so many cases were started.
    Underway { started: u32 },
    /// The child stopped behind so many cases; `shown`: the last of them is to be judged.
    Stopped { finished: u32, shown: bool },
    /// The child ended in the case behind those, with this wait status.
    Ended { finished: u32, status: i32 },
    /// The target wrote what cannot be.
    Nonsense,
}

impl Runs {
    pub(super) fn new(
        memory: SharedMap,
        arena: Region,
        virgin: Region,
        bars: Region,
        domains: &[Domain],
    ) -> Self {
        let mut runs = Self {
            memory,
            arena,
            virgin,
            bars,
            child: 0,
            batch: 0,
            cases: 0,
            alive: false,
            idle_ends: 0,
            idle_status: 0,
        };
        runs.virgin_mut().fill(0xff);
        for domain in domains {
            runs.bars_mut()[domain.range()].fill(domain.initial);
        }
        runs
    }

    /// Orders as many of the inputs as fit into one batch, at least one, and returns how many.
    /// `each`: stop behind every one; `watch`: look at domains, too.
    pub(super) fn begin<'a>(
        &mut self,
        inputs: impl Iterator<Item = &'a [u8]>,
        (each, watch): (bool, bool),
    ) -> usize {
        let (mut offset, mut count) = (0, 0);
        for input in inputs.take(MOST_CASES) {
            let input = &input[..input.len().min(super::MAX_INPUT)];
            if offset + input.len() > self.arena.count {
                break;
            }
            self.memory.bytes_mut(self.arena.offset + offset, input.len()).copy_from_slice(input);
            let case = [offset as u32, input.len() as u32];
            self.memory.words_mut(CASES + count * CASE, 2).copy_from_slice(&case);
            offset = (offset + input.len()).next_multiple_of(ALIGN);
            count += 1;
        }
        self.order(count as u32, each, watch);
        count
    }

    /// Orders one run whose input gets there by another way.
    pub(super) fn begin_one(&mut self) {
        self.order(1, true, false);
    }

    fn order(&mut self, count: u32, each: bool, watch: bool) {
        self.cases = count;
        self.put(field::COUNT, count);
        self.put(field::EACH, u32::from(each));
        self.put(field::WATCH, u32::from(watch));
        for word in [field::STARTED, field::FINISHED, field::SHOWN, field::REPORT] {
            self.put(word, 0);
        }
        if self.alive && self.get(field::ENDED) == self.child {
            self.note_idle_end();
        }
        self.batch = self.batch.wrapping_add(1);
        self.put(field::GO, self.batch);
        let word = if self.alive {
            field::GO
        } else {
            self.child = self.child.wrapping_add(1);
            self.alive = true;
            self.put(field::WANT, self.child);
            field::WANT
        };
        futex::wake(self.memory.atomic(RUNS + word));
    }

    /// Waits for a report, at most so long.
    pub(super) fn wait(&mut self, timeout: Duration) -> Progress {
        let progress = self.look();
        if !matches!(progress, Progress::Underway { .. }) {
            return progress;
        }
        futex::wait(self.memory.atomic(RUNS + field::REPORT), 0, timeout);
        self.look()
    }

    fn look(&mut self) -> Progress {
        // First what says that the other words are final: a child that reports meanwhile would seem to
        // have stopped at a case that it had left behind.
        let ended = self.get(field::ENDED) == self.child;
        let report = self.get(field::REPORT);
        let [started, finished] = [field::STARTED, field::FINISHED].map(|field| self.get(field));
        let shown = self.get(field::SHOWN) == 1;
        if finished > self.cases || started > self.cases {
            return Progress::Nonsense;
        }
        // A child that died while it waited for the next batch has done its duty.
        let idle = finished > 0 && (started == finished || finished == self.cases);
        match report {
            _ if ended && !idle => {
                self.alive = false;
                Progress::Ended { finished, status: self.get(field::STATUS).cast_signed() }
            }
            _ if ended => {
                self.note_idle_end();
                Progress::Stopped { finished, shown }
            }
            1 if finished == self.cases || (shown && finished > 0) => {
                Progress::Stopped { finished, shown }
            }
            1 => Progress::Nonsense,
            _ => Progress::Underway { started },
        }
    }

    fn note_idle_end(&mut self) {
        self.alive = false;
        self.idle_ends = self.idle_ends.saturating_add(1);
        self.idle_status = self.get(field::STATUS).cast_signed();
    }

    /// How often a child ended between two runs, and the last one's wait status.
    pub(super) fn idle_ends(&self) -> (u32, i32) {
        (self.idle_ends, self.idle_status)
    }

    /// True if the child that was wanted last is not known to have ended.
    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Process id of the child, as the target says.
    pub(super) fn child(&self) -> i32 {
        self.get(field::CHILD).cast_signed()
    }

    /// Time that the child worked on the last batch, as the target says. Below zero, if the fork
    /// server noted the start of a child that had already stopped, counts as zero.
    pub(super) fn work(&self) -> Duration {
        let ticks = self.get(field::STOPPED).wrapping_sub(self.get(field::BEGAN)).cast_signed();
        Duration::from_nanos(u64::from(ticks.max(0).cast_unsigned()) * TICK)
    }

    /// What is not new any more: per edge the hit-count classes that are still unseen.
    pub(super) fn virgin_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut(self.virgin.offset, self.virgin.count)
    }

    /// Per key what a value has to beat to be of interest.
    pub(super) fn bars_mut(&mut self) -> &mut [u32] {
        self.memory.words_mut(self.bars.offset, self.bars.count)
    }

    /// Learns what those of an earlier start of the same target knew.
    pub(super) fn inherit(&mut self, earlier: &Self) {
        let virgin = earlier.memory.bytes(earlier.virgin.offset, earlier.virgin.count);
        let bars = earlier.memory.words(earlier.bars.offset, earlier.bars.count);
        let edges = virgin.len().min(self.virgin.count);
        self.virgin_mut()[..edges].copy_from_slice(&virgin[..edges]);
        if bars.len() == self.bars.count {
            self.bars_mut().copy_from_slice(bars);
        }
        self.idle_ends = earlier.idle_ends;
    }

    fn get(&self, field: usize) -> u32 {
        self.memory.atomic(RUNS + field).load(Ordering::Acquire)
    }

    fn put(&self, field: usize, value: u32) {
        self.memory.atomic(RUNS + field).store(value, Ordering::Release);
    }
}
