//! Outputs that the reference parser misses: sanitizer reports with other headlines, several reports in one text,
//! current Rust panics, glibc's aborts, checks that trap, Python; and their form for the server.

mod heap;
mod readers;
mod reports;
mod server;
mod signature;
mod traps;

use super::info::{CrashInfo, CrashMessage, MessageSource, Output, ProgramInfo, ReportKind};
use super::lines::lines;
use super::short;
use readers::Reading;
pub use server::{for_server, to_send};
pub use signature::signature;

/// Like `super::parse`; where that finds nothing or fails, uses other readers.
#[must_use]
pub fn parse(output: &Output, program: &ProgramInfo) -> CrashInfo {
    let mut info = stack(output, program);
    if info.message.is_none() && info.kind == ReportKind::Gdb && info.class == "SIGABRT" {
        // The debugger shows the stack, the program's message the cause.
        let (stderr, crash_data) = (lines(&output.stderr), lines(&output.crash_data));
        if let Some(found) = readers::own_message(&stderr, &crash_data) {
            (info.message, info.place) = (Some(found.said), found.place);
            info.short = short::beyond(&info);
        }
    }
    if let Some(check) = info.instruction.as_deref().and_then(traps::check)
        && ["SIGILL", "SIGTRAP"].contains(&info.class.as_str())
    {
        info.class = check.to_owned();
    }
    if ["SIGABRT", "SIGSEGV"].contains(&info.class.as_str())
        && let Some(report) = heap::report(&output.stderr)
    {
        info.class = report.class.to_owned();
        let lines = vec![report.line.to_owned()];
        info.message = Some(CrashMessage { source: MessageSource::Stderr, lines });
        info.short = short::beyond(&info);
    }
    info
}

fn stack(output: &Output, program: &ProgramInfo) -> CrashInfo {
    let mut info = super::parse(output, program);
    let is_read = info.refused.is_none() && !info.backtrace.is_empty();
    if is_read {
        return info;
    }
    let refused = info.refused.take();
    if refused.is_some()
        && let Some(other) = single_report(output, program)
    {
        return CrashInfo { refused, ..other };
    }
    info.refused = refused;
    if !info.backtrace.is_empty() {
        return info;
    }
    let (stderr, crash_data) = (lines(&output.stderr), lines(&output.crash_data));
    if let Some(found) = readers::find(&stderr, &crash_data) {
        add(found, &mut info);
    }
    info
}

/// Parses one report cut out of a text that the reference cannot parse as a whole.
fn single_report(output: &Output, program: &ProgramInfo) -> Option<CrashInfo> {
    reports::cuts(output).into_iter().find_map(|crash_data| {
        let info = super::parse(&Output { crash_data, ..output.clone() }, program);
        (info.refused.is_none() && !info.backtrace.is_empty()).then_some(info)
    })
}

fn add(found: Reading, info: &mut CrashInfo) {
    info.kind = found.kind;
    info.backtrace = found.backtrace;
    info.address = match found.kind {
        // The reference reports 0 for every panic.
        ReportKind::Rust => None,
        _ => info.address.or(found.address),
    };
    info.class = found.class;
    info.place = found.place;
    if info.message.is_none() && info.auxiliary.is_none() {
        match found.kind {
            ReportKind::Msan | ReportKind::LibFuzzer | ReportKind::Asan => {
                info.auxiliary = Some(found.said)
            }
            _ => info.message = Some(found.said),
        }
    }
    info.short = short::beyond(info);
}
