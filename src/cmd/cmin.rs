//! `ffuzz cmin`: the smallest inputs that together reach every edge in every hit-count class, and the
//! best value of every domain key.

mod args;
mod progress;
mod save;
mod work;
mod worker;

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use args::Args;
use progress::Progress;
use work::{Run, Work};
use worker::{CHUNK, Ledger, Shared};

use super::exit::{CANNOT, Failure};
use super::tool::{self, Scratch, Wanted, say};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::engine::minimize::cover::{self, Trace};
use crate::engine::mutate::MAX_INPUT;
use crate::sys::affinity;

/// Below this a timeout is refused, as AFL does.
const MIN_TIMEOUT_MS: u64 = 10;
/// An input crashed and nobody said that it may.
const CRASHED: u8 = 2;

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let args = match tool::parse::<Args>(program, words) {
        Ok(args) => args,
        Err(code) => return Ok(code),
    };
    minimize(&args, &tool::environment(false)).map(|()| ExitCode::SUCCESS)
}

/// A file of the input folder.
struct Input {
    path: PathBuf,
    len: u64,
    changed: (i64, i64),
}

/// Inputs that end in some way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Policy {
    /// None may crash or take too long.
    Good,
    Any,
    Crashes,
}

impl Policy {
    fn of(args: &Args, environment: &Environment) -> Self {
        if args.crashes_only || environment.flag(&["AFL_CMIN_CRASHES_ONLY"]) {
            Self::Crashes
        } else if args.allow_any || environment.flag(&["AFL_CMIN_ALLOW_ANY"]) {
            Self::Any
        } else {
            Self::Good
        }
    }

    fn takes(self, exit: ExitKind) -> bool {
        match self {
            Self::Good => exit == ExitKind::Ok,
            Self::Any => true,
            Self::Crashes => matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom),
        }
    }
}

fn minimize(args: &Args, environment: &Environment) -> Result<(), Failure> {
    args.check()?;
    let quiet = environment.flag(&["AFL_QUIET"]);
    let timeout = args.target.timeout(MIN_TIMEOUT_MS, tool::NO_TIMEOUT)?;
    let folder = input_folder(&args.input, &args.output)?;
    let inputs = inputs(&folder, quiet)?;
    let paths: Vec<PathBuf> = inputs.iter().map(|input| input.path.clone()).collect();
    let names = tool::flat_names(&folder, &paths);
    // The target is looked at before anything is created.
    let cores = cores(environment);
    let scratch: Vec<Scratch> =
        (0..args.workers(cores.len())?).map(|_| Scratch::new("cmin", None)).collect();
    let wanted = |scratch, snapshots| {
        let mut wanted = Wanted::new(&args.target, scratch, timeout);
        wanted.file = args.file.as_deref();
        wanted.snapshots = snapshots;
        wanted
    };
    let alone = wanted(&scratch[0], false).prepare(environment)?.mutators.touch_runs();
    let (work, chunks) = Work::open(&args.output, fingerprint(args, environment, &inputs))?;
    let traces = keep_traces(args, environment, &names)?;
    let ledger = Ledger {
        work,
        runs: Vec::new(),
        domains: Vec::new(),
        progress: Progress::new(paths.len(), 0, quiet),
    };
    let mut shared = Shared {
        inputs: &paths,
        finished: vec![false; paths.len().div_ceil(CHUNK)],
        known: Vec::new(),
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        doubtful: AtomicBool::new(false),
        ledger: Mutex::new(ledger),
        traces,
        print_names: environment.flag(&["AFL_PRINT_FILENAMES"]),
    };
    let done = take_over(&mut shared, chunks, quiet);
    let words = "\n[!] Interrupted: run the same command to continue".to_owned();
    tool::leave_on_signals(&scratch.iter().collect::<Vec<_>>(), Some(words));
    // Mutators are not made for several threads.
    let left = (shared.finished.len() - done).max(1);
    let most = if alone { 1 } else { left };
    let scratch = &scratch[..scratch.len().min(most)];
    announce(&folder, &paths, scratch.len(), quiet);
    let targets = |snapshots| -> Vec<Wanted<'_>> {
        scratch.iter().map(|scratch| wanted(scratch, snapshots)).collect()
    };
    // A trace that is kept has to be that of a process of its own.
    let snapshots = shared.traces.is_none();
    run_all(&shared, &targets(snapshots), environment, &cores)?;
    if shared.start_over_if_doubtful()? {
        say(
            quiet,
            "[!] With snapshots the target reaches other edges than with fork: repeating all runs with fork.",
        );
        run_all(&shared, &targets(false), environment, &cores)?;
    }
    let ledger = shared.ledger.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    ledger.progress.end();
    conclude(args, Policy::of(args, environment), ledger, (&paths, &names), quiet)
}

