//! Tests of command line parsing.

use super::*;
use proptest::prelude::*;

fn parse(line: &str) -> Invocation {
    let words = line.split_whitespace().map(OsString::from).collect();
    Invocation::parse(words, |file| (file == "args").then(|| b"-c 'a b.c' -o \"x y\"\n".to_vec()))
}

#[test]
fn the_stage_is_known_by_the_options() {
    for (line, stage) in [
        ("a.c", BuildStage::Link),
        ("a.c -o a", BuildStage::Link),
        ("-c a.c", BuildStage::Compile),
        ("-S a.c", BuildStage::Compile),
        ("-c -emit-llvm a.c", BuildStage::Compile),
        ("-E a.c", BuildStage::Preprocess),
        ("-M a.c", BuildStage::Preprocess),
        ("-MM -c a.c", BuildStage::Preprocess),
        ("-MD -MF a.d -c a.c", BuildStage::Compile),
        ("-fsyntax-only a.c", BuildStage::Preprocess),
    ] {
        assert_eq!(parse(line).stage, stage, "{line}");
    }
}

#[test]
fn preprocessed_source_is_that_of_a_compilation() {
    assert!(parse("-E a.c").of_expanded().unwrap().compiles());
    for line in ["-E -M a.c", "-MM a.c", "-c a.c", "-E a.s", "-fsyntax-only a.c"] {
        assert!(parse(line).of_expanded().is_none(), "{line}");
    }
}

#[test]
fn questions_and_calls_without_a_file_are_left_alone() {
    for line in [
        "",
        "--version",
        "-v",
        "-dumpmachine",
        "-print-prog-name=ld",
        "--print-search-dirs",
        "-dumpversion a.c",
        "-nostdlib a.c",
        "-ffreestanding -c a.c",
        "-m32 a.c",
        "--target=armv7-linux-gnueabi a.c",
    ] {
        assert!(!parse(line).wants_instrumentation(), "{line}");
    }
    for line in [
        "-nodefaultlibs a.o -lc",
        "-nostartfiles crt1.o a.o -l c",
        "-nodefaultlibs -fsanitize=fuzzer a.o",
    ] {
        assert!(parse(line).wants_instrumentation(), "{line}");
    }
    assert!(parse("-m32 -fsanitize=fuzzer a.c").lacks_driver());
    assert!(!parse("-m32 -fsanitize=fuzzer -c a.c").lacks_driver());
    assert!(!parse("-fsanitize=fuzzer a.c").lacks_driver());
    assert_eq!(parse("-nostdlib -c a.c").lacks_libc(), Some("-nostdlib"));
    assert_eq!(parse("-nostdlib a.o -lc").lacks_libc(), None);
    assert!(parse("-v a.c").wants_instrumentation());
    assert!(parse("-o x -lm").wants_instrumentation());
}

#[test]
fn the_last_option_decides_for_which_machine_code_is_made() {
    for (line, option) in [
        ("-m32 -c a.c", "-m32"),
        ("-m64 -mx32 a.c", "-mx32"),
        ("-target mips-linux-gnu a.c", "--target=mips-linux-gnu"),
        ("--target=wasm32 -c a.c", "--target=wasm32"),
        ("--target=x86_64-w64-mingw32 a.c", "-w64-mingw32"),
        ("--target=x86_64-unknown-none -c a.c", "-unknown-none"),
    ] {
        assert!(parse(line).wrong_machine().is_some_and(|found| found.ends_with(option)), "{line}");
        assert!(!parse(line).wants_instrumentation(), "{line}");
    }
    for line in ["-m32 -m64 a.c", "-m32 -E a.c", "-m32", "-m32 -print-file-name=libc.so a.c"] {
        assert_eq!(parse(line).wrong_machine(), None, "{line}");
    }
    for rest in ["", "-linux-gnu", "-pc-linux-gnu", "-linux-musl"] {
        let line = format!("--target={}{rest} a.c", std::env::consts::ARCH);
        assert_eq!(parse(&line).wrong_machine(), None, "{line}");
    }
}

