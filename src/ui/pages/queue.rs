//! The inputs of the queue, newest first.

use std::fs;

use ratatui::text::Line;

use super::{DIM, List, STRONG, TextPart, fact};
use crate::format::{count, fit, short_time};
use crate::screen::facts::{Facts, QueueEntry};
use ffuzz_sys::file;

/// Maximum number of bytes shown of an input.
const MOST_BYTES: u64 = 16 << 10;
const BYTES_A_LINE: usize = 16;

pub(super) struct QueueFiles<'a>(pub(super) &'a Facts);

impl QueueFiles<'_> {
    fn entry(&self, index: usize) -> Option<&QueueEntry> {
        let entries = &self.0.queue.entries;
        entries.get(entries.len().checked_sub(index + 1)?)
    }

    fn has_instances(&self) -> bool {
        let mut all = self.0.queue.entries.iter().map(|entry| &entry.instance);
        let first = all.next();
        all.any(|other| Some(other) != first)
    }
}

/// The parents and operators of an input.
fn origin(entry: &QueueEntry) -> String {
    let name = &entry.name;
    if let Some(orig) = &name.orig {
        return format!("seed {orig}");
    }
    let from = match (name.src, name.other) {
        (Some(one), Some(other)) => format!("{one:06}+{other:06}"),
        (Some(one), None) => format!("{one:06}"),
        _ => String::new(),
    };
    match (&name.peer, &name.op) {
        (Some(peer), _) => format!("{from} of {peer}"),
        (None, Some(op)) => format!("{from} by {op}"),
        (None, None) => from,
    }
}

fn brought(entry: &QueueEntry) -> &'static str {
    match (entry.name.new_edge, entry.name.waypoint) {
        (true, true) => "edge, value",
        (true, false) => "edge",
        (false, true) => "value",
        (false, false) => "",
    }
}

impl List for QueueFiles<'_> {
    fn header(&self) -> String {
        " input      found       size  runs     new          from".into()
    }

    fn len(&self) -> usize {
        self.0.queue.entries.len()
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let Some(entry) = self.entry(index) else { return Line::default() };
        let name = &entry.name;
        let size = fs::metadata(&entry.path).map_or_else(|_| "-".into(), |it| count(it.len()));
        let found = name.time.map_or_else(|| "-".into(), |ms| short_time(ms / 1000));
        let runs = name.execs.map_or_else(|| "-".into(), count);
        let who = match self.has_instances() {
            true => format!("{}: ", entry.instance),
            false => String::new(),
        };
        let text = format!(
            " id:{:06}  {found:>6} {size:>9}  {runs:<7}  {:<11}  {who}{}",
            name.id,
            brought(entry),
            origin(entry)
        );
        Line::raw(fit(&text, width))
    }

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let Some(entry) = self.entry(index) else { return Vec::new() };
        let file = entry.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = entry.path.parent().unwrap_or(&entry.path).display().to_string();
        let bytes = file::read(&entry.path, MOST_BYTES).unwrap_or_default();
        let length = fs::metadata(&entry.path).map_or(0, |it| it.len());
        let mut lines = vec![
            Line::styled(fit(&format!(" {file}"), part.width), STRONG),
            fact("in", &folder, part.width),
            fact("size", &format!("{length} bytes"), part.width),
            Line::default(),
        ];
        let dump = (0..).step_by(BYTES_A_LINE).zip(bytes.chunks(BYTES_A_LINE));
        lines.extend(dump.map(|(at, bytes)| dumped(at, bytes, part.width)));
        if length > MOST_BYTES {
            lines.push(Line::styled(" … the rest is in the file", DIM));
        }
        if bytes.is_empty() {
            lines.push(Line::styled(" The file is empty, or cannot be read.", DIM));
        }
        part.of(lines)
    }

    fn empty(&self) -> String {
        "The queue has no input yet.".into()
    }
}

/// A hex dump line with the printable characters.
fn dumped(at: usize, bytes: &[u8], width: usize) -> Line<'static> {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let letter = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
    let letters: String = bytes.iter().map(letter).collect();
    Line::raw(fit(&format!(" {at:>6x}  {:<48} {letters}", hex.join(" ")), width))
}
