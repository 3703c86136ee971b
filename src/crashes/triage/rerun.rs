//! One crash, run again in fresh processes: whether it happens, how often, and its report.
//!
//! Runs are quick and without names; addresses distinguish crashes. Only one crash of each kind is run once more for a
//! readable report.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cores::Cores;
use super::debugger::{self, DEBUGGER_START};
use super::frames::{Modules, StackTrace};
use super::hang;
use super::seen::{Build, Seen};
use super::symbols::Symbolizer;
use super::trail;
use crate::crash::{self, ProgramInfo};
use ffuzz_config::net::NetOptions;
use ffuzz_engine::executor::ExitKind;
use ffuzz_exec::{Fresh, FreshOptions, Replay, TargetError, Trail};
use ffuzz_sys::listen::Limit;
use ffuzz_sys::traced::{LATE, TraceStop};

/// Number of runs of an input that has not crashed yet, or not while traced: these miss one that crashes in a tenth of
/// its runs in one case of twenty. They end after the time limit of one run.
pub(super) const RARE_RUNS: u32 = 30;
/// Readable runs of a crash that does not happen every time.
const ATTEMPTS: u32 = 5;
/// Maximum size of a core file; more would only fill the disk.
const LARGEST_CORE: u64 = 4 << 30;
/// Factor of the timeout for a run that waits for a core: during a campaign the fuzzers come first.
const STARVED: u32 = 10;

/// Crashes for which gdb runs.
#[derive(Debug)]
pub enum Debugging {
    /// Crashes without another report.
    Silent,
    /// All.
    Always,
    /// All crashes, by their core files.
    Core(Cores),
}

/// What runs need in addition to the target.
#[derive(Debug)]
pub struct RerunTools {
    /// Variables for a quick report, for a readable one, and for a core file.
    pub raw: Vec<(OsString, OsString)>,
    pub readable: Vec<(OsString, OsString)>,
    pub bare: Vec<(OsString, OsString)>,
    pub gdb: Option<PathBuf>,
    pub debugging: Debugging,
    pub symbolizer: Option<Symbolizer>,
    pub timeout: Duration,
    /// Counts a run that takes too long as a bug.
    pub hangs: bool,
    pub program: ProgramInfo,
}

impl RerunTools {
    /// Time limit of a run in which other programs need the time `others` as well.
    fn limit(&self, others: Duration) -> Limit {
        Limit { own: self.timeout + others, wall: self.timeout * STARVED + others }
    }
}

/// Results of several runs of an input.
#[derive(Clone, Debug)]
pub struct Examined {
    pub runs: u32,
    pub crashes: u32,
    /// True if a run took too long; no more were made.
    pub hung: bool,
    /// The most frequent crash; those with a known place come first.
    pub seen: Option<Seen>,
}

/// Runs inputs on one target, or on two builds of it.
pub struct Rerun {
    target: Fresh,
    sanitizer: Option<Fresh>,
    tools: Arc<RerunTools>,
    modules: Modules,
    /// Per build: true if it dies without a report, so that runs are traced.
    silent: [bool; 2],
    /// True if the kernel allows tracing and the process is not an emulator's.
    can_trace: bool,
    started: bool,
    /// Inputs for the process before the input, see [`Rerun::after`].
    before: Option<PathBuf>,
    /// Messages for the user; true once a core file was missing.
    notes: Vec<String>,
    coreless: bool,
}

impl Rerun {
    /// True if inputs are lists of messages for a socket.
    pub(super) fn has_messages(&self) -> bool {
        self.target.net().is_some()
    }

    /// Socket for these inputs, and the variables that preload its stand-in into the target.
    pub(super) fn net(&self) -> Option<(&NetOptions, Vec<(OsString, OsString)>)> {
        Some((self.target.net()?, self.target.net_variables()))
    }

    #[must_use]
    pub fn new(target: Fresh, sanitizer: Option<Fresh>, tools: Arc<RerunTools>) -> Self {
        let can_trace = !target.is_emulated();
        Self {
            target,
            sanitizer,
            tools,
            modules: Modules::default(),
            silent: [false; 2],
            can_trace,
            started: false,
            before: None,
            notes: Vec::new(),
            coreless: false,
        }
    }

    /// The command line of a build.
    #[must_use]
    pub fn command(&self, build: Build) -> &[OsString] {
        self.fresh(build).command()
    }

    /// Name of the input in a command line.
    #[must_use]
    pub fn input_file(&self) -> &Path {
        self.target.input_file()
    }

