//! One crash, run again in fresh processes: does it happen, how often, and what is said.
//!
//! Every run is quick and without names; the addresses tell one crash from another. Only for one of
//! each kind is it run once more so that people can read it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::debugger;
use super::frames::{Modules, Trace};
use super::hang;
use super::symbols::Symbolizer;
use crate::crash::{self, CrashInfo, Kind, Output, Program};
use crate::sys::traced::{LATE, Stop};
use crate::target::{Ended, ExitKind, Fresh, Manner, TargetError};

/// A debugger needs time before the target gets any.
const DEBUGGER_START: Duration = Duration::from_secs(30);
/// So is a symbolizer with a large program.
const SYMBOLIZER_TIME: Duration = Duration::from_secs(60);
/// Readable runs of a crash that does not happen every time.
const ATTEMPTS: u32 = 5;
/// Innermost frames that tell one crash from another.
const FRAMES: usize = 32;

/// What runs need besides the target.
#[derive(Debug)]
pub struct Tools {
    /// Variables for a quick report, and for one that can be read.
    pub raw: Vec<(OsString, OsString)>,
    pub readable: Vec<(OsString, OsString)>,
    pub gdb: Option<PathBuf>,
    pub symbolizer: Option<Symbolizer>,
    pub timeout: Duration,
    /// A run that takes too long is a bug, too.
    pub hangs: bool,
    pub program: Program,
}

/// Which of the two programs was run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Build {
    /// `-w`.
    Sanitizer,
    Target,
}

/// What was seen of one run.
#[derive(Clone, Debug)]
pub struct Seen {
    pub build: Build,
    pub exit: ExitKind,
    pub output: Output,
    pub info: CrashInfo,
    /// A hang that is a bug: `output` has our line about it.
    pub is_hang: bool,
    trace: Option<Trace>,
}

impl Seen {
    #[must_use]
    pub fn crashed(&self) -> bool {
        matches!(self.exit, ExitKind::Crash { .. } | ExitKind::Oom)
            || (self.exit == ExitKind::Ok && is_report(self.info.kind))
            || self.is_hang
    }

    fn hangs(&mut self, line: &str, program: &Program) {
        let stderr = &mut self.output.stderr;
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(&format!("{line}\n"));
        self.info = crash::beyond::parse(&self.output, program);
        self.is_hang = true;
    }

    /// The signal that ended it, or 0.
    #[must_use]
    pub fn signal(&self) -> i32 {
        match self.exit {
            ExitKind::Crash { signal } => signal,
            ExitKind::Oom => libc::SIGKILL,
            ExitKind::Ok | ExitKind::Hang => 0,
        }
    }

