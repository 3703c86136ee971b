//! Lines and words split as in Python, which the reference's results depend on.

use std::sync::LazyLock;

use fancy_regex::Regex;

/// A fixed expression, compiled at its first use.
pub(super) type Lazy = LazyLock<Regex>;

#[expect(clippy::expect_used, reason = "the tests use every expression of this module")]
pub(super) fn regex(expression: &str) -> Regex {
    Regex::new(expression).expect("every expression of this program is valid")
}

/// True if the expression matches in the line. The expressions have no look-around, so this is linear and cannot fail.
pub(super) fn found(expression: &Regex, line: &str) -> bool {
    expression.is_match(line).unwrap_or(false)
}

/// First group of the first match.
pub(super) fn capture<'a>(expression: &Regex, line: &'a str) -> Option<&'a str> {
    let groups = expression.captures(line).ok()??;
    groups.get(1).map(|group| group.as_str())
}

/// `str.splitlines`.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut found = vec![];
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends_line).unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = &rest[end..];
        let mut letters = rest.chars();
        if let Some(letter) = letters.next() {
            rest = letters.as_str();
            if letter == '\r' {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
        }
    }
    found
}

fn ends_line(letter: char) -> bool {
    matches!(letter, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

/// `str.split` without arguments.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_space).filter(|word| !word.is_empty())
}

/// `str.strip`.
pub(super) fn trim(line: &str) -> &str {
    line.trim_matches(is_space)
}

/// A number after `0x`; None for more than 64 bits.
pub(super) fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

/// Parses an address; more than 64 bits are an error, because the reference's server cannot store it.
pub(super) fn address(digits: &str) -> Result<u64, String> {
    hex(digits).ok_or_else(|| format!("0x{digits} is no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        assert_eq!(lines("a\r\n\nb\rc\x0bd\u{2028}e\n"), ["a", "", "b", "c", "d", "e"]);
        assert_eq!(lines(""), [""; 0]);
        assert_eq!(lines("\n"), [""]);
    }

    #[test]
    fn words_are_split_at_any_white_space() {
        assert_eq!(words(" a\t\u{a0}b\x1fc ").collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
