//! Adds names from a symbolizer to a sanitizer's report with addresses only, for a crash that does not reproduce in a
//! run with names.

use std::fmt::Write as _;

use super::frames::CodeAddress;
use super::symbols::{Symbol, Symbolizer};

/// A frame of a report without names: `#1 0x55… (FILE+0x12) (BuildId: …)`.
struct RawFrame<'a> {
    address: u64,
    file: &'a str,
    offset: u64,
}

/// Report with names; None if no name is found.
pub(super) fn report(text: &str, symbolizer: &Symbolizer) -> Option<String> {
    let raw: Vec<RawFrame<'_>> = text.lines().filter_map(frame).collect();
    let places: Vec<CodeAddress> = raw.iter().map(RawFrame::place).collect();
    let symbols = symbolizer.symbols(&places);
    let is_named = symbols.iter().flatten().any(|symbol| symbol.function.is_some());
    is_named.then(|| with_names(text, &symbols))
}

/// Inserts the names. `symbols`: those of each frame in order.
fn with_names(text: &str, symbols: &[Vec<Symbol>]) -> String {
    let (mut named, mut number) = (String::new(), 0);
    let mut symbols = symbols.iter();
    for line in text.lines() {
        let Some(raw) = frame(line) else {
            named.push_str(line);
            named.push('\n');
            continue;
        };
        if line.trim_start().starts_with("#0 ") {
            number = 0;
        }
        for symbol in symbols.next().into_iter().flatten() {
            let RawFrame { address, file, offset } = &raw;
            let _ = write!(named, "    #{number} {address:#x} ");
            let _ = match (&symbol.function, &symbol.source) {
                (Some(name), Some(source)) => writeln!(named, "in {name} {source}"),
                (Some(name), None) => writeln!(named, "in {name} ({file}+{offset:#x})"),
                (None, _) => writeln!(named, "({file}+{offset:#x})"),
            };
            number += 1;
        }
    }
    named
}

fn frame(line: &str) -> Option<RawFrame<'_>> {
    let (number, rest) = line.trim().strip_prefix('#')?.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let (address, place) = rest.trim_start().split_once(' ')?;
    let place = place.trim_start().strip_prefix('(')?;
    let place = place.split(" (BuildId:").next()?.trim_end().strip_suffix(')')?;
    let (file, offset) = place.rsplit_once("+0x")?;
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some(RawFrame { address: hex(address.strip_prefix("0x")?)?, file, offset: hex(offset)? })
}

impl RawFrame<'_> {
    fn place(&self) -> CodeAddress {
        CodeAddress { address: self.address, place: Some((self.file.into(), self.offset)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_get_names_and_inlined_functions() {
        let text = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x1\n    \
                    #0 0x5512  (/a/b c+0x12) (BuildId: 34)\n    #1 0x5534  (/lib/l.so+0x34)\n\n";
        let symbol = |name: Option<&str>, source: Option<&str>| Symbol {
            function: name.map(str::to_owned),
            source: source.map(str::to_owned),
        };
        let symbols = [
            vec![symbol(Some("inner(int)"), Some("/a.c:1")), symbol(Some("f"), None)],
            vec![symbol(None, None)],
        ];
        let named = with_names(text, &symbols);
        let expected = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x1\n    \
                        #0 0x5512 in inner(int) /a.c:1\n    #1 0x5512 in f (/a/b c+0x12)\n    \
                        #2 0x5534 (/lib/l.so+0x34)\n\n";
        assert_eq!(named, expected);
        assert!(frame("    #0 0x5512 in f /a.c:1:2").is_none() && frame("#x").is_none());
    }
}
