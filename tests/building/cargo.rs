//! `cargo ffuzz`: harnesses in the layout of cargo-fuzz, built and fuzzed by one command.

use std::process::Command;

use crate::common;
use common::*;

/// A package with harnesses in `fuzz/`. They need no crate: what `libfuzzer-sys` exports is written out.
fn package() -> TestDir {
    let dir = TestDir::new();
    dir.write("Cargo.toml", "[package]\nname = \"parser\"\nedition = \"2021\"\n");
    dir.write("src/lib.rs", "");
    for name in ["keyed", "named"] {
        let file = repository(&format!("tests/targets/{name}.rs"));
        let harness = std::fs::read_to_string(file).unwrap();
        dir.write(&format!("fuzz/fuzz_targets/{name}.rs"), harness);
    }
    dir.write(
        "fuzz/Cargo.toml",
        "[package]\nname = \"parser-fuzz\"\nedition = \"2021\"\n[workspace]\n\
         [[bin]]\nname = \"keyed\"\npath = \"fuzz_targets/keyed.rs\"\n\
         [[bin]]\nname = \"named\"\npath = \"fuzz_targets/named.rs\"\n",
    );
    std::fs::create_dir_all(dir.path("bin")).unwrap();
    let link = dir.path("bin/cargo-ffuzz");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ffuzz"), link).unwrap();
    dir
}

/// As a user calls it, in a folder of the package.
fn cargo(dir: &TestDir, folder: &str, line: &str) -> (i32, String, String) {
    let path = format!("{}:{}", dir.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("cargo");
    command.current_dir(dir.path(folder)).arg("ffuzz").args(line.split_whitespace());
    // Those of the tests' own build are no user's.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO"] {
        command.env_remove(name);
    }
    command.env("PATH", path).env("XDG_CACHE_HOME", cache()).env("AFL_NO_UI", "1");
    command.env("AFL_NO_AFFINITY", "1").env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn harnesses_of_cargo_fuzz_are_listed_built_and_fuzzed() {
    let dir = package();
    for folder in ["src", "fuzz", "fuzz/fuzz_targets"] {
        let (code, out, said) = cargo(&dir, folder, "list");
        assert_eq!((code, &*out), (0, "keyed\nnamed\n"), "{folder}: {said}");
    }
    let (code, out, said) = cargo(&dir, ".", "build");
    assert_eq!(code, 0, "{said}");
    let program = out.lines().next().unwrap();
    assert!(
        program.contains("/fuzz/target/ffuzz/") && program.ends_with("/release/keyed"),
        "{out}"
    );
    assert!(std::path::Path::new(program).exists());
    for run in [1, 2] {
        let (code, _, said) = cargo(&dir, "fuzz", "run keyed -E 1000000 -s 1");
        assert_eq!(code, 0, "{said}");
        assert!(!said.contains("Compiling"), "run {run} builds again: {said}");
    }
    assert!(dir.path("fuzz/corpus/keyed/seed").exists());
    let crashes = dir.entries("fuzz/ffuzz-out/keyed/default/crashes");
    assert!(crashes.iter().any(|name| name.starts_with("id:")), "{crashes:?}");
    // cargo strips a program whose profile wants no debug information.
    let job = dir.tool("showmap --comparisons -q -o -", std::path::Path::new(program), "");
    let text = job.input("twelve bytes").run().expect(0).out;
    assert!(text.contains("fuzz_targets/keyed.rs:14:"), "{text}");
    // Own folders take the place of these.
    dir.write("in/a", "x");
    let (code, _, said) = cargo(&dir, ".", "run keyed -i in -o out -E 100");
    assert_eq!(code, 0, "{said}");
    assert!(dir.path("out/default/fuzzer_stats").exists());
}

#[test]
fn texts_of_a_rust_program_are_words() {
    let dir = package();
    let (code, out, said) = cargo(&dir, ".", "build named");
    assert_eq!(code, 0, "{said}");
    let program = std::path::Path::new(out.trim());
    let words = dir.tool("showmap --tokens -q -o -", program, "").run().expect(0).out;
    for word in ["vermilion", "turquoise", "kilogram", "fortnight", "furlong"] {
        assert!(words.contains(&format!("\"{word}\"")), "{word}: {words}");
    }
    // Of the standard library, of messages, and of files.
    for other in ["NotFound", "thing", ".rs", "SIG"] {
        assert!(!words.contains(other), "{other}: {words}");
    }
    let (code, _, said) = cargo(&dir, ".", "run named -E 3000000 -s 1");
    assert_eq!(code, 0, "{said}");
    let crashes = dir.entries("fuzz/ffuzz-out/named/default/crashes");
    assert!(crashes.iter().any(|name| name.starts_with("id:")), "{crashes:?}");
}

#[test]
fn what_cannot_be_built_is_named() {
    let dir = package();
    let fails = |folder: &str, line: &str, cause: &str, remedy: &str| {
        let (code, _, said) = cargo(&dir, folder, line);
        let lines = |part: &str| {
            said.lines().any(|line| line.starts_with("cargo ffuzz: ") && line.contains(part))
        };
        assert!(code == 1 && lines(cause) && lines(remedy), "{code}: {said}");
    };
    fails(".", "run kyed", "has no harness kyed", "it has: keyed, named");
    fails(".", "list --fuzz-dir nowhere", "cannot read nowhere/Cargo.toml", "cargo fuzz init");
    dir.write("fuzz/fuzz_targets/keyed.rs", "no program");
    fails(".", "build keyed", "cargo cannot build the harness", "see its messages above");
    dir.write("fuzz/Cargo.toml", "[package");
    fails(".", "list", "cargo cannot read", "see its message above");
}
