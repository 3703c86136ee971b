//! Plain lines for logs and pipes: the start, progress at growing intervals, finds, the end.

use std::io::Write;
use std::path::Path;

use super::format::{clock, count, fit, fit_end, rate};
use super::summary::{domain_name, summary};
use ffuzz_engine::corpus::names::NAME_MAX;
use ffuzz_event::{Event, EventSink, Snapshot};

/// Campaign time between the first two progress lines; the interval then grows to [`LONGEST_MS`].
const FIRST_MS: u64 = 5_000;
const LONGEST_MS: u64 = 60_000;
/// Finds closer together than this share a line.
const FINDS_MS: u64 = 3_000;
/// Maximum number of lines about starting seeds; a large queue has tens of thousands.
const SEED_LINES: usize = 10;
/// Maximum number of domains in a progress line.
const DOMAINS_SHOWN: usize = 4;
/// Maximum width of the place of a domain's best value.
const PLACE_WIDTH: usize = 24;

/// Writes plain lines. Ignores output errors: the campaign does not depend on a reader.
#[derive(Debug)]
pub struct Plain<W> {
    out: W,
    interval_ms: u64,
    next_progress_ms: u64,
    next_find_ms: u64,
    finds: u64,
    /// Finder and name of the last find.
    last_find: String,
    /// First worker that sent an event; messages common to all workers are printed for it only.
    speaker: Option<String>,
}

/// Formats a place as ` @demo.c:16`; brackets mark a key that measures the whole program.
fn located(place: &str) -> String {
    let line = place.rsplit_once(':').map_or("", |(_, line)| line);
    match !line.is_empty() && line.bytes().all(|letter| letter.is_ascii_digit()) {
        true => format!(" @{}", fit_end(place, PLACE_WIDTH)),
        false => format!(" ({place})"),
    }
}

impl<W: Write> Plain<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            interval_ms: FIRST_MS,
            next_progress_ms: 0,
            next_find_ms: 0,
            finds: 0,
            last_find: String::new(),
            speaker: None,
        }
    }

    /// Writes one or more lines.
    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }

    fn seed(&mut self, path: &Path, number: usize, total: usize) {
        let step = total.div_ceil(SEED_LINES).max(1);
        if number == total || number.is_multiple_of(step) {
            self.line(&format!("[*] seed {number} of {total}: {}", file_name(path)));
        }
    }

    fn tick(&mut self, s: &Snapshot) {
        if self.finds > 0 && s.times.run_time_ms >= self.next_find_ms {
            let more = match self.finds {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            self.line(&format!("{}{more}", self.last_find));
            self.finds = 0;
            self.next_find_ms = s.times.run_time_ms + FINDS_MS;
        }
        if s.times.run_time_ms >= self.next_progress_ms {
            self.line(&progress(s));
            self.next_progress_ms = s.times.run_time_ms + self.interval_ms;
            self.interval_ms = (self.interval_ms + self.interval_ms / 4).min(LONGEST_MS);
        }
    }
}

fn file_name(path: &Path) -> String {
    fit(&path.file_name().unwrap_or_default().to_string_lossy(), NAME_MAX)
}

/// Formats one progress line.
fn progress(s: &Snapshot) -> String {
    let bugs = s.finds.bugs.map_or_else(String::new, |bugs| format!(" (bugs {bugs})"));
    let mut text = format!(
        "[{}] {} execs, {}, corpus {}, edges {} ({:.2}%), crashes {}{bugs}, hangs {}, cycles {}",
        clock(s.times.run_time_ms / 1000),
        count(s.runs.execs),
        rate(s.runs.execs_per_sec),
        s.corpus.corpus_count,
        s.coverage.edges_found,
        s.coverage.map_percent(),
        s.finds.saved_crashes,
        s.finds.saved_hangs,
        s.cycles.cycles_done,
    );
    for (index, domain) in s.domains.iter().enumerate().take(DOMAINS_SHOWN) {
        let best = domain.best.map_or_else(|| "-".to_owned(), |(_, value)| value.to_string());
        text.push_str(&format!(", {} {best}", domain_name(index, domain)));
        if !domain.best_place.is_empty() {
            text.push_str(&located(&domain.best_place));
        }
    }
    if let Some(load) = s.resources.load_percent.filter(|_| s.resources.is_overloaded()) {
        text.push_str(&format!(", cpu: {load:.0}%"));
    }
    text
}

impl<W: Write> Plain<W> {
    /// Writes an event after a mark: `+`, `!` or the name of a worker.
    fn event(&mut self, worker: Option<&str>, event: &Event) {
        let mark = |sign: &'static str| worker.unwrap_or(sign);
        match event {
            Event::Started => self.line("[*] fuzzing; Ctrl-C stops"),
            Event::SeedImported { path, index, total, .. } => self.seed(path, *index, *total),
            Event::SeedSaved { path, .. } => {
                self.finds += 1;
                self.last_find = format!("[{}] found {}", mark("+"), file_name(path));
            }
            Event::CrashSaved { path, .. } => {
                self.line(&format!("[{}] crash {}", mark("!"), path.display()));
            }
            Event::HangSaved { path, .. } => {
                self.line(&format!("[{}] hang {}", mark("!"), path.display()));
            }
            Event::CycleFinished { .. } | Event::Reply(_) => {}
            Event::TargetRestarted { reason } => {
                self.line(&format!("[{}] target restarted: {reason}", mark("!")));
            }
            Event::DomainsFound { lines } => self.line(lines.trim_end_matches('\n')),
            Event::Warning { message } => self.line(&format!("[{}] {message}", mark("!"))),
            Event::Notice { message } => self.line(&format!("[{}] {message}", mark("+"))),
            Event::Tick(snapshot) => self.tick(snapshot),
            Event::Stopped { reason, next, snapshot } => {
                self.line(&progress(snapshot));
                self.line(summary(*reason, next, snapshot).trim_end_matches('\n'));
            }
        }
    }
}

impl<W: Write> EventSink for Plain<W> {
    fn handle(&mut self, event: &Event) {
        self.event(None, event);
    }

    fn handle_of(&mut self, worker: &str, event: &Event) {
        let first = self.speaker.get_or_insert_with(|| worker.to_owned()) == worker;
        match event {
            Event::Started | Event::Tick(_) | Event::Stopped { .. } => {}
            Event::SeedImported { .. } | Event::DomainsFound { .. } if !first => {}
            _ => self.event(Some(worker), event),
        }
    }
}
