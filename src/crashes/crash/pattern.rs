//! Expression that recognises a message: patterns replace numbers, addresses, threads and paths, which differ between
//! runs and machines.

use std::sync::LazyLock;

use fancy_regex::{NoExpand, Regex};

use super::lines::{Lazy, regex};

/// Replacements in this order; most are the expression itself.
const STEPS: [(&str, &str); 10] = [
    ("(?:Previous )?[Aa]tomic [Rr]ead of size", "(Previous )?[Aa]tomic [Rr]ead of size"),
    ("(?:Previous )?[Aa]tomic [Ww]rite of size", "(Previous )?[Aa]tomic [Ww]rite of size"),
    ("(?:Previous )?[Rr]ead of size", "(Previous )?[Rr]ead of size"),
    ("(?:Previous )?[Ww]rite of size", "(Previous )?[Ww]rite of size"),
    ("thread T[0-9]+(?: .+mutexes: .+)?:", "thread T[0-9]+( .+mutexes: .+)?:"),
    ("by main thread(?: .+mutexes: .+)?:", "by main thread( .+mutexes: .+)?:"),
    ("0x[0-9a-fA-F]+", "0x[0-9a-fA-F]+"),
    ("(?::[0-9]+)+", "(:[0-9]+)+"),
    (", line [0-9]+", ", line [0-9]+"),
    ("Thread#[0-9]+' panicked", "Thread#[0-9]+' panicked"),
];
static EXPRESSIONS: LazyLock<[Regex; 10]> = LazyLock::new(|| STEPS.map(|(what, _)| regex(what)));
static PATH: Lazy = Lazy::new(|| regex(r#"([ '",(])(?:[a-zA-Z]:)?[/\x00].+[/\x00]"#));
static NUMBER: Lazy = Lazy::new(|| regex("[0-9]{2,}"));
/// Placeholder for a backslash of the message until it is known not to belong to a path.
const MARK: char = '\0';

/// Number of letters used: the start of a line is enough. Without a limit, a long line of threads and colons would take
/// quadratic time.
const LONGEST: usize = 4096;

/// Expression between slashes, as in a signature.
pub(super) fn of(message: &str) -> String {
    let mut text = escape(message.chars().take(LONGEST));
    for (expression, (_, replacement)) in EXPRESSIONS.iter().zip(STEPS) {
        text = replace(expression, &text, replacement);
    }
    text = PATH.replace_all(&text, "${1}([a-zA-Z]:)?/.+/").into_owned();
    text = replace(&NUMBER, &text, "[0-9]{2,}");
    format!("/{}/", text.replace(MARK, r"\\"))
}

fn replace(expression: &Regex, text: &str, with: &str) -> String {
    expression.replace_all(text, NoExpand(with)).into_owned()
}

fn escape(message: impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    for letter in message {
        if letter == '\\' {
            text.push(MARK);
            continue;
        }
        if "[]{}()*+?^$.|".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}
