//! How far the traces are, on stderr: a line that is rewritten on a terminal, else one every few seconds.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const ON_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    total: usize,
    done: usize,
    /// Those of earlier runs say nothing about the speed.
    before: usize,
    start: Instant,
    last: Instant,
    terminal: bool,
    quiet: bool,
}

impl Progress {
    pub(super) fn new(total: usize, done: usize, quiet: bool) -> Self {
        let now = Instant::now();
        let terminal = io::stderr().is_terminal();
        Self { total, done, before: done, start: now, last: now, terminal, quiet }
    }

    pub(super) fn start_over(&mut self) {
        *self = Self::new(self.total, 0, self.quiet);
    }

    pub(super) fn add(&mut self, inputs: usize) {
        self.done += inputs;
        let interval = if self.terminal { ON_TERMINAL } else { ELSEWHERE };
        if !self.quiet && self.last.elapsed() >= interval {
            self.last = Instant::now();
            self.show(if self.terminal { "" } else { "\n" });
        }
    }

    /// The last state, if it was shown line over line.
    pub(super) fn end(&self) {
        if self.terminal && !self.quiet {
            self.show("\n");
        }
    }

    fn show(&self, end: &str) {
        let (done, total) = (self.done, self.total);
        let speed = (done - self.before) as f64 / self.start.elapsed().as_secs_f64().max(0.001);
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let mut out = io::stderr().lock();
        let _ = write!(out, "{start}    Processing file {done}/{total} ({speed:.0}/s){end}");
        let _ = out.flush();
    }
}
