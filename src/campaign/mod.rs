//! A campaign: owns corpus, scheduler, executor and judge, and is the only place where they meet.

mod confirm;
mod error;
mod foreign;
mod keep;
mod known;
mod modules;
mod orders;
mod outside;
mod peers;
mod reading;
mod resume;
mod seeds;
mod start;
mod statistics;
mod stop;
mod wait;
mod waiting;

pub use error::CampaignError;
use error::TURNS_WITHOUT_RUNS;
pub use seeds::{collect_files, read_limited};

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use crate::config::options::{Options, OutputOptions};
use crate::crashes::triage::{Follower, pointers};
use crate::disk::output::fflog::FuzzFactoryLog;
use crate::disk::output::{OutputDir, OutputError};
use crate::engine::corpus::SeedId;
use crate::engine::domain::KeyNames;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::door::{Door, DoorError};
use crate::engine::stage;
use crate::event::{Event, EventBus, EventSink, StopReason};
use crate::fleet::control::Control;
use crate::mutators::Mutators;
use crate::sys::stop::Stop;

use statistics::Statistics;

/// Runs a campaign to its end.
///
/// `sinks` makes the consumers of events once the output folder is open; `control` says what is to be
/// done meanwhile.
pub fn run(
    options: Options,
    sinks: impl FnOnce(&OutputDir) -> Vec<Box<dyn EventSink>>,
    control: Option<Control>,
) -> Result<StopReason, CampaignError> {
    let mut campaign = start::open(options, sinks, control)?;
    campaign.fuzz()
}

/// One running instance.
struct Campaign {
    options: Options,
    fuzzer: Fuzzer<Mutators>,
    output: OutputDir,
    log: FuzzFactoryLog,
    /// Read from the target's files when the first name is asked for.
    names: OnceCell<KeyNames>,
    bus: EventBus,
    statistics: Statistics,
    stop: Stop,
    /// What results of runs depend on, see [`resume::fingerprint`].
    fingerprint: u64,
    /// All starting seeds are in the corpus.
    complete: bool,
    /// None unless there may be others.
    sync: Option<peers::Sync>,
    /// Orders of clients; None without a control socket.
    orders: Option<orders::Orders>,
    /// The triage of crashes; None if it is switched off.
    triage: Option<Follower>,
    last_tick: Instant,
    tick_pause: Duration,
    last_saved: Instant,
    full_disk: Option<wait::Pause>,
    passing_error: Option<wait::Pause>,
}

impl Campaign {
    /// Once there is something to look at.
    fn start_triage(&mut self) {
        let (crashes, hangs) = (self.statistics.saved_crashes, self.statistics.saved_hangs);
        self.triage.iter_mut().for_each(|triage| triage.start_for(crashes, hangs));
    }

