//! The campaign's counters and clock, and the snapshot that is made of them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Campaign;
use super::waiting::Waiting;
use crate::config::options::Wanted;
use crate::crashes::triage::Follower;
use crate::disk::output::earlier::Earlier;
use crate::disk::output::state::Counters;
use crate::engine::corpus::SeedId;
use crate::engine::coverage;
use crate::engine::domain::KeyGain;
use crate::engine::executor::{SnapshotRuns, Spent};
use crate::engine::fuzzer::{Progress, Sidecars};
use crate::event::{
    Control, Corpus, Coverage, Cycles, DomainStatus, Event, Finds, PutBack, Resources, Runs,
    Search, Setup, Shares, Snapshot, Times, Turn,
};
use crate::sys::process;

/// At most five snapshots a second: a person reads no faster.
pub(super) const TICK: Duration = Duration::from_millis(200);
/// With a large corpus they come less often: they take at most one part in this number of the time.
const TICK_SHARE: u32 = 100;

/// Counters. Times of an earlier process of the same campaign are in the `*_before` fields.
#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) started: Instant,
    started_at: u64,
    /// The core to which this process is bound.
    pub(super) core: Option<usize>,
    pub(super) run_time_before: Duration,
    pub(super) execs_before: u64,
    pub(super) cycles_before: u64,
    /// What the campaign had reached, until the dry run is over: nothing that is shown runs backwards
    /// while the queue is read again.
    earlier: Option<Earlier>,
    /// Largest resident set of a process of the target, MiB.
    peak_rss_mb: u64,
    /// When the dry run was over.
    fuzzing_since: Option<Instant>,
    /// When the last run was over: what comes then is no part of the campaign's time.
    ended: Option<Instant>,
    /// Time in pauses by command, which no other number contains.
    pub(super) paused: Duration,
    pub(super) calibration: Duration,
    pub(super) trim: Duration,
    /// Spent on other fuzzers' finds.
    pub(super) sync: Duration,
    pub(super) imported: u64,
    /// Starting seeds that are of no use because they crash the target, or take too long;
    pub(super) bad_seeds: (u64, u64),
    /// all that crash it, with `-C` the good ones.
    pub(super) crashing_seeds: u64,
    pub(super) saved_crashes: u64,
    pub(super) total_crashes: u64,
    pub(super) saved_hangs: u64,
    pub(super) total_timeouts: u64,
    /// Runs that were cut at the soft limit.
    pub(super) cut_runs: u64,
    /// Runs in sanitizer builds before this process, and crashes that only they show.
    sanitizer_runs_before: u64,
    pub(super) sanitizer_crashes: u64,
    pub(super) last_find: Option<Instant>,
    last_find_at: u64,
    longest_without_finds: u64,
    last_crash_at: u64,
    last_hang_at: u64,
    execs_at_crash: u64,
    /// Spent on the question whether crashes happen in a process of their own,
    pub(super) confirming: Duration,
    /// how many do not as far as is known, and the files that were written for them.
    pub(super) dependent_crashes: u64,
    pub(super) record_files: u64,
    pub(super) current: Option<SeedId>,
    domains: Vec<DomainActivity>,
    minute: MinuteRate,
    waiting: Waiting,
}

/// What moved in a domain.
#[derive(Clone, Debug, Default)]
struct DomainActivity {
    last: Option<(u32, u32, u64)>,
    waypoints: u64,
}

/// Runs a second over about the last minute.
#[derive(Debug)]
struct MinuteRate {
    since: Instant,
    execs: u64,
    rate: f64,
}

/// Unix seconds.
fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

