//! The campaign's counters and clock; `snapshot.rs` converts them for display.

pub(super) mod snapshot;
mod waiting;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use waiting::WaitingTime;

use super::error::BadSeeds;
use crate::disk::output::earlier::Earlier;
use crate::disk::output::state::Counters;
use crate::engine::corpus::SeedId;
use crate::engine::domain::KeyGain;
use crate::engine::fuzzer::{Fuzzer, Progress, Sidecars};
use crate::event::Control;
use crate::mutators::Mutators;

/// Counters. The `*_before` fields have the values of earlier processes of the same campaign.
#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) started: Instant,
    started_at: u64,
    /// The core to which this process is bound.
    pub(super) core: Option<usize>,
    run_time_before: Duration,
    execs_before: u64,
    cycles_before: u64,
    /// Earlier results until the dry run is over, so that displayed numbers do not fall while the
    /// queue is read again.
    earlier: Option<Earlier>,
    /// Largest resident set of a process of the target, MiB.
    peak_rss_mb: u64,
    /// End of the dry run.
    fuzzing_since: Option<Instant>,
    /// Time of the last run; later time does not belong to the campaign.
    ended: Option<Instant>,
    /// Time in pauses by command, which is in no other field.
    pause_time: Duration,
    pub(super) calibration: Duration,
    pub(super) comparisons: Duration,
    pub(super) trim: Duration,
    /// Time spent on other fuzzers' finds.
    pub(super) sync: Duration,
    pub(super) imported: u64,
    pub(super) bad_seeds: BadSeeds,
    /// Starting seeds that crash the target, which with `-C` are the good ones.
    pub(super) crashing_seeds: u64,
    pub(super) saved_crashes: u64,
    pub(super) total_crashes: u64,
    pub(super) saved_hangs: u64,
    pub(super) total_timeouts: u64,
    /// Timeouts of this process alone.
    pub(super) timeouts_here: u64,
    /// Runs cut at the soft limit.
    pub(super) cut_runs: u64,
    pub(super) lost_runs: u64,
    /// Runs in sanitizer builds before this process.
    sanitizer_runs_before: u64,
    pub(super) sanitizer_crashes: u64,
    last_find: Option<Instant>,
    last_find_at: u64,
    longest_without_finds: u64,
    last_crash_at: u64,
    last_hang_at: u64,
    execs_at_crash: u64,
    /// Time spent on testing whether crashes occur in a fresh process.
    pub(super) confirming: Duration,
    /// Crashes that do not, as far as known; `record_files` counts the files written for them.
    pub(super) dependent_crashes: u64,
    pub(super) record_files: u64,
    pub(super) current: Option<SeedId>,
    /// Effects of clients' orders.
    pub(super) control: Control,
    domains: Vec<DomainActivity>,
    minute: MinuteRate,
    waiting: WaitingTime,
}

/// Changes in a domain.
#[derive(Clone, Debug, Default)]
struct DomainActivity {
    last: Option<(u32, u32, u64)>,
    waypoints: u64,
}

/// Runs per second during about the last minute.
#[derive(Debug)]
struct MinuteRate {
    since: Instant,
    execs: u64,
    rate: f64,
}

