//! Why a program without instrumentation cannot be fuzzed with breakpoints.

use std::io;
use std::path::PathBuf;

/// The cause; see [`NativeError::remedy`].
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    #[error("-Q is for programs without instrumentation, and this one is instrumented")]
    Instrumented,
    #[error("breakpoints are for programs for x86-64 with 64 bits")]
    Machine,
    #[error("breakpoints need a library in the target, which is linked statically")]
    Static,
    #[error("--guard-heap replaces the heap of libc, and the target has that of a sanitizer")]
    HeapOfSanitizer,
    #[error("--guard-heap loads a library into the target, which is linked statically")]
    HeapOfStatic,
    #[error("-Q sets breakpoints, and Go's runtime takes their signal (SIGTRAP) for itself")]
    Go,
    #[error("-Q loads a library into the target, which runs as another user (setuid or setgid)")]
    SetUser,
    #[error("-Q finds no code in the target: it has no .eh_frame, or is packed")]
    NoBlocks,
    #[error("--modules names none of the target's files")]
    NoSuchModule { names: Vec<String> },
    #[error("{path:?} has changed since the start of the campaign, and its blocks with it")]
    Changed { path: PathBuf },
    #[error("cannot read {path:?}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "the target ended before main: it is not started by the C library, or ignores LD_PRELOAD ({how})"
    )]
    NoStart { how: String },
    #[error(
        "a system call filter (seccomp) kills the target before main, where -Q makes its code writable (mprotect)"
    )]
    Filtered,
}

impl NativeError {
    /// Why the target needs an emulator, if that is no obstacle for one.
    pub(crate) fn calls_for_emulator(&self) -> Option<&'static str> {
        match self {
            Self::Machine => Some("it is no program for x86-64 with 64 bits"),
            Self::Static => Some("it is linked statically"),
            Self::SetUser => Some("it runs as another user (setuid or setgid)"),
            Self::NoBlocks => Some("no code is found in it: it has no .eh_frame, or is packed"),
            _ => None,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Instrumented => "leave -Q out".into(),
            Self::HeapOfSanitizer => "leave --guard-heap out: the sanitizer finds more".into(),
            Self::HeapOfStatic => "link it dynamically, or build it with AFL_USE_ASAN=1".into(),
            Self::Go => "build it with ffuzz-cc; -n fuzzes it without coverage".into(),
            Self::Machine | Self::Static => "leave --native out: QEMU runs the target then".into(),
            Self::SetUser => "fuzz a copy of it without that mode bit".into(),
            Self::NoBlocks => "--modules all adds its libraries; without --native, QEMU runs it".into(),
            Self::NoSuchModule { names } => format!("they are {}", names.join(", ")),
            Self::Changed { .. } => "start again: with -i - the queue is run in the new file".into(),
            Self::Unreadable { .. } => "check the file and its permissions".into(),
            Self::Filtered => "start ffuzz without that filter; if the target sets it by itself, --qemu runs it without breakpoints".into(),
            Self::NoStart { .. } => {
                "start it by hand; AFL_DEBUG_CHILD=1 shows its output; -n fuzzes it without coverage"
                    .into()
            }
        }
    }
}
