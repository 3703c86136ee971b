//! The compiler wrapper: clang with coverage, domains and the runtime.
//!
//! [`args`] parses the user's command line. `rewrite` is the pure function from command line, environment and
//! [`toolchain`] to clang's arguments. [`domains`] resolves `WAYPOINTS`, and [`declared`] reads domains without C++.
//! [`plugin`] provides passes and runtime files for this clang. [`lists`] selects the sources and functions with
//! coverage. `product` reports the contents of a program, and `cached` shows the settings to an object cache. Nothing
//! here depends on the fuzzer.

pub mod args;
mod cached;
pub mod declared;
pub mod domains;
pub mod env;
pub mod error;
pub mod lists;
pub mod plugin;
mod product;
pub(crate) mod rewrite;
pub mod toolchain;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use args::Invocation;
use env::Env;
pub use error::CompilerError;
use rewrite::{Additions, CounterLink};
use toolchain::{Language, Linker};

use ffuzz_sys::{file, memory};

/// Maximum size in bytes of a user's text file: declarations, a list, a response file.
const LARGEST_TEXT: u64 = 64 << 20;

/// Message about a link without shared counters.
pub const COPIED_COUNTERS: &str = "this linker cannot place the counters on pages of their own; \
                                   they are copied after each run (use GNU ld or lld for speed)";

/// Runs clang on `arguments`. Returns only after an error of ffuzz-cc or a monitored link; otherwise clang replaces
/// this process. `note` shows one line to the user.
pub fn run(
    language: Language,
    arguments: Vec<OsString>,
    env: &Env,
    note: impl Fn(&str),
) -> Result<ExitCode, CompilerError> {
    let clang = toolchain::find(language, env)?;
    let invocation =
        Invocation::parse(arguments, |path| file::read_whole(Path::new(path), LARGEST_TEXT).ok());
    if invocation.lacks_driver() {
        return Err(CompilerError::NoDriver);
    }
    if let Some(option) = invocation.wrong_machine().filter(|_| !env.plain) {
        return Err(CompilerError::WrongMachine(option.to_owned()));
    }
    let reports = !env.quiet && !invocation.is_probe();
    let works = invocation.links() || invocation.compiles();
    if !invocation.wants_instrumentation() || env.plain {
        let told = works && reports && !env.plain && !invocation.is_query();
        if let Some(option) = invocation.lacks_libc().filter(|_| told) {
            note(&format!("warning: {option}: without instrumentation, which needs a C library"));
        }
        let mut clang_alone = launched(&clang.path, env);
        clang_alone.args(&invocation.arguments);
        return Err(replace_process(clang_alone));
    }
    env.misspelt.iter().filter(|_| reports && works).for_each(|text| note(text));
    env.unsupported.iter().filter(|_| reports && invocation.links()).for_each(|text| note(text));
    if reports && env.cached && env.depend_mode && invocation.compiles() {
        note(cached::DEPEND_MODE);
    }
    let mut additions = additions(&invocation, env, &clang)?;
    additions.settings = shown_settings(&invocation, env, &clang)?;
    if cached::is_launched_compilation(&invocation, env) {
        let settings = cached::settings(&invocation, env, &additions, &clang);
        additions.settings_option = Some(cached::option(settings));
    }
    if let (true, Some(why)) = (reports && invocation.links(), &additions.lacks_pass) {
        note(&format!("warning: {}: {why}", plugin::without_pass(env)));
    }
    if additions.link == CounterLink::Unknown {
        return watched_link(&clang.path, &invocation, env, additions, note);
    }
    if additions.link == CounterLink::Copied && !env.quiet {
        note(COPIED_COUNTERS);
    }
    additions.opt_level = invocation.level.is_none();
    let Prepared { command, _line } = command(&clang.path, &invocation, env, &additions)?;
    if reports && invocation.links() {
        return link_and_report(command, &invocation, env, note);
    }
    Err(replace_process(command))
}

/// Runs a program of clang's LLVM, such as `llvm-ar`. Returns only after an error.
pub fn run_tool(
    name: &str,
    arguments: Vec<OsString>,
    env: &Env,
) -> Result<ExitCode, CompilerError> {
    let clang = toolchain::find(Language::C, env)?;
    let tool = toolchain::tool(name, &clang, env)
        .ok_or_else(|| CompilerError::NoTool { name: name.to_owned(), major: clang.major })?;
    let mut command = Command::new(tool);
    command.args(arguments);
    Err(replace_process(command))
}

