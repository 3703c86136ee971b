//! Comparison sites reported by other instrumentation than ours (`runtime/comparisons.c`): the calls of its
//! functions in the machine code.

use std::fs;
use std::path::Path;

use iced_x86::Mnemonic;

use crate::blocks;
use crate::callees::{Call, Callees};
use crate::code::Code;
use crate::lines::{DebugInfo, Frame, decoder, written};
use ffuzz_engine::domain::Site;

const PREFIX: &str = "__sanitizer_cov_trace_";

/// Comparison sites of a file; `is_program` is false for a library.
pub(crate) fn of_file(path: &Path, is_program: bool) -> Vec<Site> {
    sites(path, is_program).unwrap_or_default()
}

fn sites(path: &Path, is_program: bool) -> Option<Vec<Site>> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let callbacks = Callees::of(&file, what);
    if callbacks.is_empty() {
        return None;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let first = number_of(if is_program { "" } else { &name });
    let (code, source) = (Code::decoded(path)?, DebugInfo::read(&file));
    let mut sites = Vec::new();
    for range in &code.blocks().ranges {
        let bytes = blocks::code(&file, range).unwrap_or_default();
        for instruction in &mut decoder(bytes, range.start) {
            // A jump would return elsewhere.
            let is_call = instruction.mnemonic() == Mnemonic::Call;
            let call = is_call.then(|| callbacks.called(&instruction)).flatten();
            let Some(Call { callee: what, .. }) = call else { continue };
            let at = instruction.ip();
            let frame = source.frame(at);
            let frame = frame.filter(|frame| !frame.file.is_empty()).unwrap_or_else(|| Frame {
                function: written(&code.function(at)),
                file: format!("{name}+{:#x}", code.offset_of(at)),
                ..Frame::default()
            });
            sites.push(Site {
                domain: "log".into(),
                key: first.wrapping_add(instruction.next_ip() as u32),
                count: 1,
                file: frame.file.into(),
                line: frame.line,
                column: frame.column,
                function: frame.function.into(),
                what: what.into(),
            });
        }
    }
    Some(sites)
}

/// Kind of the comparison that a function reports.
fn what(name: &str) -> Option<&'static str> {
    let Some(kind) = name.strip_prefix(PREFIX) else {
        return ["__wrap_memcmp", "__wrap_bcmp"].contains(&name).then_some("memory");
    };
    Some(match kind.strip_prefix("const_").unwrap_or(kind) {
        "cmp1" => "i8",
        "cmp2" => "i16",
        "cmp4" | "div4" => "i32",
        "cmp8" | "div8" => "i64",
        "cmpf" => "float",
        "cmpd" => "double",
        "switch" => "switch",
        _ => return None,
    })
}

/// `number_of` of `runtime/comparisons.c`: FNV-1a.
fn number_of(name: &str) -> u32 {
    let add = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        assert_eq!(what("__sanitizer_cov_trace_const_cmp4"), Some("i32"));
        assert_eq!(what("__sanitizer_cov_trace_switch"), Some("switch"));
        assert_eq!(what("__sanitizer_cov_trace_div8"), Some("i64"));
        assert_eq!(what("__sanitizer_cov_trace_pc_guard"), None);
        assert_eq!((what("__wrap_bcmp"), what("memcmp")), (Some("memory"), None));
        // Reference values of the FNV authors.
        assert_eq!((number_of(""), number_of("a")), (0x811c_9dc5, 0xe40c_292c));
    }
}
