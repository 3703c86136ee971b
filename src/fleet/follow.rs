//! The folder of a campaign, followed while its fuzzers write to it: the same events as those of a campaign in this
//! process. It only reads, so it follows ended campaigns as well, and those of afl-fuzz.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use ffuzz_crashes::triage::FOLDER;
use ffuzz_crashes::triage::report::TriageReport;
use ffuzz_disk::find;
use ffuzz_disk::output::instances::{self, Instance, InstanceState};
use ffuzz_disk::output::{plot, state, stats};
use ffuzz_engine::corpus::SeedId;
use ffuzz_engine::corpus::names::{self, ParsedName};
use ffuzz_event::{Event, InputOrigin, Search, Snapshot, StageYield, WorkerStatus};
use ffuzz_sys::file;

/// Time between two readings, at least, and as many times what one takes.
const PAUSE: Duration = Duration::from_millis(500);
const TIMES: u32 = 20;
/// Finds from before the first reading that become events, of each instance.
const MOST_EARLIER: usize = 500;
/// Larger than the state of any corpus that fits into memory.
const LARGEST_STATE: u64 = 4 << 30;

/// An event, and the instance that it is of; of a campaign of one none is named.
pub type FollowedEvent = (Option<String>, Event);

/// A reader of a campaign's folder.
#[derive(Debug)]
pub struct Follow {
    root: PathBuf,
    instances: BTreeMap<PathBuf, FollowedInstance>,
    report: Cached<Option<u64>>,
    next: Instant,
}

/// What is known of an instance.
#[derive(Debug, Default)]
struct FollowedInstance {
    folders: BTreeMap<PathBuf, FolderFinds>,
    stages: Cached<Vec<StageYield>>,
    last_find: u64,
    last_crash: u64,
    last_hang: u64,
}

/// The finds of a folder.
#[derive(Debug, Default)]
struct FolderFinds {
    changed: Option<SystemTime>,
    names: HashSet<String>,
}

/// What a file says, until it changes.
#[derive(Debug, Default)]
struct Cached<T> {
    changed: Option<SystemTime>,
    value: T,
}

impl<T: Default + Clone> Cached<T> {
    fn get(&mut self, path: &Path, read: impl FnOnce(&Path) -> T) -> T {
        let changed = changed(path);
        if changed != self.changed {
            (self.changed, self.value) = (changed, read(path));
        }
        self.value.clone()
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

impl Follow {
    /// `root`: the folder of the fuzzer's `-o`, or that of an instance.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root, instances: BTreeMap::new(), report: Cached::default(), next: Instant::now() }
    }

    /// Time until the folder is worth another reading.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// What has happened since the last reading, and the state now; and whether a fuzzer is still at work.
    pub fn read(&mut self) -> io::Result<(Vec<FollowedEvent>, bool)> {
        let start = Instant::now();
        let found = instances::find(&self.root)?;
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no fuzzer has used it"));
        }
        let mut events = Vec::new();
        let mut snapshots = Vec::new();
        for instance in &found {
            let is_first = !self.instances.contains_key(&instance.folder);
            let known = self.instances.entry(instance.folder.clone()).or_default();
            let worker = (found.len() > 1).then(|| instance.name.clone());
            known.take_finds(instance, is_first, |event| events.push((worker.clone(), event)));
            snapshots.push(known.snapshot(instance));
        }
        // The log of a screen is in the order of time.
        events.sort_by_key(|(_, event)| time_of(event));
        let mut whole = match &snapshots[..] {
            [one] => one.clone(),
            all => joined(&found, all),
        };
        let bugs = self.report.get(&self.root.join(FOLDER).join("report.json"), |path| {
            let report = TriageReport::load(path.parent()?)?;
            Some(report.bugs.len() as u64)
        });
        whole.finds.bugs = bugs.or(whole.finds.bugs);
        events.push((None, Event::Tick(Box::new(whole))));
        self.next = Instant::now() + PAUSE.max(start.elapsed() * TIMES);
        let runs = found.iter().any(|instance| instance.state != InstanceState::Dead);
        Ok((events, runs))
    }
}

/// Milliseconds of campaign time of a find.
fn time_of(event: &Event) -> Option<u64> {
    let (Event::SeedSaved { path, .. }
    | Event::CrashSaved { path, .. }
    | Event::HangSaved { path, .. }) = event
    else {
        return None;
    };
    names::parse(&path.file_name()?.to_string_lossy())?.time
}

