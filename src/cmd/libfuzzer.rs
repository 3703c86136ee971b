//! `ffuzz libfuzzer HARNESS …`: runs a harness with libFuzzer's command line. A harness built by `ffuzz-cc` calls this
//! to fuzz, to merge folders or to minimize an input.
//!
//! `options` holds all options of libFuzzer in one table. The campaign is a separate `ffuzz fuzz --json` process
//! (`campaign`); its events become libFuzzer's lines (`lines`) and files (`files`). `cmin` and `tmin` do the rest.

mod campaign;
mod files;
mod jobs;
mod lines;
mod merge;
mod minimize;
mod options;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use super::exit::Failure;
use options::Order;

const USAGE: &str = "\
Usage: ffuzz libfuzzer HARNESS [-OPTION=VALUE ...] [FOLDER ...]

Fuzzes a harness of ffuzz-cc with libFuzzer's options, lines, files and exit codes.
New inputs are saved in the first folder. -help=1 lists the options.
";

/// Exit code of wrong usage, as in libFuzzer.
const WRONG: u8 = 1;

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut words = words.into_iter();
    let first = words.next().filter(|word| word != "--help" && word != "-h");
    let Some(harness) = first.map(PathBuf::from) else {
        return super::print(USAGE);
    };
    let order = match Order::read(words) {
        Ok(order) => order,
        Err(failure) => return Ok(failure.report(program)),
    };
    for line in &order.notes {
        eprint_line(line);
    }
    if order.flag("help") {
        return super::print(&options::help());
    }
    let is_replay = !order.folders.is_empty() && order.folders.iter().all(|path| path.is_file());
    match () {
        () if order.flag("merge") || order.flag("set_cover_merge") => {
            campaign::checked(&order, || merge::run(&harness, &order))
        }
        () if order.flag("minimize_crash") => minimize::shorten(&harness, &order),
        () if order.flag("cleanse_crash") => minimize::cleanse(&harness, &order),
        () if is_replay && order.number("jobs") > 0 => jobs::run(&harness, &order),
        () if is_replay => campaign::run_by_harness(&harness, &order),
        () => campaign::checked(&order, || campaign::fuzz(&harness, &order)),
    }
}

/// Prints a line to stderr, as libFuzzer does. Ignores a closed pipe.
fn eprint_line(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
