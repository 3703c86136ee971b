//! The file `.cmin` of an output folder: the traces so far. While it exists, the folder is incomplete.
//!
//! Format: a line with a fingerprint of inputs, target and options, then one record per chunk, each with its length and
//! checksum. A record that a kill left incomplete fails the checksum and is discarded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::CminError;
use crate::engine::coverage;
use crate::engine::executor::ExitKind;
use crate::engine::minimize::cover::Trace;
use crate::sys::file::{Locked, settled};

const NAME: &str = ".cmin";
/// Words before a record: its length in words, and two of checksum.
const HEAD: usize = 3;
/// Maximum time that records may be in memory only.
const SYNC: Duration = Duration::from_secs(1);

/// An input that showed something new, or did not end normally.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct KeptRun {
    /// Position in the list of inputs.
    pub(super) input: usize,
    pub(super) exit: ExitKind,
    /// Empty if earlier inputs showed all of it.
    pub(super) trace: Trace,
}

/// A finished part of the list of inputs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Chunk {
    pub(super) number: usize,
    pub(super) runs: Vec<KeptRun>,
}

pub(super) struct Journal {
    file: Locked,
    path: PathBuf,
    /// Length of the first line.
    header: u64,
    /// Time of the last flush.
    synced: Instant,
}

impl Journal {
    /// Creates the folder and its file, or resumes an earlier run and returns its chunks.
    pub(super) fn open(folder: &Path, fingerprint: u64) -> Result<(Self, Vec<Chunk>), CminError> {
        let path = folder.join(NAME);
        let failed = |error| CminError::write(folder, error);
        fs::create_dir_all(folder).map_err(failed)?;
        if !path.exists() && fs::read_dir(folder).map_err(failed)?.next().is_some() {
            return Err(CminError::NotEmpty(folder.to_owned()));
        }
        let file = open_locked(&path, folder)?;
        let mut journal = Self { file, path, header: 0, synced: Instant::now() };
        let chunks = journal.read(fingerprint, folder)?;
        Ok((journal, chunks))
    }

    fn read(&mut self, fingerprint: u64, folder: &Path) -> Result<Vec<Chunk>, CminError> {
        let failed = |error| CminError::write(folder, error);
        let header = format!("ffuzz-cmin 1 {fingerprint:016x}\n");
        self.header = header.len() as u64;
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() < header.len() && !bytes.starts_with(WATCHED) {
            self.cut(0)?;
            self.file.write_all(header.as_bytes()).map_err(failed)?;
            // The file name is data of the folder.
            settled(self.file.sync_data()).and_then(|()| sync_folder(folder)).map_err(failed)?;
            return Ok(Vec::new());
        }
        let Some(records) = bytes.strip_prefix(header.as_bytes()) else {
            return Err(CminError::OtherWork(folder.to_owned()));
        };
        let (chunks, used) = parse(records);
        self.cut(self.header + used as u64)?;
        Ok(chunks)
    }

    /// Discards all traces.
    pub(super) fn clear(&mut self) -> Result<(), CminError> {
        self.cut(self.header)
    }

    fn cut(&mut self, end: u64) -> Result<(), CminError> {
        let cut = self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end)));
        cut.map(|_| ()).map_err(|error| CminError::write(self.folder(), error))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn append(&mut self, chunk: &Chunk) -> Result<(), CminError> {
        let written = self.file.write_all(&record(chunk)).and_then(|()| self.sync_if_due());
        written.map_err(|error| CminError::write(self.folder(), error))
    }

    fn sync_if_due(&mut self) -> io::Result<()> {
        if self.synced.elapsed() >= SYNC {
            settled(self.file.sync_data())?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Marks the folder as complete and flushes it, so that it survives a loss of power. `copies`: the folder contains
    /// more than links.
    pub(super) fn finish(self, copies: bool) -> Result<(), CminError> {
        let sync = if copies { sync_all } else { sync_folder };
        sync(self.folder()).map_err(|error| CminError::write(self.folder(), error))?;
        fs::remove_file(&self.path).map_err(|error| CminError::write(&self.path, error))
    }
}

fn open_locked(path: &Path, folder: &Path) -> Result<Locked, CminError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| CminError::write(folder, error))?;
    Locked::new(file, false).map_err(|_| CminError::Busy(folder.to_owned()))
}

