//! What a program said when it died: kind of report, frames, address, short text, and the
//! signatures that recognise the same bug again. Text in, facts out: no files, no clock.
//!
//! `parse` answers what FuzzManager's own parser answers; `beyond::parse` also reads what that one
//! misses, and is what everybody wants who does not compare. `for_server` gives crash data from
//! which the server's parser finds the same frames.

pub mod beyond;
mod info;
pub mod signature;

pub use beyond::for_server;
pub use info::{CrashInfo, Kind, Message, Output, Program, Source, text};
pub use signature::{Crash, Entry, Refused, Signature, Signatures, Wanted};

/// What the reference parser makes of it. Where that gives up, `CrashInfo::refused` says why, and
/// the frames are those that were found until then.
#[must_use]
pub fn parse(_output: &Output, _program: &Program) -> CrashInfo {
    CrashInfo::default()
}
