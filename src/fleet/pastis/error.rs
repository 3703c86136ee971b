//! Why a PASTIS engine cannot begin, and why it refuses an order.

use std::io;
use std::path::PathBuf;

use ffuzz_exec::TargetError;

/// Display is the cause, [`PastisError::remedy`] the way out.
#[derive(Debug, thiserror::Error)]
pub enum PastisError {
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error("cannot write to {path:?}: {source}")]
    Folder { path: PathBuf, source: io::Error },
}

impl PastisError {
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Signals(_) => "this is a bug in ffuzz; please report it".into(),
            Self::Folder { .. } => "name a folder that can be written with -o OUT".into(),
        }
    }
}

/// Number of letters of a name from the network that are shown: the cause comes after it.
const SHOWN: usize = 100;

/// The beginning of a name that may have any length.
#[must_use]
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}

/// Why the target of a Start is not fuzzed. The client reports it to the broker and waits for another Start.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the engine {0:?} is not one of ffuzz")]
    Engine(String),
    #[error(
        "the broker has version {theirs:?} of the package pastis-ffuzz, but this is ffuzz {ours}"
    )]
    Version { theirs: String, ours: &'static str },
    #[error("the target is not instrumented (binary only), which this engine or mode needs")]
    BinaryOnly,
    #[error("{0:?} is not a file name")]
    Name(String),
    #[error("the package is neither an ELF file nor a ZIP archive")]
    Format,
    #[error("the package is damaged: {0}")]
    Damaged(String),
    #[error("the package has {0:?}, which is outside of its folder")]
    Outside(String),
    #[error("the package has the link {0:?}")]
    Link(String),
    #[error("the package is larger than {0} MB, or has too many files")]
    Large(u64),
    #[error("the package does not have the target, {0:?}")]
    Missing(String),
    #[error("{0}")]
    Target(#[from] TargetError),
    #[error("the engine's arguments are wrong: {0}")]
    Arguments(String),
    #[error("cannot write to {path:?}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

impl Refusal {
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Engine(_) => {
                "this client offers its engines in its Hello; the broker has a bug".into()
            }
            Self::Version { ours, .. } => {
                format!("install the package of ffuzz {ours} where the broker runs")
            }
            Self::BinaryOnly => {
                "put a target built by ffuzz-cc into the broker's bins folder, or start the engine FFUZZ".into()
            }
            Self::Name(_) | Self::Missing(_) | Self::Damaged(_) | Self::Format => {
                "the broker makes packages of ELF files in its bins folder; check what is there"
                    .into()
            }
            Self::Outside(_) | Self::Link(_) => {
                "a correct broker makes no such package; do not trust this one".into()
            }
            Self::Large(_) => "remove what the target does not need from the bins folder".into(),
            Self::Target(error) => error.remedy(),
            Self::Arguments(_) => "they are options of ffuzz: ffuzz --help lists them".into(),
            Self::Write { .. } => "free some space, or name another folder with -o OUT".into(),
        }
    }
}
