//! Crash information that the reference parser does not give (recorded outputs in
//! `tests/data/crashes`), what is sent to the server, and texts that nobody has ever written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ffuzz::crashes::crash::{
    self, CrashFacts, Output, ProgramInfo, Signature, SignatureOptions, Signatures, beyond,
};
use proptest::prelude::*;

fn texts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/crashes");
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), crash::text(&fs::read(path).unwrap()))).collect()
}

fn stderr(text: &str) -> Output {
    Output { stderr: text.to_owned(), ..Output::default() }
}

fn program() -> ProgramInfo {
    ProgramInfo { product: "demo".into(), os: "linux".into(), ..ProgramInfo::default() }
}

#[test]
fn reports_that_the_reference_misses_are_parsed() {
    let mut table = String::new();
    for (name, text) in texts() {
        let info = beyond::parse(&stderr(&text), &program());
        let frames = info.backtrace.iter().take(4).cloned().collect::<Vec<_>>().join(" < ");
        let address = info.address.map_or_else(String::new, |address| format!(" at {address:#x}"));
        table += &format!("{name}\n    {}: {}{address}\n", info.kind.name(), info.class());
        table += &format!("    {}\n    {frames}\n", info.short_text());
        assert!(info.is_crash(), "{name}");
    }
    insta::assert_snapshot!("beyond", table);
}

/// The reference's parser is the measure for `crash::parse`; so what that reads, the server reads.
#[test]
fn the_server_reads_what_is_sent() {
    for (name, text) in texts() {
        for output in [stderr(&text), Output { crash_data: text.clone(), ..Output::default() }] {
            let info = beyond::parse(&output, &program());
            let sent = crash::to_send(&output, &info);
            let read = crash::parse(&sent, &program());
            assert_eq!(read.refused, None, "{name}");
            assert_eq!(read.backtrace, info.backtrace, "{name}");
            assert!(sent.stderr.contains(&output.stderr), "{name}");
            assert!(sent.stderr.contains(&text) || sent.crash_data == text, "{name}");
        }
    }
}

/// One of our own signatures recognises the crash on the server, which sees what was sent.
#[test]
fn signatures_recognise_what_was_sent() {
    for (name, text) in texts() {
        let output = stderr(&text);
        let info = beyond::parse(&output, &program());
        let signature = Signature::create(
            &info,
            SignatureOptions { force_address: false, ..SignatureOptions::default() },
        );
        let Some(signature) = signature else {
            assert!(info.backtrace.len() < 3, "{name} has no signature");
            continue;
        };
        let sent = crash::to_send(&output, &info);
        let read = crash::parse(&sent, &program());
        let crash = CrashFacts { info: &read, output: &sent, program: &program(), testcase: None };
        assert!(signature.matches(&crash), "{name}: {}", signature.to_json());
    }
}

/// The identity of a report of AddressSanitizer.
fn identity(headline: &str, frames: &[&str]) -> u64 {
    let mut text = format!("==1==ERROR: AddressSanitizer: {headline}\n");
    for (number, frame) in frames.iter().enumerate() {
        text += &format!("    #{number} 0x12{number} in {frame} /src/a.c:1:1\n");
    }
    let info = beyond::parse(&stderr(&text), &program());
    assert_eq!(info.backtrace.len(), frames.len(), "{text}{info:#?}");
    info.identity("").hash()
}

fn overflow(access: &str, pc: &str) -> String {
    format!(
        "heap-buffer-overflow on address 0x6020{pc} at pc 0x{pc} bp 0x2 sp 0x3\n\
         {access} at 0x6020{pc} thread T0"
    )
}