/// The file `.cmin` of a folder that `--watch` adds to. It keeps other commands out and holds no traces.
pub(super) struct WatchMark {
    _file: Locked,
    path: PathBuf,
}

/// Content of a [`WatchMark`].
const WATCHED: &[u8] = b"ffuzz-cmin watch\n";

impl WatchMark {
    /// Creates the folder and the file. Takes over the mark of a killed watch.
    pub(super) fn set(folder: &Path) -> Result<Self, CminError> {
        let failed = |error| CminError::write(folder, error);
        fs::create_dir_all(folder).map_err(failed)?;
        let path = folder.join(NAME);
        let mut file = open_locked(&path, folder)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        if !WATCHED.starts_with(&content) {
            return Err(CminError::OtherWork(folder.to_owned()));
        }
        file.write_all(&WATCHED[content.len()..]).map_err(failed)?;
        Ok(Self { _file: file, path })
    }

    pub(super) fn remove(self) -> Result<(), CminError> {
        fs::remove_file(&self.path).map_err(|error| CminError::write(&self.path, error))
    }
}

/// Flushes the whole file system, which is faster than flushing many files one by one.
pub(super) fn sync_all(folder: &Path) -> io::Result<()> {
    settled(nix::unistd::syncfs(File::open(folder)?).map_err(io::Error::from))
}

/// Flushes the names in a folder.
fn sync_folder(folder: &Path) -> io::Result<()> {
    settled(File::open(folder)?.sync_all())
}

fn record(chunk: &Chunk) -> Vec<u8> {
    let mut words = vec![chunk.number as u32, chunk.runs.len() as u32];
    for run in &chunk.runs {
        let (edges, keys) = (&run.trace.edges, &run.trace.keys);
        words.extend([run.input as u32, code(run.exit), edges.len() as u32, keys.len() as u32]);
        words.extend(edges);
        words.extend(keys.iter().flat_map(|(key, value)| [*key, *value]));
    }
    let sum = checksum(&words);
    let head = [words.len() as u32, sum as u32, (sum >> 32) as u32];
    head.iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect()
}

/// Parses all complete records; also returns their total length in bytes.
fn parse(bytes: &[u8]) -> (Vec<Chunk>, usize) {
    let (quads, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> = quads.iter().map(|quad| u32::from_le_bytes(*quad)).collect();
    let (mut chunks, mut at) = (Vec::new(), 0);
    while let Some(head) = words.get(at..at + HEAD) {
        let body = at + HEAD..at + HEAD + head[0] as usize;
        let Some(body) = words
            .get(body.clone())
            .filter(|body| checksum(body) == u64::from(head[1]) | u64::from(head[2]) << 32)
        else {
            break;
        };
        let Some(chunk) = RecordWords(body).chunk() else { break };
        chunks.push(chunk);
        at += HEAD + body.len();
    }
    (chunks, at * 4)
}

fn checksum(words: &[u32]) -> u64 {
    words.iter().fold(words.len() as u64, |sum, word| coverage::mix(sum ^ u64::from(*word)))
}

/// A reader that takes words from the front.
struct RecordWords<'a>(&'a [u32]);

