//! One harness of a run: its folders, and the processes that work on it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::archive::{CORPUS, COVERAGE, CRASHES};
use super::shares::Yield;
use super::{CiError, CiSettings, LOOK, known};
use ffuzz_crashes::triage::FOLDER;
use ffuzz_crashes::triage::report::{TriageReport, TriagedBug};
use ffuzz_disk::{archive, find, inputs};
use ffuzz_event::{Event, Snapshot};
use ffuzz_sys::file;
use ffuzz_sys::subprocess::{Subprocess, exit_in_words};

/// Folders of a harness: crashes of its corpus, what is beside it, the campaign, the corpus for the next run.
const CRASHING: &str = "crashing";
const BESIDE: &str = "beside";
const OUT: &str = "out";
const NEXT: &str = "next";
const LOG: &str = "log";
const EVENTS: &str = "events";
/// A search without a corpus begins with this.
const FIRST_SEED: &[u8] = b"hello";
/// In builds with the domain `diff`.
const DIFF: &[u8] = b"__ffuzz_diff_hit";
/// Time that a turn may take beyond its seconds, for its start and its end, before it is ended.
const GRACE: Duration = Duration::from_secs(60);
/// Bytes of a log that are searched for a cause.
const TAIL: u64 = 1 << 20;
/// Variables of all processes.
const VARIABLES: [(&str, &str); 7] = [
    ("AFL_NO_UI", "1"),
    ("AFL_NO_AFFINITY", "1"),
    ("AFL_SKIP_CPUFREQ", "1"),
    ("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1"),
    ("AFL_CRASHING_SEEDS_AS_NEW_CRASH", "1"),
    ("AFL_AUTORESUME", "1"),
    ("FFUZZ_NO_TRIAGE", "1"),
];

/// Whether a harness is fuzzed.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Fate {
    Fuzzed,
    LeftOut(String),
    Failed(String),
}

/// A harness, and what came of it.
#[derive(Debug)]
pub struct Harness {
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// The program for people.
    pub(super) shown: String,
    /// Its results.
    pub(super) folder: PathBuf,
    /// It was built with the domain `diff`.
    knows_change: bool,
    /// What the last archive has of it.
    archived: PathBuf,
    pub(super) fate: Fate,
    pub(super) yields: Yield,
    pub(super) report: TriageReport,
    /// The name of each bug by its place, by its id.
    places: BTreeMap<String, String>,
    pub(super) execs: u64,
    pub(super) inputs: u64,
    pub(super) found: u64,
    pub(super) edges: u64,
}

/// A campaign that runs for a while.
pub(super) struct Turn {
    process: Subprocess,
    begun: Instant,
    /// It is ended then.
    limit: Instant,
    status: Option<i32>,
}

impl Turn {
    pub(super) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.process.try_wait();
        }
        if self.status.is_none() && Instant::now() > self.limit {
            self.process.signal(libc::SIGKILL);
        }
        self.status.is_some()
    }

    pub(super) fn wait(&self, timeout: Duration) {
        self.process.wait(timeout);
    }

    /// Asks it to end.
    pub(super) fn ask(&mut self) {
        self.process.signal(libc::SIGTERM);
        self.limit = self.limit.min(Instant::now() + GRACE);
    }
}

impl Harness {
    pub(super) fn new(program: &Path, results: &Path, unpacked: &Path) -> Result<Self, CiError> {
        let read = |source| CiError::Read { path: program.to_owned(), source };
        let path = fs::canonicalize(program).map_err(read)?;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = results.join(&name);
        fs::create_dir_all(&folder)
            .map_err(|source| CiError::Write { path: folder.clone(), source })?;
        let content = fs::read(&path).map_err(read)?;
        Ok(Self {
            knows_change: content.windows(DIFF.len()).any(|part| part == DIFF),
            program: path,
            shown: program.display().to_string(),
            archived: unpacked.join(&name),
            folder,
            name,
            fate: Fate::Fuzzed,
            yields: Yield::default(),
            report: TriageReport::default(),
            places: BTreeMap::new(),
            execs: 0,
            inputs: 0,
            found: 0,
            edges: 0,
        })
    }

    pub(super) fn is_active(&self) -> bool {
        self.fate == Fate::Fuzzed
    }

    /// Its bugs. Of those that happen in the same line, with other stacks, the first.
    pub(super) fn bugs(&self) -> impl Iterator<Item = &TriagedBug> {
        let mut seen = BTreeSet::new();
        self.report.bugs.iter().filter(move |bug| {
            let place = self.places.get(&bug.id);
            place.is_none_or(|place| seen.insert(place))
        })
    }

