//! Runs ordered through the channel (`struct ffuzz_runs` of `runtime/channel.h`).
//!
//! Both sides wait for words in shared memory. A target in its persistent loop runs a batch of test cases and stops
//! at the first one that shows something new. A target without a loop runs one test case and ends, or is restored
//! after each ([`Child::Lasting`]).
//!
//! The target compares a run with the virgin map and with a threshold per key, both in channel pages that are
//! read-only for it; before each hand-over the judge passes changes to the executor (`Judge::teach`). If nothing is
//! new, the target clears what was touched (`runtime/novelty.c`) and continues. Otherwise it stops with its maps in
//! place, the judge reads them, and the input runs once more before it is kept. Both sides apply the same rule, so a
//! batch stops at exactly those runs that the judge keeps (`tests/fuzzing/modes.rs`). The number of the current case
//! is in shared memory: when the child dies, it identifies the case, and the cases after it go to a new child.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::channel::Region;
use ffuzz_engine::coverage::Classes;
use ffuzz_engine::domain::Domain;
use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::futex;
use ffuzz_sys::memory::SharedMap;

/// Maximum number of test cases in a batch. A hand-over takes two process switches, 12 to 19 us on a virtual machine:
/// with 64 cases that is a quarter of the time of runs that take a microsecond.
pub(super) const MOST_CASES: usize = 256;
/// Bytes for the test cases of one batch.
pub(super) const ARENA: usize = 2 << 20;

pub(super) const RUNS: usize = 1024;
/// Offset of the path hashes: one number for each case of a batch.
pub(super) const PATHS: usize = 1280;
pub(super) const CASES: usize = 3328;
/// Size of a table entry in bytes.
const CASE: usize = 8;
/// Alignment of data in the arena.
const ALIGN: usize = 16;

/// Unit of the target's clock in nanoseconds.
pub(super) const TICK: u64 = 256;

/// Byte offsets of `struct ffuzz_runs`.
pub(super) mod field {
    pub(crate) const WANT: usize = 0;
    pub(crate) const LASTING: usize = 4;
    pub(crate) const PROLOGUE: usize = 8;
    pub(crate) const NO_DETOURS: usize = 12;
    pub(crate) const PREFIX: usize = 16;
    pub(crate) const GO: usize = 64;
    pub(crate) const COUNT: usize = 68;
    pub(crate) const EACH: usize = 72;
    pub(crate) const WATCH: usize = 76;
    pub(crate) const CRASH_CODES: usize = 80;
    pub(crate) const PATHS: usize = 112;
    pub(crate) const LOG: usize = 116;
    pub(crate) const BREAKPOINTS: usize = 120;
    pub(crate) const LEARNED: usize = 124;
    pub(crate) const REPORT: usize = 128;
    pub(crate) const STARTED: usize = 132;
    pub(crate) const FINISHED: usize = 136;
    pub(crate) const SHOWN: usize = 140;
    pub(crate) const BEGAN: usize = 144;
    pub(crate) const STOPPED: usize = 148;
    pub(crate) const WHY: usize = 152;
    pub(crate) const DETAIL: usize = 156;
    pub(crate) const PAGES: usize = 160;
    pub(crate) const PROLOGUE_CALLS: usize = 164;
    pub(crate) const CHILD: usize = 192;
    pub(crate) const ENDED: usize = 196;
    pub(crate) const STATUS: usize = 200;
    pub(crate) const LASTING_CHILD: usize = 204;
    pub(crate) const LASTING_ENDED: usize = 208;
    pub(crate) const LASTING_STATUS: usize = 212;
}

/// Values of `report`.
const REPORT_STOPPED: u32 = 1;
const REPORT_ENDED: u32 = 2;

/// Interval between two checks while the awaited word does not change.
const SOON: Duration = Duration::from_millis(1);

/// `enum ffuzz_shown`.
const SHOWN_EACH: u32 = 1;
const SHOWN_NEWS: u32 = 2;

