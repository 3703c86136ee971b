//! Input folders given to a tool: their files, names for results, and their content.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use miette::Diagnostic;

use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::file;

/// Inputs that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum InputError {
    #[error("cannot read the folder {folder:?}: {source}")]
    #[diagnostic(help("{}", how_to_give(folder)))]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot read {path:?}: {source}")]
    #[diagnostic(help("check its permissions, or remove it from the folder"))]
    File { path: PathBuf, source: io::Error },
    #[error("cannot read the list {list:?}: {source}")]
    #[diagnostic(help("give a file with the path of an input in each line"))]
    List { list: PathBuf, source: io::Error },
}

impl InputError {
    pub fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}

/// Remedy for a path that should be a folder of inputs.
#[must_use]
pub fn how_to_give(path: &Path) -> String {
    if !path.is_file() {
        return "give a folder of inputs, for example seeds or out/queue".to_owned();
    }
    let (name, shown) = (path.file_name().unwrap_or_default().to_string_lossy(), path.display());
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    match () {
        () if ends(&[".zip"]) => format!("unpack it, and give the folder: unzip {shown} -d seeds"),
        () if ends(&[".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"]) => {
            format!("unpack it, and give the folder: mkdir seeds && tar xf {shown} -C seeds")
        }
        () => format!(
            "it is a file: put it into a folder, and give that: mkdir seeds && cp {shown} seeds"
        ),
    }
}

/// Files of a folder, by name; skips hidden ones, follows links.
pub fn list(dir: &Path) -> Result<Vec<PathBuf>, InputError> {
    let mut files: Vec<PathBuf> = visible(dir)?.into_iter().filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Files of a folder and all folders below it. Does not follow links to folders, which may be circular.
pub fn list_below(dir: &Path) -> Result<Vec<PathBuf>, InputError> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in visible(&folder)? {
            if path.is_file() {
                files.push(path);
            } else if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn visible(dir: &Path) -> Result<Vec<PathBuf>, InputError> {
    let failure = |source| InputError::Folder { folder: dir.to_owned(), source };
    let entries = fs::read_dir(dir).map_err(failure)?.flatten().map(|entry| entry.path());
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    Ok(entries.filter(|path| !is_hidden(path)).collect())
}

/// Files named in a list, one per line; skips empty lines.
pub fn listed(list: &Path) -> Result<Vec<PathBuf>, InputError> {
    let text = fs::read(list).map_err(|source| InputError::List { list: list.into(), source })?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect())
}

/// Unique names for files, without folders; a name that is taken is preceded by the folders below its root.
#[must_use]
pub fn flat_names(roots: &[PathBuf], files: &[PathBuf]) -> Vec<OsString> {
    let mut taken = HashSet::new();
    let mut names = Vec::with_capacity(files.len());
    for file in files {
        let name = flat_name(roots, file, &|name| taken.contains(name));
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Unique name for one file, see [`flat_names`].
#[must_use]
pub fn flat_name(roots: &[PathBuf], file: &Path, is_taken: &dyn Fn(&OsStr) -> bool) -> OsString {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    if is_taken(&name) {
        let path = roots.iter().find_map(|root| file.strip_prefix(root).ok()).unwrap_or(file);
        let parts: Vec<&OsStr> = path
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .map(|part| part.as_os_str())
            .collect();
        name = parts.join(OsStr::new("_"));
    }
    while is_taken(&name) {
        name.push("_");
    }
    name
}

/// Checks that a folder can be listed.
pub fn check_folder(dir: &Path) -> Result<(), InputError> {
    let failure = |source| InputError::Folder { folder: dir.to_owned(), source };
    fs::read_dir(dir).map(drop).map_err(failure)
}

/// True if a file of this size exceeds the maximum input, so that the target gets only a part.
#[must_use]
pub fn is_too_large(size: u64) -> bool {
    size > MAX_INPUT as u64
}

/// Reads a whole file.
pub fn read_file(path: &Path) -> Result<Vec<u8>, InputError> {
    file::read(path, u64::MAX).map_err(|error| InputError::file(path, error))
}

/// Reads a file up to the maximum size of an input, as the target would get it.
pub fn read(path: &Path, bytes: &mut Vec<u8>) -> Result<(), InputError> {
    bytes.clear();
    let read = file::open(path).and_then(|file| file.take(MAX_INPUT as u64).read_to_end(bytes));
    read.map(|_| ()).map_err(|source| InputError::file(path, source))
}

/// Like [`read`], for a file whose size was just `size`, with fewer system calls.
pub fn read_sized(path: &Path, size: u64, bytes: &mut Vec<u8>) -> Result<(), InputError> {
    let size = size.min(MAX_INPUT as u64) as usize;
    // One extra byte: a read that does not fill the buffer has reached the end.
    bytes.resize((size + 1).min(MAX_INPUT), 0);
    // A file replaced by a FIFO does not block; a device is read up to a limit.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    match opened.and_then(|mut file| file.read(bytes)) {
        Ok(count) if count == size => {
            bytes.truncate(size);
            Ok(())
        }
        // The file has changed or cannot be read: the usual way handles it.
        _ => read(path, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_another_size_is_read_as_well() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut bytes = b"before".to_vec();
        for content in ["", "a", "abc"] {
            fs::write(&path, content).unwrap();
            for size in [0, 1, 3, 9, u64::MAX] {
                read_sized(&path, size, &mut bytes).unwrap();
                assert_eq!(bytes, content.as_bytes());
            }
        }
        fs::write(&path, vec![1; MAX_INPUT + 5]).unwrap();
        read_sized(&path, MAX_INPUT as u64 + 5, &mut bytes).unwrap();
        assert_eq!(bytes.len(), MAX_INPUT);
        assert!(read_sized(dir.path(), 3, &mut bytes).is_err());
    }

    #[test]
    fn names_without_folders_are_all_different() {
        let files = ["r/a", "r/x/a", "r/x_a", "r/y/a"].map(PathBuf::from);
        assert_eq!(flat_names(&["r".into()], &files), ["a", "x_a", "x_a_", "y_a"]);
        let files = ["/r/a", "/q/a", "../a"].map(PathBuf::from);
        assert_eq!(flat_names(&[], &files), ["a", "q_a", "a_"]);
    }
}
