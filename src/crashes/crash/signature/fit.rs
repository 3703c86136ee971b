//! Fits a signature to another crash with as few changes as possible: adds wildcards to frames, and removes other
//! conditions that do not hold.

use serde_json::{Value, json};

use super::frames::{self, FramePattern};
use super::strings::StringPattern;
use super::symptom::{CrashTexts, Symptom};

/// Maximum number of changes to a list of frames; with more it would match too much.
const MOST_EDITS: usize = 3;
/// List length beyond which only single changes are tried.
const LONGEST: usize = 64;

/// The fitted symptoms, in order.
pub(super) fn symptoms(symptoms: &[Value], seen: &CrashTexts<'_>) -> Vec<Value> {
    let fitted = |value: &Value| match Symptom::parse(value) {
        Ok(symptom) if symptom.matches(seen) => Some(value.clone()),
        Ok(Symptom::StackFrames(_)) => {
            let names = names(value["functionNames"].as_array()?, &seen.crash.info.backtrace)?;
            Some(json!({"type": "stackFrames", "functionNames": names}))
        }
        _ => None,
    };
    symptoms.iter().filter_map(fitted).collect()
}

/// An entry of a list of frames.
struct FrameEntry {
    /// Text in the signature.
    text: String,
    wanted: FramePattern,
}

impl FrameEntry {
    fn new(value: &Value) -> Option<Self> {
        let text = StringPattern::parse(value).ok()?;
        let shown = match (value.as_str(), value["value"].as_str()) {
            (Some(shown), _) => shown.to_owned(),
            (None, Some(shown)) if text.plain().is_none() => format!("/{shown}/"),
            (None, shown) => shown?.to_owned(),
        };
        Some(Self { text: shown, wanted: FramePattern::new(text) })
    }

    fn is_wildcard(&self) -> bool {
        !matches!(self.wanted, FramePattern::Named(_))
    }

    /// True if this entry is plain text and contains `frame`.
    fn includes(&self, frame: &str) -> bool {
        let is_plain = matches!(&self.wanted, FramePattern::Named(text) if text.plain().is_some());
        is_plain && self.text.contains(frame)
    }
}

fn names(list: &[Value], stack: &[String]) -> Option<Vec<String>> {
    let entries: Vec<FrameEntry> = list.iter().map(FrameEntry::new).collect::<Option<_>>()?;
    let edits = Edits {
        stack,
        wildcard: FrameEntry::new(&"?".into())?,
        frames: stack.iter().map(|frame| FrameEntry::new(&frame.as_str().into())).collect(),
    };
    let most = if entries.len() > LONGEST { 1 } else { MOST_EDITS };
    let entries: Vec<&FrameEntry> = entries.iter().collect();
    let mut found = (1..=most).find_map(|count| edits.find(&entries, 0, count))?;
    // Trailing wildcards are redundant.
    while found.pop_if(|last| last.is_wildcard()).is_some() {}
    (!found.is_empty()).then(|| found.into_iter().map(|entry| entry.text.clone()).collect())
}

/// Entries that may be added to a list.
struct Edits<'a> {
    stack: &'a [String],
    wildcard: FrameEntry,
    /// Entries for the frames of the stack; None for one that would be an expression.
    frames: Vec<Option<FrameEntry>>,
}

impl Edits<'_> {
    /// Finds a list with exactly `count` changes from `start` on that matches the stack; of several, the one with the
    /// earliest changes.
    fn find<'e>(
        &'e self,
        list: &[&'e FrameEntry],
        start: usize,
        count: usize,
    ) -> Option<Vec<&'e FrameEntry>> {
        (start..list.len()).find_map(|at| {
            // Inserting before or after a wildcard gives equal results.
            let inserts = at == start || !list[at - 1].is_wildcard();
            let inserted = inserts.then(|| [&list[..at], &[&self.wildcard], &list[at..]].concat());
            let replaced = self.in_place_of(list, at);
            let replaced = replaced.map(|entry| [&list[..at], &[entry], &list[at + 1..]].concat());
            [inserted, replaced].into_iter().flatten().find_map(|changed| match count {
                1 => self.hold(&changed).then_some(changed),
                _ => self.find(&changed, at, count - 1),
            })
        })
    }

    fn in_place_of<'e>(&'e self, list: &[&'e FrameEntry], at: usize) -> Option<&'e FrameEntry> {
        let entry = list[at];
        if entry.is_wildcard() {
            return None;
        }
        // After `???` a position in the list has no fixed position in the stack.
        let is_fixed = !list.iter().any(|entry| matches!(entry.wanted, FramePattern::Any));
        let Some(frame) = self.stack.get(at).filter(|_| is_fixed) else {
            return Some(&self.wildcard);
        };
        match &entry.wanted {
            FramePattern::Named(text) if text.matches(frame) => None,
            _ if entry.includes(frame) => self.frames[at].as_ref().or(Some(&self.wildcard)),
            _ => Some(&self.wildcard),
        }
    }

    fn hold(&self, list: &[&FrameEntry]) -> bool {
        frames::matches(list.iter().map(|entry| &entry.wanted), self.stack)
    }
}
