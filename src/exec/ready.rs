//! Prepares a target for the inputs of a tool, from the options of target and mutators up to the
//! executor.

use std::path::PathBuf;
use std::time::Duration;

use super::{Fresh, Hooked, Setup, open};
use ffuzz_config::options::{CustomOptions, TargetOptions};
use ffuzz_engine::executor::RunError;
use ffuzz_engine::runner::Runner;
use ffuzz_mutators::Mutators;

/// A tool's options for its target, decided before the target is checked.
#[derive(Clone, Debug)]
pub struct ReadyOptions {
    pub target: TargetOptions,
    /// Mutators whose hooks change delivered inputs.
    pub mutators: CustomOptions,
    /// Input file of a target that reads no other source.
    pub scratch: PathBuf,
    /// Timeout of a run.
    pub timeout: Duration,
    /// The target inherits our stdin, unless a mutator changes its input.
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

/// A checked target, ready to start.
pub struct Ready {
    setup: Setup,
    mutators: Mutators,
    timeout: Duration,
    late: bool,
}

impl Ready {
    /// Returns true if the mutators have hooks that every run calls.
    #[must_use]
    pub fn has_hooks(&self) -> bool {
        self.mutators.touch_runs()
    }

    /// Starts a separate process for each input. The flag is true if the target has counters.
    pub fn fresh(self) -> Result<(bool, Fresh), RunError> {
        let instrumented = self.setup.is_instrumented();
        Ok((instrumented, Fresh::new(self.setup, self.mutators, self.late, true)?))
    }

    /// Starts the target, with the mutators' hooks.
    pub fn start(self) -> Result<Hooked, RunError> {
        let target = open(self.setup, self.timeout)?;
        let runner = Runner::new(target).send_late(self.late);
        Ok(Hooked { runner, mutators: self.mutators })
    }
}