#[test]
fn a_bug_is_the_same_whatever_size_address_and_spelling() {
    let write = |size: u32| overflow(&format!("WRITE of size {size}"), &format!("{size}00"));
    let of = |first: &str| identity(&write(4), &[first, "main"]);
    let hash = of("f");
    for size in [1, 8, 35, 49] {
        assert_eq!(identity(&write(size), &["f", "main"]), hash, "{size}");
    }
    let same = [
        "f(int)",
        "f.part.0",
        "f(int) (.isra.0)",
        "f(int) (.cold)",
        "f.llvm.123456",
        "f.constprop.0.cold.1",
        "f(int) [clone .part.0]",
        "(anonymous namespace)::f(int)",
        "{anonymous}::f(int)",
        "void f<int>(int)",
        "f[abi:cxx11](int)",
    ];
    for name in same {
        assert_eq!(of(name), hash, "{name}");
    }
    let pairs = [
        (
            "a::B<std::vector<int, std::allocator<int> > >::go(int) const",
            "a::B<std::vector<int>>::go",
        ),
        ("std::vector<a::B> a::make<a::B>(a::B const&)", "a::make<a::B>"),
        (
            "a::g(int)::$_0::operator()(int) const",
            "a::g(int)::'lambda'(int)::operator()(int) const",
        ),
        (
            "a::g(int)::{lambda(int)#1}::operator()(int) const",
            "a::g(int)::$_3::operator()(int) const",
        ),
        ("demo::parse::{{closure}}", "demo::parse::{closure#0}"),
        ("demo[0123456789abcdef]::parse", "demo::parse::h0123456789abcdef"),
        ("<demo::S as demo::T>::go", "demo::{impl#3}::go"),
        (
            "_$LT$demo..S$u20$as$u20$demo..T$GT$::go::h0123456789abcdef",
            "<demo::S<u8> as demo::T>::go",
        ),
        ("main.(*Parser).next", "main.Parser.next"),
    ];
    for (one, other) in pairs {
        assert_eq!(of(one), of(other), "{one}, {other}");
    }
    // Machinery differs from machine to machine, and how deep a recursion was from input to input.
    let all = |names: &[&str]| identity(&write(4), names);
    assert_eq!(all(&["__asan_memcpy", "f", "main", "__libc_start_main"]), hash);
    assert_eq!(all(&["strlen", "f", "main", "__libc_start_call_main", "_start"]), hash);
    assert_eq!(all(&["f", "std::__1::sort<int*>(int*)", "g", "main"]), all(&["f", "g", "main"]));
    assert_eq!(all(&["f", "a", "b", "a", "b", "a", "main"]), all(&["f", "a", "b", "main"]));
}

#[test]
fn different_bugs_have_different_identities() {
    let write = overflow("WRITE of size 4", "12");
    let hash = identity(&write, &["f", "main"]);
    assert_ne!(identity(&write, &["g", "main"]), hash);
    assert_ne!(identity(&write, &["f", "g", "main"]), hash);
    assert_ne!(identity(&overflow("READ of size 4", "12"), &["f", "main"]), hash);
    assert_ne!(identity(&write.replace("overflow", "underflow"), &["f", "main"]), hash);
    for (one, other) in [("a::f", "b::f"), ("f_part", "f")] {
        assert_ne!(identity(&write, &[one, "main"]), identity(&write, &[other, "main"]), "{one}");
    }
}

/// How a debugger shows a program that has given up, with what it said.
fn given_up(said: &str, frames: &[&str]) -> (Output, u64) {
    let stack = frames.iter().enumerate();
    let stack: String =
        stack.map(|(number, name)| format!("#{number}  0x12 in {name} ()\n")).collect();
    let crash_data = format!("Program received signal SIGABRT, Aborted.\n{stack}");
    let output = Output { crash_data, ..stderr(said) };
    let info = beyond::parse(&output, &program());
    (output, info.identity("").hash())
}

const RUST_END: [&str; 6] = [
    "__pthread_kill_implementation",
    "__GI_abort",
    "std::sys::pal::unix::abort_internal",
    "std::panicking::rust_panic_with_hook",
    "rust_begin_unwind",
    "core::panicking::panic_fmt",
];

