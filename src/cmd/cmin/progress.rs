//! Progress of the traces on stderr: on a terminal a line that is rewritten, otherwise a line every few seconds.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cmd::tool::say;
use crate::cmin::TraceListener;

const ON_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(5);

pub(super) struct TraceProgress {
    terminal: bool,
    quiet: bool,
    /// `AFL_PRINT_FILENAMES`.
    print_names: bool,
    traced: Mutex<TraceCounts>,
}

struct TraceCounts {
    total: usize,
    done: usize,
    /// Inputs traced by earlier runs, which do not count for the speed.
    before: usize,
    start: Instant,
    /// Time of the last line.
    last: Instant,
}

impl TraceCounts {
    fn new(total: usize, before: usize) -> Self {
        let now = Instant::now();
        Self { total, done: before, before, start: now, last: now }
    }
}

impl TraceProgress {
    pub(super) fn new(quiet: bool, print_names: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { terminal, quiet, print_names, traced: Mutex::new(TraceCounts::new(0, 0)) }
    }

    /// `before` inputs are already traced.
    pub(super) fn begin(&self, total: usize, before: usize) {
        *self.traced() = TraceCounts::new(total, before);
    }

    /// Prints the final state if the line was rewritten.
    pub(super) fn end(&self) {
        if self.terminal && !self.quiet {
            self.show(&self.traced(), "\n");
        }
    }

    fn traced(&self) -> MutexGuard<'_, TraceCounts> {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, traced: &TraceCounts, end: &str) {
        let (done, total) = (traced.done, traced.total);
        let seconds = traced.start.elapsed().as_secs_f64().max(0.001);
        let speed = (done - traced.before) as f64 / seconds;
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let mut out = io::stderr().lock();
        let _ = write!(out, "{start}    Processing file {done}/{total} ({speed:.0}/s){end}");
        let _ = out.flush();
    }
}

impl TraceListener for TraceProgress {
    fn reads(&self, path: &Path) -> io::Result<()> {
        if !self.print_names {
            return Ok(());
        }
        let line = format!("Processing {}\n", path.display());
        match io::stdout().lock().write_all(line.as_bytes()) {
            // A closed pipe is not an error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    fn traced(&self, inputs: usize) {
        let mut traced = self.traced();
        traced.done += inputs;
        let interval = if self.terminal { ON_TERMINAL } else { ELSEWHERE };
        if !self.quiet && traced.last.elapsed() >= interval {
            traced.last = Instant::now();
            self.show(&traced, if self.terminal { "" } else { "\n" });
        }
    }

    fn starts_over(&self) {
        let text = "[!] With snapshots the target reaches other edges than with fork: repeating all \
                    runs with fork.";
        say(self.quiet, text);
        let total = self.traced().total;
        self.begin(total, 0);
    }

    fn warns(&self, text: &str) {
        say(false, &format!("[!] {text}"));
    }
}
