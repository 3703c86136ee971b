//! Domains in folders of users: what `docs/new-domain.md` says works, and every way it can fail.

use crate::common;
use crate::page;
use std::fs;
use std::path::Path;

use common::{Finished, TestDir, clangs, skip};
use page::{blocks_before, follow, own_cache, shell};

#[test]
fn the_page_about_new_domains_is_right() {
    let page = blocks_before("new-domain.md", "## What a pass can use");
    let lines =
        |end: &str| page.iter().find(|b| b.name.ends_with(end)).unwrap().text.lines().count();
    assert!(lines("-pass.cc") <= 15 && lines("-rt.c") == 1, "{page:?}");
    for clang in clangs() {
        let dir = TestDir::new();
        private_cache(&dir, "cache", clang);
        follow(&dir, &page, clang);
    }
}

/// A cache for what is registered: passes and headers that all tests use are compiled in it.
fn private_cache(dir: &TestDir, name: &str, clang: &str) -> String {
    let shared = bench();
    returns(&shared, "own", "ret");
    cc(&shared, clang, &[("WAYPOINTS", "cmp,own/ret")]).expect(0);
    own_cache(dir, name)
}

/// A domain with the given name that counts returns, in the style of FuzzFactory.
fn returns(dir: &TestDir, folder: &str, name: &str) {
    let pass = format!(
        "#include \"fuzzfactory.hpp\"\nusing namespace fuzzfactory;\n\
         class Returns : public DomainFeedback<Returns> {{\npublic:\n\
         Returns(Module &M) : DomainFeedback<Returns>(M, \"__afl_{name}_dsf\") {{}}\n\
         void visitReturnInst(ReturnInst &R) {{\n auto irb = insert_before(R);\n\
         auto one = irb.CreateTrunc(getConst(1), Int32Ty);\n\
         auto f = resolveFunction(\"__fuzzfactory_dsfp_increment\", VoidTy, {{getIntPtrTy(32), Int32Ty, Int32Ty}});\n\
         irb.CreateCall(f, {{DsfMapVariable, createProgramLocation(), one}});\n }}\n\
         void visitBasicBlock(BasicBlock &B) {{\n if (!getFunctionIfExists(\"main\")) return;\n\
         insert_after(B).CreateCall(DsfIncrementFunction, {{DsfMapVariable, getConst(0), getConst(1)}});\n }}\n}};\n\
         FUZZFACTORY_REGISTER_DOMAIN(Returns);\n"
    );
    dir.write(&format!("{folder}/waypoints-{name}-pass.cc"), pass);
    let runtime = format!(
        "#include \"waypoints.h\"\nFUZZFACTORY_DSF_NEW(__afl_{name}_dsf, 1, FUZZFACTORY_REDUCER_MAX, 0);\n"
    );
    dir.write(&format!("{folder}/waypoints-{name}-rt.c"), runtime);
}

fn bench() -> TestDir {
    let dir = TestDir::new();
    dir.write("t.c", "int main(void) { return 0; }\n");
    dir
}

fn cc(dir: &TestDir, clang: &str, variables: &[(&str, &str)]) -> Finished {
    let job = dir.ffuzz("cc -O0 t.c -o t").env("FFUZZ_CC", clang).env("AFL_QUIET", "1");
    variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run()
}

#[test]
fn domains_of_fuzzfactory_use_the_same_base() {
    let dir = bench();
    returns(&dir, "own", "ret");
    for clang in clangs() {
        cc(&dir, clang, &[("WAYPOINTS", "ret,mem"), ("FFUZZ_DOMAIN_PATH", "none:own")]).expect(0);
        let shown = dir.showdsf("", &dir.path("t"), "").run().expect(0);
        // A block and a return of main.
        assert_eq!(shown.values(), ["dsf[0] = 2"], "{clang}");
    }
}

