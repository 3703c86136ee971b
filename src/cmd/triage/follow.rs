//! `--follow`: stays beside a campaign.

use std::process::ExitCode;

use super::args::Args;
use crate::cmd::exit::Failure;
use crate::config::env::Environment;

pub(super) fn run(_args: &Args, _environment: &Environment) -> Result<ExitCode, Failure> {
    Ok(ExitCode::SUCCESS)
}
