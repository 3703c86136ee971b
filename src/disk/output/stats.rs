//! `fuzzer_stats` and `fuzz_bitmap`, in the format that AFL's tools and other readers expect.
//!
//! [`fuzzer_stats`] is pure; [`StatsFile`] decides when it is written. Readers source the file as
//! shell text and depend on the padding to 18 columns, so both are kept in additional keys, too.

mod values;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use values::snapshot;

use super::{OutputError, replace_file};
use ffuzz_event::{
    Corpus, Coverage, Cycles, DomainStatus, Event, EventSink, Finds, MutatorStatus, PartOfTime,
    Resources, Runs, Search, Shares, Snapshot, SnapshotUse, Times, Turn,
};
use ffuzz_sys::{file, underway};

/// Value of `afl_version`; AFL's own begins with `++`.
const VERSION: &str = concat!("ffuzz-", env!("CARGO_PKG_VERSION"));
/// `fuzz_bitmap` is filled up to a multiple of this, as AFL does.
const MAP_UNIT: usize = 64;
/// Maximum size read, bytes; more than any fuzzer writes.
const LARGEST: u64 = 16 << 20;

/// The content of `fuzzer_stats`.
#[must_use]
pub fn fuzzer_stats(s: &Snapshot) -> String {
    let mut out = StatLines::default();
    times(&mut out, &s.times);
    out.add("fuzzer_pid", s.setup.pid);
    cycles(&mut out, &s.cycles);
    time_spent(&mut out, &s.times);
    runs(&mut out, &s.runs);
    corpus(&mut out, &s.corpus, &s.turn);
    out.add("stability", format_args!("{:.2}%", s.coverage.stability));
    out.add("bitmap_cvg", format_args!("{:.2}%", s.coverage.map_percent()));
    finds(&mut out, &s.finds);
    resources(&mut out, &s.resources);
    edges(&mut out, &s.coverage);
    search(&mut out, &s.search);
    domains(&mut out, &s.domains, s.setup.guided_by_domains);
    mutators(&mut out, &s.mutators);
    if let Some(bugs) = s.finds.bugs {
        out.add("saved_bugs", bugs);
    }
    out.add("afl_banner", shell_safe(&s.setup.banner));
    out.add("afl_version", VERSION);
    modes(&mut out, &s.runs);
    out.add("cut_runs", s.finds.cut_runs);
    out.add("lost_runs", s.finds.lost_runs);
    if s.finds.sanitizer_runs > 0 {
        out.add("sanitizer_execs", s.finds.sanitizer_runs);
        out.add("sanitizer_crashes", s.finds.sanitizer_crashes);
    }
    shares(&mut out, &s.resources.shares);
    out.add("command_line", s.setup.command_line.replace('\n', " "));
    out.0
}

/// Values of an instance's `fuzzer_stats`, of any fuzzer, by name; empty without a file.
#[must_use]
pub fn read(instance: &Path) -> BTreeMap<String, String> {
    let bytes = file::read(&instance.join("fuzzer_stats"), LARGEST).unwrap_or_default();
    parse(&String::from_utf8_lossy(&bytes))
}

/// Parses the file. Replaces control characters, because values are shown on terminals.
#[must_use]
pub fn parse(text: &str) -> BTreeMap<String, String> {
    let clean = |text: &str| text.trim().replace(char::is_control, "_");
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (clean(name), clean(value))).collect()
}

#[derive(Default)]
struct StatLines(String);

impl StatLines {
    fn add(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key:<18}: {value}");
    }
}

fn snapshots(out: &mut StatLines, snapshot_runs: &SnapshotUse) {
    out.add("snapshot_by_fork", format_args!("{:.2}%", snapshot_runs.by_fork_percent));
    out.add("snapshot_pages", format_args!("{:.1}", snapshot_runs.pages));
    out.add("snapshot_differs", snapshot_runs.differences);
    out.add("snapshot_prologue", snapshot_runs.prologue);
    if snapshot_runs.behind_percent > 0.0 {
        out.add("net_behind_share", format_args!("{:.2}%", snapshot_runs.behind_percent));
        out.add("net_snapshot_behind", format_args!("{:.1}", snapshot_runs.behind_messages));
    }
    if let Some(why) = &snapshot_runs.why {
        out.add("snapshot_why", why);
    }
}

fn shares(out: &mut StatLines, shares: &Shares) {
    out.add("time_in_target", format_args!("{:.2}%", shares.target));
    if let Some(hand_over) = shares.hand_over {
        out.add("time_in_handover", format_args!("{hand_over:.2}%"));
        out.add("time_waiting", format_args!("{:.2}%", shares.waiting));
    }
    out.add("time_in_fuzzer", format_args!("{:.2}%", shares.fuzzer));
}

