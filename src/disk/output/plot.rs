//! `plot_data`: the campaign over time, at most one row every five seconds.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ffuzz_event::{Event, EventSink, Snapshot};
use ffuzz_sys::file;

/// Seconds between two rows.
const INTERVAL_S: u64 = 5;

/// First line of the file.
pub const HEADER: &str = "# relative_time, cycles_done, cur_item, corpus_count, pending_total, \
    pending_favs, map_size, saved_crashes, saved_hangs, max_depth, execs_per_sec, total_execs, \
    edges_found\n";

/// One row of the file.
#[must_use]
pub fn row(s: &Snapshot) -> String {
    format!(
        "{}, {}, {}, {}, {}, {}, {:.2}%, {}, {}, {}, {:.2}, {}, {}\n",
        s.times.run_time_ms / 1000,
        s.cycles.cycles_done,
        s.turn.current.map_or(0, |id| id.0),
        s.corpus.corpus_count,
        s.corpus.pending_total,
        s.corpus.pending_favored,
        s.coverage.map_percent(),
        s.finds.saved_crashes,
        s.finds.saved_hangs,
        s.corpus.max_depth,
        s.runs.execs_per_sec,
        s.runs.execs,
        s.coverage.edges_found,
    )
}

/// A parsed row: the thirteen columns of [`HEADER`]. AFL before 4.0 wrote eleven; the others are then 0.
pub type PlotRow = [f64; 13];

/// Parses all readable rows, of any fuzzer.
#[must_use]
pub fn parse(text: &str) -> Vec<PlotRow> {
    let row = |line: &str| {
        let mut row = PlotRow::default();
        let mut columns = 0;
        for (column, field) in row.iter_mut().zip(line.split(',')) {
            let number = field.trim().trim_end_matches('%').parse::<f64>().ok()?;
            *column = Some(number).filter(|number| number.is_finite())?;
            columns += 1;
        }
        (columns >= 11).then_some(row)
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect()
}

/// The last row of an instance's file, read from its end.
#[must_use]
pub fn last_row(instance: &Path) -> Option<PlotRow> {
    const TAIL: u64 = 4096;
    let file = file::open(&instance.join("plot_data")).ok()?;
    let length = file.metadata().ok()?.len();
    let start = length.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(length - start).ok()?];
    file.read_exact_at(&mut tail, start).ok()?;
    let text = String::from_utf8_lossy(&tail);
    // The first and the last line may be incomplete.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let whole = if start == 0 { whole } else { whole.split_once('\n')?.1 };
    parse(whole).pop()
}

/// Values of which one must differ for a new row: all but clocks and run counters.
type RowState = [u64; 9];

fn state(s: &Snapshot) -> RowState {
    [
        s.cycles.cycles_done,
        s.turn.current.map_or(0, |id| id.0.into()),
        s.corpus.corpus_count,
        s.corpus.pending_total,
        s.corpus.pending_favored,
        s.coverage.edges_found,
        s.finds.saved_crashes,
        s.finds.saved_hangs,
        s.corpus.max_depth.into(),
    ]
}

/// Appends rows to the file ([`super::OutputDir`] removes an old one unless the campaign is resumed). If a write fails,
/// the next row replaces it.
#[derive(Debug)]
pub struct PlotFile {
    path: PathBuf,
    /// Time of the last row, by a clock that may be set back.
    written: u64,
    last: Option<RowState>,
}

impl PlotFile {
    #[must_use]
    pub fn new(instance: &Path) -> Self {
        Self { path: instance.join("plot_data"), written: 0, last: None }
    }

    fn write(&mut self, s: &Snapshot) {
        if self.append(&row(s)).is_ok() {
            self.written = s.times.now;
            self.last = Some(state(s));
        }
    }