impl<'a> RecordWords<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u32]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn chunk(&mut self) -> Option<Chunk> {
        let [number, count] = *self.take(2)? else { return None };
        let runs = (0..count).map(|_| self.run()).collect::<Option<_>>()?;
        Some(Chunk { number: number as usize, runs })
    }

    fn run(&mut self) -> Option<KeptRun> {
        let [input, exit, edges, keys] = *self.take(4)? else { return None };
        let edges = self.take(edges as usize)?.to_vec();
        let (pairs, _) = self.take(2 * keys as usize)?.as_chunks::<2>();
        let keys = pairs.iter().map(|[key, value]| (*key, *value)).collect();
        Some(KeptRun { input: input as usize, exit: exit_of(exit), trace: Trace { edges, keys } })
    }
}

/// Code of a lost run; larger than any signal number.
const LOST: u32 = u32::MAX;

/// Encodes an exit kind as a number.
fn code(exit: ExitKind) -> u32 {
    match exit {
        ExitKind::Ok => 0,
        ExitKind::Hang | ExitKind::Cut => 1,
        ExitKind::Oom => 2,
        ExitKind::Lost => LOST,
        ExitKind::Crash { signal } => 3 + signal.unsigned_abs(),
    }
}

fn exit_of(code: u32) -> ExitKind {
    match code {
        0 => ExitKind::Ok,
        1 => ExitKind::Hang,
        2 => ExitKind::Oom,
        LOST => ExitKind::Lost,
        crash => ExitKind::Crash { signal: (crash - 3).cast_signed() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: usize) -> Chunk {
        let run = |input, exit, edges: &[u32], keys: &[(u32, u32)]| KeptRun {
            input,
            exit,
            trace: Trace { edges: edges.to_vec(), keys: keys.to_vec() },
        };
        let runs = vec![
            run(number, ExitKind::Ok, &[8, 17], &[(3, 4)]),
            run(number + 1, ExitKind::Crash { signal: 6 }, &[], &[]),
            run(number + 2, ExitKind::Hang, &[9], &[]),
        ];
        Chunk { number, runs }
    }

    fn opened(folder: &Path, fingerprint: u64) -> (Journal, Vec<Chunk>) {
        Journal::open(folder, fingerprint).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    #[test]
    fn what_was_written_is_read_again_up_to_a_half_record() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, chunks) = opened(folder.path(), 7);
        assert_eq!(chunks, []);
        for number in [1, 0] {
            journal.append(&chunk(number)).unwrap();
        }
        drop(journal);
        let whole = fs::read(folder.path().join(NAME)).unwrap();
        for lost in [0, 1, 40] {
            fs::write(folder.path().join(NAME), &whole[..whole.len() - lost]).unwrap();
            let (mut journal, chunks) = opened(folder.path(), 7);
            let expected = if lost == 0 { vec![chunk(1), chunk(0)] } else { vec![chunk(1)] };
            assert_eq!(chunks, expected);
            journal.append(&chunk(5)).unwrap();
            drop(journal);
            assert_eq!(opened(folder.path(), 7).1.last(), Some(&chunk(5)));
        }
        // A changed byte is detected.
        let mut spoiled = whole.clone();
        spoiled[60] ^= 1;
        fs::write(folder.path().join(NAME), spoiled).unwrap();
        assert_eq!(opened(folder.path(), 7).1, []);
    }

    #[test]
    fn the_disk_gets_it_once_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = opened(folder.path(), 7);
        let opened = journal.synced;
        journal.append(&chunk(0)).unwrap();
        assert!(journal.synced == opened || opened.elapsed() >= SYNC);
        journal.synced = opened.checked_sub(SYNC).unwrap();
        journal.append(&chunk(1)).unwrap();
        assert!(journal.synced > opened);
    }

    #[test]
    fn only_the_same_work_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = opened(folder.path(), 7);
        let refusal = |number| Journal::open(folder.path(), number).err().unwrap().to_string();
        assert!(refusal(7).contains("another cmin is running"));
        drop(journal);
        assert!(refusal(8).contains("unfinished work of another"));
        for copies in [false, true] {
            opened(folder.path(), 7).0.finish(copies).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        fs::write(folder.path().join("mine"), "").unwrap();
        assert!(refusal(7).contains("is not empty"));
    }
}