    /// Messages for the user, those of the mutators included.
    pub fn take_messages(&mut self) -> Vec<String> {
        let mut messages = std::mem::take(&mut self.notes);
        messages.extend(self.target.take_messages());
        messages.extend(self.sanitizer.iter_mut().flat_map(Fresh::take_messages));
        messages.extend(self.tools.symbolizer.iter().filter_map(Symbolizer::take_note));
        messages
    }

    /// Sets the inputs that a process gets before its own, if it takes several: files named `inputs` plus `,cnt:000000`
    /// and so on.
    pub fn after(&mut self, inputs: Option<&Path>) {
        self.before = inputs.map(Path::to_path_buf);
    }

    /// How a build receives these inputs.
    #[must_use]
    pub(super) fn replay(&self, build: Build) -> Replay {
        self.fresh(build).replay()
    }

    fn fresh(&self, build: Build) -> &Fresh {
        let sanitizer = self.sanitizer.as_ref().filter(|_| build == Build::Sanitizer);
        sanitizer.unwrap_or(&self.target)
    }

    /// Runs an input until it shows where it crashes, at most `runs` times; if the sanitizer build does not crash, runs
    /// the target.
    pub(crate) fn examine(&mut self, input: &[u8], runs: u32) -> Result<Examined, TargetError> {
        self.examine_while(input, |examined| examined.runs < runs)
    }

    /// Like [`Rerun::examine`], for an input that did not crash in its first runs.
    pub(super) fn examine_rare(&mut self, input: &[u8]) -> Result<Examined, TargetError> {
        let end = Instant::now() + self.tools.timeout;
        self.examine_while(input, |examined| {
            examined.runs == 0
                || (examined.crashes == 0 && examined.runs < RARE_RUNS && Instant::now() < end)
        })
    }

    fn examine_while(
        &mut self,
        input: &[u8],
        goes_on: impl Fn(&Examined) -> bool,
    ) -> Result<Examined, TargetError> {
        if self.sanitizer.is_some() {
            let examined = self.examine_in(Build::Sanitizer, input, &goes_on)?;
            if examined.crashes > 0 {
                return Ok(examined);
            }
        }
        self.examine_in(Build::Target, input, &goes_on)
    }

    /// Runs an input up to `runs` times more. Returns the numbers of runs and of crashes.
    pub(super) fn count(
        &mut self,
        build: Build,
        input: &[u8],
        runs: u32,
    ) -> Result<(u32, u32), TargetError> {
        let (mut done, mut crashes) = (0, 0);
        while done < runs {
            let seen = self.quick(build, input)?;
            done += 1;
            crashes += u32::from(seen.crashed());
            if seen.exit == ExitKind::Hang {
                break;
            }
        }
        Ok((done, crashes))
    }

    fn examine_in(
        &mut self,
        build: Build,
        input: &[u8],
        goes_on: impl Fn(&Examined) -> bool,
    ) -> Result<Examined, TargetError> {
        let mut examined = Examined { runs: 0, crashes: 0, hung: false, seen: None };
        let mut kinds: HashMap<u64, (u32, Seen)> = HashMap::new();
        let mut only_traced = true;
        let mut has_place = false;
        while goes_on(&examined) && !examined.hung && !has_place {
            only_traced &= self.traces(build);
            let seen = self.quick(build, input)?;
            examined.runs += 1;
            examined.hung = seen.exit == ExitKind::Hang;
            if seen.crashed() {
                examined.crashes += 1;
                has_place = seen.has_place();
                kinds.entry(seen.key()).or_insert((0, seen)).0 += 1;
            }
        }
        if only_traced && examined.crashes == 0 && !examined.hung {
            // Tracing may change a program's behaviour.
            let seen = self.quick_as(build, input, false)?;
            if seen.crashed() && !seen.is_hang {
                (examined.runs, examined.crashes) = (examined.runs + 1, 1);
                kinds.insert(seen.key(), (1, seen));
            }
        }
        // Prefers a crash with a place; ties by the smallest key, for reproducible results.
        let order = |(key, (count, seen)): &(u64, (u32, Seen))| (seen.has_place(), *count, !*key);
        let most = kinds.into_iter().max_by_key(order);
        examined.seen = most.map(|(_, (_, seen))| seen);
        Ok(examined)
    }

    /// True if the next quick run of a build is traced.
    fn traces(&self, build: Build) -> bool {
        self.can_trace && self.silent[build as usize]
    }

    /// Makes one run without names. After a crash without a report, runs it again traced; later runs of the build are
    /// traced at once.
    pub fn quick(&mut self, build: Build, input: &[u8]) -> Result<Seen, TargetError> {
        self.quick_as(build, input, self.traces(build))
    }

