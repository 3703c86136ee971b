//! How an input reaches the target: through its stdin, a file, or shared memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{MAX_INPUT, TargetError};
use crate::sys::memory::SharedMap;

/// One way to hand over inputs.
#[derive(Debug)]
pub enum Delivery {
    /// An anonymous file that is the target's descriptor 0, rewritten in place. A file on a disk
    /// would cost a journal entry for every run, twice: a new size, and a new time of access.
    Stdin { file: File, path: PathBuf },
    /// A file that the target opens; made anew for every run unless `keep`.
    Named { path: PathBuf, keep: bool },
    /// AFL's shared-memory test case: length, then the bytes.
    Shared { map: SharedMap },
    /// Nothing: the target inherits stdin.
    Inherit,
}

impl Delivery {
    /// Makes the file behind the target's stdin; `path` becomes a link to it for whoever wants to
    /// look at the present input.
    pub fn stdin(path: &Path) -> Result<Self, TargetError> {
        let error = |source| TargetError::Deliver { path: path.into(), source };
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
            _ => {}
        }
        // Without leave to seal it, a target cannot lock us out.
        let file = memfd_create(c"ffuzz-input", MFdFlags::MFD_CLOEXEC);
        let file = File::from(file.map_err(|errno| error(errno.into()))?);
        let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        std::os::unix::fs::symlink(name, path).map_err(error)?;
        Ok(Self::Stdin { file, path: path.into() })
    }

    /// Whether the target has read from its standard input since the last delivery: the offset is shared
    /// with it. None for other ways.
    pub fn was_read(&mut self) -> Option<bool> {
        let Self::Stdin { file, .. } = self else { return None };
        file.stream_position().ok().map(|position| position > 0)
    }

    /// Puts one input in place.
    pub fn deliver(&mut self, input: &[u8]) -> Result<(), TargetError> {
        match self {
            Self::Stdin { file, path } => write_in_place(file, input)
                .map_err(|source| TargetError::Deliver { path: path.clone(), source }),
            Self::Named { path, keep } => write_named(path, *keep, input)
                .map_err(|source| TargetError::Deliver { path: path.clone(), source }),
            Self::Shared { map } => {
                let len = input.len().min(MAX_INPUT);
                let length = &mut map.words_mut(0, 1)[0];
                let before = usize::try_from(*length).unwrap_or(MAX_INPUT).min(MAX_INPUT);
                *length = u32::try_from(len).unwrap_or(u32::MAX);
                let bytes = map.bytes_mut(4, len.max(before));
                bytes[..len].copy_from_slice(&input[..len]);
                // A target that reads past the end finds nothing of the input before.
                bytes[len..].fill(0);
                Ok(())
            }
            Self::Inherit => Ok(()),
        }
    }
}

/// Where the input of a run comes from.
pub(super) enum Feed<'a> {
    Input(&'a [u8]),
    /// Somebody else hands it over: before the run, or `late`, when the process is there.
    Sent {
        late: bool,
        send: &'a mut dyn FnMut(),
    },
}

impl Feed<'_> {
    /// What has to be done before the run is ordered.
    pub(super) fn before(&mut self, delivery: &mut Delivery) -> Result<(), TargetError> {
        match self {
            Self::Input(input) => return delivery.deliver(input),
            Self::Sent { late: false, send } => send(),
            Self::Sent { late: true, .. } => {}
        }
        Ok(())
    }

    /// What has to be done once the process of the run is there.
    pub(super) fn once_started(&mut self) {
        if let Self::Sent { late: true, send } = self {
            send();
        }
    }
}

/// Rewrites an open file and rewinds it: the offset is shared with the target.
fn write_in_place(file: &mut File, input: &[u8]) -> io::Result<()> {
    file.write_all_at(input, 0)?;
    // Always: the target can write to its stdin, and may have made it longer.
    file.set_len(input.len() as u64)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(())
}

fn write_named(path: &Path, keep: bool, input: &[u8]) -> io::Result<()> {
    if keep {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        return file.write_all(input);
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn stdin_file_holds_exactly_the_last_input() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".cur_input");
        let mut delivery = Delivery::stdin(&path).unwrap();
        for input in [b"long input".as_slice(), b"short", b"", b"longer than all before"] {
            delivery.deliver(input).unwrap();
            let Delivery::Stdin { file, .. } = &mut delivery else { panic!("stdin") };
            let mut seen = Vec::new();
            file.read_to_end(&mut seen).unwrap();
            assert_eq!(seen, input);
            assert_eq!(std::fs::read(&path).unwrap(), input);
        }
    }

    #[test]
    fn named_file_is_replaced_even_if_the_target_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        let mut delivery = Delivery::Named { path: path.clone(), keep: false };
        delivery.deliver(b"one").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        delivery.deliver(b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }
}
