//! The campaign as the host of its [`Fuzzer`]: it passes results of runs to `Outside`, and handles orders and imports
//! between two batches.

use std::time::{Duration, Instant};

use super::confirm::{self, CrashCondition};
use super::imports::Imports;
use super::keep::MAX_HANGS;
use super::{Campaign, CampaignError, orders};
use crate::config::options::Strategy;
use crate::disk::output::OutputDir;
use crate::disk::sync::Import;
use crate::engine::corpus::{Origin, SeedId};
use crate::engine::executor::RunError;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::admit::{Crash, NewSeed, Outcome, Stored, StoredSeed, admit};
use crate::engine::fuzzer::door::{Discovery, Door, DoorError, Host, Notice, Part, Run};
use crate::engine::schedule::ledger::{Effort, IMPORT_SLICE, Purpose};
use crate::event::{InjectionOutcome, StopReason};
use crate::fleet::control::{Answer, Command, Incoming, Order};
use crate::mutate::Candidate;
use crate::mutators::Mutators;
use crate::sys::remedy::Remedy;
use crate::sys::{load, underway};

impl DoorError for CampaignError {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Run(RunError::Interrupted))
    }
}

impl Host for Campaign {
    type Mutators = Mutators;
    type Error = CampaignError;

    fn fuzzer(&self) -> &Fuzzer<Mutators> {
        &self.fuzzer
    }

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<Mutators> {
        &mut self.fuzzer
    }

    fn store(
        &mut self,
        candidate: &Candidate,
        as_what: Discovery<'_>,
    ) -> Result<Option<Stored>, CampaignError> {
        let Self { fuzzer, outside, .. } = self;
        match as_what {
            Discovery::Crash(crash) => self.store_crash(candidate, crash),
            Discovery::Hang => outside.store_hang(fuzzer, candidate).map(Some),
            Discovery::Lost { unique } => {
                let how = fuzzer.take_account(&candidate.bytes).unwrap_or_default();
                outside.store_lost(fuzzer, candidate, unique, &how)
            }
            Discovery::Record(gains) => {
                outside.store_record(fuzzer, candidate, gains).map(|()| None)
            }
        }
    }

    fn store_seed(&mut self, new: &NewSeed<'_>) -> Result<StoredSeed, CampaignError> {
        self.outside.store_seed(&mut self.fuzzer, new)
    }

    fn notice(&mut self, what: Notice<'_>) {
        let Self { fuzzer, outside, .. } = self;
        let statistics = &mut outside.statistics;
        match what {
            Notice::SeedAdded { id, gains } => {
                if fuzzer.judge().watches_domains() {
                    outside.note_gains(fuzzer, id, gains);
                }
            }
            Notice::SeedFound { new, gains, stored } => {
                outside.report_seed(fuzzer, new, gains, stored);
            }
            Notice::TimedOut => {
                statistics.total_timeouts += 1;
                statistics.timeouts_here += 1;
            }
            Notice::Cut => statistics.cut_runs += 1,
            Notice::SanitizerFailed(why) => {
                let remedy = why.remedy();
                outside.warn(format!("a build of -w cannot be run any more: {why}; {remedy}"));
            }
            Notice::LoggerFailed(why) => {
                let remedy = why.remedy();
                outside.warn(format!("the program of -c cannot be run any more: {why}; {remedy}"));
            }
            Notice::DeterministicDone(id) => {
                if let Err(error) = outside.output.mark_det_done(&fuzzer.corpus[id].name) {
                    outside.warn(error.to_string());
                }
            }
            Notice::Took(Part::Calibration, time) => statistics.calibration += time,
            Notice::Took(Part::Comparisons, time) => statistics.comparisons += time,
            Notice::Took(Part::Trimming, time) => statistics.trim += time,
        }
    }

    fn takes_hangs(&self) -> bool {
        !self.options.findings.ignore_timeouts && self.outside.statistics.saved_hangs < MAX_HANGS
    }

    fn elapsed(&self) -> Duration {
        self.outside.statistics.started.elapsed()
    }

    fn own_time(&self) -> Duration {
        load::thread_clock().unwrap_or_default()
    }

    fn look_outside(&mut self) -> Result<(), CampaignError> {
        underway::note_runs(self.outside.statistics.execs(&self.fuzzer));
        self.tick_if_due();
        self.carry_out_orders()?;
        self.import_if_due()
    }

    fn is_over(&self) -> bool {
        self.outside.limits.stop.skip() || self.stop_reason().is_some()
    }

    fn runs_left(&self) -> usize {
        self.outside.limits.runs_left(self.outside.statistics.execs(&self.fuzzer))
    }

