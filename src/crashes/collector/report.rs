//! Report of one crash, and its form for the server.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ini::IniValues;
use super::settings::ServerAccount;
use crate::crash::{Output, ProgramInfo};

/// Key of the metadata that identifies a submission.
pub(super) const ID: &str = "ffuzz_report";

/// Longest program output sent, bytes; servers accept at least 2.5 MB.
const MAX_TEXT: usize = 1 << 20;

/// All data about a crash.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CrashReport {
    /// Identity of the bug: two reports with the same key are the same.
    pub key: String,
    pub program: ProgramInfo,
    pub output: Output,
    pub testcase: Option<Testcase>,
    /// Arguments of the target; `TESTFILE` stands for the input unless it is the last.
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub metadata: IniValues,
}

/// The crashing input.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Testcase {
    #[serde(with = "as_base64")]
    pub bytes: Vec<u8>,
    /// Without the dot.
    pub extension: String,
    /// FuzzManager's quality: 0 reduced (best), 5 as found, 10 not reproducible.
    pub quality: i64,
    /// Size to report; None: the length of `bytes`.
    pub size: Option<u64>,
}

impl Testcase {
    /// Extension of a file name, without the dot. AFL's names have none, even with dots.
    #[must_use]
    pub fn extension_of(path: &Path) -> String {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
        let is_one = ending.len() <= 16 && ending.chars().all(|c| c.is_ascii_alphanumeric());
        if is_one { ending.to_owned() } else { String::new() }
    }

    /// The input as text if the server stores it unchanged: servers trim texts and refuse bytes that are not UTF-8.
    #[must_use]
    pub(crate) fn as_text(&self) -> Option<&str> {
        let printable = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace());
        let plain = self.bytes.iter().all(printable);
        let plain = plain && edge(self.bytes.first()) && edge(self.bytes.last());
        std::str::from_utf8(&self.bytes).ok().filter(|_| plain)
    }
}

impl CrashReport {
    /// Form fields of the submission, with `sent` as the output.
    #[must_use]
    pub fn fields(
        &self,
        id: &str,
        server: &ServerAccount,
        sent: &Output,
    ) -> Vec<(&'static str, String)> {
        let ProgramInfo { product, product_version, platform, os } = &self.program;
        let mut fields = vec![
            ("rawStdout", clean(&sent.stdout)),
            ("rawStderr", clean(&sent.stderr)),
            ("rawCrashData", clean(&sent.crash_data)),
        ];
        if let Some(testcase) = &self.testcase {
            fields.extend(testcase_fields(testcase));
        }
        fields.extend([
            ("platform", platform.to_lowercase()),
            ("product", product.to_lowercase()),
            ("os", os.to_lowercase()),
            // Never omitted: otherwise a server with two versions of a product answers 500.
            ("product_version", product_version.clone()),
            ("client", server.client.clone()),
            ("tool", server.tool.clone()),
            ("metadata", self.metadata_text(id)),
        ]);
        if !self.env.is_empty() {
            fields.push(("env", json!(self.env).to_string()));
        }
        if !self.args.is_empty() {
            fields.push(("args", json!(self.args).to_string()));
        }
        fields
    }

    fn metadata_text(&self, id: &str) -> String {
        let mut metadata = self.metadata.clone();
        metadata.insert(ID.to_owned(), id.to_owned());
        json!(metadata).to_string()
    }
}

fn testcase_fields(testcase: &Testcase) -> [(&'static str, String); 5] {
    let (data, is_binary) = match testcase.as_text() {
        Some(text) => (text.to_owned(), "False"),
        None => (BASE64_STANDARD.encode(&testcase.bytes), "True"),
    };
    let size = testcase.size.unwrap_or(testcase.bytes.len() as u64);
    [
        ("testcase", data),
        ("testcase_isbinary", is_binary.to_owned()),
        ("testcase_quality", testcase.quality.to_string()),
        ("testcase_size", size.to_string()),
        ("testcase_ext", testcase.extension.clone()),
    ]
}

/// Normalizes line ends, drops the final one, replaces NULs (the server refuses them) and limits the length.
fn clean(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    shortened(lines.join("\n").replace('\0', "\u{fffd}"))
}

/// Removes the middle of a text that is too long: reports are at the beginning or at the end.
fn shortened(text: String) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let end = (0..=MAX_TEXT / 2).rev().find(boundary).unwrap_or(0);
    let start = (text.len() - MAX_TEXT / 2..text.len()).find(boundary).unwrap_or(text.len());
    let (head, tail) = (&text[..end], &text[start..]);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}