#[test]
fn sources_are_distinguished_from_objects_and_values() {
    let invocation = parse("-I inc.c -include pre.c a.c b.o c.s d.S -L lib -lm e.cc -o f.c");
    assert_eq!(invocation.sources, ["a.c", "e.cc"]);
    assert_eq!(parse("-x c - -o a").sources, ["-"]);
    assert_eq!(parse("-xc++ a.txt -x none b.o").sources, ["a.txt"]);
    assert!(parse("-x c a.txt").language_forced);
    assert!(!parse("-x c a.txt -x none b.o").language_forced);
    assert!(parse("-x assembler-with-cpp a.c").sources.is_empty());
}

#[test]
fn headers_alone_are_precompiled_and_never_linked() {
    for line in [
        "-x c++-header pch.h -o pch.h.gch",
        "pch.hpp -o pch.hpp.pch",
        "-c pch.h",
        "-xc-header a.txt",
    ] {
        let invocation = parse(line);
        assert_eq!(invocation.stage, BuildStage::Compile, "{line}");
        assert!(invocation.compiles() && !invocation.links(), "{line}");
    }
    assert!(parse("a.c pch.h").links() && parse("pch.h b.o").links());
    assert!(!parse("-fsyntax-only pch.h").compiles());
    assert!(parse("-include pch.h a.c").includes_first && !parse("a.c").includes_first);
}

#[test]
fn response_files_are_read_but_kept() {
    let invocation = parse("@args");
    assert_eq!(invocation.sources, ["a b.c"]);
    assert_eq!(invocation.stage, BuildStage::Compile);
    assert_eq!(invocation.arguments, ["@args"]);
    assert!(!parse("@missing -c").wants_instrumentation() || parse("@missing -c").inputs == 1);
}

#[test]
fn response_files_in_response_files_are_followed_and_one_in_itself_is_left() {
    let read = |file: &OsStr| match file.to_str().unwrap() {
        "a" => Some(b"@b -c".to_vec()),
        "b" => Some(b"@c x.c".to_vec()),
        "c" => Some(b"'-fsanitize=fuzzer' @a".to_vec()),
        _ => None,
    };
    let invocation = Invocation::parse(vec!["@a".into()], read);
    assert_eq!(invocation.words, ["-fsanitize=fuzzer", "@a", "x.c", "-c"]);
    assert!(invocation.fuzzer_driver);
}

#[test]
fn products_of_a_link() {
    assert_eq!(parse("-shared a.o").product, Product::SharedLibrary);
    assert_eq!(parse("-r a.o b.o").product, Product::Object);
    assert!(!parse("-r a.o b.o").links());
    assert!(parse("a.o b.o").links());
}

#[test]
fn libfuzzer_has_many_names() {
    assert!(parse("-fsanitize=address,fuzzer a.c").fuzzer_driver);
    assert!(parse("a.o /usr/lib/libFuzzingEngine.a").fuzzer_driver);
    assert!(parse("a.o -lFuzzer").fuzzer_driver);
    assert!(!parse("-fsanitize=fuzzer-no-link a.c").fuzzer_driver);
}

#[test]
fn the_linker_counts_only_in_a_link() {
    let default = || Linker::TakesScript;
    assert_eq!(parse("-fuse-ld=gold a.o").linker(default), Linker::RefusesScript);
    assert_eq!(parse("-fuse-ld=gold -c a.c").linker(default), Linker::TakesScript);
    assert_eq!(parse("--ld-path=/opt/wild a.o").linker(default), Linker::Unknown);
    assert_eq!(parse("-fuse-ld=gold -fuse-ld=lld a.o").linker(default), Linker::TakesScript);
}

proptest! {
    #[test]
    fn quoted_words_are_read_as_they_were(words in proptest::collection::vec("[ -~\n]{0,9}", 0..9)) {
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        prop_assert_eq!(split(&quoted(&words)), words);
    }

    #[test]
    fn any_words_can_be_read(words in proptest::collection::vec("[-@a-z.=,/ ]{0,12}", 0..12)) {
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        prop_assert_eq!(Invocation::parse(words.clone(), |_| None).arguments, words);
    }
}
