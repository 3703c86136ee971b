//! Errors of programs without instrumentation that cannot be fuzzed with breakpoints.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

/// Reason why `-Q` cannot run a program.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum NativeError {
    #[error("-Q is for programs without instrumentation, and this one is instrumented")]
    #[diagnostic(help("leave -Q out"))]
    Instrumented,
    #[error("breakpoints are for programs for x86-64 with 64 bits")]
    #[diagnostic(help("omit --native: QEMU runs the target then"))]
    Machine,
    #[error("breakpoints need a library in the target, which is linked statically")]
    #[diagnostic(help("omit --native: QEMU runs the target then"))]
    Static,
    #[error("breakpoints need a library of glibc in the target, which is linked with {0}")]
    #[diagnostic(help("omit --native: QEMU runs the target then"))]
    OtherLibc(&'static str),
    #[error("--guard-heap replaces the heap of libc, and the target has that of a sanitizer")]
    #[diagnostic(help("omit --guard-heap: the sanitizer finds more"))]
    HeapOfSanitizer,
    #[error("--guard-heap loads a library into the target, which is linked statically")]
    #[diagnostic(help("link it dynamically, or build it with AFL_USE_ASAN=1"))]
    HeapOfStatic,
    #[error("--guard-heap loads a library of glibc into the target, which is linked with {0}")]
    #[diagnostic(help("link it with glibc, or build it with AFL_USE_ASAN=1"))]
    HeapOfOtherLibc(&'static str),
    #[error(
        "breakpoints and forks need a program that has no threads before main, and Go's runtime starts some"
    )]
    #[diagnostic(help("omit --native: QEMU runs the target then"))]
    Go,
    #[error("-Q loads a library into the target, which runs as another user (setuid or setgid)")]
    #[diagnostic(help("fuzz a copy of it without that mode bit"))]
    SetUser,
    #[error("-Q finds no code in the target: it has no .eh_frame, or is packed")]
    #[diagnostic(help("--modules all adds its libraries; without --native, QEMU runs it"))]
    NoBlocks,
    #[error("--modules names none of the target's files")]
    #[diagnostic(help("they are {}; AFL_PRELOAD adds one that is loaded when it runs", names.join(", ")))]
    NoSuchModule { names: Vec<String> },
    #[error("{path:?} has changed since the start of the campaign, and its blocks with it")]
    #[diagnostic(help("start again: with -i - the queue is run in the new file"))]
    Changed { path: PathBuf },
    #[error("cannot read {path:?}: {source}")]
    #[diagnostic(help("check the file and its permissions"))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "the target ended before main: it is not started by the C library, or ignores LD_PRELOAD ({how})"
    )]
    #[diagnostic(help(
        "start it by hand; AFL_DEBUG_CHILD=1 shows its output; -n fuzzes it without coverage"
    ))]
    NoStart { how: String },
    #[error(
        "a system call filter (seccomp) kills the target before main, where -Q makes its code writable (mprotect)"
    )]
    #[diagnostic(help(
        "start ffuzz without that filter; if the target sets it by itself, --qemu runs it without \
         breakpoints"
    ))]
    Filtered,
}

impl NativeError {
    /// Reason to use an emulator; None if the error also applies to emulators.
    pub(crate) fn calls_for_emulator(&self) -> Option<&'static str> {
        match self {
            Self::Machine => Some("it is no program for x86-64 with 64 bits"),
            Self::Static => Some("it is linked statically"),
            Self::OtherLibc(_) => Some("it is not linked with glibc"),
            Self::Go => Some("Go's runtime starts threads before main"),
            Self::SetUser => Some("it runs as another user (setuid or setgid)"),
            Self::NoBlocks => {
                Some("most of its code is not found: it has no .eh_frame, or is packed")
            }
            _ => None,
        }
    }
}
