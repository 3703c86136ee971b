//! The work: files that wait to be examined, bugs that wait to be made small, and those who do it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::group::Groups;
use super::hang;
use super::minimize::minimize;
use super::report::{Crash, Report, State, hex};
use super::rerun::{Build, Examined, Rerun, Seen};
use super::{Courier, TriageError, deliver, find, write};
use crate::collector::Status;
use crate::crash::Program;
use crate::target::MAX_INPUT;

/// Between two versions of the report while there is work.
const SAVE: Duration = Duration::from_secs(1);

/// What the work depends on.
#[derive(Clone, Debug)]
pub struct Orders {
    /// `…/triage`.
    pub folder: PathBuf,
    /// Paths in the report begin below it.
    pub root: PathBuf,
    pub runs: u32,
    /// Longest time for making one input small; zero: not at all.
    pub minimize: Duration,
    pub program: Program,
    /// For `reproduce.sh`.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
}

/// What those who work share.
#[derive(Debug)]
pub struct Work {
    orders: Orders,
    /// Delivers bugs, if somebody wants them.
    courier: Option<Courier>,
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside {
    report: Report,
    groups: Groups,
    waiting: VecDeque<PathBuf>,
    /// Files that were seen, those of earlier runs included.
    known: HashSet<PathBuf>,
    /// Examined now.
    under_way: usize,
    /// Bugs that somebody makes small.
    small: HashSet<String>,
    /// The build in which each bug crashes, and its stacks: from this run.
    builds: HashMap<String, Build>,
    stop: bool,
    /// An end is near: nothing is made small any more.
    hurry: bool,
    dirty: bool,
    saved: Instant,
    notes: Vec<String>,
    /// Crash files that have their mark.
    marked: HashSet<String>,
}

/// One thing to do.
enum Job {
    Examine(PathBuf),
    /// Position of a bug.
    Finish(usize),
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Progress {
    pub done: usize,
    pub waiting: usize,
    pub bugs: usize,
}

impl Work {
    /// Goes on with `report`, if that is about the same programs.
    #[must_use]
    pub fn new(orders: Orders, mut report: Report, earlier: Option<Report>) -> Self {
        if let Some(earlier) = earlier.filter(|it| it.fingerprint == report.fingerprint) {
            report = earlier;
        }
        let inside = Inside {
            groups: Groups::of(&report.bugs),
            report,
            waiting: VecDeque::new(),
            known: HashSet::new(),
            under_way: 0,
            small: HashSet::new(),
            builds: HashMap::new(),
            stop: false,
            hurry: false,
            dirty: true,
            saved: Instant::now(),
            notes: Vec::new(),
            marked: HashSet::new(),
        };
        Self { orders, courier: None, inside: Mutex::new(inside), changed: Condvar::new() }
    }

    /// Every bug is handed to `courier` once, and its files are marked.
    #[must_use]
    pub fn deliver_by(mut self, courier: Option<Courier>) -> Self {
        self.courier = courier;
        self
    }

