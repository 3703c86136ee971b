//! A campaign: the only place where the search and its surroundings meet.
//!
//! Each part owns its data and has its own file. `Campaign` joins them in three files: this one has the loop,
//! `dry_run.rs` what precedes it, and `host.rs` what happens in and between its runs.

mod blocked;
mod confirm;
mod coverage_files;
mod cuts;
mod dry_run;
mod error;
mod host;
mod imports;
mod keep;
mod limits;
mod modules;
mod mutators;
mod orders;
mod outside;
mod reading;
mod reports;
mod seeds;
mod start;
mod state;
mod statistics;
mod wait;

use error::turns_without_runs;
pub use error::{BadSeeds, CampaignError};
pub use seeds::{collect_files, read_limited};

use std::time::Duration;

use crate::config::options::{Options, OutputOptions};
use crate::crashes::triage::pointers;
use crate::disk::output::{OutputDir, OutputError};
use crate::engine::corpus::SeedId;
use crate::engine::executor::UnseenCode;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::door::DoorError;
use crate::engine::schedule::Budget;
use crate::engine::stage::custom::Foreign;
use crate::engine::stage::produce::Producer;
use crate::engine::stage::{StageEnd, Stages};
use crate::event::{Event, EventSink, StopReason};
use crate::fleet::control::CommandSource;
use crate::mutators::Mutators;
use crate::mutators::states::Reached;

use imports::Imports;
use modules::{ONLY, only_states};
use orders::PendingOrders;
use outside::Outside;
use state::StateFiles;

/// Runs a campaign to its end.
///
/// `sinks` creates the consumers of events once the output folder is open; `control` has the sources of commands.
pub fn run(
    options: Options,
    sinks: impl FnOnce(&OutputDir) -> Vec<Box<dyn EventSink>>,
    control: Vec<CommandSource>,
) -> Result<StopReason, CampaignError> {
    let mut campaign = start::open(options, sinks, control)?;
    campaign.fuzz()
}

/// Maximum number of libraries named in one note.
const MOST_LATE: usize = 4;

/// One running instance.
struct Campaign {
    options: Options,
    fuzzer: Fuzzer<Mutators>,
    /// The output folder, reports, numbers and limits.
    outside: Outside,
    /// Files for the next process.
    state: StateFiles,
    /// Finds of other fuzzers; None if there cannot be any.
    imports: Option<Imports>,
    /// Orders of clients; None without a control socket.
    orders: Option<PendingOrders>,
}

impl Campaign {
    /// Imports the seeds, then fuzzes until a reason to stop. All finds are on disk whichever way it ends.
    fn fuzz(&mut self) -> Result<StopReason, CampaignError> {
        let mut stages = Stages::new();
        let result = match self.search(&mut stages) {
            Err(error) if error.is_interruption() => {
                Ok(self.stop_reason().unwrap_or(StopReason::TimeLimit))
            }
            result => result,
        };
        let reason = match &result {
            Ok(reason) => *reason,
            Err(_) => StopReason::Failed,
        };
        self.end(reason, &stages);
        let unwritten = self.outside.reports.bus.take_failure();
        result.and_then(|reason| match unwritten {
            Some((path, source)) => Err(OutputError::write(&path, source).into()),
            None => Ok(reason),
        })
    }

    /// Runs the search from the first seed to the reason for its end.
    fn search(&mut self, stages: &mut Stages<Self>) -> Result<StopReason, CampaignError> {
        self.import_seeds(stages)?;
        self.note_unseen_code();
        if self.options.seeds.leave_comparisons {
            self.fuzzer.compares_from = self.fuzzer.corpus.next_id();
        }
        if self.options.sync.first {
            self.import_all()?;
        }
        self.outside.reports.bus.send(&Event::Started);
        self.outside.start_triage();
        self.outside.tick(&mut self.fuzzer);
        let only = self.options.custom.killerbeez.only;
        let reason = if only { self.sequence(stages) } else { self.rounds(stages) }?;
        if self.options.sync.last {
            // The reason for the end must not cut these runs.
            self.fuzzer.stop_on(None);
            self.import_all()?;
        }
        if self.state.is_complete {
            self.outside.restore_queue(&self.fuzzer)?;
        }
        Ok(reason)
    }

    /// Reports unseen code: with `-Q`, blocks are found before the program runs, so libraries that it loads later,
    /// and a program that it executes, are not covered.
    fn note_unseen_code(&mut self) {
        let Self { options, fuzzer, outside, .. } = self;
        let seed = fuzzer.corpus.iter().find(|seed| !seed.disabled);
        let Some(seed) = seed.filter(|_| options.target.native.is_some()) else { return };
        if outside.limits.stop.is_over() {
            return;
        }
        let file = outside.output.add_input_path();
        let UnseenCode { libraries: late, program } =
            fuzzer.target().unseen_code(&seed.data, &file);
        if let Some(program) = program {
            outside.warn(format!(
                "the target executes another program ({}): its code is not counted; fuzz that program itself, and unpack \
                 a packed one",
                program.display()
            ));
        }
        let paths: Vec<String> =
            late.iter().take(MOST_LATE).map(|path| path.display().to_string()).collect();
        let more = match late.len() - paths.len() {
            0 => String::new(),
            more => format!(" (and {more} others)"),
        };
        if !paths.is_empty() {
            outside.warn(format!(
                "the target loads {}{more} only when it runs: its code is not counted; AFL_PRELOAD={} loads it at the \
                 start",
                paths.join(", "),
                paths.join(":"),
            ));
        }
    }

