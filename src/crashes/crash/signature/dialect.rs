//! Translates expressions of Python's `re` to the syntax of the engine used here: braces and brackets that are literal
//! in Python, its escapes, and the errors that only Python reports.

use std::iter::Peekable;
use std::str::Chars;

pub(super) struct Translated {
    pub(super) text: String,
    /// True if it has a part whose errors only appear on compilation.
    pub(super) is_special: bool,
}

pub(super) fn translate(expression: &str) -> Result<Translated, String> {
    let mut translator = Translator::new(expression);
    while let Some(letter) = translator.rest.next() {
        translator.next(letter)?;
    }
    Ok(Translated { text: translator.out, is_special: translator.is_special })
}

/// Token before a quantifier.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Before {
    Nothing,
    Atom,
    Quantifier,
    /// With `?` or `+` after it.
    FullQuantifier,
}

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    before: Before,
    is_special: bool,
}

impl<'a> Translator<'a> {
    fn new(expression: &'a str) -> Self {
        let rest = expression.chars().peekable();
        Self { rest, out: String::new(), before: Before::Nothing, is_special: false }
    }

    fn next(&mut self, letter: char) -> Result<(), String> {
        match letter {
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => self.group()?,
            '*' | '+' | '?' => self.quantifier(letter)?,
            '{' => match self.braces() {
                Some(counts) => {
                    self.repeat()?;
                    self.out.push_str(&counts);
                }
                None => self.atom(r"\{"),
            },
            '}' => self.atom(r"\}"),
            ']' => self.atom(r"\]"),
            '|' | '^' | '$' => {
                self.out.push(letter);
                self.before = Before::Nothing;
            }
            _ => {
                self.out.push(letter);
                self.before = Before::Atom;
            }
        }
        Ok(())
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.before = Before::Atom;
    }

    fn repeat(&mut self) -> Result<(), String> {
        match self.before {
            Before::Nothing => Err("nothing to repeat".into()),
            Before::Atom => {
                self.before = Before::Quantifier;
                Ok(())
            }
            _ => Err("multiple repeat".into()),
        }
    }

    fn quantifier(&mut self, letter: char) -> Result<(), String> {
        if self.before == Before::Quantifier && letter != '*' {
            self.before = Before::FullQuantifier;
        } else {
            self.repeat()?;
        }
        self.out.push(letter);
        Ok(())
    }

    /// Parses `{M}`, `{M,}`, `{,N}`, `{M,N}` after the brace; other braces are literal.
    fn braces(&mut self) -> Option<String> {
        let mut after = self.rest.clone();
        let mut inner = String::new();
        while let Some(letter) = after.next_if(|next| next.is_ascii_digit() || *next == ',') {
            inner.push(letter);
        }
        if after.next() != Some('}') {
            return None;
        }
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let counts = match inner.split_once(',') {
            Some((least, most)) if is_number(least) && is_number(most) => {
                let least = if least.is_empty() { "0" } else { least };
                format!("{{{least},{most}}}")
            }
            None if is_number(&inner) && !inner.is_empty() => format!("{{{inner}}}"),
            _ => return None,
        };
        self.rest = after;
        Some(counts)
    }