fn times(out: &mut StatLines, times: &Times) {
    out.add("start_time", times.started_at);
    out.add("last_update", times.now);
    out.add("run_time", times.run_time_ms / 1000);
}

fn time_spent(out: &mut StatLines, times: &Times) {
    let Times { calibration_ms, comparisons_ms, trim_ms, sync_ms, .. } = times;
    let others = calibration_ms + comparisons_ms + trim_ms + sync_ms;
    let fuzz_ms = times.run_time_ms.saturating_sub(others);
    out.add("fuzz_time", fuzz_ms / 1000);
    out.add("calibration_time", calibration_ms / 1000);
    out.add("cmplog_time", comparisons_ms / 1000);
    out.add("sync_time", sync_ms / 1000);
    out.add("trim_time", trim_ms / 1000);
}

fn cycles(out: &mut StatLines, cycles: &Cycles) {
    out.add("cycles_done", cycles.cycles_done);
    out.add("cycles_wo_finds", cycles.cycles_without_finds);
    out.add("time_wo_finds", cycles.longest_without_finds_s);
}

fn runs(out: &mut StatLines, runs: &Runs) {
    out.add("execs_done", runs.execs);
    out.add("execs_per_sec", format_args!("{:.2}", runs.execs_per_sec));
    out.add("execs_ps_last_min", format_args!("{:.2}", runs.execs_per_sec_last_min));
}

fn modes(out: &mut StatLines, runs: &Runs) {
    out.add("target_mode", if runs.target_mode.is_empty() { "default" } else { &runs.target_mode });
    out.add("run_mode", &runs.run_mode);
    if let Some(snapshot_runs) = &runs.snapshot_runs {
        snapshots(out, snapshot_runs);
    }
}

fn corpus(out: &mut StatLines, corpus: &Corpus, turn: &Turn) {
    out.add("corpus_count", corpus.corpus_count);
    out.add("corpus_favored", corpus.corpus_favored);
    out.add("corpus_found", corpus.corpus_found);
    out.add("corpus_imported", corpus.corpus_imported);
    out.add("corpus_variable", corpus.corpus_variable);
    out.add("max_depth", corpus.max_depth);
    out.add("cur_item", turn.current.map_or(0, |id| id.0));
    out.add("pending_favs", corpus.pending_favored);
    out.add("pending_total", corpus.pending_total);
}

fn finds(out: &mut StatLines, finds: &Finds) {
    out.add("saved_crashes", finds.saved_crashes);
    out.add("saved_hangs", finds.saved_hangs);
    out.add("total_tmout", finds.total_timeouts);
    out.add("last_find", finds.last_find_at);
    out.add("last_crash", finds.last_crash_at);
    out.add("last_hang", finds.last_hang_at);
    out.add("execs_since_crash", finds.execs_since_crash);
}

fn resources(out: &mut StatLines, resources: &Resources) {
    out.add("exec_timeout", resources.exec_timeout_ms);
    out.add("slowest_exec_ms", resources.slowest_exec_ms);
    out.add("peak_rss_mb", resources.peak_rss_mb);
    out.add("cpu_affinity", resources.cpu.map_or(-1, |core| i64::try_from(core).unwrap_or(-1)));
}

fn edges(out: &mut StatLines, coverage: &Coverage) {
    out.add("edges_found", coverage.edges_found);
    out.add("total_edges", coverage.map_size);
    out.add("var_byte_count", coverage.unstable_edges);
}

fn search(out: &mut StatLines, search: &Search) {
    out.add("havoc_expansion", search.havoc_expansion);
    for PartOfTime { name, used, share } in &search.parts {
        out.add(&format!("part_{name}"), format_args!("{used:.2}% of {share:.0}%"));
    }
    out.add("auto_dict_entries", search.dictionary_entries);
    out.add("testcache_size", 0);
    out.add("testcache_count", 0);
    out.add("testcache_evict", 0);
}