    fn quick_as(&mut self, build: Build, input: &[u8], traced: bool) -> Result<Seen, TargetError> {
        let seen = self.run(build, input, traced)?;
        let signalled = matches!(seen.exit, ExitKind::Crash { signal } if signal > 0);
        if !signalled || seen.has_place() || traced || !self.can_trace {
            return Ok(seen);
        }
        let looked = self.run(build, input, true)?;
        let comes_again = looked.crashed() && !looked.is_hang;
        // A crash that does not occur under tracing must not be missed the next time.
        self.silent[build as usize] = comes_again;
        Ok(if comes_again { looked } else { seen })
    }

    /// Repeats a crash without a report that did not occur under tracing, until it shows its place.
    pub(super) fn look_again(
        &mut self,
        input: &[u8],
        quick: &Seen,
    ) -> Result<Option<Seen>, TargetError> {
        let signalled = matches!(quick.exit, ExitKind::Crash { signal } if signal > 0);
        if !signalled || quick.has_place() || !self.can_trace {
            return Ok(None);
        }
        let end = Instant::now() + self.tools.timeout;
        for _ in 0..RARE_RUNS {
            let seen = self.run(quick.build, input, true)?;
            if seen.crashed() && seen.has_place() {
                return Ok(Some(seen));
            }
            if Instant::now() >= end {
                break;
            }
        }
        Ok(None)
    }

    fn run(&mut self, build: Build, input: &[u8], traced: bool) -> Result<Seen, TargetError> {
        let (mut trace, mut late) = (None, Vec::new());
        let tools = Arc::clone(&self.tools);
        let stops = self.replay(build) == Replay::Stops;
        let before = self.before.as_deref().filter(|_| self.can_trace || !stops);
        let modules = &mut self.modules;
        let mut look = |stop: &TraceStop| match stop.signal {
            LATE if tools.hangs => late.push(modules.trace(stop)),
            LATE => {}
            _ => trace = Some(modules.trace(stop)),
        };
        let fresh = of_build(&mut self.target, &mut self.sanitizer, build);
        let trail = fresh.is_emulated().then(|| Trail::new().ok()).flatten();
        let mut run = |traced, before: Option<&Path>| {
            let look: Option<&mut dyn FnMut(&TraceStop)> =
                if traced || tools.hangs { Some(&mut look) } else { None };
            let options = FreshOptions::within(tools.limit(Duration::ZERO));
            let trail = trail.as_ref();
            let options = FreshOptions { env: &tools.raw, trail, ..options };
            fresh.run(input, FreshOptions { look, traced, before, ..options })
        };
        let must_trace = before.is_some() && stops;
        let ended = match run(traced && self.can_trace, before) {
            // Some sandboxes forbid tracing.
            Err(TargetError::Start { .. }) if (traced || must_trace) && self.can_trace => {
                self.can_trace = false;
                run(false, before.filter(|_| !stops))?
            }
            ended => ended?,
        };
        if !std::mem::replace(&mut self.started, true) {
            let names = fresh.missing_libraries(&ended);
            if !names.is_empty() {
                return Err(TargetError::NoLibrary { names });
            }
        }
        let exit = ended.exit;
        // Ignores a handled signal, which did not end the process.
        let ends = |trace: &StackTrace| exit == ExitKind::Crash { signal: trace.signal };
        let mut trace = trace.filter(ends);
        if let (Some(trail), ExitKind::Crash { signal: signal @ 1.. }) = (trail, exit) {
            trace = Some(trail::trace(&trail, signal, modules, tools.symbolizer.as_ref()));
        }
        let mut seen = Seen::new(build, ended, trace, &tools.program);
        if exit == ExitKind::Hang && tools.hangs {
            seen.hangs(&hang::line(&late, tools.symbolizer.as_ref()), &tools.program);
        }
        Ok(seen)
    }

    /// Runs an input for a readable report; returns `quick` if the crash does not reproduce.
    pub fn readable(&mut self, input: &[u8], quick: &Seen) -> Result<Seen, TargetError> {
        if quick.is_hang {
            return Ok(quick.clone());
        }
        let tools = Arc::clone(&self.tools);
        let account = match &tools.debugging {
            Debugging::Silent => None,
            Debugging::Always => self.under_gdb(input, quick.build, &debugger::FATAL)?,
            Debugging::Core(cores) => self.by_core(cores, input, quick.build)?,
        };
        if let Some(text) = account {
            return Ok(quick.debugged(text, &tools.program));
        }
        let made = match (&quick.trace, quick.info.backtrace.is_empty()) {
            (Some(trace), true) => Some(self.debugged(input, quick, trace)?),
            _ => self.reported(input, quick)?,
        };
        Ok(made.unwrap_or_else(|| quick.clone()))
    }

