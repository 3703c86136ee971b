//! What a run leaves for the next one, in one ZIP file: of each harness its corpus, its crashes and its coverage, and
//! which bugs were known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::CiError;
use ffuzz_sys::file;

/// Of the form of the file.
const VERSION: u32 = 1;
const STATE: &str = "state.json";
pub(super) const CORPUS: &str = "corpus";
pub(super) const CRASHES: &str = "crashes";
pub(super) const COVERAGE: &str = "coverage.json";
/// Bytes of all files together, unpacked.
const MOST_BYTES: u64 = 8 << 30;

/// What an archive says of earlier runs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ArchiveState {
    version: u32,
    /// By the name of the harness.
    pub(super) harnesses: BTreeMap<String, HarnessState>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct HarnessState {
    /// Names of its bugs.
    pub(super) bugs: BTreeSet<String>,
    /// Edges that its corpus reaches.
    pub(super) edges: u64,
}

/// Unpacks an archive: `NAME/corpus` and `NAME/crashes` into `folder`. An archive that is not there is an empty one.
pub(super) fn read(path: &Path, folder: &Path) -> Result<ArchiveState, CiError> {
    let file = match File::open(path) {
        Err(error) if file::is_missing(&error) => return Ok(ArchiveState::default()),
        file => file.map_err(|source| CiError::Read { path: path.to_owned(), source })?,
    };
    let damaged = |reason: &dyn std::fmt::Display| CiError::Archive {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(&error))?;
    let mut text = String::new();
    let state = zip.by_name(STATE).map_err(|error| damaged(&error))?;
    state.take(MOST_BYTES).read_to_string(&mut text).map_err(|error| damaged(&error))?;
    let state: ArchiveState = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
    if state.version != VERSION {
        return Err(damaged(&format!("its version is {}, not {VERSION}", state.version)));
    }
    let mut left = MOST_BYTES;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(|error| damaged(&error))?;
        let Some(name) = entry.enclosed_name().filter(|_| entry.is_file()) else { continue };
        if name == Path::new(STATE) {
            continue;
        }
        let to = folder.join(name);
        let write = |source| CiError::Write { path: to.clone(), source };
        to.parent().map_or(Ok(()), fs::create_dir_all).map_err(write)?;
        let mut out = File::create(&to).map_err(write)?;
        let count = io::copy(&mut (&mut entry).take(left), &mut out);
        left -= count.map_err(|error| damaged(&error))?;
        if left == 0 {
            return Err(damaged(&"it is too large"));
        }
    }
    Ok(state)
}

/// Writes an archive beside the file and renames it. `folders` are those to take the files of each harness from, by the
/// names within the archive.
pub(super) fn write(
    path: &Path,
    state: &ArchiveState,
    files: &[(String, PathBuf)],
) -> Result<(), CiError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = pack(&beside, &ArchiveState { version: VERSION, ..state.clone() }, files);
    let written = written.and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&beside);
        CiError::Write { path: path.to_owned(), source }
    })
}

fn pack(path: &Path, state: &ArchiveState, files: &[(String, PathBuf)]) -> io::Result<()> {
    let mut zip = ZipWriter::new(BufWriter::new(File::create(path)?));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    zip.start_file(STATE, options)?;
    zip.write_all(&serde_json::to_vec_pretty(state).unwrap_or_default())?;
    for (name, from) in files {
        zip.start_file(name.as_str(), options)?;
        io::copy(&mut File::open(from)?, &mut zip)?;
    }
    let out = zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_as_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        assert!(read(&place("none"), &place("in")).unwrap().harnesses.is_empty());
        fs::write(place("a"), "abc").unwrap();
        let harness = HarnessState { bugs: BTreeSet::from(["bug".into()]), edges: 7 };
        let state = ArchiveState {
            harnesses: BTreeMap::from([("parse".into(), harness)]),
            ..ArchiveState::default()
        };
        let files =
            [("parse/corpus/a".to_owned(), place("a")), ("parse/crashes/b".to_owned(), place("a"))];
        write(&place("archive"), &state, &files).unwrap();
        let read = read(&place("archive"), &place("in")).unwrap();
        assert_eq!(read.harnesses["parse"].edges, 7);
        assert!(read.harnesses["parse"].bugs.contains("bug"));
        assert_eq!(fs::read(place("in/parse/corpus/a")).unwrap(), b"abc");
        assert!(place("in/parse/crashes/b").exists() && !place("archive.new").exists());
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("archive");
        fs::write(&path, "no archive").unwrap();
        assert!(matches!(read(&path, dir.path()), Err(CiError::Archive { .. })));
    }
}