/// Adds ffuzz's own keys. They precede `afl_banner` because strict readers stop at the last key they know, and are
/// numbered because names may be empty, equal or invalid in a shell.
fn domains(out: &mut StatLines, domains: &[DomainStatus], guided: bool) {
    if domains.is_empty() {
        return;
    }
    out.add("dsf_domains", domains.len());
    out.add("dsf_guided", u8::from(guided));
    for (index, domain) in domains.iter().enumerate() {
        let (key, value) = domain.best.unwrap_or_default();
        out.add(&format!("dsf{index}_name"), shell_safe(&domain.name));
        out.add(&format!("dsf{index}_reducer"), &domain.reducer);
        out.add(&format!("dsf{index}_keys"), domain.keys);
        out.add(&format!("dsf{index}_best_key"), key);
        out.add(&format!("dsf{index}_best"), value);
        if !domain.best_place.is_empty() {
            out.add(&format!("dsf{index}_best_place"), shell_safe(&domain.best_place));
        }
        out.add(&format!("dsf{index}_waypoints"), domain.waypoints);
    }
}

/// Adds the keys of foreign mutators.
fn mutators(out: &mut StatLines, mutators: &[MutatorStatus]) {
    if mutators.is_empty() {
        return;
    }
    out.add("mutators", mutators.len());
    for (index, mutator) in mutators.iter().enumerate() {
        out.add(&format!("mutator{index}_name"), shell_safe(&mutator.name));
        out.add(&format!("mutator{index}_calls"), mutator.calls);
        out.add(&format!("mutator{index}_finds"), mutator.finds);
        out.add(&format!("mutator{index}_time"), format_args!("{:.2}%", mutator.time_percent));
        out.add(&format!("mutator{index}_failures"), mutator.failures);
        if let Some(text) = &mutator.says {
            out.add(&format!("mutator{index}_says"), shell_safe(text));
        }
    }
}

/// Makes a value safe within double quotes, for tools that convert the line to shell.
fn shell_safe(text: &str) -> String {
    text.chars().map(|c| if "\"$`\\".contains(c) || c.is_control() { '_' } else { c }).collect()
}

/// Writes `fuzzer_stats` at the start, at regular times and at the end; `fuzz_bitmap` whenever a
/// snapshot carries the map. A failed write is tried again with the next snapshot.
#[derive(Debug)]
pub struct StatsFile {
    instance: PathBuf,
    interval_s: u64,
    /// Time of the last write, by a clock that may be set back; 0: write now.
    written: u64,
    newest: Newest,
    failure: Option<OutputError>,
}

impl StatsFile {
    #[must_use]
    pub fn new(instance: &Path, interval: Duration) -> Self {
        let newest = Newest::default();
        let (kept, folder) = (Arc::clone(&newest), instance.to_owned());
        underway::at_last(move |runs| write_newest(&folder, &kept, runs));
        Self {
            instance: instance.to_owned(),
            interval_s: interval.as_secs().max(1),
            written: 0,
            newest,
            failure: None,
        }
    }

    fn write(&mut self, s: &Snapshot) {
        let stats = fuzzer_stats(s);
        let path = self.instance.join("fuzzer_stats");
        self.failure = replace_file(&self.instance, &path, stats.as_bytes()).err();
        if self.failure.is_none() {
            self.written = s.times.now;
        }
    }

    /// Writes the final numbers of a campaign; retries temporary failures.
    fn write_for_good(&mut self, s: &Snapshot) {
        let start = Instant::now();
        self.write(s);
        while start.elapsed() < file::PATIENCE
            && self.failure.as_ref().is_some_and(OutputError::may_pass)
        {
            std::thread::sleep(file::RETRY);
            self.write(s);
        }
    }

    fn write_map(&self, map: &[u8]) {
        let mut padded = map.to_vec();
        padded.resize(map.len().next_multiple_of(MAP_UNIT), 0xff);
        let _ = replace_file(&self.instance, &self.instance.join("fuzz_bitmap"), &padded);
    }
}

/// Snapshot of the last tick, and its time.
type Newest = Arc<Mutex<Option<(Instant, Box<Snapshot>)>>>;

/// Writes the numbers of a campaign abandoned because foreign code does not return: those of the last tick, with the
/// time updated.
fn write_newest(instance: &Path, newest: &Newest, runs: u64) {
    let newest = newest.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((since, mut snapshot)) = newest else { return };
    let later = since.elapsed();
    snapshot.times.run_time_ms += u64::try_from(later.as_millis()).unwrap_or(0);
    snapshot.times.now += later.as_secs();
    snapshot.runs.execs = snapshot.runs.execs.max(runs);
    let path = instance.join("fuzzer_stats");
    // The error can no longer be reported.
    let _ = replace_file(instance, &path, fuzzer_stats(&snapshot).as_bytes());
}

