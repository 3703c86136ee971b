//! Targets that must not start other programs.

use crate::compiling::{Bench, clangs};

/// Starts a program in the way that its input names; `execvp` is a function of its own.
const STARTS: &str = "#include <spawn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    int execvp(const char *file, char *const argv[]) { (void)file, (void)argv; return 0; }\n\
    int main(void) {\n\
      char *words[] = {\"true\", NULL};\n\
      pid_t pid;\n\
      FILE *pipe;\n\
      switch (getchar()) {\n\
      case 's': return system(\"true\");\n\
      case 'p': pipe = popen(\"true\", \"r\"); return pipe ? pclose(pipe) : 1;\n\
      case 'n': return posix_spawnp(&pid, \"true\", NULL, NULL, words, NULL);\n\
      case 'e': execl(\"/bin/true\", \"true\", (char *)NULL); return 1;\n\
      case 'v': execv(\"/bin/true\", words); return 1;\n\
      case 'o': return execvp(\"true\", words);\n\
      }\n\
      return 0;\n\
    }\n";

const ABORTED: i32 = 128 + 6;

#[test]
fn calls_that_start_programs_abort_on_request() {
    let denied = |env: &[(&str, &str)], flags: &str| {
        let bench = Bench::new();
        bench.write("starts.c", STARTS);
        let env = [env, &[("AFL_LLVM_DENY_EXEC", "1")]].concat();
        bench.build(&env, &format!("{flags} starts.c -o denied"));
        for way in ["s", "p", "n", "e", "v"] {
            assert_eq!(bench.status("denied", way.as_bytes()), ABORTED, "{env:?} {flags}: {way}");
        }
        for way in ["o", ""] {
            assert_eq!(bench.status("denied", way.as_bytes()), 0, "{env:?} {flags}: {way}");
        }
    };
    for clang in clangs() {
        denied(&[("FFUZZ_CC", clang)], "-O0");
        denied(&[("FFUZZ_CC", clang)], "-O2");
    }
    denied(&[], "-O2 -flto -fuse-ld=lld");
    let bench = Bench::new();
    bench.write("starts.c", STARTS);
    bench.build(&[], "-O2 starts.c -o allowed");
    for way in ["s", "p", "n", "e", "v", "o"] {
        assert_eq!(bench.status("allowed", way.as_bytes()), 0, "{way}");
    }
}
