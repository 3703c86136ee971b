//! A library with AFL++'s C interface as a [`Mutator`].

use std::path::{Path, PathBuf};

use super::{CustomError, DEFAULT_PROBABILITY, Hook, HookError, Hooks, Job, Made, Mutator};
use ffuzz_abi::library::{Functions, Library, OpenError, Returned};
use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::file;
use ffuzz_sys::underway::{Label, Underway};

/// A loaded library.
#[derive(Debug)]
pub(super) struct LibraryMutator {
    library: Library,
    name: String,
}

impl LibraryMutator {
    /// Loads and initializes a library; `seed` is for its random numbers. Also returns a message for the user.
    pub(super) fn open(path: &Path, seed: u32) -> Result<(Self, Option<String>), CustomError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The loader would search elsewhere for a name without a slash.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if !path.is_file() {
            return Err(CustomError::Missing { path });
        }
        if let Some((name, needs)) = needs_afl(&path) {
            return Err(CustomError::NeedsAfl { path, name, needs });
        }
        let label = Label::new(&name, "init");
        let init = |init: &mut dyn FnMut()| {
            let _underway = Underway::begin(label);
            init();
        };
        let library = Library::open(&path, seed, init).map_err(|error| explain(&path, error))?;
        let mutator = Self { library, name };
        if mutator.hooks() == Hooks::default() {
            return Err(CustomError::NoHook { path });
        }
        let half = matches!(mutator.library.functions().trim(), 1 | 2);
        let note = "it has some of init_trim, trim and post_trim, but not all: they are not used";
        Ok((mutator, half.then(|| note.to_owned())))
    }
}

/// AFL++'s mutators that only work inside afl-fuzz: a text unique to each (a variable that it reads), its name, and
/// what it reads from afl-fuzz's state. With the zeroed state of ffuzz they would crash.
const NEEDS_AFL: &[(&str, &str, &str)] = &[
    (
        "AUTOTOKENS_LEARN_DICT",
        "autotokens",
        "reads the queue and its current entry (queue_cur, queue_buf) in afl-fuzz's memory",
    ),
    ("SYMCC_TARGET", "symcc", "reads out_dir, argv and fsrv in afl-fuzz's memory"),
    ("SYMQEMU_ALL", "symqemu", "reads the current queue entry (queue_cur) in afl-fuzz's memory"),
];

/// Maximum number of bytes searched in a file.
const LARGEST_LIBRARY: u64 = 64 << 20;

fn needs_afl(path: &Path) -> Option<(&'static str, &'static str)> {
    let content = file::read(path, LARGEST_LIBRARY).ok()?;
    let holds = |mark: &str| {
        let text = [mark.as_bytes(), b"\0"].concat();
        content.windows(text.len()).any(|window| window == text)
    };
    let known = NEEDS_AFL.iter().find(|(mark, ..)| holds(mark));
    known.map(|(_, name, needs)| (*name, *needs))
}

/// The loader's message for a missing function, such as one that only afl-fuzz has.
const UNDEFINED: &str = "undefined symbol: ";

fn explain(path: &Path, error: OpenError) -> CustomError {
    let path = PathBuf::from(path);
    match error {
        OpenError::NoInit => CustomError::NoInit { path },
        OpenError::Refused => CustomError::Refused { path },
        OpenError::Load(text) => match text.split_once(UNDEFINED) {
            Some((_, symbol)) => {
                let symbol = symbol.split([' ', ',']).next().unwrap_or_default().to_owned();
                CustomError::Undefined { path, symbol }
            }
            None => {
                // Remove the path, which precedes the reason.
                let reason = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
                CustomError::Load { reason: reason.to_owned(), path }
            }
        },
    }
}

fn hooks_of(functions: &Functions) -> Hooks {
    let there = [
        (functions.fuzz(), Hook::Fuzz),
        (functions.fuzz_count(), Hook::FuzzCount),
        (functions.splice_optout(), Hook::SpliceOptout),
        (functions.describe(), Hook::Describe),
        (functions.post_process(), Hook::PostProcess),
        (functions.trim() == 3, Hook::Trim),
        (functions.havoc(), Hook::Havoc),
        (functions.queue_get(), Hook::QueueGet),
        (functions.queue_new_entry(), Hook::QueueNewEntry),
        (functions.fuzz_send(), Hook::FuzzSend),
        (functions.post_run(), Hook::PostRun),
        (functions.introspection(), Hook::Introspection),
    ];
    there.into_iter().filter(|(there, _)| *there).map(|(_, hook)| hook).collect()
}

/// Converts a returned buffer; `null` is the result for a null buffer.
fn made(returned: Returned, null: Result<Made, HookError>) -> Result<Made, HookError> {
    match returned {
        Returned::Bytes => Ok(Made::Input),
        Returned::Empty => Ok(Made::Nothing),
        Returned::Null => null,
        Returned::Wild(text) => Err(HookError(text.to_owned())),
    }
}

fn no_buffer() -> HookError {
    HookError("returned no buffer (NULL)".to_owned())
}

/// Converts a count or step; a negative one is an error.
fn positive(number: i32) -> Result<u32, HookError> {
    u32::try_from(number).map_err(|_| HookError(format!("returned {number}")))
}

impl Mutator for LibraryMutator {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        hooks_of(self.library.functions())
    }

    fn fuzz_count(&mut self, input: &[u8]) -> Result<u32, HookError> {
        Ok(self.library.fuzz_count(input))
    }

    fn fuzz(&mut self, job: &mut Job<'_>, out: &mut Vec<u8>) -> Result<Made, HookError> {
        let returned = self.library.fuzz(job.input, job.other, job.max_len, out);
        made(returned, Err(no_buffer()))
    }

    fn describe(&mut self, max_len: usize) -> Result<Option<String>, HookError> {
        Ok(self.library.describe(max_len))
    }

    fn post_process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Made, HookError> {
        made(self.library.post_process(input, MAX_INPUT, out), Ok(Made::Nothing))
    }

    fn init_trim(&mut self, input: &[u8]) -> Result<u32, HookError> {
        positive(self.library.init_trim(input))
    }

    fn trim(&mut self, out: &mut Vec<u8>) -> Result<Made, HookError> {
        made(self.library.trim(MAX_INPUT, out), Err(no_buffer()))
    }

    fn post_trim(&mut self, success: bool) -> Result<u32, HookError> {
        positive(self.library.post_trim(success))
    }

    fn havoc_mutation(&mut self, bytes: &mut Vec<u8>, max_len: usize) -> Result<Made, HookError> {
        made(self.library.havoc(bytes, max_len), Err(no_buffer()))
    }

    fn havoc_probability(&mut self) -> Result<u8, HookError> {
        Ok(self.library.havoc_probability().unwrap_or(DEFAULT_PROBABILITY))
    }

    fn queue_get(&mut self, path: &Path) -> Result<bool, HookError> {
        Ok(self.library.queue_get(path))
    }

    fn queue_new_entry(&mut self, path: &Path, parent: Option<&Path>) -> Result<bool, HookError> {
        Ok(self.library.queue_new_entry(path, parent))
    }

    fn fuzz_send(&mut self, input: &[u8]) -> Result<(), HookError> {
        self.library.fuzz_send(input);
        Ok(())
    }

    fn post_run(&mut self) -> Result<(), HookError> {
        self.library.post_run();
        Ok(())
    }

    fn introspection(&mut self) -> Result<Option<String>, HookError> {
        Ok(self.library.introspection())
    }
}
