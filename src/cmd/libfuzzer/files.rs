//! libFuzzer's files: a corpus with hashes as names, and artifacts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha1::{Digest, Sha1};

use super::options::Order;

/// libFuzzer's first input if there is no corpus.
const FIRST: &[u8] = b"\n";

/// SHA-1 of a content, as in the names of libFuzzer's files.
pub(super) fn hash(content: &[u8]) -> String {
    Sha1::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A temporary folder with the campaign's seeds and output.
pub(super) struct CampaignFiles {
    folder: PathBuf,
}

/// Number and lengths of the initial inputs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sizes {
    pub(super) files: usize,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) total: u64,
}

impl Sizes {
    fn add(&mut self, bytes: u64) {
        self.least = if self.files == 0 { bytes } else { self.least.min(bytes) };
        self.most = self.most.max(bytes);
        self.total += bytes;
        self.files += 1;
    }
}

impl CampaignFiles {
    /// Creates the folder inside the folder for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let name = format!("ffuzz-libfuzzer-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        fs::create_dir(folder.join("seeds"))?;
        Ok(Self { folder })
    }

    pub(super) fn seeds(&self) -> PathBuf {
        self.folder.join("seeds")
    }

    /// Path of a file or subfolder.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn output(&self) -> PathBuf {
        self.folder.join("out")
    }

    /// Collects the files of all folders and of `-seed_inputs`. Skips unreadable files, as libFuzzer does. Also returns
    /// the number of files per folder.
    pub(super) fn collect(&self, order: &Order) -> io::Result<(Sizes, Vec<usize>)> {
        let (mut sizes, mut counts) = (Sizes::default(), Vec::new());
        let mut number = 0;
        let mut add = |file: &Path| -> io::Result<()> {
            let Some(data) = fs::metadata(file).ok().filter(fs::Metadata::is_file) else {
                return Ok(());
            };
            let seed = self.seeds().join(format!("{number}"));
            // A hard link to a relative symbolic link would lead elsewhere.
            let is_link = fs::symlink_metadata(file).is_ok_and(|data| data.is_symlink());
            if is_link || fs::hard_link(file, &seed).is_err() {
                let Ok(content) = fs::read(file) else { return Ok(()) };
                fs::write(&seed, content)?;
            }
            number += 1;
            sizes.add(data.len());
            Ok(())
        };
        for folder in &order.folders {
            let files = files_below(folder)?;
            counts.push(files.len());
            for file in files {
                add(&file)?;
            }
        }
        for file in seed_inputs(order.text("seed_inputs"))? {
            add(&file)?;
        }
        if sizes.files == 0 {
            fs::write(self.seeds().join("0"), FIRST)?;
        }
        Ok((sizes, counts))
    }
}

impl Drop for CampaignFiles {
    /// Removes the folder in the background: thousands of files on a busy disk take seconds.
    fn drop(&mut self) {
        let mut remove = Command::new("rm");
        remove.arg("-rf").arg("--").arg(&self.folder).process_group(0);
        remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if remove.spawn().is_err() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// All regular files in a folder and its subfolders. Names with a leading dot are fuzzers' notes, and skipped.
pub(super) fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            match () {
                () if entry.file_name().as_bytes().starts_with(b".") => {}
                () if kind.is_dir() => folders.push(entry.path()),
                () if kind.is_file() || kind.is_symlink() => found.push(entry.path()),
                () => {}
            }
        }
    }
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(found)
}

/// Names separated by commas, or listed in a file.
fn seed_inputs(list: &str) -> io::Result<Vec<PathBuf>> {
    let text = match list.strip_prefix('@') {
        Some(file) => fs::read(file)?,
        None => list.as_bytes().to_vec(),
    };
    let names = text.split(|byte| b",\n".contains(byte)).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(OsString::from_vec(name.to_vec()))).collect())
}

/// Saves a new input in the first folder.
pub(super) fn save_input(folder: &Path, content: &[u8]) -> io::Result<()> {
    let path = folder.join(hash(content));
    if path.exists() { Ok(()) } else { write(&path, content) }
}

/// Saves a failing input. Returns its path: `-exact_artifact_path`, or the prefix, the kind and the hash.
pub(super) fn save_artifact(order: &Order, kind: &str, content: &[u8]) -> io::Result<PathBuf> {
    let path = match order.text("exact_artifact_path") {
        "" => format!("{}{kind}-{}", order.text("artifact_prefix"), hash(content)).into(),
        exact => PathBuf::from(exact),
    };
    write(&path, content)?;
    Ok(path)
}

/// Writes a regular file. Fails if the path is a device or a folder.
pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(io::Error::other("it is no regular file"));
    }
    fs::write(path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hashes_and_nothing_but_files_is_written() {
        assert_eq!(hash(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let folder = tempfile::tempdir().unwrap();
        save_input(folder.path(), b"abc").unwrap();
        assert_eq!(fs::read(folder.path().join(hash(b"abc"))).unwrap(), b"abc");
        assert!(write(Path::new("/dev/null"), b"x").is_err());
    }

    #[test]
    fn files_are_collected_from_all_folders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        for (name, content) in [("a/x", "12"), ("a/b/y", "1234"), ("a/.z", "1"), ("c", "123456")] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let words = [
            folder.path().join("a").into_os_string(),
            format!("-seed_inputs={}", folder.path().join("c").display()).into(),
        ];
        let order = Order::read(words.into_iter()).unwrap();
        let workshop = CampaignFiles { folder: folder.path().join("w") };
        fs::create_dir_all(workshop.seeds()).unwrap();
        let (sizes, counts) = workshop.collect(&order).unwrap();
        assert_eq!(sizes, Sizes { files: 3, least: 2, most: 6, total: 12 });
        assert_eq!((counts, files_below(&workshop.seeds()).unwrap().len()), (vec![2], 3));
    }
}
