//! Crash reports: kind of report, frames, address, short text, and signatures that recognise the same bug. Text in,
//! facts out: no files, no clock.
//!
//! `parse` gives the same results as FuzzManager's parser; `beyond::parse` also reads output that this one misses, and
//! is the right one except for comparisons. `for_server` gives crash data in which the server's parser finds the same
//! frames.

mod address;
pub mod beyond;
mod class;
mod foreign;
mod frames;
mod gdb;
mod hash;
mod identity;
mod info;
mod kind;
mod lines;
mod message;
mod names;
mod pattern;
mod reports;
mod sanitizers;
mod short;
pub mod signature;
mod valgrind;

pub use beyond::{for_server, to_send};
pub use hash::StableHasher;
pub use identity::{Identity, is_of_system};
pub use info::{CrashInfo, CrashMessage, MessageSource, Output, ProgramInfo, ReportKind, text};
pub use names::{canonical, is_machinery};
pub use signature::{
    CollectedSignature, CrashFacts, Signature, SignatureError, SignatureOptions, Signatures,
};

/// The reference parser's result. If it fails, `CrashInfo::refused` holds the reason, and the frames are those found
/// until then.
#[must_use]
pub fn parse(output: &Output, _program: &ProgramInfo) -> CrashInfo {
    let stderr = lines::lines(&output.stderr);
    let crash_data = lines::lines(&output.crash_data);
    let report = if crash_data.is_empty() { &stderr } else { &crash_data };
    let mut info = CrashInfo { kind: kind::of(&crash_data, &stderr), ..CrashInfo::default() };
    info.refused = read(report, &mut info).err();
    info.backtrace = info.backtrace.drain(..).map(frames::without_hash).collect();
    let message = message::first(message::program, &stderr, &crash_data);
    info.message = message.map(|(source, lines)| CrashMessage { source, lines });
    let said = message::first(message::sanitizer, &stderr, &crash_data);
    info.odd_auxiliary = said.as_ref().is_some_and(|(_, said)| said.is_odd());
    let said = said.filter(|(_, said)| !said.lines.is_empty());
    info.auxiliary = said.map(|(source, said)| CrashMessage { source, lines: said.lines });
    info.class = class::of(report, &info);
    match short::text(&info, report) {
        Ok(text) => info.short = text,
        Err((text, reason)) => {
            info.short = text;
            info.refused.get_or_insert(reason);
        }
    }
    info
}

fn read(report: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    match info.kind {
        ReportKind::Asan => return sanitizers::asan(report, info),
        ReportKind::Ubsan => return sanitizers::ubsan(report, info),
        ReportKind::Lsan => return sanitizers::lsan(report, info),
        ReportKind::Valgrind => return valgrind::read(report, info),
        ReportKind::Apple => return foreign::apple(report, info),
        ReportKind::Gdb => return gdb::read(report, info),
        ReportKind::Minidump => return reports::minidump(report, info),
        ReportKind::Cdb => foreign::cdb(report, info),
        ReportKind::Tsan => sanitizers::tsan(report, info),
        ReportKind::Rust => reports::rust(report, info),
        _ => {}
    }
    Ok(())
}
