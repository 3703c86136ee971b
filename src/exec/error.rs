//! Why a target cannot be run: one line with the cause, one with the remedy.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use super::emulator::EmulatorError;
use super::native::NativeError;
use super::net::StandInError;
use super::preload::PreloadError;
use ffuzz_engine::domain::RecordError;
use ffuzz_engine::executor::RunError;
use ffuzz_inspect::binary::{Kin, ProgramError};
use ffuzz_sys::file;
use ffuzz_sys::remedy;

const REBUILD: &str = "rebuild the target with ffuzz-cc; AFL_DEBUG_CHILD=1 shows its output";

/// Why a target cannot be started, or cannot continue.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TargetError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Program(#[from] ProgramError),
    #[error("the target {path:?} is not instrumented")]
    #[diagnostic(help("{}", how_to_instrument(*kin)))]
    NotInstrumented { path: PathBuf, kin: Kin },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Native(#[from] NativeError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Emulator(#[from] EmulatorError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Preload(#[from] PreloadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    StandIn(#[from] StandInError),
    #[error("the target's program loader {loader:?} does not exist")]
    #[diagnostic(help("install that loader, or link the target statically"))]
    NoLoader { loader: PathBuf },
    #[error("there is no /dev/null, which the target gets for its output")]
    #[diagnostic(help("mount /dev in the container or chroot, or: mknod -m 666 /dev/null c 1 3"))]
    NoNull,
    #[error("cannot start the target {path:?}: {source}")]
    #[diagnostic(help("{}", how_to_start(source)))]
    Start { path: PathBuf, source: io::Error },
    #[error("tracing works with breakpoints, which are known for x86-64 alone")]
    #[diagnostic(help("run this command on an x86-64 machine"))]
    NoTracing,
    #[error("the target cannot be traced: {source}")]
    #[diagnostic(help(
        "leave the debugger or strace that follows this command; a container needs the permission \
         to use ptrace (--cap-add=SYS_PTRACE)"
    ))]
    NotTraceable { source: io::Error },
    #[error("the target ended before its fork server was up ({how})")]
    #[diagnostic(help("{}", why_it_died(*memory_limit, *deferred, *addresses)))]
    DiedAtStart {
        how: String,
        memory_limit: Option<u64>,
        deferred: bool,
        /// Limit of this process on its address space (`ulimit -v`), in bytes, if the target has a sanitizer.
        addresses: Option<u64>,
    },
    #[error("the target needs shared libraries that are not found: {}", names.join(", "))]
    #[diagnostic(help(
        "install them, or name their folder: AFL_TARGET_ENV=LD_LIBRARY_PATH=/folder"
    ))]
    NoLibrary { names: Vec<String> },
    #[error("the target's fork server did not answer within {milliseconds} ms")]
    #[diagnostic(help(
        "a slow start needs AFL_FORKSRV_INIT_TMOUT (in ms); a target without fork server must be \
         built with ffuzz-cc"
    ))]
    NoHello { milliseconds: u128 },
    #[error("the target waits for input before its fork server is up")]
    #[diagnostic(help(
        "call __AFL_INIT() before anything is read, or start the target by hand to see what it \
         waits for"
    ))]
    ReadsEarly,
    #[error("the target's fork server reports an error: {meaning}")]
    Reported {
        meaning: String,
        #[help]
        remedy: &'static str,
    },
    #[error("the target uses Killerbeez's own fork server protocol")]
    #[diagnostic(help(
        "AFL_NO_FORKSRV=1 runs it without its fork server; a build with ffuzz-cc is faster"
    ))]
    Killerbeez,
    #[error("the target broke the fork server protocol: {what}")]
    #[diagnostic(help("{}", REBUILD))]
    Protocol { what: String },
    #[error("the target's domain records are unusable: {0}")]
    #[diagnostic(help("{}", REBUILD))]
    Records(#[from] RecordError),
    #[error("the target's domain maps have {keys} keys, more than the {most} that ffuzz takes")]
    #[diagnostic(help("use smaller maps: keys are taken modulo the size of a map"))]
    TooManyKeys { keys: u64, most: u64 },
    #[error("the target's channel is unusable: {what}")]
    #[diagnostic(help("{}", REBUILD))]
    Channel { what: String },
    #[error("the target logs no comparisons: it was not built with AFL_LLVM_CMPLOG=1")]
    #[diagnostic(help(
        "build it with AFL_LLVM_CMPLOG=1 afl-clang-fast; a target of ffuzz-cc needs no -c"
    ))]
    NotLogging,
    #[error("the target's comparison log has an unknown layout")]
    #[diagnostic(help("rebuild it with AFL++ 4.22 or newer, or with ffuzz-cc"))]
    LogLayout,
    #[error("the target registers other maps than at its first start ({before}, now {now})")]
    #[diagnostic(help("register the same maps in every start"))]
    Changed { before: String, now: String },
    #[error("the target's fork server dies on every input ({how})")]
    #[diagnostic(help("AFL_DEBUG_CHILD=1 shows the target's output before that"))]
    Lost { how: String },
    #[error("cannot deliver an input through {path:?}: {source}")]
    #[diagnostic(help(
        "{}",
        remedy::of_system(source, "check that the folder is writable and the disk has room")
    ))]
    Deliver { path: PathBuf, source: io::Error },
    #[error("no room left to write the input {}", path.display())]
    #[diagnostic(help("free some space"))]
    Full { path: PathBuf },
    #[error("a run was interrupted by a request to stop")]
    #[diagnostic(help("start it again"))]
    Interrupted,
    #[error("the target needs the file descriptors up to {most}, more than the limit allows")]
    #[diagnostic(help("raise it: ulimit -n {}", most + 1))]
    OpenFiles { most: i32 },
    #[error("the limit on file sizes is too small for the memory shared with the target")]
    #[diagnostic(help("raise it: ulimit -f unlimited"))]
    FileSize,
    #[error("cannot start a thread: {source}")]
    #[diagnostic(help("raise the limit on processes (ulimit -u)"))]
    Thread { source: io::Error },
    #[error("cannot get shared memory of {bytes} bytes: {source}")]
    #[diagnostic(help("{}", how_to_get_memory(source)))]
    Memory { bytes: usize, source: io::Error },
}

