//! `ffuzz ci`: the harnesses of a repository within a time, for a pull request or a nightly job.
//!
//! Of each harness the known crashes and the corpus are run first, all of them; then the rest of the time is shared by
//! `shares`. `change` leaves out what a change cannot reach, `archive` carries corpora and crashes from run to run,
//! `known` tells bugs that somebody knows from new ones. Campaigns, minimizing and triage are processes of `ffuzz`.
//!
//! ```text
//! archive, --corpus, zip beside ─► cmin ─► corpus ─► campaigns in rounds (shares) ─► cmin ─► archive of the next run
//!                         crashes ─┴► triage ─► bugs ◄─ triage ◄─ crashes ┘
//! list of known bugs, archive ────────────► new or known ─► crashes::forms: SARIF, JUnit, code quality, Markdown
//! ```

mod archive;
mod change;
mod harness;
mod known;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use miette::Diagnostic;

use archive::{ArchiveState, HarnessState};
use change::ChangeSet;
use ffuzz_crashes::forms::{BugNovelty, HarnessBug, Suite, SuiteOutcome};
use ffuzz_crashes::triage::report::TriagedBug;
use ffuzz_sys::stop::Stop;
pub use harness::Harness;
use harness::{Fate, Turn};

/// Interval between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);
/// In the folder of the results.
const MARK: &str = ".ffuzz-ci";

/// What a run cannot do without.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CiError {
    #[error("cannot read {}: {source}", path.display())]
    #[diagnostic(help("check its name and permissions"))]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write to {}: {source}", path.display())]
    #[diagnostic(help("check its permissions and the free space"))]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is no archive of ffuzz ci: {reason}", path.display())]
    #[diagnostic(help("remove it: the next run begins without it, and writes a new one"))]
    Archive { path: PathBuf, reason: String },
    #[error("git cannot tell what changed since {base}: {reason}")]
    #[diagnostic(help("fetch the whole history (fetch-depth: 0), or leave --base out"))]
    Git { base: String, reason: String },
    #[error("{} was not made by ffuzz ci", .0.display())]
    #[diagnostic(help("name a new folder, or an empty one, with -o"))]
    Foreign(PathBuf),
    #[error("two harnesses are called {0}")]
    #[diagnostic(help("rename one: results and corpora are kept by name"))]
    Twice(String),
    #[error("cannot start {}: {source}", program.display())]
    #[diagnostic(help("start ffuzz by its whole path"))]
    Start { program: PathBuf, source: io::Error },
}

/// What a run is to do.
#[derive(Clone, Debug, Default)]
pub struct CiSettings {
    /// `ffuzz`.
    pub program: PathBuf,
    /// Results of each harness, in a folder of its name.
    pub folder: PathBuf,
    /// For the search of all harnesses together.
    pub time: Duration,
    pub cores: usize,
    pub harnesses: Vec<PathBuf>,
    /// Folders with a folder for each harness, or with the inputs of the only one.
    pub corpora: Vec<PathBuf>,
    /// Read if it is there, and written.
    pub archive: Option<PathBuf>,
    pub save: Option<PathBuf>,
    pub base: Option<String>,
    /// List of known bugs.
    pub known: PathBuf,
    /// Root of the repository.
    pub root: PathBuf,
    pub report_hangs: bool,
    /// Asks the run to end early.
    pub stop: Stop,
}

/// What came of a run.
#[derive(Debug)]
pub struct CiResults {
    pub harnesses: Vec<Harness>,
    /// What people should know of the run as a whole.
    pub notes: Vec<String>,
    listed: BTreeSet<String>,
    before: ArchiveState,
}

