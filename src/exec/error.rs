//! Why a target cannot be run: one line with the cause, one with the remedy.

use std::io;
use std::path::PathBuf;

use super::binary::Kin;
use super::emulator::EmulatorError;
use super::native::NativeError;
use super::preload::PreloadError;
use ffuzz_engine::domain::RecordError;
use ffuzz_engine::executor::{Failure, RunError};
use ffuzz_sys::file;

/// Why a target cannot be started, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("cannot find the target {program:?}")]
    NotFound { program: PathBuf },
    #[error("cannot read the target {path:?}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the target {path:?} is not an executable file")]
    NotExecutable { path: PathBuf },
    #[error("the target {path:?} is a script, not a program")]
    Script { path: PathBuf },
    #[error("the target {path:?} is {what}, not a program")]
    NotProgram { path: PathBuf, what: &'static str },
    #[error("the target {path:?} is built for {found}, this machine runs {host}")]
    Architecture { path: PathBuf, found: String, host: &'static str },
    #[error("the target {path:?} is not instrumented")]
    NotInstrumented { path: PathBuf, kin: Kin },
    #[error(transparent)]
    Native(#[from] NativeError),
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    #[error(transparent)]
    Preload(#[from] PreloadError),
    #[error("the target's program loader {loader:?} does not exist")]
    NoLoader { loader: PathBuf },
    #[error("cannot start the target {path:?}: {source}")]
    Start { path: PathBuf, source: io::Error },
    #[error("tracing works with breakpoints, which are known for x86-64 alone")]
    NoTracing,
    #[error("the target cannot be traced: {source}")]
    NotTraceable { source: io::Error },
    #[error("the target ended before its fork server was up ({how})")]
    DiedAtStart { how: String, memory_limit: Option<u64>, deferred: bool },
    #[error("the target needs shared libraries that are not found: {}", names.join(", "))]
    NoLibrary { names: Vec<String> },
    #[error("the target's fork server did not answer within {milliseconds} ms")]
    NoHello { milliseconds: u128 },
    #[error("the target waits for input before its fork server is up")]
    ReadsEarly,
    #[error("the target's fork server reports an error: {meaning}")]
    Reported { meaning: String, remedy: &'static str },
    #[error("the target uses Killerbeez's own fork server protocol")]
    Killerbeez,
    #[error("the target broke the fork server protocol: {what}")]
    Protocol { what: String },
    #[error("the target's domain records are unusable: {0}")]
    Records(#[from] RecordError),
    #[error("the target's domain maps have {keys} keys, more than the {most} that ffuzz takes")]
    TooManyKeys { keys: u64, most: u64 },
    #[error("the target's channel is unusable: {what}")]
    Channel { what: String },
    #[error("the target logs no comparisons: it was not built with AFL_LLVM_CMPLOG=1")]
    NotLogging,
    #[error("the target's comparison log has an unknown layout")]
    LogLayout,
    #[error("the target registers other maps than at its first start ({before}, now {now})")]
    Changed { before: String, now: String },
    #[error("the target's fork server dies with every input ({how})")]
    Lost { how: String },
    #[error("cannot deliver an input through {path:?}: {source}")]
    Deliver { path: PathBuf, source: io::Error },
    #[error("no room left to write the input {}", path.display())]
    Full { path: PathBuf },
    #[error("a run was interrupted by a request to stop")]
    Interrupted,
    #[error("the target needs the file descriptors up to {most}, more than the limit allows")]
    OpenFiles { most: i32 },
    #[error("the limit on file sizes is too small for the memory shared with the target")]
    FileSize,
    #[error("cannot start a thread: {source}")]
    Thread { source: io::Error },
    #[error("cannot get shared memory of {bytes} bytes: {source}")]
    Memory { bytes: usize, source: io::Error },
}

impl From<TargetError> for RunError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Full { .. } => Self::Full { cause: error.to_string() },
            TargetError::Interrupted => Self::Interrupted,
            TargetError::Deliver { ref source, .. } if file::may_pass(source) => {
                Self::Passing(Box::new(error))
            }
            error => Self::Failed(Box::new(error)),
        }
    }
}

impl Failure for TargetError {
    fn remedy(&self) -> String {
        Self::remedy(self)
    }
}

impl TargetError {
    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotFound { .. } => "give its path, for example ./target".into(),
            Self::Unreadable { .. } => "check the file and its permissions".into(),
            Self::NotExecutable { path } => format!("chmod +x {}", path.display()),
            Self::Script { .. } => {
                "name the program that the script starts; without -Q, AFL_SKIP_BIN_CHECK=1 \
                                    runs the script anyway"
                    .into()
            }
            Self::NotProgram { .. } => {
                "name a Linux program; AFL_SKIP_BIN_CHECK=1 tries it anyway".into()
            }
            Self::Architecture { .. } => "build the target for this machine".into(),
            Self::NotInstrumented { kin, .. } => match kin {
                Kin::Plain => {
                    "build it, or a library of it, with ffuzz-cc (CC=ffuzz-cc ./configure && make; \
                     AFL_PRELOAD=FILE if it loads that library later); -Q fuzzes it as it is"
                }
                Kin::LibFuzzer => {
                    "it is a harness for libFuzzer: compile and link it with \
                                   ffuzz-c++ -fsanitize=fuzzer instead of clang++"
                }
                Kin::Python => {
                    "Python itself is not: a script with a fork server of its own \
                                (python-afl: import afl; afl.init()) runs with \
                                AFL_SKIP_BIN_CHECK=1; -n fuzzes without coverage"
                }
                Kin::Go => {
                    "a Go program: write a harness, build it with go build \
                            -buildmode=c-archive -gcflags=all=-d=libfuzzer, and link the archive \
                            with ffuzz-cc -fsanitize=fuzzer; -n fuzzes without coverage"
                }
            }
            .into(),
            Self::Native(error) => error.remedy(),
            Self::Emulator(error) => error.remedy().into(),
            Self::Preload(error) => error.remedy().into(),
            Self::NoLoader { .. } => "install that loader, or link the target statically".into(),
            Self::Start { source, .. } => match source.kind() {
                io::ErrorKind::WouldBlock => "raise the limit on processes (ulimit -u)".into(),
                io::ErrorKind::ExecutableFileBusy => "wait until its build is done".into(),
                _ => "start the target by hand and read its output".into(),
            },
            Self::NoTracing => "run this command on an x86-64 machine".into(),
            Self::NotTraceable { .. } => {
                "leave the debugger or strace that follows this command; a \
                                          container needs the permission to use ptrace \
                                          (--cap-add=SYS_PTRACE)"
                    .into()
            }
            Self::DiedAtStart { memory_limit: Some(bytes), .. } => format!(
                "its memory limit is {} MB: try -m none; AFL_DEBUG_CHILD=1 shows its output",
                bytes >> 20
            ),
            Self::DiedAtStart { deferred: true, .. } => "it must reach __AFL_INIT() without any \
                                                         input; AFL_DEBUG_CHILD=1 shows its output"
                .into(),
            Self::DiedAtStart { .. } => {
                "start it by hand; AFL_DEBUG_CHILD=1 shows its output".into()
            }
            Self::NoLibrary { .. } => "install them, or name their folder: \
                                       AFL_TARGET_ENV=LD_LIBRARY_PATH=/folder"
                .into(),
            Self::ReadsEarly => "call __AFL_INIT() before anything is read, or start the target \
                                 by hand to see what it waits for"
                .into(),
            Self::NoHello { .. } => "a slow start needs AFL_FORKSRV_INIT_TMOUT (in ms); a target \
                                     without fork server must be built with ffuzz-cc"
                .into(),
            Self::Reported { remedy, .. } => (*remedy).into(),
            Self::Killerbeez => "AFL_NO_FORKSRV=1 runs it without its fork server; a build with \
                                 ffuzz-cc is faster"
                .into(),
            Self::Protocol { .. } | Self::Records(_) | Self::Channel { .. } => {
                "rebuild the target with ffuzz-cc; AFL_DEBUG_CHILD=1 shows its output".into()
            }
            Self::TooManyKeys { .. } => {
                "use smaller maps: keys are taken modulo the size of a map".into()
            }
            Self::NotLogging => {
                "build it with AFL_LLVM_CMPLOG=1 afl-clang-fast; a target of ffuzz-cc \
                                 needs no -c"
                    .into()
            }
            Self::LogLayout => "rebuild it with AFL++ 4.22 or newer, or with ffuzz-cc".into(),
            Self::Changed { .. } => "register the same maps in every start".into(),
            Self::Lost { .. } => "AFL_DEBUG_CHILD=1 shows the target's output before that".into(),
            Self::Deliver { source, .. } => file::remedy(source)
                .unwrap_or("check that the folder is writable and the disk has room")
                .into(),
            Self::Full { .. } => "free some space".into(),
            Self::Interrupted => "start it again".into(),
            Self::OpenFiles { most } => format!("raise it: ulimit -n {}", most + 1),
            Self::FileSize => "raise it: ulimit -f unlimited".into(),
            Self::Thread { .. } => "raise the limit on processes (ulimit -u)".into(),
            Self::Memory { source, .. } => match source.raw_os_error() {
                // The codes with which shmget reports its limits.
                Some(libc::EINVAL | libc::ENOSPC) => "the system's limits are too low: see \
                                                      ipcs -lm, raise kernel.shmmax, kernel.shmall \
                                                      or kernel.shmmni"
                    .into(),
                Some(libc::EMFILE | libc::ENFILE) => "raise the limit on files: ulimit -n".into(),
                _ => "free memory or raise ulimit -v; a smaller AFL_MAP_SIZE needs less".into(),
            },
        }
    }
}
