//! Queue of lines for one client, and limit of its unanswered commands.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number and size of a client's open commands: enough to keep a campaign busy between two
/// checks. They also bound the queued lines of all clients.
const MOST_OPEN: usize = 64;
const MOST_OPEN_BYTES: usize = 4 << 20;

/// A line that is always delivered.
#[derive(Debug)]
struct MailboxLine {
    text: Arc<str>,
    /// True if it answers a command, which is open until the client has read the line.
    is_answer: bool,
}

#[derive(Debug, Default)]
struct MailboxState {
    lines: VecDeque<MailboxLine>,
    /// The newest state of the campaign, which replaces older ones.
    stats: Option<Arc<str>>,
    /// Lengths of the open commands, oldest first.
    open: VecDeque<usize>,
    /// True if no more lines will be added.
    closed: bool,
    /// True if the reader is gone.
    gone: bool,
}

impl MailboxState {
    /// Returns true if there is room for one more command of this size. A single command may have any
    /// size.
    fn has_room(&self, bytes: usize) -> bool {
        let open: usize = self.open.iter().sum();
        self.open.is_empty() || (self.open.len() < MOST_OPEN && open + bytes <= MOST_OPEN_BYTES)
    }
}

/// Shared by the campaign, which only adds lines, and the two threads of a client.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<MailboxState>,
    changed: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut MailboxState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Adds a line that must be delivered, such as a find.
    pub(super) fn put(&self, text: Arc<str>) {
        self.put_line(MailboxLine { text, is_answer: false });
    }

    pub(super) fn answer(&self, text: Arc<str>) {
        self.put_line(MailboxLine { text, is_answer: true });
    }

    fn put_line(&self, line: MailboxLine) {
        self.change(|state| {
            if !state.closed && !state.gone {
                state.lines.push_back(line);
            }
        });
    }

    pub(super) fn put_stats(&self, text: Arc<str>) {
        self.change(|state| state.stats = Some(text).filter(|_| !state.closed && !state.gone));
    }

    /// Closes the mailbox. Lines already in it are still delivered.
    pub(super) fn close(&self) {
        self.change(|state| {
            state.closed = true;
            state.stats = None;
        });
    }

    /// Discards all lines, because the reader is gone.
    pub(super) fn abandon(&self) {
        self.change(|state| {
            state.gone = true;
            state.lines.clear();
            state.stats = None;
        });
    }

    /// Waits for room for a command of this size; false if the mailbox is closed.
    pub(super) fn admit(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        loop {
            if state.closed || state.gone {
                return false;
            }
            if state.has_room(bytes) {
                state.open.push_back(bytes);
                return true;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Passes lines to `write` until the mailbox is closed and empty, or `write` returns false
    /// because the reader is gone.
    pub(super) fn deliver(&self, mut write: impl FnMut(&str) -> bool) {
        while let Some(line) = self.take() {
            if !write(&line.text) {
                return self.abandon();
            }
            if line.is_answer {
                self.change(|state| {
                    state.open.pop_front();
                });
            }
        }
    }

    fn take(&self) -> Option<MailboxLine> {
        let mut state = self.lock();
        loop {
            if state.gone {
                return None;
            }
            if let Some(line) = state.lines.pop_front() {
                return Some(line);
            }
            if let Some(text) = state.stats.take() {
                return Some(MailboxLine { text, is_answer: false });
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn read(mailbox: &Mailbox) -> Vec<String> {
        let mut read = Vec::new();
        mailbox.deliver(|line| {
            read.push(line.to_owned());
            true
        });
        read
    }

    #[test]
    fn states_replace_each_other_and_finds_do_not() {
        let mailbox = Mailbox::default();
        for number in 0..3 {
            mailbox.put_stats(format!("stats {number}").into());
            mailbox.put(format!("find {number}").into());
        }
        let mut read = Vec::new();
        mailbox.deliver(|line| {
            read.push(line.to_owned());
            if read.len() == 4 {
                mailbox.put("last".into());
                mailbox.put_stats("too late".into());
                mailbox.close();
            }
            true
        });
        assert_eq!(read, ["find 0", "find 1", "find 2", "stats 2", "last"]);
        mailbox.put("nothing".into());
        mailbox.put_stats("nothing".into());
        assert!(self::read(&mailbox).is_empty());
        assert!(!mailbox.admit(1));
    }

    #[test]
    fn one_that_does_not_read_answers_is_not_listened_to() {
        let mailbox = Mailbox::default();
        assert!((0..MOST_OPEN).all(|_| mailbox.admit(1)));
        assert!(!mailbox.lock().has_room(1));
        (0..MOST_OPEN).for_each(|_| mailbox.answer("ok".into()));
        // An answered command counts until its answer was read.
        assert!(!mailbox.lock().has_room(1));
        thread::scope(|scope| {
            let next = scope.spawn(|| mailbox.admit(1));
            let reader = scope.spawn(|| read(&mailbox));
            assert!(next.join().unwrap());
            mailbox.close();
            assert_eq!(reader.join().unwrap().len(), MOST_OPEN);
        });
        let mailbox = Mailbox::default();
        assert!(mailbox.admit(MOST_OPEN_BYTES + 1));
        assert!(!mailbox.lock().has_room(1));
        thread::scope(|scope| {
            let next = scope.spawn(|| mailbox.admit(1));
            mailbox.abandon();
            assert!(!next.join().unwrap());
        });
    }

    #[test]
    fn of_a_client_that_is_gone_nothing_is_kept() {
        let mailbox = Mailbox::default();
        mailbox.put("a".into());
        mailbox.put("b".into());
        let mut read = 0;
        mailbox.deliver(|_| {
            read += 1;
            false
        });
        mailbox.put("c".into());
        assert_eq!((read, mailbox.lock().lines.len()), (1, 0));
        assert!(!mailbox.admit(1));
    }
}
