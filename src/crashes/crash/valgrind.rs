//! Reports of Valgrind's memory checker.

use super::frames::clean;
use super::info::CrashInfo;
use super::lines::{Lazy, address, capture, found, regex};

static MESSAGE: Lazy = Lazy::new(|| {
    regex(concat!(
        r"^==\d+==\s+(Invalid (?:read|write) of size \d+.*|(?:Invalid|Mismatched) free\(\).*",
        r"|Argument '.+' of function \S+ has a fishy.*",
        r"|Conditional jump or.*",
        r"|Use of uninitialised value of size \d+.*",
        r"|Process terminating with default action of signal \d+.*",
        r"|Source and destination overlap|Syscall param .*",
        r"|[\d,]+ bytes? in \S+ blocks? are .+? lost)",
    ))
});
static FRAME: Lazy =
    Lazy::new(|| regex(r"^==\d+==\s+(?:at|by) 0x[0-9A-Fa-f]+: (.*?) \((?:in )?([^()]*)\)$"));
static ADDRESS: Lazy = Lazy::new(|| regex(r"^==\d+==\s+Address 0x([0-9A-Fa-f]+)"));
static END: Lazy = Lazy::new(|| regex(r"^==\d+==\s$"));

pub(super) fn is_message(line: &str) -> bool {
    line.starts_with("==") && found(&MESSAGE, line)
}

/// Text of the first message.
pub(super) fn message<'a>(lines: &[&'a str]) -> Option<&'a str> {
    lines.iter().find_map(|line| capture(&MESSAGE, line))
}

pub(super) fn read(lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    let Some(start) = lines.iter().position(|line| is_message(line)) else { return Ok(()) };
    for line in &lines[start + 1..] {
        if found(&END, line) {
            break;
        }
        if let Some(digits) = capture(&ADDRESS, line) {
            info.address = Some(address(digits)?);
        } else if let Ok(Some(groups)) = FRAME.captures(line) {
            let group = |at: usize| groups.get(at).map_or("", |group| group.as_str());
            let name = if group(1) == "???" { group(2) } else { group(1) };
            info.backtrace.push(clean(name));
        }
    }
    Ok(())
}
