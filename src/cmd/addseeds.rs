//! `ffuzz-addseeds`: adds seeds to a running campaign, as a peer of its instances.
//!
//! The instance `addseeds` is a queue without a fuzzer. The main instance imports from it as from any other peer, and
//! so do all instances of ffuzz. Secondary instances of AFL++ get the seeds that their main keeps.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use super::exit::Failure;
use crate::campaign::{collect_files, read_limited};
use crate::disk::output::replace_file;
use crate::engine::corpus::{SeedId, names};
use crate::sys::file::Locked;

/// Name of the instance folder below OUT; AFL++ reserves the name as well.
const INSTANCE: &str = "addseeds";

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-addseeds",
    about = "Add seeds to a running campaign",
    after_help = "The instances below OUT import them, AFL++'s instances too. What was added before is \
                  not added again.\n\nExample:\n  ffuzz-addseeds -o out new-seeds/ one-more-file"
)]
pub(super) struct Args {
    /// The folder given to ffuzz -o
    #[arg(short, value_name = "OUT")]
    output: PathBuf,
    /// Another file or folder of seeds
    #[arg(short, value_name = "SEED")]
    input: Vec<PathBuf>,
    /// Files, or folders of files
    #[arg(value_name = "SEED")]
    seeds: Vec<PathBuf>,
}

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, args)? else { return Ok(ExitCode::SUCCESS) };
    let mut files = Vec::new();
    for path in args.input.iter().chain(&args.seeds) {
        collect(path, &mut files)?;
    }
    if files.is_empty() {
        return Err(Failure::new("no seeds given", "name files or folders that hold some"));
    }
    if !args.output.is_dir() {
        let cause = format!("{} is no output folder", args.output.display());
        return Err(Failure::new(cause, "name the folder that was given to -o"));
    }
    let added = add(&args.output.join(INSTANCE), &files)?;
    super::print(&format!(
        "{added} seeds added, {} exist already or are empty\n",
        files.len() - added
    ))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.is_dir() {
        return collect_files(path, files).map_err(|error| Failure::of(&error));
    }
    if !path.is_file() {
        let cause = format!("cannot read the seed {}", path.display());
        return Err(Failure::new(cause, "name files or folders that exist"));
    }
    files.push(path.to_owned());
    Ok(())
}

fn failure(path: &Path, error: impl std::fmt::Display) -> Failure {
    let cause = format!("cannot write {}: {error}", path.display());
    Failure::new(cause, "check the permissions and the free space of the output folder")
}

/// Copies new inputs into the queue. Numbers continue after the existing ones: a peer resumes after the last number
/// that it has seen.
fn add(instance: &Path, files: &[PathBuf]) -> Result<usize, Failure> {
    let queue = instance.join("queue");
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&queue);
    created.map_err(|error| failure(&queue, error))?;
    // Two concurrent calls would assign the same numbers.
    let folder = File::open(instance).map_err(|error| failure(instance, error))?;
    let _lock = Locked::new(folder, true).map_err(|error| failure(instance, error))?;
    let (mut next, mut known) = there(&queue).map_err(|error| failure(&queue, error))?;
    let first = next;
    for file in files {
        let data = read_limited(file).map_err(Failure::cannot_read(file, "remove it"))?;
        if data.is_empty() || !known.insert(data.clone()) {
            continue;
        }
        let original = file.file_name().unwrap_or_default().to_string_lossy();
        let name = names::seed_name(SeedId(next), &original, 0, None);
        replace_file(instance, &queue.join(name), &data).map_err(|error| Failure::of(&error))?;
        next += 1;
    }
    Ok((next - first) as usize)
}

/// The next number, and the content of all files.
fn there(queue: &Path) -> std::io::Result<(u32, HashSet<Vec<u8>>)> {
    let (mut next, mut known) = (0, HashSet::new());
    for entry in fs::read_dir(queue)? {
        let entry = entry?;
        if let Some(parsed) = names::parse(&entry.file_name().to_string_lossy()) {
            next = next.max(parsed.id + 1);
            known.insert(read_limited(&entry.path())?);
        }
    }
    Ok((next, known))
}
