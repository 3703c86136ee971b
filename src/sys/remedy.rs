//! What a user can do about an error: the `help` that stands beside the message of each.

use std::io;

use miette::Diagnostic;
use nix::errno::Errno;

use crate::file::errno;

/// The second line of an error message.
pub trait Remedy {
    /// What the user can do, one line. Empty if nothing is known.
    fn remedy(&self) -> String;
}

impl<D: Diagnostic + ?Sized> Remedy for D {
    fn remedy(&self) -> String {
        self.help().map(|help| help.to_string()).unwrap_or_default()
    }
}

/// What helps with an error of the system, for any file; `otherwise` if its code says nothing.
#[must_use]
pub fn of_system(error: &io::Error, otherwise: &'static str) -> &'static str {
    match errno(error) {
        Some(Errno::EMFILE) => "raise the limit of open files: ulimit -n 4096",
        Some(Errno::ENFILE) => {
            "the machine has too many open files: sysctl fs.file-max shows the limit"
        }
        Some(Errno::EBUSY | Errno::ETXTBSY) => {
            "another program is using it: wait until that has ended"
        }
        Some(Errno::EINTR) => "a signal interrupted it: try again",
        Some(Errno::EAGAIN) => "raise the limit on processes (ulimit -u), or end some",
        Some(Errno::ENOSYS) => {
            "this kernel, or the sandbox around ffuzz (seccomp, gVisor), has no such call: allow it \
             there"
        }
        Some(Errno::ELOOP) => "remove the link: it leads in a circle, or is not followed",
        Some(Errno::EIO | Errno::EREMOTEIO) => "the disk reports errors: see dmesg",
        Some(Errno::ESTALE | Errno::ETIMEDOUT) => {
            "the network file system does not answer: mount it again"
        }
        Some(Errno::ENOMEM | Errno::ENOBUFS) => "the machine is out of memory: end other programs",
        Some(Errno::EACCES | Errno::EPERM) => "check the permissions of the file and its folder",
        Some(Errno::EROFS) => "choose a place that is writable",
        Some(Errno::ENAMETOOLONG) => "choose a shorter path",
        Some(Errno::ENOSPC) => "free some space",
        Some(Errno::EDQUOT) => "free some space, or raise the quota",
        _ => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_that_is_no_mistake_of_the_user_has_its_remedy() {
        let of = |code| of_system(&io::Error::from_raw_os_error(code), "");
        for (code, words) in [
            (libc::EMFILE, "ulimit -n"),
            (libc::ENFILE, "fs.file-max"),
            (libc::ENOMEM, "out of memory"),
            (libc::EBUSY, "another program"),
            (libc::ETXTBSY, "another program"),
            (libc::EINTR, "try again"),
            (libc::EAGAIN, "ulimit -u"),
            (libc::ENOSYS, "sandbox"),
        ] {
            assert!(of(code).contains(words), "{code}: {}", of(code));
        }
        assert_eq!(of(libc::ENOENT), "");
    }
}
