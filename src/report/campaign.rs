//! Reads the folders of a campaign: its instances, their statistics over time, and the names of its finds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ffuzz_crashes::triage::FOLDER;
use ffuzz_crashes::triage::report::TriageReport;
use ffuzz_disk::output::instances::{self, Instance, InstanceState};
use ffuzz_disk::output::plot;
use ffuzz_disk::output::setup::RecordedSetup;
use ffuzz_disk::output::state::{self, SavedState};
use ffuzz_disk::{find, inputs};
use ffuzz_engine::corpus::names::{self, ParsedName};
use ffuzz_sys::file;

/// Maximum size of `plot_data`: rows come every five seconds, so even years stay below it.
const LARGEST_PLOT: u64 = 1 << 30;
/// Seconds beyond any campaign's duration; larger times are Unix times.
const SINCE_1970: f64 = 1e9;
/// Maximum number of points of a course; a chart has no more pixels.
const MOST_POINTS: usize = 1000;

/// The folder of a fuzzer's `-o`, or of a single instance.
#[derive(Debug)]
pub struct CampaignFolder {
    pub root: PathBuf,
    pub instances: Vec<CampaignInstance>,
    /// Triaged bugs, if a triage was run.
    pub triage: Option<TriageReport>,
}

/// An instance and its finds.
#[derive(Debug)]
pub struct CampaignInstance {
    pub instance: Instance,
    pub setup: Option<RecordedSetup>,
    /// Queue, by time of the find.
    pub queue: Vec<Find>,
    pub crashes: Vec<Find>,
    pub hangs: usize,
    pub rows: Vec<plot::PlotRow>,
    /// Saved state; empty for other fuzzers, or if it is unreadable.
    pub state: SavedState,
}

/// A file that a fuzzer has kept.
#[derive(Clone, Debug)]
pub struct Find {
    pub path: PathBuf,
    pub size: u64,
    pub name: ParsedName,
}

/// Statistics over time; all lists have the same length.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Course {
    /// Seconds since the start.
    pub seconds: Vec<u64>,
    pub edges: Vec<u64>,
    pub runs: Vec<u64>,
    pub corpus: Vec<u64>,
    /// Runs per second of all instances.
    pub speed: Vec<u64>,
}

impl CampaignFolder {
    /// Reads the folders. Damaged files count as missing.
    pub fn read(root: &Path) -> io::Result<Self> {
        let found = instances::find(root)?;
        let read = |instance: Instance| {
            let folder = instance.folder.clone();
            let files = |name: &str| finds(&folder.join(name));
            let rows = file::read_whole(&folder.join("plot_data"), LARGEST_PLOT);
            let rows = rows.map(|text| plot::parse(&String::from_utf8_lossy(&text)));
            let crashes = find::folders(&folder).unwrap_or_default();
            CampaignInstance {
                setup: fs::read(folder.join("fuzzer_setup"))
                    .ok()
                    .and_then(|text| RecordedSetup::parse(&text)),
                queue: files("queue"),
                crashes: crashes.iter().flat_map(|folder| finds(folder)).collect(),
                hangs: files("hangs").len(),
                rows: from_start(rows.unwrap_or_default()),
                state: SavedState::load(&folder.join(state::NAME)).unwrap_or_default(),
                instance,
            }
        };
        let instances = found.into_iter().map(read).collect();
        Ok(Self {
            root: root.to_owned(),
            instances,
            triage: TriageReport::load(&root.join(FOLDER)),
        })
    }

    /// The target's command line as recorded by the fuzzer.
    #[must_use]
    pub fn command(&self) -> Option<Vec<OsString>> {
        let queues: Vec<PathBuf> =
            self.instances.iter().map(|it| it.instance.folder.join("queue")).collect();
        find::command(&queues)
    }

    /// The queues of all instances, by time.
    #[must_use]
    pub fn queue(&self) -> Vec<&Find> {
        let mut all: Vec<&Find> = self.instances.iter().flat_map(|it| &it.queue).collect();
        all.sort_by_key(|find| find.name.time);
        all
    }

    /// Returns true if an instance is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.instances.iter().any(|it| it.instance.state != InstanceState::Dead)
    }

    /// Sum of a statistic over all instances.
    #[must_use]
    pub fn sum(&self, name: &str) -> u64 {
        self.instances.iter().map(|it| it.instance.number(name)).sum()
    }

    /// Maximum of a statistic over all instances.
    #[must_use]
    pub fn most(&self, name: &str) -> u64 {
        self.instances.iter().map(|it| it.instance.number(name)).max().unwrap_or(0)
    }

    /// Statistics over time at no more than 1000 points: maximum of the instances' edges, sums of their
    /// runs.
    #[must_use]
    pub fn course(&self) -> Course {
        let mut times: Vec<u64> = Vec::new();
        for instance in &self.instances {
            times.extend(instance.rows.iter().map(|row| row[0] as u64));
        }
        times.sort_unstable();
        times.dedup();
        let every = times.len().div_ceil(MOST_POINTS).max(1);
        // Count from the end, because the last point is the most important.
        let mut shown: Vec<u64> = times.iter().rev().step_by(every).copied().collect();
        shown.reverse();
        let mut course = Course { seconds: shown.clone(), ..Course::default() };
        for time in shown {
            let now = self.instances.iter().filter_map(|instance| {
                let after = instance.rows.partition_point(|row| row[0] as u64 <= time);
                instance.rows.get(after.checked_sub(1)?)
            });
            let rows: Vec<&plot::PlotRow> = now.collect();
            let most = |column: usize| rows.iter().map(|row| row[column] as u64).max().unwrap_or(0);
            let sum = |column: usize| rows.iter().map(|row| row[column] as u64).sum();
            course.edges.push(most(12));
            course.runs.push(sum(11));
            course.corpus.push(most(3));
            course.speed.push(sum(10));
        }
        course
    }

    /// Finds and runs of each stage over all instances with a state; stages with most finds first.
    #[must_use]
    pub fn stages(&self) -> Vec<(String, u64, u64)> {
        let mut stages: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for one in self.instances.iter().flat_map(|it| &it.state.counters.stages) {
            let sum = stages.entry(&one.name).or_default();
            *sum = (sum.0 + one.finds, sum.1 + one.execs);
        }
        let mut all: Vec<_> = stages
            .into_iter()
            .map(|(name, (finds, runs))| (name.to_owned(), finds, runs))
            .collect();
        all.sort_by_key(|(_, finds, runs)| std::cmp::Reverse((*finds, *runs)));
        all
    }
}

/// Makes times relative to the first row: old versions of AFL wrote Unix times.
fn from_start(mut rows: Vec<plot::PlotRow>) -> Vec<plot::PlotRow> {
    let first = rows.first().map_or(0.0, |row| row[0]);
    if first >= SINCE_1970 {
        rows.iter_mut().for_each(|row| row[0] -= first);
    }
    rows
}

/// The finds in a folder, by time; other files are skipped.
#[must_use]
pub fn finds(folder: &Path) -> Vec<Find> {
    let files = inputs::list(folder).unwrap_or_default();
    let find = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        if name.ends_with(".submitted") || name.ends_with(".failed") {
            return None;
        }
        let name = names::parse(name)?;
        let size = fs::metadata(&path).ok()?.len();
        Some(Find { path, size, name })
    };
    let mut finds: Vec<Find> = files.into_iter().filter_map(find).collect();
    finds.sort_by_key(|find| (find.name.time, find.name.id));
    finds
}