impl CiResults {
    /// The harnesses for the forms of services.
    #[must_use]
    pub fn suites(&self) -> Vec<Suite<'_>> {
        self.harnesses.iter().map(|harness| self.suite(harness)).collect()
    }

    fn suite<'a>(&'a self, harness: &'a Harness) -> Suite<'a> {
        let before = self.before.harnesses.get(&harness.name);
        let finding = |bug| HarnessBug {
            bug,
            harness: &harness.name,
            program: &harness.shown,
            output: &harness.folder,
            novelty: Some(self.novelty(harness, bug)),
        };
        Suite {
            harness: &harness.name,
            outcome: match &harness.fate {
                Fate::Fuzzed => SuiteOutcome::Done,
                Fate::LeftOut(reason) => SuiteOutcome::LeftOut(reason),
                Fate::Failed(cause) => SuiteOutcome::Failed(cause),
            },
            findings: harness.bugs().map(finding).collect(),
            seconds: harness.yields.spent.as_secs_f64(),
            execs: harness.execs,
            inputs: harness.inputs,
            found: harness.found,
            edges: harness.edges,
            edges_before: before.map(|before| before.edges),
        }
    }

    fn novelty(&self, harness: &Harness, bug: &TriagedBug) -> BugNovelty {
        let before = self.before.harnesses.get(&harness.name);
        let is_known = |name: &String| {
            self.listed.contains(name) || before.is_some_and(|state| state.bugs.contains(name))
        };
        if harness.names(bug).any(is_known) { BugNovelty::Known } else { BugNovelty::New }
    }

    /// Ids of new bugs, each once, with their names for the list and their titles.
    #[must_use]
    pub fn new_bugs(&self) -> BTreeMap<&str, (String, &str)> {
        let mut all = BTreeMap::new();
        for harness in &self.harnesses {
            for bug in harness.bugs().filter(|bug| self.novelty(harness, bug) == BugNovelty::New) {
                let names: Vec<&str> = harness.names(bug).map(String::as_str).collect();
                all.insert(&*bug.id, (names.join(" "), &*bug.title));
            }
        }
        all
    }

    /// Whether a harness could not be run.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.harnesses.iter().any(|harness| matches!(harness.fate, Fate::Failed(_)))
    }

    /// The list of known bugs with the new ones at its end.
    #[must_use]
    pub fn known_list(&self, before: &str) -> String {
        let new: Vec<_> = self.new_bugs().into_values().collect();
        known::with(before, &new)
    }
}

/// Runs everything. `say` gets a line for each step.
pub fn run(settings: &CiSettings, say: &mut dyn FnMut(&str)) -> Result<CiResults, CiError> {
    prepare(&settings.folder)?;
    let listed = known::read(&settings.known)?;
    let unpacked = settings.folder.join("archive");
    let before = match &settings.archive {
        Some(archive) => archive::read(archive, &unpacked)?,
        None => ArchiveState::default(),
    };
    let mut harnesses = Vec::new();
    for program in &settings.harnesses {
        let harness = Harness::new(program, &settings.folder, &unpacked)?;
        if harnesses.iter().any(|other: &Harness| other.name == harness.name) {
            return Err(CiError::Twice(harness.name));
        }
        harnesses.push(harness);
    }
    let mut notes = Vec::new();
    if let Some(archive) = settings.archive.as_ref().filter(|archive| !archive.exists()) {
        notes.push(format!("There was no archive to begin with: {}.", archive.display()));
    }
    if let Some(base) = &settings.base {
        leave_out(&mut harnesses, &ChangeSet::since(base, &settings.root)?, base, &mut notes);
    }
    for harness in harnesses.iter_mut().filter(|harness| harness.is_active()) {
        if settings.stop.asked() {
            break;
        }
        say(&harness.run_corpus(settings)?);
        if let Some(line) = harness.triage(settings)? {
            say(&line);
        }
    }
    fuzz(settings, &mut harnesses, &mut notes, say)?;
    for harness in harnesses.iter_mut().filter(|harness| harness.is_active()) {
        if let Some(line) = harness.triage(settings)? {
            say(&line);
        }
    }
    if settings.stop.asked() {
        notes.push("The run was interrupted.".into());
    }
    let results = CiResults { harnesses, notes, listed, before };
    if let Some(path) = &settings.save {
        save(settings, &results, &unpacked, path)?;
    }
    Ok(results)
}

/// Makes an empty folder. One that is there has to be of an earlier run.
fn prepare(folder: &Path) -> Result<(), CiError> {
    let write = |source| CiError::Write { path: folder.to_owned(), source };
    let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if folder.exists() && !is_empty {
        if !folder.join(MARK).is_file() {
            return Err(CiError::Foreign(folder.to_owned()));
        }
        fs::remove_dir_all(folder).map_err(write)?;
    }
    fs::create_dir_all(folder).map_err(write)?;
    fs::write(folder.join(MARK), "").map_err(write)
}

