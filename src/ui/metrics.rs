//! `--metrics`: the campaign's numbers for Prometheus, in its text format (version 0.0.4).

mod http;

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ffuzz_event::{
    Control, Corpus, Coverage, Cycles, DomainStatus, Event, EventSink, Finds, PartOfTime,
    Resources, Runs, Search, Shares, Snapshot, StageYield, Times, WorkerStatus,
};
use http::MetricsServer;

/// Keeps the latest status for clients; never waits for a client.
#[derive(Debug)]
pub struct Metrics {
    latest: Arc<Mutex<Option<Arc<Snapshot>>>>,
    /// Time of the latest status, in Unix seconds.
    last: u64,
    _server: MetricsServer,
}

impl Metrics {
    /// Starts a server at `address`.
    pub fn serve(address: SocketAddr) -> io::Result<Self> {
        let latest: Arc<Mutex<Option<Arc<Snapshot>>>> = Arc::default();
        let its = Arc::clone(&latest);
        let page = move || {
            let snapshot = its.lock().unwrap_or_else(PoisonError::into_inner).clone();
            snapshot.map(|snapshot| text(&snapshot))
        };
        Ok(Self { latest, last: 0, _server: MetricsServer::start(address, Arc::new(page))? })
    }

    fn keep(&mut self, snapshot: &Snapshot) {
        self.last = snapshot.times.now;
        let new = Some(Arc::new(snapshot.clone()));
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = new;
    }
}

impl EventSink for Metrics {
    fn handle(&mut self, event: &Event) {
        match event {
            Event::Tick(snapshot) if snapshot.times.now > self.last => self.keep(snapshot),
            Event::Stopped { snapshot, .. } => self.keep(snapshot),
            _ => {}
        }
    }
}

/// Name, help text and value of a metric. Names that end in `_total` only grow.
type MetricRow<T> = (&'static str, &'static str, fn(&T) -> Option<f64>);

const RUNS: &[MetricRow<Runs>] = &[
    ("execs_total", "Executions", |r| count(r.execs)),
    ("execs_per_second", "Executions a second since the start", |r| Some(r.execs_per_sec)),
];

const TIMES: &[MetricRow<Times>] = &[
    ("run_time_seconds_total", "Campaign time", |t| Some(t.run_time_ms as f64 / 1000.0)),
    ("start_time_seconds", "Unix time of the start", |t| count(t.started_at)),
];

const CONTROL: &[MetricRow<Control>] =
    &[("paused", "1 while a command has paused the campaign", |c| count(c.paused.into()))];

const CYCLES: &[MetricRow<Cycles>] = &[
    ("cycles_total", "Passes over the queue", |c| count(c.cycles_done)),
    ("cycles_without_finds", "Passes since the last find", |c| count(c.cycles_without_finds)),
];

const CORPUS: &[MetricRow<Corpus>] = &[
    ("corpus_count", "Seeds", |c| count(c.corpus_count)),
    ("corpus_favored", "Favoured seeds", |c| count(c.corpus_favored)),
    ("corpus_found_total", "Seeds that were found here", |c| count(c.corpus_found)),
    ("corpus_imported_total", "Seeds that were handed in", |c| count(c.corpus_imported)),
    ("corpus_variable", "Seeds whose runs differ", |c| count(c.corpus_variable)),
    ("pending", "Seeds that wait for their first turn", |c| count(c.pending_total)),
    ("pending_favored", "Favoured ones of these", |c| count(c.pending_favored)),
];

const COVERAGE: &[MetricRow<Coverage>] = &[
    ("edges_found", "Edges reached", |c| count(c.edges_found)),
    ("edges_unstable", "Edges that vary between runs", |c| count(c.unstable_edges)),
    ("map_size", "Edges of the target", |c| count(c.map_size)),
];

