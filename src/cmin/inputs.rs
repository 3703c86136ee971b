//! The inputs of a minimization, smallest first.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::CminError;
use super::watch::FoundFile;
use crate::disk::inputs::{self, InputError};

/// All non-empty files of some folders.
#[derive(Debug)]
pub struct InputSet {
    pub folders: Vec<PathBuf>,
    /// Paths in the order of preference.
    pub paths: Vec<PathBuf>,
    /// Names of the results, in the same order; a merge names results by hash.
    pub(super) names: Vec<OsString>,
    /// Files of which the target gets only the first part.
    pub too_large: Vec<PathBuf>,
    /// Number of inputs at the front that are already kept.
    pub known: usize,
    pub(super) sizes: Vec<u64>,
    /// Hash of names, sizes and modification times.
    fingerprint: u64,
}

/// A file of the input folder.
struct InputFile {
    path: PathBuf,
    len: u64,
    changed: (i64, i64),
}

impl InputSet {
    /// Finds the files in the queues of instance folders, or in the folders themselves. Fails if `output` is inside one
    /// of them.
    pub fn find(folders: &[PathBuf], output: &Path) -> Result<Self, CminError> {
        let folders = Self::folders(folders, output)?;
        let mut paths = Vec::new();
        for folder in &folders {
            paths.extend(inputs::list_below(folder)?);
        }
        let inputs = in_order(paths)?;
        if inputs.is_empty() {
            return Err(CminError::NoInputs(folders.first().cloned().unwrap_or_default()));
        }
        let mut inputs = Self::of(folders, inputs, 0);
        inputs.names = inputs::flat_names(&inputs.folders, &inputs.paths);
        Ok(inputs)
    }

    /// The folders to watch for inputs, as for [`InputSet::find`].
    pub fn folders(folders: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>, CminError> {
        folders.iter().map(|folder| queue_of(folder, output)).collect()
    }

    /// Combines files that are already kept with files found in watched folders.
    pub(super) fn to_watch(kept: Vec<PathBuf>, found: Vec<FoundFile>) -> Result<Self, CminError> {
        let mut inputs = in_order(kept)?;
        let known = inputs.len();
        let file = |FoundFile { path, len, changed }: FoundFile| InputFile { path, len, changed };
        let mut found: Vec<InputFile> = found.into_iter().map(file).collect();
        sort(&mut found);
        inputs.extend(found);
        Ok(Self::of(Vec::new(), inputs, known))
    }

    /// Combines the files of a corpus, which are kept, with candidates to add.
    pub fn to_merge(corpus: Vec<PathBuf>, others: Vec<PathBuf>) -> Result<Self, CminError> {
        let mut inputs = in_order(corpus)?;
        let known = inputs.len();
        inputs.extend(in_order(others)?);
        Ok(Self::of(Vec::new(), inputs, known))
    }

    fn of(folders: Vec<PathBuf>, inputs: Vec<InputFile>, known: usize) -> Self {
        let large = inputs.iter().filter(|input| inputs::is_too_large(input.len));
        let too_large = large.map(|input| input.path.clone()).collect();
        let mut hasher = DefaultHasher::new();
        for input in &inputs {
            (&input.path, input.len, input.changed).hash(&mut hasher);
        }
        let sizes = inputs.iter().map(|input| input.len).collect();
        let paths: Vec<PathBuf> = inputs.into_iter().map(|input| input.path).collect();
        let fingerprint = hasher.finish();
        Self { folders, paths, names: Vec::new(), too_large, known, sizes, fingerprint }
    }

    /// Fingerprint of the inputs and of `settings`, which covers everything else that affects traces. Old traces are
    /// only valid with an equal fingerprint.
    pub(super) fn fingerprint(&self, settings: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.fingerprint, settings).hash(&mut hasher);
        hasher.finish()
    }
}

/// The non-empty files, smallest first.
fn in_order(paths: Vec<PathBuf>) -> Result<Vec<InputFile>, CminError> {
    let mut inputs = Vec::with_capacity(paths.len());
    for path in paths {
        let data = fs::metadata(&path).map_err(|error| InputError::file(&path, error))?;
        if data.len() > 0 {
            let changed = (data.mtime(), data.mtime_nsec());
            inputs.push(InputFile { path, len: data.len(), changed });
        }
    }
    sort(&mut inputs);
    Ok(inputs)
}

fn sort(inputs: &mut Vec<InputFile>) {
    // Byte order: comparing path components is many times slower.
    inputs.sort_by(|a, b| (a.len, a.path.as_os_str()).cmp(&(b.len, b.path.as_os_str())));
    // The user may name a folder twice.
    inputs.dedup_by(|a, b| a.path == b.path);
}

fn queue_of(folder: &Path, output: &Path) -> Result<PathBuf, CminError> {
    let queue = folder.join("queue");
    let folder = if queue.is_dir() { queue } else { folder.to_owned() };
    match is_inside(output, &folder) {
        true => Err(CminError::OutputInside(output.to_owned())),
        false => Ok(folder),
    }
}

/// Returns true if `path` is `folder` or inside it. The path need not exist.
#[must_use]
pub fn is_inside(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    matches!((real(path), real(folder)), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}
