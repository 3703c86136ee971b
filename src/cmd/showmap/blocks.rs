//! Block starts of a program without instrumentation, as `-Q` sees them.

use std::fmt::Write as _;

use super::args::Args;
use super::to_file;
use crate::cmd::exit::Failure;
use crate::cmd::fuzz::{args::Args as FuzzArgs, resolve};
use crate::cmd::tool::{self, print, say};
use crate::config::env::Environment;
use crate::config::options::TargetOptions;
use crate::exec::TargetError;
use crate::inspect::binary;
use crate::inspect::choice::Choice;
use crate::inspect::code::Code;
use crate::inspect::detours::Copied;
use crate::inspect::objects::Objects;

/// Prints the blocks; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let program = binary::locate(&args.target.command[0], environment.get("PATH"));
    let program = program.and_then(|path| binary::inspect(&path, false).map(|_| path));
    let program = program.map_err(|error| Failure::of(&error))?;
    let options = options(args, environment)?;
    let objects = Objects::of(&program, &options.extra_env)
        .map_err(|source| tool::failure(TargetError::Start { path: program.clone(), source }))?;
    if !objects.missing.is_empty() {
        return Err(tool::failure(TargetError::NoLibrary { names: objects.missing }));
    }
    let modules = options.native.and_then(|native| native.modules);
    let choice = modules.as_deref().map_or(Choice::Own, Choice::parse);
    let mut text = String::new();
    let (mut blocks, mut files) = (0, 0);
    for path in objects.chosen(&choice, &program) {
        if let Some(code) = Code::decoded(path) {
            blocks += code.size();
            files += 1;
            list(&mut text, &code);
        }
    }
    if files == 0 {
        return Err(Failure::new(
            "--modules names none of the target's files",
            format!("they are {}", objects.names().join(", ")),
        ));
    }
    print(text.as_bytes(), to_file(args.output()))?;
    say(args.quiet, &format!("[+] {blocks} blocks in {files} files"));
    Ok(0)
}

/// The target's options with `-Q`.
fn options(args: &Args, environment: &Environment) -> Result<TargetOptions, Failure> {
    let fuzz = FuzzArgs {
        command: args.target.command.clone(),
        native: true,
        modules: args.native.modules.clone(),
        guard_heap: args.native.guard_heap,
        ..FuzzArgs::default()
    };
    resolve::target_options(&fuzz, environment)
}

/// Adds a line `FILE+OFFSET FUNCTION` per block, and lines with # for the file and for omissions.
fn list(text: &mut String, code: &Code) {
    let found = code.blocks();
    let bytes: u64 = found.ranges.iter().map(|range| range.end - range.start).sum();
    let name = code.name.escape_debug();
    let (size, ranges, refused) = (code.size(), found.ranges.len(), found.refused.len());
    let _ = writeln!(
        text,
        "# {}: {size} blocks in {ranges} ranges of code ({bytes} bytes), {refused} refused",
        code.path.to_string_lossy().escape_debug(),
    );
    let Copied { blocks, edges } = Copied::of(&code.path, found);
    let _ = writeln!(
        text,
        "# {blocks} of these blocks and {edges} edges are counted by copies of functions"
    );
    for (range, why) in &found.refused {
        let [start, end] = [range.start, range.end].map(|at| code.offset_of(at));
        let _ = writeln!(text, "# {name}+{start:#x} to {end:#x} refused: {why}");
    }
    for block in 0..size {
        let (offset, function) = (code.offset(block), code.function_of(block));
        let _ = writeln!(text, "{name}+{offset:#x} {}", function.escape_debug());
    }
}