const FINDS: &[MetricRow<Finds>] = &[
    ("crashes_saved_total", "Crashes stored", |f| count(f.saved_crashes)),
    ("crashes_total", "Executions that crashed", |f| count(f.total_crashes)),
    ("bugs", "Kinds of crashes, as far as they were triaged", |f| f.bugs.and_then(count)),
    ("hangs_saved_total", "Hangs stored", |f| count(f.saved_hangs)),
    ("timeouts_total", "Executions that took too long", |f| count(f.total_timeouts)),
    ("cut_total", "Executions that were cut at the soft limit", |f| count(f.cut_runs)),
    ("lost_total", "Executions that took the fork server along", |f| count(f.lost_runs)),
    ("sanitizer_executions_total", "Executions of the sanitizer builds of -w", |f| {
        count(f.sanitizer_runs)
    }),
    ("sanitizer_crashes_total", "Crashes that only a sanitizer build shows", |f| {
        count(f.sanitizer_crashes)
    }),
    ("last_find_time_seconds", "Unix time of the last seed, 0 for never", |f| {
        count(f.last_find_at)
    }),
    ("last_crash_time_seconds", "Unix time of the last crash, 0 for never", |f| {
        count(f.last_crash_at)
    }),
    ("last_hang_time_seconds", "Unix time of the last hang, 0 for never", |f| {
        count(f.last_hang_at)
    }),
];

const RESOURCES: &[MetricRow<Resources>] = &[
    ("exec_timeout_seconds", "Longest time for an execution", |r| {
        Some(r.exec_timeout_ms as f64 / 1000.0)
    }),
    ("slowest_exec_seconds", "Slowest seed", |r| Some(r.slowest_exec_ms as f64 / 1000.0)),
    ("peak_memory_bytes", "Most memory of a target", |r| count(r.peak_rss_mb << 20)),
];

const SEARCH: &[MetricRow<Search>] =
    &[("dictionary_entries", "Tokens", |s| count(s.dictionary_entries))];

const DOMAIN: &[MetricRow<DomainStatus>] = &[
    ("domain_best", "Best value of a domain", |d| d.best.and_then(|best| count(best.1.into()))),
    ("domain_keys", "Keys that have left their initial value", |d| count(d.keys.into())),
    ("domain_waypoints_total", "Seeds kept because of a domain", |d| count(d.waypoints)),
];

const STAGE: &[MetricRow<StageYield>] = &[
    ("stage_execs_total", "Executions of a stage", |s| count(s.execs)),
    ("stage_finds_total", "Seeds that a stage has found", |s| count(s.finds)),
];

const WORKER: &[MetricRow<WorkerStatus>] = &[
    ("worker_fuzzing", "1 while a worker fuzzes", |w| count((w.state == "fuzzing").into())),
    ("worker_execs_total", "Executions of a worker", |w| count(w.execs)),
    ("worker_execs_per_second", "Its executions a second", |w| Some(w.execs_per_sec)),
    ("worker_corpus_count", "Its seeds", |w| count(w.corpus_count)),
    ("worker_edges_found", "Edges it has reached", |w| count(w.edges_found)),
    ("worker_crashes_saved_total", "Crashes it has stored", |w| count(w.saved_crashes)),
    ("worker_hangs_saved_total", "Hangs it has stored", |w| count(w.saved_hangs)),
    ("worker_last_find_time_seconds", "Unix time of its last seed", |w| count(w.last_find_at)),
    ("worker_restarts_total", "How often it was started again", |w| count(w.restarts.into())),
];

/// Converts a count to a float, which is exact up to 9 · 10¹⁵ (53 bits).
#[expect(clippy::unnecessary_wraps, reason = "rows of numbers that may be missing")]
fn count(number: u64) -> Option<f64> {
    Some(number as f64)
}

fn text(s: &Snapshot) -> String {
    let mut out = String::new();
    let about = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("banner", &s.setup.banner),
        ("name", &s.setup.instance),
        ("schedule", &s.setup.schedule),
        ("run_mode", &s.runs.run_mode),
    ];
    family(&mut out, "info", "What is fuzzed and how");
    sample(&mut out, "info", &about, 1.0);
    one(&mut out, RUNS, &s.runs);
    one(&mut out, TIMES, &s.times);
    one(&mut out, CONTROL, &s.control);
    one(&mut out, CYCLES, &s.cycles);
    one(&mut out, CORPUS, &s.corpus);
    one(&mut out, COVERAGE, &s.coverage);
    one(&mut out, FINDS, &s.finds);
    one(&mut out, RESOURCES, &s.resources);
    one(&mut out, SEARCH, &s.search);
    shares(&mut out, &s.resources.shares);
    parts(&mut out, &s.search.parts);
    table(
        &mut out,
        STAGE,
        s.search.stages.iter().map(|stage| (vec![("stage", stage.name.as_ref())], stage)),
    );
    let numbers: Vec<String> = (0..s.domains.len()).map(|index| index.to_string()).collect();
    let domains = s.domains.iter().zip(&numbers).map(|(domain, number)| {
        // Domain names are not unique.
        let of = [("domain", domain.name.as_str()), ("number", number)];
        (of.into_iter().chain([("reducer", domain.reducer.as_ref())]).collect(), domain)
    });
    table(&mut out, DOMAIN, domains);
    let workers = s.workers.iter().map(|worker| (vec![("worker", worker.name.as_str())], worker));
    table(&mut out, WORKER, workers);
    out
}

