//! The output folder in AFL's layout: who may use it, and the only place that writes finds.
//!
//! Every file is written under a temporary name in the instance folder and renamed, so a reader
//! sees a whole file or none, and `queue/` never holds anything but entries. The names themselves
//! are made by [`crate::corpus::names`]; what is in the statistics is decided by the campaign.

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

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

pub use error::OutputError;
pub use files::{replace_file, replace_for_good};

use self::settle::Settler;
use self::state::State;
use crate::config::options::OutputOptions;
use crate::corpus::names;

/// What a shortcut in OUT leads to in the instance folder.
const LINKS: &[&str] =
    &["queue", "crashes", "hangs", "fuzzfactory.log", "fuzzer_stats", "plot_data"];

/// One instance folder, locked for as long as this value lives.
#[derive(Debug)]
pub struct OutputDir {
    instance: PathBuf,
    input: PathBuf,
    main_node: bool,
    crash_readme: bool,
    command_line: Vec<OsString>,
    resumed: bool,
    settler: Settler,
    /// Held, never read: the kernel frees the lock with it, however the process ends.
    _lock: Flock<File>,
}

impl OutputDir {
    /// Creates or takes over the instance folder. Nothing that was found earlier is changed; a
    /// folder with work in it is refused unless `resume`, and a folder without any if `resume`.
    pub fn open(options: &OutputOptions, resume: bool) -> Result<Self, OutputError> {
        let instance = options.root.join(&options.instance);
        if resume && !instance.join("queue").is_dir() {
            return Err(OutputError::NothingToResume { path: instance.join("queue") });
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
        for name in ["queue", "crashes", "hangs"] {
            files::create_dir(&instance.join(name))?;
        }
        for name in ["deterministic_done", "auto_extras"] {
            files::create_dir(&instance.join("queue/.state").join(name))?;
        }
        let input = claim_input(options, &instance)?;
        let dir = Self {
            instance,
            input,
            main_node: options.main_node,
            crash_readme: options.crash_readme,
            command_line: options.command_line.clone(),
            resumed: resume,
            settler: Settler::new(),
            _lock: lock,
        };
        dir.write_markers(options)?;
        Ok(dir)
    }

    fn write_markers(&self, options: &OutputOptions) -> Result<(), OutputError> {
        let setup = setup::fuzzer_setup(&options.environment, &options.command_line);
        self.replace("fuzzer_setup", &setup)?;
        if self.main_node {
            self.replace("is_main_node", b"")?;
        }
        if !self.resumed {
            files::remove(&self.instance.join("plot_data"));
            files::remove(&self.instance.join("fuzzer_stats"));
            files::remove(&self.state_path());
            let _ = fs::remove_dir_all(self.instance.join(".synced"));
        }
        if options.links {
            for name in LINKS {
                files::link(&options.root.join(name), &Path::new(&options.instance).join(name))?;
            }
        }
        Ok(())
    }

    /// `OUT/INSTANCE`.
    #[must_use]
    pub fn instance_dir(&self) -> &Path {
        &self.instance
    }

    /// Whether the campaign continues an earlier one.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Where the target finds its input. Not created here, except in a shared `AFL_TMPDIR`;
    /// removed when this value is dropped.
    #[must_use]
    pub fn input_path(&self) -> &Path {
        &self.input
    }

    /// Writes a file of the instance folder, whole or not at all, over an older one if there is.
    pub fn replace(&self, name: &str, data: &[u8]) -> Result<(), OutputError> {
        replace_file(&self.instance, &self.instance.join(name), data)
    }

    /// What an earlier process of the campaign has left for this one.
    pub fn load_state(&self) -> Result<State, OutputError> {
        State::load(&self.state_path())
    }

    /// Leaves it for the next one.
    pub fn save_state(&self, state: &State) -> Result<(), OutputError> {
        self.replace(state::NAME, &state.text())
    }

    fn state_path(&self) -> PathBuf {
        self.instance.join(state::NAME)
    }

    /// `cmdline`: the target's words, one a line, `@@` kept.
    pub fn write_target_command(&self, command: &[OsString]) -> Result<(), OutputError> {
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

    /// Puts a user's file into the queue, as a second name of it if the file system allows, which
    /// is quicker. Nothing in the queue is ever written to, so the user's file stays as it is.
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

    /// Where a queue entry of this name lies.
    #[must_use]
    pub fn seed_path(&self, name: &str) -> PathBuf {
        self.instance.join("queue").join(name)
    }

    /// How far the queue of this peer was read: the content of its file, empty if there is none.
    #[must_use]
    pub fn synced(&self, peer: &str) -> Vec<u8> {
        fs::read(self.instance.join(".synced").join(peer)).unwrap_or_default()
    }

    /// Remembers it.
    pub fn note_synced(&self, peer: &str, position: &[u8]) -> Result<(), OutputError> {
        let folder = self.instance.join(".synced");
        files::create_dir(&folder)?;
        replace_file(&self.instance, &folder.join(peer), position)
    }

    /// Puts the trimmed content in the place of a queue file, which is on the disk: so it has to be
    /// there first. The name may lead to either for a while.
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

    /// Stores an input of `--dsf-record`, beside the queue.
    pub fn save_recorded(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let folder = self.instance.join("perf_inputs");
        files::create_dir(&folder)?;
        let path = folder.join(name);
        replace_file(&self.instance, &path, data)?;
        Ok(path)
    }

    /// Stores one of the inputs before a crash, as AFL++ does, beside it.
    pub fn save_record(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.instance.join("crashes").join(name);
        replace_file(&self.instance, &path, data)?;
        Ok(path)
    }

    /// Stores what is known of a crash that did not repeat alone, apart: afl-fuzz removes no folder of
    /// crashes that holds something of others.
    pub fn save_before(&mut self, name: &str, data: &[u8]) -> Result<PathBuf, OutputError> {
        let folder = self.instance.join(names::BEFORE_CRASHES);
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
        files::replace_for_good(&self.instance, &path, data)?;
        Ok(path)
    }

    /// Queue entries by number, then name; the order in which a resumed campaign reads them.
    pub fn queue_files(&self) -> Result<Vec<(String, PathBuf)>, OutputError> {
        entries(&self.instance.join("queue"))
    }

    /// Crashes by number; the next crash gets the number behind the last.
    pub fn crash_files(&self) -> Result<Vec<(String, PathBuf)>, OutputError> {
        entries(&self.instance.join("crashes"))
    }

    /// Hangs by number; the next hang gets the number behind the last.
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
        files::remove(&self.input);
        if self.main_node {
            files::remove(&self.instance.join("is_main_node"));
        }
    }
}

/// Whether an instance folder holds finds: entries in its queue, crashes or hangs. One that cannot
/// be read is not known to be empty.
#[must_use]
pub fn holds_work(root: &Path, instance: &str) -> bool {
    find_work(root, instance).unwrap_or(true)
}

/// The same for those who can say why it cannot be read.
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

/// Takes the folder for this process. The lock hangs on the open folder, which targets do not
/// inherit, so it ends with the fuzzer and not with what the fuzzer started.
fn lock(instance: &Path) -> Result<Flock<File>, OutputError> {
    let folder = File::open(instance).map_err(|e| OutputError::read(instance, e))?;
    Flock::lock(folder, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        nix::errno::Errno::EWOULDBLOCK => OutputError::Busy { path: instance.to_owned() },
        other => OutputError::read(instance, other.into()),
    })
}

/// Path of `.cur_input`; a leftover in our own folder is removed, one in `AFL_TMPDIR` may belong
/// to another fuzzer.
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
    files::create_new(&path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => OutputError::InputTaken { path: path.clone() },
        _ => OutputError::write(&path, source),
    })?;
    Ok(path)
}

fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, OutputError> {
    let failed = |e| OutputError::read(folder, e);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(parsed) = names::parse(&name)
            && !entry.file_type().map_err(failed)?.is_dir()
        {
            found.push((parsed.id, name, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, name, path)| (name, path)).collect())
}

#[cfg(test)]
mod tests;
