//! The output folder in AFL's layout: its lock, and the only place that writes finds.
//!
//! Every file is written under a temporary name in the instance folder and renamed, so a reader sees a whole file or
//! none, and `queue/` only ever holds entries. [`ffuzz_engine::corpus::names`] creates the names; the campaign decides
//! the content of the statistics.

pub mod earlier;
mod error;
pub mod fflog;
mod files;
pub mod hook;
pub mod instances;
pub mod plot;
mod settle;
pub mod setup;
pub mod state;
pub mod stats;
pub mod trace;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use error::OutputError;
pub use files::{check_user_file, replace_file, replace_for_good, replace_user_file};

use self::settle::Settler;
use self::state::SavedState;
use ffuzz_config::options::OutputOptions;
use ffuzz_engine::corpus::names;
use ffuzz_sys::file::{self, Locked};

/// Targets of the links in OUT within the instance folder.
const LINKS: &[&str] =
    &["queue", "crashes", "hangs", "fuzzfactory.log", "fuzzer_stats", "plot_data"];

/// Files that are appended to; an existing file of this name is written to.
const APPENDED: &[&str] = &["plot_data", "fuzzfactory.log"];

/// File with the path of the seed folder until all seeds are in the queue.
const SOURCE: &str = ".seeds_left";
/// Longest path, bytes.
const LONGEST_PATH: u64 = 1 << 12;
/// Maximum size read of a file of `.synced`, bytes; it holds at most 12.
const LONGEST_POSITION: u64 = 64;

/// One instance folder, locked for as long as this value lives.
#[derive(Debug)]
pub struct OutputDir {
    instance: PathBuf,
    input: PathBuf,
    /// Input paths of other builds of the target.
    other_inputs: Vec<PathBuf>,
    main_node: bool,
    crash_readme: bool,
    command_line: Vec<OsString>,
    resumed: bool,
    settler: Settler,
    notes: Vec<String>,
    /// The open folder: the kernel releases the lock with it, however the process ends.
    lock: Locked,
    /// Kept for recreating the folder if it is removed.
    options: OutputOptions,
    target_command: Vec<OsString>,
}

impl OutputDir {
    /// Creates or takes over the instance folder. Changes no earlier finds; rejects a folder with finds unless
    /// `resume`, and one without if `resume`.
    pub fn open(options: &OutputOptions, resume: bool) -> Result<Self, OutputError> {
        let instance = options.root.join(&options.instance);
        if resume {
            let path = instance.join("queue");
            match file::patiently(|| fs::metadata(&path)) {
                Ok(data) if data.is_dir() => {}
                Err(error) if !file::is_missing(&error) => {
                    return Err(OutputError::read(&path, error));
                }
                _ => return Err(OutputError::NothingToResume { path }),
            }
        }
        files::create_dir(&options.root)?;
        files::create_dir(&instance)?;
        let lock = lock(&instance)?;
        let works = find_work(&options.root, &options.instance)?;
        if works && !resume {
            return Err(OutputError::HoldsWork { path: instance, autoresume: options.autoresume });
        }
        if !works && resume {
            return Err(OutputError::NothingToResume { path: instance.join("queue") });
        }
        let mut notes = Vec::new();
        if !lock.is_held() {
            notes.push(format!(
                "the file system of {} has no locks: nothing keeps a second fuzzer out of this folder",
                instance.display()
            ));
        }
        for name in ["", "queue", "crashes", "hangs"] {
            notes.extend(files::exposed(&instance.join(name)));
        }
        make_folders(&instance)?;
        let input = claim_input(options, &instance)?;
        let mut dir = Self {
            instance,
            input,
            other_inputs: Vec::new(),
            main_node: options.main_node,
            crash_readme: options.crash_readme,
            command_line: options.command_line.clone(),
            resumed: resume,
            settler: Settler::new(),
            notes,
            lock,
            options: options.clone(),
            target_command: Vec::new(),
        };
        dir.write_markers(options)?;
        Ok(dir)
    }

