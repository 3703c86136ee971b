//! Instances of any fuzzer below an output folder, with their state and statistics.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::stats;

/// A folder with statistics, or with files of a start.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The folder's name.
    pub name: String,
    pub folder: PathBuf,
    pub state: InstanceState,
    /// `fuzzer_stats` by name; empty before it is written for the first time.
    pub stats: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InstanceState {
    /// The process runs on this machine.
    Alive,
    /// Running its seeds, without new statistics yet.
    Starting,
    /// Ended, or running elsewhere.
    Dead,
}

impl InstanceState {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Starting => "starting",
            Self::Dead => "dead",
        }
    }
}

impl Instance {
    /// A number of the statistics; 0 if missing.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// A fraction or percentage of the statistics; 0 if missing.
    #[must_use]
    pub fn fraction(&self, name: &str) -> f64 {
        self.text(name).trim_end_matches('%').parse().unwrap_or(0.0)
    }

    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.stats.get(name).map_or("", String::as_str)
    }
}

/// Instances in `root`, by path, and `root` itself if it is one. Does not follow links: those of ffuzz lead to folders
/// that are found anyway.
pub fn find(root: &Path) -> io::Result<Vec<Instance>> {
    let mut folders = vec![root.to_owned()];
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    let held = held_folders();
    Ok(folders.iter().filter_map(|folder| read(folder, &held)).collect())
}

fn read(folder: &Path, held: &[u64]) -> Option<Instance> {
    let changed = |name: &str| fs::symlink_metadata(folder.join(name)).ok()?.modified().ok();
    let (setup, written) = (changed("fuzzer_setup"), changed("fuzzer_stats"));
    if setup.is_none() && written.is_none() {
        return None;
    }
    let is_link = fs::symlink_metadata(folder.join("fuzzer_stats")).is_ok_and(|d| d.is_symlink());
    if is_link {
        return None;
    }
    let stats = stats::read(folder);
    let name = fs::canonicalize(folder).ok()?;
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let instance = Instance { name, folder: folder.to_owned(), state: InstanceState::Dead, stats };
    let held = fs::metadata(folder).is_ok_and(|data| held.contains(&data.ino()));
    let state = state(&instance, setup, written, held);
    Some(Instance { state, ..instance })
}

/// State of an instance. A fuzzer writes its setup first and its statistics after running the seeds; until then only
/// its lock shows that it runs.
fn state(
    instance: &Instance,
    setup: Option<SystemTime>,
    written: Option<SystemTime>,
    held: bool,
) -> InstanceState {
    let outdated = setup > written;
    let runs = i32::try_from(instance.number("fuzzer_pid")).is_ok_and(|pid| {
        let there = kill(Pid::from_raw(pid), None);
        pid > 0 && (there.is_ok() || there == Err(nix::errno::Errno::EPERM))
    });
    match (held, outdated) {
        (true, true) => InstanceState::Starting,
        _ if runs => InstanceState::Alive,
        _ => InstanceState::Dead,
    }
}

/// Inodes on which some process has a lock.
fn held_folders() -> Vec<u64> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK");
        words.nth(4)?.rsplit(':').next()?.parse().ok()
    };
    locks.lines().filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{Flock, FlockArg};

    #[test]
    fn folders_with_statistics_are_instances() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("b/fuzzer_stats", "fuzzer_pid        : 0\nbitmap_cvg : 12.50%\n");
        put("a/fuzzer_stats", &format!("fuzzer_pid : {}\nexecs_done : 7\n", std::process::id()));
        put("c/fuzzer_setup", "");
        put("other/file", "");
        // The shortcuts of ffuzz.
        std::os::unix::fs::symlink("a/fuzzer_stats", dir.path().join("fuzzer_stats")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        let lock = fs::File::open(dir.path().join("c")).unwrap();
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).unwrap();
        let found = find(dir.path()).unwrap();
        let shown: Vec<_> = found.iter().map(|i| (i.name.as_str(), i.state)).collect();
        let states = [
            ("a", InstanceState::Alive),
            ("b", InstanceState::Dead),
            ("c", InstanceState::Starting),
        ];
        assert_eq!(shown, states);
        assert_eq!((found[0].number("execs_done"), found[1].fraction("bitmap_cvg")), (7, 12.5));
        drop(lock);
        assert_eq!(find(dir.path()).unwrap()[2].state, InstanceState::Dead);
        // One instance by itself.
        assert_eq!(find(&dir.path().join("b")).unwrap()[0].name, "b");
        assert!(find(&dir.path().join("missing")).is_err());
    }
}