    /// Ends the campaign after its last run: answers open orders and saves the state.
    fn end(&mut self, reason: StopReason, stages: &Stages<Self>) {
        let Self { fuzzer, outside, state, imports, orders, .. } = self;
        let limit = match reason {
            StopReason::TimeLimit => "time",
            StopReason::ExecLimit => "execution",
            _ => "",
        };
        if !limit.is_empty() && !state.is_complete {
            outside.warn(format!(
                "the {limit} limit was reached in the dry run, before all seeds were run"
            ));
        }
        // From here on, waits for user code are cut short.
        outside.statistics.end();
        outside.limits.stop.limit(Some(Duration::ZERO));
        outside.limits.stop.suspend_at_once();
        orders.iter_mut().for_each(|orders| orders.answer_remaining(outside));
        // The judge already knows a find that could not be written, so its state is not saved.
        if reason != StopReason::Failed {
            imports.iter_mut().for_each(|imports| imports.note_positions(outside));
            // Until the earlier process's data is restored, its file stays.
            if state.is_complete || state.has_known {
                state.note_stages(stages, fuzzer);
            }
            state.save(fuzzer, outside);
        }
        outside.warn_of_doubtful_timeouts(fuzzer);
        outside.reports.finish(fuzzer, reason);
        self.report_end(reason);
    }

    /// Reports the last statistics.
    fn report_end(&mut self, reason: StopReason) {
        let Self { options, fuzzer, outside, .. } = self;
        let mut snapshot = outside.snapshot(fuzzer);
        snapshot.coverage.virgin_map = Some(fuzzer.judge().virgin().into());
        for (index, mutator) in snapshot.mutators.iter_mut().enumerate() {
            mutator.says = fuzzer.mutators.introspection(index);
        }
        let OutputOptions { root, instance, resume, .. } = &options.output;
        let resume = resume.as_deref().filter(|_| outside.statistics.is_fuzzing());
        let next = pointers(root, Some(instance), &snapshot.finds, resume);
        let event = Event::Stopped { reason, next, snapshot: Box::new(snapshot) };
        outside.reports.bus.send(&event);
    }

    fn rounds(&mut self, stages: &mut Stages<Self>) -> Result<StopReason, CampaignError> {
        let mut cycles = self.fuzzer.scheduler.cycles();
        let (mut idle_turns, mut execs) = (0, self.fuzzer.target().execs());
        loop {
            if let Some(reason) = self.stop_reason() {
                return Ok(reason);
            }
            self.door().look_around()?;
            let Some(id) = self.fuzzer.pick() else {
                return Err(self.no_usable_seed());
            };
            self.turn(id, stages)?;
            idle_turns = if self.fuzzer.target().execs() == execs { idle_turns + 1 } else { 0 };
            execs = self.fuzzer.target().execs();
            let enough = idle_turns >= turns_without_runs(self.fuzzer.corpus.len());
            if enough && !self.fuzzer.mutators.is_empty() {
                return Err(CampaignError::NothingRuns { turns: idle_turns });
            }
            if self.fuzzer.scheduler.cycles() != cycles {
                cycles = self.fuzzer.scheduler.cycles();
                self.fuzzer.progress.cycle_finished();
                self.outside.reports.bus.send(&Event::CycleFinished { cycles });
            }
            if self.outside.limits.options.one_seed {
                return Ok(StopReason::Done);
            }
        }
    }

    /// Runs the turn of one picked seed.
    fn turn(&mut self, id: SeedId, stages: &mut Stages<Self>) -> Result<(), CampaignError> {
        let Self { fuzzer, outside, .. } = self;
        outside.statistics.current = Some(id);
        if fuzzer.judge().watches_domains() {
            outside.reports.log.fuzzing(id.0, fuzzer.corpus[id].favored);
        }
        let is_wanted = outside.mutators_want(fuzzer, id);
        let cost = if is_wanted { stages.run_turn(self, id)? } else { 0.0 };
        let Fuzzer { scheduler, corpus, .. } = &mut self.fuzzer;
        scheduler.picked(corpus, id, cost);
        self.state.note_stages_if_due(stages, &self.fuzzer);
        self.tick_if_due();
        Ok(())
    }

    /// `--mutator-only`: runs everything that the module generates from the seed, in order.
    fn sequence(&mut self, stages: &mut Stages<Self>) -> Result<StopReason, CampaignError> {
        let mut made = 0;
        loop {
            if let Some(reason) = self.stop_reason() {
                return Ok(reason);
            }
            let mut stage = Foreign::late(Budget::of_runs(u64::MAX));
            let end = stages.run_producer(self, ONLY, &mut stage)?;
            made += stage.progress(Duration::ZERO).0;
            self.tick_if_due();
            let name = self.options.custom.killerbeez.modules[0].name.clone();
            let reached =
                only_states(&mut self.fuzzer.mutators).and_then(|states| states.last(ONLY));
            match reached {
                Some(Reached::Exhausted(_)) => {
                    let message = format!("mutator {name} exhausted after {made} inputs");
                    self.outside.reports.note(message);
                    return Ok(StopReason::Done);
                }
                Some(Reached::State(_)) => {}
                // Without a state it would start over forever.
                None if end == StageEnd::TurnOver => return Ok(StopReason::Done),
                _ => return Err(CampaignError::MutatorFailed { name, made }),
            }
        }
    }
}

#[cfg(test)]
mod tests;
