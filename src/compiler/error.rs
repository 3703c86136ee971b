//! Everything that can stop the compiler wrapper before clang runs.

use std::io;
use std::path::PathBuf;

use super::declared::Mistake;
use ffuzz_assets::AssetsError;

#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    #[error("cannot run {}: {source}", program.display())]
    Run { program: PathBuf, source: io::Error },
    #[error("no clang found ({tried})")]
    NoClang { tried: String },
    #[error("{} is not a clang that can be used", .0.display())]
    NotClang(PathBuf),
    #[error(transparent)]
    Assets(#[from] AssetsError),
    #[error("unknown domain '{name}' (known: {known})")]
    UnknownDomain { name: String, known: String },
    #[error("no domain '{name}' in {}", folder.display())]
    NoDomainThere { name: String, folder: PathBuf },
    #[error("domain '{name}' is incomplete: {} is missing", missing.display())]
    HalfADomain { name: String, missing: PathBuf },
    #[error("two domains are called '{name}': {} and {}", first.display(), second.display())]
    Namesakes { name: String, first: PathBuf, second: PathBuf },
    #[error("{}", not_kept(name, *builtin))]
    NotKept { name: String, builtin: bool },
    #[error("-fsanitize=fuzzer: ffuzz has no runtime for this machine or without a C library")]
    NoDriver,
    #[error("cannot read the declared domains in {}: {source}", path.display())]
    Declarations { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Declared(Mistake),
    #[error("domain '{domain}' needs a pass for clang {major}, and {program} is not installed")]
    NoLlvm { domain: String, major: u32, program: String },
    #[error("{} is built for {}, clang is {major}", pass.display(), version_of(*version))]
    OtherLlvm { pass: PathBuf, version: Option<u32>, major: u32 },
    #[error("cannot read {}: {source}", path.display())]
    Source { path: PathBuf, source: io::Error },
    #[error("{} does not compile for clang {major}:\n{output}", source_file.display())]
    DoesNotCompile { source_file: PathBuf, ours: bool, major: u32, output: String },
    #[error("cannot read {}: {source}", path.display())]
    List { path: PathBuf, source: io::Error },
    #[error("{0} and {1} exclude each other")]
    Exclusive(&'static str, &'static str),
}

impl CompilerError {
    /// What to do about it, in one line.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Run { .. } | Self::NoClang { .. } => {
                "install clang (apt-get install clang-19 llvm-19-dev lld-19), or name one with \
                 FFUZZ_CC=19 or FFUZZ_CC=/path/to/clang"
                    .into()
            }
            Self::NotClang(_) => "ffuzz-cc needs clang 14 or newer: unset AFL_CC/AFL_CXX, or name \
                                  a clang with FFUZZ_CC"
                .into(),
            Self::Assets(error) => error.remedy().into(),
            Self::UnknownDomain { name, .. } => format!(
                "set WAYPOINTS to a comma list of known names, or name its folder: \
                 FFUZZ_DOMAIN_PATH=FOLDER, or /path/to/{name}"
            ),
            Self::NoDomainThere { name, .. } => {
                format!("put waypoints-{name}-pass.cc and waypoints-{name}-rt.c there")
            }
            Self::HalfADomain { .. } => {
                "a domain is a pair of files (docs/new-domain.md): add the other one".into()
            }
            Self::Namesakes { name, .. } => format!(
                "rename one, or leave one out; a path (/path/to/{name}) chooses between folders, \
                 and `ffuzz domains --remove {name}` unregisters one"
            ),
            Self::NotKept { .. } => "`ffuzz domains` lists the known names and their files".into(),
            Self::NoDriver => "leave out the option that asks for it (-m32, --target=, \
                               -ffreestanding …), or call clang for its own libFuzzer"
                .into(),
            Self::Declarations { .. } => {
                "name it with its full path when a build changes folders, \
                                          or put it into a folder of FFUZZ_DOMAIN_PATH"
                    .into()
            }
            Self::Declared(mistake) => mistake.remedy.clone(),
            Self::OtherLlvm { pass, .. } => format!(
                "put its source next to it ({}), or choose another clang with FFUZZ_CC",
                pass.with_extension("cc").display()
            ),
            Self::Source { .. } => "check its permissions".into(),
            Self::NoLlvm { major, .. } => {
                format!("apt-get install llvm-{major}-dev, or choose another clang with FFUZZ_CC")
            }
            Self::DoesNotCompile { ours: true, major, .. } => {
                format!("check that clang-{major} and llvm-{major}-dev are of the same version")
            }
            Self::DoesNotCompile { .. } => {
                "correct it; docs/new-domain.md lists what a pass can use".into()
            }
            Self::List { .. } => "correct AFL_LLVM_ALLOWLIST or AFL_LLVM_DENYLIST".into(),
            Self::Exclusive(first, _) => format!("unset one of them, for instance {first}"),
        }
    }
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
