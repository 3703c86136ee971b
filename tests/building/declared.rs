//! Domains declared in a file: the examples of `docs/declared-domains.md`, everything that can be
//! watched, and what is said about mistakes.

use crate::common;
use crate::page;
use common::{Finished, TestDir, clangs};
use page::{blocks_before, follow};

#[test]
fn the_examples_of_the_page_are_right() {
    follow(&TestDir::new(), &blocks_before("declared-domains.md", "## Every key"), "19");
}

const PROGRAM: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    struct header { unsigned char kind; unsigned short length; unsigned counts[4]; };\n\
    typedef struct { int depth; } state;\n\
    static struct header current;\nstatic unsigned total;\n\
    static long twice(long n) { return 2 * n; }\n\
    static int parse(struct header *h, const char *text) {\n\
      h->kind = text[0]; h->length = text[1] * 3; h->counts[2] = 9; return h->length; }\n\
    int main(void) {\n\
      char text[32] = {0}, copy[32]; state s; struct header local; static int calls;\n\
      int n = (int)fread(text, 1, 31, stdin);\n\
      for (int i = 0; i < n; i++) total += text[i];\n\
      do { n -= 1; } while (n > 2);\n\
      s.depth = parse(&local, text) + 1;\n\
      current.length = 77; calls = 5;\n\
      memcpy(copy, text, n);\n\
      if (total == 1000) return 3;\n\
      if (n < -5) return 4;\n\
      return twice(-1) < 0 && twice(s.depth) + calls > 5 ? 0 : 1; }\n";

/// The values of one domain over `PROGRAM` with the input "AB123", sorted, by clang and level.
#[track_caller]
fn values(declaration: &str, expected: &[u32]) {
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    dir.write("d.toml", format!("[[domain]]\nname = \"d\"\n{declaration}\n"));
    for clang in clangs() {
        for level in ["-O0", "-O3"] {
            let line = format!("cc {level} p.c -o p");
            let job = dir.ffuzz(&line).env("WAYPOINTS", "@d.toml").env("FFUZZ_CC", clang);
            job.env("AFL_QUIET", "1").run().expect(0);
            let shown = dir.showdsf("", &dir.path("p"), "").input("AB123").run().expect(0);
            assert_eq!(shown.sorted_values(), expected, "clang {clang} {level}: {declaration}");
        }
    }
}

#[test]
fn calls_by_name() {
    values(
        "watch = \"calls\"\nnames = \"twi*\"\nvalue = \"arg0\"\noperation = \"max\"",
        &[199, u32::MAX],
    );
    values(
        "watch = \"calls\"\nnames = \"twice\"\nvalue = \"result\"\nkey = 3\noperation = \"set\"",
        &[398],
    );
    values(
        "watch = \"calls\"\nnames = [\"memcpy\", \"fread\"]\nvalue = \"arg2 * 100\"\noperation = \"add\"",
        &[200, 3100],
    );
    values("watch = \"calls\"\nnames = \"parse\"\nin = \"twice\"\noperation = \"add\"", &[]);
}

#[test]
fn returns_of_functions() {
    values(
        "watch = \"returns\"\nnames = \"parse\"\nvalue = \"result * 2\"\noperation = \"max\"",
        &[396],
    );
    values(
        "watch = \"returns\"\nnames = \"twice\"\nvalue = 1\nkey = \"arg0\"\nsize = 16\noperation = \"add\"",
        &[1, 1],
    );
}

#[test]
fn loops_and_blocks() {
    values("watch = \"loops\"\noperation = \"add\"", &[3, 6]);
    values("watch = \"blocks\"\nin = \"parse\"\noperation = \"add\"", &[1]);
    values("watch = \"blocks\"\nin = \"other/*.c\"\noperation = \"add\"", &[]);
}

#[test]
fn stores_to_variables() {
    values(
        "watch = \"stores\"\nnames = \"header.length\"\nvalue = \"stored\"\noperation = \"max\"",
        &[77, 198],
    );
    values(
        "watch = \"stores\"\nnames = [\"header.counts\", \"*.depth\"]\nvalue = \"stored\"\noperation = \"max\"",
        &[9, 199],
    );
    values(
        "watch = \"stores\"\nnames = [\"total\", \"calls\"]\nin = \"p.c\"\nvalue = \"stored\"\noperation = \"max\"",
        &[5, 281],
    );
    values(
        "watch = \"stores\"\nnames = \"n\"\nin = \"main\"\nvalue = \"stored\"\noperation = \"or\"",
        &[5, 7],
    );
}

#[test]
fn the_minimum_of_a_run() {
    let total = "watch = \"stores\"\nnames = \"total\"\nvalue = \"stored\"\n";
    values(&format!("{total}operation = \"min\"\nreducer = \"min\""), &[65]);
}

#[test]
fn comparisons_by_distance() {
    let within = "watch = \"comparisons\"\nin = \"main\"\n";
    let smallest =
        format!("{within}value = \"difference\"\noperation = \"set\"\nreducer = \"min\"");
    values(&smallest, &[0, 0, 2, 7, 398, 719]);
    let bits = format!("{within}value = \"equal_bits\"\noperation = \"max\"\nkey = 0");
    values(&bits, &[59]);
}

fn refused(file: &str, cause: &str, remedy: &str) -> Finished {
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    dir.write("d.toml", file);
    dir.ffuzz("cc p.c -o p").env("WAYPOINTS", "mem,@d.toml").run().refused(1, cause, remedy)
}