    /// The names by which somebody may know a bug.
    pub(super) fn names<'a>(&'a self, bug: &'a TriagedBug) -> impl Iterator<Item = &'a String> {
        std::iter::once(&bug.id).chain(self.places.get(&bug.id))
    }

    /// Runs the whole corpus on all cores, and keeps of it what the search needs. Returns a line about it.
    pub(super) fn run_corpus(&mut self, settings: &CiSettings) -> Result<String, CiError> {
        let corpus = self.folder.join(CORPUS);
        let sources = self.sources(settings)?;
        let mut count = 0;
        for folder in &sources {
            count += inputs::list_below(folder).map_or(0, |files| files.len());
        }
        if count > 0 {
            self.minimize(settings, &sources, &corpus)?;
        }
        let write = |source| CiError::Write { path: corpus.clone(), source };
        fs::create_dir_all(&corpus).map_err(write)?;
        let kept = inputs::list(&corpus).map_or(0, |files| files.len());
        if kept == 0 {
            fs::write(corpus.join("seed"), FIRST_SEED).map_err(write)?;
        }
        self.inputs = kept as u64;
        let crashing = inputs::list(&self.folder.join(CRASHING)).map_or(0, |files| files.len());
        let archived = inputs::list(&self.archived.join(CRASHES)).map_or(0, |files| files.len());
        let name = &self.name;
        Ok(format!(
            "{name}: {count} inputs, {crashing} of them crash; {archived} crashes of earlier runs"
        ))
    }

    /// The folders with its inputs: of the archive, of the user, and beside the harness.
    fn sources(&self, settings: &CiSettings) -> Result<Vec<PathBuf>, CiError> {
        let mut sources = vec![self.archived.join(CORPUS)];
        for corpus in &settings.corpora {
            let own = corpus.join(&self.name);
            let is_own = !own.is_dir() && settings.harnesses.len() == 1;
            sources.push(if is_own { corpus.clone() } else { own });
        }
        let mut beside = self.program.clone().into_os_string();
        beside.push("_seed_corpus.zip");
        let beside = PathBuf::from(beside);
        if archive::is_archive(&beside) {
            let into = self.folder.join(BESIDE);
            let unpacked = archive::unpack(&beside, &into);
            unpacked
                .map_err(|error| CiError::Archive { path: beside, reason: error.to_string() })?;
            sources.push(into);
        }
        sources.retain(|folder| folder.is_dir());
        Ok(sources)
    }

    /// `ffuzz cmin`. What crashes goes to a folder of its own. Without it, all inputs stay.
    fn minimize(&self, settings: &CiSettings, from: &[PathBuf], to: &Path) -> Result<(), CiError> {
        let mut argv: Vec<OsString> = vec![settings.program.clone().into(), "cmin".into()];
        for folder in from {
            argv.extend(["-i".into(), folder.into()]);
        }
        argv.extend(["-o".into(), to.into(), "--crash-dir".into()]);
        argv.extend([
            self.folder.join(CRASHING).into(),
            "-T".into(),
            settings.cores.to_string().into(),
        ]);
        if to == self.folder.join(NEXT) {
            argv.extend(["--save-coverage".into(), self.folder.join(COVERAGE).into()]);
        }
        argv.extend(["--".into(), self.program.clone().into()]);
        let status = self.work(settings, &argv)?;
        let has_result = inputs::list(to).is_ok_and(|files| !files.is_empty());
        if status == Some(0) || has_result || settings.stop.asked() {
            return Ok(());
        }
        let crashes = inputs::list(&self.folder.join(CRASHING)).unwrap_or_default();
        let write = |source| CiError::Write { path: to.to_owned(), source };
        fs::create_dir_all(to).map_err(write)?;
        let names: Vec<_> = crashes.iter().filter_map(|path| fs::read(path).ok()).collect();
        for folder in from {
            for (number, path) in inputs::list_below(folder).unwrap_or_default().iter().enumerate()
            {
                let content = fs::read(path).unwrap_or_default();
                if !names.contains(&content) {
                    fs::write(to.join(format!("{number}")), content).map_err(write)?;
                }
            }
        }
        Ok(())
    }