/// Offset of `struct ffuzz_input`, with which a child delivers the input itself; size of its path, and its kinds.
pub(super) const INPUT: usize = 5376;
pub(super) const INPUT_PATH: usize = LEFT - INPUT - 4;
/// Offset of `struct ffuzz_left`: number of files that the last run of a restored child changed, and the path of the
/// first.
pub(super) const LEFT: usize = 7936;
const LEFT_PATH: usize = super::channel::HEADER - LEFT - 4;
const INPUT_NONE: u32 = 0;
const INPUT_STDIN: u32 = 1;
const INPUT_FILE: u32 = 2;
const INPUT_NET: u32 = 3;

/// Orders to a target and its reports.
#[derive(Debug)]
pub(super) struct RunChannel {
    memory: SharedMap,
    arena: Region,
    virgin: Region,
    thresholds: Region,
    /// Number of the last requested child, number of the last batch, and its number of cases.
    wanted: u32,
    batch: u32,
    cases: u32,
    /// True if the batch was cut short: the child may stop before its end.
    cut: bool,
    /// The last child of each kind, and the kind in use (`turn`).
    children: [NumberedChild; 2],
    turn: Child,
    /// Reason why a lasting child ended, until the caller takes it.
    why: Option<(u32, u32)>,
    pages: u32,
    /// Number of children that ended between two runs, and the wait status of the last.
    idle_ends: u32,
    idle_status: i32,
}

/// Kinds of children of the fork server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Child {
    /// Ends with its run, or has a loop.
    Own,
    /// Restored after each run, while the fork server serves other children.
    Lasting,
}

/// `enum ffuzz_breakpoints_set`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Breakpoints {
    All,
    None,
    /// Breakpoints of blocks that no run has hit yet.
    Unseen,
}

#[derive(Clone, Copy, Debug, Default)]
struct NumberedChild {
    number: u32,
    /// True if it is not known to have ended.
    alive: bool,
    /// True if `ffuzz` ends it.
    dismissed: bool,
}

/// Checks that a child makes after each case.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// Stop after every case.
    pub(super) each: bool,
    /// Also check domains.
    pub(super) watch: bool,
    /// Hash the path of a run ([`RunChannel::path`]) by its edges, or by the classes of their hit counts.
    pub(super) paths: Option<Classes>,
}

/// State of a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BatchState {
    /// No report yet; the value is the number of started cases.
    Underway { started: u32 },
    /// The child stopped after this many cases; `shown`: the last of them must be judged.
    Stopped { finished: u32, shown: bool },
    /// The child ended with this wait status in the case after the `finished` ones.
    Ended { finished: u32, status: i32 },
    /// The batch was sent to a child that had been ended, but whose end was not known yet.
    Late,
    /// The target wrote impossible values.
    Nonsense,
}

impl RunChannel {
    pub(super) fn new(
        memory: SharedMap,
        arena: Region,
        virgin: Region,
        thresholds: Region,
        domains: &[Domain],
    ) -> Self {
        let mut runs = Self {
            memory,
            arena,
            virgin,
            thresholds,
            wanted: 0,
            batch: 0,
            cases: 0,
            cut: false,
            children: [NumberedChild::default(); 2],
            turn: Child::Own,
            why: None,
            pages: 0,
            idle_ends: 0,
            idle_status: 0,
        };
        runs.virgin_mut().fill(0xff);
        for domain in domains {
            runs.thresholds_mut()[domain.range()].fill(domain.initial);
        }
        runs
    }