#[test]
fn place_and_message_distinguish_aborts() {
    let rust = |place: &str, words: &str, function: &str| {
        let said = format!("\nthread 'main' (77) panicked at {place}:\n{words}\nnote: run with\n");
        given_up(&said, &[&RUST_END[..], &[function, "demo::main"]].concat())
    };
    let index = "index out of bounds: the len is 3 but the index is 7";
    let (output, hash) = rust("src/main.rs:4:5", index, "demo::get");
    let same = [
        rust(
            "src/main.rs:4:5",
            "index out of bounds: the len is 12 but the index is 99",
            "demo::get",
        ),
        rust("/src/demo/src/main.rs:4:5", index, "demo::get"),
    ];
    let others = [
        rust("src/main.rs:9:5", index, "demo::get"),
        rust("src/main.rs:4:5", "explicit panic", "demo::get"),
        rust("src/main.rs:4:5", index, "demo::put"),
    ];
    let signature = |output: &Output| {
        beyond::signature(&beyond::parse(output, &program()), SignatureOptions::default()).unwrap()
    };
    let own = signature(&output);
    let matches = |output: &Output| {
        let sent = crash::to_send(output, &beyond::parse(output, &program()));
        let read = crash::parse(&sent, &program());
        own.matches(&CrashFacts { info: &read, output: &sent, program: &program(), testcase: None })
    };
    assert!(matches(&output) && !own.to_json().contains("core::"), "{}", own.to_json());
    for (other, found) in &same {
        assert_eq!((*found, matches(other)), (hash, true), "{other:?}");
    }
    for (other, found) in &others {
        assert_ne!(*found, hash, "{other:?}");
        assert!(!matches(other), "{other:?} {}", own.to_json());
    }

    // The hook of a fuzzing crate ends the process.
    let hook = ["__GI_abort", "std::process::abort", "libfuzzer_sys::initialize::{closure#0}"];
    let said =
        format!("\nthread 'main' (77) panicked at src/main.rs:4:5:\n{index}\nnote: run with\n");
    assert_eq!(
        given_up(&said, &[&hook[..], &RUST_END[..], &["demo::get", "demo::main"]].concat()).1,
        hash
    );

    let assertion = |line: u32, program: &str, claim: &str| {
        let said =
            format!("{program}: /a/bugs.c:{line}: void check(int): Assertion `{claim}' failed.\n");
        given_up(&said, &["__GI_raise", "abort", "__assert_fail_base", "check", "main"]).1
    };
    let hash = assertion(25, "bugs", "value > 1000");
    assert_eq!(assertion(25, "bugs.asan", "value > 1000"), hash);
    assert_ne!(assertion(26, "bugs", "value > 1000"), hash);
    assert_ne!(assertion(25, "bugs", "value > 1001"), hash);

    // A method's name has brackets, too, as glibc's functions have in its own messages.
    let method = |claim: &str| {
        let said = format!("a: a.cc:5: void P::parse(): Assertion `{claim}' failed.\n");
        let (output, hash) = given_up(&said, &["abort", "__assert_fail_base", "P::parse", "main"]);
        let cause = beyond::parse(&output, &program()).identity("").cause().to_owned();
        (cause, hash)
    };
    let (cause, hash) = method("n == 77");
    assert_eq!(cause, "assertion");
    assert_ne!(method("n % 2 == 9").1, hash);
    let said = "free(): invalid pointer\n";
    let (output, _) = given_up(said, &["abort", "malloc_printerr", "P::parse", "main"]);
    assert_eq!(beyond::parse(&output, &program()).identity("").cause(), "heap corruption");

    let thrown = |said: &str, frames: &[&str]| {
        given_up(&format!("{said}\n"), &[frames, &["parse", "main"]].concat()).1
    };
    let gnu = ["abort", "__gnu_cxx::__verbose_terminate_handler", "std::terminate", "__cxa_throw"];
    let llvm = ["abort", "abort_message", "demangling_terminate_handler", "std::__terminate"];
    let of_gnu =
        |class| thrown(&format!("terminate called after throwing an instance of '{class}'"), &gnu);
    let of_llvm = "libc++abi: terminating due to uncaught exception of type std::runtime_error: no such shape";
    assert_eq!(of_gnu("std::runtime_error"), thrown(of_llvm, &llvm));
    assert_ne!(of_gnu("std::runtime_error"), of_gnu("std::bad_alloc"));
}

/// A list in a message has as many values as the input wants.
#[test]
fn a_panic_is_one_bug_whatever_list_its_message_shows() {
    let panic = |words: &str| {
        let said = format!("\nthread 'main' (7) panicked at src/main.rs:4:5:\n{words}\n");
        given_up(&said, &[&RUST_END[..], &["demo::get", "demo::main"]].concat())
    };
    let (output, hash) = panic("bad values [1, 2, 3] here");
    let signature =
        beyond::signature(&beyond::parse(&output, &program()), SignatureOptions::default())
            .unwrap();
    for words in [
        "bad values [1, 2] here",
        "bad values [] here",
        "bad values [-7] here",
        "bad values [\"a: b\", \"c]\"] here",
        "bad values [Some(1), None] here",
        "bad values [P { x: 1 }, P { x: [2, 3] }] here",
    ] {
        let (other, found) = panic(words);
        assert_eq!(found, hash, "{words}");
        let info = beyond::parse(&other, &program());
        let facts = CrashFacts { info: &info, output: &other, program: &program(), testcase: None };
        assert!(signature.matches(&facts), "{words}: {}", signature.to_json());
    }
    assert_ne!(panic("good values [1, 2, 3] here").1, hash);
    assert_ne!(panic("[lexer] bad").1, panic("[parser] bad").1);
    // Of several lines the first counts.
    assert_eq!(panic("values {\n    1,\n    2,\n}").1, panic("values {}").1);
}

