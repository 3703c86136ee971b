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
