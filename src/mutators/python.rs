//! Python modules with AFL++'s hooks, in an interpreter inside this process. The interpreter is the library of an
//! installed Python, loaded with the first module. The Python code is in `python-host/`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use miette::Diagnostic;

use super::{Hook, HookError, Hooks, Job, Made, Mutator, NAME_MAX};
use ffuzz_abi::python::{CallValues, Function, PythonModule};
use ffuzz_config::options::PythonOptions;

mod find;

/// The reason why a module cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PythonError {
    #[error("a mutator in Python needs libpython, and none can be loaded{}", in_brackets(.reasons))]
    #[diagnostic(help(
        "install it: apt-get install libpython3-dev; a Python of your own, 3.9 or newer, is built \
         with --enable-shared"
    ))]
    NoLibrary { reasons: String },
    #[error("cannot load the Python host: {reason}")]
    #[diagnostic(help(
        "ffuzz loads it from memory, after libpython: whatever forbids that must allow it"
    ))]
    Host { reason: String },
    #[error("AFL_PYTHON_MODULE={given} is a file, and the name of a module is wanted")]
    #[diagnostic(help("PYTHONPATH={folder} AFL_PYTHON_MODULE={name}"))]
    FileName { given: String, folder: String, name: String },
    #[error("cannot import the Python module {module}: {reason}")]
    #[diagnostic(help(
        "python3 -c 'import {module}' must work with the same PYTHONPATH: name the folder of \
         {module}.py there"
    ))]
    Import { module: String, reason: String },
    #[error("the Python module {module}, init: {reason}")]
    #[diagnostic(help("an init that fails stops the start: fix it"))]
    Init { module: String, reason: String },
    #[error("the Python module {module} has none of the hooks")]
    #[diagnostic(help("docs/mutators.md lists them: fuzz, post_process …"))]
    NoHook { module: String },
}

/// Rejects a file name such as `mu.py`: Python would import the module `py` from the package `mu`.
fn file_name(given: &str) -> Result<(), PythonError> {
    let path = Path::new(given);
    let is_file = path.extension().is_some_and(|end| end == "py") || given.contains('/');
    if !is_file {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = folder.unwrap_or(Path::new(".")).display().to_string();
    Err(PythonError::FileName { given: given.to_owned(), folder, name })
}

fn in_brackets(reasons: &str) -> String {
    if reasons.is_empty() { String::new() } else { format!(" ({reasons})") }
}

/// A loaded module.
#[derive(Debug)]
pub(crate) struct PythonMutator {
    name: String,
    module: PythonModule,
    hooks: Hooks,
    /// Buffer for results that are copied from here, and for other return values.
    scratch: Vec<u8>,
}

impl PythonMutator {
    /// Imports the module and calls its `init`. The second value holds messages for the user.
    pub(crate) fn open(
        wanted: &PythonOptions,
        seed: u32,
    ) -> Result<(Self, Vec<String>), PythonError> {
        file_name(&wanted.module)?;
        let environment = wanted.virtual_env.as_deref();
        let mut notes: Vec<String> = find::load(environment)?.into_iter().collect();
        let module = || wanted.module.clone();
        let (loaded, note) = PythonModule::open(&wanted.module, environment)
            .map_err(|reason| PythonError::Import { module: module(), reason })?;
        notes.extend(Some(note).filter(|note| !note.is_empty()));
        let hooks = hooks(&loaded);
        if hooks == Hooks::default() {
            return Err(PythonError::NoHook { module: module() });
        }
        if TRIM.iter().any(|part| loaded.has(*part)) && !hooks.has(Hook::Trim) {
            let note = "it has some of init_trim, trim and post_trim, but not all: none is used";
            notes.push(note.to_owned());
        }
        let mut mutator =
            Self { name: short(&wanted.module), module: loaded, hooks, scratch: Vec::new() };
        if mutator.module.has(Function::Init) {
            let seed = CallValues { number: seed as usize, ..CallValues::default() };
            mutator
                .call(Function::Init, &seed)
                .map_err(|HookError(reason)| PythonError::Init { module: module(), reason })?;
        }
        Ok((mutator, notes))
    }

    /// Calls a function that returns no bytes.
    fn call(&mut self, function: Function, values: &CallValues<'_>) -> Result<u32, HookError> {
        self.module.call(function, values, &mut self.scratch).map_err(HookError)
    }

    /// Calls a function that returns bytes.
    fn make(
        &mut self,
        function: Function,
        values: &CallValues<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Made, HookError> {
        let any = self.module.call(function, values, out).map_err(HookError)?;
        Ok(if any == 0 { Made::Nothing } else { Made::Input })
    }

    /// Calls a function that returns a text.
    fn text(
        &mut self,
        function: Function,
        values: &CallValues<'_>,
    ) -> Result<Option<String>, HookError> {
        let any = self.call(function, values)?;
        Ok((any != 0).then(|| String::from_utf8_lossy(&self.scratch).into_owned()))
    }
}

/// Functions of the trimming hook: all three or none.
const TRIM: [Function; 3] = [Function::InitTrim, Function::Trim, Function::PostTrim];

fn hooks(module: &PythonModule) -> Hooks {
    let simple = [
        (Hook::FuzzCount, Function::FuzzCount),
        (Hook::Fuzz, Function::Fuzz),
        (Hook::Describe, Function::Describe),
        (Hook::PostProcess, Function::PostProcess),
        (Hook::Havoc, Function::Havoc),
        (Hook::QueueGet, Function::QueueGet),
        (Hook::QueueNewEntry, Function::QueueNewEntry),
        (Hook::FuzzSend, Function::FuzzSend),
        (Hook::PostRun, Function::PostRun),
        (Hook::Introspection, Function::Introspection),
        (Hook::SpliceOptout, Function::SpliceOptout),
    ];
    let there = simple.into_iter().filter(|(_, function)| module.has(*function));
    let found: Hooks = there.map(|(hook, _)| hook).collect();
    let trims = TRIM.iter().all(|part| module.has(*part));
    if trims { found.with(Hook::Trim) } else { found }
}

/// Last part of a dotted name, cut to [`NAME_MAX`].
fn short(module: &str) -> String {
    let last = module.rsplit('.').next().unwrap_or(module);
    last.chars().take(NAME_MAX).collect()
}

fn input(first: &[u8]) -> CallValues<'_> {
    CallValues { first, ..CallValues::default() }
}

fn number(number: usize) -> CallValues<'static> {
    CallValues { number, ..CallValues::default() }
}