/// A hook may write the message in its own way, or none at all; its functions are not where the bug is.
#[test]
fn a_panic_hook_of_the_program_is_not_the_bug() {
    let hook = ["__GI_abort", "demo::report::write", "demo::report::send", "demo::report::flush"];
    let hook = [&hook[..], &["demo::report::last", "demo::on_panic"]].concat();
    let stack = |function| [&hook[..], &RUST_END[3..], &[function, "demo::main"]].concat();
    let text = |place: &str| format!("[ERROR] demo: panicked at src/main.rs:{place}:\nboom\n");
    let (output, hash) = given_up(&text("4:5"), &stack("demo::get"));
    let info = beyond::parse(&output, &program());
    assert_eq!(info.own_function(), Some("demo::get"));
    let identity = info.identity("");
    assert_eq!(identity.functions(), ["demo::get", "demo::main"]);
    assert_eq!((identity.cause(), identity.said()), ("panic", Some("main.rs:4 boom")));
    assert_ne!(given_up(&text("9:5"), &stack("demo::get")).1, hash);
    let silent = |function| given_up("oops\n", &stack(function)).1;
    assert_ne!(silent("demo::get"), silent("demo::put"));
    let signature = beyond::signature(&info, SignatureOptions::default()).unwrap().to_json();
    assert!(!signature.contains("report") && signature.contains("demo::get"), "{signature}");
    // The same for uncaught exceptions.
    let terminate = |function| {
        given_up("", &["abort", "on_end", "__cxxabiv1::__terminate(void (*)())", function, "main"])
            .1
    };
    assert_ne!(terminate("f"), terminate("g"));
}

/// What is reported of a hang, as the server gets it.
fn hang(function: &str) -> (Output, u64) {
    let output = stderr(&format!("[Non-crash bug] hang in {function}\n"));
    let hash = beyond::parse(&output, &program()).identity("hang").hash();
    (output, hash)
}

#[test]
fn hangs_are_bugs_of_their_functions() {
    let signature = |output: &Output| {
        beyond::signature(&beyond::parse(output, &program()), SignatureOptions::default()).unwrap()
    };
    let names = ["hang1", "hang2", "hang12", "hang34", "hang", "a::b<int>"];
    for one in names {
        for other in names {
            let ((output, hash), (others, found)) = (hang(one), hang(other));
            assert_eq!(hash == found, one == other, "{one} {other}");
            let info = crash::parse(&others, &program());
            let facts =
                CrashFacts { info: &info, output: &others, program: &program(), testcase: None };
            let signature = signature(&output);
            assert_eq!(signature.matches(&facts), one == other, "{}", signature.to_json());
        }
    }
}

