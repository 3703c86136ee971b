//! `--load-coverage` and `--save-coverage` of the tools that run inputs.

use std::path::PathBuf;
use std::time::Duration;

use super::exit::Failure;
use super::tool::TargetArgs;
use crate::config::env::Environment;
use crate::disk::coverage::{self, CoverageError};
use crate::engine::coverage::{Classes, classify_one};
use crate::engine::domain::{Aggregates, Domain, DsfView};
use crate::engine::executor::{ExitKind, Observation};
use crate::engine::feedback::Known;
use crate::engine::minimize::cover::Trace;
use crate::exec::Hooked;
use crate::inspect::binary;
use crate::inspect::parts::parts;

#[derive(Debug, Default, clap::Args)]
pub(super) struct CoverageArgs {
    /// Show only what goes beyond this coverage state (from --save-coverage, ffuzz-merge or Killerbeez)
    #[arg(long, value_name = "FILE")]
    load_coverage: Option<PathBuf>,
    /// Write everything that is known after these runs as a coverage state
    #[arg(long, value_name = "FILE")]
    save_coverage: Option<PathBuf>,
}

impl CoverageArgs {
    pub(super) fn is_given(&self) -> bool {
        self.load_coverage.is_some() || self.save_coverage.is_some()
    }
}

/// Coverage states before and after the runs.
#[derive(Debug, Default)]
pub(super) struct CoverageStates {
    loaded: Option<Known>,
    made: Option<(PathBuf, Known)>,
}

impl From<CoverageError> for Failure {
    fn from(error: CoverageError) -> Self {
        Self::of(&error)
    }
}

impl CoverageStates {
    /// Reads the coverage state and checks that it is for this target.
    pub(super) fn open(
        args: &CoverageArgs,
        target: &Hooked,
        command: &TargetArgs,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let CoverageArgs { load_coverage, save_coverage } = args;
        if !args.is_given() {
            return Ok(Self::default());
        }
        if target.info().map_size() == 0 {
            return Err(CoverageError::NoEdges.into());
        }
        save_coverage.as_deref().map_or(Ok(()), coverage::check_place)?;
        let program = binary::locate(&command.command[0], environment.get("PATH"));
        let parts = parts(target.info(), &program.unwrap_or_default());
        let mut own = Known::new(parts, target.info().map_size(), target.info().domains());
        let loaded = match load_coverage {
            Some(path) => Some(coverage::read_for(path, &own)?),
            None => None,
        };
        if let Some(loaded) = &loaded {
            let joined = own.join(loaded);
            debug_assert!(joined.is_ok(), "it fits");
        }
        Ok(Self { loaded, made: save_coverage.clone().map(|path| (path, own)) })
    }

    pub(super) fn add(&mut self, run: &Observation<'_>) {
        self.made.iter_mut().for_each(|(_, known)| known.add(run));
    }

    /// The counters of a run that exceed the loaded state; None: all of them.
    pub(super) fn beyond(&self, run: &Observation<'_>) -> Option<Vec<u8>> {
        let known = self.loaded.as_ref()?;
        let (virgin, classes) = match run.exit {
            ExitKind::Ok => (&known.edges, Classes::Counts),
            ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => (&known.hangs, Classes::Binary),
            ExitKind::Crash { .. } | ExitKind::Oom => (&known.crashes, Classes::Binary),
        };
        let new = |(place, count): (usize, &u8)| {
            let virgin = virgin.get(place).copied().unwrap_or(0xff);
            if classify_one(*count, classes) & virgin == 0 { 0 } else { *count }
        };
        Some(run.edges.iter().enumerate().map(new).collect())
    }

    /// The keys with better values than in the loaded state.
    pub(super) fn better(&self, keys: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
        let is_better = |(key, value): &(u32, u32)| match &self.loaded {
            Some(known) => known.gains(*key, *value),
            None => true,
        };
        keys.filter(is_better).collect()
    }

    /// Adds a run of which only the trace is left; returns what exceeds the loaded state.
    pub(super) fn beyond_trace(
        &mut self,
        exit: ExitKind,
        trace: &Trace,
        domains: &[Domain],
    ) -> Trace {
        let made = self.made.as_ref().map(|(_, known)| known);
        let Some(known) = made.or(self.loaded.as_ref()) else { return trace.clone() };
        let size = known.map_size();
        let edges = trace.counters(size);
        let mut values = Aggregates::new(domains);
        trace.keys.iter().for_each(|(key, value)| values.merge_value(*key, *value));
        let dsf = DsfView { domains, values: values.values(), touched: None };
        let run = Observation {
            index: 0,
            exit,
            duration: Duration::ZERO,
            edges: &edges,
            dsf,
            comparisons: Default::default(),
        };
        self.add(&run);
        match self.beyond(&run) {
            None => trace.clone(),
            Some(edges) => Trace {
                keys: self.better(trace.keys.iter().copied()),
                ..Trace::of(&edges, &DsfView { touched: Some(&[]), ..run.dsf })
            },
        }
    }

    /// Writes the current state.
    pub(super) fn save(self) -> Result<(), Failure> {
        match self.made {
            Some((path, known)) => Ok(coverage::write(&path, &known)?),
            None => Ok(()),
        }
    }
}
