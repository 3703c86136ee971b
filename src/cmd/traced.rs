//! Shared parts of the tools that trace a target block by block: the start, and the message if tracing stops early.

use std::time::Duration;

use super::exit::Failure;
use super::tool::{self, Scratch, TargetArgs, ToolTarget};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::exec::trace::{MOST_STEPS, TracedRun, Tracer};
use crate::inspect::choice::Choice;
use crate::sys::breakpoints::{Given, MOST_THREADS};

/// Timeout of a run without `-t`. It must be finite, because every block costs time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum timeout.
const MIN_TIMEOUT_MS: u64 = 10;

/// A target to trace.
pub(super) struct Traced {
    pub(super) tracer: Tracer,
    pub(super) timeout: Duration,
    /// True while the program is instrumented and every run so far had a table of counters.
    pub(super) has_table: bool,
}

impl Traced {
    /// `choose` selects the files once it is known whether the program is instrumented. `most` limits the recorded
    /// executions of a block.
    pub(super) fn open(
        args: &TargetArgs,
        scratch: &Scratch,
        environment: &Environment,
        choose: impl FnOnce(bool) -> Choice,
        most: u32,
    ) -> Result<Self, Failure> {
        let timeout = args.timeout(MIN_TIMEOUT_MS, TIMEOUT)?;
        let mut wanted = ToolTarget::new(args, scratch, timeout);
        wanted.any_program = true;
        let (instrumented, fresh) = wanted.start_fresh(environment)?;
        let tracer = Tracer::new(fresh, choose(instrumented), most);
        Ok(Self { tracer, timeout, has_table: instrumented })
    }

    /// Runs an input. Fails if the result is unusable; see [`Traced::shortcoming`] for partial results.
    pub(super) fn run(&mut self, input: &[u8]) -> Result<TracedRun, Failure> {
        let run = self.run_once(input)?;
        if !self.tracer.is_blind() {
            return Ok(run);
        }
        if *self.tracer.choice() != Choice::Counted {
            return Err(self.nothing_known());
        }
        // AFL's compilers create no table of counters: the code is decoded as for any other program.
        self.has_table = false;
        self.tracer.choose(Choice::Own);
        let run = self.run_once(input)?;
        if self.tracer.is_blind() { Err(self.nothing_known()) } else { Ok(run) }
    }

    fn run_once(&mut self, input: &[u8]) -> Result<TracedRun, Failure> {
        let run = self.tracer.run(input, self.timeout).map_err(tool::failure)?;
        let missing = self.tracer.missing_libraries(&run);
        if !missing.is_empty() {
            let error = crate::exec::TargetError::NoLibrary { names: missing };
            return Err(tool::failure(error));
        }
        Ok(run)
    }

    fn nothing_known(&self) -> Failure {
        let names: Vec<&str> = self.tracer.files().iter().map(|file| file.name.as_str()).collect();
        Failure::new(
            format!("no code to trace is known in {}", names.join(", ")),
            "name one of these files with --modules, or build it with ffuzz-cc; otherwise only \
             64-bit code with .eh_frame is found",
        )
    }

    /// The reason why a run was traced incompletely.
    pub(super) fn shortcoming(&self, run: &TracedRun) -> Option<Failure> {
        let failure = match run.ended.given_up {
            Some(Given::Threads) => Failure::new(
                format!("the target has started more than {MOST_THREADS} threads and processes"),
                "use an input with which it starts fewer",
            ),
            Some(Given::Enough) => Failure::new(
                format!("the run was ended after {MOST_STEPS} steps"),
                "--most N records at most N executions of each block",
            ),
            None if run.ended.exit == ExitKind::Hang => Failure::new(
                format!("the target was ended: it exceeded {} ms", self.timeout.as_millis()),
                "-t gives it more time; tracing takes longer than a plain run",
            ),
            None => return None,
        };
        Some(tool::cannot(failure))
    }
}

/// Parses `--modules`.
pub(super) fn choice(list: Option<&str>, otherwise: Choice) -> Choice {
    list.map_or(otherwise, Choice::parse)
}
