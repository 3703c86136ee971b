//! Compiles what `ffuzz-cc` puts into targets: the C runtime, and the pass of its domains if LLVM is
//! there. Writes `assets.rs`, a table which `lib.rs` includes. Without LLVM the
//! fuzzer still builds; the pass sources travel along in any case.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// In the order of preference: that of the tests first. `LLVM_CONFIG` comes before all of them.
const LLVM_CONFIGS: &[&str] = &["19", "20", "18", "17", "16", "15", "14"];
/// Linked into shared libraries, where no runtime may live.
const STUB: &str = "stub";
const MAIN: &str = "driver/main";
/// Has the path of the program, of a harness alone.
const WHERE: &str = "where";
/// The runtime as a library for `LD_PRELOAD`: below instrumented libraries, and with breakpoints, without what only
/// instrumented code calls.
const PRELOAD: &str = "libffuzz-preload.so";
const NATIVE: &str = "libffuzz-native.so";
/// Domains that need no source.
const NATIVE_DOMAINS: &[&str] = &["mem", "heap", "out", "perf", "slow"];
/// A plugin of QEMU, which loads it.
const QEMU: &str = "libffuzz-qemu.so";
const HEAP: &str = "libffuzz-heap.so";
/// Stands in for the network.
const NET: &str = "libffuzz-net.so";
const OF_INSTRUMENTED: &[&str] =
    &["selective", "callbacks", "comparisons", "exit-hook", "guards", "hooks", "wrapped"];
/// The pass that includes those of all domains, and serves declared ones.
const BUILTIN: &str = "builtin";

/// What passes include.
const HEADERS: &[&str] = &[
    "ffuzz-domain.hpp",
    "ffuzz-exec.hpp",
    "ffuzz-flow.hpp",
    "ffuzz-log.hpp",
    "ffuzz-rest.hpp",
    "ffuzz-keys.hpp",
    "ffuzz-lines.hpp",
    "ffuzz-update.hpp",
    "ffuzz-allocations.hpp",
    "ffuzz-variables.hpp",
    "ffuzz-declared.hpp",
    "ffuzz-conditions.hpp",
    "ffuzz-counters.hpp",
    "ffuzz-words.hpp",
    "ffuzz-words-pass.hpp",
    "fuzzfactory.hpp",
];

/// Of the repository; cargo starts this in the folder of the crate.
const ROOT: &str = "../..";

struct Llvm {
    bindir: PathBuf,
    cxxflags: Vec<String>,
}