    fn append(&self, row: &str) -> io::Result<()> {
        let mut file = file::append(&self.path)?;
        let before = file.metadata()?.len();
        let first = self.last.is_none();
        let text = match before {
            0 => format!("{HEADER}{row}"),
            // A killed process may leave an incomplete row.
            _ if first && !ends_with_line(&self.path, before)? => format!("\n{row}"),
            _ => row.to_owned(),
        };
        file.write_all(text.as_bytes()).inspect_err(|_| {
            // Readers split by lines: remove an incomplete row.
            let _ = file.set_len(before);
        })
    }
}

fn ends_with_line(path: &Path, length: u64) -> io::Result<bool> {
    let mut last = [0];
    file::open(path)?.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}

impl EventSink for PlotFile {
    fn handle(&mut self, event: &Event) {
        match event {
            Event::Tick(s)
                if s.times.now.abs_diff(self.written) >= INTERVAL_S
                    && self.last != Some(state(s)) =>
            {
                self.write(s);
            }
            Event::Stopped { snapshot, .. } => self.write(snapshot),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::{Corpus, Coverage, Runs, StopReason, Times};

    #[test]
    fn what_was_written_is_read_again_and_damage_passed_over() {
        let s = Snapshot {
            times: Times { run_time_ms: 7_000, ..Times::default() },
            runs: Runs { execs: 9, ..Runs::default() },
            coverage: Coverage { edges_found: 3, ..Coverage::default() },
            ..Snapshot::default()
        };
        let text = format!("{HEADER}{}1, 2, x\n{}\n", row(&s), "nan, ".repeat(13));
        let rows = parse(&text);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0][0], rows[0][11], rows[0][12]), (7.0, 9.0, 3.0));
        let classic = "1500000000, 1, 2, 3, 4, 5, 6.78%, 0, 0, 2, 99.5\n";
        assert_eq!(parse(classic)[0][10..], [99.5, 0.0, 0.0]);
    }

    #[test]
    fn rows_come_every_five_seconds_if_something_changed() {
        let dir = tempfile::tempdir().expect("folder");
        let mut sink = PlotFile::new(dir.path());
        let mut s = Snapshot {
            times: Times { now: 100, run_time_ms: 2_500, ..Times::default() },
            corpus: Corpus { corpus_count: 3, ..Corpus::default() },
            coverage: Coverage { edges_found: 5, map_size: 64, ..Coverage::default() },
            runs: Runs { execs: 1000, execs_per_sec: 400.0, ..Runs::default() },
            ..Snapshot::default()
        };
        sink.handle(&Event::Tick(Box::new(s.clone())));
        s.corpus.corpus_count = 4;
        s.times.now = 104;
        sink.handle(&Event::Tick(Box::new(s.clone())));
        s.times.now = 105;
        sink.handle(&Event::Tick(Box::new(s.clone())));
        s.times.now = 200;
        s.runs.execs = 2000;
        sink.handle(&Event::Tick(Box::new(s.clone())));
        // A clock that is set back does not stop them.
        s.times.now = 50;
        s.corpus.corpus_count = 5;
        sink.handle(&Event::Tick(Box::new(s.clone())));
        // A second process continues the same file.
        let mut sink = PlotFile::new(dir.path());
        sink.handle(&Event::Stopped {
            reason: StopReason::User,
            next: vec![],
            snapshot: Box::new(s),
        });
        let text = std::fs::read_to_string(dir.path().join("plot_data")).expect("file");
        assert_eq!(
            text,
            "# relative_time, cycles_done, cur_item, corpus_count, pending_total, pending_favs, \
             map_size, saved_crashes, saved_hangs, max_depth, execs_per_sec, total_execs, \
             edges_found\n\
             2, 0, 0, 3, 0, 0, 7.81%, 0, 0, 0, 400.00, 1000, 5\n\
             2, 0, 0, 4, 0, 0, 7.81%, 0, 0, 0, 400.00, 1000, 5\n\
             2, 0, 0, 5, 0, 0, 7.81%, 0, 0, 0, 400.00, 2000, 5\n\
             2, 0, 0, 5, 0, 0, 7.81%, 0, 0, 0, 400.00, 2000, 5\n"
        );
    }
}
