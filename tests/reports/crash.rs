//! Crash information and signatures against recorded answers of FuzzManager's parser: one test per
//! file of `tests/data/fuzzmanager`, which names every case that differs.

use std::fs;
use std::path::{Path, PathBuf};

use ffuzz::crashes::crash::{
    self, CrashFacts, CrashInfo, Output, ProgramInfo, Signature, SignatureOptions,
};
use serde_json::{Value, json};

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzzmanager").join(file)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The entries of a file that holds many.
fn cases(file: &str) -> Vec<Value> {
    json_of(&data(file))["cases"].as_array().unwrap().clone()
}

/// The files of `cases/`, by name.
fn files() -> Vec<(String, Value)> {
    let entries = fs::read_dir(data("cases")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), json_of(path))).collect()
}

fn text(case: &Value, key: &str) -> String {
    case[key].as_str().unwrap_or_default().to_owned()
}

fn output(case: &Value) -> Output {
    Output {
        stdout: text(case, "stdout"),
        stderr: text(case, "stderr"),
        crash_data: text(case, "crashdata"),
    }
}

fn program(config: &Value) -> ProgramInfo {
    ProgramInfo {
        product: text(config, "product"),
        product_version: text(config, "product_version"),
        platform: text(config, "platform"),
        os: text(config, "os"),
    }
}

fn parse(case: &Value) -> CrashInfo {
    crash::parse(&output(case), &program(&case["config"]))
}

fn hex(number: Option<u64>) -> Value {
    number.map_or(Value::Null, |number| json!(format!("{number:#x}")))
}

fn signature(info: &CrashInfo, frames: usize, force_address: bool) -> Value {
    let wanted = SignatureOptions { frames, force_address, force_instruction: false };
    let signature = Signature::create(info, wanted);
    signature.map_or(Value::Null, |made| serde_json::from_str(&made.to_json()).unwrap())
}

/// What differs from the recorded answer, one line each.
fn differences(name: &str, case: &Value) -> Vec<String> {
    let expected = &case["expect"];
    let info = parse(case);
    if expected.get("error").is_some() {
        let accepted = info.refused.is_none().then(|| format!("{name}: not refused"));
        return accepted.into_iter().collect();
    }
    let found = json!({
        "kind": info.kind.name(),
        "backtrace": info.backtrace,
        "crashAddress": hex(info.address),
        "crashInstruction": info.instruction,
        "shortSignature": info.short_text(),
        "signature": signature(&info, 8, false),
        "signatureForcedAddress": signature(&info, 8, true),
        "signatureFourFrames": signature(&info, 4, false),
    });
    let refused = info.refused.map(|reason| format!("{name}: refused: {reason}"));
    let differs =
        expected.as_object().unwrap().iter().filter(|(key, value)| found[*key] != **value);
    let lines = differs.map(|(key, value)| {
        format!("{name}: {key}\n    wanted {value}\n    got    {}", found[key])
    });
    lines.chain(refused).collect()
}