#[test]
fn a_change_in_the_sources_is_seen() {
    let dir = bench();
    returns(&dir, "own", "ret");
    let value = |dir: &TestDir| {
        cc(dir, "19", &[("WAYPOINTS", "own/ret")]).expect(0);
        dir.showdsf("", &dir.path("t"), "").run().expect(0).sorted_values()
    };
    assert_eq!(value(&dir), [2]);
    let runtime = "#include \"own.h\"\nFUZZFACTORY_DSF_NEW(__afl_ret_dsf, 1, FUZZFACTORY_REDUCER_MAX, START);\n";
    dir.write("own/waypoints-ret-rt.c", runtime);
    dir.write("own/own.h", "#define START 40\n");
    assert_eq!(value(&dir), [42]);
    dir.write("own/own.h", "#define START 50\n");
    assert_eq!(value(&dir), [52]);
}

#[test]
fn a_domain_that_is_not_there_is_refused() {
    let dir = bench();
    returns(&dir, "own", "ret");
    let path = [("WAYPOINTS", "cmp,rat"), ("FFUZZ_DOMAIN_PATH", "own")];
    cc(&dir, "19", &path).refused(1, "unknown domain 'rat' (known: cmp, ", "FFUZZ_DOMAIN_PATH");
    let said = cc(&dir, "19", &path).err;
    assert!(said.contains("mem, ") && said.contains("ret"), "{said}");
    cc(&dir, "19", &[("WAYPOINTS", "own/rat")]).refused(
        1,
        "no domain 'rat' in own",
        "waypoints-rat-pass.cc",
    );
    fs::remove_file(dir.path("own/waypoints-ret-rt.c")).unwrap();
    cc(&dir, "19", &[("WAYPOINTS", "own/ret")]).refused(
        1,
        "'ret' is incomplete: own/waypoints-ret-rt.c is missing",
        "add the other one",
    );
}

#[test]
fn two_domains_with_one_name_are_refused() {
    let dir = bench();
    returns(&dir, "own", "ret");
    returns(&dir, "other", "ret");
    returns(&dir, "other", "cmp");
    dir.write("d.toml", "[[domain]]\nname = \"cmp\"\nwatch = \"blocks\"\noperation = \"add\"\n");
    let refused = |waypoints: &str, path: &str| {
        let done = cc(&dir, "19", &[("WAYPOINTS", waypoints), ("FFUZZ_DOMAIN_PATH", path)]);
        done.refused(1, "two domains are called '", "rename one");
    };
    refused("ret", "own:other");
    refused("own/ret,other/ret", "own");
    refused("cmp", "other");
    refused("cmp,@d.toml", "own");
    // One domain, named in two ways.
    cc(&dir, "19", &[("WAYPOINTS", "ret,own/ret"), ("FFUZZ_DOMAIN_PATH", "own:own")]).expect(0);
}

#[test]
fn a_pass_for_another_llvm_is_rebuilt_or_refused() {
    let dir = bench();
    let clangs = clangs();
    let &[old, .., new] = clangs.as_slice() else {
        skip("two versions of clang are needed");
        return;
    };
    returns(&dir, "own", "ret");
    fs::create_dir(dir.path("bin")).unwrap();
    shell(&dir, "$FFUZZ domains own/ret", old).expect(0);
    let built = |end: &str| {
        let folder = fs::read_dir(dir.path("cache/ffuzz")).unwrap().flatten();
        let inner = folder.map(|entry| entry.path().join(format!("llvm-{old}")));
        let files = inner.filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        let mut paths = files.map(|entry| entry.path());
        paths.find(|path| path.extension().is_some_and(|found| found == end)).unwrap()
    };
    let take = |from: &Path, to: &str| {
        fs::create_dir_all(dir.path("built/src")).unwrap();
        fs::copy(from, dir.path(to)).unwrap();
    };
    take(&built("so"), "built/waypoints-ret-pass.so");
    take(&built("o"), "built/waypoints-ret-rt.o");
    let waypoints = [("WAYPOINTS", "built/ret")];
    cc(&dir, old, &waypoints).expect(0);
    let reason = format!("is built for LLVM {old}, clang is {new}");
    cc(&dir, new, &waypoints).refused(1, &reason, "put its source next to it");
    take(&dir.path("own/waypoints-ret-pass.cc"), "built/waypoints-ret-pass.cc");
    cc(&dir, new, &waypoints).expect(0);
    let shown = dir.showdsf("", &dir.path("t"), "").run().expect(0);
    assert_eq!(shown.values(), ["dsf[0] = 2"]);
    fs::remove_file(dir.path("built/waypoints-ret-pass.cc")).unwrap();
    dir.write("built/waypoints-ret-pass.so", "not a pass of ours");
    cc(&dir, new, &waypoints).refused(1, "is built for an unknown LLVM", "FFUZZ_CC");
}