/// Leaves out the harnesses that a change cannot reach.
fn leave_out(harnesses: &mut [Harness], change: &ChangeSet, base: &str, notes: &mut Vec<String>) {
    let sources: Vec<_> =
        harnesses.iter().map(|harness| change::sources(&harness.program)).collect();
    let reaches = change.reaches(&sources);
    let mut names = Vec::new();
    for (harness, _) in harnesses.iter_mut().zip(reaches).filter(|(_, reaches)| !reaches) {
        harness.fate = Fate::LeftOut(format!("no change since {base} reaches it"));
        names.push(harness.name.clone());
    }
    let files = change.files.len();
    notes.push(match names.is_empty() {
        true => format!("{files} files changed since {base}; they may reach every harness."),
        false => format!("{files} files changed since {base}; left out: {}.", names.join(", ")),
    });
}

/// Shares the time in rounds.
fn fuzz(
    settings: &CiSettings,
    harnesses: &mut [Harness],
    notes: &mut Vec<String>,
    say: &mut dyn FnMut(&str),
) -> Result<(), CiError> {
    let end = Instant::now() + settings.time;
    let active = harnesses.iter().filter(|harness| harness.is_active()).count();
    let workers = (settings.cores / active.max(1)).max(1);
    let slots = (settings.cores / workers).max(1);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut playing: Vec<&mut Harness> = harnesses
            .iter_mut()
            .filter(|harness| harness.is_active() && !harness.yields.is_exhausted())
            .collect();
        if playing.is_empty() && active > 0 && left > LOOK && !settings.stop.asked() {
            notes
                .push(format!("Ended {} s early: nothing new was to be expected.", left.as_secs()));
        }
        if playing.is_empty() || settings.stop.asked() {
            return Ok(());
        }
        let yields: Vec<_> = playing.iter().map(|harness| harness.yields).collect();
        let turns = shares::round(&yields, left, slots);
        if turns.iter().all(|turn| *turn == 0) {
            return Ok(());
        }
        let mut waiting: Vec<(u64, &mut Harness)> =
            turns.into_iter().zip(playing.drain(..)).filter(|(turn, _)| *turn > 0).collect();
        // Long turns begin first, so that all end at about the same time.
        waiting.sort_by_key(|(turn, _)| *turn);
        run_round(settings, waiting, slots, workers, end, say)?;
    }
}

/// Runs the turns of a round, `slots` at a time.
fn run_round(
    settings: &CiSettings,
    mut waiting: Vec<(u64, &mut Harness)>,
    slots: usize,
    workers: usize,
    end: Instant,
    say: &mut dyn FnMut(&str),
) -> Result<(), CiError> {
    let mut running: Vec<(Turn, &mut Harness)> = Vec::new();
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < slots && !settings.stop.asked() {
            let Some((seconds, harness)) = waiting.pop() else { break };
            let left = end.saturating_duration_since(Instant::now()).as_secs();
            if let Some(turn) = harness.begin_turn(settings, seconds.min(left), workers)? {
                running.push((turn, harness));
            }
        }
        if settings.stop.asked() {
            waiting.clear();
            running.iter_mut().for_each(|(turn, _)| turn.ask());
        }
        let mut at = 0;
        while at < running.len() {
            if running[at].0.has_ended() {
                let (turn, harness) = running.swap_remove(at);
                say(&harness.end_turn(turn));
            } else {
                at += 1;
            }
        }
        if let Some((turn, _)) = running.first() {
            turn.wait(LOOK);
        }
    }
    Ok(())
}

/// Writes the archive for the next run. What was left out is carried over as it was.
fn save(
    settings: &CiSettings,
    results: &CiResults,
    unpacked: &Path,
    path: &Path,
) -> Result<(), CiError> {
    let mut state = ArchiveState::default();
    let mut files = Vec::new();
    for harness in &results.harnesses {
        let (name, before) = (&harness.name, results.before.harnesses.get(&harness.name));
        if harness.is_active() && harness.has_corpus() {
            files.extend(harness.files(settings)?);
            let bugs = harness.report.bugs.iter();
            let mut bugs: BTreeSet<String> =
                bugs.flat_map(|bug| harness.names(bug).cloned()).collect();
            let mut edges = harness.edges;
            if let Some(before) = before.filter(|_| settings.stop.asked()) {
                bugs.extend(before.bugs.iter().cloned());
                edges = edges.max(before.edges);
            }
            state.harnesses.insert(name.clone(), HarnessState { bugs, edges });
        } else if let Some(before) = before {
            files.extend(harness::files_in(&unpacked.join(name), name));
            state.harnesses.insert(name.clone(), before.clone());
        }
    }
    archive::write(path, &state, &files)
}
