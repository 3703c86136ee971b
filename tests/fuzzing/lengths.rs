//! Lengths and offsets in the input, which havoc keeps right.

use std::path::Path;

use crate::common;
use common::*;

/// For tests/targets/records.c.
const SEED: &[u8] = b"R\0\x32n\0\x08the name.t\0\x14a text of 20 letters.e\0\x07the end.";

fn campaign(dir: &TestDir, program: &Path, variables: &[(&str, &str)]) -> Finished {
    let mut job = dir.fuzz("-s 1 -c - -E 4000", program, "").env("AFL_DISABLE_TRIM", "1");
    for (name, value) in variables {
        job = job.env(name, value);
    }
    job.run()
}

/// Entries of the queue that the search for lengths has found: data and their length have grown together.
fn found(dir: &TestDir) -> Vec<String> {
    let names = dir.names("out/default/queue");
    names.into_iter().filter(|name| name.contains("op:lengths")).collect()
}

#[test]
fn lengths_grow_with_what_they_count() {
    assert_eq!(SEED.len(), 0x32);
    let program = target("records.c", "-fsanitize=fuzzer");
    let dir = TestDir::with_seed(SEED);
    campaign(&dir, &program, &[]).expect(0);
    let names = found(&dir);
    let grown = names.iter().map(|name| dir.read(&format!("out/default/queue/{name}")));
    let is_right = |input: &Vec<u8>| {
        let number = |at: usize| usize::from(input[at]) << 8 | usize::from(input[at + 1]);
        number(1) == input.len() && input[15] == b't' && number(16) == input.len() - 30
    };
    assert!(grown.into_iter().any(|input| is_right(&input)), "{names:?}");
}

#[test]
fn variables_of_afl_limit_the_search_for_lengths() {
    let program = target("records.c", "-fsanitize=fuzzer");
    for (name, value) in [("AFL_FRAMESHIFT_DISABLE", "1"), ("AFL_FRAMESHIFT_MAX_OVERHEAD", "0.0")] {
        let dir = TestDir::with_seed(SEED);
        campaign(&dir, &program, &[(name, value)]).expect(0);
        assert_eq!(found(&dir), Vec::<String>::new(), "{name}");
    }
    let dir = TestDir::with_seed(SEED);
    let refused = campaign(&dir, &program, &[("AFL_FRAMESHIFT_MAX_OVERHEAD", "10")]).expect(1);
    assert!(
        refused.err.contains("AFL_FRAMESHIFT_MAX_OVERHEAD=10 is not a number from 0.0 to 1.0"),
        "{}",
        refused.err
    );
}

/// For tests/targets/der.c: an identifier of three bytes, four elements deep.
fn certificate() -> Vec<u8> {
    let element = |kind: u8, parts: &[&[u8]]| {
        let content = parts.concat();
        [&[kind, content.len() as u8], &content[..]].concat()
    };
    let algorithm = element(0x30, &[&element(6, &[b"\x2b\x65\x70"])]);
    let key = element(0x30, &[&algorithm, &element(3, &[b"\0KEYBIT"])]);
    let body = element(0x30, &[&element(2, &[b"\x07"]), &key]);
    element(0x30, &[&body, &element(3, &[b"\0SIGNATURE"])])
}

/// Another identifier has another length, and so have the elements that it lies in; behind it a longer key is wanted.
#[test]
fn elements_of_other_lengths_are_put_into_others() {
    let program = target("der.c", "-O2 -fsanitize=fuzzer");
    for seed in 1..=3 {
        let dir = TestDir::with_seed(certificate());
        let options = format!("-s {seed} -t 2000 -E 150000");
        let job = dir.fuzz(&options, &program, "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.run().expect(0);
        assert_eq!(dir.stat("saved_crashes"), 1, "{:#?}", dir.stats());
    }
}
