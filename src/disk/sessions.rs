//! Conversion of sessions in other formats, used as seeds with `--net`, to lists of messages
//! ([`ffuzz_mutate::messages`]).

use ffuzz_mutate::messages::{Message, is_list, list};

/// Text before the hexadecimal digits of a part in a file of Killerbeez.
const PART: &str = "::MEM::";

/// Converts a seed to a list of messages; None: use it as it is. `separator`: text that ends each message in a file
/// that is no list.
#[must_use]
pub fn as_list(seed: &[u8], separator: Option<&[u8]>) -> Option<Vec<u8>> {
    if let Some(parts) = killerbeez_parts(seed) {
        return Some(of_bytes(parts.iter().map(Vec::as_slice)));
    }
    let separator = separator.filter(|text| !text.is_empty() && !is_list(seed))?;
    Some(of_bytes(split(seed, separator)))
}

fn of_bytes<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    list(parts.map(|bytes| Message { connection: 0, bytes }))
}

/// Parses an array of texts, each a part: `["::MEM::414243", "::MEM::44"]`.
fn killerbeez_parts(seed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let parts: Vec<String> = serde_json::from_slice(seed).ok()?;
    let part = |text: &String| {
        let digits = text.strip_prefix(PART)?.as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        };
        digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()
    };
    parts.iter().map(part).collect()
}

/// Splits a seed into pieces that end with the separator; the last one may lack it.
fn split<'a>(seed: &'a [u8], separator: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = seed;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let found = rest.windows(separator.len()).position(|window| window == separator);
        let (piece, after) = rest.split_at(found.map_or(rest.len(), |at| at + separator.len()));
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_each_separator() {
        let cut = |seed: &[u8]| as_list(seed, Some(b"\r\n"));
        assert_eq!(cut(b"A\r\nBC\r\nD").unwrap(), b"\x03\0\0\0A\r\n\x04\0\0\0BC\r\n\x01\0\0\0D");
        assert_eq!(cut(b"\r\n").unwrap(), b"\x02\0\0\0\r\n");
        // What is a list stays one.
        assert_eq!(cut(b"\x03\0\0\0A\r\n"), None);
        assert_eq!(as_list(b"A\r\nB", None), None);
    }

    #[test]
    fn parts_of_killerbeez_are_messages() {
        let parts = br#"["::MEM::4142", "::MEM::", "::MEM::fF"]"#;
        assert_eq!(as_list(parts, None).unwrap(), b"\x02\0\0\0AB\0\0\0\0\x01\0\0\0\xff");
        for other in [r#"["::MEM::4"]"#, r#"["::MEM::4x"]"#, r#"["A"]"#, "[1]", "[\"::MEM::41\""] {
            assert_eq!(as_list(other.as_bytes(), None), None, "{other}");
        }
    }
}
