//! Running targets, and observing runs.
//!
//! [`ForkServer`] implements all versions of AFL's fork server protocol and, through it, offers the channel
//! (`runtime/channel.h`). [`Direct`] starts one process per run. Both implement [`Executor`], the only interface for
//! callers.
//!
//! | mode | who | how a run is ordered |
//! |---|---|---|
//! | `exec` | no fork server | the fuzzer starts each run (`direct.rs`) |
//! | `pipe` | any AFL target | AFL's words, descriptors 198 and 199 (`forkserver/pipes.rs`, `runtime/forkserver.c`) |
//! | `fork` | `ffuzz-cc`, no loop | a word in the channel (`forkserver/batches.rs`, `runtime/runs.c`) |
//! | `snapshot` | `ffuzz-cc`, no loop | batches, restored each time (`forkserver/snapshot.rs`, `runtime/snapshot/`) |
//! | `persistent` | `ffuzz-cc`, a loop | the child waits for the next input, the fork server for the end of the child |
//! | `batch` | the same, inputs in shared memory | up to 256 inputs at once |
//!
//! [`Executor::run`] takes a batch in every mode. If a mode cannot be used, the reason is reported once
//! (`forkserver/notes.rs`) and the next slower mode is used.

mod blocked;
mod channel;
mod cmplog;
pub mod delivery;
mod direct;
mod emulator;
mod error;
pub mod evidence;
mod forkserver;
mod fresh;
mod handshake;
mod hooked;
mod late;
mod launcher;
mod maps;
mod mutator;
mod native;
pub mod net;
mod preload;
mod ready;
mod replay;
mod runs;
mod scratch;
mod seen;
pub mod trace;
mod way;

pub use direct::Direct;
pub use emulator::{EmulatorError, Trail};
pub use error::TargetError;
pub use forkserver::ForkServer;
pub use fresh::{Ended, Fresh, FreshOptions};
pub use hooked::Hooked;
pub use launcher::{InputFrom, Setup, end_abandoned};
pub use mutator::HarnessMutator;
pub use native::NativeError;
pub use preload::PreloadError;
pub use ready::{Ready, ReadyOptions};
pub use replay::{REPLAY, REPLAY_FILE, Replay, files as files_before};
pub use scratch::Scratch;
pub use seen::RunResult;

use std::time::Duration;

use ffuzz_config::options::TargetOptions;
use ffuzz_engine::executor::{Executor, ExitKind};

/// Method of starting runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Engine {
    /// One process of the target forks the others, or runs many inputs.
    ForkServer,
    /// The fuzzer starts a process for each run.
    Direct,
}

impl Engine {
    /// Engine that these options select.
    #[must_use]
    pub fn of(options: &TargetOptions) -> Self {
        let blind = options.non_instrumented && !options.blind_fork_server;
        if blind || options.no_fork_server { Self::Direct } else { Self::ForkServer }
    }
}

/// Starts the target with the engine that its options select. `timeout` is that of a run.
pub fn open(setup: Setup, timeout: Duration) -> Result<Box<dyn Executor>, TargetError> {
    Ok(match Engine::of(&setup.options) {
        Engine::ForkServer => Box::new(ForkServer::start(setup, timeout)?),
        Engine::Direct => Box::new(Direct::new(setup, timeout)?),
    })
}

/// The outcome of a run without its maps.
#[derive(Clone, Copy, Debug)]
struct RunEnd {
    exit: ExitKind,
    duration: Duration,
}

/// Converts a raw wait status. `killed`: the process exceeded the timeout.
fn exit_kind(status: i32, killed: bool, is_crash_code: impl Fn(u8) -> bool) -> ExitKind {
    if killed {
        return ExitKind::Hang;
    }
    if libc::WIFSIGNALED(status) {
        return match libc::WTERMSIG(status) {
            libc::SIGKILL => ExitKind::Oom,
            signal => ExitKind::Crash { signal },
        };
    }
    let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
    if libc::WIFEXITED(status) && is_crash_code(code) {
        return ExitKind::Crash { signal: 0 };
    }
    ExitKind::Ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_have_afls_meaning() {
        let kind = |status| exit_kind(status, false, |code| code == 86);
        assert_eq!(kind(0), ExitKind::Ok);
        assert_eq!(kind(0x500), ExitKind::Ok);
        assert_eq!(kind(86 << 8), ExitKind::Crash { signal: 0 });
        assert_eq!(kind(11), ExitKind::Crash { signal: 11 });
        assert_eq!(kind(6 | 0x80), ExitKind::Crash { signal: 6 });
        assert_eq!(kind(9), ExitKind::Oom);
        assert_eq!(kind(0x137f), ExitKind::Ok);
        assert_eq!(exit_kind(9, true, |_| false), ExitKind::Hang);
    }
}