    /// Orders a batch of as many inputs as fit, at least one, and returns their number.
    pub(super) fn begin<'a>(
        &mut self,
        inputs: impl Iterator<Item = &'a [u8]>,
        look: Look,
        child: Child,
    ) -> usize {
        let (mut offset, mut count) = (0, 0);
        for input in inputs.take(MOST_CASES) {
            let input = &input[..input.len().min(MAX_INPUT)];
            if offset + input.len() > self.arena.count {
                break;
            }
            self.memory.bytes_mut(self.arena.offset + offset, input.len()).copy_from_slice(input);
            let case = [offset as u32, input.len() as u32];
            self.memory.words_mut(CASES + count * CASE, 2).copy_from_slice(&case);
            offset = (offset + input.len()).next_multiple_of(ALIGN);
            count += 1;
        }
        self.order(count as u32, look, child);
        count
    }

    /// Orders one run whose input is delivered in another way.
    pub(super) fn begin_one(&mut self) {
        self.order(1, Look { each: true, ..Look::default() }, Child::Own);
    }

    fn order(&mut self, count: u32, look: Look, child: Child) {
        self.cases = count;
        self.cut = false;
        self.turn = child;
        self.put(field::COUNT, count);
        self.put(field::EACH, u32::from(look.each));
        self.put(field::WATCH, u32::from(look.watch));
        let paths = match look.paths {
            None => 0,
            Some(Classes::Binary) => 1,
            Some(Classes::Counts) => 2,
        };
        self.put(field::PATHS, paths);
        for word in [field::STARTED, field::FINISHED, field::SHOWN, field::REPORT] {
            self.put(word, 0);
        }
        if self.is_alive() && self.has_ended() {
            self.note_idle_end();
        }
        // Only now: a restored child waits for this word while other children run.
        let word = if self.is_alive() {
            self.batch = self.batch.wrapping_add(1);
            self.put(field::GO, self.batch);
            field::GO
        } else {
            self.wanted = self.wanted.wrapping_add(1);
            self.children[child as usize] =
                NumberedChild { number: self.wanted, alive: true, dismissed: false };
            if child == Child::Lasting {
                self.why = None;
                self.put(field::PROLOGUE_CALLS, 0);
            }
            self.put(field::LASTING, u32::from(child == Child::Lasting));
            self.put(field::WANT, self.wanted);
            field::WANT
        };
        futex::wake(self.memory.atomic(RUNS + word));
    }

    /// Waits for a report, with a time limit.
    pub(super) fn wait(&mut self, timeout: Duration) -> BatchState {
        let progress = self.look();
        if !matches!(progress, BatchState::Underway { .. }) {
            return progress;
        }
        match self.get(field::REPORT) {
            0 => futex::wait(self.memory.atomic(RUNS + field::REPORT), 0, timeout),
            REPORT_STOPPED => {}
            // `ended` follows immediately, unless the program wrote here.
            REPORT_ENDED if self.has_ended() => {}
            REPORT_ENDED => self.wait_for_change(timeout.min(SOON)),
            _ => return BatchState::Nonsense,
        }
        self.look()
    }

    /// Waits until the current child has ended, with a time limit; false if it has not. Values written by
    /// the program do not turn this into a busy loop.
    pub(super) fn wait_for_end(&mut self, timeout: Duration) -> bool {
        if !self.has_ended() {
            self.wait_for_change(timeout);
        }
        let ended = self.has_ended();
        if ended && self.is_alive() {
            self.note_end();
        }
        ended
    }

    fn wait_for_change(&self, timeout: Duration) {
        let word = self.memory.atomic(RUNS + field::REPORT);
        futex::wait(word, word.load(Ordering::Acquire), timeout);
    }

    /// Makes the child stop after the current case.
    pub(super) fn cut_short(&mut self) {
        self.cut = true;
        self.put(field::COUNT, 1);
    }

    fn look(&mut self) -> BatchState {
        // Read this word first, because it marks the others as final: otherwise a child that reports in between would
        // seem to have stopped at an earlier case.
        let ended = self.has_ended();
        let report = self.get(field::REPORT);
        let [started, finished] = [field::STARTED, field::FINISHED].map(|field| self.get(field));
        let shown = matches!(self.get(field::SHOWN), SHOWN_EACH | SHOWN_NEWS);
        if finished > self.cases || started > self.cases {
            return BatchState::Nonsense;
        }
        // A child that died while waiting for the next batch had finished its work.
        let idle = finished > 0 && (started == finished || finished == self.cases);
        match report {
            _ if ended && self.children[self.turn as usize].dismissed => {
                self.note_end();
                BatchState::Late
            }
            _ if ended && !idle => {
                self.note_end();
                BatchState::Ended { finished, status: self.status() }
            }
            _ if ended => {
                self.note_idle_end();
                BatchState::Stopped { finished, shown }
            }
            REPORT_STOPPED if finished == self.cases || (finished > 0 && (shown || self.cut)) => {
                BatchState::Stopped { finished, shown }
            }
            REPORT_STOPPED => BatchState::Nonsense,
            _ => BatchState::Underway { started },
        }
    }

    fn note_end(&mut self) {
        self.children[self.turn as usize].alive = false;
        if self.turn == Child::Lasting && self.get(field::WHY) != 0 {
            self.why = Some((self.get(field::WHY), self.get(field::DETAIL)));
            self.put(field::WHY, 0);
        }
    }

    fn note_idle_end(&mut self) {
        self.note_end();
        if self.why.is_none() && !self.children[self.turn as usize].dismissed {
            self.idle_ends = self.idle_ends.saturating_add(1);
            self.idle_status = self.status();
        }
    }

    fn has_ended(&self) -> bool {
        let ended = match self.turn {
            Child::Own => field::ENDED,
            Child::Lasting => field::LASTING_ENDED,
        };
        self.get(ended) == self.children[self.turn as usize].number
    }

    /// Wait status of the last child of the current kind.
    pub(super) fn status(&self) -> i32 {
        let status = match self.turn {
            Child::Own => field::STATUS,
            Child::Lasting => field::LASTING_STATUS,
        };
        self.get(status).cast_signed()
    }

    /// Path hash of a case of the last batch that finished without being shown, if paths were requested.
    pub(super) fn path(&self, case: usize) -> u64 {
        let bytes = self.memory.bytes(PATHS + case % MOST_CASES * 8, 8);
        u64::from_le_bytes(bytes.try_into().unwrap_or_default())
    }

    /// Returns true if the target reported something new in the shown run.
    pub(super) fn shows_news(&self) -> bool {
        self.get(field::SHOWN) == SHOWN_NEWS
    }

    /// Reason why a lasting child ended by itself (`enum ffuzz_why`), and the error or system call; reported once.
    pub(super) fn take_why(&mut self) -> Option<(u32, u32)> {
        self.why.take()
    }

    /// Number of pages that a lasting child has restored since the last call.
    pub(super) fn take_pages(&mut self) -> u32 {
        let now = self.get(field::PAGES);
        now.wrapping_sub(std::mem::replace(&mut self.pages, now))
    }

    /// Sets where a lasting child delivers its input: to the file `file`, or to the target's stdin. With neither, it
    /// uses shared memory. `net`: the replaced network reads it. Returns false if the path is too long.
    pub(super) fn set_input(&mut self, file: Option<&[u8]>, stdin: bool, net: bool) -> bool {
        let path = file.unwrap_or_default();
        if path.len() >= INPUT_PATH || path.contains(&0) {
            return false;
        }
        let kind = match (file, stdin) {
            _ if net => INPUT_NET,
            (Some(_), _) => INPUT_FILE,
            (None, true) => INPUT_STDIN,
            (None, false) => INPUT_NONE,
        };
        self.memory.words_mut(INPUT, 1)[0] = kind;
        let room = self.memory.bytes_mut(INPUT + 4, INPUT_PATH);
        room.fill(0);
        room[..path.len()].copy_from_slice(path);
        true
    }

    /// Number of files, folders and sockets that the last run of a lasting child made, removed or opened for writing,
    /// and the path of the first as the program named it.
    pub(super) fn left(&self) -> (u32, String) {
        let path = self.memory.bytes(LEFT + 4, LEFT_PATH);
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let path = String::from_utf8_lossy(path).escape_debug().to_string();
        (self.memory.words(LEFT, 1)[0], path)
    }

    /// Returns true if the current child has begun a case of the last batch.
    pub(super) fn has_started(&self) -> bool {
        self.get(field::STARTED) > 0
    }

    /// Sets the maximum number of system calls of main before the snapshot of the next lasting child.
    pub(super) fn set_prologue(&mut self, most: u32) {
        self.put(field::PROLOGUE, most);
    }

    /// Sets the number of leading bytes that all inputs of the next lasting child share.
    pub(super) fn set_prefix(&mut self, bytes: usize) {
        self.put(field::PREFIX, bytes as u32);
    }

    /// Number of system calls before the snapshot of the last lasting child.
    pub(super) fn prologue_calls(&self) -> u32 {
        self.get(field::PROLOGUE_CALLS)
    }

    /// Sets the exit codes that the fork server must report.
    pub(super) fn set_crash_codes(&mut self, is_crash: impl Fn(u8) -> bool) {
        let words = self.memory.words_mut(RUNS + field::CRASH_CODES, 8);
        words.fill(0);
        for code in (0..=u8::MAX).filter(|code| is_crash(*code)) {
            words[usize::from(code) / 32] |= 1 << (code % 32);
        }
    }

    /// Number of children that ended between two runs, and the wait status of the last.
    pub(super) fn idle_ends(&self) -> (u32, i32) {
        (self.idle_ends, self.idle_status)
    }

    /// True if the current child is not known to have ended.
    pub(super) fn is_alive(&self) -> bool {
        self.children[self.turn as usize].alive
    }

    /// Process id of the current child, as reported by the target.
    pub(super) fn child(&self) -> i32 {
        let child = match self.turn {
            Child::Own => field::CHILD,
            Child::Lasting => field::LASTING_CHILD,
        };
        self.get(child).cast_signed()
    }

    /// Process id of the child of that kind, if it may still exist. Its end is no longer attributed to the program.
    pub(super) fn dismiss(&mut self, kind: Child) -> Option<i32> {
        self.turn = kind;
        self.children[kind as usize].dismissed = true;
        self.is_alive().then(|| self.child())
    }

    /// Returns true if the child has ended; such an end is not reported.
    pub(super) fn forget(&mut self, kind: Child) -> bool {
        self.turn = kind;
        if self.has_ended() {
            self.children[kind as usize].alive = false;
        }
        !self.is_alive()
    }

    /// Switches comparison logging on or off for children that start from now on.
    pub(super) fn set_log(&mut self, on: bool) {
        self.put(field::LOG, u32::from(on));
    }

    /// Sets the breakpoints of children that start from now on and end with their run.
    pub(super) fn set_breakpoints(&mut self, breakpoints: Breakpoints) {
        self.put(field::BREAKPOINTS, breakpoints as u32);
    }

    /// Makes children that start from now on count blocks by breakpoints alone.
    pub(super) fn leave_detours(&mut self) {
        self.put(field::NO_DETOURS, 1);
    }

    pub(super) fn has_left_detours(&self) -> bool {
        self.get(field::NO_DETOURS) != 0
    }

    /// Copies the known edges, see [`RunChannel::virgin`].
    pub(super) fn learn_edges(&mut self, virgin: &[u8]) {
        let known = self.virgin_mut();
        let edges = known.len().min(virgin.len());
        known[..edges].copy_from_slice(&virgin[..edges]);
        self.put(field::LEARNED, self.get(field::LEARNED).wrapping_add(1));
    }

    /// Process id of the restored child, if it may still exist.
    pub(super) fn lasting_child(&self) -> Option<i32> {
        let alive = self.children[Child::Lasting as usize].alive;
        alive.then(|| self.get(field::LASTING_CHILD).cast_signed())
    }

    /// Time that the child worked on the last batch, as reported by the target. Negative values count as zero; they
    /// occur if the fork server recorded the start of a child that had already stopped.
    pub(super) fn work(&self) -> Duration {
        let ticks = self.get(field::STOPPED).wrapping_sub(self.get(field::BEGAN)).cast_signed();
        Duration::from_nanos(u64::from(ticks.max(0).cast_unsigned()) * TICK)
    }

    /// One byte per edge: the hit-count classes that were not reached yet.
    pub(super) fn virgin(&self) -> &[u8] {
        self.memory.bytes(self.virgin.offset, self.virgin.count)
    }

    /// See [`Self::virgin`].
    pub(super) fn virgin_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut(self.virgin.offset, self.virgin.count)
    }

    /// Threshold of each key, which an interesting value must exceed.
    pub(super) fn thresholds(&self) -> &[u32] {
        self.memory.words(self.thresholds.offset, self.thresholds.count)
    }

    pub(super) fn thresholds_mut(&mut self) -> &mut [u32] {
        self.memory.words_mut(self.thresholds.offset, self.thresholds.count)
    }

    /// Copies virgin map and thresholds from an earlier start of the same target.
    pub(super) fn inherit(&mut self, earlier: &Self) {
        let virgin = earlier.virgin();
        let thresholds = earlier.memory.words(earlier.thresholds.offset, earlier.thresholds.count);
        let edges = virgin.len().min(self.virgin.count);
        self.virgin_mut()[..edges].copy_from_slice(&virgin[..edges]);
        if thresholds.len() == self.thresholds.count {
            self.thresholds_mut().copy_from_slice(thresholds);
        }
        self.put(field::NO_DETOURS, earlier.get(field::NO_DETOURS));
        self.idle_ends = earlier.idle_ends;
    }

    fn get(&self, field: usize) -> u32 {
        self.memory.atomic(RUNS + field).load(Ordering::Acquire)
    }

    fn put(&self, field: usize, value: u32) {
        self.memory.atomic(RUNS + field).store(value, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use ffuzz_sys::memory;

    /// A batch of two cases that no target runs.
    fn ordered() -> RunChannel {
        let fd = memory::memfd(c"runs", 4096 + ARENA).unwrap();
        let memory = SharedMap::file(&fd, 4096 + ARENA).unwrap();
        let none = || Region { offset: 4096, count: 0 };
        let arena = Region { offset: 4096, count: ARENA };
        let mut runs = RunChannel::new(memory, arena, none(), none(), &[]);
        assert_eq!(runs.begin([b"a".as_slice(), b"b"].into_iter(), Look::default(), Child::Own), 2);
        runs
    }

    #[test]
    fn reports_of_the_programs_own_are_neither_believed_nor_waited_for_busily() {
        let mut runs = ordered();
        runs.put(field::REPORT, REPORT_ENDED);
        let start = Instant::now();
        for _ in 0..5 {
            let progress = runs.wait(Duration::from_secs(100));
            assert_eq!(progress, BatchState::Underway { started: 0 });
        }
        assert!(start.elapsed() >= 5 * SOON, "it did not sleep: {:?}", start.elapsed());
        let start = Instant::now();
        assert!(!runs.wait_for_end(Duration::from_millis(5)));
        assert!(start.elapsed() >= Duration::from_millis(5));
        runs.put(field::REPORT, 77);
        assert_eq!(runs.wait(Duration::from_secs(100)), BatchState::Nonsense);
        runs.put(field::ENDED, 1);
        assert!(runs.wait_for_end(Duration::from_secs(100)) && !runs.is_alive());
    }

    #[test]
    fn a_batch_that_was_cut_may_stop_before_its_end() {
        for (cut, expected) in [
            (false, BatchState::Nonsense),
            (true, BatchState::Stopped { finished: 1, shown: false }),
        ] {
            let mut runs = ordered();
            if cut {
                runs.cut_short();
            }
            runs.put(field::STARTED, 1);
            runs.put(field::FINISHED, 1);
            runs.put(field::REPORT, REPORT_STOPPED);
            assert_eq!(runs.wait(Duration::from_secs(100)), expected);
        }
    }
}