    /// Waits for what is to be delivered, at most so long; None if nobody delivers.
    pub fn finish_delivery(&self, patience: Duration) -> Option<Status> {
        self.courier.as_ref().and_then(|courier| courier.finish(patience))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files to examine; what the report knows by name and content is passed over. Returns how many are
    /// new.
    pub fn add(&self, files: impl IntoIterator<Item = PathBuf>) -> usize {
        let mut inside = self.inside();
        let before = inside.waiting.len();
        let files: Vec<PathBuf> =
            files.into_iter().filter(|path| !inside.known.contains(path)).collect();
        if files.is_empty() {
            return 0;
        }
        let known: HashMap<String, (String, State)> = inside
            .report
            .crashes
            .iter()
            .map(|crash| (crash.path.clone(), (crash.hash.clone(), crash.state)))
            .collect();
        for path in files {
            if !inside.known.insert(path.clone()) {
                continue;
            }
            let is_done = known.get(&self.shown(&path)).is_some_and(|(hash, state)| {
                *state != State::Unreadable && read(&path).is_ok_and(|data| hash_of(&data) == *hash)
            });
            if !is_done {
                inside.waiting.push_back(path);
            }
        }
        let added = inside.waiting.len() - before;
        drop(inside);
        self.changed.notify_all();
        added
    }

    /// A path as the report has it.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.orders.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    #[must_use]
    pub fn progress(&self) -> Progress {
        let inside = self.inside();
        let waiting = inside.waiting.len() + inside.under_way;
        let done = inside.report.crashes.len();
        Progress { done, waiting, bugs: inside.report.bugs.len() }
    }

    /// Everybody ends with what he does.
    pub fn stop(&self) {
        self.inside().stop = true;
        self.changed.notify_all();
    }

    /// There will be no more files, and little time.
    pub fn hurry(&self) {
        self.inside().hurry = true;
        self.changed.notify_all();
    }

    /// There may be more to do.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        let inside = self.inside();
        !inside.stop && !inside.hurry
    }

    /// Waits until there may be something to do; false at the end.
    #[must_use]
    pub fn wait(&self) -> bool {
        let mut inside = self.inside();
        while inside.waiting.is_empty() && !inside.stop && !inside.hurry {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        !inside.stop && !inside.waiting.is_empty()
    }

    /// What the user should know, since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.inside().notes)
    }

    /// Does what is to be done until there is no more.
    pub fn run(&self, rerun: &mut Rerun) -> Result<(), TriageError> {
        let result = self.jobs(rerun);
        self.inside().notes.extend(rerun.take_messages());
        result
    }

    fn jobs(&self, rerun: &mut Rerun) -> Result<(), TriageError> {
        while let Some(job) = self.next() {
            match job {
                Job::Examine(path) => {
                    let result = self.examine(rerun, &path);
                    let mut inside = self.inside();
                    inside.under_way -= 1;
                    if result.is_err() {
                        inside.waiting.push_front(path);
                    }
                    drop(inside);
                    self.changed.notify_all();
                    result?;
                }
                Job::Finish(index) => {
                    let result = self.finish(rerun, index);
                    let mut inside = self.inside();
                    let id = inside.report.bugs[index].id.clone();
                    inside.small.remove(&id);
                    drop(inside);
                    result?;
                }
            }
            self.save_if_due()?;
        }
        Ok(())
    }