#[track_caller]
fn none(found: &[String]) {
    assert!(found.is_empty(), "{} differences:\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn a_signature_is_fitted_to_another_crash_as_the_server_does_it() {
    let mut failed = vec![];
    for case in cases("fitting.json") {
        let stack = case["stack"].as_array().unwrap().iter().enumerate();
        let frames: String = stack
            .map(|(number, name)| format!("#{number}  {} () at a.c:1\n", name.as_str().unwrap()))
            .collect();
        let crash_data = format!("Program received signal SIGABRT, Aborted.\n{frames}");
        let output = Output { crash_data, ..Output::default() };
        let program = ProgramInfo { platform: "x86-64".into(), ..ProgramInfo::default() };
        let info = crash::parse(&output, &program);
        let crash = CrashFacts { info: &info, output: &output, program: &program, testcase: None };
        let fitted = Signature::parse(&case["signature"].to_string()).unwrap().fitted(&crash);
        let fitted =
            fitted.map_or(Value::Null, |made| serde_json::from_str(&made.to_json()).unwrap());
        if fitted != case["expect"] {
            failed.push(format!(
                "{} {}\n  {fitted}\n  {}",
                case["signature"], case["stack"], case["expect"]
            ));
        }
    }
    assert!(failed.is_empty(), "{} differ:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn cases_are_read_as_the_reference_reads_them() {
    let files = files();
    assert_eq!(files.len(), 20);
    none(&files.iter().flat_map(|(name, case)| differences(name, case)).collect::<Vec<_>>());
}

#[test]
fn messages_are_read_as_the_reference_reads_them() {
    let cases = cases("messages.json");
    assert_eq!(cases.len(), 34);
    none(&cases.iter().flat_map(|case| differences(&text(case, "name"), case)).collect::<Vec<_>>());
}

/// What is read of a debugger's text.
fn debugged(instruction: &str, registers: &Value) -> CrashInfo {
    let registers = registers.as_object().unwrap();
    let lines =
        registers.iter().map(|(name, value)| format!("{name}\t{}\n", value.as_str().unwrap()));
    let crash_data = format!(
        "Program received signal SIGSEGV, Segmentation fault.\n{}=> 0x401000 <f+4>:\t{instruction}\n",
        lines.collect::<String>()
    );
    crash::parse(&Output { crash_data, ..Output::default() }, &ProgramInfo::default())
}

/// An address is computed when a debugger's text names none.
#[test]
fn addresses_are_computed_as_the_reference_computes_them() {
    let mut differences = vec![];
    for case in cases("addresses.json") {
        let instruction = text(&case, "instruction");
        let info = debugged(&instruction, &case["registers"]);
        let fails = case["address"] == "error";
        let wanted = if fails { &Value::Null } else { &case["address"] };
        if hex(info.address) != *wanted || info.refused.is_some() != fails {
            differences.push(format!("{instruction}: wanted {}, got {info:?}", case["address"]));
        }
    }
    none(&differences);
}

/// All addressing modes of x86-64, i386 and ARM64 (`scripts/gdb-addresses.py` has made the table).
#[test]
fn every_addressing_mode_is_computed_as_the_reference_computes_it() {
    let (mut differences, mut cases) = (vec![], 0);
    let table = json_of(&data("gdb_addresses.json"));
    for (machine, table) in table["machines"].as_object().unwrap() {
        for (instruction, wanted) in table["cases"].as_object().unwrap() {
            let info = debugged(instruction, &table["registers"]);
            let found = match &info.refused {
                Some(_) => "error".into(),
                None => hex(info.address),
            };
            if found != *wanted {
                differences.push(format!("{machine}: {instruction}: wanted {wanted}, got {found}"));
            }
            cases += 1;
        }
    }
    assert!(cases >= 1000, "{cases}");
    none(&differences);
}

#[test]
fn signatures_match_what_the_reference_matches() {
    let mut differences = vec![];
    let cases = cases("matching.json");
    assert_eq!(cases.len(), 93);
    for case in cases {
        let crash = &case["crash"];
        let mut info = crash::parse(&Output::default(), &ProgramInfo::default());
        info.backtrace = serde_json::from_value(crash["backtrace"].clone()).unwrap();
        let address = crash["crashAddress"].as_str();
        info.address =
            address.map(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap());
        info.instruction = crash["crashInstruction"].as_str().map(str::to_owned);
        let crash = CrashFacts {
            info: &info,
            output: &output(crash),
            program: &program(crash),
            testcase: crash["testcase"].as_str(),
        };
        let found = match Signature::parse(&case["signature"].to_string()) {
            Ok(signature) => json!(signature.matches(&crash)),
            Err(_) => json!("invalid"),
        };
        if found != case["matches"] {
            differences.push(format!("{}: wanted {}, got {found}", case["name"], case["matches"]));
        }
    }
    none(&differences);
}

#[test]
fn own_signatures_match_only_their_own_crashes() {
    let files = files();
    let expected = &json_of(&data("cross_match.json"))["matches"];
    let mut differences = vec![];
    for (name, case) in &files {
        let Some(signature) = Signature::create(&parse(case), unforced()) else {
            assert!(expected.get(name).is_none(), "{name} has no signature");
            continue;
        };
        let matched = files.iter().filter(|(_, other)| {
            let (info, output) = (parse(other), output(other));
            let program = program(&other["config"]);
            let crash =
                CrashFacts { info: &info, output: &output, program: &program, testcase: None };
            info.refused.is_none() && signature.matches(&crash)
        });
        let matched: Vec<&String> = matched.map(|(name, _)| name).collect();
        // The reference reads nothing from what it refuses, so it says nothing about it.
        if parse(case).refused.is_none() && json!(matched) != expected[name] {
            differences.push(format!("{name}: wanted {}, got {matched:?}", expected[name]));
        }
    }
    none(&differences);
}

fn unforced() -> SignatureOptions {
    SignatureOptions { force_address: false, ..SignatureOptions::default() }
}
