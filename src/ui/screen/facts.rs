//! The data that pages show: the latest snapshot, the event log, the queue's files and answers.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::super::summary::domain_name;
use super::asking::Answers;
use ffuzz_engine::corpus::names::{self, ParsedName};
use ffuzz_event::{Event, InputOrigin, Snapshot};

/// Maximum number of log lines.
const MOST_LINES: usize = 5_000;
/// Seconds for which the last line shows a message.
const MESSAGE_S: u64 = 10;
/// Minimum time between two readings of the queue's folder.
const PAUSE: Duration = Duration::from_secs(2);
/// Minimum time between two readings, as a multiple of the time that one takes.
const TIMES: u32 = 50;

#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) snapshot: Snapshot,
    pub(crate) log: VecDeque<LogLine>,
    pub(crate) queue: Queue,
    pub(crate) answers: Answers,
    /// True if the campaign itself lists where it is stuck; otherwise pages ask for it.
    pub(crate) knows_stuck: bool,
    /// Unix second and text.
    pub(crate) message: Option<(u64, String)>,
}

/// Importance of a log line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Weight {
    #[default]
    Usual,
    Notice,
    Warning,
    Crash,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LogLine {
    /// Milliseconds of campaign time.
    pub(crate) time: u64,
    /// The reporting worker; empty with a single process.
    pub(crate) who: String,
    pub(crate) weight: Weight,
    pub(crate) text: String,
}

impl Facts {
    /// Logs an event other than a tick.
    pub(crate) fn note(&mut self, worker: Option<&str>, event: &Event) {
        let Some((weight, text)) = described(event) else { return };
        if weight == Weight::Warning || matches!(event, Event::Notice { .. }) {
            let who = worker.map_or_else(String::new, |worker| format!("{worker}: "));
            self.message = Some((self.snapshot.times.now, who + &text));
        }
        let time = match event {
            Event::SeedSaved { path, .. }
            | Event::CrashSaved { path, .. }
            | Event::HangSaved { path, .. } => time_of(path),
            _ => None,
        };
        if self.log.len() >= MOST_LINES {
            self.log.pop_front();
        }
        self.log.push_back(LogLine {
            time: time.unwrap_or(self.snapshot.times.run_time_ms),
            who: worker.unwrap_or_default().to_owned(),
            weight,
            text,
        });
    }

    /// Shows a message in the last line only.
    pub(crate) fn say(&mut self, text: &str) {
        self.message = Some((self.snapshot.times.now, text.to_owned()));
    }

    /// The current message, unless it is older than [`MESSAGE_S`].
    pub(crate) fn message(&self) -> Option<&str> {
        let (at, text) = self.message.as_ref()?;
        (self.snapshot.times.now.saturating_sub(*at) < MESSAGE_S).then_some(text)
    }
}

fn time_of(path: &Path) -> Option<u64> {
    names::parse(&path.file_name()?.to_string_lossy())?.time
}

fn described(event: &Event) -> Option<(Weight, String)> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(match event {
        Event::SeedSaved { path, new_edge, gains, source, .. } => {
            let mut text = format!("found {}", short(&name(path)));
            if let InputOrigin::Import { peer } = source {
                text += &format!(" of {peer}");
            }
            if *new_edge {
                text += ", a new edge";
            }
            for gain in gains {
                text += &format!(", {} {}", gain.domain, gain.value);
                if !gain.place.is_empty() {
                    text += &format!(" at {}", gain.place);
                }
            }
            (Weight::Usual, text)
        }
        Event::CrashSaved { path, signal, .. } => {
            (Weight::Crash, format!("crash by signal {signal}: {}", name(path)))
        }
        Event::HangSaved { path, .. } => (Weight::Crash, format!("hang: {}", name(path))),
        Event::Started => (Weight::Notice, "fuzzing begins".into()),
        Event::CycleFinished { cycles } => {
            (Weight::Notice, format!("all seeds had their turn: cycle {cycles}"))
        }
        Event::TargetRestarted { reason } => {
            (Weight::Warning, format!("target restarted: {reason}"))
        }
        Event::Warning { message } => (Weight::Warning, message.clone()),
        Event::Notice { message } => (Weight::Notice, message.clone()),
        Event::SeedImported { .. }
        | Event::DomainsFound { .. }
        | Event::Reply(_)
        | Event::Tick(_)
        | Event::Stopped { .. } => return None,
    })
}