#[test]
fn sources_that_do_not_compile_are_shown() {
    let dir = bench();
    returns(&dir, "own", "ret");
    dir.write("own/waypoints-ret-rt.c", "FUZZFACTORY_DSF_NEW(\n");
    let said = cc(&dir, "19", &[("WAYPOINTS", "own/ret")]).expect(1).err;
    assert!(said.contains("waypoints-ret-rt.c does not compile for clang 19"), "{said}");
    assert!(said.contains("error: unterminated") && said.contains("hint: correct it"), "{said}");
    dir.write(
        "own/waypoints-ret-pass.cc",
        "#include \"ffuzz-domain.hpp\"\nint f() { return x; }\n",
    );
    let said = cc(&dir, "19", &[("WAYPOINTS", "own/ret")]).expect(1).err;
    assert!(said.contains("waypoints-ret-pass.cc does not compile for clang 19"), "{said}");
}

#[test]
fn own_headers_take_precedence_over_older_ones_next_to_the_sources() {
    let dir = bench();
    returns(&dir, "own", "ret");
    dir.write("own/fuzzfactory.hpp", "#error \"the old base class\"\n");
    dir.write("own/waypoints.h", "#error \"the old macros\"\n");
    cc(&dir, "19", &[("WAYPOINTS", "own/ret")]).expect(0);
    let shown = dir.showdsf("", &dir.path("t"), "").run().expect(0);
    assert_eq!(shown.values(), ["dsf[0] = 2"]);
    // As in FuzzFactory's own folder, where the names are those of built-in domains.
    returns(&dir, ".", "slow");
    dir.write("fuzzfactory.hpp", "#error \"the old base class\"\n");
    fs::create_dir(dir.path("bin")).unwrap();
    private_cache(&dir, "cache", "19");
    let made = shell(&dir, "make -f /path/to/ffuzz/Makefile llvm-domains DOMAINS+=slow", "19");
    made.expect(0).says("slow: ready for clang 19");
}

/// A pass in the words of FuzzFactory's `cmp` and `diff`: functions by their type and as `Function *`,
/// numbers of its own, the domain's index as a value. Counts the returns of main.
const OLD_WORDS: &str = "#include \"fuzzfactory.hpp\"\nusing namespace fuzzfactory;\n\
    class Old : public DomainFeedback<Old> {\n  Function *Seen;\npublic:\n\
    Old(Module &M) : DomainFeedback<Old>(M, \"__afl_old_dsf\") {\n\
    Seen = resolveFunction(\"__old_seen\", VoidTy, {Int32Ty, Int32Ty});\n }\n\
    void visitReturnInst(ReturnInst &R) {\n\
    if (R.getFunction()->getName() != \"main\") return;\n\
    auto irb = insert_before(R);\n\
    Function *Again = resolveFunction(\"__old_seen\", Seen->getFunctionType());\n\
    if (Again != Seen) return;\n\
    uint32_t a = generateRandom31(), b = generateRandom31();\n\
    if (a == b || (a | b) >> 31) return;\n\
    irb.CreateCall(Again, {loadDsfMapVariable(irb), getConst(7)});\n\
    Function *Increment = DsfIncrementFunction;\n\
    irb.CreateCall(Increment, {DsfMapVariable, getConst(a), getConst(1)});\n }\n};\n\
    FUZZFACTORY_REGISTER_DOMAIN(Old);\n";

