//! The yield and cost of stages, of parts of the search and of foreign mutators.

use ratatui::text::Line;

use super::{DIM, List, NEW, TextPart};
use crate::format::{count, fit, percent};
use ffuzz_event::Snapshot;

/// Minimum number of runs for a rate.
const FEW_RUNS: u64 = 1000;

pub(super) struct StagesPage<'a> {
    s: &'a Snapshot,
    /// Finds and runs of all stages.
    all: (u64, u64),
}

impl<'a> StagesPage<'a> {
    pub(super) fn of(s: &'a Snapshot) -> Self {
        let stages = s.search.stages.iter();
        let all = stages.fold((0, 0), |sum, it| (sum.0 + it.finds, sum.1 + it.execs));
        Self { s, all }
    }

    /// Formats the rows of parts and mutators, below the stages.
    fn below(&self, index: usize) -> String {
        let (parts, mutators) = (&self.s.search.parts, &self.s.mutators);
        if let Some(part) = parts.get(index) {
            let name = part.name.replace('_', " ");
            return format!(
                " {:<16} {:>5.1} % of the time, at most {:.0} %",
                fit(&name, 16),
                part.used,
                part.share
            );
        }
        let Some(it) = mutators.get(index - parts.len()) else { return String::new() };
        format!(
            " {:<16} {:>7} finds {:>8} calls  {:>5.1} % of the time  {} failures",
            fit(&it.name, 16),
            count(it.finds),
            count(it.calls),
            it.time_percent,
            count(it.failures)
        )
    }
}

impl List for StagesPage<'_> {
    fn header(&self) -> String {
        " stage              finds     runs  of all runs  finds per million runs".into()
    }

    fn len(&self) -> usize {
        let Snapshot { search, mutators, .. } = self.s;
        match search.stages.is_empty() {
            true => 0,
            false => search.stages.len() + search.parts.len() + mutators.len(),
        }
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let Some(stage) = self.s.search.stages.get(index) else {
            let text = self.below(index - self.s.search.stages.len());
            return Line::styled(fit(&text, width), DIM);
        };
        // A rate of few runs is noise.
        let rate = match stage.execs {
            ..FEW_RUNS => "-".to_owned(),
            runs => format!("{:.1}", percent(stage.finds, runs) * 10_000.0),
        };
        let text = format!(
            " {:<16} {:>7} {:>8} {:>10.1} % {rate:>22}",
            fit(&stage.name, 16),
            count(stage.finds),
            count(stage.execs),
            percent(stage.execs, self.all.1),
        );
        let current = self.s.turn.stage == stage.name;
        Line::styled(fit(&text, width), if current { NEW } else { ratatui::style::Style::new() })
    }

    fn text(&self, _index: usize, part: TextPart) -> Vec<Line<'static>> {
        let times = &self.s.times;
        let minutes = |ms: u64| format!("{:.1} min", ms as f64 / 60_000.0);
        let row = |name: &str, value: String| super::fact(name, &value, part.width);
        let lines = vec![
            row("all stages", format!("{} finds, {} runs", count(self.all.0), count(self.all.1))),
            row("at work", self.s.turn.stage.clone()),
            row(
                "trimmed",
                format!(
                    "{:.1} % of the bytes, {} runs",
                    self.s.search.trimmed_percent,
                    count(self.s.search.trim_execs)
                ),
            ),
            row("dictionary", format!("{} words found", count(self.s.search.dictionary_entries))),
            row("calibration", minutes(times.calibration_ms)),
            row("comparisons", minutes(times.comparisons_ms)),
            row("trimming", minutes(times.trim_ms)),
            row("sync", minutes(times.sync_ms)),
        ];
        part.of(lines)
    }

    fn empty(&self) -> String {
        "The folder does not tell what stages have brought.".into()
    }
}
