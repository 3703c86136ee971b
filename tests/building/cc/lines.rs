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