/// Current time in Unix seconds.
fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
            pause_time: Duration::ZERO,
            calibration: Duration::ZERO,
            comparisons: Duration::ZERO,
            trim: Duration::ZERO,
            sync: Duration::ZERO,
            imported: 0,
            bad_seeds: BadSeeds::default(),
            crashing_seeds: 0,
            saved_crashes: 0,
            total_crashes: 0,
            saved_hangs: 0,
            total_timeouts: 0,
            timeouts_here: 0,
            cut_runs: 0,
            lost_runs: 0,
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
            control: Control::default(),
            domains: vec![DomainActivity::default(); domains],
            minute: MinuteRate { since: now, execs: 0, rate: 0.0 },
            waiting: WaitingTime::default(),
        }
    }

    /// Runs of the campaign, earlier processes included.
    pub(super) fn execs(&self, fuzzer: &Fuzzer<Mutators>) -> u64 {
        self.execs_before + fuzzer.target().execs()
    }

    /// Measures the cost of hand-overs to the target, and the machine's load; call it at each tick.
    pub(super) fn look_at_load(&mut self, fuzzer: &Fuzzer<Mutators>) {
        let target = fuzzer.target();
        self.waiting.look(target.spent(), || target.processor_time());
    }

    /// Continues with the counters of an earlier process.
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

    /// Counters for the next process that `fuzzer_stats` does not contain.
    pub(super) fn counters(&self, progress: &Progress, sidecars: Option<&Sidecars>) -> Counters {
        Counters {
            total_crashes: self.total_crashes,
            total_timeouts: self.total_timeouts,
            cut_runs: self.cut_runs,
            lost_runs: self.lost_runs,
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

    /// Runs in sanitizer builds, including earlier processes.
    fn sanitizer_runs(&self, sidecars: Option<&Sidecars>) -> u64 {
        self.sanitizer_runs_before + sidecars.map_or(0, Sidecars::execs)
    }

    pub(super) fn recall(&mut self, counters: &Counters, progress: &mut Progress) {
        self.total_crashes = counters.total_crashes;
        self.total_timeouts = counters.total_timeouts;
        self.cut_runs = counters.cut_runs;
        self.lost_runs = counters.lost_runs;
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

    /// Sets the number of inputs that the corpus will have after the dry run.
    pub(super) fn expect_corpus(&mut self, count: usize) {
        if let Some(earlier) = &mut self.earlier {
            earlier.corpus = count as u64;
        }
    }

    /// Notes the end of the dry run. `complete`: every starting input is in the corpus.
    pub(super) fn dry_run_over(&mut self, complete: bool) {
        if complete {
            self.earlier = None;
        }
        let now = Instant::now();
        self.fuzzing_since = Some(now);
        self.last_find = Some(now);
    }

    /// Returns true once the dry run is over.
    pub(super) fn is_fuzzing(&self) -> bool {
        self.fuzzing_since.is_some()
    }

    /// Excludes this period from all times.
    pub(super) fn leave_out(&mut self, time: Duration) {
        self.started += time;
        self.minute.since += time;
        let since = [&mut self.fuzzing_since, &mut self.last_find];
        since.into_iter().flatten().for_each(|since| *since += time);
    }

    /// Excludes a pause by command, during which this process was suspended for the time `suspended`.
    pub(super) fn leave_out_pause(&mut self, time: Duration, suspended: Duration) {
        self.leave_out(time);
        self.pause_time += time.saturating_sub(suspended);
    }

    /// Time that `-V` limits: that of the dry run, then the time since. It includes pauses by command, because
    /// their end may never come.
    pub(super) fn limited_time(&self) -> Duration {
        self.fuzzing_since.unwrap_or(self.started).elapsed() + self.pause_time
    }

    /// Notes the end of the last run.
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

    /// Notes a seed that was found or imported.
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

    /// Notes a seed that changed the values of domains.
    pub(super) fn domains_moved(&mut self, fuzzer: &Fuzzer<Mutators>, gains: &[KeyGain]) {
        let domains = fuzzer.target().domains();
        let mut moved = vec![false; domains.len()];
        for gain in gains {
            let index = domains.partition_point(|domain| domain.end() <= gain.key);
            moved[index] = true;
            self.domains[index].last = Some((gain.key, gain.after, unix_now()));
        }
        for (domain, moved) in self.domains.iter_mut().zip(moved) {
            domain.waypoints += u64::from(moved);
        }
    }

    fn last_minute_rate(&mut self, execs: u64) -> f64 {
        let elapsed = self.minute.since.elapsed();
        let rate = (execs - self.minute.execs) as f64 / elapsed.as_secs_f64().max(0.001);
        if elapsed >= Duration::from_secs(60) {
            self.minute = MinuteRate { since: Instant::now(), execs, rate };
        } else if self.minute.rate == 0.0 {
            // The first minute shows the current value.
            return rate;
        }
        self.minute.rate
    }
}