fn joined(found: &[Instance], all: &[Snapshot]) -> Snapshot {
    let mut whole = Snapshot::joined(&all.iter().collect::<Vec<_>>());
    let worker = |(instance, s): (&Instance, &Snapshot)| WorkerStatus {
        name: instance.name.clone(),
        state: match instance.state {
            InstanceState::Alive => "fuzzing".into(),
            InstanceState::Starting => "starting".into(),
            InstanceState::Dead => "ended".into(),
        },
        schedule: s.setup.schedule.clone(),
        execs: s.runs.execs,
        execs_per_sec: s.runs.execs_per_sec,
        corpus_count: s.corpus.corpus_count,
        corpus_imported: s.corpus.corpus_imported,
        edges_found: s.coverage.edges_found,
        saved_crashes: s.finds.saved_crashes,
        saved_hangs: s.finds.saved_hangs,
        last_find_at: s.finds.last_find_at,
        ..WorkerStatus::default()
    };
    whole.workers = found.iter().zip(all).map(worker).collect();
    whole.setup.instance = format!("{} instances", found.len());
    whole
}

impl FollowedInstance {
    /// Makes events of new files. Of a folder that is read for the first time the last ones are enough.
    fn take_finds(&mut self, instance: &Instance, is_first: bool, mut send: impl FnMut(Event)) {
        let queue = instance.folder.join("queue");
        let crashes = find::folders(&instance.folder).unwrap_or_default();
        let hangs = find::hangs(&instance.folder).unwrap_or_default();
        let now = seconds(SystemTime::now());
        for (kind, folder) in std::iter::once((FindKind::Seed, queue))
            .chain(crashes.into_iter().map(|folder| (FindKind::Crash, folder)))
            .chain(hangs.into_iter().map(|folder| (FindKind::Hang, folder)))
        {
            let mut new = self.folders.entry(folder.clone()).or_default().new_files(&folder);
            if new.is_empty() {
                continue;
            }
            if !is_first {
                let last = match kind {
                    FindKind::Seed => &mut self.last_find,
                    FindKind::Crash => &mut self.last_crash,
                    FindKind::Hang => &mut self.last_hang,
                };
                *last = now;
            }
            new.sort_by_key(|(_, name)| (name.time, name.id));
            let earlier = if is_first { new.len().saturating_sub(MOST_EARLIER) } else { 0 };
            for (path, name) in new.drain(earlier..) {
                send(event(kind, path, &name));
            }
        }
    }

    fn snapshot(&mut self, instance: &Instance) -> Snapshot {
        let mut s = stats::snapshot(&instance.stats);
        let row = plot::last_row(&instance.folder);
        let is_running = instance.state != InstanceState::Dead;
        // The file of numbers is written once a minute, a row every five seconds.
        let whole = |number: f64| number as u64;
        if let Some(row) = row.filter(|row| is_running && whole(row[11]) > s.runs.execs) {
            s.cycles.cycles_done = whole(row[1]);
            (s.corpus.pending_total, s.corpus.pending_favored) = (whole(row[4]), whole(row[5]));
            (s.runs.execs_per_sec, s.runs.execs) = (row[10], whole(row[11]));
            s.coverage.edges_found = s.coverage.edges_found.max(whole(row[12]));
        }
        if is_running && s.times.now > 0 {
            let now = seconds(SystemTime::now()).max(s.times.now);
            s.times.run_time_ms += (now - s.times.now) * 1000;
            s.times.now = now;
        }
        s.finds.last_find_at = s.finds.last_find_at.max(self.last_find);
        s.finds.last_crash_at = s.finds.last_crash_at.max(self.last_crash);
        s.finds.last_hang_at = s.finds.last_hang_at.max(self.last_hang);
        let files = |is_it: fn(&Path) -> bool| -> u64 {
            let folders = self.folders.iter().filter(|(folder, _)| is_it(folder));
            folders.map(|(_, finds)| finds.names.len() as u64).sum()
        };
        s.corpus.corpus_count = s.corpus.corpus_count.max(files(|it| it.ends_with("queue")));
        s.finds.saved_hangs = s.finds.saved_hangs.max(files(|it| find::is_hang(&it.join("x"))));
        let is_crashes = |it: &Path| !it.ends_with("queue") && !find::is_hang(&it.join("x"));
        s.finds.saved_crashes = s.finds.saved_crashes.max(files(is_crashes));
        let stages = self.stages.get(&instance.folder.join(state::NAME), stages);
        s.search = Search { stages, ..s.search };
        s.setup.instance.clone_from(&instance.name);
        s.setup.schedule = match instance.state {
            InstanceState::Alive => schedule(instance),
            InstanceState::Starting => "starting".into(),
            InstanceState::Dead => "ended".into(),
        };
        s
    }
}

