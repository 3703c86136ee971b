//! The event log, newest first.

use ratatui::style::Style;
use ratatui::text::Line;

use super::{BAD, DIM, List, TextPart, WARN};
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

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let line = self.line(index);
        let letters: Vec<char> = line.text.chars().collect();
        let pieces = letters.chunks(part.width.saturating_sub(2).max(1));
        let line = |piece: &[char]| fit(&piece.iter().collect::<String>(), part.width);
        part.of(pieces.map(|piece| Line::raw(format!(" {}", line(piece)))).collect())
    }

    fn empty(&self) -> String {
        "Nothing has happened yet.".into()
    }
}
