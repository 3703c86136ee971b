//! Words of a program: constants with which its code compares the input, collected by `ffuzz-cc`
//! (`llvm-passes/ffuzz-words.hpp`).
//!
//! At startup `exec::words` reads them from the section `.ffuzz_words` of the program and its libraries, or searches
//! for strings in programs of other compilers. The dictionary keeps them next to the tokens of `-x`: half of the
//! draws go to each.

use std::collections::HashSet;

/// Maximum length of a word, bytes.
pub const MAX_WORD: usize = 32;
/// Maximum number of words used: with more, each would hardly ever be drawn.
pub const MAX_WORDS: usize = 4096;

/// A constant and its position in the source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Word {
    /// 1 to `MAX_WORD` bytes.
    pub bytes: Vec<u8>,
    /// `int`: a compared integer; `case`: a case of a `switch`; `string`: an argument of a comparison function;
    /// `bytes`: compared byte by byte; `table`: an entry of a table of strings.
    pub kind: String,
    pub file: String,
    /// 0: unknown.
    pub line: u32,
}

/// Number of the first malformed line, counted from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {0} is no word")]
pub struct Malformed(pub usize);

/// Parses a table: one line per word, fields separated by tabs, `HEX KIND FILE LINE`. An empty field repeats that of
/// the line before. Skips zero padding of object files.
pub fn parse(table: &[u8]) -> Result<Vec<Word>, Malformed> {
    let mut words: Vec<Word> = Vec::new();
    let lines = table.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_start());
    for (index, line) in lines.enumerate() {
        let line = match line.iter().position(|byte| *byte != 0) {
            None => continue,
            Some(start) => &line[start..],
        };
        words.push(word(line, words.last()).ok_or(Malformed(index + 1))?);
    }
    Ok(words)
}

fn word(line: &[u8], before: Option<&Word>) -> Option<Word> {
    let mut fields = std::str::from_utf8(line).ok()?.split('\t');
    let [hex, kind, file, number] = [(); 4].map(|()| fields.next());
    let bytes = unhex(hex?)?;
    let as_before = |field: &str, of: fn(&Word) -> &String| match field {
        "" => before.map(of).cloned(),
        field => Some(field.to_owned()),
    };
    let line = match number? {
        "" => before?.line,
        number => number.parse().ok()?,
    };
    let word = Word {
        bytes,
        kind: as_before(kind?, |word| &word.kind)?,
        file: as_before(file?, |word| &word.file)?,
        line,
    };
    fields.next().is_none().then_some(word)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    let bytes: Vec<u8> = pairs.collect::<Option<_>>()?;
    (1..=MAX_WORD).contains(&bytes.len()).then_some(bytes)
}

/// Removes duplicates, keeping the first of each.
pub fn keep_first(words: &mut Vec<Word>) {
    let mut seen = HashSet::new();
    words.retain(|word| seen.insert(word.bytes.clone()));
}

/// Keeps at most `most` words, evenly spread because those of one source file are neighbours.
pub fn thin_out(words: &mut Vec<Word>, most: usize) {
    let count = words.len();
    if count > most {
        let mut place = 0;
        words.retain(|_| {
            place += 1;
            place * most / count > (place - 1) * most / count
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_is_read() {
        let table =
            b"49484452\tint\t/p/png.c\t12\n52444849\t\t\t\n\x00\x00616263\tstring\t/p/a.c\t0\n\0";
        let words = parse(table).unwrap();
        let seen: Vec<_> =
            words.iter().map(|word| (&*word.bytes, &*word.kind, &*word.file, word.line)).collect();
        assert_eq!(
            seen,
            [
                (&b"IHDR"[..], "int", "/p/png.c", 12),
                (&b"RDHI"[..], "int", "/p/png.c", 12),
                (&b"abc"[..], "string", "/p/a.c", 0),
            ]
        );
        assert_eq!(parse(b""), Ok(vec![]));
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let good = "6162\tint\tf\t1\n";
        for bad in [
            "6162\t\tf\t1",
            "616\tint\tf\t1",
            "\tint\tf\t1",
            "61zz\tint\tf\t1",
            "6162\tint\tf",
            "6162\tint\tf\tx",
            "6162\tint\tf\t1\tmore",
            "\u{ff}",
        ] {
            assert_eq!(parse(bad.as_bytes()), Err(Malformed(1)), "{bad:?}");
        }
        assert_eq!(parse(format!("{good}nonsense\n").as_bytes()), Err(Malformed(2)));
        assert!(parse(&[b'6'; 200]).is_err());
    }

    #[test]
    fn words_are_there_once_and_thinned_out_evenly() {
        let word = |number: u32| Word {
            bytes: (number % 1000).to_be_bytes().to_vec(),
            kind: "int".into(),
            file: String::new(),
            line: number,
        };
        let mut words: Vec<Word> = (0..3000).map(word).collect();
        keep_first(&mut words);
        assert_eq!(words.len(), 1000);
        thin_out(&mut words, 300);
        assert_eq!(words.len(), 300);
        let gaps = words.windows(2).map(|pair| pair[1].line - pair[0].line);
        assert!(gaps.clone().all(|gap| (3..=4).contains(&gap)), "{gaps:?}");
        thin_out(&mut words, 4000);
        assert_eq!(words.len(), 300);
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(table: Vec<u8>) {
            let _ = parse(&table);
        }
    }
}
