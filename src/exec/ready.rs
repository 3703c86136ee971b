//! A target for the inputs of a tool: its options and those of the mutators that change what it gets, up
//! to the executor.

use std::path::PathBuf;
use std::time::Duration;

use super::{Fresh, Hooked, Setup, open};
use ffuzz_config::options::{CustomOptions, TargetOptions};
use ffuzz_engine::executor::RunError;
use ffuzz_engine::runner::Runner;
use ffuzz_mutators::Mutators;

/// How a tool wants its target: everything that is decided before the target is checked.
#[derive(Clone, Debug)]
pub struct ReadyOptions {
    pub target: TargetOptions,
    /// Their hooks change what the target gets.
    pub mutators: CustomOptions,
    /// File for inputs that the target does not take otherwise.
    pub scratch: PathBuf,
    /// Of a run.
    pub timeout: Duration,
    /// The target inherits our stdin, unless a mutator is to change what it reads there.
    pub inherit_stdin: bool,
}

impl ReadyOptions {
    /// Finds and checks the target, and loads the mutators.
    pub fn prepare(&self) -> Result<Ready, RunError> {
        let mutators = ffuzz_mutators::load(&self.mutators, 0)?;
        let options = TargetOptions {
            run_mode: self.target.run_mode.min(mutators.run_mode()),
            ..self.target.clone()
        };
        let mut setup = Setup::new(&options, &self.scratch, None)?;
        if self.inherit_stdin && !mutators.touch_runs() {
            setup.inherit_stdin();
        }
        Ok(Ready { setup, mutators, timeout: self.timeout, late: self.mutators.late_send })
    }
}

/// A target that can be started.
pub struct Ready {
    setup: Setup,
    mutators: Mutators,
    timeout: Duration,
    late: bool,
}

impl Ready {
    /// The mutators have a say in every run.
    #[must_use]
    pub fn has_hooks(&self) -> bool {
        self.mutators.touch_runs()
    }

    /// Starts a process of its own for each input. True: the target has counters.
    pub fn fresh(self) -> Result<(bool, Fresh), RunError> {
        let instrumented = self.setup.is_instrumented();
        Ok((instrumented, Fresh::new(self.setup, self.mutators, self.late, true)?))
    }

    /// Starts the target, behind the mutators.
    pub fn start(self) -> Result<Hooked, RunError> {
        let target = open(self.setup, self.timeout)?;
        let runner = Runner::new(target).send_late(self.late);
        Ok(Hooked { runner, mutators: self.mutators })
    }
}
