//! The command line that resumes a campaign, for the campaign's closing lines.

use std::ffi::OsString;

use super::args::Args;
use super::handed;
use crate::disk::output::setup::shell_line;

/// The user's words with `-i -`; None if the campaign has no queue to resume.
pub(super) fn line(args: &Args) -> Option<String> {
    if args.mutator_only {
        return None;
    }
    let kept = args.given.iter().filter(|option| handed::is_resumed(option));
    let mut all: Vec<OsString> = ["ffuzz", "-i", "-"].map(OsString::from).into();
    all.extend(kept.flatten().cloned());
    all.push("--".into());
    all.extend(args.command.iter().cloned());
    Some(shell_line(&all))
}
