//! From crash files to bugs: each crash is run again, grouped with those that are the same, minimized
//! and written down. Nothing is written into `crashes/`.

mod before;
mod complete;
mod cores;
mod debugger;
mod deliver;
mod examine;
mod follower;
mod frames;
mod group;
mod hang;
mod helper;
mod minimize;
mod paths;
mod pointers;
mod records;
pub mod report;
mod rerun;
mod sarif;
mod seen;
mod state;
mod symbols;
mod work;
mod write;

pub use cores::{CoreError, Cores};
pub use debugger::signal_name;
pub use deliver::Courier;
pub use follower::{FINISH, Follower};
pub use group::IDENTITY;
pub use pointers::pointers;
pub use records::{Records, Wish};
pub use rerun::{Debugging, Examined, Rerun, Tools};
pub use sarif::{sarif, source_root};
pub use seen::{Build, Seen};
pub use symbols::{Symbolizer, clang_version, program};
pub use work::{Orders, Progress, Work};
pub use write::create;

use crate::crashes::collector::CollectorError;
use crate::disk::output::OutputError;
use crate::exec::TargetError;

/// Name of the folder in an output folder.
pub const FOLDER: &str = "triage";

/// What ends a triage.
#[derive(Debug, thiserror::Error)]
pub enum TriageError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Collector(#[from] CollectorError),
}

impl TriageError {
    /// One line: what the user can do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Target(error) => error.remedy(),
            Self::Output(error) => error.remedy(),
            Self::Collector(error) => error.remedy(),
        }
    }
}
