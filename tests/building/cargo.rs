//! `cargo ffuzz`: harnesses in the layout of cargo-fuzz, built and fuzzed by one command.

use std::process::Command;

use crate::common;
use common::*;

/// A package with harnesses in `fuzz/`. They need no crate: what `libfuzzer-sys` exports is written out.
fn package() -> TestDir {
    let dir = TestDir::new();
    dir.write("Cargo.toml", "[package]\nname = \"parser\"\nedition = \"2021\"\n");
    dir.write("src/lib.rs", "");
    for name in ["checked", "keyed", "named"] {
        let file = repository(&format!("tests/targets/{name}.rs"));
        let harness = std::fs::read_to_string(file).unwrap();
        dir.write(&format!("fuzz/fuzz_targets/{name}.rs"), harness);
    }
    dir.write(
        "fuzz/Cargo.toml",
        "[package]\nname = \"parser-fuzz\"\nedition = \"2021\"\n[workspace]\n\
         [[bin]]\nname = \"checked\"\npath = \"fuzz_targets/checked.rs\"\n\
         [[bin]]\nname = \"keyed\"\npath = \"fuzz_targets/keyed.rs\"\n\
         [[bin]]\nname = \"named\"\npath = \"fuzz_targets/named.rs\"\n",
    );
    install(&dir);
    dir
}

/// Sets the link that makes `ffuzz` a subcommand of cargo.
fn install(dir: &TestDir) {
    std::fs::create_dir_all(dir.path("bin")).unwrap();
    let link = dir.path("bin/cargo-ffuzz");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ffuzz"), link).unwrap();
}

/// As a user calls it, in a folder of the package.
fn cargo(dir: &TestDir, folder: &str, line: &str) -> (i32, String, String) {
    cargo_with(dir, folder, line, &[])
}

/// The same of what succeeds: its output and messages.
fn does(dir: &TestDir, line: &str) -> (String, String) {
    let (code, out, said) = cargo(dir, ".", line);
    assert_eq!(code, 0, "{line}: {said}");
    (out, said)
}

