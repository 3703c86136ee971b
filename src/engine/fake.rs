//! An executor without a process: a closure computes the maps from the input. For tests, and for programs
//! that embed the engine.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::options::RunMode;

use super::domain::{Domain, DsfView};
use super::executor::{Executor, ExitKind, Observation, RunError, RunSettings, Spent, TargetInfo};
use ffuzz_comparisons::log::OwnLog;

type Logs = Box<dyn FnMut(&[u8], &mut OwnLog)>;
type Program = Box<dyn FnMut(&[u8], &mut [u8], &mut [u32]) -> ExitKind>;

/// Runs a closure that fills the edge map and the domain maps.
pub struct FakeExecutor {
    program: Program,
    edges: Vec<u8>,
    domains: Vec<Domain>,
    values: Vec<u32>,
    execs: u64,
    spent: Spent,
    settings: RunSettings,
    logs: Option<Logs>,
    comparisons: OwnLog,
    clock: Rc<Cell<Duration>>,
}

impl FakeExecutor {
    #[must_use]
    pub fn new(
        map_size: usize,
        domains: Vec<Domain>,
        program: impl FnMut(&[u8], &mut [u8], &mut [u32]) -> ExitKind + 'static,
    ) -> Self {
        let keys = domains.last().map_or(0, Domain::end) as usize;
        Self {
            program: Box::new(program),
            edges: vec![0; map_size],
            domains,
            values: vec![0; keys],
            execs: 0,
            spent: Spent::default(),
            settings: RunSettings::new(Duration::from_secs(1)),
            logs: None,
            comparisons: OwnLog::default(),
            clock: Rc::new(Cell::new(Duration::from_micros(100))),
        }
    }

    /// Logs the comparisons that the closure adds for an input.
    #[must_use]
    pub fn logging(self, logs: impl FnMut(&[u8], &mut OwnLog) + 'static) -> Self {
        Self { logs: Some(Box::new(logs)), ..self }
    }

    /// Like [`FakeExecutor::logging`], in AFL++'s format, see
    /// [`ComparisonLog::is_partial`](ffuzz_comparisons::log::ComparisonLog::is_partial).
    #[cfg(test)]
    #[must_use]
    pub(crate) fn logging_partially(self, logs: impl FnMut(&[u8], &mut OwnLog) + 'static) -> Self {
        Self { comparisons: OwnLog::partial(), ..self.logging(logs) }
    }

    /// Takes the duration of each run from `clock`, which the program sets.
    #[must_use]
    pub fn timed_by(self, clock: &Rc<Cell<Duration>>) -> Self {
        Self { clock: clock.clone(), ..self }
    }
}

impl Executor for FakeExecutor {
    fn info(&self) -> &dyn TargetInfo {
        self
    }

    fn settings(&self) -> &RunSettings {
        &self.settings
    }

    fn settings_mut(&mut self) -> &mut RunSettings {
        &mut self.settings
    }

    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        self.execs += 1;
        self.spent.add(self.clock.get(), None);
        self.edges.fill(0);
        for domain in &self.domains {
            self.values[domain.range()].fill(domain.initial);
        }
        let exit = (self.program)(input, &mut self.edges, &mut self.values);
        self.comparisons.clear();
        if let (Some(logs), true) = (&mut self.logs, self.settings.log_comparisons) {
            logs(input, &mut self.comparisons);
            self.edges.fill(0);
        }
        Ok(Observation {
            index: 0,
            exit,
            duration: self.clock.get(),
            edges: &self.edges,
            dsf: DsfView { domains: &self.domains, values: &self.values, touched: None },
            comparisons: self.comparisons.view(),
        })
    }

    fn observe_sent(
        &mut self,
        _late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, RunError> {
        send();
        self.observe(b"")
    }

    fn reads_input(&mut self, _input: &[u8]) -> Result<Option<bool>, RunError> {
        Ok(Some(true))
    }
}

impl TargetInfo for FakeExecutor {
    fn map_size(&self) -> usize {
        self.edges.len()
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn logs_comparisons(&self) -> bool {
        self.logs.is_some()
    }

    fn has_partial_log(&self) -> bool {
        self.comparisons.view().is_partial()
    }

    fn execs(&self) -> u64 {
        self.execs
    }

    fn spent(&self) -> Spent {
        self.spent
    }

    fn run_mode(&self) -> RunMode {
        RunMode::InProcess
    }

    fn target_mode(&self) -> String {
        "fake".into()
    }
}
