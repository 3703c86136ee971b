//! Formats a trace as lines or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::args::Args;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{exit_name, to_json};
use crate::engine::domain::KeyNames;
use crate::exec::trace::{TraceStep, TracedRun};
use crate::inspect::code::{Code, Spot};

/// Version of the JSON format; adding a field does not change it.
const JSON_VERSION: u32 = 1;

/// A line: one step, or all executions of a block.
#[derive(Debug)]
pub(super) struct TraceRow {
    /// The first step of the line.
    pub(super) step: TraceStep,
    pub(super) count: u32,
    /// True if there may have been more executions.
    pub(super) is_least: bool,
    /// Index in the edge map.
    pub(super) edge: Option<usize>,
}

impl TraceRow {
    pub(super) fn new(step: TraceStep) -> Self {
        Self { step, count: 0, is_least: false, edge: None }
    }

    /// Takes the target's own counter into account. The counter is modulo 256, so it is a lower bound. It exceeds an
    /// exact count if one thread passes the place while another is stopped there.
    pub(super) fn join(&mut self, counter: u32) {
        if !self.is_least && counter <= self.count {
            return;
        }
        self.is_least = true;
        self.count = if counter < self.count { counter + 256 } else { counter };
    }
}

/// The parts of a run to show.
pub(super) struct ShownParts<'a> {
    pub(super) files: &'a [Code],
    pub(super) rows: Vec<TraceRow>,
    pub(super) run: &'a TracedRun,
    /// Domain keys and their values.
    pub(super) keys: &'a [(u32, u32)],
    pub(super) names: &'a KeyNames,
}

impl ShownParts<'_> {
    fn code(&self, row: &TraceRow) -> &Code {
        &self.files[row.step.file as usize]
    }

    fn spot(&self, row: &TraceRow) -> Spot {
        self.code(row).spot(row.step.block as usize)
    }
}

/// Formats a place as `libx.so+0x1234`.
pub(super) fn place(code: &Code, spot: &Spot) -> String {
    format!("{}+{:#x}", code.name, spot.offset)
}

/// Formats a place as `parser.c:12`; empty without debug information.
pub(super) fn line(spot: &Spot) -> String {
    match (spot.file.rsplit('/').next(), spot.line) {
        (Some(file), line) if line > 0 => format!("{file}:{line}"),
        _ => String::new(),
    }
}

pub(super) fn render(args: &Args, shown: &ShownParts<'_>) -> Result<String, Failure> {
    if args.json { json(args, shown) } else { Ok(lines(args, shown)) }
}

fn lines(args: &Args, shown: &ShownParts<'_>) -> String {
    let threads = shown.rows.iter().any(|row| row.step.thread > 0);
    let mut text = String::new();
    for row in &shown.rows {
        let (spot, mut cells) = (shown.spot(row), String::new());
        if threads && args.steps {
            let _ = write!(cells, "t{:<3} ", row.step.thread);
        }
        let _ = write!(cells, "{:<32}", place(shown.code(row), &spot));
        if !args.steps {
            let least = if row.is_least { "+" } else { "" };
            let _ = write!(cells, " {:>7}", format!("{}{least}", row.count));
        }
        if let Some(edge) = row.edge {
            let _ = write!(cells, " {:>7}", format!("#{edge}"));
        }
        let _ = write!(cells, "  {:<32}  {}", spot.function, line(&spot));
        text += cells.trim_end();
        text.push('\n');
    }
    for (key, value) in shown.keys {
        let _ = write!(text, "dsf[{key}] = {value}");
        for name in shown.names.names(*key).into_iter().take(1) {
            let _ =
                write!(text, "  {}  {}  {}  {}", name.domain, name.place, name.function, name.what);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    target: String,
    /// `ok`, `crash`, `hang`, `oom`.
    exit: &'static str,
    signal: Option<i32>,
    modules: Vec<Module<'a>>,
    blocks: Vec<BlockRow>,
    dsf: Vec<TracedKey>,
}

#[derive(Serialize)]
struct Module<'a> {
    name: &'a str,
    path: String,
    /// True if the blocks are the places of counters.
    counters: bool,
    /// Number of known blocks.
    size: usize,
}

#[derive(Serialize)]
struct BlockRow {
    module: u32,
    offset: u64,
    /// Index in the edge map, as showmap numbers it.
    edge: Option<usize>,
    count: u32,
    /// True if `count` is exact.
    counted: bool,
    thread: u32,
    function: String,
    file: String,
    line: u32,
}

#[derive(Serialize)]
struct TracedKey {
    key: u32,
    value: u32,
    domain: Option<String>,
    place: Option<String>,
    function: Option<String>,
    what: Option<String>,
}

fn json(args: &Args, shown: &ShownParts<'_>) -> Result<String, Failure> {
    let modules = shown.files.iter().map(|code| Module {
        name: &code.name,
        path: code.path.display().to_string(),
        counters: code.is_counted(),
        size: code.size(),
    });
    let block = |row: &TraceRow| {
        let Spot { offset, function, file, line } = shown.spot(row);
        BlockRow {
            module: row.step.file,
            offset,
            edge: row.edge,
            count: row.count,
            counted: !row.is_least,
            thread: row.step.thread,
            function,
            file,
            line,
        }
    };
    let key = |(key, value): &(u32, u32)| {
        let name = shown.names.names(*key).into_iter().next();
        let (domain, place, function, what) = name
            .map(|name| (name.domain, name.place, name.function, name.what))
            .map_or((None, None, None, None), |(a, b, c, d)| (Some(a), Some(b), Some(c), Some(d)));
        TracedKey { key: *key, value: *value, domain, place, function, what }
    };
    let (exit, signal) = exit_name(shown.run.ended.exit);
    let document = Document {
        version: JSON_VERSION,
        target: args.target.command[0].to_string_lossy().into_owned(),
        exit,
        signal,
        modules: modules.collect(),
        blocks: shown.rows.iter().map(block).collect(),
        dsf: shown.keys.iter().map(key).collect(),
    };
    to_json(&document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_a_lower_bound() {
        let joined = |count, is_least, counter| {
            let step = TraceStep { file: 0, block: 0, thread: 0 };
            let mut row = TraceRow { count, is_least, ..TraceRow::new(step) };
            row.join(counter);
            (row.count, row.is_least)
        };
        assert_eq!(joined(3, false, 3), (3, false));
        assert_eq!(joined(8, true, 44), (44, true));
        // The counter has wrapped at 255.
        assert_eq!(joined(8, true, 4), (260, true));
        assert_eq!(joined(3, false, 5), (5, true));
    }
}
