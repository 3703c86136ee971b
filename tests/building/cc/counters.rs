//! What the counters of coverage see: edges that are hit 256 times, and each condition of a folded branch.

use std::collections::BTreeSet;
use std::process::Command;

use crate::compiling::{Bench, clangs};

/// Each of the two ways through the loop is hit 256 times, and nothing else tells the inputs apart.
const LOOP: &str = "#include <stdio.h>\nint main(void) { volatile int c = getchar(), n = 256;\n\
    _Pragma(\"clang loop unroll(disable)\")\n\
    while (n--) { if (c == 'a') __asm__ volatile(\"nop # a\"); else __asm__ volatile(\"nop # b\"); }\n\
    return 0; }\n";

fn looping(variables: &[(&str, &str)], flags: &str) -> Bench {
    let bench = Bench::new();
    bench.write("loop.c", LOOP);
    bench.write("in/a", "a");
    bench.write("in/b", "b");
    bench.build(variables, &format!("{flags} loop.c -o loop"));
    bench
}

fn tool(bench: &Bench, words: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
    command.current_dir(bench.folder.path()).args(words.split_whitespace());
    let output = command.args(["--", "./loop"]).env("AFL_QUIET", "1").output().unwrap();
    assert!(output.status.success(), "{words}: {output:?}");
}

/// Are both inputs distinguished by their edges, and kept?
fn are_distinguished(bench: &Bench) -> [bool; 2] {
    tool(bench, "showmap -q -e -i in -o maps");
    let [a, b] = ["maps/a", "maps/b"].map(|map| std::fs::read_to_string(bench.path(map)).unwrap());
    tool(bench, "cmin -i in -o kept");
    let kept = std::fs::read_dir(bench.path("kept")).unwrap().flatten();
    let kept = kept.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    [a != b, kept.count() == 2]
}

const NOT_ZERO: (&str, &str) = ("AFL_LLVM_NOT_ZERO", "1");

#[test]
fn an_edge_that_is_hit_256_times_is_reported_and_kept_if_asked() {
    for clang in clangs() {
        for flags in ["-O0", "-O2", "-O2 -fsanitize=address"] {
            let bench = looping(&[("FFUZZ_CC", clang), NOT_ZERO], flags);
            assert_eq!(are_distinguished(&bench), [true; 2], "clang {clang} {flags}");
        }
    }
    for flags in ["-flto -fuse-ld=lld", "-flto=thin -fuse-ld=lld", "-flto"] {
        let bench = looping(&[NOT_ZERO], flags);
        assert_eq!(are_distinguished(&bench), [true; 2], "{flags}");
    }
}

#[test]
fn counters_skip_zero_without_words_and_only_if_asked() {
    let bench = looping(&[("FFUZZ_NO_WORDS", "1"), NOT_ZERO], "-O2");
    assert_eq!(are_distinguished(&bench), [true; 2]);
    let bench = looping(&[("AFL_LLVM_SKIP_NEVERZERO", "1"), NOT_ZERO], "-O2");
    assert_eq!(are_distinguished(&bench), [false; 2]);
    let bench = looping(&[], "-O2");
    assert_eq!(are_distinguished(&bench), [false; 2]);
}

/// MemorySanitizer would report a condition that is read before the one that protects it.
#[test]
fn with_memory_sanitizer_folded_branches_stay_as_they_are() {
    let seen = |flags: &str| {
        let bench = Bench::new();
        bench.write("loop.c", CHAINS);
        for input in ["xxyz", "Gxyz"] {
            bench.write(&format!("in/{input}"), input);
        }
        bench.build(&[], &format!("{flags} loop.c -o loop"));
        tool(&bench, "showmap -q -e -i in -o maps");
        ["xxyz", "Gxyz"].map(|input| std::fs::read(bench.path(&format!("maps/{input}"))).unwrap())
    };
    let [none, first] = seen("-O2 -fsanitize=memory");
    assert_eq!(none, first);
    let [none, first] = seen("-O2");
    assert_ne!(none, first);
}

/// From -O1 on, both chains are a branch on one value.
const CHAINS: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { char b[4] = {0}; if (read(0, b, 4) != 4) return 1;\n\
    if (b[0] == 'G' && b[1] == 'O' && b[2] > 'Z' && b[3] != b[2]) puts(\"all\");\n\
    if (b[0] == '!' || b[1] == '?' || b[2] == b[3]) puts(\"any\");\n\
    return 0; }\n";

#[test]
fn each_condition_of_a_folded_branch_has_counters() {
    let inputs = ["xxyz", "Gxyz", "GOYz", "GOzz", "GOyz", "!xyz", "x?yz", "xxzz"];
    for clang in clangs() {
        for flags in ["-O0", "-O1", "-O3", "-O2 -fsanitize=address"] {
            let bench = Bench::new();
            bench.write("loop.c", CHAINS);
            for input in inputs {
                bench.write(&format!("in/{input}"), input);
            }
            bench.build(&[("FFUZZ_CC", clang)], &format!("{flags} loop.c -o loop"));
            tool(&bench, "showmap -q -e -i in -o maps");
            let maps: BTreeSet<String> = inputs
                .iter()
                .map(|input| std::fs::read_to_string(bench.path(&format!("maps/{input}"))).unwrap())
                .collect();
            assert_eq!(maps.len(), inputs.len(), "clang {clang} {flags}");
        }
    }
}
