//! Errors of a PASTIS engine: why it cannot start, and why it refuses a Start.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use ffuzz_inspect::binary::ProgramError;

/// Reason why a broker's client cannot start.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PastisError {
    #[error("cannot handle signals: {0}")]
    #[diagnostic(help("this is a bug in ffuzz; please report it"))]
    Signals(io::Error),
    #[error("cannot write to {path:?}: {source}")]
    #[diagnostic(help("name a folder that can be written with -o OUT"))]
    Folder { path: PathBuf, source: io::Error },
}

/// Maximum number of shown letters of a name from the network, so that the cause after it stays visible.
const SHOWN: usize = 100;

/// The beginning of a name of any length.
#[must_use]
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}

const CHECK_BINS: &str =
    "the broker makes packages of ELF files in its bins folder; check what is there";

/// Reason to refuse the target of a Start. The client reports it to the broker and waits for another Start.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum Refusal {
    #[error("the engine {0:?} is not one of ffuzz")]
    #[diagnostic(help("this client offers its engines in its Hello; the broker has a bug"))]
    Engine(String),
    #[error(
        "the broker has version {theirs:?} of the package pastis-ffuzz, but this is ffuzz {ours}"
    )]
    #[diagnostic(help("install the package of ffuzz {ours} where the broker runs"))]
    Version { theirs: String, ours: &'static str },
    #[error("the target is not instrumented (binary only), which this engine or mode needs")]
    #[diagnostic(help(
        "put a target built by ffuzz-cc into the broker's bins folder, or start the engine FFUZZ"
    ))]
    BinaryOnly,
    #[error("{0:?} is not a file name")]
    #[diagnostic(help("{}", CHECK_BINS))]
    Name(String),
    #[error("the package is neither an ELF file nor a ZIP archive")]
    #[diagnostic(help("{}", CHECK_BINS))]
    Format,
    #[error("the package is damaged: {0}")]
    #[diagnostic(help("{}", CHECK_BINS))]
    Damaged(String),
    #[error("the package has {0:?}, which is outside of its folder")]
    #[diagnostic(help("a correct broker makes no such package; do not trust this one"))]
    Outside(String),
    #[error("the package has the link {0:?}")]
    #[diagnostic(help("a correct broker makes no such package; do not trust this one"))]
    Link(String),
    #[error("the package is larger than {0} MB, or has too many files")]
    #[diagnostic(help("remove what the target does not need from the bins folder"))]
    Large(u64),
    #[error("the package does not have the target, {0:?}")]
    #[diagnostic(help("{}", CHECK_BINS))]
    Missing(String),
    #[error("{0}")]
    #[diagnostic(transparent)]
    Program(#[from] ProgramError),
    #[error("the engine's arguments are wrong: {0}")]
    #[diagnostic(help("they are options of ffuzz: ffuzz --help lists them"))]
    Arguments(String),
    #[error("cannot write to {path:?}: {source}")]
    #[diagnostic(help("free some space, or name another folder with -o OUT"))]
    Write { path: PathBuf, source: io::Error },
}
