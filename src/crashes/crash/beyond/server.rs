//! Crash data that the server's parser can read: never a text that it answers with 500.

use std::fmt::Write;

use super::{readers, reports};
use crate::crash::info::{CrashInfo, CrashMessage, MessageSource, Output, ProgramInfo};

/// Crash data to send with this output: unchanged if the server finds all known frames in them, else the one report
/// that it can read, else the parsed facts in gdb's form.
#[must_use]
pub fn for_server(output: &Output, info: &CrashInfo) -> String {
    let read = |crash_data: &str| {
        let sent = Output { crash_data: crash_data.to_owned(), ..output.clone() };
        let read = crate::crash::parse(&sent, &ProgramInfo::default());
        read.refused.is_none().then_some(read.backtrace)
    };
    let own = std::iter::once(output.crash_data.clone()).chain(reports::cuts(output));
    let same = own.into_iter().find(|own| read(own).as_ref() == Some(&info.backtrace));
    same.unwrap_or_else(|| {
        let gdb = gdb(info);
        let is_whole = read(&gdb).is_some_and(|frames| frames.len() == info.backtrace.len());
        if is_whole { gdb } else { self::gdb(&CrashInfo::default()) }
    })
}

/// All three texts to send. Replaced crash data remain readable, after stderr. Create signatures for the server from
/// the result of `parse` on these texts.
#[must_use]
pub fn to_send(output: &Output, info: &CrashInfo) -> Output {
    let crash_data = for_server(output, info);
    if crash_data == output.crash_data || output.crash_data.is_empty() {
        return Output { crash_data, ..output.clone() };
    }
    let end = if output.stderr.is_empty() || output.stderr.ends_with('\n') { "" } else { "\n" };
    let stderr = format!("{}{end}{}", output.stderr, output.crash_data);
    let whole = Output { stderr, ..output.clone() };
    Output { crash_data: for_server(&whole, info), ..whole }
}

/// Formats the facts like a debugger's output.
fn gdb(info: &CrashInfo) -> String {
    let signal = match info.class.split_whitespace().next() {
        Some("SEGV" | "SIGSEGV" | "stack-overflow") => "SIGSEGV, Segmentation fault",
        Some("FPE" | "SIGFPE") => "SIGFPE, Arithmetic exception",
        Some("ILL" | "SIGILL") => "SIGILL, Illegal instruction",
        Some("BUS" | "SIGBUS") => "SIGBUS, Bus error",
        Some("SIGTRAP") => "SIGTRAP, Trace/breakpoint trap",
        _ => "SIGABRT, Aborted",
    };
    let mut text = format!("Program received signal {signal}.\n");
    // Writing to a text cannot fail.
    for (number, name) in info.backtrace.iter().enumerate() {
        let _ = writeln!(text, "#{number}  {} ()", readers::gdb_name(name));
    }
    if let Some(address) = info.address {
        let _ = writeln!(text, "Crash Address: {address:#x}");
    }
    for (name, value) in &info.registers {
        let _ = writeln!(text, "{name}\t{value:#x}");
    }
    // Signatures search the message in crash data if it was there.
    for line in [&info.message, &info.auxiliary].into_iter().flatten().flat_map(in_crash_data) {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn in_crash_data(message: &CrashMessage) -> &[String] {
    if message.source == MessageSource::CrashData { &message.lines } else { &[] }
}
