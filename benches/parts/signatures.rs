//! How long one crash takes to be looked up among 5 000 signatures that all do not match it: the
//! kinds that the server makes, assertions with paths, and expressions with look-behind.

use std::time::Instant;

use ffuzz::crashes::crash::{CrashFacts, Output, ProgramInfo, Signatures, beyond};
use serde_json::{Map, Value, json};

use super::{Bench, median};

const SIGNATURES: usize = 5000;
const LOOKUPS: usize = 15;
const HEADLINES: [&str; 5] = [
    "heap-buffer-overflow",
    "heap-use-after-free",
    "stack-buffer-overflow",
    "global-buffer-overflow",
    "stack-use-after-scope",
];

impl Bench {
    pub(super) fn signatures(&self) {
        let texts = (0..SIGNATURES).map(|number| {
            (format!("{number}.signature"), signature(number).to_string(), Map::new())
        });
        let start = Instant::now();
        let (signatures, refused) = Signatures::new(texts);
        let loading = start.elapsed().as_secs_f64() * 1e3;
        assert!(refused.is_empty(), "{}", refused[0].1);
        let output = output();
        let program = ProgramInfo { os: "linux".into(), ..ProgramInfo::default() };
        let (mut parsing, mut finding) = (vec![], vec![]);
        for _ in 0..LOOKUPS {
            let start = Instant::now();
            let info = beyond::parse(&output, &program);
            parsing.push(start.elapsed().as_secs_f64() * 1e3);
            let crash =
                CrashFacts { info: &info, output: &output, program: &program, testcase: None };
            let start = Instant::now();
            assert!(signatures.find(&crash).is_none(), "a signature matches");
            finding.push(start.elapsed().as_secs_f64() * 1e3);
        }
        // The first lookup compiles what the later ones use.
        let (first, bytes) = (finding[0], output.stdout.len() + output.stderr.len());
        println!(
            "signatures: {SIGNATURES} loaded in {loading:.0} ms; a crash with {bytes} bytes of output \
             parsed in {:.1} ms, looked up in {first:.1} ms at first, {:.1} ms later (worst {:.1})",
            median(&mut parsing),
            median(&mut finding),
            finding[LOOKUPS - 1]
        );
    }
}

fn signature(number: usize) -> Value {
    let output = |expression: String| json!({"type": "output", "value": expression});
    let symptoms = match number % 4 {
        0 | 1 => vec![
            output(format!("/ERROR: AddressSanitizer: {}/", HEADLINES[number % 5])),
            output("/(READ|WRITE) of size [0-9]{1,} at 0x[0-9a-fA-F]+ thread T[0-9]+/".into()),
            json!({"type": "stackFrames", "functionNames": [format!("call{number}"), "?", "main"]}),
            json!({"type": "crashAddress", "address": "> 0xFF"}),
        ],
        2 => {
            vec![output(format!("/([a-zA-Z]:)?/.+/file{number}\\.cpp(:[0-9]+)+: runtime error: /"))]
        }
        _ => vec![output(format!("/(?<!un)expectation [a-z]+ {number}|\\b(foo|bar){number}\\b/"))],
    };
    json!({"symptoms": symptoms})
}

/// A report behind some pages of a program's own talk.
fn output() -> Output {
    let talk =
        |line: usize| format!("demo: reading record {line} of a file, expected type {line}\n");
    let talk: String = (0..500).map(talk).collect();
    let frame = |depth: usize| format!("    #{depth} 0x564ff56bc15e in call(int) /src/a.cpp:7:1\n");
    let report = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x502000000018 at pc \
                  0x564ff56bc15f bp 0x7fff20f8c0e0 sp 0x7fff20f8c0d8\n\
                  READ of size 1 at 0x502000000018 thread T0\n";
    let stack: String = (0..30).map(frame).collect();
    Output { stdout: talk.clone(), stderr: talk + report + &stack, crash_data: String::new() }
}
