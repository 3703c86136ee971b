//! The queue of own finds that the broker lacks: its order and its rate.
//!
//! The files are the queue. A find is added when it is reported; after a time without a broker, or
//! after an overflow, the folders are listed again. Inputs that the broker sent or received are
//! recognised by content, so nothing goes twice or back. The disk may be slow, so a file is read only
//! when it is due, once per connection and in limited numbers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha1::{Digest, Sha1};

use super::messages::SeedKind;
use crate::control::LONGEST_INPUT;
use ffuzz_engine::corpus::names;

/// Average number of inputs sent per second: a broker copies each one to all other clients.
pub(super) const RATE: f64 = 50.0;
/// Maximum number of queued paths. The rest stays in the folders until there is room.
const MOST_WAITING: usize = 10_000;
/// Time limit for skipping files that the broker already has.
const SLICE: Duration = Duration::from_millis(50);
/// Order of sending: crashes first.
const ORDER: [(SeedKind, &str); 3] =
    [(SeedKind::Crash, "crashes"), (SeedKind::Hang, "hangs"), (SeedKind::Input, "queue")];

/// Inputs by content, with the sides that have them.
#[derive(Debug, Default)]
pub(super) struct KnownInputs {
    inputs: HashMap<[u8; 20], SentMark>,
    /// Number of the current connection to the broker.
    connection: u32,
}

#[derive(Clone, Copy, Debug)]
struct SentMark {
    /// True if it came from the broker.
    theirs: bool,
    /// Connection over which it was sent, and the worst kind that was reported.
    connection: u32,
    kind: SeedKind,
}

impl KnownInputs {
    /// Begins a new connection, over which the broker may know nothing.
    pub(super) fn begin_connection(&mut self) {
        self.connection += 1;
    }

    /// Notes an input from the broker; returns true if it is new to this client.
    pub(super) fn receive(&mut self, bytes: &[u8], kind: SeedKind) -> bool {
        let mark = SentMark { theirs: true, connection: self.connection, kind };
        match self.inputs.get_mut(&digest(bytes)) {
            Some(known) => {
                known.connection = self.connection;
                false
            }
            None => self.inputs.insert(digest(bytes), mark).is_none(),
        }
    }

    /// Returns true if the broker needs this input.
    #[must_use]
    pub(super) fn is_wanted(&self, bytes: &[u8], kind: SeedKind) -> bool {
        let known = self.inputs.get(&digest(bytes));
        known.is_none_or(|mark| {
            !mark.theirs && (mark.connection != self.connection || mark.kind < kind)
        })
    }

    pub(super) fn sent(&mut self, bytes: &[u8], kind: SeedKind) {
        let mark = SentMark { theirs: false, connection: self.connection, kind };
        self.inputs.insert(digest(bytes), mark);
    }
}

pub(super) fn digest(bytes: &[u8]) -> [u8; 20] {
    Sha1::digest(bytes).into()
}

/// Files waiting to be sent.
#[derive(Debug)]
pub(super) struct ExportQueue {
    /// Output folder of the fuzzer (`-o`).
    folder: PathBuf,
    waiting: [VecDeque<PathBuf>; ORDER.len()],
    /// Files handled since the connection began.
    done: HashSet<PathBuf>,
    /// True if the folders hold files that are not listed yet.
    unlisted: bool,
    allowance: f64,
    counted: Instant,
}

impl ExportQueue {
    #[must_use]
    pub(super) fn new(folder: PathBuf) -> Self {
        let (waiting, done) = Default::default();
        Self { folder, waiting, done, unlisted: true, allowance: RATE, counted: Instant::now() }
    }

    /// Queues a file.
    pub(super) fn add(&mut self, kind: SeedKind, path: PathBuf) {
        if self.waiting.iter().map(VecDeque::len).sum::<usize>() >= MOST_WAITING {
            self.unlisted = true;
            return;
        }
        let place = ORDER.iter().position(|(known, _)| *known == kind).unwrap_or_default();
        self.waiting[place].push_back(path);
    }

    /// Restarts the queue for a broker that may lack everything.
    pub(super) fn begin_connection(&mut self) {
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.done.clear();
        self.unlisted = true;
    }

    /// Lists the folders again, because there may be unreported files.
    pub(super) fn look_again(&mut self) {
        self.unlisted = true;
    }

    /// The next file to send; None if there is none, or the rate limit is reached.
    pub(super) fn next(&mut self, known: &KnownInputs) -> Option<(SeedKind, PathBuf, Vec<u8>)> {
        self.count();
        if self.allowance < 1.0 {
            return None;
        }
        if self.unlisted && self.waiting.iter().all(VecDeque::is_empty) {
            self.unlisted = false;
            self.list();
        }
        let begun = Instant::now();
        for (place, (kind, _)) in ORDER.into_iter().enumerate() {
            while let Some(path) = self.waiting[place].pop_front() {
                self.done.insert(path.clone());
                if let Some(bytes) = read(&path).filter(|bytes| known.is_wanted(bytes, kind)) {
                    return Some((kind, path, bytes));
                }
                if begun.elapsed() > SLICE {
                    return None;
                }
            }
        }
        None
    }

    /// Counts a sent file.
    pub(super) fn sent(&mut self) {
        self.allowance -= 1.0;
    }

