//! Crash data in gdb's form, for crashes without a sanitizer report: from gdb itself, or from ffuzz's own trace.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::frames::StackTrace;
use super::helper::ask;
use super::symbols::{Symbol, Symbolizer};
pub(super) use ffuzz_sys::traced::FATAL;

/// Time that a debugger needs before the target runs.
pub(super) const DEBUGGER_START: Duration = Duration::from_secs(30);
/// gdb commands that describe a stopped process.
const ACCOUNT: [&str; 3] = ["bt 128", "info registers", "x/2i $pc"];

/// Signals by number, with gdb's names and texts.
const SIGNALS: [(i32, &str, &str); 9] = [
    (libc::SIGSEGV, "SIGSEGV", "Segmentation fault"),
    (libc::SIGABRT, "SIGABRT", "Aborted"),
    (libc::SIGBUS, "SIGBUS", "Bus error"),
    (libc::SIGILL, "SIGILL", "Illegal instruction"),
    (libc::SIGFPE, "SIGFPE", "Arithmetic exception"),
    (libc::SIGTRAP, "SIGTRAP", "Trace/breakpoint trap"),
    (libc::SIGSYS, "SIGSYS", "Bad system call"),
    (libc::SIGKILL, "SIGKILL", "Killed"),
    (libc::SIGTERM, "SIGTERM", "Terminated"),
];

/// `SIGSEGV`, or `SIG42`.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let known = SIGNALS.iter().find(|(number, ..)| *number == signal);
    known.map_or_else(|| format!("SIG{signal}"), |(_, name, _)| (*name).to_owned())
}

/// Command line prefix that runs the target under gdb up to one of these signals.
pub(super) fn gdb_words(gdb: &Path, signals: &[i32]) -> Vec<OsString> {
    let names: Vec<String> = signals.iter().map(|signal| signal_name(*signal)).collect();
    let stop = format!("handle {} stop print nopass", names.join(" "));
    let run = [
        "set startup-with-shell off",
        // With a fixed layout the crash may differ.
        "set disable-randomization off",
        "handle all nostop noprint pass",
        &stop,
        "run",
    ];
    let mut words = quiet(gdb, &run);
    words.push("--args".into());
    words
}

/// gdb's output about a core file of this program; None if it is late.
pub(super) fn of_core(gdb: &Path, program: &Path, core: &Path) -> Option<String> {
    let mut words = quiet(gdb, &[]);
    words.extend([program.into(), core.into()]);
    let printed = ask(&words, DEBUGGER_START).ok().flatten()?;
    gdb_part(&printed).map(str::to_owned)
}

/// gdb without prompts and without auto-loaded files, which runs `commands` and describes the process.
fn quiet(gdb: &Path, commands: &[&str]) -> Vec<OsString> {
    let early = ["set debuginfod enabled off", "set auto-load off"];
    let form = ["set pagination off", "set confirm off", "set width 0"];
    let mut words: Vec<OsString> = vec![gdb.into(), "-nx".into(), "-batch".into()];
    words.extend(early.iter().flat_map(|command| ["-iex".into(), command.into()]));
    let commands = form.iter().chain(commands).chain(&ACCOUNT);
    words.extend(commands.flat_map(|command| ["-ex".into(), command.into()]));
    words
}

/// gdb's own part of the output: from the line about the signal on. None if the signal did not occur.
pub(super) fn gdb_part(printed: &str) -> Option<&str> {
    let frames = printed.find("\n#0 ")?;
    let marks = [" received signal SIG", "Program terminated with signal "];
    let at = marks.iter().filter_map(|mark| printed[..frames].rfind(mark)).max()?;
    let start = printed[..at].rfind('\n').map_or(0, |newline| newline + 1);
    Some(printed[start..].trim_end())
}

/// Crash data in gdb's form from ffuzz's own trace of the process.
pub(super) fn self_made(trace: &StackTrace, symbolizer: Option<&Symbolizer>) -> String {
    let mut text = String::new();
    let words = SIGNALS.iter().find(|(number, ..)| *number == trace.signal);
    let words = words.map_or("Unknown signal", |(_, _, words)| words);
    let _ = writeln!(text, "Program received signal {}, {words}.", signal_name(trace.signal));
    let symbols = symbolizer.map(|known| known.symbols(&trace.frames)).unwrap_or_default();
    let unnamed = vec![vec![Symbol::default()]; trace.frames.len()];
    let symbols = if symbols.is_empty() { unnamed } else { symbols };
    let frames = trace.frames.iter().zip(symbols);
    let frames = frames.flat_map(|(frame, all)| all.into_iter().map(move |symbol| (frame, symbol)));
    for (number, (frame, symbol)) in frames.enumerate() {
        let name = symbol.function.as_deref().unwrap_or("??");
        let place = match (symbol.source, &frame.place) {
            (Some(source), _) => format!(" at {source}"),
            (None, Some((path, _))) => format!(" from {}", path.display()),
            (None, None) => String::new(),
        };
        let _ = writeln!(text, "#{number}  {:#018x} in {name} (){place}", frame.address);
    }
    if let Some(address) = trace.address {
        let _ = writeln!(text, "Crash Address: {address:#x}");
    }
    for (name, value) in &trace.registers {
        let _ = writeln!(text, "{name}\t{value:#x}\t{value}");
    }
    if let (Some(trap), Some(frame)) = (&trace.trap, trace.frames.first()) {
        let _ = writeln!(text, "=> {:#x}:\t{trap}", frame.address);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triage::frames::CodeAddress;

    #[test]
    fn gdb_speaks_from_the_signal_on() {
        let printed = "hello\nThread 2 \"x\" received signal SIGSEGV, Segmentation fault.\nf () at \
                       a.c:1\n1\tf();\n#0  f () at a.c:1\nrax            0x0   0\n\n";
        let part = gdb_part(printed).unwrap();
        assert!(part.starts_with("Thread 2 \"x\" received signal SIGSEGV") && part.ends_with("0"));
        assert_eq!(gdb_part("[Inferior 1 (process 7) exited normally]\nNo stack.\n"), None);
    }

    #[test]
    fn without_a_debugger_the_form_is_the_same() {
        let trace = StackTrace {
            signal: 11,
            address: Some(4),
            registers: vec![("rax", 16)],
            frames: vec![CodeAddress { address: 0x1234, place: Some(("/lib/a.so".into(), 0x34)) }],
            trap: Some("ud1    0x12(%eax),%eax".to_owned()),
        };
        let expected = "Program received signal SIGSEGV, Segmentation fault.\n\
                        #0  0x0000000000001234 in ?? () from /lib/a.so\n\
                        Crash Address: 0x4\nrax\t0x10\t16\n\
                        => 0x1234:\tud1    0x12(%eax),%eax\n";
        assert_eq!(self_made(&trace, None), expected);
        assert_eq!(signal_name(35), "SIG35");
    }
}