    fn wait_for_room(&mut self, error: RunError) -> Result<(), CampaignError> {
        self.outside.wait_after(&mut self.fuzzer, error)
    }

    fn exploits(&self) -> bool {
        match self.fuzzer.mutation.strategy {
            Strategy::Explore => false,
            Strategy::Exploit => true,
            Strategy::Alternate(time) => self.outside.statistics.without_finds() >= time,
        }
    }

    fn seed_changed(&mut self, id: SeedId, bytes: &[u8]) -> Result<(), CampaignError> {
        let name = self.fuzzer.corpus[id].name.clone();
        let write = |output: &mut OutputDir| output.replace_seed(&name, bytes);
        self.outside.write(&mut self.fuzzer, write).map(drop)
    }
}

impl Campaign {
    /// The door to the search.
    pub(super) fn door(&mut self) -> Door<'_, Self> {
        Door(self)
    }

    fn store_crash(
        &mut self,
        candidate: &Candidate,
        crash: Crash,
    ) -> Result<Option<Stored>, CampaignError> {
        let stored = self.outside.store_crash(&mut self.fuzzer, candidate, crash)?;
        if let Some(stored) = &stored {
            if !crash.in_sanitizer {
                self.confirm_crash(candidate, stored.number)?;
            }
            self.outside.report_crash(&self.fuzzer, &candidate.origin, crash.signal, stored);
        }
        Ok(stored)
    }

    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        self.outside.stop_reason(&self.fuzzer)
    }

    /// Reports the statistics and saves the files for the next process, if they are due.
    pub(super) fn tick_if_due(&mut self) {
        if self.outside.tick_if_due(&mut self.fuzzer) {
            if let Err(error) = self.outside.restore_folder(&self.fuzzer) {
                self.outside.warn(error.to_string());
            }
            self.state.save_if_due(&mut self.fuzzer, &mut self.outside);
        }
    }

    /// Tests whether a saved crash occurs in a fresh process, and saves the inputs before it if it does not.
    fn confirm_crash(&mut self, candidate: &Candidate, crash: u64) -> Result<(), CampaignError> {
        let account = self.fuzzer.take_account(&candidate.bytes);
        let inputs = self.fuzzer.take_record();
        if let Some(account) = account {
            return self.outside.save_account(&mut self.fuzzer, crash, &account);
        }
        let Self { options, fuzzer, outside, .. } = self;
        outside.save_record(fuzzer, crash, &inputs, options.findings.record)?;
        // Some(0): the crash ended the fork server, and no run followed.
        let is_many = fuzzer.target().process().is_some_and(|process| process != 0);
        if !is_many || inputs.len() < 2 {
            return Ok(());
        }
        let begin = Instant::now();
        let needs = match outside.limit_of_confirming() {
            Some(limit) => confirm::needs(&mut self.door(), &inputs, &limit)?,
            None => CrashCondition::Unknown,
        };
        self.outside.statistics.confirming += begin.elapsed();
        // Starts a fresh process, so that the next crash depends only on inputs from here on.
        self.fuzzer.end_process();
        self.outside.save_needed(&mut self.fuzzer, crash, &inputs, needs)
    }

    /// Carries out orders of clients, and pauses while an order or Ctrl-Z requires it.
    pub(super) fn carry_out_orders(&mut self) -> Result<(), CampaignError> {
        self.outside.suspend_if_asked();
        let Some(orders) = &mut self.orders else { return Ok(()) };
        if !orders.are_due(&self.outside.statistics) {
            return Ok(());
        }
        let start = Instant::now();
        while start.elapsed() < orders::SLICE
            && let Some(orders) = &mut self.orders
            && let Some(next) = orders.next(&mut self.outside.statistics)
        {
            self.carry_out(next)?;
        }
        let Self { orders, fuzzer, .. } = self;
        orders.iter_mut().for_each(|orders| orders.end_preference(fuzzer));
        if self.outside.statistics.is_fuzzing() { self.pause() } else { Ok(()) }
    }

    /// Waits while the campaign is paused by command, and carries out orders meanwhile.
    fn pause(&mut self) -> Result<(), CampaignError> {
        while self.outside.statistics.control.paused && self.stop_reason().is_none() {
            let start = Instant::now();
            let suspended = self.outside.limits.stop.suspend();
            self.tick_if_due();
            let Some(orders) = &mut self.orders else { break };
            let next = orders.wait_for_next(&mut self.outside.statistics);
            // Before the statistics are reported, because time must not run backwards.
            self.outside.leave_out_pause(start.elapsed(), suspended);
            if let Some(next) = next {
                self.carry_out(next)?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, incoming: Incoming) -> Result<(), CampaignError> {
        let Self { options, fuzzer, outside, orders, .. } = self;
        let input =
            orders.as_mut().and_then(|orders| orders.carry_out(incoming, options, fuzzer, outside));
        input.map_or(Ok(()), |order| self.inject(&order))
    }

    /// Runs the input of an order and answers the order.
    fn inject(&mut self, order: &Order) -> Result<(), CampaignError> {
        let Ok(Command::Inject(data)) = &order.command else { return Ok(()) };
        let number = self.outside.statistics.control.injected.run;
        let origin = Origin::injected(u32::try_from(number).unwrap_or(u32::MAX));
        let start = Instant::now();
        let result = match self.take_in(data.clone(), origin) {
            Err(error) if error.is_interruption() => Err("the campaign has ended".into()),
            kept => {
                let kept = kept?;
                self.outside.statistics.sync += start.elapsed();
                self.outside.statistics.control.injected.run += u64::from(kept.is_some());
                let (min, max) = (self.fuzzer.mutation.min_len, self.fuzzer.mutation.max_len);
                let refused =
                    || format!("{} bytes: this campaign takes {min} to {max}", data.len());
                kept.map(Answer::Judged).ok_or_else(refused)
            }
        };
        orders::answer(order, result, &mut self.outside);
        Ok(())
    }

    /// Imports peers' finds for a bounded share of the time.
    fn import_if_due(&mut self) -> Result<(), CampaignError> {
        if !self.imports.as_ref().is_some_and(Imports::are_due) {
            return Ok(());
        }
        let wall = |campaign: &Self| Effort { runs: 0, time: campaign.elapsed() };
        let (start, now) = (Instant::now(), wall(self));
        let account = &mut self.fuzzer.ledger[Purpose::Imports];
        let Some(imports) = &mut self.imports else { return Ok(()) };
        if !account.has_some(now) {
            return Ok(());
        }
        account.open(now);
        imports.look_if_due(&mut self.outside);
        while start.elapsed() < IMPORT_SLICE && self.import_next()? {}
        let end = wall(self);
        self.fuzzer.ledger[Purpose::Imports].close(end);
        self.outside.statistics.sync += start.elapsed();
        Ok(())
    }

    /// Imports everything available, unless the user does not want to wait.
    pub(super) fn import_all(&mut self) -> Result<(), CampaignError> {
        let start = Instant::now();
        // Once all seeds are imported, a request to stop has already led here, so only a further one counts.
        let stop = self.outside.limits.stop.clone();
        let ends = self.state.is_complete && stop.is_over();
        let hurries = || if ends { stop.asked_again() } else { stop.is_over() };
        self.imports.iter_mut().for_each(|imports| imports.look(&mut self.outside));
        while !hurries() && self.import_next()? {
            self.carry_out_orders()?;
            self.tick_if_due();
        }
        self.imports.iter_mut().for_each(|imports| imports.note_positions(&mut self.outside));
        self.outside.statistics.sync += start.elapsed();
        Ok(())
    }

    /// Imports the next input; false if there is none.
    fn import_next(&mut self) -> Result<bool, CampaignError> {
        let next = self.imports.as_mut().and_then(Imports::next);
        let Some(Import { peer, number, data }) = next else { return Ok(false) };
        let taken = self.take_in(data, Origin::synced(peer, number));
        if taken.as_ref().is_err_and(CampaignError::is_interruption) {
            // Not judged, so the next process must read it again.
            self.imports = None;
        }
        taken.map(|_| true)
    }

    /// Runs and judges an input from elsewhere, and keeps it if it is interesting. None if its length is not allowed.
    fn take_in(
        &mut self,
        bytes: Vec<u8>,
        origin: Origin,
    ) -> Result<Option<InjectionOutcome>, CampaignError> {
        let mutation = &self.fuzzer.mutation;
        if !(mutation.min_len..=mutation.max_len).contains(&bytes.len()) {
            return Ok(None);
        }
        let verdict = self.door().run(Run::judged(&bytes))?.verdict.unwrap_or_default();
        let candidate = Candidate { bytes, origin };
        let outcome = admit(&mut self.door(), &candidate, verdict)?;
        if outcome.kept {
            self.door().inspect(&candidate)?;
        }
        let Outcome { kept, crash, hang, stored } = outcome;
        let (input_id, path) = stored.map(|stored| (stored.number, stored.path)).unzip();
        Ok(Some(InjectionOutcome { kept, crash, hang, input_id, path }))
    }
}
