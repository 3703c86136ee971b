//! Tokens of the input format: given by the user (`-x`) or learned while fuzzing.
//!
//! No I/O: the campaign reads the files, this module parses their text.

use std::collections::HashSet;

use super::words::MAX_WORDS;
use super::{Rng, index, values};

/// Maximum length of a user token, bytes (AFL).
pub const MAX_USER_TOKEN: usize = 128;
/// Minimum length of a learned token, bytes: bit flips and arithmetic find shorter ones (AFL).
pub const MIN_AUTO_TOKEN: usize = 3;
/// Maximum length of a learned token, bytes (AFL).
pub const MAX_AUTO_TOKEN: usize = 32;
/// Maximum number of learned tokens: with more, each would hardly ever be drawn (AFL).
pub const MAX_AUTO_TOKENS: usize = 4096;

/// One dictionary entry, 1 to 128 bytes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Token(Box<[u8]>);

impl Token {
    /// None if `bytes` is empty or longer than `MAX_USER_TOKEN`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=MAX_USER_TOKEN).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A line of a dictionary file that cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct DictionaryError {
    /// Counted from 1.
    pub line: usize,
    pub reason: &'static str,
}

/// All tokens of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// Given with `-x`.
    pub user: Vec<Token>,
    /// Words of the program, see [`super::words`], at most [`MAX_WORDS`]. Used like user tokens.
    pub words: Vec<Token>,
    /// Learned tokens, at most `MAX_AUTO_TOKENS`.
    pub auto: Vec<Token>,
}

impl Dictionary {
    /// Parses a file in AFL's format: one `name@level="text"` per line, name and level optional,
    /// `\\`, `\"` and `\xNN` as escapes, `#` starts a comment line. As in AFL++, the token ends at the last quote of
    /// the line, and all other characters inside are literal. Skips tokens of a level above `max_level`. Also returns
    /// an error for each malformed line.
    #[must_use]
    pub fn parse(text: &[u8], max_level: u32) -> (Vec<Token>, Vec<DictionaryError>) {
        let (mut tokens, mut malformed) = (Vec::new(), Vec::new());
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            match parse_line(line) {
                Ok((level, token)) if level <= max_level => tokens.push(token),
                Ok(_) => {}
                Err(reason) => malformed.push(DictionaryError { line: index + 1, reason }),
            }
        }
        (tokens, malformed)
    }

    /// Adds new user tokens; returns how many were added.
    pub fn add_user(&mut self, tokens: impl IntoIterator<Item = Token>) -> usize {
        let before = self.user.len();
        let mut known: HashSet<Token> = self.user.iter().cloned().collect();
        self.user.extend(tokens.into_iter().filter(|token| known.insert(token.clone())));
        self.user.len() - before
    }

    /// Adds new words of the program, up to [`MAX_WORDS`] in total; returns how many were added.
    pub fn add_words<'a>(&mut self, words: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let before = self.words.len();
        let mut known: HashSet<Box<[u8]>> =
            self.user.iter().chain(&self.words).map(|token| token.0.clone()).collect();
        for token in words.into_iter().filter_map(Token::new) {
            if self.words.len() < MAX_WORDS && known.insert(token.0.clone()) {
                self.words.push(token);
            }
        }
        self.words.len() - before
    }

    /// The tokens of the user and of the program.
    #[must_use]
    pub fn fixed(&self) -> [&[Token]; 2] {
        [&self.user, &self.words]
    }

    /// Draws a token of the user or a word of the program, half of the draws each: a program has hundreds of words.
    pub fn draw(&self, rng: &mut Rng) -> Option<&[u8]> {
        let list: &[Token] = match self.fixed() {
            [user, []] => user,
            [[], words] => words,
            both => both[index(rng, 2)],
        };
        (!list.is_empty()).then(|| list[index(rng, list.len())].bytes())
    }

    /// Adds a learned token. Returns false if it is too short or too long, one byte repeated, an interesting integer
    /// (which other operators write) or already known, or if the list is full.
    pub fn add_auto(&mut self, bytes: &[u8]) -> bool {
        if !(MIN_AUTO_TOKEN..=MAX_AUTO_TOKEN).contains(&bytes.len())
            || self.auto.len() >= MAX_AUTO_TOKENS
            || bytes.iter().all(|&byte| byte == bytes[0])
            || is_interesting(bytes)
            || self
                .user
                .iter()
                .chain(&self.words)
                .chain(&self.auto)
                .any(|token| token.bytes() == bytes)
        {
            return false;
        }
        self.auto.push(Token(bytes.into()));
        true
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of tokens of all kinds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.user.len() + self.words.len() + self.auto.len()
    }
}

fn is_interesting(bytes: &[u8]) -> bool {
    let matches = |big_endian| {
        let number = values::load(bytes, big_endian);
        values::interesting(4).iter().any(|&value| value as u32 == number)
    };
    bytes.len() == 4 && (matches(false) || matches(true))
}

/// Parses one line without surrounding white space into level and token.
fn parse_line(line: &[u8]) -> Result<(u32, Token), &'static str> {
    let name = line.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let rest = &line[name.count()..];
    let (level, rest) = match rest.strip_prefix(b"@") {
        Some(rest) => parse_level(rest)?,
        None => (0, rest),
    };
    let blanks = rest.iter().take_while(|&&byte| byte.is_ascii_whitespace() || byte == b'=');
    let rest = &rest[blanks.count()..];
    let quoted = rest.strip_prefix(b"\"").ok_or("no opening quote")?;
    let bytes = unescape(quoted.strip_suffix(b"\"").ok_or("no closing quote")?);
    if bytes.is_empty() {
        return Err("the token is empty");
    }
    Token::new(&bytes).map(|token| (level, token)).ok_or("the token is longer than 128 bytes")
}