/// Position-independent programs are elsewhere in each run.
#[test]
fn a_signature_holds_for_the_next_run() {
    let debugged = |instruction: &str| Output {
        crash_data: format!(
            "Program received signal SIGSEGV, Segmentation fault.\n#0  0x12 in ?? ()\n\
             rax\t0x10\t16\nrip\t0x20\t32\n=> 0x5648cd:\t{instruction}\n"
        ),
        ..Output::default()
    };
    let signature = |output: &Output| {
        beyond::signature(&beyond::parse(output, &program()), SignatureOptions::default()).unwrap()
    };
    let pairs = [
        (
            "mov    %rax,0x999e(%rip)        # 0x5648c0de8030",
            "mov    %rax,0x999e(%rip)        # 0x55d10ade8030",
        ),
        (
            "mov    %rax,0x999e(%rip)        # 0x5648c0de8030 <n>",
            "mov    %rax,0x999e(%rip)        # 0x55d10ade8030 <n>",
        ),
        ("call   0x5648c0de1139", "call   0x55d10ade1139"),
        ("cbz    x0, 0xaaaac0de1139", "cbz    x0, 0xaaaad0de1139"),
        ("movl   $0xdeadbeef,(%rdi)", "movl   $0xdeadbeef,(%rdi)"),
        ("mov    %eax,0x0", "mov    %eax,0x0"),
    ];
    for (first, next) in pairs {
        let (signature, next) = (signature(&debugged(first)), debugged(next));
        assert!(signature.to_json().contains("instructionName"), "{}", signature.to_json());
        let info = crash::parse(&next, &program());
        let facts = CrashFacts { info: &info, output: &next, program: &program(), testcase: None };
        assert!(signature.matches(&facts), "{first}: {}", signature.to_json());
    }
    let own = signature(&debugged(pairs[0].0));
    let other = debugged("mov    %rax,0x111e(%rip)        # 0x5648c0de8030");
    let info = crash::parse(&other, &program());
    let facts = CrashFacts { info: &info, output: &other, program: &program(), testcase: None };
    assert!(!own.matches(&facts), "{}", own.to_json());
}

/// clang 14 writes `> >`, clang 19 `>>`.
#[test]
fn a_signature_holds_for_the_other_compiler_s_names() {
    let text = |name: &str| {
        stderr(&format!(
            "==1==ERROR: AddressSanitizer: {}\n    #0 0x1 in {name} /src/a.cc:1:1\n    \
             #1 0x2 in main /src/a.cc:9:1\n",
            overflow("WRITE of size 4", "12")
        ))
    };
    let older = "demo::Box<std::vector<int, std::allocator<int> > >::put(int)";
    let newer = "demo::Box<std::vector<int, std::allocator<int>>>::put(int)";
    let shift = "demo::operator>><demo::Box<std::vector<int>>>(int)";
    for (one, other, wanted) in [
        (older, newer, true),
        (newer, older, true),
        (newer, newer, true),
        (shift, shift, true),
        (newer, "demo::Box<std::vector<int, std::allocator<long>>>::put(int)", false),
    ] {
        let info = beyond::parse(&text(one), &program());
        let signature = beyond::signature(&info, SignatureOptions::default()).unwrap();
        let output = text(other);
        let info = crash::parse(&output, &program());
        let facts =
            CrashFacts { info: &info, output: &output, program: &program(), testcase: None };
        assert_eq!(signature.matches(&facts), wanted, "{one} {other}: {}", signature.to_json());
    }
}

/// With `GOTRACEBACK=crash`, without which a panic of Go is no signal, places have addresses behind them.
#[test]
fn a_panic_of_go_is_the_same_however_it_ends() {
    let text = |places: [&str; 2]| {
        let [own, runtime] = places;
        format!(
            "panic: bad size 4\n\ngoroutine 1 [running]:\npanic({{0x48a160, 0xc00008a220}})\n\
             \t/usr/lib/go/src/runtime/panic.go:987 +0x3ba{runtime}\n\
             main.main()\n\t/src/crash.go:25 +0xda{own}\n"
        )
    };
    let of = |text: &str| beyond::parse(&stderr(text), &program()).identity("");
    let plain = of(&text(["", ""]));
    let at = " fp=0xc000086f80 sp=0xc000086f38 pc=0x48237a";
    assert_eq!(of(&text([at, at])).hash(), plain.hash());
    assert!(plain.said().unwrap().contains("crash.go:25"), "{plain:?}");
    let elsewhere = text(["", ""]).replace("crash.go:25", "crash.go:26");
    assert_ne!(of(&elsewhere).hash(), plain.hash());
}

#[test]
fn an_infinite_recursion_is_one_bug_wherever_the_stack_ended() {
    let stack = |leaf: &'static str, first: usize| {
        let cycle = ["value", "array", "element"];
        let names = std::iter::once(leaf).chain(cycle.into_iter().cycle().skip(first)).take(200);
        let address = "stack-overflow on address 0x7ffe (pc 0x1 bp 0x2 sp 0x3 T0)";
        identity(address, &names.collect::<Vec<_>>())
    };
    assert_eq!(stack("malloc", 0), stack("next_letter", 2));
}

