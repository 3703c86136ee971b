//! The inputs that are to be minimized, the smallest first.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::CminError;
use super::watch::FoundFile;
use crate::disk::inputs::{self, InputError};

/// All files of some folders that are not empty.
#[derive(Debug)]
pub struct Inputs {
    pub folders: Vec<PathBuf>,
    /// In the order of preference.
    pub paths: Vec<PathBuf>,
    /// Those of the results, in the same order; a merge names them by their hashes.
    pub(super) names: Vec<OsString>,
    /// The target gets only the first part of these.
    pub too_large: Vec<PathBuf>,
    /// The first ones count as kept.
    pub known: usize,
    pub(super) sizes: Vec<u64>,
    /// Of names, sizes and times.
    fingerprint: u64,
}

/// A file of the input folder.
struct InputFile {
    path: PathBuf,
    len: u64,
    changed: (i64, i64),
}

impl Inputs {
    /// Of the queues of instance folders, or of the folders themselves; `output` may not lie in it.
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

    /// The folders that are watched for inputs, as for [`Inputs::find`].
    pub fn folders(folders: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>, CminError> {
        folders.iter().map(|folder| queue_of(folder, output)).collect()
    }

    /// Files that are kept already, and those that are found in watched folders.
    pub(super) fn to_watch(kept: Vec<PathBuf>, found: Vec<FoundFile>) -> Result<Self, CminError> {
        let mut inputs = in_order(kept)?;
        let known = inputs.len();
        let file = |FoundFile { path, len, changed }: FoundFile| InputFile { path, len, changed };
        let mut found: Vec<InputFile> = found.into_iter().map(file).collect();
        sort(&mut found);
        inputs.extend(found);
        Ok(Self::of(Vec::new(), inputs, known))
    }

    /// The files of a corpus, which are kept, and those that may be added to it.
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

    /// `settings`: of everything else that decides what the traces are. Only with the same result are
    /// old ones taken over.
    pub(super) fn fingerprint(&self, settings: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.fingerprint, settings).hash(&mut hasher);
        hasher.finish()
    }
}

/// Those that are not empty, the smallest first.
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
    // By bytes: comparing the components of paths takes many times as long.
    inputs.sort_by(|a, b| (a.len, a.path.as_os_str()).cmp(&(b.len, b.path.as_os_str())));
    // A folder may be named twice.
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

/// Whether `path` is the folder or below it. It need not exist.
#[must_use]
pub fn is_inside(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    matches!((real(path), real(folder)), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}