#[test]
fn mistakes_name_file_line_and_key() {
    let loops = "[[domain]]\nname = \"d\"\nwatch = \"loops\"\noperation = \"add\"\n";
    refused(
        &format!("{loops}value = \"result\""),
        "d.toml:5: value: 'result' means",
        "write a number",
    );
    refused(&format!("{loops}sise = 3"), "d.toml:5: unknown field `sise`", "`size`");
    refused(&format!("{loops}size = \"3\""), "d.toml:5: size: invalid type", "i64");
    refused("[[domain]]\nname = \"d\"\n", "d.toml:1: missing field `watch`", "explains every key");
    refused(&format!("{loops}{loops}"), "two domains are called 'd'", "rename one");
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    let job = dir.ffuzz("cc p.c -o p").env("WAYPOINTS", "@no.toml");
    job.run().refused(1, "cannot read the declared domains in no.toml", "FFUZZ_DOMAIN_PATH");
}

#[test]
fn places_without_a_number_are_skipped_and_counted() {
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    dir.write("lib/d.toml", "[[domain]]\nname = \"d\"\nwatch = \"calls\"\nnames = [\"parse\", \"twice\"]\nvalue = \"arg0\"\noperation = \"max\"\n");
    let job = dir.ffuzz("cc p.c -o p").env("WAYPOINTS", "@d.toml");
    job.env("FFUZZ_DOMAIN_PATH", &dir.path("lib").display().to_string())
        .run()
        .expect(0)
        .says("[+] [d] Instrumented 2 locations.")
        .says("[!] WARNING: [d] Skipped 1 locations: the first argument 0 is no integer");
    let checked = dir.ffuzz("domains @lib/d.toml").run().expect(0);
    assert!(checked.out.starts_with("d: ready for clang"), "{}", checked.out);
}

#[test]
fn declared_and_other_domains_keep_their_order() {
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    dir.write("d.toml", "[[domain]]\nname = \"d\"\nwatch = \"loops\"\noperation = \"add\"\nsize = 16\n[[domain]]\nname = \"e\"\nwatch = \"loops\"\noperation = \"add\"\nsize = 32\n");
    let job = dir.ffuzz("cc p.c -o p").env("WAYPOINTS", "mem,@d.toml,cmp");
    job.run().expect(0);
    let shown = dir.showdsf("", &dir.path("p"), "").input("AB").run().expect(0);
    let sizes: Vec<&str> = shown
        .err
        .lines()
        .filter_map(|line| line.split("Size=").nth(1)?.split(',').next())
        .collect();
    assert_eq!(sizes, ["1024", "16", "32", "65536"]);
}

#[test]
fn sums_saturate_at_the_largest_value() {
    let dir = TestDir::new();
    let source = "__attribute__((noinline)) int got(unsigned n) { return n > 7; }\n\
        int main(int c, char **v) { return got(0xfffffff0u) + got(c * 0x20u); }\n";
    dir.write("s.c", source);
    let calls = "[[domain]]\nname = \"d\"\nwatch = \"calls\"\nnames = \"got\"\nvalue = \"arg0\"\n";
    dir.write("d.toml", format!("{calls}key = 0\noperation = \"add\"\n"));
    for clang in clangs() {
        let job = dir.ffuzz("cc s.c -o s").env("WAYPOINTS", "@d.toml").env("FFUZZ_CC", clang);
        job.env("AFL_QUIET", "1").run().expect(0);
        let shown = dir.showdsf("", &dir.path("s"), "").run().expect(0);
        assert_eq!(shown.values(), ["dsf[0] = 4294967295"], "clang {clang}");
    }
}

#[test]
fn updates_are_inlined_where_there_is_an_instruction_for_them() {
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    for (operation, called) in
        [("add", None), ("max", None), ("set", Some("__fuzzfactory_dsfp_set"))]
    {
        let blocks = format!("name = \"d\"\nwatch = \"blocks\"\noperation = \"{operation}\"\n");
        dir.write("d.toml", format!("[[domain]]\n{blocks}"));
        let job = dir.ffuzz("cc -c p.c -o p.o").env("WAYPOINTS", "@d.toml");
        job.env("AFL_QUIET", "1").run().expect(0);
        let undefined = dir.program("nm").words("-u p.o").run().expect(0).out;
        let calls = undefined.split_whitespace().find(|name| name.contains("_dsfp_"));
        assert_eq!(calls, called, "{undefined}");
    }
}

#[test]
fn updates_are_not_instrumented_by_other_domains() {
    let dir = TestDir::new();
    dir.write("p.c", PROGRAM);
    let all = "[[domain]]\nname = \"d\"\nwatch = \"comparisons\"\nvalue = \"equal_bits\"\noperation = \"max\"\n";
    dir.write("d.toml", all);
    let seen = |waypoints: &str| {
        // Optimised, a program differs by the calls that were there until the end.
        let job = dir.ffuzz("cc -O0 p.c -o p").env("WAYPOINTS", waypoints);
        job.env("AFL_QUIET", "1").run().expect(0);
        let shown = dir.showdsf("", &dir.path("p"), "").input("AB123").run().expect(0);
        let of_perf = shown.keys().into_iter().zip(shown.values()).filter(|(key, _)| *key < 65536);
        of_perf.map(|(_, line)| line.to_owned()).collect::<Vec<_>>()
    };
    let alone = seen("perf");
    assert!(alone.len() > 9, "{alone:?}");
    assert_eq!(seen("perf,@d.toml"), alone);
}