    /// Files first: as long as one is examined, a bug may get a smaller input.
    fn next(&self) -> Option<Job> {
        let mut inside = self.inside();
        loop {
            if inside.stop {
                return None;
            }
            if let Some(path) = inside.waiting.pop_front() {
                inside.under_way += 1;
                return Some(Job::Examine(path));
            }
            if inside.under_way == 0 {
                return inside.unfinished(self.courier.is_some()).map(Job::Finish);
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn examine(&self, rerun: &mut Rerun, path: &Path) -> Result<(), TriageError> {
        let Ok(data) = read(path) else {
            let state = State::Unreadable;
            self.note(Crash { path: self.shown(path), state, ..Crash::default() });
            self.inside().notes.push(format!("cannot read {}", path.display()));
            return Ok(());
        };
        let examined = rerun.examine(&data, self.orders.runs)?;
        let Examined { runs, crashes, hung, seen } = examined;
        let state = match (&seen, hung) {
            (Some(seen), _) if !seen.is_hang => State::Crashes,
            (Some(_), _) | (None, true) => State::TimesOut,
            (None, false) => State::NoCrash,
        };
        let stack = seen.as_ref().map(|seen| hex(seen.key()));
        if let Some(seen) = &seen {
            self.learn(rerun, &data, seen)?;
        }
        let (hash, size) = (hash_of(&data), data.len() as u64);
        let path = self.shown(path);
        self.note(Crash { path, hash, size, state, runs, crashes, stack, bug: None });
        Ok(())
    }

    /// Finds the bug that a stack belongs to, if that is not known.
    fn learn(&self, rerun: &mut Rerun, data: &[u8], quick: &Seen) -> Result<(), TriageError> {
        let key = hex(quick.key());
        {
            let mut inside = self.inside();
            if inside.report.stacks.contains_key(&key) {
                return Ok(());
            }
            // Others need not look at it as well.
            inside.report.stacks.insert(key.clone(), String::new());
        }
        let seen = rerun.readable(data, quick);
        let mut inside = self.inside();
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                inside.report.stacks.remove(&key);
                return Err(error.into());
            }
        };
        let found = inside.groups.find(&seen, &self.orders.program).map(str::to_owned);
        let id = match found {
            Some(id) => id,
            None => match self.new_bug(&mut inside, rerun, data, &seen) {
                Ok(id) => id,
                Err(error) => {
                    inside.report.stacks.remove(&key);
                    return Err(error);
                }
            },
        };
        inside.builds.insert(id.clone(), seen.build);
        inside.report.stacks.insert(key, id);
        Ok(())
    }

    /// Its folder first: what cannot be written is not known.
    fn new_bug(
        &self,
        inside: &mut Inside,
        rerun: &Rerun,
        data: &[u8],
        seen: &Seen,
    ) -> Result<String, TriageError> {
        let mut bug = inside.groups.describe(seen);
        let folder = self.orders.folder.join(&bug.id);
        write::seen(&folder, seen)?;
        write::input(&folder, write::INPUT, data)?;
        let command = rerun.command(seen.build);
        write::script(&folder, command, rerun.input_file(), &self.orders.env)?;
        let has_sanitizer = inside.report.sanitizer_build.is_some();
        bug.only_without_sanitizer = has_sanitizer && seen.build == Build::Target;
        inside.groups.add(&bug);
        let id = bug.id.clone();
        inside.report.bugs.push(bug);
        // Somebody waits for the number of bugs.
        inside.saved = Instant::now().checked_sub(SAVE).unwrap_or(inside.saved);
        Ok(id)
    }

    fn note(&self, crash: Crash) {
        let mut inside = self.inside();
        inside.dirty = true;
        match inside.report.crashes.iter_mut().find(|known| known.path == crash.path) {
            Some(known) => *known = crash,
            None => inside.report.crashes.push(crash),
        }
    }

    /// Completes the folder of a bug, and hands it over.
    fn finish(&self, rerun: &mut Rerun, index: usize) -> Result<(), TriageError> {
        let bug = self.inside().report.bugs[index].clone();
        if bug.has_smaller_input() {
            self.complete(rerun, index)?;
        }
        let Some(courier) = self.courier.as_ref().filter(|_| !bug.reported) else { return Ok(()) };
        let bug = self.inside().report.bugs[index].clone();
        courier.take(&bug, &self.orders.folder.join(&bug.id))?;
        let mut inside = self.inside();
        inside.report.bugs[index].reported = true;
        inside.dirty = true;
        Ok(())
    }

    /// Makes the input of a bug small.
    fn complete(&self, rerun: &mut Rerun, index: usize) -> Result<(), TriageError> {
        let (bug, stacks, build) = {
            let inside = self.inside();
            let bug = inside.report.bugs[index].clone();
            let stacks = &inside.report.stacks;
            let of_bug = stacks.iter().filter(|(_, id)| **id == bug.id).map(|(key, _)| key.clone());
            let stacks: HashSet<String> = of_bug.collect();
            let other = match inside.report.sanitizer_build {
                Some(_) if !bug.only_without_sanitizer => Build::Sanitizer,
                _ => Build::Target,
            };
            let build = inside.builds.get(&bug.id).copied().unwrap_or(other);
            (bug, stacks, build)
        };
        let folder = self.orders.folder.join(&bug.id);
        let path = self.orders.root.join(&bug.input);
        // A file that is gone cannot be made small; what is known of it stays.
        let small = match read(&path) {
            Ok(data) => {
                write::input(&folder, write::INPUT, &data)?;
                let is_same = |key| stacks.contains(&hex(key));
                let small = match self.orders.minimize {
                    Duration::ZERO => None,
                    // Each try would take as long as a run may.
                    _ if bug.class == hang::CLASS => None,
                    time => minimize(rerun, build, &data, time, is_same, || self.goes_on())?,
                };
                Some(small.unwrap_or(data))
            }
            Err(_) => None,
        };
        if let Some(small) = &small {
            write::input(&folder, write::MINIMIZED, small)?;
        }
        let mut inside = self.inside();
        let known = &mut inside.report.bugs[index];
        known.minimized_from = Some(bug.input_hash);
        known.minimized_size = small.map(|small| small.len() as u64);
        write::facts(&folder, known)?;
        inside.dirty = true;
        Ok(())
    }

    fn save_if_due(&self) -> Result<(), TriageError> {
        let mut inside = self.inside();
        let idle = inside.waiting.is_empty() && inside.under_way == 0;
        if inside.dirty && (idle || inside.saved.elapsed() >= SAVE) {
            inside.save(&self.orders.folder)?;
            self.mark(&mut inside);
        }
        Ok(())
    }

    /// Tells other tools which crashes they need not deliver.
    fn mark(&self, inside: &mut Inside) {
        if self.courier.is_none() {
            return;
        }
        let bugs = inside.report.bugs.iter().filter(|bug| bug.reported).map(|bug| &bug.id);
        let reported: HashSet<&String> = bugs.collect();
        let marked = &mut inside.marked;
        for crash in &inside.report.crashes {
            let good = match (&crash.bug, crash.state) {
                (Some(bug), _) if reported.contains(bug) => true,
                (_, State::NoCrash | State::TimesOut) => false,
                _ => continue,
            };
            if !find::is_hang(Path::new(&crash.path)) && marked.insert(crash.path.clone()) {
                deliver::mark(&self.orders.root.join(&crash.path), good);
            }
        }
    }

    /// Writes the report if something is new in it, and returns it.
    pub fn save(&self) -> Result<Report, TriageError> {
        let mut inside = self.inside();
        if inside.dirty {
            inside.save(&self.orders.folder)?;
        }
        self.mark(&mut inside);
        Ok(inside.report.clone())
    }
}

impl Inside {
    /// A bug whose smallest input was not made small yet. It is marked as taken.
    fn unfinished(&mut self, delivers: bool) -> Option<usize> {
        self.report.count();
        let small = &self.small;
        let waits = |bug: &super::report::Bug| {
            let wanted = bug.has_smaller_input() || (delivers && !bug.reported);
            bug.files > 0 && wanted && !small.contains(&bug.id)
        };
        let index = self.report.bugs.iter().position(waits)?;
        self.small.insert(self.report.bugs[index].id.clone());
        Some(index)
    }

    fn save(&mut self, folder: &Path) -> Result<(), TriageError> {
        let mut written = self.report.clone();
        // What nobody has finished looking at is looked at again.
        written.stacks.retain(|_, bug| !bug.is_empty());
        let stacks = &written.stacks;
        let known = |crash: &Crash| crash.stack.as_ref().is_none_or(|key| stacks.contains_key(key));
        written.crashes.retain(|crash| known(crash));
        written.save(folder)?;
        self.report.count();
        (self.dirty, self.saved) = (false, Instant::now());
        Ok(())
    }
}

/// As much of a file as a target gets.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut data = Vec::new();
    File::open(path)?.take(MAX_INPUT as u64).read_to_end(&mut data)?;
    Ok(data)
}

fn hash_of(data: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hex(hasher.finish())
}