    /// Runs crash files that were not run yet, and reads the report. Returns a line about it, if there is something new.
    pub(super) fn triage(&mut self, settings: &CiSettings) -> Result<Option<String>, CiError> {
        let places =
            [self.archived.join(CRASHES), self.folder.join(CRASHING), self.folder.join(OUT)];
        let has_files = |folder: &PathBuf| match folder.ends_with(OUT) {
            true => crash_files(folder, settings.report_hangs) > 0,
            false => inputs::list(folder).is_ok_and(|files| !files.is_empty()),
        };
        let folders: Vec<PathBuf> = places.into_iter().filter(has_files).collect();
        if folders.is_empty() || settings.stop.asked() {
            return Ok(None);
        }
        let mut argv: Vec<OsString> = vec![settings.program.clone().into(), "triage".into()];
        argv.extend(["-o".into(), self.folder.clone().into()]);
        argv.extend(["-j".into(), settings.cores.to_string().into()]);
        argv.extend(settings.report_hangs.then(|| OsString::from("--report-hangs")));
        argv.extend(folders.into_iter().map(Into::into));
        argv.extend(["--".into(), self.program.clone().into()]);
        let before = self.bugs().count();
        let status = self.work(settings, &argv)?;
        if let Some(report) = TriageReport::load(&self.folder.join(FOLDER)) {
            self.report = report;
        }
        for bug in &self.report.bugs {
            let place = known::place_name(bug, &settings.root);
            self.places.extend(place.map(|place| (bug.id.clone(), place)));
        }
        let (name, bugs) = (&self.name, self.bugs().count());
        Ok(match status {
            Some(0) if bugs > before => Some(format!("{name}: {bugs} bugs")),
            Some(0) | None => None,
            Some(_) => Some(format!("{name}: triage failed: {}", self.cause("triage", status))),
        })
    }

    /// Starts a campaign of some seconds, or lets the one that was there go on; None if it is too short.
    pub(super) fn begin_turn(
        &mut self,
        settings: &CiSettings,
        seconds: u64,
        workers: usize,
    ) -> Result<Option<Turn>, CiError> {
        if seconds == 0 {
            return Ok(None);
        }
        let mut argv: Vec<OsString> =
            vec![settings.program.clone().into(), "fuzz".into(), "--json".into()];
        argv.extend(["-i".into(), self.folder.join(CORPUS).into()]);
        argv.extend(["-o".into(), self.folder.join(OUT).into()]);
        argv.extend(["-V".into(), seconds.to_string().into()]);
        if workers > 1 {
            argv.extend(["-j".into(), workers.to_string().into()]);
        }
        argv.extend(self.knows_change.then(|| OsString::from("-p")));
        argv.extend(["--".into(), self.program.clone().into()]);
        let process = self.start(settings, &argv, &self.folder.join(EVENTS))?;
        let now = Instant::now();
        let limit = now + Duration::from_secs(seconds) + GRACE;
        Ok(Some(Turn { process, begun: now, limit, status: None }))
    }

    /// Notes what a turn brought. Returns a line about it.
    pub(super) fn end_turn(&mut self, turn: Turn) -> String {
        let last = self.last_snapshot();
        let name = &self.name;
        let Some(snapshot) = last.filter(|_| turn.status == Some(0)) else {
            self.fate = Fate::Failed(self.cause("the campaign", turn.status));
            return format!("{name}: {}", self.cause("the campaign", turn.status));
        };
        let spent = turn.begun.elapsed();
        let now_found = snapshot.corpus.corpus_count.saturating_sub(self.inputs.max(1));
        let new = now_found.saturating_sub(self.found);
        let silent = snapshot.times.now.saturating_sub(snapshot.finds.last_find_at);
        let last_find = spent.checked_sub(Duration::from_secs(silent));
        self.yields.add(spent, new, last_find);
        (self.found, self.execs) = (now_found, snapshot.runs.execs);
        self.edges = snapshot.coverage.edges_found;
        let (crashes, edges) = (snapshot.finds.saved_crashes, self.edges);
        format!(
            "{name}: {:.0} s, {new} new inputs, {edges} edges, {crashes} crashes",
            spent.as_secs_f64()
        )
    }

    /// The state at the end of the last turn.
    fn last_snapshot(&self) -> Option<Snapshot> {
        let events = BufReader::new(File::open(self.folder.join(EVENTS)).ok()?);
        let stopped = |line: String| match serde_json::from_str(&line) {
            Ok(Event::Stopped { snapshot, .. }) => Some(*snapshot),
            _ => None,
        };
        // Parts of several workers have a number beside the event.
        let lines = events.lines().map_while(Result::ok);
        let lines =
            lines.filter(|line| line.contains("\"stopped\"") && !line.contains("\"worker\":"));
        lines.filter_map(stopped).last()
    }

    /// Whether its corpus was run, so that its folders have all that the last archive has.
    pub(super) fn has_corpus(&self) -> bool {
        self.folder.join(CORPUS).is_dir()
    }

