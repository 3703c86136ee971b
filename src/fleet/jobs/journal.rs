//! Which jobs were started and finished: a line of JSON each, on the disk before anything depends on it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use super::Job;
use super::results::{JobRow, JobTotals};
use ffuzz_sys::file;

/// Those of a million jobs.
const LARGEST: u64 = 1 << 30;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot use the journal {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("line {line} of the journal {} is damaged", path.display())]
    Damaged { path: PathBuf, line: usize },
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum What {
    /// The numbers of its campaign at that moment.
    Started(JobTotals),
    Ended(JobRow),
}

#[derive(Debug, Deserialize, Serialize)]
struct JournalEntry {
    /// Of the job's definition.
    key: String,
    job: String,
    what: What,
}

/// What a journal says, by the keys of jobs.
#[derive(Debug, Default)]
pub(super) struct JournalEntries {
    started: HashMap<String, JobTotals>,
    ended: HashMap<String, JobRow>,
}

impl JournalEntries {
    /// The numbers with which an unfinished job was started; None: it was not. One that has failed goes on
    /// with what it had.
    pub(super) fn base(&self, job: &Job) -> Option<&JobTotals> {
        self.started.get(&key(job))
    }

    pub(super) fn row(&self, job: &Job) -> JobRow {
        self.ended.get(&key(job)).cloned().unwrap_or_else(|| JobRow::waiting(job))
    }

    fn add(&mut self, entry: JournalEntry) {
        match entry.what {
            What::Started(totals) => drop(self.started.insert(entry.key, totals)),
            What::Ended(row) => drop(self.ended.insert(entry.key, row)),
        }
    }
}

/// A job is another one as soon as anything in its definition changes. Where the list lies is no part of
/// it: it may be moved with everything beside it, or named by another path.
fn key(job: &Job) -> String {
    let relative = |word: &OsString| -> OsString {
        let inside = Path::new(word).strip_prefix(&job.folder);
        inside.map_or_else(|_| word.clone(), |path| Path::new(".").join(path).into_os_string())
    };
    let Job { target, mutators, seed, round, limits, seeds, options, command, only, carry, .. } =
        job;
    let seeds = relative(&seeds.clone().into_os_string());
    let [options, command] =
        [options, command].map(|words| words.iter().map(relative).collect::<Vec<_>>());
    let text = format!(
        "{target:?} {mutators:?} {seed:?} {round} {:?} {:?} {seeds:?} {options:?} {command:?} {only} {carry}",
        limits.execs, limits.seconds
    );
    Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An open journal.
#[derive(Debug)]
pub(super) struct JobJournal {
    path: PathBuf,
    file: File,
    pub(super) known: JournalEntries,
}

/// What the file says; nothing without one. The last line may be cut by a full disk or a power failure.
pub(super) fn read(path: &Path) -> Result<JournalEntries, JournalError> {
    Ok(parse(path)?.0)
}

/// And the length of what is complete.
fn parse(path: &Path) -> Result<(JournalEntries, usize), JournalError> {
    let text = match file::read_whole(path, LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|source| JournalError::Io { path: path.to_owned(), source })?,
    };
    let (mut entries, mut complete) = (JournalEntries::default(), 0);
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_last = complete + line.len() == text.len();
        match serde_json::from_slice(line) {
            Ok(entry) if line.ends_with(b"\n") => entries.add(entry),
            _ if is_last => break,
            _ => {
                return Err(JournalError::Damaged { path: path.to_owned(), line: number + 1 });
            }
        }
        complete += line.len();
    }
    Ok((entries, complete))
}

impl JobJournal {
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let (known, complete) = parse(path)?;
        let file = file::append(path)
            .and_then(|file| file.set_len(complete as u64).map(|()| file))
            .map_err(|source| JournalError::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, known })
    }

    pub(super) fn starts(&mut self, job: &Job, totals: &JobTotals) -> Result<(), JournalError> {
        self.add(job, What::Started(totals.clone()))
    }

    pub(super) fn ends(&mut self, job: &Job, row: &JobRow) -> Result<(), JournalError> {
        self.add(job, What::Ended(row.clone()))
    }

    /// Complete or not there: a cut line would be taken for the last one.
    fn add(&mut self, job: &Job, what: What) -> Result<(), JournalError> {
        let entry = JournalEntry { key: key(job), job: job.name(), what };
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        line.push(b'\n');
        let written = self.file.metadata().and_then(|data| {
            let added =
                self.file.write_all(&line).and_then(|()| file::settled(self.file.sync_data()));
            added.inspect_err(|_| drop(self.file.set_len(data.len())))
        });
        written.map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
        self.known.add(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::JobLimits;
    use super::super::results::JobStatus;
    use super::*;
    use std::fs;
    use std::time::Duration;

    fn job(seed: &str) -> Job {
        Job {
            target: "t".into(),
            mutators: "m".into(),
            seed: seed.into(),
            round: 1,
            limits: JobLimits { execs: Some(5), seconds: None, stall: Duration::from_secs(9) },
            seeds: seed.into(),
            options: vec!["-p".into()],
            command: vec!["./t".into()],
            only: false,
            carry: true,
            covers: true,
            folder: "/lists".into(),
        }
    }

    #[test]
    fn a_job_is_the_same_in_every_folder() {
        let at = |folder: &str| Job {
            folder: folder.into(),
            seeds: Path::new(folder).join("a"),
            options: vec!["-x".into(), Path::new(folder).join("words.dict").into()],
            command: vec![Path::new(folder).join("t").into()],
            ..job("a")
        };
        assert_eq!(key(&at("/lists")), key(&at("/other/lists")));
        let elsewhere = Job { command: vec!["/lists/t".into()], ..at("/other/lists") };
        assert_ne!(key(&at("/lists")), key(&elsewhere));
    }

    #[test]
    fn a_cut_line_is_forgotten_and_a_damaged_one_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = JobJournal::open(&path).unwrap();
        let base = JobTotals { execs: 7, ..JobTotals::default() };
        journal.starts(&job("a"), &base).unwrap();
        let row = JobRow::of(&job("a"), &base, &JobTotals { execs: 9, ..JobTotals::default() });
        journal.ends(&job("a"), &row).unwrap();
        journal.starts(&job("b"), &base).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let mut journal = JobJournal::open(&path).unwrap();
        assert_eq!((journal.known.row(&job("a")).execs, journal.known.base(&job("b"))), (2, None));
        journal.starts(&job("b"), &base).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
        let changed = Job { options: Vec::new(), ..job("a") };
        assert_eq!(journal.known.row(&changed).status, JobStatus::Waiting);
        let text = String::from_utf8(whole).unwrap().replacen("\"key\"", "\"kay\"", 1);
        fs::write(&path, text).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 1"));
    }
}