#[test]
fn passes_written_like_fuzzfactorys_cmp_and_diff_compile() {
    let dir = bench();
    dir.write("own/waypoints-old-pass.cc", OLD_WORDS);
    dir.write(
        "own/waypoints-old-rt.c",
        "FUZZFACTORY_DSF_NEW(__afl_old_dsf, MAP_SIZE, FUZZFACTORY_REDUCER_MAX, 0);\n\
         void __old_seen(dsf_t domain, u32 value) { FUZZFACTORY_DSF_INC(domain, 0, value); }\n",
    );
    // The versions between do not differ in what such a pass uses.
    let clangs = clangs();
    for clang in [clangs.first(), clangs.last()].into_iter().flatten() {
        cc(&dir, clang, &[("WAYPOINTS", "own/old")]).expect(0);
        let shown = dir.showdsf("", &dir.path("t"), "").run().expect(0);
        assert_eq!(shown.sorted_values(), [1, 7], "{clang}");
    }
}

#[test]
fn the_name_of_a_builtin_domain_stays_its_own_and_others_can_be_removed() {
    let dir = bench();
    let home = private_cache(&dir, "home", "19");
    let ffuzz =
        |words: &str| dir.ffuzz(words).env("XDG_CACHE_HOME", &home).env("FFUZZ_CC", "19").run();
    let build = |waypoints: &str| {
        let job = dir.ffuzz("cc -O0 t.c -o t").env("XDG_CACHE_HOME", &home).env("FFUZZ_CC", "19");
        job.env("AFL_QUIET", "1").env("WAYPOINTS", waypoints).run()
    };
    returns(&dir, "own", "slow");
    returns(&dir, "own", "ret");
    let said = ffuzz("domains own/slow").expect(0).says("slow: ready for clang 19");
    said.says("slow: not registered, the name is that of a built-in domain").says("own/slow");
    build("slow").expect(0);
    build("own/slow").expect(0);
    build("ret").refused(1, "unknown domain 'ret'", "WAYPOINTS");
    ffuzz("domains own/ret").expect(0).does_not_say("not registered");
    build("ret").expect(0);
    ffuzz("domains --remove ret").expect(0).says("ret: removed");
    build("ret").refused(1, "unknown domain 'ret'", "WAYPOINTS");
    ffuzz("domains --remove ret").refused(1, "no domain is registered as 'ret'", "ffuzz domains");
    ffuzz("domains --remove slow").refused(1, "'slow' is built in", "ffuzz domains");
    ffuzz("domains --remove").refused(2, "--remove needs a name", "--help");
    // Registered by an ffuzz that had no such domain.
    ffuzz("domains own/ret").expect(0);
    for (from, to) in [("pass.cc", "pass.cc"), ("rt.c", "rt.c")] {
        let kept = dir.path("home/ffuzz/domains");
        let (old, new) = (format!("waypoints-ret-{from}"), format!("waypoints-slow-{to}"));
        fs::rename(kept.join(old), kept.join(new)).unwrap();
    }
    build("slow").refused(1, "two domains are called 'slow'", "ffuzz domains --remove slow");
    ffuzz("domains --remove slow").expect(0);
    build("slow").expect(0);
}

#[test]
fn the_command_refuses_unknown_arguments() {
    let dir = TestDir::new();
    dir.ffuzz("domains --all").run().refused(2, "unknown option --all", "ffuzz domains --help");
    dir.ffuzz("domains nonsense").run().refused(1, "unknown domain 'nonsense'", "WAYPOINTS");
    dir.ffuzz("domains --help").run().expect(0).says("ffuzz domains /path/to/NAME");
}