impl EventSink for StatsFile {
    fn handle(&mut self, event: &Event) {
        if let Event::Tick(_) | Event::Stopped { .. } = event {
            let newest = match event {
                Event::Tick(snapshot) => Some((Instant::now(), snapshot.clone())),
                // The last numbers are better.
                _ => None,
            };
            *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = newest;
        }
        let snapshot = match event {
            // This event has no numbers: the first snapshot after it is written.
            Event::Started => {
                self.written = 0;
                return;
            }
            Event::Tick(snapshot)
                if snapshot.times.now.abs_diff(self.written) >= self.interval_s
                    || snapshot.coverage.virgin_map.is_some() =>
            {
                self.write(snapshot);
                snapshot
            }
            Event::Stopped { snapshot, .. } => {
                self.write_for_good(snapshot);
                snapshot
            }
            _ => return,
        };
        if let Some(map) = &snapshot.coverage.virgin_map {
            self.write_map(map);
        }
    }

    fn take_failure(&mut self) -> Option<(PathBuf, io::Error)> {
        let failure = self.failure.take()?;
        Some((self.instance.join("fuzzer_stats"), failure.into_source()))
    }
}

#[cfg(test)]
mod tests {
    use super::values::MOST_PARTS;
    use super::*;
    use ffuzz_engine::corpus::SeedId;
    use ffuzz_event::{CampaignSetup, StopReason};