    fn write_markers(&mut self, options: &OutputOptions) -> Result<(), OutputError> {
        let setup = setup::fuzzer_setup(&options.environment, &options.command_line);
        self.replace("fuzzer_setup", &setup)?;
        if self.main_node {
            self.replace("is_main_node", b"")?;
        }
        if !self.resumed {
            files::remove(&self.instance.join("plot_data"));
            files::remove(&self.instance.join("fuzzer_stats"));
            files::remove(&self.state_path());
            files::remove(&self.instance.join(SOURCE));
            let _ = fs::remove_dir_all(self.instance.join(".synced"));
        }
        for name in APPENDED {
            let path = self.instance.join(name);
            if path.symlink_metadata().is_ok_and(|data| !data.is_file()) {
                let what = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
                return Err(OutputError::write(&path, what));
            }
        }
        if options.links {
            for name in LINKS {
                let goal = Path::new(&options.instance).join(name);
                if !files::link(&options.root.join(name), &goal)? {
                    let root = options.root.display();
                    self.notes.push(format!(
                        "the file system of {root} has no links: read {root}/{} instead of \
                         {root}/{name}",
                        goal.display()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Recreates the folder if it was removed; leaves a replacement of it unchanged. Returns true if it was recreated;
    /// the caller then writes its files.
    pub fn restore(&mut self) -> Result<bool, OutputError> {
        match fs::symlink_metadata(&self.instance) {
            Err(error) if file::is_missing(&error) => {}
            _ => return Ok(false),
        }
        files::create_dir(&self.options.root)?;
        files::create_dir(&self.instance)?;
        self.lock = lock(&self.instance)?;
        make_folders(&self.instance)?;
        let options = self.options.clone();
        self.write_markers(&options)?;
        self.replace("cmdline", &setup::target_command(&self.target_command))?;
        Ok(true)
    }

    /// Warnings about the folder for the user.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Records the seed folder until all seeds are in the queue, so that the next process can continue after a kill.
    pub fn note_source(&self, seeds: Option<&Path>) -> Result<(), OutputError> {
        match seeds {
            Some(seeds) => self.replace(SOURCE, seeds.as_os_str().as_bytes()),
            None => {
                files::remove(&self.instance.join(SOURCE));
                Ok(())
            }
        }
    }

    /// Seed folder that an earlier process has not imported completely.
    #[must_use]
    pub fn unfinished_source(&self) -> Option<PathBuf> {
        let path = file::read_whole(&self.instance.join(SOURCE), LONGEST_PATH).ok()?;
        let path = PathBuf::from(OsString::from_vec(path));
        path.is_absolute().then_some(path)
    }

    /// Names in the queue. Recreates removed folders; fails if another folder has replaced the instance's.
    pub fn queue_names(&mut self) -> Result<HashSet<String>, OutputError> {
        let failed = |error| OutputError::read(&self.instance, error);
        match file::patiently(|| fs::metadata(&self.instance)) {
            Ok(data) => {
                let ours = self.lock.metadata().map_err(failed)?;
                if (data.dev(), data.ino()) != (ours.dev(), ours.ino()) {
                    return Err(OutputError::Replaced { path: self.instance.clone() });
                }
            }
            Err(error) if file::is_missing(&error) => {
                files::create_dir(&self.instance)?;
                self.lock = lock(&self.instance)?;
            }
            Err(error) => return Err(failed(error)),
        }
        make_folders(&self.instance)?;
        let queue = self.instance.join("queue");
        let names = file::patiently(|| {
            let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            fs::read_dir(&queue)?.map(|entry| entry.map(name)).collect()
        });
        names.map_err(|error| OutputError::read(&queue, error))
    }

    /// `OUT/INSTANCE`.
    #[must_use]
    pub fn instance_dir(&self) -> &Path {
        &self.instance
    }

    /// True if the campaign continues an earlier one.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Path of the target's input file. Not created here, except in a shared `AFL_TMPDIR`; removed when this value is
    /// dropped.
    #[must_use]
    pub fn input_path(&self) -> &Path {
        &self.input
    }

    /// Adds an input path for another build of the target.
    pub fn add_input_path(&mut self) -> PathBuf {
        let mut name = OsString::from(format!(".build{}", self.other_inputs.len()));
        name.push(self.input.file_name().unwrap_or_default());
        let path = self.input.with_file_name(name);
        self.other_inputs.push(path.clone());
        path
    }

    /// Writes a file of the instance folder, whole or not at all, replacing an older one.
    pub fn replace(&self, name: &str, data: &[u8]) -> Result<(), OutputError> {
        replace_file(&self.instance, &self.instance.join(name), data)
    }

    /// Loads the state saved by an earlier process of the campaign.
    pub fn load_state(&self) -> Result<SavedState, OutputError> {
        SavedState::load(&self.state_path())
    }

    /// Saves the state for the next process.
    pub fn save_state(&self, state: &SavedState) -> Result<(), OutputError> {
        self.replace(state::NAME, &state.text())
    }

    fn state_path(&self) -> PathBuf {
        self.instance.join(state::NAME)
    }

    /// `cmdline`: the target's command line, one word per line, `@@` kept.
    pub fn write_target_command(&mut self, command: &[OsString]) -> Result<(), OutputError> {
        self.target_command = command.to_vec();
        self.replace("cmdline", &setup::target_command(command))
    }

    /// Adds a file to the queue. A file of that name is an error: numbers are never reused.
    pub fn save_seed(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.seed_path(name);
        vacant(&path)?;
        replace_file(&self.instance, &path, data)?;
        self.settler.settle(&path);
        Ok(path)
    }

    /// Adds a user's file to the queue as a hard link if possible, which is quicker. Queue files are never written in
    /// place, so the user's file stays unchanged.
    pub fn link_seed(
        &mut self,
        name: &str,
        file: &Path,
        data: &[u8],
    ) -> Result<PathBuf, OutputError> {
        let path = self.seed_path(name);
        match files::hard_link(file, &path) {
            Ok(()) => Ok(path),
            Err(_) => self.save_seed(name, data),
        }
    }

    /// Path of a queue entry of this name.
    #[must_use]
    pub fn seed_path(&self, name: &str) -> PathBuf {
        self.instance.join("queue").join(name)
    }

    /// Read position in a peer's queue: the content of its file, empty if there is none.
    #[must_use]
    pub fn synced(&self, peer: &str) -> Vec<u8> {
        let path = self.instance.join(".synced").join(peer);
        file::read(&path, LONGEST_POSITION).unwrap_or_default()
    }

    /// Records the read position in a peer's queue.
    pub fn note_synced(&self, peer: &str, position: &[u8]) -> Result<(), OutputError> {
        let folder = self.instance.join(".synced");
        files::create_dir(&folder)?;
        replace_file(&self.instance, &folder.join(peer), position)
    }

    /// Replaces a queue file by its trimmed content. Syncs the content first, because the old file is already on the
    /// disk; the name may lead to either for a while.
    pub fn replace_seed(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.seed_path(name);
        files::replace_safely(&self.instance, &path, data)?;
        self.settler.settle(&path);
        Ok(path)
    }

    pub fn save_crash(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.save("crashes", name, data)?;
        let readme = self.instance.join("crashes/README.txt");
        if self.crash_readme && !readme.exists() {
            // The crash is safe; a missing README is no reason to report a failure.
            let _ = replace_file(&self.instance, &readme, &setup::crash_readme(&self.command_line));
        }
        Ok(path)
    }

    /// Stores an input of `--dsf-record`, next to the queue.
    pub fn save_recorded(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        self.save_beside("perf_inputs", name, data)
    }

    /// Stores one of the inputs before a crash next to it, as AFL++ does.
    pub fn save_record(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.instance.join("crashes").join(name);
        replace_file(&self.instance, &path, data)?;
        Ok(path)
    }

    /// Stores an input before a crash that did not reproduce alone, in a separate folder: afl-fuzz does not remove a
    /// crash folder that contains foreign files.
    pub fn save_before(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        self.save_beside(names::BEFORE_CRASHES, name, data)
    }

    /// Stores an input in a folder that exists only once it has one.
    fn save_beside(&self, folder: &str, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let folder = self.instance.join(folder);
        files::create_dir(&folder)?;
        let path = folder.join(name);
        replace_file(&self.instance, &path, data)?;
        Ok(path)
    }

    /// Stores a hang under its name.
    pub fn save_hang(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        self.save("hangs", name, data)
    }

    fn save(&mut self, folder: &str, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.instance.join(folder).join(name);
        vacant(&path)?;
        if !files::replace_lastingly(&self.instance, &path, data)? {
            self.settler.settle(&path);
        }
        Ok(path)
    }

    /// Queue entries by number, then name; the order in which a resumed campaign reads them.
    pub fn queue_files(&self) -> Result<Vec<(String, PathBuf)>, OutputError> {
        entries(&self.instance.join("queue"))
    }

    /// Crashes by number; the next crash gets the number after the last.
    pub fn crash_files(&self) -> Result<Vec<(String, PathBuf)>, OutputError> {
        entries(&self.instance.join("crashes"))
    }

    /// Hangs by number; the next hang gets the number after the last.
    pub fn hang_files(&self) -> Result<Vec<(String, PathBuf)>, OutputError> {
        entries(&self.instance.join("hangs"))
    }

    /// Notes that the deterministic stage of a queue entry is finished.
    pub fn mark_det_done(&mut self, name: &str) -> Result<(), OutputError> {
        replace_file(&self.instance, &self.det_path(name), b"")
    }

    #[must_use]
    pub fn det_done(&self, name: &str) -> bool {
        self.det_path(name).exists()
    }

    fn det_path(&self, name: &str) -> PathBuf {
        self.instance.join("queue/.state/deterministic_done").join(name)
    }
}

impl Drop for OutputDir {
    fn drop(&mut self) {
        self.other_inputs.iter().chain([&self.input]).for_each(|path| files::remove(path));
        if self.main_node {
            files::remove(&self.instance.join("is_main_node"));
        }
    }
}

/// True if an instance folder contains finds: queue entries, crashes or hangs. Also true if it cannot be read.
#[must_use]
pub fn holds_work(root: &Path, instance: &str) -> bool {
    find_work(root, instance).unwrap_or(true)
}

/// Like [`holds_work`], for callers that report read errors.
pub fn find_work(root: &Path, instance: &str) -> Result<bool, OutputError> {
    for name in ["queue", "crashes", "hangs"] {
        match entries(&root.join(instance).join(name)) {
            Ok(found) if found.is_empty() => {}
            Err(OutputError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            found => return found.map(|_| true),
        }
    }
    Ok(false)
}

fn vacant(path: &Path) -> Result<(), OutputError> {
    match path.symlink_metadata() {
        Ok(_) => Err(OutputError::write(path, io::ErrorKind::AlreadyExists.into())),
        Err(_) => Ok(()),
    }
}

/// Locks the folder for this process. The lock belongs to the open folder, which targets do not inherit, so it ends
/// with the fuzzer and not with its children.
fn lock(instance: &Path) -> Result<Locked, OutputError> {
    let lock = file::patiently(|| Locked::new(File::open(instance)?, false));
    lock.map_err(|error| match file::is_taken(&error) {
        true => OutputError::Busy { path: instance.to_owned() },
        false => OutputError::read(instance, error),
    })
}

/// Creates the folders of an instance.
fn make_folders(instance: &Path) -> Result<(), OutputError> {
    for name in ["queue", "crashes", "hangs"] {
        files::create_dir(&instance.join(name))?;
    }
    for name in ["deterministic_done", "auto_extras"] {
        files::create_dir(&instance.join("queue/.state").join(name))?;
    }
    Ok(())
}

/// Path of `.cur_input`. Removes a leftover in the instance folder; one in `AFL_TMPDIR` may belong to another fuzzer.
fn claim_input(options: &OutputOptions, instance: &Path) -> Result<PathBuf, OutputError> {
    let name = match &options.extension {
        Some(extension) => format!(".cur_input.{extension}"),
        None => ".cur_input".to_owned(),
    };
    let Some(folder) = &options.tmpdir else {
        let path = instance.join(name);
        files::remove(&path);
        return Ok(path);
    };
    let path = folder.join(name);
    file::create_new(&path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => OutputError::InputTaken { path: path.clone() },
        _ => OutputError::write(&path, source),
    })?;
    Ok(path)
}

fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, OutputError> {
    let list = || {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(parsed) = names::parse(&name)
                && !entry.file_type()?.is_dir()
            {
                found.push((parsed.id, name, entry.path()));
            }
        }
        Ok(found)
    };
    let mut found = file::patiently(list).map_err(|error| OutputError::read(folder, error))?;
    found.sort();
    Ok(found.into_iter().map(|(_, name, path)| (name, path)).collect())
}

#[cfg(test)]
mod tests;
