//! What the tools share that follow a target from block to block: how it is opened, and what is said when
//! it could not be followed to its end.

use std::time::Duration;

use super::exit::Failure;
use super::tool::{self, Scratch, TargetArgs, ToolTarget};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::exec::trace::{Choice, MOST_STEPS, Run, Tracer};
use crate::sys::breakpoints::{Given, MOST_THREADS};

/// Timeout of a run without `-t`; it has to end: every block of it costs time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Below this a timeout is refused.
const MIN_TIMEOUT_MS: u64 = 10;

/// A target to follow.
pub(super) struct Traced {
    pub(super) tracer: Tracer,
    pub(super) timeout: Duration,
    /// The program has counters of `ffuzz-cc`, or another compiler for fuzzing.
    pub(super) instrumented: bool,
}

impl Traced {
    /// `choose`: which files, and how often a block is recorded, when it is known whether the program is
    /// instrumented.
    pub(super) fn open(
        args: &TargetArgs,
        scratch: &Scratch,
        environment: &Environment,
        choose: impl FnOnce(bool) -> (Choice, u32),
    ) -> Result<Self, Failure> {
        let timeout = args.timeout(MIN_TIMEOUT_MS, TIMEOUT)?;
        let mut wanted = ToolTarget::new(args, scratch, timeout);
        wanted.any_program = true;
        let (instrumented, fresh) = wanted.start_fresh(environment)?;
        let (choice, most) = choose(instrumented);
        let tracer = Tracer::new(fresh, choice, most);
        Ok(Self { tracer, timeout, instrumented })
    }

    /// One run. What prevents any use of it is a failure; see [`Traced::shortcoming`] for the rest.
    pub(super) fn run(&mut self, input: &[u8]) -> Result<Run, Failure> {
        let run = self.tracer.run(input, self.timeout).map_err(tool::failure)?;
        let missing = self.tracer.missing_libraries(&run);
        if !missing.is_empty() {
            let error = crate::exec::TargetError::NoLibrary { names: missing };
            return Err(tool::failure(error));
        }
        if self.tracer.files().iter().all(|file| file.size() == 0) {
            return Err(self.nothing_known());
        }
        Ok(run)
    }

    fn nothing_known(&self) -> Failure {
        let names: Vec<&str> = self.tracer.files().iter().map(|file| file.name.as_str()).collect();
        Failure::new(
            format!("no code to trace is known in {}", names.join(", ")),
            "build it with ffuzz-cc, or name files of those with --modules; code is found in \
             64-bit programs with .eh_frame",
        )
    }

    /// Why not all of a run was seen.
    pub(super) fn shortcoming(&self, run: &Run) -> Option<Failure> {
        let failure = match run.ended.given_up {
            Some(Given::Threads) => Failure::new(
                format!("the target has started more than {MOST_THREADS} threads and processes"),
                "use an input with which it starts fewer",
            ),
            Some(Given::Enough) => Failure::new(
                format!("the run was ended after {MOST_STEPS} steps"),
                "--most N records each block N times, and no more",
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

/// `--modules`: names of files with colons between them, or `all`.
pub(super) fn choice(list: Option<&str>, otherwise: Choice) -> Choice {
    match list {
        None => otherwise,
        Some("all") => Choice::All,
        Some(list) => {
            let names = list.split(':').filter(|name| !name.is_empty());
            Choice::Named(names.map(str::to_owned).collect())
        }
    }
}
