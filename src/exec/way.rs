//! The methods by which a target shows its coverage, and what each adds to the start of its processes.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::TargetError;
use super::emulator::{Emulator, EmulatorError, StartAt};
use super::launcher::InputFrom;
use super::native::{self, Native, NativeError};
use super::preload::{self, Preload};
use ffuzz_assets::PRELOAD;
use ffuzz_config::options::{NativeEngine, TargetOptions};
use ffuzz_engine::domain::Site;
use ffuzz_inspect::binary::Traits;
use ffuzz_inspect::lines::FileCounters;

/// Names and values for an environment; None removes a variable.
type Variables = Vec<(OsString, Option<OsString>)>;

/// Coverage method of a target.
#[derive(Debug)]
pub(super) enum Way {
    /// By the runtime linked into the target, or without coverage.
    Compiled,
    /// By the runtime as a preloaded library: only a library of the program is instrumented.
    Preloaded(Preload),
    /// Without source, by copies of the code and breakpoints.
    Copied(Box<Native>),
    /// Without source, in an emulator.
    Emulated(Emulator),
}

impl Way {
    /// Chooses the method for a program; `traits` are those of its file.
    pub(super) fn choose(
        options: &TargetOptions,
        program: &Path,
        traits: Traits,
    ) -> Result<Self, TargetError> {
        if options.native.is_some() {
            return Self::without_source(options, program, traits);
        }
        if traits.instrumented || options.skip_binary_check || options.non_instrumented {
            return Ok(Self::Compiled);
        }
        if !preload::has_instrumented_library(program, &options.extra_env) {
            let path = program.to_owned();
            return Err(TargetError::NotInstrumented { path, kin: traits.kin });
        }
        Ok(Self::Preloaded(Preload::open(&options.places, PRELOAD)?))
    }

    fn without_source(
        options: &TargetOptions,
        program: &Path,
        traits: Traits,
    ) -> Result<Self, TargetError> {
        let Some(native) = &options.native else { return Ok(Self::Compiled) };
        if traits.instrumented {
            return Err(NativeError::Instrumented.into());
        }
        let because = match native.engine {
            NativeEngine::Emulator => "--qemu asks for it",
            engine => match Native::prepare(options, native, program, traits.kin) {
                Ok(native) => return Ok(Self::Copied(Box::new(native))),
                Err(TargetError::Native(error)) if engine == NativeEngine::Any => {
                    let Some(because) = error.calls_for_emulator() else {
                        return Err(error.into());
                    };
                    because
                }
                Err(error) => return Err(error),
            },
        };
        let emulator = Emulator::prepare(options, program, traits.kin, because.into())?;
        Ok(Self::Emulated(emulator))
    }

    /// Returns true if it covers a program without instrumentation of its own.
    pub(super) fn instruments(&self) -> bool {
        !matches!(self, Self::Compiled)
    }

    /// Name of the method in `target_mode`.
    pub(super) fn word(&self) -> Option<&'static str> {
        match self {
            Self::Compiled | Self::Preloaded(_) => None,
            Self::Copied(_) => Some("native"),
            Self::Emulated(_) => Some("qemu"),
        }
    }

    /// Line for the user at the start.
    pub(super) fn introduction(&self) -> Option<String> {
        self.copied().map(Native::introduction)
    }

    /// Line for the user if an unexpected method is used.
    pub(super) fn note(&self) -> Option<String> {
        match self {
            Self::Emulated(emulator) => Some(emulator.note()),
            Self::Compiled | Self::Preloaded(_) | Self::Copied(_) => None,
        }
    }

    pub(super) fn copied(&self) -> Option<&Native> {
        match self {
            Self::Copied(native) => Some(native),
            Self::Compiled | Self::Preloaded(_) | Self::Emulated(_) => None,
        }
    }

    pub(super) fn is_emulated(&self) -> bool {
        matches!(self, Self::Emulated(_))
    }

    /// Files whose blocks are counted, for a program without source that runs as `pid`.
    pub(super) fn files(&self, program: &Path, pid: i32) -> Option<Vec<PathBuf>> {
        match self {
            Self::Compiled | Self::Preloaded(_) => None,
            Self::Copied(native) => Some(native.files()),
            Self::Emulated(emulator) => Some(emulator.files(program, pid)),
        }
    }

    /// Counters that this method gives a file; None if it gives none.
    pub(super) fn counters(&self, path: &Path) -> Option<FileCounters> {
        self.copied()?.counters(path)
    }

    /// Comparison sites, if this method knows them.
    pub(super) fn comparison_sites(&self) -> Option<Vec<Site>> {
        self.copied().map(Native::sites)
    }

    /// Sites of the keys of domains that this method fills.
    pub(super) fn counted_sites(&self) -> Vec<Site> {
        self.copied().map(Native::counted_sites).unwrap_or_default()
    }

    /// Places to start its fork server, in the order of the attempts.
    pub(super) fn starts(&self) -> &'static [StartAt] {
        match self {
            Self::Emulated(emulator) if emulator.start == StartAt::Entry => &[StartAt::Entry],
            Self::Emulated(_) => &[StartAt::Input, StartAt::Entry],
            Self::Compiled | Self::Preloaded(_) | Self::Copied(_) => &[StartAt::Input],
        }
    }

    /// Adds the variables with which every process of the target loads the runtime, with or without a fork server.
    pub(super) fn add_runtime(&self, env: &mut Variables) {
        if let Self::Preloaded(runtime) = self {
            let (name, value) = runtime.variable(env);
            env.push((name, Some(value)));
        }
    }

    /// Adds the variables of a fork server.
    pub(super) fn add_server(
        &self,
        env: &mut Variables,
        input: &InputFrom,
        at: StartAt,
    ) -> Result<(), TargetError> {
        match self {
            Self::Compiled => {}
            Self::Preloaded(_) => self.add_runtime(env),
            Self::Copied(native) => {
                native.check_files()?;
                let variables = native.variables(env).into_iter();
                env.extend(variables.map(|(name, value)| (name, Some(value))));
            }
            Self::Emulated(emulator) => env.extend(emulator.variables(input, at)),
        }
        Ok(())
    }

    /// A descriptor for the fork server, and its number in that process.
    pub(super) fn descriptor(&self) -> Option<(BorrowedFd<'_>, i32)> {
        self.copied().map(|native| (native.table(), native::TABLE_FD))
    }

    /// Command line of a process that runs the target with these `words`. `is_server`: with a fork server.
    pub(super) fn command(&self, words: &[OsString], is_server: bool) -> Vec<OsString> {
        match self {
            Self::Emulated(emulator) => emulator.command(words, is_server),
            Self::Compiled | Self::Preloaded(_) | Self::Copied(_) => words.to_vec(),
        }
    }

    /// Error for a fork server that ended at its start because of this method. `status` is the raw wait status, `how`
    /// describes the end.
    pub(super) fn early_end(
        &self,
        status: Option<i32>,
        how: &str,
        is_limited: bool,
    ) -> Option<TargetError> {
        let how = || how.to_owned();
        match self {
            Self::Copied(_) if is_filtered(status) => Some(NativeError::Filtered.into()),
            Self::Copied(_) if status.is_none_or(|status| libc::WIFEXITED(status)) => {
                Some(NativeError::NoStart { how: how() }.into())
            }
            Self::Emulated(_) => Some(EmulatorError::NoStart { how: how(), is_limited }.into()),
            Self::Compiled | Self::Preloaded(_) | Self::Copied(_) => None,
        }
    }
}

/// Returns true if a system call filter killed the process.
fn is_filtered(status: Option<i32>) -> bool {
    status.is_some_and(|status| libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS)
}