mod as_base64 {
    use super::*;
    use serde::{Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(input: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(input)?;
        BASE64_STANDARD.decode(text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::settings::AuthToken;
    use serde_json::Value;

    fn server() -> ServerAccount {
        let (tool, client) = ("ffuzz".to_owned(), "host-7".to_owned());
        ServerAccount {
            url: String::new(),
            token: AuthToken::new("t"),
            authority: None,
            patience: std::time::Duration::ZERO,
            tool,
            client,
        }
    }

    fn report(input: &Value, testcase: Option<Testcase>) -> CrashReport {
        let text = |key: &str| input[key].as_str().expect("text").to_owned();
        CrashReport {
            key: String::new(),
            program: ProgramInfo {
                product: "Slices".into(),
                product_version: "83038f74".into(),
                platform: "x86-64".into(),
                os: "Linux".into(),
            },
            output: Output { stdout: text("stdout"), stderr: text("stderr"), ..Output::default() },
            testcase,
            args: vec!["run".into(), "@@".into()],
            env: [("LANG".to_owned(), "C".to_owned())].into(),
            metadata: [
                ("pathPrefix", "/src/"),
                ("buildFlags", "-fsanitize=address -g"),
                ("seed", "12"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        }
    }

    /// Fields by name; metadata, env and args are compared as JSON, ignoring spaces.
    fn comparable(fields: impl Iterator<Item = (String, String)>) -> BTreeMap<String, Value> {
        fields
            .map(|(name, value)| {
                let is_json = ["metadata", "env", "args"].contains(&name.as_str());
                let value = if is_json {
                    serde_json::from_str(&value).expect("JSON")
                } else {
                    value.into()
                };
                (name, value)
            })
            .collect()
    }

    #[test]
    fn requests_are_those_of_the_reference_but_for_edge_white_space() {
        let text = include_str!("../../../tests/data/fuzzmanager/submit_requests.json");
        let recorded: Value = serde_json::from_str(text).expect("JSON");
        let make = |bytes: &[u8], extension: &str, quality| {
            Some(Testcase {
                bytes: bytes.to_vec(),
                extension: extension.into(),
                quality,
                size: None,
            })
        };
        let cases = [make(b"k=v&x=1 +%\n", "txt", 0), make(b"\0\x01\xff\n", "bin", 4), None];
        for (testcase, request) in
            cases.into_iter().zip(recorded["requests"].as_array().expect("list"))
        {
            let report = report(&recorded["input"], testcase);
            let pairs = request["fields"].as_array().expect("fields").iter();
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let mut wanted = comparable(pairs.map(|pair| (text(&pair[0]), text(&pair[1]))));
            wanted.get_mut("metadata").expect("metadata")[ID] = "abc".into();
            if wanted.get("testcase_ext").is_some_and(|ext| ext == "txt") {
                // It ends in a line end, which the server would cut.
                wanted.insert("testcase".into(), BASE64_STANDARD.encode("k=v&x=1 +%\n").into());
                wanted.insert("testcase_isbinary".into(), "True".into());
            }
            let fields = report.fields("abc", &server(), &report.output).into_iter();
            assert_eq!(comparable(fields.map(|(name, value)| (name.to_owned(), value))), wanted);
        }
    }

    #[test]
    fn only_plain_words_are_text() {
        let is_text = |bytes: &[u8]| {
            Testcase { bytes: bytes.into(), ..Testcase::default() }.as_text().is_some()
        };
        assert!(is_text(b"a b\tc\nd"));
        for bytes in [&b""[..], b" a", b"a\n", b"a\x80b", "\u{e4}".as_bytes(), b"a\0b", b"a\rb"] {
            assert!(!is_text(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn long_texts_keep_both_ends() {
        let text = clean(&format!("first\n{}\nlast\0\n", "\u{e4}".repeat(MAX_TEXT)));
        assert!(text.len() < MAX_TEXT + 100);
        assert!(text.starts_with("first\n") && text.ends_with("\nlast\u{fffd}"));
        assert!(text.contains(" bytes left out"));
    }

    #[test]
    fn names_of_afl_have_no_ending() {
        let of = |name: &str| Testcase::extension_of(Path::new(name));
        assert_eq!(of("id:000000,sig:06,src:000001,time:12,op:havoc"), "");
        assert_eq!(
            (of("d.x/in.bin"), of("a.b,c"), of("in")),
            ("bin".into(), String::new(), String::new())
        );
    }

    #[test]
    fn a_report_survives_its_file() {
        let mut report = CrashReport { key: "k".into(), ..CrashReport::default() };
        report.testcase = Some(Testcase { bytes: vec![0, 255, 10], ..Testcase::default() });
        let text = serde_json::to_string(&report).expect("JSON");
        let read: CrashReport = serde_json::from_str(&text).expect("a report");
        assert_eq!(read.testcase.expect("its input").bytes, [0, 255, 10]);
    }
}
