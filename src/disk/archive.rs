//! ZIP archives of inputs, such as OSS-Fuzz's seeds beside a harness (`NAME_seed_corpus.zip`).

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use zip::ZipArchive;

use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::file;

const MAGIC: &[u8] = b"PK\x03\x04";
/// Maximum total unpacked size, bytes; guards against zip bombs.
const MOST_BYTES: u64 = 4 << 30;
const MOST_FILES: usize = 1 << 20;

/// An archive that cannot be unpacked.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ArchiveError {
    #[error("cannot read the archive {}: {reason}", archive.display())]
    #[diagnostic(help("unpack it by hand, and give the folder"))]
    Damaged { archive: PathBuf, reason: String },
    #[error("the archive {} has more than {} files, or {} GiB", archive.display(), MOST_FILES, MOST_BYTES >> 30)]
    #[diagnostic(help("unpack what is needed of it, and give the folder"))]
    Large { archive: PathBuf },
    #[error("cannot write to {}: {source}", folder.display())]
    #[diagnostic(help("check its permissions and the free space"))]
    Write { folder: PathBuf, source: io::Error },
}

/// True if a path is a file that begins like a ZIP archive.
#[must_use]
pub fn is_archive(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    let read = |mut file: File| file.read_exact(&mut start);
    file::may_be_regular(path) && File::open(path).and_then(read).is_ok() && start == MAGIC
}

/// Checks that the file list of an archive is readable and not too long.
pub fn check(archive: &Path) -> Result<(), ArchiveError> {
    open(archive).map(drop)
}

fn open(archive: &Path) -> Result<ZipArchive<BufReader<File>>, ArchiveError> {
    let damaged = |reason: String| ArchiveError::Damaged { archive: archive.to_owned(), reason };
    let file = File::open(archive).map_err(|error| damaged(error.to_string()))?;
    let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(error.to_string()))?;
    match zip.len() > MOST_FILES {
        true => Err(ArchiveError::Large { archive: archive.to_owned() }),
        false => Ok(zip),
    }
}

/// Writes the non-empty files of an archive into `folder`, which is emptied first, as `NUMBER-NAME` in the order of the
/// archive. Creates no subfolders and skips links; truncates files to the maximum size of an input. Returns the number
/// of files.
pub fn unpack(archive: &Path, folder: &Path) -> Result<usize, ArchiveError> {
    let damaged = |reason: &dyn std::fmt::Display| ArchiveError::Damaged {
        archive: archive.to_owned(),
        reason: reason.to_string(),
    };
    let write = |source| ArchiveError::Write { folder: folder.to_owned(), source };
    let large = || ArchiveError::Large { archive: archive.to_owned() };
    let mut zip = open(archive)?;
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(write(error)),
        _ => fs::create_dir_all(folder).map_err(write)?,
    }
    let (mut left, mut count) = (MOST_BYTES, 0);
    for index in 0..zip.len() {
        let entry = zip.by_index(index).map_err(|error| damaged(&error))?;
        if !entry.is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let name = name.rsplit('/').next().unwrap_or_default().replace('\0', "");
        let mut content = Vec::new();
        let most = left.min(MAX_INPUT as u64);
        entry.take(most).read_to_end(&mut content).map_err(|error| damaged(&error))?;
        left -= content.len() as u64;
        if left == 0 {
            return Err(large());
        }
        if !content.is_empty() {
            // Keeps names below a file system's limit of 255 bytes.
            let short: String = name.chars().take(50).collect();
            fs::write(folder.join(format!("{index:06}-{short}")), content).map_err(write)?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(path: &Path, files: &[(&str, &[u8])]) {
        let mut zip = ZipWriter::new(File::create(path).unwrap());
        for (name, content) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.add_symlink("link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        zip.finish().unwrap();
    }

    #[test]
    fn files_are_unpacked_into_one_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (path, into) = (dir.path().join("a.zip"), dir.path().join("seeds"));
        let large = vec![7; MAX_INPUT + 5];
        archive(&path, &[("a/x", b"1"), ("../../x", b"2"), ("empty", b""), ("large", &large)]);
        fs::create_dir(&into).unwrap();
        fs::write(into.join("old"), "old").unwrap();
        assert!(is_archive(&path) && !is_archive(&into));
        assert_eq!(unpack(&path, &into).unwrap(), 3);
        let mut names: Vec<_> =
            fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["000000-x", "000001-x", "000003-large"]);
        assert_eq!(fs::read(into.join("000001-x")).unwrap(), b"2");
        assert_eq!(fs::metadata(into.join("000003-large")).unwrap().len(), MAX_INPUT as u64);
    }

    #[test]
    fn what_is_no_archive_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zip");
        fs::write(&path, "PK\x03\x04 is all of it").unwrap();
        assert!(is_archive(&path) && check(&path).is_err());
        let error = unpack(&path, &dir.path().join("seeds")).unwrap_err();
        assert!(error.to_string().contains("cannot read the archive"), "{error}");
        assert!(!dir.path().join("seeds").exists());
    }
}
