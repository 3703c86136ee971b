//! Prints a target's words as a dictionary.

use std::fmt::Write as _;

use super::args::Args;
use super::{start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{Scratch, print, say};
use crate::config::env::Environment;
use crate::mutate::words::Word;

/// Prints the dictionary; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let scratch = Scratch::new("showmap", None);
    let target = start(args, environment, &scratch)?;
    let (words, damaged) = target.info().words();
    drop(target);
    if let Some(file) = damaged.first() {
        let cause = format!("the words of {} are damaged", file.display());
        return Err(Failure::new(cause, "build it again with ffuzz-cc"));
    }
    if words.is_empty() {
        return Err(Failure::new(
            "the target has no words",
            "build it with ffuzz-cc (and without FFUZZ_NO_WORDS)",
        ));
    }
    print(dictionary(&words).as_bytes(), to_file(args.output()))?;
    say(args.quiet, &format!("[+] {} words", words.len()));
    Ok(0)
}

/// Formats words in AFL's format: `int_12="IHDR"`, from line 12 of the source in the comment above.
fn dictionary(words: &[Word]) -> String {
    let mut text = String::new();
    let mut file = None;
    for word in words {
        if file != Some(&word.file) {
            file = Some(&word.file);
            let _ = writeln!(text, "# {}", word.file.escape_debug());
        }
        let letters = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        let kind: String = word.kind.chars().filter(letters).collect();
        let _ = write!(text, "{kind}_{}=\"", word.line);
        for byte in &word.bytes {
            let _ = match byte {
                b'"' | b'\\' => write!(text, "\\{}", char::from(*byte)),
                b' '..=b'~' => write!(text, "{}", char::from(*byte)),
                _ => write!(text, "\\x{byte:02X}"),
            };
        }
        text.push_str("\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::dictionary::Dictionary;

    #[test]
    fn what_is_printed_is_a_dictionary_of_the_same_words() {
        let word = |bytes: &[u8], file: &str, line| Word {
            bytes: bytes.into(),
            kind: "string".into(),
            file: file.into(),
            line,
        };
        let words = [
            word(b"IHDR", "/a.c", 1),
            word(b"\"\\x41\0\xff", "/a.c", 2),
            word(b"# \t\n", "/b\n.c", 0),
        ];
        let text = dictionary(&words);
        assert_eq!(
            text,
            "# /a.c\nstring_1=\"IHDR\"\nstring_2=\"\\\"\\\\x41\\x00\\xFF\"\n\
             # /b\\n.c\nstring_0=\"# \\x09\\x0A\"\n"
        );
        let (tokens, malformed) = Dictionary::parse(text.as_bytes(), 0);
        assert_eq!(malformed, []);
        let read: Vec<_> = tokens.iter().map(|token| token.bytes()).collect();
        assert_eq!(read, words.each_ref().map(|word| &*word.bytes));
    }
}