impl Statistics {
    pub(super) fn new(domains: usize) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            started_at: unix_now(),
            core: None,
            run_time_before: Duration::ZERO,
            execs_before: 0,
            cycles_before: 0,
            earlier: None,
            peak_rss_mb: 0,
            fuzzing_since: None,
            ended: None,
            paused: Duration::ZERO,
            calibration: Duration::ZERO,
            trim: Duration::ZERO,
            sync: Duration::ZERO,
            imported: 0,
            bad_seeds: (0, 0),
            crashing_seeds: 0,
            saved_crashes: 0,
            total_crashes: 0,
            saved_hangs: 0,
            total_timeouts: 0,
            cut_runs: 0,
            sanitizer_runs_before: 0,
            sanitizer_crashes: 0,
            last_find: None,
            last_find_at: 0,
            longest_without_finds: 0,
            last_crash_at: 0,
            last_hang_at: 0,
            execs_at_crash: 0,
            confirming: Duration::ZERO,
            dependent_crashes: 0,
            record_files: 0,
            current: None,
            domains: vec![DomainActivity::default(); domains],
            minute: MinuteRate { since: now, execs: 0, rate: 0.0 },
            waiting: Waiting::default(),
        }
    }

    /// Takes over the counters of an earlier process.
    pub(super) fn continue_from(&mut self, earlier: Earlier) {
        self.run_time_before = earlier.run_time;
        self.execs_before = earlier.execs;
        self.cycles_before = earlier.cycles;
        self.imported = earlier.imported;
        self.last_find_at = earlier.last_find;
        self.last_crash_at = earlier.last_crash;
        self.last_hang_at = earlier.last_hang;
        self.earlier = Some(earlier);
    }

    /// What `fuzzer_stats` does not tell the next process.
    pub(super) fn counters(&self, progress: &Progress, sidecars: Option<&Sidecars>) -> Counters {
        Counters {
            total_crashes: self.total_crashes,
            total_timeouts: self.total_timeouts,
            cut_runs: self.cut_runs,
            sanitizer_runs: self.sanitizer_runs(sidecars),
            sanitizer_crashes: self.sanitizer_crashes,
            saved_crashes: self.saved_crashes,
            saved_hangs: self.saved_hangs,
            cycles_without_finds: progress.cycles_without_finds,
            longest_without_finds_s: self.longest_without_finds,
            last_find_at: self.last_find_at,
            last_crash_at: self.last_crash_at,
            last_hang_at: self.last_hang_at,
            execs_at_crash: self.execs_at_crash,
            slowest_us: u64::try_from(progress.slowest.as_micros()).unwrap_or(u64::MAX),
            stages: progress.yields.clone(),
            waypoints: self.domains.iter().map(|domain| domain.waypoints).collect(),
        }
    }

    /// Runs in sanitizer builds, those of earlier processes included.
    fn sanitizer_runs(&self, sidecars: Option<&Sidecars>) -> u64 {
        self.sanitizer_runs_before + sidecars.map_or(0, Sidecars::execs)
    }

    pub(super) fn recall(&mut self, counters: &Counters, progress: &mut Progress) {
        self.total_crashes = counters.total_crashes;
        self.total_timeouts = counters.total_timeouts;
        self.cut_runs = counters.cut_runs;
        self.sanitizer_runs_before = counters.sanitizer_runs;
        self.sanitizer_crashes = counters.sanitizer_crashes;
        progress.cycles_without_finds = counters.cycles_without_finds;
        self.longest_without_finds = counters.longest_without_finds_s;
        self.last_find_at = counters.last_find_at;
        self.last_crash_at = counters.last_crash_at;
        self.last_hang_at = counters.last_hang_at;
        self.execs_at_crash = counters.execs_at_crash;
        progress.slowest = Duration::from_micros(counters.slowest_us);
        progress.yields.clone_from(&counters.stages);
        for (domain, waypoints) in self.domains.iter_mut().zip(&counters.waypoints) {
            domain.waypoints = *waypoints;
        }
    }

    /// Number of inputs in the corpus once the dry run is over.
    pub(super) fn expect_corpus(&mut self, count: usize) {
        if let Some(earlier) = &mut self.earlier {
            earlier.corpus = count as u64;
        }
    }

    /// `complete`: every starting input is in the corpus.
    pub(super) fn dry_run_over(&mut self, complete: bool) {
        if complete {
            self.earlier = None;
        }
        let now = Instant::now();
        self.fuzzing_since = Some(now);
        self.last_find = Some(now);
    }

    /// The dry run is over.
    pub(super) fn is_fuzzing(&self) -> bool {
        self.fuzzing_since.is_some()
    }

    /// Makes it as if this much of the past had not been.
    pub(super) fn leave_out(&mut self, time: Duration) {
        self.started += time;
        self.minute.since += time;
        let since = [&mut self.fuzzing_since, &mut self.last_find];
        since.into_iter().flatten().for_each(|since| *since += time);
    }

    /// What `-V` limits: the time of the dry run, then the time since. A pause by command is part of it,
    /// because nobody may come to end the pause.
    pub(super) fn limited_time(&self) -> Duration {
        self.fuzzing_since.unwrap_or(self.started).elapsed() + self.paused
    }

    /// There will be no more runs.
    pub(super) fn end(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
    }

    /// Campaign time for file names, earlier processes included.
    pub(super) fn campaign_ms(&self) -> u64 {
        let now = self.ended.unwrap_or_else(Instant::now);
        milliseconds(self.run_time_before + now.saturating_duration_since(self.started))
    }

    pub(super) fn without_finds(&self) -> Duration {
        self.last_find.map_or(Duration::ZERO, |last| last.elapsed())
    }

    /// A seed was found or imported.
    pub(super) fn corpus_grew(&mut self) {
        self.longest_without_finds = self.longest_without_finds.max(self.without_finds().as_secs());
        self.last_find = Some(Instant::now());
        self.last_find_at = unix_now();
    }

    pub(super) fn crash_saved(&mut self, execs: u64) {
        self.saved_crashes += 1;
        self.last_crash_at = unix_now();
        self.execs_at_crash = execs;
    }

    pub(super) fn hang_saved(&mut self) {
        self.saved_hangs += 1;
        self.last_hang_at = unix_now();
    }

    /// Notes a waypoint that moved `gains` of domain number `domain`.
    pub(super) fn domain_moved(&mut self, domain: usize, gain: &KeyGain) {
        self.domains[domain].last = Some((gain.key, gain.after, unix_now()));
    }

    pub(super) fn waypoint_of(&mut self, domain: usize) {
        self.domains[domain].waypoints += 1;
    }

    fn last_minute_rate(&mut self, execs: u64) -> f64 {
        let elapsed = self.minute.since.elapsed();
        let rate = (execs - self.minute.execs) as f64 / elapsed.as_secs_f64().max(0.001);
        if elapsed >= Duration::from_secs(60) {
            self.minute = MinuteRate { since: Instant::now(), execs, rate };
        } else if self.minute.rate == 0.0 {
            // The first minute shows what there is.
            return rate;
        }
        self.minute.rate
    }
}