fn path(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

impl Mutator for PythonMutator {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn fuzz_count(&mut self, bytes: &[u8]) -> Result<u32, HookError> {
        self.call(Function::FuzzCount, &input(bytes))
    }

    fn fuzz(&mut self, job: &mut Job<'_>, out: &mut Vec<u8>) -> Result<Made, HookError> {
        let values = CallValues { first: job.input, second: job.other, number: job.max_len };
        self.make(Function::Fuzz, &values, out)
    }

    fn describe(&mut self, max_len: usize) -> Result<Option<String>, HookError> {
        self.text(Function::Describe, &number(max_len))
    }

    fn post_process(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Made, HookError> {
        self.make(Function::PostProcess, &input(bytes), out)
    }

    fn init_trim(&mut self, bytes: &[u8]) -> Result<u32, HookError> {
        self.call(Function::InitTrim, &input(bytes))
    }

    fn trim(&mut self, out: &mut Vec<u8>) -> Result<Made, HookError> {
        self.make(Function::Trim, &CallValues::default(), out)
    }

    fn post_trim(&mut self, success: bool) -> Result<u32, HookError> {
        self.call(Function::PostTrim, &number(success.into()))
    }

    fn havoc_mutation(&mut self, bytes: &mut Vec<u8>, max_len: usize) -> Result<Made, HookError> {
        let values = CallValues { first: bytes, second: None, number: max_len };
        let made =
            self.module.call(Function::Havoc, &values, &mut self.scratch).map_err(HookError)?;
        if made == 0 {
            return Ok(Made::Nothing);
        }
        std::mem::swap(bytes, &mut self.scratch);
        Ok(Made::Input)
    }

    fn havoc_probability(&mut self) -> Result<u8, HookError> {
        if !self.module.has(Function::Probability) {
            return Ok(super::DEFAULT_PROBABILITY);
        }
        // The host rejects larger values.
        self.call(Function::Probability, &CallValues::default()).map(|percent| percent as u8)
    }

    fn queue_get(&mut self, seed: &Path) -> Result<bool, HookError> {
        self.call(Function::QueueGet, &input(path(seed))).map(|wanted| wanted != 0)
    }

    fn queue_new_entry(&mut self, new: &Path, parent: Option<&Path>) -> Result<bool, HookError> {
        let values = CallValues { first: path(new), second: parent.map(path), number: 0 };
        self.call(Function::QueueNewEntry, &values).map(|changed| changed != 0)
    }

    fn fuzz_send(&mut self, bytes: &[u8]) -> Result<(), HookError> {
        self.call(Function::FuzzSend, &input(bytes)).map(|_| ())
    }

    fn post_run(&mut self) -> Result<(), HookError> {
        self.call(Function::PostRun, &CallValues::default()).map(|_| ())
    }

    fn introspection(&mut self) -> Result<Option<String>, HookError> {
        self.text(Function::Introspection, &CallValues::default())
    }
}

#[cfg(test)]
mod tests;
