//! Creates a signature from a crash: its message, its innermost frames and, if these are not enough or on request,
//! address and instruction.

use serde_json::{Value, json};

use super::SignatureOptions;
use crate::crash::info::{CrashInfo, CrashMessage, MessageSource};
use crate::crash::pattern;

/// Number of innermost frames that must be known; one of them may be missing.
const NEEDED: usize = 4;
/// Addresses below count as a null pointer with an offset.
const NEAR_NULL: u64 = 0x100;

/// The symptoms as JSON; None if the crash has too little information to be recognized again.
pub(in crate::crash) fn symptoms(info: &CrashInfo, wanted: SignatureOptions) -> Option<Vec<Value>> {
    let mut symptoms = outputs(info)?;
    let top = &info.backtrace[..wanted.frames.min(info.backtrace.len())];
    let named = top.iter().rposition(|frame| frame != "??").map_or(0, |last| last + 1);
    if named > 0 {
        let names: Vec<&str> = top[..named].iter().map(|frame| wildcard(frame)).collect();
        symptoms.push(json!({"type": "stackFrames", "functionNames": names}));
    }
    let unknown = top.iter().take(NEEDED).filter(|frame| *frame == "??").count();
    let misses = NEEDED.saturating_sub(top.len()) + unknown;
    let is_weak = misses >= 2 && info.message.is_none() && info.auxiliary.is_none();
    let with_instruction = wanted.force_instruction || (is_weak && info.instruction.is_some());
    if symptoms.is_empty() && !with_instruction {
        return None;
    }
    if is_weak || wanted.force_address {
        symptoms.push(json!({"type": "crashAddress", "address": address(info.address)}));
    }
    if with_instruction {
        let name = info.instruction.as_ref()?;
        symptoms.push(json!({"type": "instruction", "instructionName": name}));
    }
    Some(symptoms)
}

fn wildcard(frame: &str) -> &str {
    if frame == "??" { "?" } else { frame }
}

fn address(address: Option<u64>) -> &'static str {
    match address {
        None => "",
        Some(address) if address < NEAR_NULL => "< 0x100",
        Some(_) => "> 0xFF",
    }
}

fn outputs(info: &CrashInfo) -> Option<Vec<Value>> {
    let Some(message) = info.message.as_ref().or(info.auxiliary.as_ref()) else {
        return Some(vec![]);
    };
    let output = |line: &String| json!({"type": "output", "src": source(message), "value": pattern::of(line)});
    Some(message.lines.iter().map(output).collect())
}

fn source(message: &CrashMessage) -> &'static str {
    match message.source {
        MessageSource::Stderr => "stderr",
        MessageSource::CrashData => "crashdata",
    }
}
