//! Targets whose inputs come over a socket (`--net`): a library in the target stands in for the network
//! (`runtime/net/`).

mod record;
mod session;
mod transcript;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::Diagnostic;

use super::launcher::Setup;
use super::preload::{self, Preload};
use super::{Fresh, FreshOptions, TargetError};
use ffuzz_assets::NET;
use ffuzz_config::net::NetOptions;
use ffuzz_config::options::TargetOptions;
use ffuzz_engine::executor::FirstSession;
use ffuzz_inspect::binary;
use ffuzz_mutators::Mutators;
pub(super) use record::RECORD_ENV;
pub use record::{Recording, SessionError};
pub use session::{NetEvent, Session};
pub(super) use transcript::{TRANSCRIPT_ENV, TRANSCRIPT_FD, Transcript};

/// Environment variable with the value of `--net`.
const VARIABLE: &str = "FFUZZ_NET";
/// Environment variable with the expression that distinguishes answers.
const ANSWERS: &str = "FFUZZ_NET_ANSWERS";
/// Environment variable with the program to serve, so that a debugger that starts it is left alone.
const PROGRAM: &str = "FFUZZ_NET_PROGRAM";
/// Minimum time limit of the first session, because a server may start slowly.
const LEAST: Duration = Duration::from_secs(5);

/// Reason why the inputs of a program cannot come over a socket.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StandInError {
    #[error("--net loads a library into the target, which is linked statically")]
    #[diagnostic(help("link it dynamically"))]
    Static,
    #[error("--net loads a library of glibc into the target, which is linked with {0}")]
    #[diagnostic(help("link it with glibc"))]
    OtherLibc(&'static str),
    #[error("--net loads a library into the target, which runs as another user (setuid or setgid)")]
    #[diagnostic(help("fuzz a copy of it without that mode bit"))]
    SetUser,
    #[error("--net loads a library into the target, which is not for this machine's processor")]
    #[diagnostic(help("build it for this machine"))]
    Machine,
    #[error("--net does not reach into QEMU")]
    #[diagnostic(help("leave --qemu out: -Q finds edges by breakpoints"))]
    Emulated,
    #[error(
        "--net gives inputs to a socket, and the command line names a file for them (@@ or -f)"
    )]
    #[diagnostic(help("leave out @@ and -f; a file that the target needs has a fixed name"))]
    File,
}

/// The library that replaces the network in a target.
#[derive(Debug)]
pub(super) struct StandIn {
    preload: Preload,
    options: NetOptions,
    program: PathBuf,
}

impl StandIn {
    /// Unpacks the library, and checks that the program can load it.
    pub(super) fn prepare(
        options: &TargetOptions,
        net: &NetOptions,
        program: &Path,
    ) -> Result<Self, TargetError> {
        if !binary::runs_here(program) {
            return Err(StandInError::Machine.into());
        }
        let loader = binary::loader(program).ok_or(StandInError::Static)?;
        if let Some(name) = binary::other_libc(&loader) {
            return Err(StandInError::OtherLibc(name).into());
        }
        if preload::changes_user(program) {
            return Err(StandInError::SetUser.into());
        }
        let program = fs::canonicalize(program).unwrap_or_else(|_| program.into());
        Ok(Self { preload: Preload::open(&options.places, NET)?, options: net.clone(), program })
    }

    /// Adds the variables that every process of the target needs.
    pub(super) fn add(&self, env: &mut Vec<(OsString, Option<OsString>)>) {
        let (name, value) = self.preload.variable(env);
        env.push((name, Some(value)));
        env.push((VARIABLE.into(), Some(self.options.to_string().into())));
        if let Some(answers) = &self.options.answers {
            env.push((ANSWERS.into(), Some(answers.into())));
        }
        env.push((PROGRAM.into(), Some(self.program.clone().into())));
    }
}

/// Runs the program of `options` once with a seed, as by hand, and describes its session. None if the
/// program uses no socket or cannot run. `file` is the input file, `timeout` that of a run.
pub(super) fn first_session(
    options: &TargetOptions,
    seed: &[u8],
    file: &Path,
    timeout: Duration,
) -> Option<FirstSession> {
    let net = options.net.as_ref()?;
    let program = options.command.first().cloned().unwrap_or_default();
    let plain = TargetOptions { skip_binary_check: true, ..options.for_other_build(program) };
    let setup = Setup::new(&plain, file, None).ok()?;
    let mut target = Fresh::new(setup, Mutators::default(), false, false).ok()?;
    let ended = target.run(seed, FreshOptions::within(timeout.max(LEAST))).ok()?;
    Some(ended.session.unwrap_or_default().describe(net, seed, ended.exit))
}
