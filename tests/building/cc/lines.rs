//! Command lines of builds: machines that have no runtime, precompiled headers, response files.

use crate::compiling::Bench;

/// Exit code of `ffuzz cc`, and what it says.
fn said(bench: &Bench, language: &str, variables: &[(&str, &str)], line: &str) -> (i32, String) {
    let mut command = bench.compiler(language, line);
    let output = command.env_remove("AFL_QUIET").envs(variables.iter().copied()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn code_for_a_machine_without_a_runtime_is_refused_with_the_remedy() {
    let bench = Bench::new();
    bench.write("a.c", "int f(void) { return 1; }\n");
    for option in ["-m32", "-m16", "--target=i386-linux-gnu", "--target=x86_64-unknown-none"] {
        let line = format!("{option} -c a.c -o a.o");
        let (code, text) = said(&bench, "cc", &[], &line);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(&format!("{option}: ffuzz has no runtime")), "{text}");
        assert!(text.contains("AFL_NOOPT=1") && !bench.path("a.o").exists(), "{text}");
        let (code, text) = said(&bench, "cc", &[("AFL_NOOPT", "1")], &line);
        assert!(code == 0 && text.is_empty(), "{text}");
        std::fs::remove_file(bench.path("a.o")).unwrap();
    }
    bench.write("args", "-m32 -c a.c");
    assert_eq!(said(&bench, "cc", &[], "@args").0, 1);
    assert_eq!(said(&bench, "cc", &[], "-m32 -m64 -c a.c"), (0, String::new()));
    assert_eq!(said(&bench, "cc", &[], "-m32 -E a.c"), (0, String::new()));
}

#[test]
fn code_without_a_c_library_is_compiled_with_a_warning_that_it_is_not_instrumented() {
    let bench = Bench::new();
    bench.write("a.c", "int f(void) { return 1; }\n");
    for option in ["-ffreestanding", "-nostdlib"] {
        let (code, text) = said(&bench, "cc", &[], &format!("{option} -c a.c"));
        let expected = format!(
            "ffuzz-cc: warning: {option}: without instrumentation, which needs a C library\n"
        );
        assert_eq!((code, text), (0, expected));
    }
    bench.write("conftest.c", "int f(void) { return 1; }\n");
    assert_eq!(said(&bench, "cc", &[], "-ffreestanding -c conftest.c"), (0, String::new()));
}

/// A header with a function, whose branch is only seen if code from it is instrumented.
const PRECOMPILED: &str = "#pragma once\n#include <stdio.h>\n\
    static int f(int c) { if (c == 'x') return 5; return 3; }\n";

#[test]
fn precompiled_headers_are_made_and_used_however_they_are_named() {
    let bench = Bench::new();
    bench.write("x", "x");
    for (language, forced, extension) in
        [("cc", "c-header", "h"), ("c++", "c++-header", "h"), ("c++", "c++-header", "hpp")]
    {
        let header = format!("pch.{extension}");
        let source = if language == "cc" { "m.c" } else { "m.cc" };
        bench.write(&header, PRECOMPILED);
        bench.write(source, "int main(void) { return f(getchar()); }\n");
        for (make, made) in [
            (format!("-x {forced} {header} -o {header}.gch"), format!("{header}.gch")),
            (format!("-c {header} -o {header}.pch"), format!("{header}.pch")),
            (format!("{header} -o {header}.pch"), format!("{header}.pch")),
        ] {
            // clang++ itself warns about a file that is called .h and is one of C++.
            let quiet = "-Wno-deprecated";
            for variables in [vec![], vec![("WAYPOINTS", "cmp")], vec![("AFL_LLVM_IJON", "1")]] {
                let (code, text) = said(&bench, language, &variables, &format!("{quiet} {make}"));
                assert_eq!((code, text.as_str()), (0, ""), "{make}");
                let seen = format!("-H {quiet} -Werror -include {header} {source} -o m");
                let (code, text) = said(&bench, language, &variables, &seen);
                assert_eq!(code, 0, "{text}");
                assert!(!text.contains("stdio.h"), "it is read again: {text}");
                assert_eq!(bench.status("m", b"x"), 5);
                let direct = format!("-H {quiet} -include-pch {made} {source} -o m");
                let (code, text) = said(&bench, language, &variables, &direct);
                assert!(code == 0 && !text.contains("stdio.h"), "{text}");
                assert!(!bench.client("", "m", &["x"]).contains("edges=0"));
            }
            std::fs::remove_file(bench.path(&made)).unwrap();
        }
    }
}

#[test]
fn options_in_response_files_act_as_on_the_command_line() {
    let bench = Bench::new();
    let source = "#include <stddef.h>\n#include <stdlib.h>\n\
        int LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { if (n && *d == 'A') abort(); return 0; }\n";
    bench.write("h.c", source);
    bench.write("A", "A");
    bench.write("a", "a");
    bench.write("inner", "'-fsanitize=fuzzer,undefined'\n\"h.c\"");
    bench.write("outer", "-O1 @inner\n-o t");
    let (code, text) = said(&bench, "cc", &[], "@outer");
    assert!(code == 0 && text.starts_with("ffuzz-cc: t: "), "{text}");
    let seen = bench.client("-p -s", "t", &["a", "A"]);
    assert!(seen.contains("status=137f new a") && seen.contains("status=6 "), "{seen}");
    // The compile step alone, and a line that is longer than the system takes at once.
    bench.write("inner", "-fsanitize=fuzzer-no-link -c h.c\n-o h.o");
    assert_eq!(said(&bench, "cc", &[], "@outer -o h.o"), (0, String::new()));
    let many = "-L/nothing/of/this/name/is/anywhere\n".repeat(80_000);
    bench.write("inner", format!("{many}h.o\n'-fsanitize=fuzzer'"));
    let (code, text) = said(&bench, "cc", &[], "@outer");
    assert!(code == 0 && text.starts_with("ffuzz-cc: t: "), "{text}");
    assert!(bench.client("-p -s", "t", &["a"]).contains("status=137f new a"));
}
