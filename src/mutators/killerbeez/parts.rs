//! Killerbeez's format for inputs of several parts: a JSON array of strings with hexadecimal numbers,
//! `["::MEM::414243", "::MEM::4445"]`.

use ffuzz_mutate::messages::Message;

/// Prefix of every part.
const MARK: &str = "::MEM::";

/// Returns true if `input` has this format.
pub(super) fn is_in_parts(input: &[u8]) -> bool {
    input.trim_ascii_start().strip_prefix(b"[").is_some_and(|rest| {
        let rest = rest.trim_ascii_start();
        rest.strip_prefix(b"\"").is_some_and(|text| text.starts_with(MARK.as_bytes()))
    })
}

/// Appends part number `index`.
pub(super) fn push(out: &mut Vec<u8>, index: usize, part: &[u8]) {
    out.extend_from_slice(if index == 0 { b"[\"" } else { b", \"" });
    out.extend_from_slice(MARK.as_bytes());
    for byte in part {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}

/// Converts messages to parts.
pub(super) fn array<'a>(messages: impl Iterator<Item = Message<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, message) in messages.enumerate() {
        push(&mut out, index, message.bytes);
    }
    close(&mut out);
    out
}

/// Ends the array after the last part.
pub(super) fn close(out: &mut Vec<u8>) {
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_killerbeez_writes_them() {
        let mut out = Vec::new();
        push(&mut out, 0, b"ABC");
        push(&mut out, 1, &[0, 0xff]);
        close(&mut out);
        assert_eq!(out, br#"["::MEM::414243", "::MEM::00FF"]"#);
        assert!(is_in_parts(&out) && is_in_parts(b" [ \"::MEM::\"]"));
        assert!(!is_in_parts(b"[\"MEM\"]") && !is_in_parts(b""));
    }
}
