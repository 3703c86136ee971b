//! The campaign: owns corpus, scheduler, executor and judge, and runs the loop (placeholder).

use std::process::ExitCode;

use crate::cmd::exit::Failure;
use crate::config::options::Options;

/// Runs a campaign to its end.
pub fn run(_options: Options) -> Result<ExitCode, Failure> {
    Err(Failure::new("the campaign is not built yet", ""))
}