/// Links and reports the contents of the product.
fn link_and_report(
    mut command: Command,
    invocation: &Invocation,
    env: &Env,
    note: impl Fn(&str),
) -> Result<ExitCode, CompilerError> {
    let status = command.status().map_err(|source| {
        let program = command.get_program().into();
        CompilerError::Run { program, source }
    })?;
    if status.success() {
        product::report(invocation.product_path(), !env.no_coverage).iter().for_each(|t| note(t));
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// The file that shows a surrounding cache the settings of the compilation.
fn shown_settings(
    invocation: &Invocation,
    env: &Env,
    clang: &toolchain::Clang,
) -> Result<Option<PathBuf>, CompilerError> {
    let Some(compilation) = invocation.of_expanded().filter(|_| env.cached) else {
        return Ok(None);
    };
    let additions = additions(&compilation, env, clang)?;
    let settings = cached::settings(&compilation, env, &additions, clang);
    cached::header(&ffuzz_assets::Assets::open(&env.places)?, settings).map(Some)
}

fn additions(
    invocation: &Invocation,
    env: &Env,
    clang: &toolchain::Clang,
) -> Result<Additions, CompilerError> {
    env.check()?;
    let assets = ffuzz_assets::Assets::open(&env.places)?;
    let domains = domains::resolve(env, &assets)?;
    let workshop = plugin::Workshop { assets: &assets, clang };
    let (mut passes, mut runtimes, mut declared) = (vec![], vec![], None);
    let mut builtin = workshop.builtin(&domains);
    if invocation.compiles() {
        passes = workshop.passes(&domains)?;
        declared = workshop.declarations(&domains)?;
    }
    let mut lacks_pass = None;
    let extras = plugin::extras(env);
    if !extras.is_empty() && (invocation.compiles() || invocation.links()) {
        match workshop.builtin_pass() {
            Ok(pass) if invocation.compiles() => {
                builtin.extend(extras.iter().map(|name| (*name).to_owned()));
                passes.retain(|other| *other != pass);
                passes.insert(0, pass);
            }
            Ok(_) => {}
            Err(CompilerError::NoLlvm { major, program, .. }) => {
                lacks_pass = Some(format!("{program} is not installed (package llvm-{major}-dev)"));
            }
            Err(error) => lacks_pass = Some(error.to_string()),
        }
    }
    if invocation.links() {
        runtimes = workshop.runtimes(&domains)?;
    }
    let coverage = if invocation.compiles() {
        lists::FilterLists::read(env)?.choose(&invocation.source_names(), &assets)?
    } else {
        lists::CoverageScope::Full
    };
    let link = match invocation.linker(|| toolchain::default_linker(env)) {
        Linker::TakesScript => CounterLink::Shared,
        Linker::RefusesScript => CounterLink::Copied,
        Linker::Unknown => CounterLink::Unknown,
    };
    let opt_level = invocation.level.is_none();
    let program = Some(invocation.fuzzer_driver).filter(|driver| *driver && invocation.links());
    let program = program.and_then(|_| assets.object_of(&own_program()?));
    let assets = assets.directory;
    Ok(Additions {
        assets,
        runtimes,
        passes,
        builtin,
        declared,
        coverage,
        link,
        opt_level,
        settings: None,
        settings_option: None,
        program,
        lacks_pass,
    })
}

/// Path of `ffuzz`, even if a link of another name started this process.
fn own_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let named = own.with_file_name("ffuzz");
    Some(if named.exists() { named } else { own })
}

/// clang, run by the launcher if there is one.
fn launched(clang: &Path, env: &Env) -> Command {
    let Some(launcher) = &env.launcher else { return Command::new(clang) };
    let mut command = Command::new(launcher);
    command.arg(clang);
    command
}

/// A command, and the response file that holds its arguments if they are long.
struct Prepared {
    command: Command,
    _line: Option<File>,
}

/// Maximum command line length in bytes; longer ones go into a response file.
const LONGEST_LINE: usize = 64 << 10;

/// Builds the command for clang.
fn command(
    clang: &Path,
    invocation: &Invocation,
    env: &Env,
    additions: &Additions,
) -> Result<Prepared, CompilerError> {
    let mut command = launched(clang, env);
    let words = rewrite::rewrite(invocation, env, additions);
    let mut line = None;
    if words.iter().map(|word| word.len()).sum::<usize>() > LONGEST_LINE {
        let content = args::quoted(&words);
        let (file, path) = memory::inherited(c"ffuzz-cc", &content)
            .map_err(|source| CompilerError::Run { program: clang.to_owned(), source })?;
        let mut word = OsString::from("@");
        word.push(path);
        command.arg(word);
        line = Some(file);
    } else {
        command.args(words);
    }
    command.env_remove(env::DECLARED).env(env::BUILTIN, additions.builtin.join(","));
    if let Some(path) = &additions.declared {
        command.env(env::DECLARED, path);
    }
    Ok(Prepared { command, _line: line })
}

/// Replaces this process by `exec`, so that the caller sees clang's exit code, signals and output. Returns only on
/// error.
fn replace_process(mut command: Command) -> CompilerError {
    let source = command.exec();
    CompilerError::Run { program: command.get_program().into(), source }
}

/// Links with an unknown linker: tries the linker script, and omits it if the linker rejects it.
fn watched_link(
    clang: &Path,
    invocation: &Invocation,
    env: &Env,
    mut additions: Additions,
    note: impl Fn(&str),
) -> Result<ExitCode, CompilerError> {
    additions.link = CounterLink::Shared;
    let output = command(clang, invocation, env, &additions)?
        .command
        .stdin(std::process::Stdio::inherit())
        .stdout(std::process::Stdio::inherit())
        .output()
        .map_err(|source| CompilerError::Run { program: clang.to_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && text.contains(ffuzz_assets::SCRIPT) {
        if !env.quiet {
            note(COPIED_COUNTERS);
        }
        additions.link = CounterLink::Copied;
        let Prepared { command, _line } = command(clang, invocation, env, &additions)?;
        return Err(replace_process(command));
    }
    if !text.is_empty() {
        note(text.trim_end_matches('\n'));
    }
    if output.status.success() && !env.quiet && !invocation.is_probe() {
        product::report(invocation.product_path(), !env.no_coverage).iter().for_each(|t| note(t));
    }
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
