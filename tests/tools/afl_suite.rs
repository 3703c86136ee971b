//! AFL++'s own tests, with ffuzz under the names of AFL++'s programs: the short form of `make afl-suite`.

use std::path::Path;
use std::process::Command;

use crate::common::{TestDir, repository, skip};

#[test]
fn the_tests_of_afl_pass() {
    let dir = TestDir::new();
    let programs = Path::new(env!("CARGO_BIN_EXE_ffuzz")).parent().unwrap();
    let mut suite = Command::new(repository("scripts/afl-suite.sh"));
    let output = suite.arg("--short").arg(programs).env("CARGO_TARGET_DIR", dir.path("")).output();
    let output = output.unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if err.contains("cannot fetch") {
        return skip("the tests of AFL++ cannot be fetched");
    }
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    for tool in
        ["afl-fuzz is working", "afl-cmin.py", "afl-tmin", "LTO persistent", "compiles: afl-cc"]
    {
        assert!(
            out.lines().any(|line| line.contains(tool) && line.contains("[+]")),
            "{tool}: {out}"
        );
    }
}
