//! Errors that stop the compiler wrapper before clang runs.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use super::declared::DomainError;
use ffuzz_assets::AssetsError;

const INSTALL_CLANG: &str = "install clang (apt-get install clang-19 llvm-19-dev lld-19), or name \
    one with FFUZZ_CC=19 or FFUZZ_CC=/path/to/clang";

#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CompilerError {
    #[error("cannot run {}: {source}", program.display())]
    #[diagnostic(help("{}", INSTALL_CLANG))]
    Run { program: PathBuf, source: io::Error },
    #[error("no clang found ({tried})")]
    #[diagnostic(help("{}", INSTALL_CLANG))]
    NoClang { tried: String },
    #[error("{} is not a clang that can be used", .0.display())]
    #[diagnostic(help(
        "ffuzz-cc needs clang 14 or newer: unset AFL_CC/AFL_CXX, or name a clang with FFUZZ_CC"
    ))]
    NotClang(PathBuf),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Assets(#[from] AssetsError),
    #[error("unknown domain '{name}' (known: {known})")]
    #[diagnostic(help(
        "set WAYPOINTS to a comma list of known names, or name its folder: \
         FFUZZ_DOMAIN_PATH=FOLDER, or /path/to/{name}"
    ))]
    UnknownDomain { name: String, known: String },
    #[error("no domain '{name}' in {}", folder.display())]
    #[diagnostic(help("put waypoints-{name}-pass.cc and waypoints-{name}-rt.c there"))]
    NoDomainThere { name: String, folder: PathBuf },
    #[error("domain '{name}' is incomplete: {} is missing", missing.display())]
    #[diagnostic(help("a domain is a pair of files (docs/new-domain.md): add the other one"))]
    HalfADomain { name: String, missing: PathBuf },
    #[error("two domains are called '{name}': {} and {}", first.display(), second.display())]
    #[diagnostic(help(
        "rename one, or leave one out; a path (/path/to/{name}) chooses between folders, and \
         `ffuzz domains --remove {name}` unregisters one"
    ))]
    Namesakes { name: String, first: PathBuf, second: PathBuf },
    #[error("{}", not_kept(name, *builtin))]
    #[diagnostic(help("`ffuzz domains` lists the known names and their files"))]
    NotKept { name: String, builtin: bool },
    #[error("-fsanitize=fuzzer: ffuzz has no runtime for this machine or without a C library")]
    #[diagnostic(help(
        "leave out the option that asks for it (-m32, --target=, -ffreestanding …), or call clang \
         for its own libFuzzer"
    ))]
    NoDriver,
    #[error("{0}: ffuzz has no runtime for this machine")]
    #[diagnostic(help(
        "leave the option out, or compile without instrumentation: AFL_NOOPT=1, or call clang"
    ))]
    WrongMachine(String),
    #[error("{name} of clang {major} is not installed")]
    #[diagnostic(help("apt-get install llvm-{major}, or choose another clang with FFUZZ_CC"))]
    NoTool { name: String, major: u32 },
    #[error("cannot read the declared domains in {}: {source}", path.display())]
    #[diagnostic(help(
        "name it with its full path when a build changes folders, or put it into a folder of \
         FFUZZ_DOMAIN_PATH"
    ))]
    Declarations { path: PathBuf, source: io::Error },
    #[error(transparent)]
    #[diagnostic(help("{}", .0.remedy))]
    Declared(DomainError),
    #[error("domain '{domain}' needs a pass for clang {major}, and {program} is not installed")]
    #[diagnostic(help("apt-get install llvm-{major}-dev, or choose another clang with FFUZZ_CC"))]
    NoLlvm { domain: String, major: u32, program: String },
    #[error("{} is built for {}, clang is {major}", pass.display(), version_of(*version))]
    #[diagnostic(help(
        "put its source next to it ({}), or choose another clang with FFUZZ_CC",
         pass.with_extension("cc").display()
    ))]
    OtherLlvm { pass: PathBuf, version: Option<u32>, major: u32 },
    #[error("cannot read {}: {source}", path.display())]
    #[diagnostic(help("check its permissions"))]
    Source { path: PathBuf, source: io::Error },
    #[error("{} does not compile for clang {major}:\n{output}", source_file.display())]
    #[diagnostic(help("{}", how_to_compile(*ours, *major)))]
    DoesNotCompile { source_file: PathBuf, ours: bool, major: u32, output: String },
    #[error("cannot read {}: {source}", path.display())]
    #[diagnostic(help("correct AFL_LLVM_ALLOWLIST or AFL_LLVM_DENYLIST"))]
    List { path: PathBuf, source: io::Error },
    #[error("{0} and {1} exclude each other")]
    #[diagnostic(help("unset one of them, for instance {0}"))]
    Exclusive(&'static str, &'static str),
    #[error("AFL_OPT_LEVEL={0} is not a level of optimization")]
    #[diagnostic(help("set it to 0, 1, 2, 3, s, z, g or fast, or unset it: -O3 is the default"))]
    NoLevel(String),
}

fn version_of(version: Option<u32>) -> String {
    version.map_or_else(|| "an unknown LLVM".into(), |version| format!("LLVM {version}"))
}

fn not_kept(name: &str, builtin: bool) -> String {
    if builtin {
        format!("domain '{name}' is built in and cannot be removed")
    } else {
        format!("no domain is registered as '{name}'")
    }
}

fn how_to_compile(ours: bool, major: u32) -> String {
    match ours {
        true => format!("check that clang-{major} and llvm-{major}-dev are of the same version"),
        false => "correct it; docs/new-domain.md lists what a pass can use".into(),
    }
}