/// The schedule in the command line, as far as it was named there.
fn schedule(instance: &Instance) -> String {
    let mut words = instance.text("command_line").split_whitespace();
    let named = words.by_ref().find(|word| ["--schedule", "-P"].contains(word));
    named.and_then(|_| words.next()).unwrap_or("running").to_owned()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FindKind {
    Seed,
    Crash,
    Hang,
}

fn event(kind: FindKind, path: PathBuf, name: &ParsedName) -> Event {
    let source = match (&name.orig, &name.peer) {
        (Some(_), _) => InputOrigin::Seed,
        (None, Some(peer)) => InputOrigin::Import { peer: peer.clone() },
        (None, None) => InputOrigin::Own,
    };
    match kind {
        FindKind::Seed => Event::SeedSaved {
            id: SeedId(name.id),
            path,
            new_edge: name.new_edge,
            waypoint: name.waypoint,
            source,
            gains: Vec::new(),
        },
        FindKind::Crash => {
            let signal = name.signal.unwrap_or(0);
            Event::CrashSaved { number: name.id.into(), path, signal, source }
        }
        FindKind::Hang => Event::HangSaved { number: name.id.into(), path, source },
    }
}

impl FolderFinds {
    /// The files that were not there at the last reading.
    fn new_files(&mut self, folder: &Path) -> Vec<(PathBuf, ParsedName)> {
        let now = changed(folder);
        if now.is_none() || now == self.changed {
            return Vec::new();
        }
        self.changed = now;
        let mut new = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_report = name.ends_with(".submitted") || name.ends_with(".failed");
            let Some(parsed) = names::parse(&name).filter(|_| !is_report) else { continue };
            if self.names.insert(name) {
                new.push((entry.path(), parsed));
            }
        }
        new
    }
}

/// What the stages have brought, of a state; none if it cannot be read.
fn stages(path: &Path) -> Vec<StageYield> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct StageCounters {
        stages: Vec<StageYield>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Part {
        counters: StageCounters,
    }
    let text = file::read_whole(path, LARGEST_STATE).unwrap_or_default();
    serde_json::from_slice::<Part>(&text).unwrap_or_default().counters.stages
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn state_of(events: &[FollowedEvent]) -> &Snapshot {
        let Some((_, Event::Tick(snapshot))) = events.last() else { panic!("{events:?}") };
        snapshot
    }

    #[test]
    fn finds_and_numbers_of_all_instances_become_events() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let stats = |execs: u64| {
            format!(
                "start_time : 1000\nlast_update : 1060\nrun_time : 60\nexecs_done : {execs}\ntotal_edges : 9\n"
            )
        };
        put(root, "a/fuzzer_stats", &stats(70));
        put(root, "a/queue/id:000000,time:0,execs:0,orig:x", "x");
        put(root, "a/queue/id:000001,src:000000,time:900,execs:5,op:havoc,rep:2,+cov", "x");
        put(root, "a/crashes/id:000000,sig:06,src:000000,time:500,execs:5,op:havoc,rep:2", "x");
        put(
            root,
            "a/state.json",
            r#"{"seeds":[{}],"counters":{"stages":[{"name":"havoc","finds":1,"execs":7}]}}"#,
        );
        let mut follow = Follow::new(root.to_owned());
        let (events, is_running) = follow.read().unwrap();
        let kinds: Vec<_> = events
            .iter()
            .map(|(who, event)| match event {
                Event::SeedSaved { .. } => "seed",
                Event::CrashSaved { signal: 6, .. } => "crash",
                Event::Tick(_) if who.is_none() => "tick",
                _ => "other",
            })
            .collect();
        assert_eq!(kinds, ["seed", "crash", "seed", "tick"]);
        let s = state_of(&events);
        assert_eq!((s.runs.execs, s.corpus.corpus_count, s.finds.saved_crashes), (70, 2, 1));
        assert_eq!((is_running, s.setup.schedule.as_str(), s.times.now), (false, "ended", 1060));
        assert_eq!((s.search.stages[0].execs, s.workers.len()), (7, 0));
        // Nothing new but the state.
        assert_eq!(follow.read().unwrap().0.len(), 1);
        put(root, "b/fuzzer_stats", &stats(30));
        put(root, "b/queue/id:000000,src:000001,time:950,execs:9,sync:a", "x");
        let (events, _) = follow.read().unwrap();
        assert_eq!(events[0].0.as_deref(), Some("b"));
        let s = state_of(&events);
        assert_eq!((s.runs.execs, s.workers.len(), s.workers[1].name.as_str()), (100, 2, "b"));
        // Finds from before its first reading are not finds of this moment.
        assert_eq!(s.workers[1].last_find_at, 0);
    }

    #[test]
    fn damaged_and_missing_files_are_no_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(Follow::new(root.join("none")).read().is_err());
        assert_eq!(
            Follow::new(root.to_owned()).read().unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        put(root, "a/fuzzer_stats", "execs_done : -5\n\u{0}\nno colon");
        put(root, "a/plot_data", "# x\n1, 2, half");
        put(root, "a/state.json", "{\"counters\":");
        put(root, "triage/report.json", "[]");
        put(root, "a/queue/README", "x");
        let (events, _) = Follow::new(root.to_owned()).read().unwrap();
        let s = state_of(&events);
        assert_eq!((s.runs.execs, s.corpus.corpus_count, s.finds.bugs), (0, 0, None));
    }
}