    /// Equal for crashes at the same place, in this build of the program.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.build == Build::Target, self.signal(), self.info.kind.name()).hash(&mut hasher);
        let names = &self.info.backtrace;
        match &self.trace {
            _ if names.iter().any(|name| name != "??") => {
                names.iter().take(FRAMES).for_each(|name| name.hash(&mut hasher));
            }
            Some(trace) if !trace.frames.is_empty() => {
                trace.frames.iter().take(FRAMES).for_each(|frame| frame.place.hash(&mut hasher));
            }
            _ => self.info.short_text().hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// A sanitizer may report and let the program go on to a good end.
fn is_report(kind: Kind) -> bool {
    matches!(kind, Kind::Asan | Kind::Ubsan | Kind::Lsan | Kind::Tsan | Kind::Msan)
}

/// What several runs of an input came to.
#[derive(Clone, Debug)]
pub struct Examined {
    pub runs: u32,
    pub crashes: u32,
    /// A run took too long, and there were no more.
    pub hung: bool,
    /// The crash that came most often.
    pub seen: Option<Seen>,
}

/// Runs inputs on one target, or on two builds of it.
pub struct Rerun {
    target: Fresh,
    sanitizer: Option<Fresh>,
    tools: Arc<Tools>,
    modules: Modules,
    /// It dies without a word: it is looked at while it does.
    silent: [bool; 2],
    /// The kernel allows it.
    can_trace: bool,
    started: bool,
}

impl Rerun {
    #[must_use]
    pub fn new(target: Fresh, sanitizer: Option<Fresh>, tools: Arc<Tools>) -> Self {
        let (modules, silent) = (Modules::default(), [false; 2]);
        Self { target, sanitizer, tools, modules, silent, can_trace: true, started: false }
    }

    /// The command line of a build.
    #[must_use]
    pub fn command(&self, build: Build) -> &[OsString] {
        match (&self.sanitizer, build) {
            (Some(sanitizer), Build::Sanitizer) => sanitizer.command(),
            _ => self.target.command(),
        }
    }

    /// What the input is called in a command line.
    #[must_use]
    pub fn input_file(&self) -> &std::path::Path {
        self.target.input_file()
    }

    /// What the mutators have to say.
    pub fn take_messages(&mut self) -> Vec<String> {
        let more = self.sanitizer.as_mut().map(Fresh::take_messages).unwrap_or_default();
        self.target.take_messages().into_iter().chain(more).collect()
    }

    /// Runs it `runs` times; a crash that the sanitizer's build does not have is looked for in the
    /// target.
    pub fn examine(&mut self, input: &[u8], runs: u32) -> Result<Examined, TargetError> {
        if self.sanitizer.is_some() {
            let examined = self.examine_in(Build::Sanitizer, input, runs)?;
            if examined.crashes > 0 {
                return Ok(examined);
            }
        }
        self.examine_in(Build::Target, input, runs)
    }

    fn examine_in(
        &mut self,
        build: Build,
        input: &[u8],
        runs: u32,
    ) -> Result<Examined, TargetError> {
        let mut examined = Examined { runs: 0, crashes: 0, hung: false, seen: None };
        let mut kinds: HashMap<u64, (u32, Seen)> = HashMap::new();
        while examined.runs < runs && !examined.hung {
            let seen = self.quick(build, input)?;
            examined.runs += 1;
            examined.hung = seen.exit == ExitKind::Hang;
            if seen.crashed() {
                examined.crashes += 1;
                kinds.entry(seen.key()).or_insert((0, seen)).0 += 1;
            }
        }
        // Of equals the smallest key: the same answer every time.
        let most = kinds.into_iter().max_by_key(|(key, (count, _))| (*count, !*key));
        examined.seen = most.map(|(_, (_, seen))| seen);
        Ok(examined)
    }

    /// One run without names. The first silent end of a build is looked at in a second run.
    pub fn quick(&mut self, build: Build, input: &[u8]) -> Result<Seen, TargetError> {
        let seen = self.run(build, input, self.silent[build as usize])?;
        let signalled = matches!(seen.exit, ExitKind::Crash { signal } if signal > 0);
        let unseen = seen.info.backtrace.is_empty() && seen.trace.is_none();
        if signalled && unseen && self.can_trace && !self.silent[build as usize] {
            self.silent[build as usize] = true;
            return self.run(build, input, true);
        }
        Ok(seen)
    }

    fn run(&mut self, build: Build, input: &[u8], traced: bool) -> Result<Seen, TargetError> {
        let (mut trace, mut late) = (None, Vec::new());
        let tools = Arc::clone(&self.tools);
        let (modules, traced) = (&mut self.modules, traced || tools.hangs);
        let mut look = |stop: &Stop| match stop.signal {
            LATE if tools.hangs => late.push(modules.trace(stop)),
            LATE => {}
            _ => trace = Some(modules.trace(stop)),
        };
        let fresh = of_build(&mut self.target, &mut self.sanitizer, build);
        let manner = |look| Manner { env: &tools.raw, under: &[], timeout: tools.timeout, look };
        let ended = match fresh.run(input, manner((traced && self.can_trace).then_some(&mut look)))
        {
            // Some sandboxes forbid it.
            Err(TargetError::Start { .. }) if traced && self.can_trace => {
                self.can_trace = false;
                fresh.run(input, manner(None))?
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
        // A signal that was handled is not what ended it.
        let ends = |trace: &Trace| exit == ExitKind::Crash { signal: trace.signal };
        let trace = trace.filter(ends);
        let mut seen = seen(build, ended, String::new(), trace, &tools.program);
        if exit == ExitKind::Hang && tools.hangs {
            seen.hangs(&hang::line(&late, tools.symbolizer.as_ref()), &tools.program);
        }
        Ok(seen)
    }

    /// Runs it so that people and servers can read what happened; what was seen already if that does not
    /// come again.
    pub fn readable(&mut self, input: &[u8], quick: &Seen) -> Result<Seen, TargetError> {
        if quick.is_hang {
            return Ok(quick.clone());
        }
        let made = match (&quick.trace, quick.info.backtrace.is_empty()) {
            (Some(trace), true) => {
                let trace = trace.clone();
                self.debugged(input, quick, &trace)?
            }
            _ => self.reported(input, quick)?,
        };
        Ok(made.unwrap_or_else(|| quick.clone()))
    }

    fn reported(&mut self, input: &[u8], quick: &Seen) -> Result<Option<Seen>, TargetError> {
        let tools = Arc::clone(&self.tools);
        let timeout = tools.timeout + SYMBOLIZER_TIME;
        let fresh = of_build(&mut self.target, &mut self.sanitizer, quick.build);
        for _ in 0..ATTEMPTS {
            let manner = Manner { env: &tools.readable, under: &[], timeout, look: None };
            let ended = fresh.run(input, manner)?;
            let seen = seen(quick.build, ended, String::new(), None, &tools.program);
            let same = seen.crashed() && seen.info.kind == quick.info.kind;
            if same && (quick.info.backtrace.is_empty() || !seen.info.backtrace.is_empty()) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    /// Under gdb if there is one, else from what was seen.
    fn debugged(
        &mut self,
        input: &[u8],
        quick: &Seen,
        trace: &Trace,
    ) -> Result<Option<Seen>, TargetError> {
        let tools = Arc::clone(&self.tools);
        let made = match &tools.gdb {
            Some(gdb) => self.under_gdb(gdb, input, quick, trace.signal)?,
            None => None,
        };
        let crash_data =
            made.unwrap_or_else(|| debugger::self_made(trace, tools.symbolizer.as_ref()));
        let output = Output { crash_data, ..quick.output.clone() };
        let info = crash::beyond::parse(&output, &tools.program);
        Ok(Some(Seen { output, info, ..quick.clone() }))
    }

    fn under_gdb(
        &mut self,
        gdb: &std::path::Path,
        input: &[u8],
        quick: &Seen,
        signal: i32,
    ) -> Result<Option<String>, TargetError> {
        let tools = Arc::clone(&self.tools);
        let under = debugger::gdb_words(gdb, signal);
        let timeout = tools.timeout + DEBUGGER_START;
        let fresh = of_build(&mut self.target, &mut self.sanitizer, quick.build);
        for _ in 0..ATTEMPTS {
            let manner = Manner { env: &tools.raw, under: &under, timeout, look: None };
            // A gdb that cannot be started is none.
            let Ok(ended) = fresh.run(input, manner) else { return Ok(None) };
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

fn seen(
    build: Build,
    ended: Ended,
    crash_data: String,
    trace: Option<Trace>,
    program: &Program,
) -> Seen {
    let (stdout, stderr) = (crash::text(&ended.stdout), crash::text(&ended.stderr));
    let output = Output { stdout, stderr, crash_data };
    let info = crash::beyond::parse(&output, program);
    Seen { build, exit: ended.exit, output, info, is_hang: false, trace }
}