    /// Imports the seeds, then fuzzes until something says stop. The finds on disk are complete
    /// whichever way it ends.
    fn fuzz(&mut self) -> Result<StopReason, CampaignError> {
        let result = self.import_seeds().and_then(|()| {
            if self.options.sync.first {
                self.import_all()?;
            }
            self.bus.send(&Event::Started);
            self.start_triage();
            self.tick();
            let reason =
                if self.options.custom.killerbeez.only { self.sequence() } else { self.rounds() }?;
            if self.options.sync.last {
                // What has led here is no reason to leave these runs out.
                self.fuzzer.stop_on(None);
                self.import_all()?;
            }
            if self.complete {
                self.restore_queue()?;
            }
            Ok(reason)
        });
        let result = match result {
            Err(error) if error.is_interruption() => {
                Ok(self.stop_reason().unwrap_or(StopReason::TimeLimit))
            }
            result => result,
        };
        let reason = match &result {
            Ok(reason) => *reason,
            Err(_) => StopReason::Failed,
        };
        let limit = match reason {
            StopReason::TimeLimit => "time",
            StopReason::ExecLimit => "execution",
            _ => "",
        };
        if !limit.is_empty() && !self.complete {
            self.warn(format!(
                "the {limit} limit was reached in the dry run, before all seeds were run"
            ));
        }
        // What follows ends soon, whatever code of the user's it waits for.
        self.statistics.end();
        self.stop.limit(Some(Duration::ZERO));
        self.stop.suspend_at_once();
        self.dismiss_orders();
        // A find that could not be written is known to the judge already: the last state does not claim it.
        if result.is_ok() {
            self.note_positions();
            self.save_state();
        }
        self.tell_doubtful();
        self.pass_notes_on();
        if let Err(error) = self.log.flush() {
            self.warn(error.to_string());
        }
        self.triage.iter_mut().for_each(|triage| triage.finish(reason.patience()));
        self.pass_notes_on();
        let mut snapshot = self.snapshot();
        snapshot.coverage.virgin_map = Some(self.fuzzer.judge().virgin().into());
        for (index, mutator) in snapshot.mutators.iter_mut().enumerate() {
            mutator.says = self.fuzzer.mutators.introspection(index);
        }
        let OutputOptions { root, instance, resume, .. } = &self.options.output;
        let resume = resume.as_deref().filter(|_| self.statistics.is_fuzzing());
        let next = pointers(root, Some(instance), &snapshot.finds, resume);
        self.bus.send(&Event::Stopped { reason, next, snapshot: Box::new(snapshot) });
        let unwritten = self.bus.take_failure();
        result.and_then(|reason| match unwritten {
            Some((path, source)) => Err(OutputError::write(&path, source).into()),
            None => Ok(reason),
        })
    }

    fn rounds(&mut self) -> Result<StopReason, CampaignError> {
        let mut cycles = self.fuzzer.scheduler.cycles();
        let (mut idle_turns, mut execs) = (0, self.fuzzer.target().execs());
        loop {
            if let Some(reason) = self.stop_reason() {
                return Ok(reason);
            }
            self.look_around()?;
            let Some(id) = self.fuzzer.pick() else {
                return Err(self.no_usable_seed());
            };
            self.turn(id)?;
            idle_turns = if self.fuzzer.target().execs() == execs { idle_turns + 1 } else { 0 };
            execs = self.fuzzer.target().execs();
            if idle_turns == TURNS_WITHOUT_RUNS && !self.fuzzer.mutators.is_empty() {
                return Err(CampaignError::NothingRuns);
            }
            if self.fuzzer.scheduler.cycles() != cycles {
                cycles = self.fuzzer.scheduler.cycles();
                self.fuzzer.progress.cycle_finished();
                self.bus.send(&Event::CycleFinished { cycles });
            }
            if self.options.limits.one_seed {
                return Ok(StopReason::Done);
            }
        }
    }

    /// One picked seed's turn.
    fn turn(&mut self, id: SeedId) -> Result<(), CampaignError> {
        self.statistics.current = Some(id);
        if self.fuzzer.judge().watches_domains() {
            self.log.fuzzing(id.0, self.fuzzer.corpus[id].favored);
        }
        let runs = if self.mutators_want(id) { stage::run_turn(self, id)? } else { 0 };
        let Fuzzer { scheduler, corpus, .. } = &mut self.fuzzer;
        scheduler.picked(corpus, id, runs);
        self.tick_if_due();
        Ok(())
    }

    fn names(&self) -> &KeyNames {
        let read = || KeyNames::new(self.fuzzer.target().domains(), self.fuzzer.target().sites());
        self.names.get_or_init(read)
    }

    /// Tells the user what is to be said of the target and the mutators.
    fn pass_notes_on(&mut self) {
        if let Some(reason) = self.fuzzer.take_restart() {
            self.bus.send(&Event::TargetRestarted { reason });
        }
        let mut notes = self.fuzzer.mutators.take_messages();
        notes.extend(self.fuzzer.take_notes());
        for note in notes {
            self.warn(note);
        }
        for note in self.triage.iter_mut().flat_map(Follower::take_notes).collect::<Vec<_>>() {
            self.warn(note);
        }
    }

    fn warn(&mut self, message: String) {
        self.bus.send(&Event::Warning { message });
    }
}

#[cfg(test)]
mod tests;
