//! `fuzzfactory.log`: events of the domains, in the format of the original FuzzFactory.
//!
//! Keys are global indices; before its first update a key gets a line with its name. Lines are collected and written by
//! [`FuzzFactoryLog::flush`], which the campaign calls at every waypoint, and by [`FuzzFactoryLog::tick`] each second;
//! the file is created with the first line.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::OutputError;
use ffuzz_engine::domain::Domain;
use ffuzz_sys::file;

/// Time after which collected lines are written.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// Bytes of lines kept while the file cannot be written (a full disk); beyond that the oldest are dropped.
const BACKLOG: usize = 1 << 20;

#[derive(Debug)]
pub struct FuzzFactoryLog {
    path: PathBuf,
    file: Option<File>,
    lines: String,
    flushed: Instant,
    /// Keys already named.
    met: HashSet<u32>,
}

impl FuzzFactoryLog {
    /// Creates a log in the instance folder; a new campaign removes an old one, a resumed one appends to it.
    #[must_use]
    pub fn new(instance: &Path, resumed: bool) -> Self {
        let path = instance.join("fuzzfactory.log");
        if !resumed {
            let _ = std::fs::remove_file(&path);
        }
        Self {
            path,
            file: None,
            lines: String::new(),
            flushed: Instant::now(),
            met: HashSet::new(),
        }
    }

    /// Returns true at the first call for a key.
    pub fn meets(&mut self, key: u32) -> bool {
        self.met.insert(key)
    }

    /// Logs the source location of a key: an additional line, which begins like the original's `# DSF map`.
    pub fn name(&mut self, key: u32, name: &str) {
        let _ = writeln!(self.lines, "# key 0x{key:06x} is {name}");
    }

    /// Logs that an input moved the aggregate of a key.
    pub fn update(&mut self, key: u32, value: u32, aggregate: u32, earlier: u32) {
        let _ = writeln!(
            self.lines,
            "DSF update at key=0x{key:06x}, val={value} (0x{value:08x}); \
             new aggregate: {aggregate} (0x{aggregate:08x}); \
             earlier was: {earlier} (0x{earlier:08x})"
        );
    }

    /// Logs the state after the dry run: every key whose aggregate has left its initial value.
    pub fn starting_keys(&mut self, domains: &[Domain], aggregates: &[u32]) {
        self.lines.push_str("======== Starting Keys ========\n");
        for (index, domain) in domains.iter().enumerate() {
            let _ = writeln!(self.lines, "# DSF map {index}");
            let keys = domain.start..domain.start.saturating_add(domain.size);
            for key in keys {
                let Some(&value) = aggregates.get(key as usize) else { break };
                if value != domain.initial {
                    let signed = value.cast_signed();
                    let _ = writeln!(
                        self.lines,
                        "At key 0x{key:06x}, val is {signed} (hex=0x{value:08x})"
                    );
                }
            }
        }
    }

    /// Logs the beginning of a seed's turn.
    pub fn fuzzing(&mut self, id: u32, favored: bool) {
        let _ = writeln!(self.lines, "===============Fuzzing test case #{id}===============");
        if !favored {
            self.lines.push_str("(Test case is not favored)\n");
        }
    }

    /// Logs an input added to the queue.
    pub fn adding(&mut self, path: &Path) {
        let _ = writeln!(self.lines, "adding {} to queue", path.display());
    }

    /// Logs that the input just added is the best for a key.
    pub fn top_rated(&mut self, key: u32) {
        let _ = writeln!(self.lines, "This input is the new top rated entry for key 0x{key:06x}");
    }

    /// Writes the collected lines if a second has passed. Call it regularly.
    pub fn tick(&mut self) -> Result<(), OutputError> {
        if self.flushed.elapsed() < FLUSH_AFTER { Ok(()) } else { self.flush() }
    }

    /// Writes the collected lines; keeps them for the next attempt if that fails.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        self.flushed = Instant::now();
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = self.write();
        if written.is_err() && self.lines.len() > BACKLOG {
            let excess = self.lines.len() - BACKLOG;
            let cut =
                self.lines[excess..].find('\n').map_or(self.lines.len(), |at| excess + at + 1);
            self.lines.drain(..cut);
        }
        written.map_err(|e| OutputError::write(&self.path, e))
    }

    fn write(&mut self) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(file::append(&self.path)?),
        };
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(self.lines.as_bytes()) {
            // Leaves no partial line, and avoids duplicates at the next attempt.
            let _ = file.set_len(before);
            return Err(error);
        }
        self.lines.clear();
        Ok(())
    }
}

impl Drop for FuzzFactoryLog {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::domain::Reducer;

    fn log(write: impl FnOnce(&mut FuzzFactoryLog)) -> String {
        let dir = tempfile::tempdir().expect("folder");
        let mut log = FuzzFactoryLog::new(dir.path(), false);
        write(&mut log);
        drop(log);
        std::fs::read_to_string(dir.path().join("fuzzfactory.log")).unwrap_or_default()
    }

    #[test]
    fn lines_are_those_of_fuzzfactory() {
        let domain = |start, size, initial| Domain {
            name: String::new(),
            start,
            size,
            reducer: Reducer::Max,
            initial,
        };
        let text = log(|log| {
            log.starting_keys(&[domain(0, 2, 0), domain(2, 1, u32::MAX)], &[0, 7, 0xffff_fffe]);
            log.fuzzing(3, false);
            log.name(0x103c5, "mem demo.c:23 cascade() malloc");
            log.update(0x103c5, 2_147_483_645, 2_147_483_645, 12);
            log.adding(Path::new("out/queue/id:000004"));
            log.top_rated(0x103c5);
        });
        assert_eq!(
            text,
            "======== Starting Keys ========\n\
             # DSF map 0\n\
             At key 0x000001, val is 7 (hex=0x00000007)\n\
             # DSF map 1\n\
             At key 0x000002, val is -2 (hex=0xfffffffe)\n\
             ===============Fuzzing test case #3===============\n\
             (Test case is not favored)\n\
             # key 0x0103c5 is mem demo.c:23 cascade() malloc\n\
             DSF update at key=0x0103c5, val=2147483645 (0x7ffffffd); new aggregate: 2147483645 \
             (0x7ffffffd); earlier was: 12 (0x0000000c)\n\
             adding out/queue/id:000004 to queue\n\
             This input is the new top rated entry for key 0x0103c5\n"
        );
    }

    #[test]
    fn nothing_logged_means_no_file() {
        assert_eq!(log(|_| {}), "");
    }
}
