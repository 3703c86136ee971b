//! Loads the mutators that the user named.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use super::killerbeez::Killerbeez;
use super::library::LibraryMutator;
use super::python::{PythonError, PythonMutator};
use super::{Hook, Mutator, Mutators};
use ffuzz_abi::killerbeez::ModuleError;
use ffuzz_abi::library;
use ffuzz_config::options::CustomOptions;
use ffuzz_engine::coverage::mix;
use ffuzz_engine::executor::RunError;
use ffuzz_sys::underway::{Label, Underway};
use ffuzz_sys::{stdio, underway};

/// The reason why a mutator cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CustomError {
    #[error("mutator library {} does not exist", .path.display())]
    #[diagnostic(help("check AFL_CUSTOM_MUTATOR_LIBRARY; names are split at ; : and ,"))]
    Missing { path: PathBuf },
    #[error("cannot load the mutator library {}: {reason}", .path.display())]
    #[diagnostic(help("build it for this machine: cc -shared -fPIC -o NAME.so NAME.c"))]
    Load { path: PathBuf, reason: String },
    #[error("mutator library {} needs the symbol {symbol}, which is not defined", .path.display())]
    #[diagnostic(help(
        "a function of afl-fuzz itself exists only there: such a library works with afl-fuzz \
         alone; any other has to be linked"
    ))]
    Undefined { path: PathBuf, symbol: String },
    #[error("mutator library {} has no function afl_custom_init", .path.display())]
    #[diagnostic(help(
        "export the functions of include/ffuzz-mutator.h; from C++ they need extern \"C\""
    ))]
    NoInit { path: PathBuf },
    #[error("mutator library {} has no function that could be called", .path.display())]
    #[diagnostic(help(
        "export the functions of include/ffuzz-mutator.h; from C++ they need extern \"C\""
    ))]
    NoHook { path: PathBuf },
    #[error("mutator library {} is AFL++'s {name}, which {needs}", .path.display())]
    #[diagnostic(help(
        "their addresses differ in every release: use it with afl-fuzz of its own release, on the \
         same output folder (ffuzz -S NAME -o OUT, afl-fuzz -S OTHER -o OUT)"
    ))]
    NeedsAfl { path: PathBuf, name: &'static str, needs: &'static str },
    #[error("cannot give the mutator libraries random numbers: {0}")]
    #[diagnostic(help("raise the limits for open files and processes (ulimit -n, -u)"))]
    Random(io::Error),
    #[error("afl_custom_init of mutator library {} returned NULL", .path.display())]
    #[diagnostic(help("its output may show the reason; a variable may be missing"))]
    Refused { path: PathBuf },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Python(#[from] PythonError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Module(#[from] ModuleError),
    #[error("AFL_CUSTOM_MUTATOR_ONLY is set, but no mutator makes inputs")]
    #[diagnostic(help("name a mutator with a fuzz function, or unset AFL_CUSTOM_MUTATOR_ONLY"))]
    OnlyNone,
    #[error("AFL_CUSTOM_MUTATOR_LATE_SEND is set, but {senders} mutators have fuzz_send")]
    #[diagnostic(help("name exactly one of them, or unset the variable"))]
    LateSenders { senders: usize },
}

impl From<CustomError> for RunError {
    fn from(error: CustomError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Loads all mutators, in the user's order.
///
/// AFL++'s own mutators draw random numbers through a file descriptor in afl-fuzz's state. That state is all zeros in
/// ffuzz, so if a library is loaded, descriptor 0 provides random bytes.
pub fn load(options: &CustomOptions, seed: u64) -> Result<Mutators, CustomError> {
    if options.is_empty() {
        let mut none = Mutators::default();
        none.by_message = options.by_message;
        return Ok(none);
    }
    // Set before the watch starts its thread.
    for (name, value) in &options.info {
        library::set_variable(name, value);
    }
    underway::watch();
    if !options.libraries.is_empty() {
        let (mut count, start) = (0, mix(seed));
        let next = move || {
            count += 1;
            mix(start ^ count)
        };
        stdio::feed_zero(next).map_err(CustomError::Random)?;
    }
    let mut mutators: Vec<Box<dyn Mutator>> = Vec::new();
    let mut notes = Vec::new();
    for path in &options.libraries {
        let (mutator, note) = LibraryMutator::open(path, random(seed, mutators.len()))?;
        notes.extend(note.map(|note| (mutators.len(), note)));
        mutators.push(Box::new(mutator));
    }
    if let Some(module) = &options.python {
        let _underway = Underway::begin(Label::new(&module.module, "init"));
        let (mutator, messages) = PythonMutator::open(module, random(seed, mutators.len()))?;
        notes.extend(messages.into_iter().map(|note| (mutators.len(), note)));
        mutators.push(Box::new(mutator));
    }
    for module in &options.killerbeez.modules {
        let _underway = Underway::begin(Label::new(&module.name, "init"));
        let seed = mix(seed ^ mutators.len() as u64);
        let module = Killerbeez::open(module, &options.killerbeez, seed)?;
        mutators.push(Box::new(module.by_message(options.by_message)));
    }
    let mut mutators = Mutators::new(mutators, seed);
    mutators.debug = options.debug;
    mutators.by_message = options.by_message;
    for (index, note) in notes {
        mutators.add_message(index, &note);
    }
    let senders = mutators.with_hook(Hook::FuzzSend).len();
    if options.late_send && senders != 1 {
        return Err(CustomError::LateSenders { senders });
    }
    Ok(mutators)
}

/// Seed for a mutator's random numbers, below 2^32 - 1 as in AFL++.
fn random(seed: u64, index: usize) -> u32 {
    (mix(seed ^ index as u64) % u64::from(u32::MAX)) as u32
}

/// Checks that a mutator makes inputs if only mutators may. Call this once all mutators are known: a harness may add
/// one.
pub fn check(mutators: &Mutators, options: &CustomOptions) -> Result<(), CustomError> {
    if options.only && !mutators.has(Hook::Fuzz) {
        return Err(CustomError::OnlyNone);
    }
    Ok(())
}
