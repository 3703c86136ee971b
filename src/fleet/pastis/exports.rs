//! What the fuzzer has found and the broker does not have: in which order and how fast it goes there.
//!
//! The files are the queue. A find is named when it happens; after a time without a broker, or when
//! more came than names are kept, the folders are listed again. What the broker has shown or was given
//! is known by its content, so nothing is sent twice or back. The disk may be slow: a file is read when
//! it is its turn, once a connection, and only some at a time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha1::{Digest, Sha1};

use super::messages::SeedKind;
use crate::control::LONGEST_INPUT;
use ffuzz_engine::corpus::names;

/// Sent in a second, on average: a broker copies each to all other clients.
pub(super) const RATE: f64 = 50.0;
/// Maximum number of waiting names. The rest stays in the folders until there is room.
const MOST_WAITING: usize = 10_000;
/// For files in a row that the broker has already.
const SLICE: Duration = Duration::from_millis(50);
/// Crashes first.
const ORDER: [(SeedKind, &str); 3] =
    [(SeedKind::Crash, "crashes"), (SeedKind::Hang, "hangs"), (SeedKind::Input, "queue")];

/// Inputs by content, and which side has them.
#[derive(Debug, Default)]
pub(super) struct KnownInputs {
    inputs: HashMap<[u8; 20], SentMark>,
    /// Number of the connection to the broker.
    connection: u32,
}

#[derive(Clone, Copy, Debug)]
struct SentMark {
    /// It came from the broker.
    theirs: bool,
    /// The connection over which it was sent, and the worst kind that was reported.
    connection: u32,
    kind: SeedKind,
}

impl KnownInputs {
    /// A new connection: the broker may have lost everything.
    pub(super) fn begin_connection(&mut self) {
        self.connection += 1;
    }

    /// It came from the broker. True if it is new to this client.
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

    /// Whether to send it to the broker.
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

/// Files that wait to be sent.
#[derive(Debug)]
pub(super) struct ExportQueue {
    /// The fuzzer's `-o`.
    folder: PathBuf,
    waiting: [VecDeque<PathBuf>; ORDER.len()],
    /// Files whose turn has come since the connection began.
    done: HashSet<PathBuf>,
    /// The folders hold files that are not listed yet.
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

    /// One more file.
    pub(super) fn add(&mut self, kind: SeedKind, path: PathBuf) {
        if self.waiting.iter().map(VecDeque::len).sum::<usize>() >= MOST_WAITING {
            self.unlisted = true;
            return;
        }
        let place = ORDER.iter().position(|(known, _)| *known == kind).unwrap_or_default();
        self.waiting[place].push_back(path);
    }

    /// A broker that may lack everything: all files have their turn again.
    pub(super) fn begin_connection(&mut self) {
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.done.clear();
        self.unlisted = true;
    }

    /// There may be files that were not reported.
    pub(super) fn look_again(&mut self) {
        self.unlisted = true;
    }

    /// The next file to send to the broker. None if there is none, or if it is not time for one.
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

    /// It went out.
    pub(super) fn sent(&mut self) {
        self.allowance -= 1.0;
    }

    /// It could not be sent now.
    pub(super) fn requeue(&mut self, kind: SeedKind, path: PathBuf) {
        let place = ORDER.iter().position(|(known, _)| *known == kind).unwrap_or_default();
        self.waiting[place].push_front(path);
    }

    fn count(&mut self) {
        let elapsed: Duration = self.counted.elapsed();
        self.counted = Instant::now();
        self.allowance = (self.allowance + elapsed.as_secs_f64() * RATE).min(RATE);
    }

    /// Own finds of all workers whose turn has not come, oldest first.
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

/// Number of a file that the fuzzer has made itself: neither a starting seed nor an import.
fn own(path: &Path) -> Option<u32> {
    let name = names::parse(path.file_name()?.to_str()?)?;
    (name.peer.is_none() && name.orig.is_none()).then_some(name.id)
}

/// Links are left out: those of a single instance lead to folders that are found anyway.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let kept = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    kept.map(|entry| entry.path()).collect()
}

/// A whole file that can be an input.
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

    /// All that are available, as (kind, content).
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
        // One that was not reported.
        let name = "main/queue/id:000003,src:000001,op:havoc,rep:2";
        fs::write(dir.path().join(name), name).unwrap();
        exports.look_again();
        assert_eq!(all(&mut exports, &mut known), [(SeedKind::Input, name.to_owned())]);
        // Another connection, perhaps to a broker that has only one of them.
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
