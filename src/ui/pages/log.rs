//! The event log, newest first.

use ratatui::style::Style;
use ratatui::text::Line;

use super::{BAD, DIM, List, TextSize, WARN, window};
use crate::format::{clock, fit};
use crate::screen::facts::{Facts, LogLine, Weight};

pub(super) struct LogPage<'a>(pub(super) &'a Facts);

impl LogPage<'_> {
    fn line(&self, index: usize) -> &LogLine {
        &self.0.log[self.0.log.len() - 1 - index]
    }
}

fn style(weight: Weight) -> Style {
    match weight {
        Weight::Usual => Style::new(),
        Weight::Notice => DIM,
        Weight::Warning => WARN,
        Weight::Crash => BAD,
    }
}

impl List for LogPage<'_> {
    fn header(&self) -> String {
        " time       what".into()
    }

    fn len(&self) -> usize {
        self.0.log.len()
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let line = self.line(index);
        let who = if line.who.is_empty() { String::new() } else { format!("{}: ", line.who) };
        let text = format!(" {:<9}  {who}{}", clock(line.time / 1000), line.text);
        Line::styled(fit(&text, width), style(line.weight))
    }

    fn text(
        &self,
        index: usize,
        TextSize { width, height }: TextSize,
        scroll: usize,
        _is_open: bool,
    ) -> Vec<Line<'static>> {
        let line = self.line(index);
        let letters: Vec<char> = line.text.chars().collect();
        let parts = letters.chunks(width.saturating_sub(2).max(1));
        let parts = parts
            .map(|part| Line::raw(format!(" {}", fit(&part.iter().collect::<String>(), width))));
        window(parts.collect(), height, scroll)
    }

    fn empty(&self) -> String {
        "Nothing has happened yet.".into()
    }
}
