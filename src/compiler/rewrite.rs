//! The pure core of the wrapper: converts the user's command line to clang's.
//!
//! Order: objects of the domains, ffuzz-cc's options, the user's words in order (so the user's options win), then
//! everything that must come last in a link.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::args::{BuildStage, Invocation, Product, is_engine, is_fuzzer_part};
use super::env::{Env, Sanitizer};
use super::lists::CoverageScope;
use super::plugin::BUILTIN;
use ffuzz_assets::{EXPORTED, SCRIPT};

/// Method to share the counters with the fuzzer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CounterLink {
    /// The linker script places them on separate pages.
    Shared,
    /// The linker rejects the script; counters are copied after each run.
    Copied,
    /// Unknown before the first try.
    Unknown,
}

/// Facts about this machine and this call.
#[derive(Clone, Debug)]
pub(crate) struct Additions {
    /// Folder of runtime, headers and scripts.
    pub assets: PathBuf,
    /// Runtime objects of the domains, in the order of WAYPOINTS; empty without a link.
    pub runtimes: Vec<PathBuf>,
    /// Passes of the domains for this clang; empty without a compilation.
    pub passes: Vec<PathBuf>,
    /// Names of the built-in domains.
    pub builtin: Vec<String>,
    /// Input of the pass for declared domains.
    pub declared: Option<PathBuf>,
    pub coverage: CoverageScope,
    pub link: CounterLink,
    /// Choose the optimization level, because the user did not.
    pub opt_level: bool,
    /// A file that shows the settings to an object cache in preprocessed source.
    pub settings: Option<PathBuf>,
    /// An option that shows the settings to a cache between ffuzz-cc and clang.
    pub settings_option: Option<OsString>,
    /// An object with the path of ffuzz, which a harness starts to fuzz.
    pub program: Option<PathBuf>,
    /// The reason why the built-in pass is missing.
    pub lacks_pass: Option<String>,
}

/// The AFL macros. Existing sources test for them with `#ifdef`, so they are on the command line. They must work in C
/// and C++, so each names its function with an assembler label.
const MACROS: &[&str] = &[
    "-D__AFL_COMPILER=1",
    "-D__AFL_HAVE_MANUAL_CONTROL=1",
    "-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION=1",
    "-D__AFL_INIT()=(__extension__({ void __ffuzz_init_now(void) __asm__(\"__afl_manual_init\"); \
     __ffuzz_init_now(); }))",
    "-D__AFL_LOOP(n)=(__extension__({ int __ffuzz_next_input(unsigned int) \
     __asm__(\"__afl_persistent_loop\"); __ffuzz_next_input(n); }))",
    "-D__AFL_FUZZ_INIT()=int __afl_sharedmem_fuzzing = 1",
    "-D__AFL_FUZZ_TESTCASE_BUF=(__extension__({ unsigned char *__ffuzz_buf_of(void) \
     __asm__(\"__ffuzz_testcase_buf\"); __ffuzz_buf_of(); }))",
    "-D__AFL_FUZZ_TESTCASE_LEN=(__extension__({ unsigned int __ffuzz_len_of(void) \
     __asm__(\"__ffuzz_testcase_len\"); __ffuzz_len_of(); }))",
    "-D__AFL_COVERAGE()=void __ffuzz_covers(void) __asm__(\"__afl_coverage_on\"); \
     void (*__ffuzz_selective)(void) __attribute__((weak)) = __ffuzz_covers",
    "-D__AFL_COVERAGE_START_OFF()=int __afl_selective_coverage_start_off \
     __attribute__((weak)) = 1",
    "-D__AFL_COVERAGE_ON()=(__extension__({ void __ffuzz_coverage_on(void) \
     __asm__(\"__afl_coverage_on\"); __ffuzz_coverage_on(); }))",
    "-D__AFL_COVERAGE_OFF()=(__extension__({ void __ffuzz_coverage_off(void) \
     __asm__(\"__afl_coverage_off\"); __ffuzz_coverage_off(); }))",
    "-D__AFL_COVERAGE_DISCARD()=(__extension__({ void __ffuzz_coverage_discard(void) \
     __asm__(\"__afl_coverage_discard\"); __ffuzz_coverage_discard(); }))",
    "-D__AFL_COVERAGE_SKIP()=(__extension__({ void __ffuzz_coverage_skip(void) \
     __asm__(\"__afl_coverage_skip\"); __ffuzz_coverage_skip(); }))",
];

