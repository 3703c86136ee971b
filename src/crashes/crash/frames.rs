//! Function names, and the frame lines common to all sanitizers.

use super::lines::{Lazy, found, regex, trim, words};

static LAMBDA: Lazy = Lazy::new(|| regex(r"<lambda at .+?:\d+:\d+>"));
static HASH: Lazy = Lazy::new(|| regex("::h[0-9a-f]{16}$"));

/// Removes parameters, `const` and the place of a lambda.
pub(super) fn clean(name: &str) -> String {
    let name = name.strip_suffix(" const").unwrap_or(name);
    let name = match opening(name) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    };
    LAMBDA.replace_all(name, "").into_owned()
}

/// Position of the parenthesis that is closed by the last letter.
fn opening(name: &str) -> Option<usize> {
    if !name.ends_with(')') {
        return None;
    }
    let mut depth = 0_usize;
    name.bytes().enumerate().rev().find_map(|(at, letter)| {
        match letter {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Removes the trailing hash of Rust's legacy mangling.
pub(super) fn without_hash(name: String) -> String {
    if found(&HASH, &name) { name[..name.len() - 19].to_owned() } else { name }
}

/// Number and words of a line `#N …`; words within open brackets are joined.
fn numbered(line: &str) -> Option<(usize, Vec<String>)> {
    let mut parts = words(trim(line));
    let number = parts.next()?.strip_prefix('#')?.parse().ok()?;
    let mut joined = join_const(join_open(parts));
    if joined.last().is_some_and(|last| last.starts_with("(BuildId: ")) {
        joined.pop();
    }
    Some((number, joined))
}

fn join_open<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut joined: Vec<String> = vec![];
    let (mut round, mut angle) = (0_i64, 0_i64);
    for part in parts {
        match joined.last_mut() {
            Some(last) if round > 0 || angle > 0 => {
                last.push(' ');
                last.push_str(part);
            }
            _ => {
                joined.push(part.to_owned());
                (round, angle) = (0, 0);
            }
        }
        for letter in part.bytes() {
            match letter {
                b'(' => round += 1,
                b')' => round -= 1,
                b'<' => angle += 1,
                b'>' => angle -= 1,
                _ => {}
            }
        }
    }
    joined
}

fn join_const(parts: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = vec![];
    for part in parts {
        match joined.last_mut() {
            Some(last) if part == "const" && last.ends_with(')') => last.push_str(" const"),
            _ => joined.push(part),
        }
    }
    joined
}

/// Joins all but the last `without` words.
fn all_but(parts: &[String], without: usize) -> String {
    parts[..parts.len().saturating_sub(without)].join(" ")
}

/// Removes the first and the last letter.
fn inner(word: &str) -> &str {
    let mut letters = word.chars();
    letters.next();
    letters.next_back();
    letters.as_str()
}

const MISSING: &str = "<missing>";

/// Number and function of a frame line of AddressSanitizer.
pub(super) fn address_sanitizer(line: &str) -> Option<(usize, String)> {
    let (number, parts) = numbered(line)?;
    let name = match &parts[..] {
        [place, ..] if place.starts_with("0x") => match &parts[1..] {
            [unknown, ..] if unknown == "(<unknown module>)" => MISSING.to_owned(),
            rest => of_address(rest),
        },
        [null, .., last] if null == "<null>" && last.contains('+') => inner(last).to_owned(),
        [null, ..] if null == "<null>" => MISSING.to_owned(),
        [] => MISSING.to_owned(),
        _ => all_but(&parts, 2),
    };
    Some((number, clean(&name)))
}

/// Number and function of a frame line of sanitizers that always print an address.
pub(super) fn other_sanitizer(line: &str) -> Option<(usize, String)> {
    let (number, parts) = numbered(line)?;
    Some((number, clean(&of_address(parts.get(1..).unwrap_or_default()))))
}

/// Function in the words after the address: `in NAME PLACE` or `(MODULE+OFFSET)`.
fn of_address(parts: &[String]) -> String {
    match parts {
        [] => MISSING.to_owned(),
        [word, rest @ ..] if word == "in" => all_but(rest, 1),
        [module, ..] => inner(module).to_owned(),
    }
}

/// Number and function of a frame line of ThreadSanitizer, which prints no address.
pub(super) fn thread_sanitizer(line: &str) -> Option<(usize, String)> {
    let (number, parts) = numbered(line)?;
    let name = match &parts[..] {
        [] | [_] => MISSING.to_owned(),
        [null, _, module, ..] if null == "<null>" => inner(module).to_owned(),
        _ => all_but(&parts, 2),
    };
    Some((number, clean(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_is_not_the_function() {
        let cases = [
            ("Cut::head(unsigned long) const", "Cut::head"),
            ("operator new[](unsigned long)", "operator new[]"),
            ("(anonymous)", "(anonymous)"),
            ("f)", "f)"),
            ("a<lambda at /x.cpp:1:2>::b", "a::b"),
        ];
        for (name, wanted) in cases {
            assert_eq!(clean(name), wanted);
        }
    }
}