    fn escape(&mut self) -> Result<(), String> {
        let letter = self.rest.next().ok_or("it ends with a backslash")?;
        match letter {
            'A' | 'b' | 'B' => {
                self.out.extend(['\\', letter]);
                self.before = Before::Nothing;
            }
            'Z' => {
                self.out.push_str(r"\z");
                self.before = Before::Nothing;
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => self.atom(&format!("\\{letter}")),
            '1'..='9' if !self.is_octal(letter) => self.reference(letter),
            _ => {
                let letter = self.character(letter)?;
                self.atom(&literal(letter));
            }
        }
        Ok(())
    }

    fn reference(&mut self, digit: char) {
        let mut number = String::from(digit);
        number.extend(self.rest.next_if(char::is_ascii_digit));
        self.is_special = true;
        self.atom(&format!("(?:\\{number})"));
    }

    /// True for three octal digits, which are a letter; fewer are a reference.
    fn is_octal(&self, first: char) -> bool {
        let mut ahead = self.rest.clone();
        let mut octal = || ahead.next().is_some_and(|letter| letter.is_digit(8));
        ('0'..='3').contains(&first) && octal() && octal()
    }

    /// Letter that an escape stands for.
    fn character(&mut self, letter: char) -> Result<char, String> {
        let code = match letter {
            'a' => 7,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'x' => self.digits(2, 16)?,
            'u' => self.digits(4, 16)?,
            'U' => self.digits(8, 16)?,
            '0'..='7' => self.octal(letter),
            _ if letter.is_ascii_alphanumeric() => return Err(format!("bad escape \\{letter}")),
            _ => return Ok(letter),
        };
        char::from_u32(code).ok_or_else(|| format!("no letter has the number {code:#x}"))
    }

    fn digits(&mut self, count: usize, base: u32) -> Result<u32, String> {
        let mut value = 0_u32;
        for _ in 0..count {
            let digit = self.rest.next().and_then(|letter| letter.to_digit(base));
            value = (value << 4) | digit.ok_or("incomplete escape")?;
        }
        Ok(value)
    }

    fn octal(&mut self, first: char) -> u32 {
        let mut value = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.rest.next_if(|letter| letter.is_digit(8)) else { break };
            value = value * 8 + digit.to_digit(8).unwrap_or(0);
        }
        value
    }

    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let letter = self.rest.next().ok_or("unterminated character set")?;
            if letter == ']' && !is_first {
                break;
            }
            is_first = false;
            self.class_item(letter)?;
        }
        self.atom("]");
        Ok(())
    }

    fn class_item(&mut self, letter: char) -> Result<(), String> {
        let first = self.class_member(letter)?;
        let mut ahead = self.rest.clone();
        let is_range = ahead.next() == Some('-') && ahead.peek().is_some_and(|next| *next != ']');
        if !is_range {
            self.out.push_str(&first.text());
            return Ok(());
        }
        self.rest = ahead;
        let last = self.rest.next().ok_or("unterminated character set")?;
        let last = self.class_member(last)?;
        match (first, last) {
            (ClassMember::Letter(first), ClassMember::Letter(last)) if first <= last => {
                self.out.push_str(&format!("{}-{}", literal(first), literal(last)));
                Ok(())
            }
            _ => Err("bad character range".into()),
        }
    }

    fn class_member(&mut self, letter: char) -> Result<ClassMember, String> {
        if letter != '\\' {
            return Ok(ClassMember::Letter(letter));
        }
        let letter = self.rest.next().ok_or("unterminated character set")?;
        match letter {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Ok(ClassMember::Class(letter)),
            'b' => Ok(ClassMember::Letter('\u{8}')),
            _ => self.character(letter).map(ClassMember::Letter),
        }
    }

    fn group(&mut self) -> Result<(), String> {
        let is_start = self.out.is_empty();
        self.before = Before::Nothing;
        if self.rest.next_if_eq(&'?').is_none() {
            self.out.push('(');
            return Ok(());
        }
        let kind = self.rest.next().ok_or("unexpected end")?;
        match kind {
            ':' | '=' | '!' | '>' => self.out.extend(['(', '?', kind]),
            '#' => {
                self.rest.by_ref().find(|letter| *letter == ')').ok_or("unterminated comment")?;
                // The token before a comment can still be repeated.
                self.before = Before::Atom;
            }
            '<' => {
                let direction = self.rest.next().filter(|next| ['=', '!'].contains(next));
                self.is_special = true;
                self.out.extend(['(', '?', '<', direction.ok_or("unknown group (?<")?]);
            }
            'P' => self.named()?,
            '(' => {
                self.is_special = true;
                self.out.push_str("(?(");
                let condition: String = self.until(')')?;
                self.out.push_str(&condition);
                self.out.push(')');
            }
            _ => self.flags(kind, is_start)?,
        }
        Ok(())
    }

    fn until(&mut self, end: char) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.rest.next().ok_or("unexpected end")? {
                letter if letter == end => return Ok(text),
                letter => text.push(letter),
            }
        }
    }

    fn named(&mut self) -> Result<(), String> {
        self.is_special = true;
        match self.rest.next() {
            Some('<') => {
                let name = self.until('>')?;
                self.out.push_str(&format!("(?P<{name}>"));
            }
            Some('=') => {
                let name = self.until(')')?;
                self.atom(&format!("(?P={name})"));
            }
            _ => return Err("unknown group (?P".into()),
        }
        Ok(())
    }

    /// Parses `(?i)` at the start, `(?i:…)` and `(?-i:…)` anywhere.
    fn flags(&mut self, first: char, is_start: bool) -> Result<(), String> {
        let mut flags = String::from(first);
        let end = loop {
            match self.rest.next().ok_or("missing flag")? {
                end @ (')' | ':') => break end,
                letter => flags.push(letter),
            }
        };
        if !flags.chars().all(|flag| "aimsux-".contains(flag)) {
            return Err(format!("unknown group (?{flags}"));
        }
        if end == ')' && (!is_start || flags.contains('-')) {
            return Err("global flags not at the start".into());
        }
        // Matching is always by Unicode here.
        flags.retain(|flag| !"au".contains(flag));
        if end == ':' || !flags.is_empty() {
            self.out.push_str(&format!("(?{flags}{end}"));
        }
        Ok(())
    }
}

enum ClassMember {
    Letter(char),
    Class(char),
}

impl ClassMember {
    fn text(&self) -> String {
        match self {
            Self::Letter(letter) => literal(*letter),
            Self::Class(class) => format!("\\{class}"),
        }
    }
}

/// Escapes a letter for use at any position.
fn literal(letter: char) -> String {
    match letter {
        _ if letter.is_alphanumeric() => letter.to_string(),
        '<' | '>' | '_' | '/' | '"' | '\'' | ':' | ',' | ';' | '=' | '!' | '%' | '@' | '`' => {
            letter.to_string()
        }
        _ if letter.is_ascii_punctuation() => format!("\\{letter}"),
        _ => format!("\\x{{{:x}}}", u32::from(letter)),
    }
}