#[test]
fn a_segv_near_null_is_distinguished_from_a_wild_one() {
    let class = |address: &str, access: &str| {
        let text = format!(
            "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x{address} (pc 0x1 bp 0x2 sp 0x3 T0)\n\
             ==1==The signal is caused by a {access} memory access.\n    #0 0x1 in f /src/a.c:1:1\n"
        );
        beyond::parse(&stderr(&text), &program()).class().to_owned()
    };
    assert_eq!(class("000000000024", "READ"), "SEGV near null READ");
    assert_eq!(class("414141414141", "WRITE"), "SEGV WRITE");
}

/// Reads a text in every place and way, and checks what has to hold for any text.
fn survives(stderr: &str, crash_data: &str) -> Result<(), TestCaseError> {
    let output = Output {
        stdout: String::new(),
        stderr: crash::text(stderr.as_bytes()),
        crash_data: crash::text(crash_data.as_bytes()),
    };
    let info = beyond::parse(&output, &program());
    let sent = crash::to_send(&output, &info);
    prop_assert_eq!(crash::parse(&sent, &program()).refused, None);
    let _ = (info.short_text(), info.class().len(), info.identity("").hash());
    if let Some(made) = Signature::create(
        &info,
        SignatureOptions { force_address: false, ..SignatureOptions::default() },
    ) {
        prop_assert!(Signature::parse(&made.to_json()).is_ok(), "{}", made.to_json());
    }
    let own = beyond::signature(&info, SignatureOptions::default());
    prop_assert!(own.is_none_or(|own| Signature::parse(&own.to_json()).is_ok()));
    Ok(())
}