/// The queue of an instance folder, or the folder itself; the output may not lie in it.
fn input_folder(folder: &Path, output: &Path) -> Result<PathBuf, Failure> {
    let queue = folder.join("queue");
    let folder = if queue.is_dir() { queue } else { folder.to_owned() };
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    if let (Ok(input), Ok(output)) = (real(&folder), real(output))
        && output.starts_with(&input)
    {
        let cause = format!("the output folder {output:?} is inside of the input folder");
        return Err(Failure::new(cause, "choose another -o"));
    }
    Ok(folder)
}

/// All files that are not empty, the smallest first.
fn inputs(folder: &Path, quiet: bool) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for path in tool::list_inputs_below(folder)? {
        let data = fs::metadata(&path).map_err(|error| {
            let remedy = "check its permissions, or remove it from the folder";
            Failure::new(format!("cannot read {path:?}: {error}"), remedy)
        })?;
        if data.len() > MAX_INPUT as u64 {
            let path = path.display();
            say(quiet, &format!("[!] {path} is larger than 1 MiB: the target gets the first MiB"));
        }
        if data.len() > 0 {
            inputs.push(Input {
                path,
                len: data.len(),
                changed: (data.mtime(), data.mtime_nsec()),
            });
        }
    }
    if inputs.is_empty() {
        let remedy =
            "give a folder with at least one file that is not empty, for example out/queue";
        return Err(Failure::new(format!("no inputs in {folder:?}"), remedy));
    }
    inputs.sort_by(|a, b| (a.len, &a.path).cmp(&(b.len, &b.path)));
    Ok(inputs)
}

/// Those a worker each may be bound to; unbound ones stand for themselves.
fn cores(environment: &Environment) -> Vec<Option<usize>> {
    let bind = !environment.flag(&["AFL_NO_AFFINITY"]);
    affinity::allowed().into_iter().map(|core| Some(core).filter(|_| bind)).collect()
}

/// Everything that decides what the traces are: only with the same of it are old ones taken over.
fn fingerprint(args: &Args, environment: &Environment, inputs: &[Input]) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    args.target.command.hash(&mut hasher);
    (&args.target.timeout, &args.target.memory, &args.file).hash(&mut hasher);
    let program = fs::metadata(&args.target.command[0]);
    program.and_then(|data| Ok((data.len(), data.modified()?))).ok().hash(&mut hasher);
    let known = environment.known().into_iter();
    known.filter(|(name, _)| !name.starts_with("AFL_CMIN_")).for_each(|it| it.hash(&mut hasher));
    for input in inputs {
        (&input.path, input.len, input.changed).hash(&mut hasher);
    }
    hasher.finish()
}

fn keep_traces(
    args: &Args,
    environment: &Environment,
    names: &[OsString],
) -> Result<Option<(PathBuf, Vec<OsString>)>, Failure> {
    if !environment.flag(&["AFL_KEEP_TRACES"]) {
        return Ok(None);
    }
    let folder = args.output.join(".traces");
    fs::create_dir_all(&folder).map_err(|error| work::unwritable(&folder, error))?;
    Ok(Some((folder, names.to_vec())))
}

