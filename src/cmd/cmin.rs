//! `ffuzz cmin`: selects the smallest inputs that together reach every edge in every hit-count class and the best value
//! of every domain key.

mod args;
mod progress;
mod watch;

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) use args::Args;
use progress::TraceProgress;

use super::coverage::CoverageStates;
use super::exit::Failure;
use super::tool::{self, Scratch, TargetArgs, ToolTarget, say};
use crate::cmin::{self, Accepted, CminError, CminOptions, InputSet, Minimization, Names};
use crate::config::env::Environment;
use crate::sys::affinity;

/// Minimum timeout, as in AFL.
const MIN_TIMEOUT_MS: u64 = 10;
/// Exit code if an input crashed and crashes are not accepted.
const CRASHED: u8 = 2;

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let args = match tool::parse::<Args>(program, words) {
        Ok(args) => args,
        Err(code) => return Ok(code),
    };
    minimize(&args, &tool::environment(false)).map(|()| ExitCode::SUCCESS)
}

impl From<CminError> for Failure {
    fn from(error: CminError) -> Self {
        let failure = Self::of(&error);
        match error {
            CminError::Crashes { .. } => Self { code: CRASHED, ..failure },
            _ => failure,
        }
    }
}

fn minimize(args: &Args, environment: &Environment) -> Result<(), Failure> {
    args.check()?;
    let quiet = environment.flag(&["AFL_QUIET"]);
    let timeout = args.target.timeout(MIN_TIMEOUT_MS, tool::NO_TIMEOUT)?;
    let inputs = match args.watch {
        true => {
            watch::check(environment)?;
            None
        }
        false => Some(InputSet::find(&args.input, &args.output)?),
    };
    for path in inputs.iter().flat_map(|inputs| &inputs.too_large) {
        say(quiet, &format!("[!] {}", cmin::too_large(path)));
    }
    let workers = args.workers(affinity::allowed().len())?;
    let scratch: Vec<Scratch> = (0..workers).map(|_| Scratch::new("cmin", None)).collect();
    let target = |scratch| {
        let mut wanted = ToolTarget::new(&args.target, scratch, timeout);
        wanted.native = Some(&args.native);
        // Without WAYPOINTS, a `-Q` corpus is selected by edges only.
        wanted.domains = environment.get("WAYPOINTS").is_some();
        wanted.file = args.file.as_deref();
        wanted.snapshots = true;
        wanted.show_output = args.debug;
        wanted
    };
    let mut states = match args.coverage.is_given() {
        true => {
            let first = target(&scratch[0]).start(environment)?;
            CoverageStates::open(&args.coverage, &first, &args.target, environment)?
        }
        false => CoverageStates::default(),
    };
    let target = |scratch| target(scratch).resolve(environment);
    let targets = scratch.iter().map(target).collect::<Result<_, _>>()?;
    let options = options(args, environment);
    let Some(inputs) = inputs else {
        return watch::run(args, environment, options, targets, states);
    };
    let total = inputs.paths.len();
    let progress = TraceProgress::new(quiet, environment.flag(&["AFL_PRINT_FILENAMES"]));
    let minimization = Minimization::open(&options, &inputs, targets, &progress)?;
    let traced = minimization.traced_before;
    if traced > 0 {
        say(quiet, &format!("[*] Continuing: {traced} of {total} files are traced already."));
    }
    let words = "\n[!] Interrupted: run the same command to continue".to_owned();
    tool::exit_on_signals(&scratch.iter().collect::<Vec<_>>(), Some(words));
    announce(total, &inputs.folders, minimization.workers(), quiet);
    progress.begin(total, traced);
    let choice =
        minimization.choose(|exit, trace, domains| states.beyond_trace(exit, trace, domains));
    progress.end();
    let choice = choice?;
    let keys = choice.keys.map(|keys| format!(" and {keys} domain keys")).unwrap_or_default();
    let tuples = choice.tuples;
    say(quiet, &format!("[+] Found {tuples} unique tuples{keys} across {total} files."));
    let kept = choice.kept.len();
    if kept == 1 && total > 1 && !args.coverage.is_given() {
        say(quiet, "[!] WARNING: All inputs had the same traces: does the target read them?");
    }
    let crashes = choice.failing.len();
    choice.save(&options, &inputs)?;
    states.save()?;
    conclude(args, kept, crashes, quiet);
    Ok(())
}

/// Says what was saved.
fn conclude(args: &Args, kept: usize, crashes: usize, quiet: bool) {
    if let (Some(folder), 1..) = (&args.crash_folder, crashes) {
        say(quiet, &format!("[+] {crashes} inputs crash, saved in '{}'.", folder.display()));
    }
    let folder = args.output.display();
    say(quiet, &format!("[+] Narrowed down to {kept} files, saved in '{folder}'."));
}

fn options(args: &Args, environment: &Environment) -> CminOptions {
    let accepted = if args.crashes_only || environment.flag(&["AFL_CMIN_CRASHES_ONLY"]) {
        Accepted::Crashes
    } else if args.allow_any || environment.flag(&["AFL_CMIN_ALLOW_ANY"]) {
        Accepted::Any
    } else {
        Accepted::Good
    };
    CminOptions {
        output: args.output.clone(),
        accepted,
        edges_only: args.edges_only,
        crash_folder: args.crash_folder.clone(),
        names: match (args.as_queue, args.no_dedup) {
            (false, _) => Names::Own,
            (true, true) => Names::Queue,
            (true, false) => Names::QueueOfHashes,
        },
        keep_traces: environment.flag(&["AFL_KEEP_TRACES"]),
        bind: !environment.flag(&["AFL_NO_AFFINITY"]),
        settings: settings(&args.target, args.file.as_deref(), environment),
    }
}

/// Hash of everything except the inputs that affects traces.
pub(super) fn settings(target: &TargetArgs, file: Option<&Path>, environment: &Environment) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    target.command.hash(&mut hasher);
    (&target.timeout, &target.memory, file).hash(&mut hasher);
    let program = fs::metadata(&target.command[0]);
    program.and_then(|data| Ok((data.len(), data.modified()?))).ok().hash(&mut hasher);
    let known = environment.known().into_iter();
    known.filter(|(name, _)| !name.starts_with("AFL_CMIN_")).for_each(|it| it.hash(&mut hasher));
    hasher.finish()
}

fn announce(count: usize, folders: &[PathBuf], workers: usize, quiet: bool) {
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let folder = folders.join("', '");
    let workers = if workers == 1 { "one target".into() } else { format!("{workers} targets") };
    say(quiet, &format!("[*] Obtaining traces for {count} input files in '{folder}' ({workers})."));
}