/// Pieces of all recorded texts, in any order, with letters of any kind between them.
fn spliced() -> impl Strategy<Value = String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzzmanager/messages.json");
    let messages: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder).unwrap()).unwrap();
    let messages = messages["cases"].as_array().unwrap();
    let messages = messages.iter().filter_map(|case| case["stderr"].as_str().map(str::to_owned));
    let texts: Vec<String> = texts().into_iter().map(|(_, text)| text).chain(messages).collect();
    let lines: Vec<String> =
        texts.iter().flat_map(|text| text.lines().map(str::to_owned)).collect();
    let piece = prop_oneof![
        2 => prop::sample::select(texts),
        6 => prop::sample::select(lines),
        1 => "\\PC{0,12}",
        1 => "[#()<>x0-9:=| ]{0,12}",
    ];
    let joint = prop::sample::select(vec!["\n", "\n", "\n", " ", "", "\r", "\u{2028}"]);
    prop::collection::vec((piece, joint), 0..8).prop_map(|parts| {
        parts.into_iter().flat_map(|(piece, joint)| [piece, joint.to_owned()]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn spliced_reports_are_read_and_sent(stderr in spliced(), crash_data in spliced()) {
        survives(&stderr, &crash_data)?;
        survives(&stderr, "")?;
    }

    #[test]
    fn any_signature_is_accepted_or_refused(text in "\\PC{0,40}") {
        let json = serde_json::json!({"symptoms": [{"type": "output", "value": format!("/{text}/")}]});
        let output = stderr(&text);
        let info = crash::parse(&output, &program());
        let crash = CrashFacts { info: &info, output: &output, program: &program(), testcase: None };
        if let Ok(signature) = Signature::parse(&json.to_string()) {
            let _ = signature.matches(&crash);
        }
    }
}

/// A quarter of a megabyte of what could make a careless parser slow: quadratic time would take hours.
#[test]
fn hostile_texts_take_linear_time() {
    const SIZE: usize = 1 << 18;
    let headline =
        "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x0 (pc 0x1 bp 0x2 sp 0x3)\n";
    let gdb = "Program received signal SIGSEGV\n";
    let lines = [
        (headline, "    #0 0x1 in f(\n"),
        (headline, "    #0 0x1 in f /a\n"),
        (headline, " #0 0x1 in f<("),
        (headline, headline),
        (gdb, "#0  0x1 in f (\n"),
        (gdb, "#0 f\n>)\n"),
        (gdb, ">\n"),
        ("Program received signal SIGSEGV\n#0 x", ">\n"),
        (gdb, "#0  0x1 in f ()\n"),
        ("", "Assertion failed thread T1: "),
        ("", "x: Assertion `a' failed. /a/b:1:2:3 'c\\d' 0x12\n"),
        ("", "thread 'a' panicked at 'x\n"),
        ("", "thread 'a' panicked at x.rs:1:2:\n"),
        ("OS|x\nCPU|y\nCrash|a|0x1|0\n", "0|0|m|f|||\n"),
        ("", "==1== 1 bytes in 1 blocks are "),
        ("", "a:1:1: runtime error: x\n"),
        ("", "WARNING: ThreadSanitizer: data race (pid=1)\n #0 a /a (x+0x1)\n"),
        ("", "  Read of size 4 at 0x1 by thread T1:\n"),
        ("Traceback (most recent call last):\n", "  File \"x\", line 1, in f\n"),
        ("", "free(): x"),
    ];
    let start = Instant::now();
    for (first, rest) in lines {
        let text = format!("{first}{}", rest.repeat(SIZE / rest.len()));
        survives(&text, "").unwrap();
        survives("", &text).unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}

/// Neither ends; each line of them would be a condition of the signature, and part of the title.
#[test]
fn an_endless_message_is_cut() {
    let race = "WARNING: ThreadSanitizer: data race (pid=1)\n";
    for (first, rest) in [
        ("thread 'x' panicked at 'a\n", "\u{1b}b\n"),
        (race, "  Read of size 4 at 0x1 by thread T1:\n"),
    ] {
        let output = stderr(&format!("{first}{}", rest.repeat(100_000)));
        let info = beyond::parse(&output, &program());
        assert!(info.short_text().chars().count() <= 2000, "{}", info.short_text().len());
        let signature = Signature::create(&info, SignatureOptions::default()).unwrap();
        assert!(signature.to_json().len() < 10_000, "{}", signature.to_json().len());
        let crash =
            CrashFacts { info: &info, output: &output, program: &program(), testcase: None };
        assert!(signature.matches(&crash), "{}", signature.to_json());
    }
    let long = stderr(&format!("a.c:1: f: Assertion `{}' failed.\n", "\u{e9}".repeat(100_000)));
    assert_eq!(beyond::parse(&long, &program()).short_text().chars().count(), 300);
}

#[test]
fn a_regex_with_exponential_cost_is_given_up() {
    let json = r#"{"symptoms": [{"type": "output", "value": "/^(?=(a+)+$)\\1b/"}]}"#;
    let output = stderr(&"a".repeat(5000));
    let info = crash::parse(&output, &program());
    let crash = CrashFacts { info: &info, output: &output, program: &program(), testcase: None };
    assert!(!Signature::parse(json).unwrap().matches(&crash));
}

#[test]
fn invalid_signatures_are_named_and_skipped() {
    let good = r#"{"symptoms": [{"type": "output", "value": "boom"}]}"#;
    let triples = [("a", "{"), ("b", good), ("c", good)];
    let triples = triples.map(|(name, text)| (name.into(), text.into(), serde_json::Map::new()));
    let (signatures, refused) = Signatures::new(triples);
    assert_eq!(refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(refused[0].1.to_string().starts_with("no JSON: "), "{}", refused[0].1);
    let output = stderr("boom\n");
    let info = crash::parse(&output, &program());
    let crash = CrashFacts { info: &info, output: &output, program: &program(), testcase: None };
    assert_eq!(signatures.find(&crash).map(|entry| entry.name.as_str()), Some("b"));
}

#[test]
fn the_stacks_of_a_report_are_told_apart() {
    let text = "==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000011 at pc 0x1 bp 0x2 sp 0x3\n\
                READ of size 1 at 0x602000000011 thread T0\n    #0 0x1 in use /a.c:5:3\n    #1 0x2 in main /a.c:6:1\n\n\
                freed by thread T0 here:\n    #0 0x3 in free (/a+0x3)\n    #1 0x4 in rel /a.c:4:2\n\n\
                previously allocated by thread T0 here:\n    #0 0x5 in malloc (/a+0x5)\n";
    let info = beyond::parse(&stderr(text), &program());
    let stacks = info.stacks().into_iter().map(|range| &info.backtrace[range]);
    let stacks: Vec<_> = stacks.collect();
    assert_eq!(stacks, [&["use", "main"][..], &["free", "rel"], &["malloc"]]);
    let stacks = beyond::parse(&stderr("nothing"), &program()).stacks();
    assert!(stacks.len() == 1 && stacks[0].is_empty());
}
