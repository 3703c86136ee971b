//! Bugs, and crashes that are not grouped yet.

use ratatui::text::Line;
use serde::Deserialize;
use serde_json::json;

use super::{BAD, DIM, List, STRONG, TextPart, entries, fact};
use crate::format::{count, fit, short_time};
use crate::screen::facts::Facts;

/// Maximum number of entries requested.
const MOST: u64 = 100;

pub(super) struct Bugs<'a> {
    facts: &'a Facts,
    bugs: Vec<BugEntry>,
    why: String,
}

/// An entry of the answer to `bugs`.
#[derive(Deserialize)]
struct BugEntry {
    id: String,
    title: String,
    place: Option<String>,
    files: u64,
    seen: Option<[u64; 2]>,
    input: String,
}

/// The answer to `bug`.
#[derive(Deserialize)]
struct Details {
    stacks: Stacks,
    reproduce: Option<String>,
}

#[derive(Deserialize)]
struct Stacks {
    crash: Vec<String>,
    allocation: Vec<String>,
    free: Vec<String>,
}

impl<'a> Bugs<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let crashes = facts.snapshot.finds.saved_crashes;
        let (mut bugs, mut why) = (Vec::new(), "No crash so far.".to_owned());
        if crashes > 0 {
            match facts.answers.get(json!({"cmd": "bugs", "limit": MOST})) {
                Some(Ok(answer)) => {
                    bugs = entries(answer);
                    let warnings = answer["warnings"].as_array().into_iter().flatten();
                    let warnings: Vec<&str> =
                        warnings.filter_map(serde_json::Value::as_str).collect();
                    why =
                        format!("{crashes} crashes, no bug is known yet.\n{}", warnings.join("\n"));
                }
                Some(Err(error)) => why = format!("not known: {error}"),
                None => why = format!("{crashes} crashes …"),
            }
        }
        Self { facts, bugs, why }
    }

    fn stacks(&self, bug: &BugEntry, width: usize) -> Vec<Line<'static>> {
        let details = match self.facts.answers.get(json!({"cmd": "bug", "bug": bug.id})) {
            Some(Ok(answer)) => Details::deserialize(answer).map_err(|error| error.to_string()),
            Some(Err(error)) => Err(error.to_owned()),
            None => Err("…".to_owned()),
        };
        let details = match details {
            Ok(details) => details,
            Err(error) => return vec![Line::raw(format!(" {error}"))],
        };
        let mut lines = Vec::new();
        lines.extend(details.reproduce.map(|script| fact("reproduce", &script, width)));
        let Stacks { crash, allocation, free } = details.stacks;
        for (name, frames) in [("crash", crash), ("allocated", allocation), ("freed", free)] {
            if frames.is_empty() {
                continue;
            }
            lines.push(Line::default());
            lines.push(Line::styled(format!(" {name}"), DIM));
            let frames = (0..).zip(frames);
            lines.extend(
                frames.map(|(number, frame)| {
                    Line::raw(fit(&format!("  #{number:<3} {frame}"), width))
                }),
            );
        }
        lines
    }
}

impl List for Bugs<'_> {
    fn header(&self) -> String {
        " files  first seen  bug".into()
    }

    fn len(&self) -> usize {
        self.bugs.len()
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let bug = &self.bugs[index];
        let seen = bug.seen.map_or_else(|| "-".to_owned(), |[seconds, _]| short_time(seconds));
        let text = format!(" {:>5}  {seen:>10}  {}", count(bug.files), bug.title);
        Line::styled(fit(&text, width), BAD)
    }

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let Some(bug) = self.bugs.get(index) else { return Vec::new() };
        let mut lines = vec![Line::styled(fit(&format!(" {}", bug.title), part.width), STRONG)];
        lines.push(fact("bug", &bug.id, part.width));
        lines.extend(bug.place.as_ref().map(|place| fact("place", place, part.width)));
        if let Some([seconds, runs]) = bug.seen {
            let text = format!("after {} and {} runs", short_time(seconds), count(runs));
            lines.push(fact("first seen", &text, part.width));
        }
        lines.push(fact("input", &bug.input, part.width));
        lines.extend(self.stacks(bug, part.width));
        part.of(lines)
    }

    fn empty(&self) -> String {
        self.why.clone()
    }
}