    /// Queues a file again that could not be sent.
    pub(super) fn requeue(&mut self, kind: SeedKind, path: PathBuf) {
        let place = ORDER.iter().position(|(known, _)| *known == kind).unwrap_or_default();
        self.waiting[place].push_front(path);
    }

    fn count(&mut self) {
        let elapsed: Duration = self.counted.elapsed();
        self.counted = Instant::now();
        self.allowance = (self.allowance + elapsed.as_secs_f64() * RATE).min(RATE);
    }

    /// Lists finds of all workers that are not handled yet, oldest first.
    fn list(&mut self) {
        for (kind, name) in ORDER {
            let mut found: Vec<(u32, PathBuf)> = Vec::new();
            for instance in entries(&self.folder) {
                let files = entries(&instance.join(name));
                found.extend(files.into_iter().filter_map(|path| Some((own(&path)?, path))));
            }
            found.sort();
            for (_, path) in found {
                if !self.done.contains(&path) {
                    self.add(kind, path);
                }
            }
        }
    }
}

/// Number of a file that the fuzzer itself generated; None for a starting seed or an import.
fn own(path: &Path) -> Option<u32> {
    let name = names::parse(path.file_name()?.to_str()?)?;
    (name.peer.is_none() && name.orig.is_none()).then_some(name.id)
}

/// Entries of a folder without links: those of a single instance lead to folders that are listed
/// anyway.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let kept = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    kept.map(|entry| entry.path()).collect()
}

/// Reads a file whose size is valid for an input.
fn read(path: &Path) -> Option<Vec<u8>> {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    (1..=LONGEST_INPUT as u64).contains(&size).then(|| fs::read(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        dir
    }

    /// Takes all available files, as (kind, content).
    fn all(exports: &mut ExportQueue, known: &mut KnownInputs) -> Vec<(SeedKind, String)> {
        let mut found = vec![];
        while let Some((kind, _, bytes)) = exports.next(known) {
            known.sent(&bytes, kind);
            exports.sent();
            found.push((kind, String::from_utf8(bytes).unwrap()));
        }
        found
    }

    const FILES: &[&str] = &[
        "main/queue/id:000000,time:0,execs:0,orig:seed",
        "main/queue/id:000001,src:000000,op:havoc,rep:2,+cov",
        "main/queue/id:000002,sync:inject,src:000000",
        "worker01/queue/id:000001,src:000000,op:havoc,rep:9",
        "main/crashes/id:000000,sig:06,src:000000,op:havoc,rep:2",
        "main/crashes/id:000001,sig:06,sync:inject,src:000000",
        "main/crashes/README.txt",
        "worker01/hangs/id:000000,src:000000,op:havoc,rep:2",
    ];

    #[test]
    fn own_finds_go_out_crashes_first() {
        let dir = folder(FILES);
        let (mut exports, mut known) =
            (ExportQueue::new(dir.path().into()), KnownInputs::default());
        let sent = all(&mut exports, &mut known);
        let expected = [
            (SeedKind::Crash, FILES[4]),
            (SeedKind::Hang, FILES[7]),
            (SeedKind::Input, FILES[1]),
            (SeedKind::Input, FILES[3]),
        ];
        assert_eq!(sent, expected.map(|(kind, text)| (kind, text.to_owned())));
        exports.look_again();
        assert!(all(&mut exports, &mut known).is_empty());
        // A file that was not reported.
        let name = "main/queue/id:000003,src:000001,op:havoc,rep:2";
        fs::write(dir.path().join(name), name).unwrap();
        exports.look_again();
        assert_eq!(all(&mut exports, &mut known), [(SeedKind::Input, name.to_owned())]);
        // Another connection, perhaps to a broker that has only one of the files.
        known.begin_connection();
        known.receive(FILES[1].as_bytes(), SeedKind::Input);
        exports.begin_connection();
        assert_eq!(all(&mut exports, &mut known).len(), 4);
    }

    #[test]
    fn nothing_goes_back_to_where_it_came_from() {
        let mut known = KnownInputs::default();
        assert!(known.receive(b"x", SeedKind::Input));
        assert!(!known.receive(b"x", SeedKind::Input));
        known.begin_connection();
        assert!(!known.is_wanted(b"x", SeedKind::Crash));
        known.sent(b"y", SeedKind::Input);
        assert!(!known.is_wanted(b"y", SeedKind::Input) && known.is_wanted(b"y", SeedKind::Crash));
        assert!(!known.receive(b"y", SeedKind::Input));
    }

    #[test]
    fn empty_and_missing_files_are_passed_over() {
        let dir = folder(&[]);
        fs::write(dir.path().join("empty"), "").unwrap();
        let mut exports = ExportQueue::new(dir.path().into());
        for name in ["empty", "missing"] {
            exports.add(SeedKind::Input, dir.path().join(name));
        }
        assert_eq!(exports.next(&KnownInputs::default()), None);
    }

    #[test]
    fn many_finds_take_their_time() {
        let dir = folder(&[]);
        let mut exports = ExportQueue::new(dir.path().into());
        for number in 0..200 {
            let path = dir.path().join(number.to_string());
            fs::write(&path, number.to_string()).unwrap();
            exports.add(SeedKind::Input, path);
        }
        let start = Instant::now();
        let sent = all(&mut exports, &mut KnownInputs::default()).len();
        let most = 51 + (start.elapsed().as_secs_f64() * RATE) as usize;
        assert!((50..=most).contains(&sent), "{sent} of {most}");
    }
}