/// Edge counters and the table of their addresses, as options of the compiler proper: if the driver got them, clang
/// would link a sanitizer runtime whose signal handlers hide crashes.
const COVERAGE: &[&str] = &[
    "-fsanitize-coverage-type=3",
    "-fsanitize-coverage-inline-8bit-counters",
    "-fsanitize-coverage-pc-table",
];

/// The C++ library, linked only if needed.
const CXX_LIBRARY: &[&str] =
    &["-Wl,--push-state,--as-needed", "-lstdc++", "-lm", "-Wl,--pop-state"];

/// Libraries of the runtime where the compiler adds none; they follow the user's libraries.
const BARE_LIBRARIES: &[&str] = &["-Wl,--start-group", "-lgcc", "-lc", "-Wl,--end-group"];

/// Builtins that AFL_NO_BUILTIN keeps from being inlined.
const COMPARERS: &[&str] = &["strcmp", "strncmp", "strcasecmp", "strncasecmp", "memcmp"];

/// Builds clang's arguments.
#[must_use]
pub(crate) fn rewrite(invocation: &Invocation, env: &Env, additions: &Additions) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![];
    if invocation.links() {
        words.extend(additions.runtimes.iter().map(OsString::from));
    }
    if !invocation.sources.is_empty() {
        preprocessor(&mut words, additions);
        if !invocation.includes_first {
            includes(&mut words, invocation, env, additions);
        }
    }
    if invocation.compiles() {
        compilation(&mut words, invocation, env, additions);
    }
    if invocation.stage != BuildStage::Preprocess {
        sanitizers(&mut words, env);
    }
    let kept = user_words(&invocation.words, additions);
    // clang reads the response files itself, unless a word in them must be removed.
    let unchanged = kept == invocation.words;
    words.extend(if unchanged { invocation.arguments.clone() } else { kept });
    if invocation.includes_first {
        includes(&mut words, invocation, env, additions);
    }
    if invocation.links() {
        if invocation.language_forced {
            words.extend(["-x", "none"].map(OsString::from));
        }
        link(&mut words, invocation, env, additions);
    }
    words
}

fn preprocessor(words: &mut Vec<OsString>, additions: &Additions) {
    words.extend(MACROS.iter().map(OsString::from));
    words.push("-isystem".into());
    words.push(additions.assets.join("include").into_os_string());
}

/// Adds the files that every source includes. They precede the user's words but follow their `-include`: clang ignores
/// a precompiled header that is not the first.
fn includes(words: &mut Vec<OsString>, invocation: &Invocation, env: &Env, additions: &Additions) {
    if invocation.sources.is_empty() {
        return;
    }
    if env.ijon {
        words.extend(["-include", "ijon.h"].map(OsString::from));
    }
    if let Some(path) = &additions.settings {
        words.extend(["-include".into(), path.into()]);
    }
}

fn compilation(
    words: &mut Vec<OsString>,
    invocation: &Invocation,
    env: &Env,
    additions: &Additions,
) {
    words.extend(additions.settings_option.clone());
    if !env.dont_optimize {
        words.push("-g".into());
        if additions.opt_level {
            words.push(format!("-O{}", env.level.as_deref().unwrap_or("3")).into());
        }
        words.push("-funroll-loops".into());
    }
    if env.harden {
        words.push("-fstack-protector-all".into());
        if !invocation.fortified {
            words.push("-D_FORTIFY_SOURCE=2".into());
        }
    }
    if env.no_builtin {
        words.extend(COMPARERS.iter().map(|name| format!("-fno-builtin-{name}").into()));
    }
    if !env.no_coverage {
        coverage(words, &additions.coverage);
    }
    words.extend(additions.passes.iter().map(|path| joined("-fpass-plugin=", path.as_os_str())));
}

fn coverage(words: &mut Vec<OsString>, coverage: &CoverageScope) {
    let Some(lists) = coverage.lists() else { return };
    let flags = COVERAGE.iter().map(OsString::from).chain(lists);
    words.extend(flags.flat_map(|flag| ["-Xclang".into(), flag]));
}

