//! Source files by unreached lines, their functions, and the lines of a function.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{DIM, List, NEW, TextPart, answer, entries, untabbed};
use crate::format::{count, fit, fit_end, percent};
use crate::screen::facts::Facts;

/// Maximum number of entries requested.
const MOST: u64 = 100;
/// Number of lines shown above the first line of a function.
const ABOVE: u64 = 3;

/// The list of all files.
pub(super) struct FileList<'a> {
    facts: &'a Facts,
    files: Vec<FileEntry>,
    why: String,
}

/// An entry of the answer to `coverage`.
#[derive(Deserialize)]
struct FileEntry {
    file: String,
    /// Reached lines and all lines.
    lines: [u64; 2],
    /// Entered functions and all functions.
    functions: [u64; 2],
}

/// The list of the functions of a file.
pub(super) struct FunctionList<'a> {
    facts: &'a Facts,
    file: &'a str,
    functions: Vec<Function>,
    why: String,
}

/// An entry of the answer to `coverage` with a `file`.
#[derive(Deserialize)]
struct Function {
    function: String,
    line: u32,
    entered: bool,
    inputs: u64,
    /// Edges hit and all edges.
    edges: [u64; 2],
}

/// The file listed in `row`; None if the row no longer exists.
pub(crate) fn file_in_row(facts: &Facts, row: usize) -> Option<String> {
    FileList::of(facts).files.into_iter().nth(row).map(|file| file.file)
}

/// The entries of an answer, and the reason if there are none.
fn listed_entries<T: DeserializeOwned>(facts: &Facts, question: Value) -> (Vec<T>, String) {
    match answer(facts, question) {
        Ok(answer) => (
            entries(answer),
            "No line of the target is known: build it with ffuzz-cc, or with -g.".into(),
        ),
        Err(why) => (Vec::new(), why),
    }
}

impl<'a> FileList<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let (files, why) = listed_entries(facts, json!({"cmd": "coverage", "limit": MOST}));
        Self { facts, files, why }
    }
}

impl List for FileList<'_> {
    fn header(&self) -> String {
        " unreached  lines reached      functions  file".into()
    }

    fn len(&self) -> usize {
        self.files.len()
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let FileEntry { file, lines: [reached, lines], functions: [entered, functions] } =
            &self.files[index];
        let row = format!(
            " {:>9}  {:>5.1} % of {:>6} {:>7} of {:>4}  ",
            count(lines.saturating_sub(*reached)),
            percent(*reached, *lines),
            count(*lines),
            count(*entered),
            count(*functions),
        );
        let room = width.saturating_sub(row.chars().count());
        Line::raw(row + &fit_end(file, room))
    }

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let Some(file) = self.files.get(index) else { return Vec::new() };
        let functions = FunctionList::of(self.facts, &file.file);
        if functions.functions.is_empty() {
            return vec![Line::raw(fit(&format!(" {}", functions.why), part.width))];
        }
        let mut lines = vec![Line::styled(fit(&functions.header(), part.width), DIM)];
        let shown = functions.len().min(part.scroll + part.height.saturating_sub(1));
        lines.extend((part.scroll..shown).map(|index| functions.row(index, part.width)));
        lines
    }

    fn empty(&self) -> String {
        self.why.clone()
    }
}

impl<'a> FunctionList<'a> {
    pub(super) fn of(facts: &'a Facts, file: &'a str) -> Self {
        let question = json!({"cmd": "coverage", "file": file, "limit": MOST});
        let (functions, why) = listed_entries(facts, question);
        Self { facts, file, functions, why }
    }
}

impl List for FunctionList<'_> {
    fn header(&self) -> String {
        " edges reached   inputs    line  function".into()
    }

    fn len(&self) -> usize {
        self.functions.len()
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let Function { function, line, entered, inputs, edges: [hit, all] } =
            &self.functions[index];
        let text = format!(" {hit:>5} of {all:>4} {:>8} {line:>7}  {function}", count(*inputs));
        Line::styled(fit(&text, width), if *entered { Style::new() } else { DIM })
    }

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let Some(function) = self.functions.get(index) else { return Vec::new() };
        let above = u64::from(function.line).saturating_sub(ABOVE + 1) + part.scroll as u64;
        let question = json!({
            "cmd": "coverage", "file": self.file, "lines": true, "after": above, "limit": part.height,
        });
        let answer = match answer(self.facts, question) {
            Ok(answer) => answer,
            Err(why) => return vec![Line::raw(fit(&format!(" {why}"), part.width))],
        };
        let lines = answer["lines"].as_array().into_iter().flatten();
        lines.filter_map(|line| listed(line, part.width)).take(part.height).collect()
    }

    fn empty(&self) -> String {
        self.why.clone()
    }
}

/// Formats a source line from `[line, state, text]`. `state` is the number of inputs, with a leading `~` if it was
/// derived from other lines, or null.
fn listed(line: &Value, width: usize) -> Option<Line<'static>> {
    let (number, text) = (line[0].as_u64()?, line[2].as_str()?);
    let state = line[1].as_str().unwrap_or_default();
    let inputs = state.trim_start_matches('~').parse().ok().map_or_else(String::new, count);
    let style = match state {
        "" => DIM,
        "0" => super::BAD,
        state if state.starts_with('~') => Style::new(),
        _ => NEW,
    };
    let rest = fit(&format!("{number:>6} {}", untabbed(text)), width.saturating_sub(8));
    Some(Line::from(vec![Span::styled(format!(" {inputs:>6} "), style), Span::styled(rest, style)]))
}