impl From<TargetError> for RunError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Full { .. } => Self::Full { cause: error.to_string() },
            TargetError::Interrupted => Self::Interrupted,
            TargetError::Deliver { ref source, .. }
            | TargetError::Start { ref source, .. }
            | TargetError::Memory { ref source, .. }
            | TargetError::Thread { ref source }
                if is_shortage(source) =>
            {
                Self::Passing(Box::new(error))
            }
            error => Self::Failed(Box::new(error)),
        }
    }
}

/// Returns true if memory, descriptors or processes may be short only for a moment.
fn is_shortage(error: &io::Error) -> bool {
    file::may_pass(error) || error.kind() == io::ErrorKind::WouldBlock
}

fn how_to_instrument(kin: Kin) -> &'static str {
    match kin {
        Kin::Plain => {
            "build it, or a library of it, with ffuzz-cc (CC=ffuzz-cc ./configure && make; \
             AFL_PRELOAD=FILE if it loads that library later); -Q fuzzes it as it is"
        }
        Kin::LibFuzzer => {
            "it is a harness for libFuzzer: compile and link it with ffuzz-c++ -fsanitize=fuzzer \
             instead of clang++"
        }
        Kin::Python => {
            "Python itself is not: a script with a fork server of its own (python-afl: import afl; \
             afl.init()) runs with AFL_SKIP_BIN_CHECK=1; -n fuzzes without coverage"
        }
        Kin::Go => {
            "a Go program: write a harness, build it with go build -buildmode=c-archive \
             -tags=libfuzzer -gcflags=all=-d=libfuzzer, and link the archive with ffuzz-cc \
             -fsanitize=fuzzer; -n fuzzes without coverage"
        }
    }
}

fn how_to_start(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ExecutableFileBusy => "wait until its build is done",
        _ => remedy::of_system(error, "start the target by hand and read its output"),
    }
}

fn why_it_died(memory_limit: Option<u64>, deferred: bool, addresses: Option<u64>) -> String {
    if let Some(bytes) = addresses {
        return format!(
            "a sanitizer reserves terabytes of addresses, and ulimit -v allows {} MB: ulimit -v \
             unlimited",
            bytes >> 20
        );
    }
    match memory_limit {
        Some(bytes) => format!(
            "its memory limit is {} MB: try -m none; AFL_DEBUG_CHILD=1 shows its output",
            bytes >> 20
        ),
        None if deferred => {
            "it must reach __AFL_INIT() without any input; AFL_DEBUG_CHILD=1 shows its output"
                .into()
        }
        None => "start it by hand; AFL_DEBUG_CHILD=1 shows its output".into(),
    }
}

fn how_to_get_memory(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        // Codes with which shmget reports its limits.
        Some(libc::EINVAL | libc::ENOSPC) => {
            "the system's limits are too low: see ipcs -lm, raise kernel.shmmax, kernel.shmall or \
             kernel.shmmni"
        }
        Some(libc::ENOMEM) => "free memory or raise ulimit -v; a smaller AFL_MAP_SIZE needs less",
        _ => remedy::of_system(
            error,
            "free memory or raise ulimit -v; a smaller AFL_MAP_SIZE needs less",
        ),
    }
}