fn cargo_with(
    dir: &TestDir,
    folder: &str,
    line: &str,
    variables: &[(&str, &str)],
) -> (i32, String, String) {
    let path = format!("{}:{}", dir.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("cargo");
    command.current_dir(dir.path(folder)).arg("ffuzz").args(line.split_whitespace());
    // Those of the tests' own build are no user's.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO"] {
        command.env_remove(name);
    }
    command.env("PATH", path).env("XDG_CACHE_HOME", cache()).env("AFL_NO_UI", "1");
    command.env("AFL_NO_AFFINITY", "1").env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1");
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn harnesses_of_cargo_fuzz_are_listed_built_and_fuzzed() {
    let dir = package();
    for folder in ["src", "fuzz", "fuzz/fuzz_targets"] {
        let (code, out, said) = cargo(&dir, folder, "list");
        assert_eq!((code, &*out), (0, "checked\nkeyed\nnamed\n"), "{folder}: {said}");
    }
    let (code, out, said) = cargo(&dir, ".", "build");
    assert_eq!(code, 0, "{said}");
    // In the order in which cargo has built them.
    let program = out.lines().find(|path| path.ends_with("/release/keyed")).unwrap();
    assert!(program.contains("/fuzz/target/ffuzz/") && out.lines().count() == 3, "{out}");
    assert!(std::path::Path::new(program).exists());
    for run in [1, 2] {
        let (code, _, said) = cargo(&dir, "fuzz", "run keyed -E 5000000 -s 1");
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
fn scripts_for_cargo_fuzz_go_on() {
    let dir = package();
    let does = |line: &str| does(&dir, line);
    // Options of libFuzzer, and a folder of seeds.
    dir.write("in/a", "twelve bytes");
    let line = "run keyed in -- -runs=5000000 -seed=1 -max_len=128 -timeout=2";
    let (code, _, said) = cargo(&dir, ".", line);
    assert_eq!(code, 1, "{said}");
    for text in [
        "INITED cov: ",
        "panicked at",
        "Failing input:\n\n\t",
        "Reproduce with:\n\n\tcargo ffuzz run keyed ",
        "Minimize test case with:\n\n\tcargo ffuzz tmin keyed ",
        "Error: Fuzz target exited with exit status: 77",
    ] {
        assert!(said.contains(text), "no {text:?} in {said}");
    }
    let crashes = dir.names("fuzz/artifacts/keyed");
    assert!(crashes.len() == 1 && crashes[0].starts_with("crash-"), "{crashes:?}");
    let crash = format!("fuzz/artifacts/keyed/{}", crashes[0]);
    assert!(dir.names("in").len() > 1, "new inputs are in the folder");
    // An input that crashes shows that, as the harness alone would.
    let (code, _, said) = cargo(&dir, ".", &format!("run keyed {crash}"));
    assert!(code == 1 && said.contains("panicked at"), "{code}: {said}");
    let small = does(&format!("tmin keyed {crash} -- -e")).0;
    let small = small.trim();
    assert!(small.contains("/fuzz/artifacts/keyed/minimized-from-"), "{small}");
    let (code, _, said) = cargo(&dir, ".", &format!("run keyed {small}"));
    assert!(code == 1 && said.contains("panicked at"), "{code}: {said}");
    // What campaigns have found joins the corpus.
    does("run keyed in -E 20000 -s 1");
    dir.write("fuzz/corpus/keyed/first", "twelve bytes");
    dir.write("fuzz/corpus/keyed/second", "twelve bytes");
    std::fs::copy(dir.path(&crash), dir.path("fuzz/corpus/keyed/crash")).unwrap();
    does("cmin keyed -- -T 1");
    let (corpus, artifacts) = (dir.names("fuzz/corpus/keyed"), dir.names("fuzz/artifacts/keyed"));
    let is_hash = |name: &&String| name.len() == 40;
    assert!(corpus.iter().any(|name| is_hash(&name)), "{corpus:?}");
    assert!(!corpus.contains(&"second".into()) && !corpus.contains(&"crash".into()), "{corpus:?}");
    assert!(artifacts.iter().any(|name| is_hash(&name)), "{artifacts:?}");
    let mut before = dir.names("fuzz/ffuzz-out/corpus-before/keyed");
    before.sort();
    assert_eq!(before, ["crash", "first", "second"]);
    // The power went off between two steps.
    dir.write("fuzz/ffuzz-out/corpus-before/keyed.moved/kept", "kept");
    let (code, _, said) = cargo(&dir, ".", "cmin keyed");
    let is_refused =
        said.contains("an earlier cmin did not end") && said.contains("move its files");
    assert!(code == 1 && is_refused, "{code}: {said}");
    assert_eq!(dir.text("fuzz/ffuzz-out/corpus-before/keyed.moved/kept"), "kept");
    let said = does("run keyed -- -runs=0").1;
    assert!(said.contains(&format!("{:8} files found in", corpus.len())), "{said}");
}

#[test]
fn options_of_cargo_fuzz_are_taken() {
    let dir = package();
    let does = |line: &str| does(&dir, line);
    does("check keyed");
    // The harness fails in an assertion.
    dir.write("in/a", [255]);
    for (options, code) in [("-O", 0), ("-O -a", 1), ("-D -s none", 1)] {
        let (seen, _, said) = cargo(&dir, ".", &format!("run {options} checked in/a"));
        assert_eq!(seen, code, "{options}: {said}");
    }
    let other = "--codegen-units 2 --trace-div --strip-dead-code=false --disable-branch-folding";
    let said = does(&format!("build --trace-gep {other} keyed")).1;
    assert!(said.contains("--trace-gep has no effect"), "{said}");
    // The standard library is built too, for which sources and a nightly toolchain are needed.
    let (code, _, said) = cargo_with(&dir, ".", "build -c checked", &[("RUSTC_BOOTSTRAP", "1")]);
    assert!(code == 0 || said.contains("rustup component add rust-src"), "{code}: {said}");
    let built = does("build --no-cfg-fuzzing --no-trace-compares --target-dir there checked").0;
    assert!(built.contains("/there/"), "{built}");
    let printed = does("fmt checked in/a").0;
    assert_eq!(printed, "the number 255");
    let (code, _, said) = cargo(&dir, ".", "fmt keyed in/a");
    assert!(code == 1 && said.contains("prints nothing of in/a"), "{code}: {said}");
    does("run -j 2 keyed in -- -E 1000");
    let output = "fuzz/ffuzz-out/keyed";
    let has_stats = |name: &String| dir.path(output).join(name).join("fuzzer_stats").exists();
    let workers = dir.names(output).into_iter().filter(has_stats).count();
    assert_eq!(workers, 2, "{:?}", dir.names(output));
    let (code, _, said) = cargo(&dir, ".", "run -j 2 keyed in/a");
    assert!(
        code == 2 && said.contains("--jobs cannot be used when running inputs"),
        "{code}: {said}"
    );
    let (code, _, said) = cargo(&dir, ".", "run -D -O keyed");
    assert!(code == 1 && said.contains("cannot be used with"), "{code}: {said}");
}

#[test]
fn commands_of_cargo_fuzz_have_their_short_names_and_libfuzzers_options() {
    let dir = package();
    let does = |line: &str| does(&dir, line);
    assert_eq!(does("ls").0, "checked\nkeyed\nnamed\n");
    does("c keyed");
    let program = does("b checked").0;
    assert!(program.ends_with("/release/checked\n"), "{program}");
    // Source lines of the corpus, and of other folders.
    dir.write("fuzz/corpus/checked/a", [7]);
    let file = does("cov checked").0;
    assert_eq!(file.trim(), dir.path("fuzz/coverage/checked/lcov.info").to_str().unwrap());
    let lines = dir.text("fuzz/coverage/checked/lcov.info");
    let own = lines.split("end_of_record").find(|part| part.contains("fuzz_targets/checked.rs"));
    let own = own.unwrap_or_else(|| panic!("{lines}"));
    assert!(own.contains("\nDA:8,1\n") && !lines.contains("SF:/rustc/"), "{lines}");
    dir.write("in/a", [1]);
    dir.write("in/b", [2]);
    does("coverage checked in");
    assert!(dir.text("fuzz/coverage/checked/lcov.info").contains("\nDA:8,2\n"));
    // libFuzzer's way to minimize.
    let said = does("cmin checked in -- -merge=1").1;
    assert!(said.contains("MERGE-OUTER: successful"), "{said}");
    assert_eq!(dir.names("in").len(), 1);
    dir.write("crash", [255, 255, 255, 255]);
    let (small, said) = does("tmin -r 200 checked crash");
    assert!(said.contains("Minimized artifact:\n\n\t"), "{said}");
    assert!(said.contains("Reproduce with:\n\n\tcargo ffuzz run checked "), "{said}");
    assert_eq!(std::fs::read(small.trim()).unwrap(), [255]);
    let (code, _, said) = cargo(&dir, ".", "tmin checked in/a -- -runs=200");
    assert!(code == 1 && said.contains("Test case minimization failed"), "{code}: {said}");
    let (code, _, said) = cargo(&dir, ".", "cov checked src");
    assert!(code == 0, "{code}: {said}");
    std::fs::create_dir(dir.path("empty")).unwrap();
    let (code, _, said) = cargo(&dir, ".", "cov checked empty");
    assert!(code == 1 && said.contains("no inputs in empty"), "{code}: {said}");
}

/// Domains of a harness in Rust, which another build does not need.
#[test]
fn a_rust_harness_has_maps_of_its_own() {
    let dir = package();
    let crate_folder = repository("integrations/waypoints");
    let manifest = dir.text("fuzz/Cargo.toml");
    let more = format!(
        "[[bin]]\nname = \"nested\"\npath = \"fuzz_targets/nested.rs\"\n\
         [dependencies]\nwaypoints = {{ path = {:?} }}\n",
        crate_folder.display().to_string()
    );
    dir.write("fuzz/Cargo.toml", manifest + &more);
    let harness = std::fs::read_to_string(repository("tests/targets/nested.rs")).unwrap();
    dir.write("fuzz/fuzz_targets/nested.rs", harness);
    let program = does(&dir, "build nested").0;
    let program = std::path::Path::new(program.trim());
    let shown = dir.tool("showdsf -q", program, "").input("(()((").run().expect(0).out;
    assert_eq!(shown, "dsf[0] = 3\ndsf[1] = 4294967295\n");
    does(&dir, "run nested -p -E 20000 -s 1");
    let best = dir.tool("showdsf -q -i fuzz/ffuzz-out/nested/default/queue", program, "").run();
    let best = best.expect(0).out;
    let depth = best.lines().find_map(|line| line.strip_prefix("dsf[0] = ")?.parse::<u32>().ok());
    assert!(depth > Some(5), "{best}");
    // Without ffuzz the maps do nothing.
    let harness = dir.text("fuzz/fuzz_targets/nested.rs");
    let main = "fn main() { assert_eq!(LLVMFuzzerTestOneInput([0].as_ptr(), 1), 0); \
                assert!(!waypoints::is_present()); }";
    dir.write("fuzz/fuzz_targets/nested.rs", harness.replace("#![no_main]", "") + main);
    let mut plain = Command::new("cargo");
    plain.args(["run", "-q", "--bin", "nested", "--target-dir"]).arg(dir.path("plain"));
    plain.env_remove("CARGO_TARGET_DIR").current_dir(dir.path("fuzz"));
    let plain = plain.output().unwrap();
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
}

/// Programs with `fuzz!` of the crate `afl` have a `main` of their own.
#[test]
fn a_program_with_a_loop_of_afl_is_fuzzed_and_has_no_options_of_libfuzzer() {
    let dir = TestDir::new();
    dir.write("Cargo.toml", "[package]\nname = \"looping\"\nedition = \"2024\"\n");
    let program = std::fs::read_to_string(repository("tests/targets/looping.rs")).unwrap();
    dir.write("src/main.rs", program);
    install(&dir);
    let until_crash = [("AFL_BENCH_UNTIL_CRASH", "1")];
    let (code, _, said) = cargo_with(&dir, ".", "run looping -V 120 -s 1", &until_crash);
    assert_eq!(code, 0, "{said}");
    let crashes = dir.entries("ffuzz-out/looping/default/crashes");
    let crash = crashes.iter().find(|name| name.starts_with("id:")).expect("a crash");
    let crash = format!("ffuzz-out/looping/default/crashes/{crash}");
    let (code, _, said) = cargo(&dir, ".", &format!("run looping {crash}"));
    assert!(code == 1 && said.contains("signal: 6"), "{code}: {said}");
    let (code, _, said) = cargo(&dir, ".", "run looping src/main.rs");
    assert!(code == 0 && said.contains("Executed src/main.rs: exit status: 0"), "{code}: {said}");
    for (line, cause) in [
        ("run looping -- -max_total_time=5", "no -max_total_time=5"),
        ("cmin looping -- -merge=1", "no -merge"),
        ("tmin -r 5 looping src/main.rs", "no -minimize_crash"),
    ] {
        let (code, _, said) = cargo(&dir, ".", line);
        let is_refused = said.contains("looping has a main of its own") && said.contains(cause);
        assert!(code == 2 && is_refused, "{line}: {code}: {said}");
    }
}

#[test]
fn a_package_of_harnesses_is_made() {
    let dir = package();
    std::fs::remove_dir_all(dir.path("fuzz")).unwrap();
    let (code, out, said) = cargo(&dir, "src", "init -t first");
    assert_eq!((code, out.ends_with("/fuzz/fuzz_targets/first.rs\n")), (0, true), "{out}{said}");
    let (code, out, said) = cargo(&dir, "fuzz", "add second");
    assert_eq!((code, out.ends_with("/fuzz/fuzz_targets/second.rs\n")), (0, true), "{out}{said}");
    assert_eq!(cargo(&dir, ".", "list").1, "first\nsecond\n");
    let manifest = dir.text("fuzz/Cargo.toml");
    assert!(manifest.contains("[dependencies.parser]\npath = \"..\"\n"), "{manifest}");
    assert!(dir.text("fuzz/fuzz_targets/first.rs").contains("fuzz_target!(|data: &[u8]|"));
    for (line, cause, remedy) in [
        ("init", "Cargo.toml is there already", "cargo ffuzz add NAME"),
        ("add second", "has a harness second", "another name"),
        ("add a/b", "is no name of a harness", "letters"),
    ] {
        let (code, _, said) = cargo(&dir, ".", line);
        assert!(
            code != 0 && said.contains(cause) && said.contains(remedy),
            "{line}: {code} {said}"
        );
    }
    let outside = TestDir::new();
    install(&outside);
    let (code, _, said) = cargo(&outside, ".", "init");
    assert!(code == 1 && said.contains("is in no package of cargo"), "{code}: {said}");
}

/// The sanitizer has a memcmp of its own, which is logged like the other one.
#[test]
fn a_harness_may_have_a_sanitizer_of_rustc() {
    let dir = package();
    // What a nightly toolchain allows without this variable.
    let line = "build keyed --sanitizer address";
    let (code, out, said) = cargo_with(&dir, ".", line, &[("RUSTC_BOOTSTRAP", "1")]);
    assert_eq!(code, 0, "{said}");
    let program = std::path::Path::new(out.trim());
    let job = dir.tool("showmap --comparisons -q -o -", program, "");
    let input = [&0xfeed_beef_u32.to_le_bytes()[..], &[b'.'; 40]].concat();
    let text = job.input(input).run().expect(0).out;
    assert!(text.contains("a keyword that is longer"), "{text}");
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
        assert!([1, 2].contains(&code) && lines(cause) && lines(remedy), "{code}: {said}");
    };
    fails(".", "run kyed", "has no harness kyed", "it has: checked, keyed, named");
    fails(".", "list --fuzz-dir nowhere", "cannot read nowhere/Cargo.toml", "cargo ffuzz init");
    fails(".", "run keyed nothing", "cannot read nothing", "come before options");
    fails(".", "run keyed src fuzz", "fuzz is one folder of seeds too many", "into one folder");
    fails(".", "cmin keyed src fuzz", "fuzz is one folder too many", "one corpus at a time");
    fails(".", "tmin keyed Cargo.toml src", "src is one file too many", "one input at a time");
    fails(".", "run keyed -- -entropic=1 -V 3", "an option of libFuzzer", "of one of them");
    dir.write("fuzz/fuzz_targets/keyed.rs", "no program");
    fails(".", "build keyed", "cargo cannot build the harness", "see its messages above");
    dir.write("fuzz/Cargo.toml", "[package");
    fails(".", "list", "cargo cannot read", "see its message above");
}
