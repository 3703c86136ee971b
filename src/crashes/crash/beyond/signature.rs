//! Signatures beyond the reference's: they leave out the machinery through which a program ends, and sizes and other
//! numbers of the input; they include the place of a panic or an assertion.

use serde_json::{Value, json};

use crate::crash::info::{CrashInfo, ReportKind};
use crate::crash::lines::{Lazy, regex};
use crate::crash::names::{canonical, hang, inside_of_hook, is_entry, is_machinery, is_named};
use crate::crash::pattern;
use crate::crash::signature::{Signature, SignatureOptions, symptoms};

/// Wildcard for any number of frames in a signature.
const ANY: &str = "???";

static SIZE: Lazy = Lazy::new(|| regex(r"((?:READ|WRITE) of size )(?:\[0-9\]\{2,\}|[0-9])"));
static THREAD: Lazy = Lazy::new(|| regex(r"( thread )T[0-9]+"));
/// Gap between two closing template brackets: clang 14 writes a space, clang 19 none.
static BRACKETS: Lazy = Lazy::new(|| regex(r"(?<=>) ?(?=>)"));
/// Resolved offset in this run.
static COMMENT: Lazy = Lazy::new(|| regex(r"\s+# 0x[0-9a-f]+$"));
/// Jump target: an address of this run. Shorter numbers are constants.
static PLACE: Lazy = Lazy::new(|| regex(r"([\s,]0x)[0-9a-f]{5,}$"));

/// Like [`Signature::create`]. Also matches what the server reads of the same crash.
#[must_use]
pub fn signature(info: &CrashInfo, wanted: SignatureOptions) -> Option<Signature> {
    let (skipped, own) = own_frames(&info.backtrace);
    let own = CrashInfo { backtrace: own.to_vec(), ..info.clone() };
    // A panic or an assertion has no address.
    let gives_up =
        info.message.is_some() && !matches!(info.kind, ReportKind::Asan | ReportKind::Ubsan);
    let force_address = wanted.force_address && !gives_up;
    let mut symptoms = symptoms(&own, SignatureOptions { force_address, ..wanted })?;
    if let Some(said) = said(info) {
        let source = symptoms.iter().find(|symptom| symptom["type"] == "output").cloned()?;
        symptoms.retain(|symptom| symptom["type"] != "output");
        let output =
            |value: String| json!({"type": "output", "src": source["src"], "value": value});
        symptoms.splice(0..0, said.into_iter().map(output));
    }
    for symptom in &mut symptoms {
        match symptom["type"].as_str() {
            Some("stackFrames") => {
                let names = symptom["functionNames"].as_array_mut()?;
                names.iter_mut().for_each(in_any_spelling);
                if skipped {
                    names.insert(0, json!(ANY));
                }
            }
            Some("instruction") => {
                symptom["instructionName"] = of_every_run(symptom["instructionName"].as_str()?);
            }
            Some("output") => symptom["value"] = general(symptom["value"].as_str()?),
            _ => {}
        }
    }
    Signature::of(symptoms)
}

/// The frames from the innermost of the program's own functions to its entry function, and true if frames before them
/// were skipped.
fn own_frames(backtrace: &[String]) -> (bool, &[String]) {
    let is_own = |name: &String| is_named(name) && !is_machinery(name);
    let hook = inside_of_hook(backtrace);
    let Some(first) = backtrace[hook..].iter().position(is_own).map(|first| hook + first) else {
        return (false, backtrace);
    };
    // A frame without a name may be the program's.
    let known = backtrace[..first].iter().rposition(|name| is_named(name));
    let first = known.map_or(0, |last| last + 1);
    let entry = backtrace[first..].iter().position(|name| is_entry(&canonical(name)));
    let end = entry.map_or(backtrace.len(), |entry| first + entry + 1);
    (first > 0, &backtrace[first..end])
}

/// Location and text of a panic or an assertion, without parts of the input.
fn said(info: &CrashInfo) -> Option<Vec<String>> {
    let identity = info.identity("");
    if let Some(line) = identity.said().filter(|line| hang(line).is_some()) {
        // Matches the whole line: `hang in f` is not `hang in f2`.
        return Some(vec![format!("/{}$/", fancy_regex::escape(line))]);
    }
    let (place, words) = identity.said()?.split_once(' ')?;
    let place = place.rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok())?;
    let literal = |text: &str| fancy_regex::escape(text).into_owned();
    let place = format!("{}:{}", literal(place.0), place.1);
    match identity.cause() {
        "panic" if info.place.is_none() => {
            let place = format!(r"/panicked at (.*[/ ])?{place}(:[0-9]+)+/");
            // The message only up to the first value.
            let words = words.split(['N', '\'', '[', '{']).next().unwrap_or_default().trim_end();
            let words = (!words.is_empty()).then(|| pattern::of(words));
            Some(std::iter::once(place).chain(words).collect())
        }
        "assertion" => Some(vec![format!("/{place}: .*{}/", literal(words))]),
        _ => None,
    }
}

/// Matches a name in the spelling of any compiler.
fn in_any_spelling(name: &mut Value) {
    let Some(text) = name.as_str().filter(|text| text.contains(">>") || text.contains("> >"))
    else {
        return;
    };
    let literal = fancy_regex::escape(text);
    *name = json!(format!("/{}/", BRACKETS.replace_all(&literal, " ?")));
}

/// Removes the addresses of this run from an instruction.
fn of_every_run(instruction: &str) -> Value {
    let text = COMMENT.replace(instruction, "");
    json!(PLACE.replace(&text, "$1"))
}

/// Generalizes sizes and thread numbers.
fn general(pattern: &str) -> Value {
    let pattern = SIZE.replace_all(pattern, "${1}[0-9]+");
    json!(THREAD.replace_all(&pattern, "${1}T[0-9]+"))
}