    /// A sanitizer's report with names; if it does not reproduce, adds names to that of the first run.
    fn reported(&mut self, input: &[u8], quick: &Seen) -> Result<Option<Seen>, TargetError> {
        let tools = Arc::clone(&self.tools);
        let fresh = of_build(&mut self.target, &mut self.sanitizer, quick.build);
        let mut others = Duration::ZERO;
        if let Some(symbolizer) = &tools.symbolizer {
            // The sanitizer would wait for the symbolizer forever.
            if !symbolizer.answers(Path::new(&fresh.command()[0])) {
                return Ok(None);
            }
            others = symbolizer.patience();
        }
        for _ in 0..ATTEMPTS {
            let before = self.before.as_deref();
            let options = FreshOptions {
                env: &tools.readable,
                before,
                ..FreshOptions::within(tools.limit(others))
            };
            let ended = fresh.run(input, options)?;
            let seen = Seen::new(quick.build, ended, None, &tools.program);
            let same = seen.crashed() && seen.info.kind == quick.info.kind;
            if same && (quick.info.backtrace.is_empty() || !seen.info.backtrace.is_empty()) {
                return Ok(Some(seen));
            }
        }
        Ok(tools.symbolizer.as_ref().and_then(|symbolizer| quick.named(symbolizer, &tools.program)))
    }

    /// Report by gdb if it is installed, else from ffuzz's own trace.
    fn debugged(
        &mut self,
        input: &[u8],
        quick: &Seen,
        trace: &StackTrace,
    ) -> Result<Seen, TargetError> {
        let tools = Arc::clone(&self.tools);
        let account = self.under_gdb(input, quick.build, &[trace.signal])?;
        let own = || debugger::self_made(trace, tools.symbolizer.as_ref());
        Ok(quick.debugged(account.unwrap_or_else(own), &tools.program))
    }

    /// Gdb's output at the first of these signals.
    fn under_gdb(
        &mut self,
        input: &[u8],
        build: Build,
        signals: &[i32],
    ) -> Result<Option<String>, TargetError> {
        let tools = Arc::clone(&self.tools);
        let Some(gdb) = tools.gdb.as_ref().filter(|_| !self.target.is_emulated()) else {
            return Ok(None);
        };
        if self.before.is_some() && self.replay(build) == Replay::Stops {
            // A process has one tracer at a time.
            return Ok(None);
        }
        let under = debugger::gdb_words(gdb, signals);
        let limit = tools.limit(DEBUGGER_START);
        let before = self.before.as_deref();
        let fresh = of_build(&mut self.target, &mut self.sanitizer, build);
        for _ in 0..ATTEMPTS {
            let within = FreshOptions::within(limit);
            let options = FreshOptions { env: &tools.raw, under: &under, before, ..within };
            // Treats a gdb that cannot be started as missing.
            let Ok(ended) = fresh.run(input, options) else { return Ok(None) };
            if ended.exit == ExitKind::Hang {
                return Ok(None);
            }
            let printed = crash::text(&ended.stdout);
            if let Some(part) = debugger::gdb_part(&printed) {
                return Ok(Some(part.to_owned()));
            }
        }
        Ok(None)
    }

    /// gdb's report from the core file of one more run.
    fn by_core(
        &mut self,
        cores: &Cores,
        input: &[u8],
        build: Build,
    ) -> Result<Option<String>, TargetError> {
        let tools = Arc::clone(&self.tools);
        let Some(gdb) = tools.gdb.as_ref().filter(|_| !self.target.is_emulated()) else {
            return Ok(None);
        };
        let before = self.before.as_deref();
        let fresh = of_build(&mut self.target, &mut self.sanitizer, build);
        let limit = tools.limit(Duration::ZERO);
        let options = || FreshOptions { env: &tools.bare, before, ..FreshOptions::within(limit) };
        for _ in 0..ATTEMPTS {
            let before = cores.list();
            let ended = fresh.run(input, FreshOptions { core_limit: LARGEST_CORE, ..options() })?;
            if let Some(core) = cores.new_since(&before) {
                return Ok(debugger::of_core(gdb, Path::new(&fresh.command()[0]), core.path()));
            }
            let signalled = matches!(ended.exit, ExitKind::Crash { signal } if signal > 0);
            if signalled && !std::mem::replace(&mut self.coreless, true) {
                let folder = cores.folder().display();
                self.notes.push(format!(
                    "no core file came into {folder} (check its permissions and `ulimit -Hc`)"
                ));
            }
        }
        Ok(None)
    }
}

fn of_build<'a>(
    target: &'a mut Fresh,
    sanitizer: &'a mut Option<Fresh>,
    build: Build,
) -> &'a mut Fresh {
    match (sanitizer, build) {
        (Some(sanitizer), Build::Sanitizer) => sanitizer,
        _ => target,
    }
}
