//! Programs that cannot have breakpoints run in QEMU's user mode emulation, with a plugin that counts edges
//! and is AFL's fork server (`runtime/qemu/`). QEMU comes from the distribution.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use ffuzz_assets::QEMU;
use ffuzz_config::options::TargetOptions;

use super::channel;
use super::launcher::InputFrom;
use super::preload::{self, PreloadError};
use ffuzz_inspect::binary;
use ffuzz_inspect::binary::Kin;
use ffuzz_inspect::choice::{Choice, RUNTIME};
use ffuzz_inspect::sites;
use ffuzz_sys::memory;

/// Why a program cannot be emulated.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum EmulatorError {
    #[error("-Q needs an emulator for the target ({because}), and {name} is not installed")]
    #[diagnostic(help("apt-get install qemu-user (the static one loads no plugins)"))]
    NotInstalled { name: String, because: String },
    #[error("no emulator is known for the target's processor ({found})")]
    #[diagnostic(help("build it for this machine with ffuzz-cc"))]
    Processor { found: String },
    #[error("the target cannot be read as an ELF program ({found})")]
    #[diagnostic(help("-Q needs a whole ELF file: of a script, name the program that it starts"))]
    NotProgram { found: String },
    #[error("--guard-heap loads a library into the target, which runs in an emulator")]
    #[diagnostic(help("omit --guard-heap"))]
    Heap,
    #[error("the emulated target ended before it reached its input ({how})")]
    #[diagnostic(help("{}", why_it_ended(*is_limited)))]
    NoStart { how: String, is_limited: bool },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Plugin(#[from] PreloadError),
}

fn why_it_ended(is_limited: bool) -> &'static str {
    match is_limited {
        true => "leave -m out: the emulator reserves gigabytes of addresses that it does not use",
        false => {
            "AFL_DEBUG_CHILD=1 shows its output; QEMU_LD_PREFIX=FOLDER has the libraries of another \
             processor"
        }
    }
}

/// The emulator of a program.
#[derive(Clone, Debug)]
pub(super) struct Emulator {
    program: PathBuf,
    plugin: PathBuf,
    choice: Choice,
    /// First place to try for the fork server.
    pub(super) start: StartAt,
    /// Reason why the program needs an emulator.
    because: String,
}

/// Descriptor of a [`Trail`] in the emulator, and the variable that names it.
pub(super) const TRAIL_FD: i32 = channel::TARGET_FD - 1;
pub(super) const TRAIL_ENV: &str = "FFUZZ_QEMU_TRAIL";
/// Constants of `runtime/qemu/trail.c`.
const STEPS: u64 = 64;
const STEP: u64 = 16;
const FILES: u64 = 16;
const LONGEST: u64 = 1024;

/// The last blocks of a run in the emulator.
#[derive(Debug)]
pub struct Trail {
    memory: File,
}

impl Trail {
    /// Creates the memory for one run.
    pub fn new() -> io::Result<Self> {
        let bytes = 8 + STEPS * STEP + FILES * LONGEST;
        let memory = memory::memfd(c"ffuzz-trail", bytes as usize)?;
        Ok(Self { memory: memory.into() })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// Files and offsets of the last blocks, latest first. The content is untrusted: the target can write to
    /// it.
    #[must_use]
    pub fn steps(&self) -> Vec<(PathBuf, u64)> {
        let Some(count) = self.word(0) else { return Vec::new() };
        let step = |number: u64| {
            let at = 8 + number % STEPS * STEP;
            let file = self.word(at).filter(|file| *file < FILES)?;
            let mut path = vec![0; LONGEST as usize];
            let files = 8 + STEPS * STEP;
            self.memory.read_exact_at(&mut path, files + file * LONGEST).ok()?;
            let end = path.iter().position(|byte| *byte == 0).filter(|end| *end > 0)?;
            Some((OsStr::from_bytes(&path[..end]).into(), self.word(at + 8)?))
        };
        (count.saturating_sub(STEPS)..count).rev().map_while(step).collect()
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }
}

/// Where the fork server starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StartAt {
    /// At the first system call that leads to the input.
    Input,
    Entry,
}

