//! Lists the starting inputs of a campaign, from a folder or the queue of an earlier process, and stores them in the
//! queue.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::CampaignError;
use super::outside::Outside;
use crate::config::options::Input;
use crate::disk::archive;
use crate::disk::output::state::SavedState;
use crate::disk::sessions;
use crate::engine::corpus::{SeedId, names};
use crate::engine::fuzzer::Fuzzer;
use crate::mutate::MAX_INPUT;
use crate::mutators::Mutators;
use crate::sys::file;

/// Folder of the instance for files unpacked from an archive.
const UNPACKED: &str = ".unpacked-seeds";
/// Maximum number of missing entries in a queue, so that a forged name cannot reserve much memory.
const MOST_GAPS: u32 = 1 << 20;

/// A starting input before it has an id.
pub(super) struct Start {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// Set if the file already lies in the queue under this id.
    pub(super) id: Option<SeedId>,
    /// True if it lies in the queue, under any name.
    pub(super) queued: bool,
}

impl Start {
    /// A file from outside the queue.
    fn new(path: PathBuf) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { path, name, id: None, queued: false }
    }

    /// Returns true for an empty file: a power failure may leave a name without content.
    pub(super) fn is_empty(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|data| data.len() == 0)
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, CampaignError> {
        let path = &self.path;
        read_limited(path).map_err(|source| CampaignError::Seed { path: path.clone(), source })
    }
}

/// A starting input in the queue.
pub(super) struct QueuedSeed {
    pub(super) id: SeedId,
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) data: Vec<u8>,
    /// Path of the user's file.
    pub(super) from: PathBuf,
    /// Size of the user's file, if it was too large to be read completely.
    cut: Option<u64>,
}

/// Starting inputs of the campaign, by id.
pub(super) fn list(
    input: &Input,
    state: &SavedState,
    outside: &mut Outside,
) -> Result<Vec<Start>, CampaignError> {
    let Input::Directory(dir) = input else {
        let files = outside.output.queue_files()?;
        let mut starts = queue_starts(only_files(files, outside), state);
        add_unfinished(&mut starts, outside);
        return Ok(starts);
    };
    let mut files = Vec::new();
    collect_files(&folder_of(dir, outside)?, &mut files)?;
    if files.is_empty() {
        return Err(CampaignError::NoSeeds { path: dir.clone() });
    }
    Ok(files.into_iter().map(Start::new).collect())
}

/// The folder with the seeds: a queue, an unpacked archive, or the given folder itself.
fn folder_of(given: &Path, outside: &Outside) -> Result<PathBuf, CampaignError> {
    let queue = given.join("queue");
    if queue.is_dir() {
        return Ok(queue);
    }
    if !archive::is_archive(given) {
        return Ok(given.to_owned());
    }
    let folder = outside.output.instance_dir().join(UNPACKED);
    archive::unpack(given, &folder)?;
    Ok(folder)
}

/// Removes unpacked files once they are in the queue.
pub(super) fn remove_unpacked(outside: &Outside) {
    let _ = fs::remove_dir_all(outside.output.instance_dir().join(UNPACKED));
}

/// Removes entries that are no files, such as a FIFO, a device or a dangling link.
pub(super) fn only_files(
    mut files: Vec<(String, PathBuf)>,
    outside: &mut Outside,
) -> Vec<(String, PathBuf)> {
    let mut strange = Vec::new();
    files.retain(|(_, path)| {
        let good = file::may_be_regular(path);
        strange.extend((!good).then(|| path.clone()));
        good
    });
    if let Some(first) = strange.first() {
        let (first, count) = (first.display(), strange.len());
        outside.warn(format!("{first} is not a regular file ({count} such): not read"));
    }
    files
}

/// Adds seeds that a killed process had not yet stored in the queue.
fn add_unfinished(starts: &mut Vec<Start>, outside: &mut Outside) {
    let Some(dir) = outside.output.unfinished_source() else { return };
    let mut files = Vec::new();
    let folder = folder_of(&dir, outside);
    if let Err(error) = folder.and_then(|folder| collect_files(&folder, &mut files)) {
        let message = "the earlier start has not taken in all seeds of this folder";
        outside.warn(format!("{error}: {message}"));
    }
    let content = |path: &Path| read_limited(path).unwrap_or_default();
    let known: HashSet<Vec<u8>> = starts.iter().map(|start| content(&start.path)).collect();
    let before = starts.len();
    let new = files.into_iter().filter(|path| !known.contains(&content(path)));
    starts.extend(new.map(Start::new));
    let (added, dir) = (starts.len() - before, dir.display());
    if added > 0 {
        let message = format!("the earlier start was ended early: {added} more seeds from {dir}");
        outside.reports.note(message);
    }
}

