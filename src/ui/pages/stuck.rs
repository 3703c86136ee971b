//! Places that inputs reach but where at least one outcome never occurs.

use ratatui::text::Line;
use serde::Deserialize;
use serde_json::json;

use super::{DIM, List, STRONG, TextPart, answer, entries, excerpt, fact};
use crate::format::{count, fit, fit_end};
use crate::screen::facts::Facts;
use ffuzz_event::BlockedComparison;

/// Maximum number of entries requested.
const MOST: u64 = 60;
/// Maximum number of never-entered functions requested.
const MOST_FUNCTIONS: u64 = 100;
/// Number of lines with facts above the source.
const FACTS: usize = 8;

pub(super) struct StuckPlaces<'a> {
    facts: &'a Facts,
    places: Vec<BlockedComparison>,
    /// The reason why the list is empty.
    why: Option<String>,
}

/// An entry of the answer to `stuck`.
#[derive(Deserialize)]
struct Entry {
    file: String,
    line: u32,
    function: String,
    to_line: u32,
    outcome: String,
    behind: Option<u64>,
    functions_behind: u64,
    copies: u64,
    input: Option<String>,
    comparison: Option<Comparison>,
}

#[derive(Default, Deserialize)]
struct Comparison {
    kind: String,
    closest: String,
    bytes: Vec<(usize, usize)>,
    attempts: u64,
}

#[derive(Deserialize)]
struct NeverEntered {
    function: String,
    file: String,
    line: u32,
    counters: u32,
    reason: String,
}

impl From<Entry> for BlockedComparison {
    fn from(it: Entry) -> Self {
        let comparison = it.comparison.unwrap_or_default();
        Self {
            file: it.file,
            line: it.line,
            function: it.function,
            to: it.to_line,
            outcome: it.outcome,
            behind: it.behind,
            functions: it.functions_behind,
            copies: it.copies,
            comparison: comparison.kind,
            operands: comparison.closest,
            bytes: comparison.bytes,
            attempts: comparison.attempts,
            path: it.input.map(Into::into),
            ..Self::default()
        }
    }
}

impl<'a> StuckPlaces<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let (places, why) = match facts.knows_stuck {
            true => (facts.snapshot.blockers.clone(), None),
            false => asked(facts),
        };
        Self { facts, places, why }
    }

    /// Lists the functions that no input enters.
    fn functions(&self, part: TextPart) -> Vec<Line<'static>> {
        if !part.is_open {
            return vec![Line::styled(
                " Enter: functions that no input enters, and who may call them",
                DIM,
            )];
        }
        let question = json!({"cmd": "never_entered", "limit": MOST_FUNCTIONS});
        let answer = match answer(self.facts, question) {
            Ok(answer) => answer,
            Err(why) => return vec![Line::raw(format!(" {why}"))],
        };
        let mut lines = vec![Line::styled(" edges  called by  function", DIM)];
        lines.extend(entries(answer).into_iter().map(|it: NeverEntered| {
            let by = match it.reason.as_str() {
                "caller" => "reached",
                "pointer" => "pointer",
                _ => "nobody",
            };
            let file = it.file.rsplit('/').next().unwrap_or_default();
            let place = if it.line > 0 { format!("  {file}:{}", it.line) } else { String::new() };
            let text = format!(" {:>5}  {by:<9}  {}{place}", it.counters, it.function);
            Line::raw(fit(&text, part.width))
        }));
        if lines.len() == 1 {
            lines.push(Line::raw(" Every function that the target has was entered."));
        }
        lines
    }
}

/// Requests the list from an analysis of the folder.
fn asked(facts: &Facts) -> (Vec<BlockedComparison>, Option<String>) {
    match answer(facts, json!({"cmd": "stuck", "limit": MOST})) {
        Ok(answer) => (entries::<Entry>(answer).into_iter().map(Into::into).collect(), None),
        Err(why) => (Vec::new(), Some(why)),
    }
}

/// Formats a place as `png.c:77`, or as the function.
pub(super) fn place(it: &BlockedComparison) -> String {
    match it.file.rsplit('/').next() {
        Some(file) if !file.is_empty() => format!("{file}:{}", it.line),
        _ => it.function.clone(),
    }
}

/// The closest operands, or the outcome if they are unknown.
fn closest(it: &BlockedComparison) -> String {
    match it.operands.as_str() {
        "" => it.outcome.clone(),
        operands => operands.replace(" and ", " "),
    }
}

/// The `id:000123` of the seed's path.
fn seed(it: &BlockedComparison) -> String {
    let name = it.path.as_ref().and_then(|path| path.file_name()).unwrap_or_default();
    let name = name.to_string_lossy();
    name.split(',').next().unwrap_or_default().to_owned()
}

impl List for StuckPlaces<'_> {
    fn header(&self) -> String {
        " behind  at                      closest so far               tries  input".into()
    }

    fn len(&self) -> usize {
        match (&self.why, self.places.len()) {
            (Some(_), _) => 0,
            // The extra row lists never-entered functions.
            (None, count) => count + 1,
        }
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let Some(it) = self.places.get(index) else {
            let text = match self.places.len() {
                0 => " No place is known yet.  Functions never entered: Enter",
                _ => " Functions never entered: Enter",
            };
            return Line::styled(text, DIM);
        };
        // Width beyond 80 columns goes to the operands.
        let room = 28 + width.saturating_sub(80);
        let row = format!(
            " {:>6}  {:<22}  {:<room$} {:>5}  {:<9}",
            it.behind.map_or_else(|| "?".into(), count),
            fit_end(&place(it), 22),
            fit(&closest(it), room),
            count(it.attempts),
            seed(it),
        );
        Line::raw(fit(&row, width))
    }

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let Some(it) = self.places.get(index) else { return part.of(self.functions(part)) };
        let at = if it.line > 0 { format!("{}:{}", it.file, it.line) } else { it.function.clone() };
        let bytes = it.bytes.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let bytes = bytes.collect::<Vec<_>>().join(", ");
        let behind = match (it.behind, it.functions) {
            (None, _) => "not known".into(),
            (Some(edges), 0) => format!("{edges} edges"),
            (Some(edges), functions) => format!("{edges} edges, also in {functions} functions"),
        };
        let copies = if it.copies > 1 { format!(" ({} copies)", it.copies) } else { String::new() };
        let to = if it.to > 0 { format!(", to line {}", it.to) } else { String::new() };
        let mut lines = vec![
            Line::styled(fit_end(&format!(" {at}"), part.width), STRONG),
            fact("function", &format!("{}{copies}", it.function), part.width),
            fact("behind", &(behind + &to), part.width),
            fact("result", &it.outcome, part.width),
        ];
        let input = it.path.as_ref().map_or_else(String::new, |it| it.display().to_string());
        for (name, value) in [
            ("comparison", &it.comparison),
            ("closest", &it.operands),
            ("bytes", &bytes),
            ("input", &input),
        ] {
            lines.extend((!value.is_empty()).then(|| fact(name, value, part.width)));
        }
        lines.push(Line::default());
        let below = TextPart { height: part.height.saturating_sub(FACTS + 1), ..part };
        lines.extend(excerpt(&it.file, it.line, below));
        part.of(lines)
    }

    fn empty(&self) -> String {
        self.why.clone().unwrap_or_default()
    }
}