    fn sample() -> Snapshot {
        Snapshot {
            times: Times {
                started_at: 1_700_000_000,
                now: 1_700_000_061,
                run_time_ms: 61_000,
                calibration_ms: 2_000,
                comparisons_ms: 3_000,
                trim_ms: 1_000,
                ..Times::default()
            },
            runs: Runs {
                execs: 123_456,
                execs_per_sec: 2023.868,
                run_mode: "batch".into(),
                ..Runs::default()
            },
            resources: Resources {
                exec_timeout_ms: 20,
                cpu: Some(1),
                shares: Shares {
                    target: 61.256,
                    hand_over: Some(8.0),
                    waiting: 0.0,
                    fuzzer: 30.744,
                },
                ..Resources::default()
            },
            corpus: Corpus { corpus_count: 12, ..Corpus::default() },
            turn: Turn { current: Some(SeedId(7)), ..Turn::default() },
            coverage: Coverage {
                stability: 100.0,
                edges_found: 30,
                map_size: 96,
                virgin_map: Some(vec![0xfe; 65].into()),
                ..Coverage::default()
            },
            setup: CampaignSetup {
                pid: 42,
                banner: "./t$(x)".into(),
                command_line: "ffuzz -i in\n-o out".into(),
                ..CampaignSetup::default()
            },
            domains: vec![DomainStatus {
                name: "mem".into(),
                reducer: "MAX".into(),
                keys: 2,
                best: Some((3, 99)),
                best_place: "demo.c:16".into(),
                waypoints: 5,
                ..DomainStatus::default()
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn stats_have_all_keys_in_the_order_of_afl() {
        insta::assert_snapshot!(fuzzer_stats(&sample()), @r"
        start_time        : 1700000000
        last_update       : 1700000061
        run_time          : 61
        fuzzer_pid        : 42
        cycles_done       : 0
        cycles_wo_finds   : 0
        time_wo_finds     : 0
        fuzz_time         : 55
        calibration_time  : 2
        cmplog_time       : 3
        sync_time         : 0
        trim_time         : 1
        execs_done        : 123456
        execs_per_sec     : 2023.87
        execs_ps_last_min : 0.00
        corpus_count      : 12
        corpus_favored    : 0
        corpus_found      : 0
        corpus_imported   : 0
        corpus_variable   : 0
        max_depth         : 0
        cur_item          : 7
        pending_favs      : 0
        pending_total     : 0
        stability         : 100.00%
        bitmap_cvg        : 31.25%
        saved_crashes     : 0
        saved_hangs       : 0
        total_tmout       : 0
        last_find         : 0
        last_crash        : 0
        last_hang         : 0
        execs_since_crash : 0
        exec_timeout      : 20
        slowest_exec_ms   : 0
        peak_rss_mb       : 0
        cpu_affinity      : 1
        edges_found       : 30
        total_edges       : 96
        var_byte_count    : 0
        havoc_expansion   : 0
        auto_dict_entries : 0
        testcache_size    : 0
        testcache_count   : 0
        testcache_evict   : 0
        dsf_domains       : 1
        dsf_guided        : 0
        dsf0_name         : mem
        dsf0_reducer      : MAX
        dsf0_keys         : 2
        dsf0_best_key     : 3
        dsf0_best         : 99
        dsf0_best_place   : demo.c:16
        dsf0_waypoints    : 5
        afl_banner        : ./t_(x)
        afl_version       : ffuzz-0.1.0
        target_mode       : default
        run_mode          : batch
        cut_runs          : 0
        lost_runs         : 0
        time_in_target    : 61.26%
        time_in_handover  : 8.00%
        time_waiting      : 0.00%
        time_in_fuzzer    : 30.74%
        command_line      : ffuzz -i in -o out
        ");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let runs = Runs {
            snapshot_runs: Some(SnapshotUse { pages: 17.5, prologue: 3, ..SnapshotUse::default() }),
            ..sample().runs
        };
        let mutator = MutatorStatus { name: "m.so".into(), calls: 7, ..MutatorStatus::default() };
        let mut whole = Snapshot { runs, mutators: vec![mutator], ..sample() };
        whole.setup.banner = "./t".into();
        whole.setup.command_line = "ffuzz -i in -o out".into();
        whole.search.parts =
            vec![PartOfTime { name: "comparisons".into(), used: 9.31, share: 10.0 }];
        whole.finds.bugs = Some(3);
        let text = fuzzer_stats(&whole);
        assert_eq!(fuzzer_stats(&snapshot(&parse(&text))), text);
        let nothing = snapshot(&BTreeMap::new());
        assert_eq!((nothing.runs.execs, nothing.domains.len()), (0, 0));
        let many = parse("dsf_domains : 99999999999\nexecs_done : x\nstability : %\n");
        assert_eq!(snapshot(&many).domains.len() as u64, MOST_PARTS);
    }

    #[test]
    fn what_came_of_snapshots_is_said_if_there_were_any() {
        assert!(!fuzzer_stats(&sample()).contains("snapshot"));
        let why = Some("it starts processes or threads".into());
        let snapshot_runs = Some(SnapshotUse {
            by_fork_percent: 1.25,
            why,
            pages: 17.96,
            differences: 1,
            prologue: 42,
            behind_percent: 25.0,
            behind_messages: 1.5,
        });
        let runs = Runs { snapshot_runs, ..Runs::default() };
        let text = fuzzer_stats(&Snapshot { runs, ..sample() });
        let lines = "snapshot_by_fork  : 1.25%\nsnapshot_pages    : 18.0\nsnapshot_differs  : 1\n\
                     snapshot_prologue : 42\nnet_behind_share  : 25.00%\nnet_snapshot_behind: 1.5\n\
                     snapshot_why      : it starts processes or threads\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn foreign_files_are_read_whatever_they_hold() {
        let dir = tempfile::tempdir().expect("folder");
        assert!(read(dir.path()).is_empty());
        let bytes = b"execs_done        : 7\nno colon\nafl_banner : a:b\xff\x1b[2J\n:\n";
        std::fs::write(dir.path().join("fuzzer_stats"), bytes).expect("file");
        let values = read(dir.path());
        assert_eq!(values["execs_done"], "7");
        assert_eq!(values["afl_banner"], "a:b\u{fffd}_[2J");
    }

    #[test]
    fn file_is_written_when_due_and_at_the_end() {
        let dir = tempfile::tempdir().expect("folder");
        let file = dir.path().join("fuzzer_stats");
        let mut sink = StatsFile::new(dir.path(), Duration::from_secs(60));
        let mut snapshot = sample();
        sink.handle(&Event::Started);
        assert!(!file.exists());
        sink.handle(&Event::Tick(Box::new(snapshot.clone())));
        let map = std::fs::read(dir.path().join("fuzz_bitmap")).expect("map");
        assert_eq!((map.len(), map[64], map[65]), (128, 0xfe, 0xff));
        let execs = || {
            let text = std::fs::read_to_string(&file).expect("stats");
            text.lines().find(|l| l.starts_with("execs_done")).map(str::to_owned)
        };
        snapshot.coverage.virgin_map = None;
        snapshot.runs.execs = 1;
        snapshot.times.now += 59;
        sink.handle(&Event::Tick(Box::new(snapshot.clone())));
        assert_eq!(execs().as_deref(), Some("execs_done        : 123456"));
        // A clock that is set back does not stop them.
        snapshot.times.now -= 86_400;
        snapshot.runs.execs = 2;
        sink.handle(&Event::Tick(Box::new(snapshot.clone())));
        assert_eq!(execs().as_deref(), Some("execs_done        : 2"));
        snapshot.runs.execs = 1;
        let reason = StopReason::User;
        sink.handle(&Event::Stopped { reason, next: vec![], snapshot: Box::new(snapshot) });
        assert_eq!(execs().as_deref(), Some("execs_done        : 1"));
    }
}
