//! Texts that record the start of a campaign: `fuzzer_setup`, `cmdline`, the crash README.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const VARIABLES: &[u8] = b"# environment variables:\n";
const COMMAND: &[u8] = b"# command line:\n";

/// Recorded start of a campaign of ffuzz or afl-fuzz, from its `fuzzer_setup`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecordedSetup {
    pub variables: Vec<(OsString, OsString)>,
    /// The fuzzer's name, its options and the target's command line.
    pub words: Vec<OsString>,
}

impl RecordedSetup {
    /// Parses the output of [`fuzzer_setup`]; None for another text.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let at = text.windows(COMMAND.len()).position(|window| window == COMMAND)?;
        let lines = text[..at].strip_prefix(VARIABLES)?.split(|byte| *byte == b'\n');
        let pair = |line: &[u8]| {
            let equals = line.iter().position(|byte| *byte == b'=')?;
            let [name, value] = [&line[..equals], &line[equals + 1..]].map(OsStr::from_bytes);
            Some((name.to_owned(), value.to_owned()))
        };
        let words = unquoted(&text[at + COMMAND.len()..]);
        Some(Self { variables: lines.filter_map(pair).collect(), words })
    }
}

/// Splits a line into words, removing a shell's quotes.
fn unquoted(line: &[u8]) -> Vec<OsString> {
    let (mut words, mut word, mut open) = (Vec::new(), None::<Vec<u8>>, None);
    for &byte in line {
        match (byte, open) {
            (byte, Some(quote)) if byte == quote => open = None,
            (b'\'' | b'"', None) => {
                open = Some(byte);
                word.get_or_insert_default();
            }
            (b' ' | b'\n', None) => words.extend(word.take()),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

/// `fuzzer_setup`: known variables that are set, and the command line quoted for a shell.
#[must_use]
pub fn fuzzer_setup(environment: &[(String, String)], command_line: &[OsString]) -> Vec<u8> {
    let mut text = VARIABLES.to_vec();
    for (name, value) in environment {
        text.extend_from_slice(format!("{name}={value}\n").as_bytes());
    }
    text.extend_from_slice(COMMAND);
    text.extend_from_slice(&quoted(command_line));
    text.push(b'\n');
    text
}

/// `cmdline`: one word per line.
#[must_use]
pub(crate) fn target_command(command: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in command {
        text.extend_from_slice(word.as_bytes());
        text.push(b'\n');
    }
    text
}

/// `crashes/README.txt`.
#[must_use]
pub fn crash_readme(command_line: &[OsString]) -> Vec<u8> {
    let mut text =
        b"The files in this folder made the target crash. They were found with:\n\n".to_vec();
    text.extend_from_slice(&quoted(command_line));
    text.extend_from_slice(
        b"\n\nTo see a crash again, run the target on the file with the memory limit of -m, if one\n\
          was given, and with the same sanitizer options and LD_PRELOAD. The part sig:NN of a name\n\
          is the number of the signal; 00 stands for an exit code that counts as a crash.\n",
    );
    text
}

/// Quotes all words for a shell.
#[must_use]
pub fn quoted(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for (index, word) in words.iter().enumerate() {
        text.extend_from_slice(if index == 0 { b"'" } else { b" '" });
        for &byte in word.as_bytes() {
            match byte {
                b'\'' => text.extend_from_slice(b"'\"'\"'"),
                _ => text.push(byte),
            }
        }
        text.push(b'\'');
    }
    text
}

/// Formats words for display, quoted only where a shell needs it.
#[must_use]
pub fn shell_line(words: &[OsString]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./,:=@%+".contains(byte);
    let shown = words.iter().map(|word| match word.as_bytes() {
        bytes if !bytes.is_empty() && bytes.iter().all(plain) => bytes.to_vec(),
        _ => quoted(std::slice::from_ref(word)),
    });
    String::from_utf8_lossy(&shown.collect::<Vec<_>>().join(&b' ')).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_is_that_of_afl() {
        let words = ["ffuzz".into(), "-T".into(), "it's".into()];
        let text = fuzzer_setup(&[("AFL_NO_UI".into(), "1".into())], &words);
        let read = RecordedSetup::parse(&text).expect("a setup");
        assert_eq!(read.words, words);
        assert_eq!(read.variables, [("AFL_NO_UI".into(), "1".into())]);
        assert_eq!(RecordedSetup::parse(b"./target\n"), None);
        assert_eq!(
            String::from_utf8(text).expect("text"),
            "# environment variables:\nAFL_NO_UI=1\n# command line:\n'ffuzz' '-T' 'it'\"'\"'s'\n"
        );
        assert_eq!(target_command(&["./t".into(), "@@".into()]), b"./t\n@@\n");
        let words = ["./t", "@@", "a b", "", "it's", "--x=1"].map(OsString::from);
        assert_eq!(shell_line(&words), "./t @@ 'a b' '' 'it'\"'\"'s' --x=1");
    }
}