fn shares(out: &mut String, shares: &Shares) {
    family(
        out,
        "time_ratio",
        "Part of the time that target, hand-over, waiting for a core and fuzzer take",
    );
    let parts = [("target", Some(shares.target)), ("hand_over", shares.hand_over)];
    let rest = [("waiting", shares.waiting), ("fuzzer", shares.fuzzer)];
    let rest = rest.map(|(part, percent)| (part, Some(percent)));
    for (part, percent) in parts.into_iter().chain(rest) {
        if let Some(percent) = percent {
            sample(out, "time_ratio", &[("part", part)], percent / 100.0);
        }
    }
}

fn parts(out: &mut String, parts: &[PartOfTime]) {
    family(out, "part_ratio", "Part of the time that parts with a share of it have taken");
    for PartOfTime { name, used, .. } in parts {
        sample(out, "part_ratio", &[("part", name)], used / 100.0);
    }
}

/// Writes the metrics of the whole campaign, without labels.
fn one<T>(out: &mut String, rows: &[MetricRow<T>], group: &T) {
    table(out, rows, [(Vec::new(), group)].into_iter());
}

/// Writes one metric family per row, with one sample per label set.
fn table<'a, T: 'a>(
    out: &mut String,
    rows: &[MetricRow<T>],
    things: impl Iterator<Item = (Vec<(&'static str, &'a str)>, &'a T)> + Clone,
) {
    for (name, help, value) in rows {
        let mut begun = false;
        for (labels, thing) in things.clone() {
            let Some(value) = value(thing) else { continue };
            if !std::mem::replace(&mut begun, true) {
                family(out, name, help);
            }
            sample(out, name, &labels, value);
        }
    }
}

fn family(out: &mut String, name: &str, help: &str) {
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    let _ = writeln!(out, "# HELP ffuzz_{name} {help}\n# TYPE ffuzz_{name} {kind}");
}

fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    let _ = write!(out, "ffuzz_{name}");
    for (index, (label, text)) in labels.iter().enumerate() {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' });
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(out, "{end} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::CampaignSetup;

    #[test]
    fn numbers_have_their_names_and_labels() {
        let domain = |name: &str, best| DomainStatus {
            name: name.into(),
            reducer: "MAX".into(),
            best,
            ..DomainStatus::default()
        };
        let snapshot = Snapshot {
            runs: Runs { execs: 7, ..Runs::default() },
            setup: CampaignSetup { banner: "a \"b\"\\\n".into(), ..CampaignSetup::default() },
            domains: vec![domain("mem", Some((1, u32::MAX))), domain("mem", None)],
            workers: vec![WorkerStatus { name: "main".into(), execs: 3, ..Default::default() }],
            ..Snapshot::default()
        };
        let text = text(&snapshot);
        for line in [
            "# TYPE ffuzz_execs_total counter",
            "ffuzz_execs_total 7",
            "# TYPE ffuzz_edges_found gauge",
            "ffuzz_domain_best{domain=\"mem\",number=\"0\",reducer=\"MAX\"} 4294967295",
            "ffuzz_domain_keys{domain=\"mem\",number=\"1\",reducer=\"MAX\"} 0",
            "ffuzz_worker_execs_total{worker=\"main\"} 3",
            "ffuzz_time_ratio{part=\"fuzzer\"} 0",
        ] {
            assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{line}: {text}");
        }
        assert!(text.contains(r#",banner="a \"b\"\\\n","#), "{text}");
        // Unknown values are omitted.
        assert!(!text.contains("ffuzz_bugs") && !text.contains("best{domain=\"mem\",number=\"1\""));
    }
}
