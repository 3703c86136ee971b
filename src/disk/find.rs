//! Locations of crashes: output folders of ffuzz and afl-fuzz, and any folder of files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::output::setup::RecordedSetup;

/// Suffixes of marks beside a crash: it was delivered to a server, or could not be.
const MARKS: [&[u8]; 2] = [b".submitted", b".failed"];
/// Prefixes of AFL's other files.
const OTHERS: [&[u8]; 2] = [b"README.txt", b"RECORD:"];

/// Crash folders of `root`: its own `crashes`, those of its instances, those that afl-fuzz renamed when it resumed
/// (`crashes.DATE`); `root` itself if there are none and it is no output folder.
pub fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    all_named(root, |name| name == b"crashes" || name.starts_with(b"crashes."))
}

/// Hang folders of `root`.
pub fn hangs(root: &Path) -> io::Result<Vec<PathBuf>> {
    let found = all_named(root, is_hangs)?;
    Ok(found.into_iter().filter(|folder| is_hangs(name_of(folder))).collect())
}

/// True if a file is in a hang folder.
#[must_use]
pub fn is_hang(file: &Path) -> bool {
    file.parent().is_some_and(|folder| is_hangs(name_of(folder)))
}

fn is_hangs(name: &[u8]) -> bool {
    name == b"hangs" || name.starts_with(b"hangs.")
}

fn name_of(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_bytes()
}

/// Queue folders of `root`, found like [`folders`].
pub fn queues(root: &Path) -> io::Result<Vec<PathBuf>> {
    all_named(root, |name| name == b"queue")
}

fn all_named(root: &Path, is_wanted: fn(&[u8]) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = named(root, is_wanted)?;
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(named(&path, is_wanted).unwrap_or_default());
        }
    }
    if found.is_empty() && !looks_like_output(root) {
        found.push(root.to_owned());
    }
    // Removes duplicates through ffuzz's links.
    let mut real: Vec<PathBuf> = found.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.sort();
    real.dedup();
    Ok(real)
}

fn named(instance: &Path, is_wanted: fn(&[u8]) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(instance)? {
        let entry = entry?;
        if is_wanted(entry.file_name().as_bytes()) && entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// True for the output folder of a campaign without a crash, or of one that is about to start.
fn looks_like_output(root: &Path) -> bool {
    let has = |folder: &Path| {
        ["fuzzer_setup", "fuzzer_stats", "queue"].iter().any(|n| folder.join(n).exists())
    };
    let mut folders = fs::read_dir(root).into_iter().flatten().flatten().map(|e| e.path());
    has(root) || folders.any(|folder| has(&folder))
}

/// Crash files of a folder, by name.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_crash(path.file_name().unwrap_or_default()) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// True if a file of this name is a crash.
#[must_use]
pub fn is_crash(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let marked = MARKS.iter().any(|mark| name.ends_with(mark));
    !name.starts_with(b".") && !marked && !OTHERS.iter().any(|other| name.starts_with(other))
}

/// Recorded setup of the fuzzer of one of these folders.
#[must_use]
pub fn setup(folders: &[PathBuf]) -> Option<RecordedSetup> {
    folders.iter().find_map(|folder| {
        RecordedSetup::parse(&fs::read(folder.parent()?.join("fuzzer_setup")).ok()?)
    })
}

/// Recorded command line of the target of one of these folders.
#[must_use]
pub fn command(folders: &[PathBuf]) -> Option<Vec<OsString>> {
    folders.iter().find_map(|folder| {
        let bytes = fs::read(folder.parent()?.join("cmdline")).ok()?;
        let words = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n');
        let words: Vec<_> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
        (!words[0].is_empty()).then_some(words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn crashes_of_all_instances_are_found_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        put(&root, "out/a/crashes/id:000000", "x");
        put(&root, "out/a/crashes/README.txt", "x");
        put(&root, "out/a/crashes/id:000000.submitted", "");
        put(&root, "out/a/crashes.2026-01-02/id:000001", "x");
        put(&root, "out/b/crashes/.new_file", "x");
        put(&root, "out/b/cmdline", "./target\n--in\n@@\n");
        std::os::unix::fs::symlink("a/crashes", root.join("out/crashes")).unwrap();
        let found = folders(&root.join("out")).unwrap();
        let names = ["out/a/crashes", "out/a/crashes.2026-01-02", "out/b/crashes"];
        assert_eq!(found, names.map(|name| root.join(name)));
        assert_eq!(files(&found[0]).unwrap(), [root.join("out/a/crashes/id:000000")]);
        assert!(files(&found[2]).unwrap().is_empty());
        assert_eq!(command(&found), Some(["./target", "--in", "@@"].map(Into::into).to_vec()));
        // An instance, its folder of crashes, any folder.
        assert_eq!(folders(&root.join("out/b")).unwrap(), [root.join("out/b/crashes")]);
        assert_eq!(folders(&root.join("out/a/crashes")).unwrap(), [root.join("out/a/crashes")]);
        assert!(folders(&root.join("missing")).is_err());
    }

    #[test]
    fn a_campaign_without_crashes_has_none() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "default/queue/id:000000", "x");
        put(dir.path(), "default/fuzzer_setup", "x");
        assert!(folders(dir.path()).unwrap().is_empty());
        assert_eq!(command(&[]), None);
    }
}
