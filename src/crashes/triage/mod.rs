//! From crash files to bugs: runs each crash again, groups equal ones, minimizes and reports them. Writes nothing into
//! `crashes/`.

mod before;
mod complete;
mod cores;
mod debugger;
mod deliver;
mod drive;
mod examine;
mod follow;
mod follower;
mod frames;
mod group;
mod hang;
mod helper;
mod minimize;
mod named;
mod paths;
mod plan;
mod pointers;
mod records;
pub mod report;
mod rerun;
mod seen;
mod state;
mod symbols;
mod trail;
mod work;
mod write;

pub use cores::{CoreError, Cores};
pub use debugger::signal_name;
pub use deliver::BugDelivery;
pub use drive::{files, folders, lock, run_all};
pub use follow::{FollowCallbacks, follow, wait_for_lock};
pub use follower::{FINISH, Follower};
pub use group::IDENTITY;
pub use plan::{PlanOptions, TriagePlan};
pub use pointers::pointers;
pub use records::{RecordThreshold, Records};
pub use rerun::{Debugging, Examined, Rerun, RerunTools};
pub use seen::{Build, Seen};
pub use symbols::{Symbolizer, clang_version, program};
pub use work::{TriageWork, WorkOptions, WorkProgress};
pub use write::create;

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use crate::collector::CollectorError;
use ffuzz_disk::output::OutputError;
use ffuzz_exec::TargetError;
use ffuzz_mutators::CustomError;

/// Name of the folder in an output folder.
pub const FOLDER: &str = "triage";

/// Error that ends a triage.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TriageError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mutator(#[from] CustomError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Collector(#[from] CollectorError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Core(#[from] CoreError),
    #[error("{0} is set, but there is no gdb")]
    #[diagnostic(help("install gdb, or unset {0}"))]
    NoGdb(&'static str),
    #[error("cannot read the folder {}: {source}", folder.display())]
    #[diagnostic(help(
        "name the folder that was given to the fuzzer's -o, or one with crash files"
    ))]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot write to {}: {source}", folder.display())]
    #[diagnostic(help("check the permissions of the folder"))]
    Write { folder: PathBuf, source: io::Error },
    #[error("cannot lock {}: {source}", folder.display())]
    #[diagnostic(help("choose an -o on a file system that has locks"))]
    Lock { folder: PathBuf, source: io::Error },
    #[error("another triage is at work in {}", .0.display())]
    #[diagnostic(help("wait for its end (a campaign that runs has one), or choose another -o"))]
    Busy(PathBuf),
}
