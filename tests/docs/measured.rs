//! The comparison with other fuzzers does not run when one of them is not complete.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

#[path = "../../benches/parts/peers.rs"]
#[expect(dead_code, reason = "the benchmark uses the rest")]
mod peers;

const PARTS: [&str; 6] = [
    "afl-clang-fast",
    "SanitizerCoveragePCGUARD.so",
    "cmplog-instructions-pass.so",
    "cmplog-routines-pass.so",
    "cmplog-switches-pass.so",
    "libAFLDriver.a",
];

/// What `benches/peers.sh` leaves, as far as the benchmark looks.
fn built(folder: &Path, version: &str) {
    for part in PARTS {
        fs::write(folder.join(part), "").unwrap();
    }
    let fuzzer = folder.join("afl-fuzz");
    fs::write(&fuzzer, format!("#!/bin/sh\necho afl-fuzz++{version}\n")).unwrap();
    fs::set_permissions(&fuzzer, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_peer_without_one_of_its_parts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    built(folder.path(), "4.40c");
    assert_eq!(peers::Afl::built(folder.path()).unwrap().name, "AFL++ 4.40c");
    for part in PARTS.into_iter().chain(["afl-fuzz"]) {
        built(folder.path(), "4.40c");
        fs::remove_file(folder.path().join(part)).unwrap();
        let missing = peers::Afl::built(folder.path()).err().unwrap();
        assert!(missing.cause.ends_with(part), "{}", missing.cause);
        assert_eq!(missing.remedy, "run benches/peers.sh");
    }
}

#[test]
fn a_peer_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    built(folder.path(), "4.41a");
    let missing = peers::Afl::built(folder.path()).err().unwrap();
    assert!(missing.cause.ends_with("holds AFL++ 4.41a, not 4.40c"), "{}", missing.cause);
}

#[test]
fn the_script_that_builds_them_says_which_program_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    for program in ["bash", "dirname"] {
        symlink(Path::new("/usr/bin").join(program), folder.path().join(program)).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers.sh");
    let output = Command::new("/usr/bin/bash").arg(script).env("PATH", folder.path()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "peers: cargo is not installed\npeers: run: make setup-test\n");
}
