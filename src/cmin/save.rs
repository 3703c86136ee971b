//! Saves kept inputs to the output folder, as links if possible, otherwise as copies.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha1::{Digest, Sha1};

use super::CminError;
use crate::disk::inputs::InputError;

/// Name of an incomplete copy.
const TEMPORARY: &str = ".cmin.new";

/// Saves `input` as `name`; reuses what an interrupted run left. Returns true for a copy, which may not be on the disk
/// yet.
pub(super) fn save(input: &Path, folder: &Path, name: &OsStr) -> Result<bool, CminError> {
    let goal = folder.join(name);
    let linked = match input.is_symlink() {
        true => Err(io::ErrorKind::Unsupported.into()),
        false => fs::hard_link(input, &goal),
    };
    match linked {
        Ok(()) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_same(input, &goal) => {
            return Ok(!is_link(input, &goal));
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(CminError::write(&goal, error));
        }
        Err(_) => {}
    }
    let temporary = folder.join(TEMPORARY);
    let copied = fs::copy(input, &temporary).and_then(|_| fs::rename(&temporary, &goal));
    copied.map(|()| true).map_err(|error| {
        let _ = fs::remove_file(&temporary);
        CminError::write(&goal, error)
    })
}

/// As [`save`], named by the SHA-1 hash of the content; an existing file has the same content.
pub(super) fn save_by_hash(input: &Path, folder: &Path) -> Result<(), CminError> {
    fs::create_dir_all(folder).map_err(|error| CminError::write(folder, error))?;
    let name = hash(input)?;
    save(input, folder, name.as_ref()).map(|_| ())
}

/// SHA-1 hash of the content in hexadecimal digits.
pub fn hash(input: &Path) -> Result<String, CminError> {
    let content = fs::read(input).map_err(|error| InputError::file(input, error))?;
    Ok(hash_of(&content))
}

pub(super) fn hash_of(content: &[u8]) -> String {
    Sha1::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file atomically.
pub(super) fn write(content: &[u8], folder: &Path, name: &OsStr) -> Result<(), CminError> {
    let (temporary, goal) = (folder.join(TEMPORARY), folder.join(name));
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, &goal));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        CminError::write(&goal, error)
    })
}

/// As [`write()`], named by the SHA-1 hash of the content; an existing file is kept.
pub(super) fn write_by_hash(content: &[u8], folder: &Path) -> Result<(), CminError> {
    fs::create_dir_all(folder).map_err(|error| CminError::write(folder, error))?;
    let name = hash_of(content);
    match folder.join(&name).exists() {
        true => Ok(()),
        false => write(content, folder, name.as_ref()),
    }
}

pub(super) fn queue_name(number: usize, kind: &str, origin: &OsStr) -> OsString {
    let mut name = OsString::from(format!("id:{number:06},{kind}:"));
    name.push(origin);
    name
}

fn is_link(input: &Path, goal: &Path) -> bool {
    let (Ok(one), Ok(other)) = (fs::metadata(input), fs::metadata(goal)) else { return false };
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn is_same(input: &Path, goal: &Path) -> bool {
    let (Ok(one), Ok(other)) = (fs::metadata(input), fs::metadata(goal)) else { return false };
    is_link(input, goal)
        || (one.len() == other.len() && fs::read(input).ok() == fs::read(goal).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_copies_and_takes_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a"), "content").unwrap();
        std::os::unix::fs::symlink("a", path("link")).unwrap();
        fs::create_dir(path("out")).unwrap();
        for _ in 0..2 {
            assert!(!save(&path("a"), &path("out"), "one".as_ref()).unwrap());
            assert!(save(&path("link"), &path("out"), "two".as_ref()).unwrap());
        }
        assert_eq!(fs::metadata(path("a")).unwrap().nlink(), 2);
        assert!(!path("out/two").is_symlink());
        assert_eq!(fs::read(path("out/two")).unwrap(), b"content");
        fs::write(path("out/three"), "another").unwrap();
        save(&path("a"), &path("out"), "three".as_ref()).unwrap_err();
        assert_eq!(fs::read_dir(path("out")).unwrap().count(), 3);
    }
}
