//! Parsers for crash logs of macOS and for the Windows debugger's `!analyze -v`.

use super::frames::clean;
use super::info::CrashInfo;
use super::lines::{Lazy, address, capture, found, hex, regex, words};

static APPLE_ADDRESS: Lazy = Lazy::new(|| regex(r"^Exception Codes:.* at 0x([0-9a-f]+)"));
static APPLE_THREAD: Lazy = Lazy::new(|| regex(r"^Thread \d+ Crashed:"));
static APPLE_FRAME: Lazy = Lazy::new(|| regex(r"^\d+\s+\S.*?\s+0x[0-9a-f]+ (.+?) \+ \d+"));

/// Parses the stack of the crashed thread, up to the next empty line.
pub(super) fn apple(lines: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    let digits = lines.iter().find_map(|line| capture(&APPLE_ADDRESS, line));
    info.address = digits.map(address).transpose()?;
    let stack = lines.iter().skip_while(|line| !found(&APPLE_THREAD, line)).skip(1);
    let stack = stack.take_while(|line| !line.is_empty());
    let names = stack.filter_map(|line| capture(&APPLE_FRAME, line));
    // A function without a symbol appears as the load address of its file.
    info.backtrace =
        names.map(|name| if is_address(name) { "??".into() } else { clean(name) }).collect();
    Ok(())
}

fn is_address(name: &str) -> bool {
    name == "???" || name.starts_with("0x") || name.bytes().all(|byte| byte.is_ascii_digit())
}

static CDB_REGISTER: Lazy =
    Lazy::new(|| regex(r"\b(r\d+|[re](?:[abcd]x|[sd]i|[bs]p|ip))=([0-9a-f]+)"));
static CDB_ADDRESS: Lazy = Lazy::new(|| regex(r"^ExceptionAddress: ([0-9a-f`]+)"));
static CDB_FRAME: Lazy = Lazy::new(|| regex(r"(?:^| )[^ !]+!(.+?)\+0x[0-9a-f]+"));

/// Parses the stack chosen by the analysis, and the registers of the exception.
pub(super) fn cdb(lines: &[&str], info: &mut CrashInfo) {
    for line in lines {
        for groups in CDB_REGISTER.captures_iter(line).flatten() {
            let group = |at: usize| groups.get(at).map_or("", |group| group.as_str());
            if let Some(value) = hex(group(2)) {
                info.registers.insert(group(1).to_owned(), value);
            }
        }
    }
    let address = lines.iter().find_map(|line| capture(&CDB_ADDRESS, line));
    info.address = address.and_then(|digits| hex(&digits.replace('`', "")));
    let faulting = lines.iter().skip_while(|line| !line.starts_with("FAULTING_IP:")).nth(2);
    let instruction = faulting.map(|line| words(line).skip(2).collect::<Vec<_>>().join(" "));
    info.instruction = instruction.filter(|text| !text.is_empty());
    let stack = lines.iter().skip_while(|line| !line.starts_with("STACK_TEXT:")).skip(1);
    let stack = stack.take_while(|line| !line.is_empty());
    let stack = stack.filter(|line| !line.starts_with("(Inline") && !line.starts_with("WARNING:"));
    info.backtrace = stack.map(|line| cdb_name(line)).collect();
}

/// Function name up to the first angle bracket.
fn cdb_name(line: &str) -> String {
    match capture(&CDB_FRAME, line) {
        None => "??".to_owned(),
        Some(name) => name.split('<').next().unwrap_or_default().to_owned(),
    }
}
