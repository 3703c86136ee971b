//! Parsers for old Rust panics, and for minidumps as printed by a stack walker.

use super::frames::clean;
use super::info::CrashInfo;
use super::lines::{Lazy, capture, found, hex, regex};

pub(super) static QUOTED_PANIC: Lazy = Lazy::new(|| regex(r"^thread .*? panicked at '.+$"));
static RUST_FRAME: Lazy = Lazy::new(|| regex(r"^ +\d+: (?: *0x[0-9a-f]+ - )?(.+)$"));
static RUST_PLACE: Lazy = Lazy::new(|| regex(r"^ +at /[^:]*:\d+$"));

/// Panics of Rust before 1.73, with the message in quotes.
pub(super) fn rust(lines: &[&str], info: &mut CrashInfo) {
    info.address = Some(0);
    let Some(start) = lines.iter().position(|line| found(&QUOTED_PANIC, line)) else { return };
    let mut is_inside = false;
    for line in &lines[start + 1..] {
        if let Some(name) = capture(&RUST_FRAME, line) {
            is_inside = true;
            info.backtrace.push(name.to_owned());
        } else if is_inside && !found(&RUST_PLACE, line) {
            break;
        }
    }
}

pub(super) fn minidump(lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    let mut crashed = None;
    for line in lines {
        let fields: Vec<&str> = line.split('|').collect();
        match (fields[0], crashed) {
            ("Crash", None) => {
                let address = fields.get(2).copied().unwrap_or_default();
                info.address = hex(address.strip_prefix("0x").unwrap_or(address));
                info.address.ok_or("a minidump names no address")?;
                let thread = fields.get(3).filter(|thread| thread.parse::<i64>().is_ok());
                crashed = Some(*thread.ok_or("a minidump names no thread")?);
            }
            (thread, Some(wanted)) if thread == wanted => {
                info.backtrace.push(minidump_name(&fields).ok_or("a minidump's frame is cut off")?);
            }
            _ => {}
        }
    }
    Ok(())
}

fn minidump_name(fields: &[&str]) -> Option<String> {
    Some(match (*fields.get(2)?, *fields.get(3)?) {
        ("", "") => "??".to_owned(),
        (module, "") => match fields.get(6) {
            Some(offset) if !offset.is_empty() => format!("{module}+{offset}"),
            _ => module.to_owned(),
        },
        (_, function) => clean(function),
    })
}
