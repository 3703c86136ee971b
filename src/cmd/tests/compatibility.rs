//! `docs/afl-compatibility.md`: the state of every AFL++ option, generated from the option definitions and the list of
//! commands.

use std::fmt::Write as _;

use clap::CommandFactory;

use crate::cmd::command;
use crate::cmd::fuzz::args::{Args, Unsupported};

/// Options of afl-fuzz 4.22, as in its `getopt` string.
const LETTERS: &str = "aAbBcCdDeEfFgGhiIlLmMnNoOpPQRsStTUVWXxYzZ";
/// AFL++'s programs and the commands that replace them.
const PROGRAMS: &[(&[&str], &str)] = &[
    (&["fuzz"], "fuzz"),
    (&["cc", "clang", "clang-fast", "clang-lto", "lto", "gcc", "gcc-fast"], "cc"),
    (&["c++", "clang++", "clang-fast++", "clang-lto++", "lto++", "g++", "g++-fast"], "c++"),
    (&["showmap"], "showmap"),
    (&["cmin", "cmin.bash", "cmin.py"], "cmin"),
    (&["tmin"], "tmin"),
    (&["whatsup"], "whatsup"),
    (&["plot"], "plot"),
    (&["addseeds"], "addseeds"),
];

const HEAD: &str = "\
# Coming from AFL++

This page is generated from the definitions in `src/cmd`. An option that is *not supported* ends the start with a
one-line error. An *ignored* one prints one warning that names the alternative.

[env.md](env.md) has all variables of AFL++, the [refused and ignored ones](env.md#without-effect) in a table of their
own.

";

const DIFFERENCES: &str = "\
## Differences

- An output folder that holds work is never overwritten, even after a short campaign: `-i -`
  resumes it.
- Without `-M` and `-S`, `OUT` has links to the files in `OUT/default`. `afl-whatsup` refuses a
  folder with such links (`ffuzz-whatsup` does not); `afl-plot OUT/default` works.
- `-C` skips seeds that do not crash, instead of ending.
- Without a free core a campaign starts unbound. The frequency governor is not checked.
- A misspelt variable prints a warning with the nearest name, without a pause.
- `AFL_CRASH_TRACES` writes to `traces/`, next to `crashes/`.
- Wrong usage exits with 2; in the tools that AFL++ also has, with 1 as in AFL++.
";

fn page() -> String {
    format!("{HEAD}{}\n{DIFFERENCES}\n{}", programs(), options())
}

fn programs() -> String {
    let mut text = String::from("## Programs\n\n| AFL++ | ffuzz |\n|---|---|\n");
    for (theirs, ours) in PROGRAMS {
        let name = if *ours == "fuzz" { "ffuzz".into() } else { format!("ffuzz-{ours}") };
        let theirs: Vec<String> = theirs.iter().map(|name| format!("`afl-{name}`")).collect();
        let _ = writeln!(text, "| {} | `{name}` |", theirs.join(", "));
    }
    text + "\nA link with one of AFL++'s names is the program of `ffuzz` beside it. The compilers are all clang.\n"
}

fn options() -> String {
    let mut rows: Vec<(String, String, &str)> = Vec::new();
    for arg in Args::command().get_arguments() {
        let (Some(letter), Some(help)) = (arg.get_short(), arg.get_help()) else { continue };
        let help = help.to_string();
        let state = if help.contains("no effect") { "ignored" } else { "supported" };
        let value = arg.get_action().takes_values().then(|| arg.get_value_names()).flatten();
        let value = value.and_then(<[_]>::first).map_or(String::new(), |name| format!(" {name}"));
        rows.push((format!("-{letter}{value}"), help, state));
    }
    let of_afl = |option: &str| option.len() == 2 && LETTERS.contains(&option[1..]);
    for row in Unsupported::default().rows().iter().filter(|row| of_afl(row.option)) {
        rows.push((row.option.to_owned(), row.meaning.to_owned(), row.state()));
    }
    rows.sort_by_key(|row| (row.0.to_lowercase(), row.0.clone()));
    let mut text = String::from("## Options\n\n| option | state | meaning |\n|---|---|---|\n");
    for (option, meaning, state) in rows {
        let _ = writeln!(text, "| `{option}` | {state} | {} |", meaning.replace('|', "or"));
    }
    text
}

#[test]
fn the_page_is_that_of_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/afl-compatibility.md");
    if std::env::var_os("FFUZZ_TEST_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == page(), "run: FFUZZ_TEST_WRITE_DOCS=1 cargo test the_page_is");
}

#[test]
fn every_letter_of_afl_has_its_row() {
    let options = options();
    for letter in LETTERS.chars() {
        let row = options.lines().filter(|line| line.starts_with(&format!("| `-{letter}")));
        assert_eq!(row.count(), 1, "-{letter}");
    }
}

#[test]
fn each_of_these_programs_has_its_command() {
    for (theirs, ours) in PROGRAMS {
        for name in theirs.iter().filter(|name| **name != "fuzz") {
            assert_eq!(crate::cmd::counterpart(name), *ours);
            assert!(command(ours).is_some(), "{ours}");
        }
    }
}