fn put_back(runs: &SnapshotRuns) -> PutBack {
    PutBack {
        by_fork_percent: percent(runs.by_fork, runs.runs + runs.by_fork),
        why: runs.why.clone(),
        pages: runs.pages as f64 / runs.runs.max(1) as f64,
        differences: runs.differences,
        prologue: runs.prologue,
    }
}

fn shares(spent: Spent, waited: Duration, elapsed: Duration) -> Shares {
    let percent = |part: Duration| part.as_secs_f64() * 100.0 / elapsed.as_secs_f64().max(0.001);
    let waited = waited.min(spent.hand_over.unwrap_or_default());
    let (target, waiting) = (percent(spent.target), percent(waited));
    let hand_over = spent.hand_over.map(|time| percent(time - waited));
    let fuzzer = (100.0 - target - waiting - hand_over.unwrap_or(0.0)).max(0.0);
    Shares { target, hand_over, waiting, fuzzer }
}

impl Campaign {
    /// Tells whatever waits for foreign code when the limit of time (`-V`) is reached: at the start, after the
    /// dry run, and after every moment that does not count.
    pub(super) fn arm_limit(&self) {
        let spent = self.statistics.limited_time();
        self.stop.limit(self.options.limits.time.map(|limit| limit.saturating_sub(spent)));
    }

    /// Runs of the campaign, earlier processes included.
    pub(super) fn execs(&self) -> u64 {
        self.statistics.execs_before + self.fuzzer.target().execs()
    }

    /// Tells the sinks the state if a moment has passed since the last time.
    pub(super) fn tick_if_due(&mut self) {
        if self.last_tick.elapsed() >= self.tick_pause {
            self.tick();
            self.save_state_if_due();
        }
    }

    pub(super) fn tick(&mut self) {
        let start = Instant::now();
        if let Err(error) = self.log.tick() {
            self.warn(error.to_string());
        }
        self.pass_notes_on();
        let target = self.fuzzer.target();
        self.statistics.waiting.look(target.spent(), || target.processor_time());
        let snapshot = self.snapshot();
        self.bus.send(&Event::Tick(Box::new(snapshot)));
        self.last_tick = Instant::now();
        self.tick_pause = TICK.max((self.last_tick - start) * TICK_SHARE);
    }