    /// What the archive is to have of it, by the names there. A run that the user ends loses nothing: then inputs are not
    /// minimized, and crashes of the last archive stay, whether they were run or not.
    pub(super) fn files(&self, settings: &CiSettings) -> Result<Vec<(String, PathBuf)>, CiError> {
        let next = self.folder.join(NEXT);
        let mut folders = vec![self.folder.join(CORPUS)];
        let queues = find::queues(&self.folder.join(OUT)).unwrap_or_default();
        folders.extend(queues);
        self.minimize(settings, &folders, &next)?;
        let is_whole = !settings.stop.asked();
        let inputs: Vec<PathBuf> = match is_whole {
            true => inputs::list(&next).unwrap_or_default(),
            false => {
                folders.iter().flat_map(|from| inputs::list(from).unwrap_or_default()).collect()
            }
        };
        let mut files = Vec::new();
        let named = |folder: &str, number: usize| format!("{}/{folder}/{number:06}", self.name);
        for (number, path) in inputs.into_iter().enumerate() {
            files.push((named(CORPUS, number), path));
        }
        let of_bug = |bug: &TriagedBug| {
            let folder = self.folder.join(FOLDER).join(&bug.id);
            let input = ["minimized", "input"].map(|name| folder.join(name));
            input.into_iter().find(|path| path.is_file())
        };
        let mut crashes: Vec<PathBuf> = self.report.bugs.iter().filter_map(of_bug).collect();
        if !is_whole {
            let places = [self.archived.join(CRASHES), self.folder.join(CRASHING)];
            crashes.extend(places.iter().flat_map(|from| inputs::list(from).unwrap_or_default()));
        }
        for (number, path) in crashes.into_iter().enumerate() {
            files.push((named(CRASHES, number), path));
        }
        let coverage = self.folder.join(COVERAGE);
        if is_whole && coverage.is_file() {
            files.push((format!("{}/{COVERAGE}", self.name), coverage));
        }
        Ok(files)
    }

    /// Runs a command of `ffuzz` to its end. Returns its raw wait status, None if the user ended it.
    fn work(&self, settings: &CiSettings, argv: &[OsString]) -> Result<Option<i32>, CiError> {
        let mut process = self.start(settings, argv, &self.folder.join(LOG))?;
        loop {
            if let Some(status) = process.try_wait() {
                return Ok(Some(status));
            }
            if settings.stop.asked() {
                process.signal(libc::SIGTERM);
                process.wait(GRACE);
                return Ok(None);
            }
            process.wait(LOOK);
        }
    }

    /// Starts a command; `out` gets what it prints, the log its messages.
    fn start(
        &self,
        settings: &CiSettings,
        argv: &[OsString],
        out: &Path,
    ) -> Result<Subprocess, CiError> {
        let open = |path: &Path| {
            let write = |source| CiError::Write { path: path.to_owned(), source };
            file::append(path).map_err(write)
        };
        let (out, err) = (open(out)?, open(&self.folder.join(LOG))?);
        let set = |(name, value): (&str, &str)| (name.into(), Some(value.into()));
        let env: Vec<(OsString, Option<OsString>)> = VARIABLES.into_iter().map(set).collect();
        let started = Subprocess::start(argv, &env, Stdio::null(), out.as_fd(), err.as_fd());
        started.map_err(|source| CiError::Start { program: settings.program.clone(), source })
    }

    /// Why a process ended badly: the last message in its log, or how it ended.
    fn cause(&self, what: &str, status: Option<i32>) -> String {
        let log = file::read(&self.folder.join(LOG), TAIL).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let is_cause = |line: &&str| line.starts_with("ffuzz") && !line.contains(": hint: ");
        let cause = log.lines().rev().find(is_cause).and_then(|line| line.split_once(": "));
        match (cause, status) {
            (Some((_, cause)), _) => cause.to_owned(),
            (None, Some(status)) => format!("{what} {}", exit_in_words(status)),
            (None, None) => format!("{what} did not end well"),
        }
    }
}

/// Number of crash files in the folder of a campaign, and of hangs if they count.
fn crash_files(folder: &Path, hangs: bool) -> usize {
    let queues = find::queues(folder).unwrap_or_default();
    let kinds: &[&str] = if hangs { &["crashes", "hangs"] } else { &["crashes"] };
    let folders =
        queues.iter().flat_map(|queue| kinds.iter().map(|kind| queue.with_file_name(kind)));
    let is_find = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"id"))
    };
    folders.flat_map(|folder| inputs::list(&folder).unwrap_or_default()).filter(is_find).count()
}

/// All files of a folder, by their names in the archive.
pub(super) fn files_in(folder: &Path, name: &str) -> Vec<(String, PathBuf)> {
    let files = inputs::list_below(folder).unwrap_or_default().into_iter();
    let named = |path: PathBuf| {
        let inside = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        Some((format!("{name}/{inside}"), path))
    };
    files.filter_map(named).collect()
}