/// Shortens the file name of a find to its number and origin.
fn short(name: &str) -> String {
    let Some(it) = names::parse(name) else { return name.to_owned() };
    let id = format!("id:{:06}", it.id);
    match (it.op, it.src) {
        (Some(op), Some(src)) if it.peer.is_none() => format!("{id} ({op} of {src:06})"),
        _ => id,
    }
}

/// The files of all queues below the output folder, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    root: PathBuf,
    pub(crate) entries: Vec<QueueEntry>,
    /// Latest modification time of the folders at the last reading.
    changed: Option<SystemTime>,
    next: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct QueueEntry {
    pub(crate) path: PathBuf,
    /// Name of the instance's folder.
    pub(crate) instance: String,
    pub(crate) name: ParsedName,
}

impl Queue {
    pub(super) fn of(root: PathBuf) -> Self {
        Self { root, ..Self::default() }
    }

    /// Reads the folders again if one has changed and the minimum pause is over.
    pub(super) fn refresh(&mut self) {
        let start = Instant::now();
        if self.next.is_some_and(|next| start < next) {
            return;
        }
        let folders = queues(&self.root);
        let changed = |folder: &PathBuf| fs::metadata(folder).and_then(|data| data.modified()).ok();
        let newest = folders.iter().filter_map(changed).max();
        if newest != self.changed || self.next.is_none() {
            self.changed = newest;
            self.entries = folders.iter().flat_map(|folder| entries(folder)).collect();
            self.entries.sort_by_key(|entry| (entry.name.time, entry.name.id));
        }
        self.next = Some(Instant::now() + PAUSE.max(start.elapsed() * TIMES));
    }

    /// Sets the entries, for tests.
    #[cfg(test)]
    pub(crate) fn set(&mut self, entries: Vec<QueueEntry>) {
        self.entries = entries;
    }
}

/// The `queue` folders of the instances, without the shortcuts that ffuzz creates.
fn queues(root: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let instances = std::iter::once(root.to_owned()).chain(below);
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    instances.filter(is_folder).map(|path| path.join("queue")).filter(is_folder).collect()
}

fn entries(folder: &Path) -> Vec<QueueEntry> {
    let instance = folder.parent().and_then(Path::file_name).unwrap_or_default();
    let instance = instance.to_string_lossy().into_owned();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let entry = |file: fs::DirEntry| {
        let name = names::parse(&file.file_name().to_string_lossy())?;
        Some(QueueEntry { path: file.path(), instance: instance.clone(), name })
    };
    files.filter_map(entry).collect()
}

/// Names of the domains; the number of a domain without a name.
pub(crate) fn domain_names(snapshot: &Snapshot) -> impl Iterator<Item = String> + '_ {
    snapshot.domains.iter().enumerate().map(|(index, domain)| domain_name(index, domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_instances_are_listed_once_by_time() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "a/queue/id:000000,time:0,execs:0,orig:x",
            "b/queue/id:000001,src:000000,time:7,execs:3,op:havoc,rep:2",
            "a/queue/id:000001,src:000000,time:5,execs:2,op:havoc,rep:2,+cov",
            "a/queue/.state/other",
            "c/crashes/id:000000,sig:06",
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink("a/queue", dir.path().join("queue")).unwrap();
        let mut queue = Queue::of(dir.path().to_owned());
        queue.refresh();
        let shown: Vec<_> =
            queue.entries.iter().map(|it| (it.instance.as_str(), it.name.id)).collect();
        assert_eq!(shown, [("a", 0), ("a", 1), ("b", 1)]);
    }

    #[test]
    fn messages_go_after_a_while_and_stay_in_the_log() {
        let mut facts = Facts::default();
        facts.snapshot.times.now = 100;
        facts.note(Some("main"), &Event::Warning { message: "no room".into() });
        assert_eq!(facts.message(), Some("main: no room"));
        facts.snapshot.times.now = 100 + MESSAGE_S;
        assert_eq!((facts.message(), facts.log.len()), (None, 1));
        facts.say("read only");
        assert_eq!((facts.message(), facts.log.len()), (Some("read only"), 1));
        facts.note(None, &Event::Tick(Box::default()));
        assert_eq!(facts.log.len(), 1);
    }
}
