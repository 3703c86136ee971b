//! Tests of clang's arguments for a given command line.

use super::*;
use proptest::prelude::*;

fn additions(domains: &[&str]) -> Additions {
    Additions {
        assets: "/lib".into(),
        runtimes: domains.iter().map(|name| format!("/lib/{name}-rt.o").into()).collect(),
        passes: vec!["/lib/waypoints-builtin-pass.so".into(), "/own/waypoints-foo-pass.so".into()],
        builtin: domains.iter().map(|name| (*name).to_owned()).collect(),
        declared: None,
        coverage: CoverageScope::Full,
        link: CounterLink::Shared,
        opt_level: true,
        settings: None,
        settings_option: None,
        program: None,
        lacks_pass: None,
    }
}

fn parse(line: &str) -> Invocation {
    Invocation::parse(line.split_whitespace().map(OsString::from).collect(), |_| None)
}

fn text(line: &str, env: &Env, additions: &Additions) -> String {
    let words = rewrite(&parse(line), env, additions);
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn plain(line: &str) -> String {
    text(line, &Env::default(), &additions(&[]))
}

#[test]
fn coverage_is_for_compilations_only() {
    for line in ["-c a.c", "-S a.c", "a.c", "a.c b.o -o x", "-shared a.c", "-flto -c a.c"] {
        assert!(plain(line).contains("-Xclang -fsanitize-coverage-type=3"), "{line}");
        assert!(!plain(line).contains(" -fsanitize-coverage="), "{line}");
    }
    for line in ["a.o", "a.o -shared", "-E a.c", "-MM a.c", "-c a.s", "-r a.o b.o"] {
        assert!(!plain(line).contains("-fsanitize-coverage"), "{line}");
    }
}

#[test]
fn the_runtime_is_for_links_only() {
    for line in ["a.c", "a.o -o x", "-static a.o", "-fuse-ld=lld a.c"] {
        assert!(plain(line).ends_with("/lib/libffuzz-rt.a"), "{line}");
        assert!(plain(line).contains("-Wl,-T,/lib/counters.ld"), "{line}");
    }
    for line in ["-c a.c", "-S a.c", "-E a.c", "-M a.c", "-r a.o b.o", "-fsyntax-only a.c"] {
        assert!(!plain(line).contains("/lib/libffuzz"), "{line}");
        assert!(!plain(line).contains("counters.ld"), "{line}");
    }
}

#[test]
fn a_shared_library_gets_the_script_and_no_runtime() {
    let words = plain("-shared a.o -o a.so");
    assert!(words.contains("counters.ld") && words.ends_with("/lib/ffuzz-stub.o"));
    assert!(!words.contains("libffuzz-rt.a"));
}

#[test]
fn files_of_ours_are_not_taken_for_sources() {
    assert!(plain("-x c a.txt").contains("a.txt -x none -Wl,-T"));
}

#[test]
fn without_the_script_exit_is_watched() {
    let copied = Additions { link: CounterLink::Copied, ..additions(&[]) };
    let words = text("a.o", &Env::default(), &copied);
    assert!(words.contains("__ffuzz_exit_hook") && !words.contains("counters.ld"));
}

#[test]
fn domains_come_first_and_in_order() {
    let words = text("a.c", &Env::default(), &additions(&["mem", "cmp"]));
    assert!(words.starts_with("/lib/mem-rt.o /lib/cmp-rt.o "));
    assert!(words.contains(
        "-fpass-plugin=/lib/waypoints-builtin-pass.so -fpass-plugin=/own/waypoints-foo-pass.so"
    ));
    let compile = text("-c a.c", &Env::default(), &additions(&["cmp"]));
    assert!(!compile.contains("cmp-rt.o"));
}

#[test]
fn libfuzzer_is_replaced_by_the_driver() {
    let words = plain("-fsanitize=address,fuzzer,undefined a.c");
    assert!(words.contains("-fsanitize=address,undefined a.c"));
    assert!(words.contains(
        "/lib/libffuzz-driver.a /lib/libffuzz-rt.a -Wl,--push-state,--as-needed -lstdc++"
    ));
    assert!(words.contains("-Wl,-u,LLVMFuzzerTestOneInput"), "for a harness in an archive");
    assert!(words.contains("-Wl,-u,__ffuzz_guards") && !plain("a.o").contains("__ffuzz_guards"));
    let words = plain("-fsanitize=fuzzer -nodefaultlibs a.o -lc");
    assert!(
        words.ends_with(
            "/lib/libffuzz-driver.a /lib/libffuzz-rt.a -Wl,--start-group -lgcc -lc -Wl,--end-group"
        ),
        "{words}"
    );
    let words = plain("-fsanitize=fuzzer-no-link -c a.c");
    assert!(!words.contains("-fsanitize=fuzzer") && words.ends_with("-c a.c"));
}

#[test]
fn options_of_ours_leave_response_files_and_other_files_stay() {
    let words = |content: &'static [u8]| {
        let invocation = Invocation::parse(vec!["@f".into()], |_| Some(content.to_vec()));
        let words = rewrite(&invocation, &Env::default(), &additions(&[]));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    assert!(words(b"-c a.c").ends_with(" @f"));
    let link = words(b"-fsanitize=fuzzer,address a.o");
    assert!(link.contains("-fsanitize=address a.o ") && link.contains("libffuzz-driver.a"));
    assert!(!link.contains("@f"), "{link}");
}

#[test]
fn the_environment_adds_sanitizers_and_hardening() {
    let sanitizers = vec![Sanitizer::Address];
    let env = Env { sanitizers, ..Env::default() };
    assert!(text("a.o", &env, &additions(&[])).contains("-fsanitize=address"));
    let env = Env { harden: true, ..Env::default() };
    assert!(text("-c a.c", &env, &additions(&[])).contains("-D_FORTIFY_SOURCE=2"));
    let own = text("-D_FORTIFY_SOURCE=1 -c a.c", &env, &additions(&[]));
    assert!(!own.contains("-D_FORTIFY_SOURCE=2"));
}

#[test]
fn the_users_optimisation_level_stays() {
    assert!(plain("-c a.c").contains("-g -O3 -funroll-loops"));
    let none = Additions { opt_level: false, ..additions(&[]) };
    assert!(!text("-O1 -c a.c", &Env::default(), &none).contains("-O3"));
    let env = Env { level: Some("1".into()), ..Env::default() };
    assert!(text("-c a.c", &env, &additions(&[])).contains("-g -O1 -funroll-loops"));
    assert!(!text("-O2 -c a.c", &env, &none).contains("-O1"));
    env.check().unwrap();
    let wrong = Env { level: Some("x".into()), ..Env::default() }.check().unwrap_err();
    assert_eq!(wrong.to_string(), "AFL_OPT_LEVEL=x is not a level of optimization");
    let env = Env { dont_optimize: true, ..Env::default() };
    assert!(!text("-c a.c", &env, &additions(&[])).contains("-funroll-loops"));
}

#[test]
fn the_option_of_the_diff_domain_reaches_llvm() {
    let words = "-target_locations=l.txt -c a.c";
    let rewritten = text(words, &Env::default(), &additions(&["cmp", "diff"]));
    assert!(
        rewritten
            .contains("-fplugin=/lib/waypoints-builtin-pass.so -mllvm -target_locations=l.txt"),
        "{rewritten}"
    );
    assert!(!plain(words).contains("target_locations"));
    let pass = "/own/waypoints-diff-pass-0123.so";
    let own = Additions { passes: vec![pass.into()], ..additions(&[]) };
    let rewritten = text(words, &Env::default(), &own);
    assert!(rewritten.contains(&format!("-fplugin={pass} -mllvm -target_loc")), "{rewritten}");
}

proptest! {
    /// Unknown options are passed on once and in position.
    #[test]
    fn unknown_arguments_keep_their_order(
        words in proptest::collection::vec("(-f[a-z]{3,8}(=[a-z]{1,4})?|-W[a-z]{2,6}|-[DI][a-z]{1,5}|[a-z]{1,5}\\.[co])", 1..20)
    ) {
        let invocation = Invocation::parse(words.iter().map(OsString::from).collect(), |_| None);
        let all = rewrite(&invocation, &Env::default(), &additions(&["cmp"]));
        let at = all.windows(words.len()).filter(|window| *window == invocation.arguments).count();
        prop_assert_eq!(at, 1);
    }
}
