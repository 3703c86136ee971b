//! Saves inputs to the output folder one by one, next to those of earlier runs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::super::{CminError, CminOptions, Names, save};
use super::sync_all;
use crate::disk::inputs;
use crate::mutate::MAX_INPUT;

pub(super) struct Keeper<'a> {
    options: &'a CminOptions,
    roots: Vec<PathBuf>,
    saved: usize,
    /// Next number in the queue.
    number: usize,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(options: &'a CminOptions, roots: Vec<PathBuf>) -> Result<Self, CminError> {
        let names = inputs::list(&options.output)?;
        let numbers = names.iter().filter_map(|path| number_of(path.file_name()?));
        let number = numbers.max().map_or(0, |number| number + 1);
        Ok(Self { options, roots, saved: 0, number })
    }

    pub(super) fn saved(&self) -> usize {
        self.saved
    }

    /// Saves an input and returns its name. `bytes` are what the target got, at most the first MiB; None: the current
    /// content of the file.
    pub(super) fn save(
        &mut self,
        input: &Path,
        bytes: Option<&[u8]>,
    ) -> Result<OsString, CminError> {
        let output = &self.options.output;
        let content = content(input, bytes)?;
        let is_taken = |name: &OsStr| output.join(name).symlink_metadata().is_ok();
        let own =
            |is_taken: &dyn Fn(&OsStr) -> bool| inputs::flat_name(&self.roots, input, is_taken);
        let name = match self.options.names {
            Names::Own => own(&is_taken),
            Names::Queue => save::queue_name(self.number, "orig", &own(&|_| false)),
            Names::QueueOfHashes => {
                save::queue_name(self.number, "hash", save::hash_of(&content).as_ref())
            }
        };
        save::write(&content, output, &name)?;
        self.number += 1;
        self.saved += 1;
        Ok(name)
    }

    /// Saves a crashing input if there is a folder for crashes.
    pub(super) fn save_crash(&self, input: &Path, bytes: Option<&[u8]>) -> Result<(), CminError> {
        let Some(folder) = &self.options.crash_folder else { return Ok(()) };
        let content = content(input, bytes)?;
        save::write_by_hash(&content, folder)
    }

    /// Flushes the folders to the disk.
    pub(super) fn sync(&self) -> Result<(), CminError> {
        let folders = [Some(&self.options.output), self.options.crash_folder.as_ref()];
        for folder in folders.into_iter().flatten().filter(|folder| folder.exists()) {
            sync_all(folder).map_err(|error| CminError::write(folder, error))?;
        }
        Ok(())
    }
}

/// The whole content: the target got only a part of a large file.
fn content(input: &Path, bytes: Option<&[u8]>) -> Result<Vec<u8>, CminError> {
    match bytes {
        Some(bytes) if bytes.len() < MAX_INPUT => Ok(bytes.to_owned()),
        _ => Ok(inputs::read_file(input)?),
    }
}

fn number_of(name: &OsStr) -> Option<usize> {
    name.to_str()?.strip_prefix("id:")?.split(',').next()?.parse().ok()
}
