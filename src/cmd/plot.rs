//! `ffuzz-plot`: the course of a campaign as one page, in the tradition of `afl-plot`. The page is that of `ffuzz
//! report` without any run of the target.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use super::exit::Failure;
use super::{report, tool};

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-plot",
    about = "Draw charts of a campaign",
    after_help = "The folder may be from ffuzz or from afl-fuzz. ffuzz-report shows the source, what blocks and the \
                  bugs as well.\n\nExample:\n  ffuzz-plot out/default charts && xdg-open charts/index.html"
)]
pub(super) struct Args {
    /// Folder of an instance: OUT/default, or OUT/NAME
    #[arg(value_name = "INSTANCE")]
    instance: PathBuf,
    /// Folder for index.html
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, args)? else { return Ok(ExitCode::SUCCESS) };
    let page = report::course(&args.instance)?;
    let file = args.folder.join("index.html");
    fs::create_dir_all(&args.folder).map_err(|error| {
        let cause = format!("cannot write {}: {error}", file.display());
        Failure::new(cause, "name a folder that is writable")
    })?;
    tool::replace(&file, page.as_bytes())?;
    super::print(&format!("{}\n", file.display()))
}
