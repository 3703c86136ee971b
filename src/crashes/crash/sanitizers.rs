//! Reports of AddressSanitizer, UndefinedBehaviorSanitizer, LeakSanitizer and ThreadSanitizer.

use super::frames;
use super::info::CrashInfo;
use super::lines::{Lazy, address, capture, found, hex, regex};

static ASAN_HEADLINE: Lazy = Lazy::new(|| {
    regex(concat!(
        r"\w+Sanitizer.*\s(?:on address|on unknown address|double-free on",
        r"|out of memory: allocator is trying to allocate 0x[0-9a-f]+ bytes",
        r"|allocator is out of memory trying to allocate 0x[0-9a-f]+ bytes",
        r"|failed to allocate 0x[0-9a-f]+ |negative-size-param: \(size=-\d+\)",
        r"|not malloc\(\)-ed:|not owned:|\w+-param-overlap:",
        r"|requested allocation size 0x[0-9a-f]+ ",
        r"|soft rss limit exhausted|hard rss limit exhausted)(?:\s*0x([0-9a-f]+))?",
    ))
});
static PROGRAM_COUNTER: Lazy =
    Lazy::new(|| regex(r"\(?pc 0x([0-9a-f]+) (bp|sp) 0x([0-9a-f]+) (bp|sp) 0x([0-9a-f]+)"));
static RUNTIME_ERROR: Lazy = Lazy::new(|| regex(r":\d+:\d+: runtime error: "));
static TSAN_HEADLINE: Lazy = Lazy::new(|| regex(r"WARNING: ThreadSanitizer:.*\s.+?\s+\(pid=\d+\)"));
static TSAN_NOISE: Lazy = Lazy::new(|| regex(r"WARNING: |\s+\(pid=\d+\)"));

/// ThreadSanitizer's warning without the process id.
pub(super) fn tsan_warning(lines: &[&str]) -> Option<String> {
    let line = lines.iter().find(|line| found(&TSAN_HEADLINE, line))?;
    Some(TSAN_NOISE.replace_all(line, "").into_owned())
}

/// Error for frame numbers that are not consecutive.
fn gap(sanitizer: &str, number: usize, expected: usize) -> String {
    format!("{sanitizer} report has frame {number} where {expected} should be")
}

pub(super) fn asan(lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    let mut is_inside = false;
    let mut expected = 0;
    for line in lines {
        if info.address.is_none() && line.contains("Sanitizer") && found(&ASAN_HEADLINE, line) {
            is_inside = true;
            info.address = capture(&ASAN_HEADLINE, line).map(address).transpose()?;
            registers(line, info);
        }
        let Some((number, name)) = is_inside.then(|| frames::address_sanitizer(line)).flatten()
        else {
            continue;
        };
        if number != 0 && number != expected {
            return Err(gap("an ASan", number, expected));
        }
        if number == 0 && !info.backtrace.is_empty() {
            info.further_stacks.push(info.backtrace.len());
        }
        expected = number + 1;
        info.backtrace.push(name);
    }
    Ok(())
}

fn registers(line: &str, info: &mut CrashInfo) {
    let Ok(Some(groups)) = PROGRAM_COUNTER.captures(line) else { return };
    let group = |at: usize| groups.get(at).map_or("", |group| group.as_str());
    for (name, digits) in [("pc", group(1)), (group(2), group(3)), (group(4), group(5))] {
        if let Some(value) = hex(digits) {
            info.registers.insert(name.to_owned(), value);
        }
    }
}

pub(super) fn ubsan(lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    let inside = lines.iter().position(|line| found(&RUNTIME_ERROR, line));
    one_stack("a UBSan", &lines[inside.unwrap_or(lines.len())..], info)
}

pub(super) fn lsan(lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    one_stack("an LSan", lines, info)
}

fn one_stack(sanitizer: &str, lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    for (number, name) in lines.iter().filter_map(|line| frames::other_sanitizer(line)) {
        let expected = info.backtrace.len();
        if number != expected {
            return Err(gap(sanitizer, number, expected));
        }
        info.backtrace.push(name);
    }
    Ok(())
}

pub(super) fn tsan(lines: &[&str], info: &mut CrashInfo) {
    let Some(start) = lines.iter().position(|line| found(&TSAN_HEADLINE, line)) else { return };
    let report = &lines[start..];
    let mut stacks: Vec<Vec<String>> = vec![];
    for (number, name) in report.iter().filter_map(|line| frames::thread_sanitizer(line)) {
        if number == 0 {
            stacks.push(vec![]);
        }
        match stacks.last_mut() {
            Some(stack) if stack.len() == number => stack.push(name),
            _ => break,
        }
    }
    let is_complete = !report.iter().any(|l| l.contains("[failed to restore the stack]"));
    if stacks.len() >= 2 && is_complete && lines[start].contains("data race") {
        // The order of two racing threads is random.
        stacks[..2].sort();
    }
    info.tops = stacks.iter().filter_map(|stack| stack.first().cloned()).collect();
    let ends = stacks.iter().scan(0, |end, stack| {
        *end += stack.len();
        Some(*end)
    });
    info.further_stacks = ends.take(stacks.len().saturating_sub(1)).collect();
    info.backtrace = stacks.concat();
}