fn sanitizers(words: &mut Vec<OsString>, env: &Env) {
    for sanitizer in &env.sanitizers {
        let flags: &[&str] = match sanitizer {
            Sanitizer::Address => &["-fsanitize=address", "-fno-omit-frame-pointer"],
            Sanitizer::Undefined => &[
                "-fsanitize=undefined",
                "-fsanitize-undefined-trap-on-error",
                "-fno-sanitize-recover=all",
                "-fno-omit-frame-pointer",
            ],
            Sanitizer::Memory => &["-fsanitize=memory", "-fno-omit-frame-pointer"],
            Sanitizer::Thread => &["-fsanitize=thread", "-fno-omit-frame-pointer"],
            Sanitizer::Leak => &["-fsanitize=leak"],
            Sanitizer::Cfi => &["-flto", "-fsanitize=cfi", "-fvisibility=hidden"],
        };
        words.extend(flags.iter().map(OsString::from));
    }
}

/// The user's words in order, without libFuzzer's parts, which the driver replaces. The option of the `diff` domain
/// belongs to its pass, which must be loaded before LLVM's options are read.
fn user_words(arguments: &[OsString], additions: &Additions) -> Vec<OsString> {
    let holder = if additions.builtin.iter().any(|name| name == "diff") { BUILTIN } else { "diff" };
    let holds_diff = |pass: &&PathBuf| {
        let name = pass.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("waypoints-{holder}-pass"))
    };
    let diff = additions.passes.iter().find(holds_diff);
    let mut words = vec![];
    for word in arguments {
        let text = word.to_string_lossy();
        if let Some(list) = text.strip_prefix("-fsanitize=") {
            let kept: Vec<&str> = list.split(',').filter(|name| !is_fuzzer_part(name)).collect();
            if !kept.is_empty() {
                words.push(format!("-fsanitize={}", kept.join(",")).into());
            } else if words.last().is_some_and(|last| last == "-Xclang") {
                // The option would take the next word.
                words.pop();
            }
        } else if text.starts_with("-target_locations") {
            if let Some(pass) = diff {
                words.push(joined("-fplugin=", pass.as_os_str()));
                words.extend(["-mllvm".into(), word.clone()]);
            }
        } else if !is_engine(&text) {
            words.push(word.clone());
        }
    }
    words
}

fn link(words: &mut Vec<OsString>, invocation: &Invocation, env: &Env, additions: &Additions) {
    let file = |name: &str| additions.assets.join(name).into_os_string();
    if additions.link != CounterLink::Copied {
        words.push(joined("-Wl,-T,", &file(SCRIPT)));
    }
    if invocation.product == Product::SharedLibrary {
        words.push(file("ffuzz-stub.o"));
        return;
    }
    words.push(joined("-Wl,--dynamic-list=", &file(EXPORTED)));
    words.push("-Wl,-u,__ffuzz_runtime".into());
    words.push("-Wl,--wrap=__libc_start_main".into());
    if additions.link == CounterLink::Copied {
        words.push("-Wl,-u,__ffuzz_exit_hook".into());
    }
    if invocation.sanitized || !env.sanitizers.is_empty() {
        words.push("-Wl,-u,__ffuzz_guards".into());
    }
    if invocation.sanitized || !env.sanitizers.is_empty() || invocation.links_rust {
        words.push("-Wl,-u,__ffuzz_comparisons".into());
    }
    if invocation.links_rust {
        words.extend(["memcmp", "bcmp"].map(|name| format!("-Wl,--wrap={name}").into()));
        // A sanitizer defines them weakly, so lld would not extract the wrappers from the archive.
        words.push("-Wl,-u,__wrap_memcmp".into());
    }
    if invocation.fuzzer_driver {
        // Archives are searched once, in order. A user's archive with the harness precedes the driver, which needs it.
        words.push("-Wl,-u,LLVMFuzzerTestOneInput".into());
        words.push(file("libffuzz-driver.a"));
        words.extend(additions.program.clone().map(PathBuf::into_os_string));
    }
    words.push(file("libffuzz-rt.a"));
    if invocation.bare.is_some() {
        words.extend(BARE_LIBRARIES.iter().map(OsString::from));
    } else if invocation.fuzzer_driver
        && !invocation.words.iter().any(|word| word == "-stdlib=libc++")
    {
        // As clang does for libFuzzer: the C compiler may link a C++ harness.
        words.extend(CXX_LIBRARY.iter().map(OsString::from));
    }
}

fn joined(option: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(value);
    word
}

#[cfg(test)]
mod tests;