/// Adds the file name of the program: the plugin knows only that, while users may give the name of a link to
/// it.
fn with_file_of(choice: Choice, program: &Path) -> Choice {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(file) = program.canonicalize() else { return choice };
    match choice {
        Choice::Named(mut names) if Choice::Named(names.clone()).takes(&name(program)) => {
            names.push(name(&file));
            Choice::Named(names)
        }
        choice => choice,
    }
}

impl Emulator {
    /// Finds the emulator for the program's processor. `because`: why the program has no breakpoints.
    pub(super) fn prepare(
        options: &TargetOptions,
        program: &Path,
        kin: Kin,
        because: String,
    ) -> Result<Self, EmulatorError> {
        if options.guards_heap {
            return Err(EmulatorError::Heap);
        }
        let processor = binary::processor(program);
        let found = processor.map_err(|found| EmulatorError::NotProgram { found })?;
        let name = found.map_err(|found| EmulatorError::Processor { found })?;
        let name = format!("qemu-{name}");
        let Ok(emulator) = binary::locate(OsStr::new(&name), options.search_path.as_deref()) else {
            return Err(EmulatorError::NotInstalled { name, because });
        };
        let plugin = preload::library(&options.places, QEMU)?;
        let modules = options.native.as_ref().and_then(|native| native.modules.as_deref());
        let choice = modules.map_or(Choice::Own, Choice::parse);
        let choice = with_file_of(choice, program);
        // A forked child has only one thread; Go starts others early.
        let start = if kin == Kin::Go { StartAt::Entry } else { StartAt::Input };
        Ok(Self { program: emulator, plugin, choice, start, because })
    }

    /// The chosen files of a program that runs as `pid`. Only the program itself if it is for this machine,
    /// because its libraries cannot be distinguished from the emulator's.
    pub(super) fn files(&self, program: &Path, pid: i32) -> Vec<PathBuf> {
        let mut files = vec![program.to_owned()];
        if binary::runs_elsewhere(program) {
            let processor = binary::processor(program);
            let mapped = sites::mapped_files(pid).into_iter();
            files.extend(mapped.filter(|file| binary::processor(file) == processor));
        }
        let name = |file: &PathBuf| {
            file.file_name().map(|name| self.choice.takes(&name.to_string_lossy()))
        };
        files.retain(|file| name(file) == Some(true));
        files
    }

    /// Describes the emulation to the user in one line.
    pub(super) fn note(&self) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        format!("the target runs in {name}: {}", self.because)
    }

    /// Command line that runs a program; the plugin (`has_plugin`) contains the fork server.
    pub(super) fn command(&self, command: &[OsString], has_plugin: bool) -> Vec<OsString> {
        let plugin = [OsString::from("-plugin"), self.plugin.clone().into()];
        let plugin = plugin.into_iter().filter(|_| has_plugin);
        let emulator = std::iter::once(self.program.clone().into_os_string());
        emulator.chain(plugin).chain(command.iter().cloned()).collect()
    }

    /// Environment variables of the plugin.
    pub(super) fn variables(
        &self,
        input: &InputFrom,
        start: StartAt,
    ) -> Vec<(OsString, Option<OsString>)> {
        let (modules, without) = match &self.choice {
            Choice::Own => ("all".into(), Some(RUNTIME.join(":"))),
            Choice::All | Choice::Counted => ("all".into(), None),
            Choice::Named(names) => (names.join(":"), None),
        };
        let input = match input {
            InputFrom::File(path) => Some(path.clone().into_os_string()),
            InputFrom::Stdin | InputFrom::Inherit => None,
        };
        let at_entry = (start == StartAt::Entry).then(|| "1".into());
        [
            ("FFUZZ_QEMU_MODULES", Some(OsString::from(modules))),
            ("FFUZZ_QEMU_WITHOUT", without.map(Into::into)),
            ("FFUZZ_QEMU_INPUT", input),
            ("FFUZZ_QEMU_AT_ENTRY", at_entry),
        ]
        .map(|(name, value)| (name.into(), value))
        .into()
    }
}
