//! Everything that can stop the compiler wrapper before clang runs.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    #[error("cannot run {}: {source}", program.display())]
    Run { program: PathBuf, source: io::Error },
    #[error("no clang found ({tried})")]
    NoClang { tried: String },
    #[error("{} is not a clang that can be used", .0.display())]
    NotClang(PathBuf),
    #[error("cannot unpack the runtime into {}: {source}", path.display())]
    Unpack { path: PathBuf, source: io::Error },
    #[error("{} belongs to somebody else or can be written by others", .0.display())]
    ForeignFolder(PathBuf),
    #[error("FFUZZ_LIB_DIR={} holds no libffuzz-rt.a", .0.display())]
    EmptyLibDir(PathBuf),
    #[error("unknown domain '{name}' (known: {known})")]
    UnknownDomain { name: String, known: String },
    #[error("domain '{domain}' needs a pass for clang {major}, and {program} is not installed")]
    NoLlvm { domain: String, major: u32, program: String },
    #[error("the pass of domain '{domain}' does not compile for clang {major}:\n{output}")]
    PassBuild { domain: String, major: u32, output: String },
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
            Self::Unpack { .. } | Self::ForeignFolder(_) => {
                "set XDG_CACHE_HOME to a folder of your own with room for 1 MB".into()
            }
            Self::EmptyLibDir(_) => "unset FFUZZ_LIB_DIR to use what is built in".into(),
            Self::UnknownDomain { .. } => {
                "set WAYPOINTS to a comma list of known names, or put waypoints-NAME-rt.o and \
                 waypoints-NAME-pass.so into FFUZZ_LIB_DIR"
                    .into()
            }
            Self::NoLlvm { major, .. } => {
                format!("apt-get install llvm-{major}-dev, or choose another clang with FFUZZ_CC")
            }
            Self::PassBuild { major, .. } => {
                format!("check that clang-{major} and llvm-{major}-dev are of the same version")
            }
            Self::List { .. } => "correct AFL_LLVM_ALLOWLIST or AFL_LLVM_DENYLIST".into(),
            Self::Exclusive(first, _) => format!("unset one of them, for instance {first}"),
        }
    }
}