/// What an earlier run has done need not be done again; returns how many chunks that are.
fn take_over(shared: &mut Shared<'_>, chunks: Vec<work::Chunk>, quiet: bool) -> usize {
    let mut runs: Vec<Run> = Vec::new();
    for chunk in chunks {
        let inputs = chunk.number * CHUNK..shared.inputs.len().min((chunk.number + 1) * CHUNK);
        let fits = chunk.runs.iter().all(|run| inputs.contains(&run.input));
        if let Some(finished) = shared.finished.get_mut(chunk.number).filter(|_| fits) {
            *finished = true;
            runs.extend(chunk.runs);
        }
    }
    let done = shared.finished.iter().filter(|finished| **finished).count();
    let prefix = shared.finished.iter().take_while(|finished| **finished).count() * CHUNK;
    shared.known = runs.iter().filter(|run| run.input < prefix).cloned().collect();
    let total = shared.inputs.len();
    let traced = (done * CHUNK).min(total);
    if done > 0 {
        say(quiet, &format!("[*] Continuing: {traced} of {total} files are traced already."));
    }
    let ledger = shared.ledger.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
    ledger.progress = Progress::new(total, traced, quiet);
    ledger.runs = runs;
    done
}

fn announce(folder: &Path, inputs: &[PathBuf], workers: usize, quiet: bool) {
    let (count, folder) = (inputs.len(), folder.display());
    let workers = if workers == 1 { "one target".into() } else { format!("{workers} targets") };
    say(quiet, &format!("[*] Obtaining traces for {count} input files in '{folder}' ({workers})."));
}

fn run_all(
    shared: &Shared<'_>,
    targets: &[Wanted<'_>],
    environment: &Environment,
    cores: &[Option<usize>],
) -> Result<(), Failure> {
    let alone = targets.len() == 1;
    let cores = cores.iter().copied().cycle().map(|core| core.filter(|_| !alone));
    std::thread::scope(|scope| {
        let threads: Vec<_> = targets
            .iter()
            .zip(cores)
            .map(|(target, core)| scope.spawn(move || shared.work(target, environment, core)))
            .collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(end) => end.map_err(tool::cannot),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.fold(Ok(()), Result::and)
    })
}

/// From all runs to the folder.
fn conclude(
    args: &Args,
    policy: Policy,
    mut ledger: Ledger,
    (paths, names): (&[PathBuf], &[OsString]),
    quiet: bool,
) -> Result<(), Failure> {
    ledger.runs.sort_by_key(|run| run.input);
    if policy == Policy::Good {
        refuse_bad(&ledger.runs, paths)?;
    }
    let runs: Vec<&Run> = ledger.runs.iter().filter(|run| policy.takes(run.exit)).collect();
    let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
    let cover = cover::cover(&traces, &ledger.domains, args.edges_only);
    let keys = match ledger.domains.is_empty() {
        true => String::new(),
        false => format!(" and {} domain keys", cover.keys),
    };
    let count = paths.len();
    say(quiet, &format!("[+] Found {} unique tuples{keys} across {count} files.", cover.tuples));
    if cover.kept.len() == 1 && count > 1 {
        say(quiet, "[!] WARNING: All inputs had the same traces: does the target read them?");
    }
    let mut copies = false;
    for kept in &cover.kept {
        let input = runs[*kept].input;
        copies |= save::save(&paths[input], &args.output, &names[input])?;
    }
    ledger.work.finish(copies)?;
    let (kept, folder) = (cover.kept.len(), args.output.display());
    say(quiet, &format!("[+] Narrowed down to {kept} files, saved in '{folder}'."));
    Ok(())
}

/// Inputs that crash or take too long end it, as in AFL, unless the user says what to do with them.
fn refuse_bad(runs: &[Run], paths: &[PathBuf]) -> Result<(), Failure> {
    let of = |wanted: fn(ExitKind) -> bool| runs.iter().filter(move |run| wanted(run.exit));
    let crash = |exit| matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom);
    let (bad, what, code): (Vec<&Run>, _, _) = if of(crash).next().is_some() {
        (of(crash).collect(), "crashes the target", CRASHED)
    } else {
        (of(|exit| exit == ExitKind::Hang).collect(), "takes too long", CANNOT)
    };
    let Some(first) = bad.first() else { return Ok(()) };
    let path = paths[first.input].display();
    let others = match bad.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    let remedy = "add -A to keep such inputs, too, or -C to keep only those that crash; \
                  the traces so far are kept";
    Err(Failure { code, ..Failure::new(format!("{path} {what}{others}"), remedy) })
}
