//! Pipes with 4-byte words and deadlines, as the fork server protocol uses them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, ppoll};
use nix::sys::time::TimeSpec;

use super::alarm::Alarm;
use super::stop::Leave;

/// Number of bytes of one read.
const BUFFER: usize = 64;

/// Interval at which a wait that can be left is interrupted to check that.
const LOOK: Duration = Duration::from_millis(100);

/// Why no word came.
#[derive(Debug)]
pub enum NoWord {
    /// The other side closed its end.
    Closed,
    Timeout,
    Failed(io::Error),
}

/// Reading end of a pipe. Words that arrived together cost one system call.
#[derive(Debug)]
pub struct WordReader {
    pipe: File,
    buffer: [u8; BUFFER],
    /// The part of the buffer that was read, but not yet taken.
    unread: Range<usize>,
}

/// Writing end of a pipe.
#[derive(Debug)]
pub struct WordWriter(File);

/// A pipe, both ends closed on exec.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?)
}

impl From<OwnedFd> for WordReader {
    fn from(fd: OwnedFd) -> Self {
        Self { pipe: fd.into(), buffer: [0; BUFFER], unread: 0..0 }
    }
}

impl From<OwnedFd> for WordWriter {
    fn from(fd: OwnedFd) -> Self {
        Self(fd.into())
    }
}

impl WordReader {
    /// Reads one word; waits at most `timeout`.
    pub fn read(&mut self, timeout: Duration) -> Result<u32, NoWord> {
        let mut word = [0; 4];
        self.fill(&mut word, timeout, &mut Leave::default())?;
        Ok(u32::from_ne_bytes(word))
    }

    /// The same for very frequent reads: the alarm is set already, which saves the polls.
    pub fn read_until(&mut self, alarm: &Alarm) -> Result<u32, NoWord> {
        let mut word = [0; 4];
        let mut done = self.take(&mut word);
        while done < word.len() {
            match self.pipe.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if alarm.is_due() {
                        return Err(NoWord::Timeout);
                    }
                }
                result => self.received(result)?,
            }
            done += self.take(&mut word[done..]);
        }
        Ok(u32::from_ne_bytes(word))
    }

    /// Fills `wanted`; waits at most `timeout` in all, and not longer than `leave` permits.
    pub fn fill(
        &mut self,
        wanted: &mut [u8],
        timeout: Duration,
        leave: &mut Leave,
    ) -> Result<(), NoWord> {
        let mut done = self.take(wanted);
        let mut left = timeout;
        let mut deadline = None;
        while done < wanted.len() {
            self.wait(left, leave)?;
            match self.pipe.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => self.received(result)?,
            }
            done += self.take(&mut wanted[done..]);
            if done < wanted.len() {
                // Few messages of this protocol are longer than the buffer.
                let end = *deadline.get_or_insert_with(|| Instant::now() + timeout);
                left = end.saturating_duration_since(Instant::now());
            }
        }
        Ok(())
    }

    fn received(&mut self, result: io::Result<usize>) -> Result<(), NoWord> {
        match result {
            Ok(0) => Err(NoWord::Closed),
            Ok(n) => {
                self.unread = 0..n;
                Ok(())
            }
            Err(error) => Err(NoWord::Failed(error)),
        }
    }

    /// Moves what is in the buffer to `wanted`, as far as there is room, and returns how much.
    fn take(&mut self, wanted: &mut [u8]) -> usize {
        let n = self.unread.len().min(wanted.len());
        wanted[..n].copy_from_slice(&self.buffer[self.unread.start..][..n]);
        self.unread.start += n;
        n
    }

    fn wait(&self, timeout: Duration, leave: &mut Leave) -> Result<(), NoWord> {
        let mut left = timeout;
        // Without a need for slices, the clock is read for the rare interruption only.
        let sliced = leave.can_be_asked();
        let mut deadline = sliced.then(|| Instant::now() + timeout);
        loop {
            let slice = if sliced { left.min(LOOK) } else { left };
            let mut fds = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(slice)), None) {
                Ok(0) if slice == left || leave.is_due() => return Err(NoWord::Timeout),
                Ok(0) | Err(nix::errno::Errno::EINTR) => {
                    let end = *deadline.get_or_insert_with(|| Instant::now() + timeout);
                    left = end.saturating_duration_since(Instant::now());
                }
                Ok(_) => return Ok(()),
                Err(errno) => return Err(NoWord::Failed(errno.into())),
            }
        }
    }

    /// True if a word is waiting or the other side has closed the pipe.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut fds = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let poll = |fds: &mut _| matches!(nix::poll::poll(fds, PollTimeout::ZERO), Ok(n) if n > 0);
        !self.unread.is_empty() || poll(&mut fds)
    }
}

impl WordWriter {
    /// Writes one word. A closed pipe is an error, never a signal (Rust ignores SIGPIPE).
    pub fn write(&mut self, word: u32) -> io::Result<()> {
        self.0.write_all(&word.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopRequest;
    use std::sync::Arc;

    #[test]
    fn a_word_arrives_and_a_missing_one_times_out() {
        let (reader, writer) = pipe().unwrap();
        let (mut reader, mut writer) = (WordReader::from(reader), WordWriter::from(writer));
        writer.write(0x8000_0001).unwrap();
        assert_eq!(reader.read(Duration::from_secs(1)).unwrap(), 0x8000_0001);
        assert!(matches!(reader.read(Duration::from_millis(5)), Err(NoWord::Timeout)));
        writer.write(1).unwrap();
        writer.write(2).unwrap();
        assert!(reader.is_ready());
        assert_eq!(reader.read(Duration::from_secs(1)).unwrap(), 1);
        assert!(reader.is_ready());
        assert_eq!(reader.read(Duration::from_secs(1)).unwrap(), 2);
        assert!(!reader.is_ready());
        drop(writer);
        assert!(matches!(reader.read(Duration::from_secs(1)), Err(NoWord::Closed)));
    }

    #[test]
    fn a_long_message_is_put_together() {
        let (reader, writer) = pipe().unwrap();
        let (mut reader, mut writer) = (WordReader::from(reader), WordWriter::from(writer));
        for word in 0..100 {
            writer.write(word).unwrap();
        }
        let mut rest = [0; 4 * 99];
        assert_eq!(reader.read(Duration::from_secs(1)).unwrap(), 0);
        reader.fill(&mut rest, Duration::from_secs(1), &mut Leave::default()).unwrap();
        let words = rest.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
        assert!(words.eq(1..100));
    }
    #[test]
    fn a_wait_is_left_on_request() {
        let (reader, _writer) = pipe().unwrap();
        let mut leave = Leave::from(Some(Arc::new(|| true) as StopRequest));
        let hour = Duration::from_secs(3600);
        let result = WordReader::from(reader).fill(&mut [0; 4], hour, &mut leave);
        assert!(matches!(result, Err(NoWord::Timeout)));
    }
}
