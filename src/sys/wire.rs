//! Pipes with 4-byte words and deadlines, as the fork server protocol uses them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, ppoll};
use nix::sys::time::TimeSpec;

/// Why no word came.
#[derive(Debug)]
pub enum NoWord {
    /// The other side closed its end.
    Closed,
    Timeout,
    Failed(io::Error),
}

/// Reading end of a pipe.
#[derive(Debug)]
pub struct WordReader(File);

/// Writing end of a pipe.
#[derive(Debug)]
pub struct WordWriter(File);

/// A pipe, both ends closed on exec.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?)
}

impl From<OwnedFd> for WordReader {
    fn from(fd: OwnedFd) -> Self {
        Self(fd.into())
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
        self.fill(&mut word, timeout)?;
        Ok(u32::from_ne_bytes(word))
    }

    /// Fills `buffer`; waits at most `timeout` in all.
    pub fn fill(&mut self, buffer: &mut [u8], timeout: Duration) -> Result<(), NoWord> {
        let mut done = 0;
        let mut left = timeout;
        let mut deadline = None;
        while done < buffer.len() {
            self.wait(left)?;
            match self.0.read(&mut buffer[done..]) {
                Ok(0) => return Err(NoWord::Closed),
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NoWord::Failed(error)),
            }
            if done < buffer.len() {
                // Messages of this protocol arrive whole; only a broken peer gets here.
                let end = *deadline.get_or_insert_with(|| Instant::now() + timeout);
                left = end.saturating_duration_since(Instant::now());
            }
        }
        Ok(())
    }

    fn wait(&self, timeout: Duration) -> Result<(), NoWord> {
        let deadline = Instant::now().checked_add(timeout);
        let mut left = timeout;
        loop {
            let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None) {
                Ok(0) => return Err(NoWord::Timeout),
                Ok(_) => return Ok(()),
                Err(nix::errno::Errno::EINTR) => {
                    let now = Instant::now();
                    left = deadline.map_or(timeout, |end| end.saturating_duration_since(now));
                }
                Err(errno) => return Err(NoWord::Failed(errno.into())),
            }
        }
    }

    /// True if a word is waiting or the other side is gone.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        matches!(nix::poll::poll(&mut fds, PollTimeout::ZERO), Ok(n) if n > 0)
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

    #[test]
    fn a_word_arrives_and_a_missing_one_times_out() {
        let (reader, writer) = pipe().unwrap();
        let (mut reader, mut writer) = (WordReader::from(reader), WordWriter::from(writer));
        writer.write(0x8000_0001).unwrap();
        assert_eq!(reader.read(Duration::from_secs(1)).unwrap(), 0x8000_0001);
        assert!(matches!(reader.read(Duration::from_millis(5)), Err(NoWord::Timeout)));
        drop(writer);
        assert!(matches!(reader.read(Duration::from_secs(1)), Err(NoWord::Closed)));
    }
}