fn main() {
    for folder in ["runtime", "llvm-passes"] {
        println!("cargo::rerun-if-changed={ROOT}/{folder}");
    }
    env::set_current_dir(ROOT).expect("the repository is there");
    println!("cargo::rerun-if-env-changed=LLVM_CONFIG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let llvm = find_llvm();
    let mut assets = runtime(&out, llvm.as_ref());
    assets.extend(sources(&out));
    match llvm.as_ref().and_then(|llvm| pass(&out, llvm)) {
        Some(pass) => assets.push(pass),
        None => {
            println!("cargo::warning=no LLVM development files: the pass is compiled on first use");
        }
    }
    fs::write(out.join("assets.rs"), table(&assets)).expect("OUT_DIR is writable");
}

fn find_llvm() -> Option<Llvm> {
    let named = env::var("LLVM_CONFIG").ok().into_iter();
    let known = LLVM_CONFIGS.iter().map(|version| format!("llvm-config-{version}"));
    named.chain(known).find_map(|program| {
        let ask = |what| stdout(Command::new(&program).arg(what));
        let bindir = PathBuf::from(ask("--bindir")?.trim());
        let cxxflags = ask("--cxxflags")?.split_whitespace().map(str::to_owned).collect();
        bindir.join("clang++").exists().then_some(Llvm { bindir, cxxflags })
    })
}

fn stdout(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What executables are linked with, what `-fsanitize=fuzzer` adds, and the object of each domain.
fn runtime(out: &Path, llvm: Option<&Llvm>) -> Vec<(String, PathBuf)> {
    let mut assets = vec![];
    let mut parts = units("");
    parts.retain(|unit| unit != STUB && unit != WHERE);
    parts.extend(units("snapshot/"));
    for (archive, units) in [("libffuzz-rt.a", parts), ("libffuzz-driver.a", units("driver/"))] {
        let path = out.join(archive);
        let _ = fs::remove_file(&path);
        let objects = units.iter().map(|unit| object(out, llvm, unit));
        run(Command::new("ar").arg("rcsD").arg(&path).args(objects));
        assets.push((archive.to_owned(), path));
    }
    assets.extend(engine(out, llvm));
    let parts = |left_out: &[&str]| {
        let mut parts = units("");
        parts.retain(|unit| unit != STUB && unit != WHERE && !left_out.contains(&unit.as_str()));
        [parts, units("snapshot/"), units("preload/")].concat()
    };
    // `wrapped` needs the linker of the program, `hooks` is for archives of Go.
    assets.push(preloaded(out, llvm, PRELOAD, &parts(&["hooks", "wrapped"]), &[], "preload"));
    // Its breakpoints and its handler are those of this processor.
    if cfg!(target_arch = "x86_64") {
        let parts = [parts(OF_INSTRUMENTED), units("native/")].concat();
        assets.push(preloaded(out, llvm, NATIVE, &parts, NATIVE_DOMAINS, "native"));
    }
    let flags = "-fno-builtin -Wl,-z,now";
    assets.push((HEAP.to_owned(), library(out, llvm, HEAP, &units("heap/"), flags)));
    let flags = "-fvisibility=hidden -iquote runtime -s -Wl,-z,now -Wl,-Bsymbolic";
    let parts = [units("net/"), vec!["machine".into()]].concat();
    assets.push((NET.to_owned(), library(out, llvm, NET, &parts, flags)));
    let flags = "-fvisibility=hidden -iquote runtime -s";
    assets.push((QEMU.to_owned(), library(out, llvm, QEMU, &units("qemu/"), flags)));
    assets.push(("ffuzz-stub.o".into(), object(out, llvm, STUB)));
    assets.push(("ffuzz-where.o".into(), object(out, llvm, WHERE)));
    for domain in domains() {
        let unit = format!("domains/waypoints-{domain}-rt");
        assets.push((format!("waypoints-{domain}-rt.o"), object(out, llvm, &unit)));
    }
    assets
}

/// The runtime and the driver for builds that another compiler links, with `main` and without. One object has all, or a
/// sanitizer's weak functions would stand for some of ours. `start` and `wrapped` need options of the linker.
fn engine(out: &Path, llvm: Option<&Llvm>) -> Vec<(String, PathBuf)> {
    let left_out = [STUB, "start", "hooks", "wrapped", MAIN];
    let mut parts = [units(""), units("snapshot/"), units("driver/")].concat();
    parts.retain(|unit| !left_out.contains(&unit.as_str()));
    let whole = out.join("ffuzz-engine.o");
    let objects = parts.iter().map(|unit| object(out, llvm, unit));
    run(Command::new(compiler(llvm)).args(["-r", "-nostdlib", "-o"]).arg(&whole).args(objects));
    let (main, hooks) = (object(out, llvm, MAIN), object(out, llvm, "hooks"));
    let archive = |name: &str, objects: &[&PathBuf]| {
        let path = out.join(name);
        let _ = fs::remove_file(&path);
        run(Command::new("ar").arg("rcsD").arg(&path).args(objects));
        (name.to_owned(), path)
    };
    vec![
        archive("libffuzz.a", &[&whole, &main, &hooks]),
        archive("libffuzz_no_main.a", &[&whole, &hooks]),
    ]
}

/// The runtime for a program that has none: the folder lists what it offers.
fn preloaded(
    out: &Path,
    llvm: Option<&Llvm>,
    name: &str,
    parts: &[String],
    domains: &[&str],
    folder: &str,
) -> (String, PathBuf) {
    let path = out.join(name);
    let mut objects: Vec<_> = parts.iter().map(|unit| object(out, llvm, unit)).collect();
    objects.extend(domains.iter().map(|domain| domain_by_call(out, llvm, domain)));
    let flags = "-shared -s -Wl,-z,now -Wl,-Bsymbolic -Wl,--no-undefined";
    run(Command::new(compiler(llvm))
        .args(flags.split_whitespace())
        .arg(format!("-Wl,--version-script=runtime/{folder}/exported.list"))
        .args(objects)
        .arg("-o")
        .arg(&path));
    (name.to_owned(), path)
}

/// A library that stands alone.
fn library(out: &Path, llvm: Option<&Llvm>, name: &str, units: &[String], flags: &str) -> PathBuf {
    let path = out.join(name);
    run(Command::new(compiler(llvm))
        .args("-O2 -fPIC -std=gnu11 -Wall -Wextra -shared".split_whitespace())
        .args(flags.split_whitespace())
        .args(units.iter().map(|unit| format!("runtime/{unit}.c")))
        .arg("-o")
        .arg(&path));
    path
}

fn compiler(llvm: Option<&Llvm>) -> PathBuf {
    llvm.map_or_else(|| "cc".into(), |llvm| llvm.bindir.join("clang"))
}

/// Names of the built-in domains: each has its map in `runtime/domains/`.
fn domains() -> Vec<String> {
    let units = units("domains/").into_iter();
    let name = |unit: String| {
        unit.strip_prefix("domains/waypoints-")?.strip_suffix("-rt").map(str::to_owned)
    };
    units.filter_map(name).collect()
}

/// The sources of a folder of the runtime, as paths without `.c`.
fn units(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(format!("runtime/{folder}")).expect("it is part of the sources");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let names = names.filter_map(|name| name.to_str()?.strip_suffix(".c").map(str::to_owned));
    let mut units: Vec<String> = names.map(|name| format!("{folder}{name}")).collect();
    units.sort();
    units
}

/// It must be linkable by every clang and every linker: plain code, no bitcode. In an archive a name
/// stands for one object, so the folder is part of it.
fn object(out: &Path, llvm: Option<&Llvm>, unit: &str) -> PathBuf {
    let path = out.join(format!("{}.o", unit.replace('/', "-")));
    compile(llvm, unit, &[], &path);
    path
}

/// The map of a domain that is registered when our own code says so.
fn domain_by_call(out: &Path, llvm: Option<&Llvm>, domain: &str) -> PathBuf {
    let path = out.join(format!("native-domains-{domain}.o"));
    let unit = format!("domains/waypoints-{domain}-rt");
    compile(llvm, &unit, &["-DFFUZZ_REGISTERED_BY_CALL"], &path);
    path
}

fn compile(llvm: Option<&Llvm>, unit: &str, further: &[&str], to: &Path) {
    // Parts run before libc is ready, or while the program's memory is in any state.
    let flags = "-O2 -fPIC -std=gnu11 -Wall -Wextra -ffunction-sections -fno-lto \
                 -fno-stack-protector -Iruntime/include -iquote runtime";
    let source = format!("runtime/{unit}.c");
    run(Command::new(compiler(llvm))
        .args(flags.split_whitespace())
        .args(further)
        .args(["-c", &source, "-o"])
        .arg(to));
}

/// The pass of all domains. None if it does not compile.
fn pass(out: &Path, llvm: &Llvm) -> Option<(String, PathBuf)> {
    let name = format!("waypoints-{BUILTIN}-pass.so");
    let path = out.join(&name);
    let source = format!("llvm-passes/waypoints-{BUILTIN}-pass.cc");
    let flags = "-std=c++17 -O1 -fPIC -shared -fno-rtti -fno-exceptions -fvisibility=hidden -Wl,-s";
    let mut command = Command::new(llvm.bindir.join("clang++"));
    command.args(&llvm.cxxflags).args(flags.split(' ')).arg(source).arg("-o").arg(&path);
    let done = command.status().is_ok_and(|status| status.success());
    done.then_some((name, path))
}

/// What is embedded as it is: linker files, headers for targets, pass sources. They are copied, so that checkouts that
/// share a target folder do not name the files of each other.
fn sources(out: &Path) -> Vec<(String, PathBuf)> {
    let mut names: Vec<(String, String)> = vec![
        ("counters.ld".into(), "runtime/counters.ld".into()),
        ("exported.list".into(), "runtime/exported.list".into()),
        ("include/waypoints.h".into(), "runtime/include/waypoints.h".into()),
        ("include/afl_valid.h".into(), "runtime/include/afl_valid.h".into()),
        ("include/ijon.h".into(), "runtime/include/ijon.h".into()),
    ];
    for header in HEADERS {
        names.push((format!("src/{header}"), format!("llvm-passes/{header}")));
    }
    for domain in domains().into_iter().chain([BUILTIN.to_owned()]) {
        let file = format!("waypoints-{domain}-pass.cc");
        names.push((format!("src/{file}"), format!("llvm-passes/{file}")));
    }
    let copy = |(name, path): (String, String)| {
        let to = out.join(name.replace('/', "-"));
        fs::copy(&path, &to).unwrap_or_else(|e| panic!("{path}: {e}"));
        (name, to)
    };
    names.into_iter().map(copy).collect()
}

/// The table, with a hash over all contents (FNV-1a) that names the cache folder.
fn table(assets: &[(String, PathBuf)]) -> String {
    let mut text = String::from("pub(super) static FILES: &[(&str, &[u8])] = &[\n");
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for (name, path) in assets {
        let content = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for byte in name.bytes().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let _ = writeln!(text, "    ({name:?}, include_bytes!({path:?})),");
    }
    let _ = writeln!(text, "];\npub(super) const HASH: &str = \"{hash:016x}\";");
    text
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    assert!(status.success(), "{command:?} failed");
}