fn parse_level(rest: &[u8]) -> Result<(u32, &[u8]), &'static str> {
    let digits = rest.iter().take_while(|&&byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(digits);
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .map(|level| (level, rest))
        .ok_or("no level after @")
}

fn unescape(mut quoted: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(quoted.len());
    while let [first, rest @ ..] = quoted {
        let (byte, rest) = match quoted {
            [b'\\', byte @ (b'\\' | b'"'), rest @ ..] => (*byte, rest),
            [b'\\', b'x', high, low, rest @ ..] => match hex(*high).zip(hex(*low)) {
                Some((high, low)) => (high << 4 | low, rest),
                None => (b'\\', &quoted[1..]),
            },
            _ => (*first, rest),
        };
        bytes.push(byte);
        quoted = rest;
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Vec<Vec<u8>> {
        let (tokens, malformed) = Dictionary::parse(text.as_bytes(), 0);
        assert_eq!(malformed, []);
        tokens.iter().map(|token| token.bytes().to_vec()).collect()
    }

    fn reason(line: &str) -> DictionaryError {
        Dictionary::parse(line.as_bytes(), 0).1.remove(0)
    }

    #[test]
    fn names_comments_blank_lines_and_escapes_are_understood() {
        let text = "# PNG\n\nheader=\"\\x89PNG\"\r\n  \"IHDR\"  \nquote = \"a\\\"b\\\\\"\n\"#\"";
        assert_eq!(
            parsed(text),
            [b"\x89PNG".to_vec(), b"IHDR".to_vec(), b"a\"b\\".to_vec(), b"#".to_vec()]
        );
    }

    #[test]
    fn tokens_above_the_level_are_left_out() {
        let text = b"a@1=\"one\"\nb@2=\"two\"\nc=\"zero\"\n@1=\"bare\"";
        let number = |level| Dictionary::parse(text, level).0.len();
        assert_eq!([0, 1, 9].map(number), [1, 3, 4]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_number_and_reason() {
        assert_eq!(
            reason("\"ok\"\nfoo=bar"),
            DictionaryError { line: 2, reason: "no opening quote" }
        );
        assert_eq!(reason("\"open").reason, "no closing quote");
        assert_eq!(reason("\"\"").reason, "the token is empty");
        assert_eq!(reason("x@=\"a\"").reason, "no level after @");
        assert!(reason(&format!("\"{}\"", "a".repeat(129))).reason.contains("128"));
        assert_eq!(reason("\"open").to_string(), "line 1: no closing quote");
    }

    #[test]
    fn the_other_lines_are_loaded() {
        let (tokens, malformed) = Dictionary::parse(b"\"a\"\nb\n\"c\"\n\"d\n", 0);
        assert_eq!(tokens.iter().map(Token::bytes).collect::<Vec<_>>(), [b"a", b"c"]);
        assert_eq!(malformed.iter().map(|error| error.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn what_afl_takes_as_it_stands_is_taken_so() {
        let text = r#""\r\n"
            "\xg0"
            "a" b"
            "x\"
            "\xff\x00"\x00""#;
        assert_eq!(
            parsed(text),
            [
                b"\\r\\n".to_vec(),
                b"\\xg0".to_vec(),
                b"a\" b".to_vec(),
                b"x\\".to_vec(),
                b"\xff\0\"\0".to_vec(),
            ]
        );
        assert_eq!(parsed("\"a\tb\""), [b"a\tb".to_vec()]);
    }

    #[test]
    fn useless_learned_tokens_are_refused() {
        let mut dictionary = Dictionary::default();
        dictionary.add_user(Token::new(b"known"));
        assert!(dictionary.add_auto(b"abc"));
        assert!(!dictionary.add_auto(b"abc"), "twice");
        assert!(!dictionary.add_auto(b"known"), "a user token");
        assert!(!dictionary.add_auto(b"ab"), "too short");
        assert!(!dictionary.add_auto(&[b'x'; 5]), "one byte repeated");
        assert!(!dictionary.add_auto(&[7; 33]), "too long");
        assert!(!dictionary.add_auto(&[0, 0, 4, 0]), "1024, big endian");
        assert_eq!((dictionary.len(), dictionary.is_empty()), (2, false));
    }

    #[test]
    fn the_list_of_learned_tokens_has_an_end() {
        let mut dictionary = Dictionary::default();
        for number in 0..5000u32 {
            dictionary.add_auto(format!("t{number}").as_bytes());
        }
        assert_eq!(dictionary.auto.len(), MAX_AUTO_TOKENS);
    }

    #[test]
    fn user_tokens_are_kept_once() {
        let mut dictionary = Dictionary::default();
        let (tokens, _) = Dictionary::parse(b"\"a\"\n\"b\"\n\"a\"", 0);
        assert_eq!(dictionary.add_user(tokens), 2);
    }

    proptest! {
        #[test]
        fn every_token_survives_writing_and_parsing(
            tokens in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..=128), 0..8),
            plain in any::<bool>(),
        ) {
            let mut text = String::new();
            for token in &tokens {
                text.push('"');
                for &byte in token {
                    match byte {
                        b'"' | b'\\' => write!(text, "\\{}", char::from(byte)).unwrap(),
                        b' '..=b'~' if plain => text.push(char::from(byte)),
                        _ => write!(text, "\\x{byte:02X}").unwrap(),
                    }
                }
                text.push_str("\"\n");
            }
            prop_assert_eq!(parsed(&text), tokens);
        }

        #[test]
        fn parsing_noise_never_panics(text in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = Dictionary::parse(&text, 1);
        }
    }
}
