//! Parser for a debugger's output after a crash: frames, registers, the instruction.

use super::frames::clean;
use super::info::CrashInfo;
use super::lines::{Lazy, capture, found, hex, regex};
use super::{address, lines};

static FRAME: Lazy = Lazy::new(|| {
    regex(r"^\s*#(\d+)\s+(?:0x[0-9a-f]+ in )?(?:(<signal handler called>)|(.+?) \(.*?\))")
});
static NUMBERED: Lazy = Lazy::new(|| regex(r"^\s*#(\d+)"));
static REGISTER: Lazy = Lazy::new(|| {
    regex(concat!(
        r"((?:[re](?:[abcd]x|[sd]i|[bs]p|ip))|r(?:1[0-5]|[0-9])|x(?:[12]?[0-9]|30)",
        r"|sp|lr|pc|cpsr|fpcr)\s+0x([0-9a-f]+)"
    ))
});
static CRASH_ADDRESS: Lazy = Lazy::new(|| regex(r"Crash Address:\s*0x([0-9a-fA-F]+)"));
static INSTRUCTION: Lazy = Lazy::new(|| regex(r"=> 0x[0-9a-f]+(?: <.+>)?:\s+(.*)$"));
static SYMBOL: Lazy = Lazy::new(|| regex(r"\s+<.+>\s*$"));
/// Mark of a parameter type that gdb could not read; the name then repeats the types.
const UNKNOWN_TYPE: &str = "<unknown type in ";

pub(super) fn read(report: &[&str], info: &mut CrashInfo) -> Result<(), String> {
    let mut stack = Stack::default();
    let mut outcome = Ok(());
    for line in report {
        if let Some(digits) = capture(&CRASH_ADDRESS, line) {
            let address = lines::address(digits);
            info.address = info.address.or(address.as_ref().ok().copied());
            outcome = outcome.and(address.map(|_| ()));
        } else if let Some((name, value)) = register(line) {
            info.registers.insert(name, value);
        } else if let Some(instruction) = capture(&INSTRUCTION, line) {
            info.instruction = Some(SYMBOL.replace(instruction, "").into_owned());
        } else if info.registers.is_empty() && outcome.is_ok() {
            outcome = stack.next(line);
        }
    }
    info.backtrace = stack.names.split_off(stack.repeated);
    outcome?;
    if let (None, Some(instruction)) = (info.address, &info.instruction) {
        info.address = address::of(instruction, &info.registers)
            .map_err(|_| format!("it is unknown what \"{instruction}\" accesses"))?;
    }
    Ok(())
}

fn register(line: &str) -> Option<(String, u64)> {
    let groups = REGISTER.captures(line).ok()??;
    Some((groups.get(1)?.as_str().to_owned(), hex(groups.get(2)?.as_str())?))
}

/// Maximum length of an unfinished frame, which is parsed again with each line that may end it.
const LONGEST_FRAME: usize = 1 << 12;

#[derive(Default)]
struct Stack {
    /// Lines of the unfinished frame.
    open: String,
    names: Vec<String>,
    /// Number of initial frames that are not part of the stack.
    repeated: usize,
}

impl Stack {
    fn next(&mut self, line: &str) -> Result<(), String> {
        let starts = found(&NUMBERED, line);
        if self.open.len() > LONGEST_FRAME || (starts && !self.open.is_empty()) {
            return Err("a frame of a gdb stack does not end".to_owned());
        }
        if starts || !self.open.is_empty() {
            self.open.push_str(line);
            // Only a bracket ends a frame.
            if line.contains([')', '>']) {
                return self.end_frame();
            }
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), String> {
        let Some((number, name)) = frame(&self.open) else { return Ok(()) };
        self.open.clear();
        let depth = self.names.len() - self.repeated;
        if number == 0 && depth > 0 {
            // A core file shows its innermost frame twice.
            self.repeated += 1;
        } else if number != depth {
            return Err(format!("a gdb stack has frame {number} where {depth} should be"));
        }
        self.names.push(name);
        Ok(())
    }
}

fn frame(text: &str) -> Option<(usize, String)> {
    let groups = FRAME.captures(text).ok()??;
    let name = groups.get(2).or(groups.get(3))?.as_str();
    let name = if text.contains(UNKNOWN_TYPE) { clean(name) } else { name.to_owned() };
    Some((groups.get(1)?.as_str().parse().ok()?, name))
}
