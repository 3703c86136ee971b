//! The command line of `triage`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::cmd::exit::Failure;
use crate::cmd::fuzz::{found, values};
use crate::crashes::triage::Records;

/// Minimum timeout, as in AFL.
const MIN_TIMEOUT_MS: u64 = 10;
/// Default timeout: each run starts a new process, and sanitizers are slow.
const TIMEOUT: Duration = Duration::from_secs(10);
const MOST_RUNS: u64 = 1000;
const MOST_JOBS: u64 = 1024;

#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "ffuzz-triage",
    about = "Rerun crash files, and group them by bug, minimize and report them",
    override_usage = "ffuzz-triage [OPTIONS] [-o OUT | FOLDER...] [-- TARGET [ARGUMENTS]]",
    after_help = "Results: triage/report.json, and a folder for each bug with its input, stack and \
                  report.\nCrashes that the report contains are not run again.\n\nExamples:\n  \
                  ffuzz-triage -o out                         a campaign of ffuzz or afl-fuzz\n  \
                  ffuzz-triage -o out -w ./target-asan        reports of a sanitizer build\n  \
                  ffuzz-triage -o out -t 20000 --report-hangs hangs of more than 20 s\n  \
                  ffuzz-triage crashes -- ./target @@         any folder of files\n  \
                  ffuzz-triage -o out --sarif bugs.sarif      for code-scanning tools"
)]
pub(in crate::cmd) struct Args {
    /// Output folder of a campaign; triage/ is written there
    #[arg(short, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    /// Folders with crashes: of campaigns, of instances, or plain folders of files
    #[arg(value_name = "FOLDER")]
    pub(super) folders: Vec<PathBuf>,
    /// Sanitizer build of the target; crashes run there first
    #[arg(short = 'w', value_name = "BINARY")]
    pub(super) sanitizer: Option<OsString>,
    /// Number of runs of each crash
    #[arg(short = 'n', value_name = "NUMBER", default_value = "3")]
    runs: String,
    /// Number of targets at the same time [default: the available cores]
    #[arg(short = 'j', value_name = "NUMBER")]
    jobs: Option<String>,
    /// Timeout of a run in milliseconds [default: 10000]
    #[arg(short, value_name = "MS")]
    timeout: Option<String>,
    /// Memory limit of a run in MB, or none (the default)
    #[arg(short, value_name = "MB")]
    pub(super) memory: Option<String>,
    /// Run the target with a heap that makes overflows crash, and reports double frees and writes to freed blocks
    #[arg(long)]
    pub(super) guard_heap: bool,
    /// Inputs come over this socket of the target, as with ffuzz --net
    #[arg(long, value_name = "SOCKET")]
    pub(super) net: Option<String>,
    /// What mutators get of an input, as with ffuzz --mutator-sees
    #[arg(long, value_name = "WHAT")]
    pub(super) mutator_sees: Option<String>,
    /// File that the target reads, if it is not named by @@
    #[arg(short, value_name = "FILE")]
    pub(super) file: Option<OsString>,
    /// Extension of the input's file
    #[arg(short, value_name = "EXT")]
    pub(super) extension: Option<String>,
    /// Time to minimize the input of one bug, in seconds; 0: do not minimize
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    minimize: String,
    /// Write the bugs to this file as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub(super) sarif: Option<PathBuf>,
    /// Folder that paths in SARIF are relative to [default: the current repository, or the working folder]
    #[arg(long, value_name = "FOLDER", requires = "sarif")]
    pub(super) source_root: Option<PathBuf>,
    /// Report each bug once to the FuzzManager server of FM_CONFIG_PATH, or at this URL
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub(super) collector: Option<Option<String>>,
    /// Report hangs, too: inputs that exceed -t when rerun
    #[arg(long)]
    pub(super) report_hangs: bool,
    /// Report inputs that reach VALUE or better in a domain, even without a crash: DOMAIN=VALUE,…
    #[arg(long, value_name = "LIST")]
    report_records: Option<String>,
    /// Exit code if a bug was found, 1 to 255 [default: 0]
    #[arg(long, value_name = "CODE", conflicts_with = "follow")]
    error_exitcode: Option<String>,
    /// Wait for new crashes and triage them, until the end of standard input
    #[arg(long)]
    pub(super) follow: bool,
    /// The target and its arguments [default: the campaign's file cmdline]
    #[arg(last = true, value_name = "TARGET")]
    pub(super) command: Vec<OsString>,
}

impl Args {
    pub(super) fn runs(&self) -> Result<u32, Failure> {
        let runs = values::number("-n", &self.runs, 1, MOST_RUNS)?;
        Ok(u32::try_from(runs).unwrap_or(1))
    }

    pub(super) fn error_exitcode(&self) -> Result<Option<u8>, Failure> {
        found::code(self.error_exitcode.as_deref())
    }

    pub(super) fn jobs(&self) -> Result<Option<usize>, Failure> {
        let number = |text: &String| values::number("-j", text, 1, MOST_JOBS);
        Ok(self.jobs.as_ref().map(number).transpose()?.and_then(|n| usize::try_from(n).ok()))
    }

    pub(super) fn timeout(&self) -> Result<Duration, Failure> {
        let number =
            |text: &String| values::number("-t", text, MIN_TIMEOUT_MS, u64::from(u32::MAX));
        Ok(self.timeout.as_ref().map(number).transpose()?.map_or(TIMEOUT, Duration::from_millis))
    }

    pub(super) fn minimize(&self) -> Result<Duration, Failure> {
        values::number("--minimize", &self.minimize, 0, 24 * 3600).map(Duration::from_secs)
    }

    pub(super) fn records(&self) -> Result<Records, Failure> {
        values::records(self.report_records.as_deref(), self.collector.is_some()).map(Records::new)
    }

    pub(super) fn extension(&self) -> Result<Option<String>, Failure> {
        self.extension.as_deref().map(values::extension).transpose()
    }

    /// Folders to search, and the folder in which `triage` is written.
    pub(super) fn places(&self) -> Result<(Vec<PathBuf>, PathBuf), Failure> {
        let sources = match (&self.output, self.folders.is_empty()) {
            (Some(output), true) => vec![output.clone()],
            (_, false) => self.folders.clone(),
            (None, true) => {
                let cause = "no folder given";
                return Err(Failure::usage(cause, "name the campaign's folder with -o OUT"));
            }
        };
        let root = self.output.clone().unwrap_or_else(|| sources[0].clone());
        let root = std::path::absolute(&root).unwrap_or(root);
        // Other tools take every file in crashes/ for a crash.
        let is_crashes = root.file_name().is_some_and(|name| name == "crashes");
        let root = if is_crashes { root.parent().map_or(root.clone(), Into::into) } else { root };
        Ok((sources, root))
    }
}