impl Outside {
    /// Stores a file in the queue, under the number `next` unless it is there already. `separator`: of messages, if
    /// the file is a session.
    pub(super) fn store_start(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        start: Start,
        separator: Option<&[u8]>,
        next: SeedId,
    ) -> Result<QueuedSeed, CampaignError> {
        let mut data = start.read()?;
        let is_new = fuzzer.mutation.messages && !start.queued;
        let session = if is_new { sessions::as_list(&data, separator) } else { None };
        let is_changed = session.is_some();
        data = session.unwrap_or(data);
        let whole = !is_changed && data.len() < MAX_INPUT.min(fuzzer.mutation.max_len);
        let size = fs::metadata(&start.path).map_or(0, |data| data.len());
        let cut =
            (!is_changed && size > data.len().min(fuzzer.mutation.max_len) as u64).then_some(size);
        data.truncate(fuzzer.mutation.max_len);
        let id = start.id.map_or(next, |id| id.max(next));
        let resumed = start.id == Some(id);
        let (execs, extension) = (self.statistics.execs(fuzzer), self.extension.as_deref());
        let name = match resumed {
            true => start.name.clone(),
            false => names::seed_name(id, &start.name, execs, extension),
        };
        let path = if resumed {
            start.path.clone()
        } else if whole && fuzzer.mutators.is_empty() {
            self.write(fuzzer, |output| output.link_seed(&name, &start.path, &data))?
        } else {
            // Mutators may write to the queue's file, but not to the user's.
            self.write(fuzzer, |output| output.save_seed(&name, &data))?
        };
        if start.queued && !resumed {
            // The entry was renamed.
            let _ = fs::remove_file(&start.path);
        }
        let data = self.announce_file(fuzzer, &path, None, data);
        Ok(QueuedSeed { id, name, path, data, from: start.path, cut })
    }

    pub(super) fn warn_of_cut_seeds(&mut self, max_len: usize, stored: &[QueuedSeed]) {
        let cut: Vec<_> = stored.iter().filter_map(|seed| Some((&seed.from, seed.cut?))).collect();
        let Some((path, size)) = cut.first() else { return };
        let more = match cut.len() {
            1 => String::new(),
            count => format!("; and so are {} more", count - 1),
        };
        let most = MAX_INPUT.min(max_len);
        let remedy = if most < MAX_INPUT { "-G sets the limit" } else { "inputs have no more" };
        self.warn(format!(
            "the seed {} of {size} bytes is cut to {most}: {remedy}{more}",
            path.display()
        ));
    }
}

/// Entries of a queue, by number. Files without a number of their own, which somebody added, come last.
fn queue_starts(mut files: Vec<(String, PathBuf)>, state: &SavedState) -> Vec<Start> {
    let known: HashSet<&str> = state.seeds.iter().map(|seed| &*seed.name).collect();
    files.sort_by_key(|(name, _)| {
        (names::parse(name).map(|parsed| parsed.id), !known.contains(&**name))
    });
    let most = u32::try_from(files.len()).unwrap_or(u32::MAX).saturating_add(MOST_GAPS);
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for (name, path) in files {
        let id = names::parse(&name).map(|parsed| SeedId(parsed.id));
        let is_taken =
            own.last().and_then(|start: &Start| start.id).is_some_and(|last| id <= Some(last));
        match id.filter(|id| id.0 < most && !is_taken) {
            Some(id) => own.push(Start { path, name, id: Some(id), queued: true }),
            None => other.push(Start { path, name, id: None, queued: true }),
        }
    }
    own.extend(other);
    own
}

/// Number of seeds of the corpus; missing numbers keep their places.
pub(super) fn corpus_of(starts: &[Start]) -> usize {
    let last = starts.iter().filter_map(|start| start.id).max();
    let other = starts.iter().filter(|start| start.id.is_none()).count();
    last.map_or(0, |last| last.index() + 1) + other
}

/// Collects files by name, including those in subfolders. Skips hidden files, README.txt, empty files, and links to
/// folders, which may form a cycle.
pub fn collect_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), CampaignError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| CampaignError::Seed { path, source }
    };
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(unreadable(dir))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        if name.as_encoded_bytes().starts_with(b".") || name == "README.txt" {
            continue;
        }
        let data = fs::metadata(&path).map_err(unreadable(&path))?;
        if data.is_dir() {
            if !path.is_symlink() {
                collect_files(&path, files)?;
            }
        } else if data.is_file() && data.len() > 0 {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads at most the first MiB of a file.
pub fn read_limited(path: &Path) -> std::io::Result<Vec<u8>> {
    file::patiently(|| file::read(path, MAX_INPUT as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_listed_by_name_and_the_useless_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        for (name, content) in
            [("b", "2"), ("a", "1"), ("README.txt", "x"), (".c", "3"), ("e", ""), ("d/f", "4")]
        {
            put(name, content);
        }
        let mut files = Vec::new();
        collect_files(dir.path(), &mut files).unwrap();
        let names: Vec<_> =
            files.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("a"), Path::new("b"), Path::new("d/f")]);
    }
}