    /// The executor's words, and AFL's for `-C`.
    fn target_mode(&self) -> String {
        let mode = self.fuzzer.target().target_mode();
        match (self.options.seeds.wanted, mode.as_str()) {
            (Wanted::Crashing, "default") => "crash".into(),
            (Wanted::Crashing, mode) => format!("crash {mode}"),
            _ => mode,
        }
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        let mut snapshot = Snapshot {
            times: self.times_now(),
            cycles: self.cycles_now(),
            control: self.control_now(),
            runs: self.runs_now(),
            resources: self.resources_now(),
            corpus: self.corpus_now(),
            coverage: self.coverage_now(),
            finds: self.finds_now(),
            turn: self.turn_now(),
            search: self.search_now(),
            setup: self.setup_now(),
            domains: self.domain_status(),
            mutators: self.fuzzer.mutators.status(self.statistics.started.elapsed()),
            workers: Vec::new(),
        };
        self.add_earlier(&mut snapshot);
        snapshot
    }

    /// While the queue of an earlier process is read, what that had reached.
    fn add_earlier(&self, snapshot: &mut Snapshot) {
        let Some(earlier) = self.statistics.earlier else { return };
        let Snapshot { corpus, coverage, finds, .. } = snapshot;
        corpus.corpus_count = corpus.corpus_count.max(earlier.corpus);
        corpus.corpus_favored = corpus.corpus_favored.max(earlier.favored);
        finds.saved_crashes = finds.saved_crashes.max(earlier.crashes);
        finds.saved_hangs = finds.saved_hangs.max(earlier.hangs);
        corpus.max_depth = corpus.max_depth.max(earlier.max_depth);
        coverage.edges_found = coverage.edges_found.max(earlier.edges.min(coverage.map_size));
    }

    // The groups of a snapshot, each with every field: one that is not filled does not compile.

    fn times_now(&self) -> Times {
        let statistics = &self.statistics;
        Times {
            started_at: statistics.started_at,
            now: unix_now(),
            run_time_ms: statistics.campaign_ms(),
            calibration_ms: milliseconds(statistics.calibration),
            trim_ms: milliseconds(statistics.trim),
            sync_ms: milliseconds(statistics.sync),
        }
    }

    fn cycles_now(&self) -> Cycles {
        let statistics = &self.statistics;
        let fruitless = statistics.without_finds().as_secs();
        Cycles {
            cycles_done: statistics.cycles_before + self.fuzzer.scheduler.cycles(),
            cycles_without_finds: self.fuzzer.progress.cycles_without_finds,
            longest_without_finds_s: statistics.longest_without_finds.max(fruitless),
        }
    }

    fn control_now(&self) -> Control {
        let orders = self.orders.as_ref();
        Control {
            paused: orders.is_some_and(|orders| orders.paused),
            injected: orders.map(|orders| orders.injected).unwrap_or_default(),
        }
    }

    fn runs_now(&mut self) -> Runs {
        let own = self.fuzzer.target().execs();
        let elapsed = self.statistics.started.elapsed().as_secs_f64();
        Runs {
            execs: self.execs(),
            execs_per_sec: own as f64 / elapsed.max(0.001),
            execs_per_sec_last_min: self.statistics.last_minute_rate(own),
            target_mode: self.target_mode(),
            rung: self.fuzzer.target().run_mode().name().into(),
            put_back: self.fuzzer.target().snapshot_runs().map(|runs| put_back(&runs)),
        }
    }

    fn resources_now(&mut self) -> Resources {
        let peak = match self.fuzzer.target().server() {
            Some(server) => process::peak_rss_mb(server),
            None => process::peak_child_rss_mb(),
        };
        let statistics = &mut self.statistics;
        statistics.peak_rss_mb = statistics.peak_rss_mb.max(peak);
        Resources {
            exec_timeout_ms: milliseconds(self.fuzzer.timeout()),
            slowest_exec_ms: milliseconds(self.fuzzer.progress.slowest),
            peak_rss_mb: statistics.peak_rss_mb,
            cpu: statistics.core,
            shares: shares(
                self.fuzzer.target().spent(),
                statistics.waiting.total(),
                statistics.started.elapsed(),
            ),
            load_percent: statistics.waiting.load_percent(),
        }
    }

