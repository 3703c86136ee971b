//! `cargo ffuzz cmin` and `tmin`: runs the tools of these names in the folders of cargo-fuzz.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::words::CargoWords;
use super::{BuiltHarness, artifacts, cannot_start, cannot_write, own_program};
use crate::cmd::exit::{CANNOT, Failure};
use crate::cmd::tool::say;
use crate::cmin::content_hash;
use crate::inspect::binary;

/// Folder for the corpus before minimization, below the folder of the harnesses.
const FORMER: &str = "corpus-before";

/// Minimizes a corpus in place. Finds of campaigns join the corpus of the harness.
pub(super) fn corpus(built: &BuiltHarness, words: &CargoWords) -> Result<ExitCode, Failure> {
    let CargoWords { inputs, options } = words;
    let BuiltHarness { harnesses, name: harness, program } = built;
    let own = built.corpus();
    let (corpus, queues) = match &**inputs {
        [] => {
            fs::create_dir_all(&own).map_err(|error| cannot_write(&own, &error))?;
            (own, queues(&built.output()))
        }
        [folder] => (folder.clone(), vec![]),
        [_, other, ..] => {
            let cause = format!("{} is one folder too many", other.display());
            return Err(Failure::usage(cause, "minimize one corpus at a time"));
        }
    };
    let output = harnesses.folder.join(super::OUTPUT);
    let (small, former) = (output.join("corpus-new").join(harness), output.join(FORMER));
    let former = former.join(harness);
    let left = moved(&former);
    if left.exists() {
        let cause = format!("an earlier cmin did not end: {} has the corpus", left.display());
        return Err(Failure::new(cause, format!("move its files to {}", corpus.display())));
    }
    clear(&small).map_err(|error| cannot_write(&small, &error))?;
    let artifacts = built.artifacts();
    let folders = std::iter::once(&corpus).chain(&queues);
    let mut command;
    if words.are_libfuzzers()? {
        if !binary::has_driver(program) {
            let cause = format!("{harness} has a main of its own, and no -merge");
            return Err(Failure::usage(cause, "leave libFuzzer's options out: ffuzz-cmin does it"));
        }
        for folder in [&small, &artifacts] {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        }
        command = Command::new(program);
        command.arg(artifacts::prefix(&artifacts)).args(options).arg("-merge=1");
        command.arg(&small).args(folders).env("FFUZZ", own_program()?);
    } else {
        command = Command::new(own_program()?);
        command.arg("cmin").arg("-o").arg(&small).arg("--crash-dir").arg(artifacts);
        folders.for_each(|folder| {
            command.arg("-i").arg(folder);
        });
        command.args(options).arg("--").arg(program);
    }
    if let Some(code) = failed(&mut command)? {
        return Ok(code);
    }
    name_by_content(&small)?;
    replace(&corpus, &small, &former).map_err(|error| cannot_replace(&corpus, &small, &error))?;
    let [corpus, former] = [corpus, former].map(|path| path.display().to_string());
    say(false, &format!("[+] {corpus} is minimized. As it was, it is in {former}."));
    Ok(ExitCode::SUCCESS)
}

/// Queues of the campaigns in an output folder.
pub(super) fn queues(output: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(output).into_iter().flatten().flatten();
    let queues = entries.map(|entry| entry.path().join("queue"));
    let mut queues: Vec<_> = queues.filter(|queue| queue.is_dir()).collect();
    queues.sort();
    queues
}

fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    folder.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Renames inputs by content: queue names contain colons, which do not suit version control.
fn name_by_content(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| cannot_write(folder, &error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().contains(&b':')) {
            let name = content_hash(&path).map_err(|error| Failure::of(&error))?;
            fs::rename(&path, folder.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Replaces the corpus. All inputs exist after each step. If the first step fails, nothing has changed.
fn replace(corpus: &Path, small: &Path, former: &Path) -> io::Result<()> {
    let moved = moved(former);
    moved.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::rename(corpus, &moved)?;
    fs::rename(small, corpus).inspect_err(|_| {
        let _ = fs::rename(&moved, corpus);
    })?;
    clear(former)?;
    fs::rename(&moved, former)
}

/// Temporary place of the corpus while the minimized one takes its name.
fn moved(former: &Path) -> PathBuf {
    let mut name = former.file_name().unwrap_or_default().to_owned();
    name.push(".moved");
    former.with_file_name(name)
}

fn cannot_replace(corpus: &Path, small: &Path, error: &io::Error) -> Failure {
    if error.kind() != io::ErrorKind::CrossesDevices {
        return cannot_write(corpus, error);
    }
    let cause = format!("{} is on another file system than the harnesses", corpus.display());
    Failure::new(cause, format!("move the minimized corpus: it is {}", small.display()))
}

/// Minimizes one input and prints the path of the result.
pub(super) fn input(
    built: &BuiltHarness,
    input: &Path,
    options: &[OsString],
) -> Result<ExitCode, Failure> {
    let folder = built.artifacts();
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    let name = input.file_name().unwrap_or_default().to_string_lossy().replace(':', "_");
    let small = folder.join(format!("minimized-from-{name}"));
    let mut command = Command::new(own_program()?);
    command.arg("tmin").arg("-i").arg(input).arg("-o").arg(&small);
    command.args(options).arg("--").arg(&built.program);
    match failed(&mut command)? {
        Some(code) => Ok(code),
        None => crate::cmd::print(&format!("{}\n", small.display())),
    }
}

/// Runs a tool. None on success.
fn failed(command: &mut Command) -> Result<Option<ExitCode>, Failure> {
    let status = command.status().map_err(|error| cannot_start(&error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(CANNOT);
    Ok((!status.success()).then(|| ExitCode::from(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_replaced_and_kept_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let [corpus, small, former] =
            ["corpus", "small", "kept/former"].map(|name| dir.path().join(name));
        for round in ["first", "second"] {
            clear(&small).unwrap();
            fs::create_dir_all(&small).unwrap();
            fs::create_dir_all(&corpus).unwrap();
            fs::write(small.join("id:000001,op:havoc"), "abc").unwrap();
            fs::write(small.join(round), round).unwrap();
            name_by_content(&small).unwrap();
            replace(&corpus, &small, &former).unwrap();
            let hash = "a9993e364706816aba3e25717850c26c9cd0d89d";
            assert_eq!(fs::read(corpus.join(hash)).unwrap(), b"abc");
            assert!(corpus.join(round).exists() && !small.exists());
        }
        assert!(former.join("first").exists() && !former.join("second").exists());
    }

    #[test]
    fn a_corpus_on_another_file_system_stays_as_it_is() {
        let [here, there] = [std::env::temp_dir(), "/dev/shm".into()]
            .map(|folder| tempfile::tempdir_in(folder).unwrap());
        let (corpus, former) = (there.path().join("corpus"), here.path().join("former"));
        let small = here.path().join("small");
        for folder in [&corpus, &small, &former] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), folder.as_os_str().as_encoded_bytes()).unwrap();
        }
        let error = replace(&corpus, &small, &former).unwrap_err();
        let failure = cannot_replace(&corpus, &small, &error);
        assert!(failure.cause.ends_with("is on another file system than the harnesses"));
        assert!(failure.remedy.contains(&*small.to_string_lossy()), "{}", failure.remedy);
        for folder in [&corpus, &small, &former] {
            assert_eq!(
                fs::read(folder.join("file")).unwrap(),
                folder.as_os_str().as_encoded_bytes()
            );
        }
    }
}