    fn corpus_now(&self) -> Corpus {
        let mut corpus = Corpus {
            corpus_count: self.fuzzer.corpus.len() as u64,
            corpus_favored: 0,
            corpus_found: self.fuzzer.progress.found,
            corpus_imported: self.statistics.imported,
            corpus_variable: 0,
            max_depth: 0,
            pending_favored: 0,
            pending_total: 0,
        };
        // One pass: a large corpus is not in the cache.
        for seed in self.fuzzer.corpus.iter() {
            corpus.corpus_favored += u64::from(seed.favored);
            corpus.corpus_variable += u64::from(seed.variable);
            corpus.max_depth = corpus.max_depth.max(seed.depth + 1);
            corpus.pending_total += u64::from(seed.is_pending());
            corpus.pending_favored += u64::from(seed.is_pending() && seed.favored);
        }
        corpus
    }

    fn coverage_now(&self) -> Coverage {
        let (edges, bits) = coverage::found(self.fuzzer.judge().virgin());
        let unstable = self.fuzzer.judge().ignored_edges() as u64;
        let map_size = self.fuzzer.target().map_size() as u64;
        let current = self.statistics.current.map_or(0, |id| self.fuzzer.corpus[id].edges);
        Coverage {
            stability: 100.0 - percent(unstable, edges),
            edges_found: edges,
            map_size,
            unstable_edges: unstable,
            bits_per_edge: bits as f64 / edges.max(1) as f64,
            current_density: percent(current.into(), map_size),
            virgin_map: None,
        }
    }

    fn finds_now(&mut self) -> Finds {
        let (execs, statistics) = (self.execs(), &self.statistics);
        Finds {
            saved_crashes: statistics.saved_crashes,
            crashing_seeds: statistics.crashing_seeds,
            bugs: self.triage.as_mut().and_then(Follower::bugs),
            dependent_crashes: statistics.dependent_crashes,
            undelivered: self.triage.as_ref().and_then(Follower::undelivered),
            total_crashes: statistics.total_crashes,
            saved_hangs: statistics.saved_hangs,
            total_timeouts: statistics.total_timeouts,
            cut_runs: statistics.cut_runs,
            sanitizer_runs: statistics.sanitizer_runs(self.fuzzer.sidecars()),
            sanitizer_crashes: statistics.sanitizer_crashes,
            last_find_at: statistics.last_find_at,
            last_crash_at: statistics.last_crash_at,
            last_hang_at: statistics.last_hang_at,
            execs_since_crash: execs.saturating_sub(statistics.execs_at_crash),
        }
    }

    fn turn_now(&self) -> Turn {
        let (stage, stage_done, stage_total) = self.fuzzer.progress.stage;
        Turn { current: self.statistics.current, stage: stage.into(), stage_done, stage_total }
    }

    fn search_now(&self) -> Search {
        let (before, after) = self.fuzzer.progress.trim_bytes;
        Search {
            havoc_expansion: 0,
            dictionary_entries: self.fuzzer.dictionary.len() as u64,
            stages: self.fuzzer.progress.yields.clone(),
            trimmed_percent: percent(before - after, before),
            trim_execs: self.fuzzer.progress.trim_execs,
        }
    }

    fn setup_now(&self) -> Setup {
        let output = &self.options.output;
        Setup {
            pid: std::process::id(),
            guided_by_domains: self.fuzzer.guided(),
            banner: self.options.banner.clone(),
            instance: output.instance.clone(),
            schedule: self.options.schedule.name().into(),
            command_line: join_words(&output.command_line),
        }
    }

    fn domain_status(&self) -> Vec<DomainStatus> {
        let aggregates = self.fuzzer.judge().aggregates();
        let activity = self.statistics.domains.iter();
        aggregates
            .domains()
            .iter()
            .zip(activity)
            .enumerate()
            .map(|(index, (domain, activity))| {
                let best = aggregates.best_in(domain);
                let place = |key| self.names().place(key).unwrap_or_default();
                DomainStatus {
                    name: domain.label(index),
                    reducer: domain.reducer.name().into(),
                    size: domain.size,
                    keys: u32::try_from(aggregates.changed_in(domain).count()).unwrap_or(u32::MAX),
                    best,
                    best_place: best.map_or_else(String::new, |(key, _)| place(key)),
                    last: activity.last,
                    last_place: activity.last.map_or_else(String::new, |(key, _, _)| place(key)),
                    waypoints: activity.waypoints,
                }
            })
            .collect()
    }
}

fn join_words(words: &[std::ffi::OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
