//! Keeping what was found: on disk first, then in the corpus.

use std::path::Path;
use std::time::Duration;

use super::{Campaign, CampaignError};
use crate::config::options::{DomainMode, TimeoutSpec};
use crate::engine::calibrate::{self, Calibration};
use crate::engine::corpus::{Origin, Seed, SeedId, Step, names};
use crate::engine::coverage::Novelty;
use crate::engine::domain::KeyGain;
use crate::engine::executor::ExitKind;
use crate::engine::feedback::{Finding, Verdict};
use crate::engine::fuzzer::door::{Door, DoorError, Judging, Run, Seen};
use crate::engine::mutate::Candidate;
use crate::event::{DomainGain, Event, MOST_GAINS, Outcome, Source};

/// Most crashes and hangs that are stored. A campaign beyond them has a target that crashes on nearly
/// everything. AFL++ 4.40c stops at 25600 and 512.
pub(super) const MAX_CRASHES: u64 = 10_000;
pub(super) const MAX_HANGS: u64 = 500;

/// Time after which a slow input is called a hang, unless the user says otherwise; AFL's second.
const HANG_TIMEOUT: Duration = Duration::from_secs(1);

/// Time that new timeouts may cost in addition to a tenth of the campaign's, so that the first are run again at once.
const FIRST_WAITS: Duration = Duration::from_secs(3);
/// Timeouts, and cut runs, that wait for that time.
const MOST_DOUBTFUL: usize = 64;

/// An input that took too long in a new way.
#[derive(Debug)]
pub(super) struct Doubtful {
    candidate: Candidate,
    /// It was cut at the soft limit; else it timed out.
    cut: bool,
}

/// Where an input crashes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CrashIn {
    Target,
    /// Only in a build of `-w`.
    Sanitizer,
}

fn source(origin: &Origin) -> Source {
    match origin.step {
        Step::Synced { peer, .. } => Source::Import { peer: peer.to_owned() },
        Step::Injected { .. } => Source::Inject,
        Step::At { .. } | Step::Stacked { .. } | Step::Custom { .. } => Source::Own,
    }
}

fn saved_as(number: u64, path: &Path) -> Outcome {
    Outcome { input_id: Some(number), path: Some(path.into()), ..Outcome::default() }
}

impl Campaign {
    /// Acts on a verdict.
    pub(super) fn keep_find(
        &mut self,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> Result<Outcome, CampaignError> {
        match verdict.finding {
            Some(Finding::Crash { signal, unique }) => {
                let crash = self.keep_crash(candidate, CrashIn::Target, signal, unique)?;
                if !verdict.is_interesting() {
                    return Ok(crash);
                }
                let seed = self.keep_interesting(candidate, verdict)?;
                Ok(if seed.kept { Outcome { crash: true, ..seed } } else { crash })
            }
            Some(Finding::Hang { unique }) => {
                let hang = self.keep_hang(candidate, unique, &verdict.gains)?;
                if hang.kept || verdict.novelty == Novelty::None {
                    return Ok(hang);
                }
                Ok(Outcome { hang: true, ..self.keep_seed(candidate, verdict)? })
            }
            Some(Finding::Cut { unique }) => {
                self.keep_cut(candidate, unique);
                Ok(Outcome::default())
            }
            None if verdict.is_interesting() => self.keep_interesting(candidate, verdict),
            None => Ok(Outcome::default()),
        }
    }

    fn keep_interesting(
        &mut self,
        candidate: &Candidate,
        mut verdict: Verdict,
    ) -> Result<Outcome, CampaignError> {
        let second = self.confirm(&candidate.bytes, &mut verdict)?;
        let ended_badly = match second {
            Some(Finding::Crash { signal, unique }) => {
                self.keep_crash(candidate, CrashIn::Target, signal, unique)?
            }
            Some(Finding::Hang { unique }) => self.keep_hang(candidate, unique, &[])?,
            Some(Finding::Cut { unique }) => {
                self.keep_cut(candidate, unique);
                Outcome::default()
            }
            None => Outcome::default(),
        };
        if !verdict.is_interesting() {
            return Ok(ended_badly);
        }
        if self.options.domains == DomainMode::Record && !verdict.gains.is_empty() {
            self.record(candidate, &verdict.gains)?;
            if verdict.novelty == Novelty::None {
                return Ok(Outcome::default());
            }
        }
        self.keep_seed(candidate, verdict)
    }

    /// Leaves those of the verdict's gains that a second run shows as well. That run may end badly.
    pub(super) fn confirm(
        &mut self,
        input: &[u8],
        verdict: &mut Verdict,
    ) -> Result<Option<Finding>, CampaignError> {
        if verdict.gains.is_empty() {
            return Ok(None);
        }
        let gains = std::mem::take(&mut verdict.gains);
        let run = Run { judging: Judging::Again(&gains), ..Run::of(input) };
        let second = match self.run(run) {
            // Nothing of them is remembered yet.
            Err(error) if error.is_interruption() => return Ok(None),
            seen => {
                let seen = seen?;
                verdict.gains = seen.confirmed;
                seen.verdict.unwrap_or_default()
            }
        };
        verdict.novelty = verdict.novelty.max(second.novelty);
        Ok(second.finding)
    }

    fn keep_seed(
        &mut self,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> Result<Outcome, CampaignError> {
        let id = self.fuzzer.corpus.next_id();
        let waypoint = !verdict.gains.is_empty() && self.fuzzer.guided();
        let new_edge = verdict.novelty == Novelty::Edge;
        let description = self.description(candidate);
        let slow = matches!(verdict.finding, Some(Finding::Hang { .. }));
        let found = names::Found { slow, ..self.found(candidate, description) };
        let name = names::queue_name(id, &found, new_edge, waypoint);
        let path = self.write(|output| output.save_seed(&name, &candidate.bytes))?;
        let parent = candidate.origin.parent();
        let data = self.tell_mutators(&path, parent, candidate.bytes.clone());
        let calibration = self.calibrate(&data, waypoint && !new_edge)?;
        let seed = Seed {
            id,
            name,
            data: data.into(),
            parent,
            depth: parent.map_or(0, |parent| self.fuzzer.corpus[parent].depth + 1),
            changed_at: candidate.origin.step.position(),
            new_edge,
            waypoint,
            handicap: u32::try_from(self.fuzzer.scheduler.cycles().saturating_sub(1))
                .unwrap_or(u32::MAX),
            ..Seed::default()
        };
        self.add_seed(seed, &path, calibration, &verdict.gains, Some(candidate))?;
        let execs = self.fuzzer.target().execs();
        match parent {
            Some(_) => {
                self.statistics.corpus_grew();
                self.fuzzer.progress.seed_found(candidate.origin.step.op(), execs);
                self.fuzzer.mutators.found(candidate.origin.by);
            }
            None => {
                self.statistics.corpus_grew();
                self.statistics.imported += 1;
                self.fuzzer.progress.corpus_grew(execs);
            }
        }
        let gains = if waypoint { self.domain_gains(&verdict.gains) } else { Vec::new() };
        let (source, saved) = (source(&candidate.origin), saved_as(id.0.into(), &path));
        self.bus.send(&Event::SeedSaved { id, path, new_edge, waypoint, source, gains });
        Ok(Outcome { kept: true, ..saved })
    }

    /// What a waypoint brought, by domain.
    fn domain_gains(&self, gains: &[KeyGain]) -> Vec<DomainGain> {
        let domains = self.fuzzer.judge().aggregates().domains().iter().enumerate();
        let told = domains.filter_map(|(index, domain)| {
            let of_domain = gains.iter().filter(|gain| domain.holds(gain.key));
            let keys = of_domain.map(|gain| (gain.key, gain.after));
            let (key, value) = domain.reducer.most_remarkable(keys.clone())?;
            Some(DomainGain {
                domain: domain.label(index),
                key,
                value,
                place: self.names().place(key).unwrap_or_default(),
                keys: u32::try_from(keys.count()).unwrap_or(u32::MAX),
            })
        });
        told.take(MOST_GAINS).collect()
    }

    /// What a file name says of a find.
    fn found<'a>(
        &'a self,
        candidate: &'a Candidate,
        description: Option<String>,
    ) -> names::Found<'a> {
        names::Found {
            origin: &candidate.origin,
            description,
            run_time_ms: self.statistics.campaign_ms(),
            execs: self.execs(),
            slow: false,
            sanitizer: false,
            extension: self.options.output.extension.as_deref(),
        }
    }

    /// Runs an input several times, or few times.
    pub(super) fn calibrate(
        &mut self,
        input: &[u8],
        quick: bool,
    ) -> Result<Calibration, CampaignError> {
        self.calibrated(input, self.calibration_runs(quick))
    }

    fn calibration_runs(&self, quick: bool) -> u32 {
        let fast = quick || self.options.calibration.fast;
        if fast { calibrate::RUNS_FAST } else { calibrate::RUNS }
    }

    /// The same for a starting seed: the run that was judged is the first of them.
    pub(super) fn calibrate_start(&mut self, input: &[u8]) -> Result<Calibration, CampaignError> {
        if self.options.calibration.skip_at_start {
            return self.calibrated(input, 1);
        }
        self.calibrated(input, self.calibration_runs(false) - 1)
    }

    /// Puts a seed, already on disk, into the corpus. It owns what it improved.
    pub(super) fn add_seed(
        &mut self,
        mut seed: Seed,
        path: &Path,
        calibration: Calibration,
        gains: &[KeyGain],
        candidate: Option<&Candidate>,
    ) -> Result<(), CampaignError> {
        let id = seed.id;
        seed.exec_us = calibration.exec_us;
        seed.edges = u32::try_from(calibration.trace.len()).unwrap_or(u32::MAX);
        seed.trace = calibration.trace;
        seed.path_hash = calibration.path_hash;
        seed.variable = !calibration.unstable.is_empty();
        seed.disabled |= calibration.failed.is_some();
        let usable = !seed.disabled;
        self.fuzzer.corpus.add(seed);
        if usable {
            self.fuzzer.scheduler.added(&mut self.fuzzer.corpus, id);
            for (key, bits) in calibration.reached {
                self.fuzzer.scheduler.reaches(&self.fuzzer.corpus, id, key, bits);
            }
        }
        if self.fuzzer.judge().watches_domains() {
            self.note_gains(id, path, gains, usable);
        }
        if let (Some(Finding::Crash { signal, unique: true }), Some(candidate)) =
            (calibration.finding, candidate)
        {
            self.keep_crash(candidate, CrashIn::Target, signal, true)?;
        }
        Ok(())
    }

    fn note_gains(&mut self, id: SeedId, path: &Path, gains: &[KeyGain], usable: bool) {
        self.log_gains(gains);
        self.log.adding(path);
        let mut moved = vec![false; self.fuzzer.target().domains().len()];
        for gain in gains {
            let domains = self.fuzzer.target().domains();
            let index = domains.partition_point(|domain| domain.end() <= gain.key);
            moved[index] = true;
            self.statistics.domain_moved(index, gain);
            if usable {
                self.fuzzer.scheduler.owns(&self.fuzzer.corpus, id, gain.key, gain.bits);
                self.log.top_rated(gain.key);
            }
        }
        for (index, _) in moved.iter().enumerate().filter(|(_, moved)| **moved) {
            self.statistics.waypoint_of(index);
        }
    }

    /// A key's name stands in front of its first update.
    fn log_gains(&mut self, gains: &[KeyGain]) {
        for gain in gains {
            if self.log.meets(gain.key) {
                let name = self.names().line(gain.key);
                self.log.name(gain.key, &name);
            }
            self.log.update(gain.key, gain.value, gain.after, gain.before);
        }
    }

    /// `--dsf-record`: the input is written aside and guides nothing.
    fn record(&mut self, candidate: &Candidate, gains: &[KeyGain]) -> Result<(), CampaignError> {
        self.log_gains(gains);
        let name = format!("id_{:06}", self.execs());
        self.write(|output| output.save_recorded(&name, &candidate.bytes))?;
        Ok(())
    }

    pub(super) fn keep_crash(
        &mut self,
        candidate: &Candidate,
        place: CrashIn,
        signal: i32,
        unique: bool,
    ) -> Result<Outcome, CampaignError> {
        self.statistics.total_crashes += 1;
        let number = self.statistics.saved_crashes;
        if !unique || number >= MAX_CRASHES {
            return Ok(Outcome { crash: true, ..Outcome::default() });
        }
        let description = self.description(candidate);
        let found = self.found(candidate, description);
        let found = names::Found { sanitizer: place == CrashIn::Sanitizer, ..found };
        let name = names::crash_name(number, signal, &found);
        let path = self.write(|output| output.save_crash(&name, &candidate.bytes))?;
        match place {
            CrashIn::Target => self.confirm_crash(number)?,
            CrashIn::Sanitizer => self.statistics.sanitizer_crashes += 1,
        }
        self.statistics.crash_saved(self.execs());
        self.start_triage();
        self.fuzzer.mutators.found(candidate.origin.by);
        let (source, saved) = (source(&candidate.origin), saved_as(number, &path));
        self.bus.send(&Event::CrashSaved { number, path, signal, source });
        Ok(Outcome { crash: true, ..saved })
    }

    /// A new kind of timeout is run once more with the hang timeout: it may only be slow, or crash
    /// later. So is one that was about to improve a domain, because some domains look for slow
    /// inputs. Both wait until a tenth of the time has room for it.
    fn keep_hang(
        &mut self,
        candidate: &Candidate,
        unique: bool,
        gains: &[KeyGain],
    ) -> Result<Outcome, CampaignError> {
        self.statistics.total_timeouts += 1;
        let lost = Outcome { hang: true, ..Outcome::default() };
        let stored = !self.options.findings.ignore_timeouts;
        let unique = unique && stored && self.statistics.saved_hangs < MAX_HANGS;
        let promising = self.fuzzer.guided() && !gains.is_empty() && self.may_wait();
        if !unique && !promising {
            return Ok(lost);
        }
        let patient = self.options.target.hang_timeout.unwrap_or(HANG_TIMEOUT);
        if patient <= self.fuzzer.timeout() {
            return if unique { self.save_hang(candidate) } else { Ok(lost) };
        }
        if !self.may_wait() {
            self.put_off(candidate, false);
            return Ok(lost);
        }
        self.look_again(candidate, unique, patient)
    }

    /// A run that was cut is no timeout, and says little: a new kind is run again as soon as there is time.
    fn keep_cut(&mut self, candidate: &Candidate, unique: bool) {
        self.statistics.cut_runs += 1;
        if unique {
            self.put_off(candidate, true);
        }
    }

    fn put_off(&mut self, candidate: &Candidate, cut: bool) {
        if self.doubtful.len() < MOST_DOUBTFUL {
            self.doubtful.push_back(Doubtful { candidate: candidate.clone(), cut });
        }
    }

    /// What was put off, as far as there is time for it.
    pub(super) fn keep_doubtful(&mut self) -> Result<(), CampaignError> {
        let hang = self.options.target.hang_timeout.unwrap_or(HANG_TIMEOUT);
        while let Some(next) = self.doubtful.front() {
            let may_wait = if next.cut { self.has_time_to_wait() } else { self.may_wait() };
            if !may_wait || self.is_over() {
                break;
            }
            let Some(Doubtful { candidate, cut }) = self.doubtful.pop_front() else { break };
            if cut || self.statistics.saved_hangs < MAX_HANGS {
                let patient = hang.max(self.fuzzer.timeout());
                let again = self.look_again(&candidate, !cut, patient)?;
                self.statistics.total_timeouts += u64::from(cut && again.hang);
            }
        }
        Ok(())
    }

    /// At the end.
    pub(super) fn tell_doubtful(&mut self) {
        let count = self.doubtful.iter().filter(|doubtful| !doubtful.cut).count();
        if count > 0 {
            self.warn(format!(
                "timeouts of a new kind that were not run again with the hang timeout: {count}; others used \
                 up a tenth of the time (a smaller AFL_HANG_TMOUT makes each cost less)"
            ));
        }
    }

    fn look_again(
        &mut self,
        candidate: &Candidate,
        unique: bool,
        patient: Duration,
    ) -> Result<Outcome, CampaignError> {
        let (exit, verdict, duration) = self.run_patiently(candidate, patient)?;
        let finding = verdict.as_ref().and_then(|verdict| verdict.finding);
        let unique = unique || finding == Some(Finding::Hang { unique: true });
        let stored = !self.options.findings.ignore_timeouts;
        match exit {
            ExitKind::Hang if unique && stored && self.statistics.saved_hangs < MAX_HANGS => {
                self.save_hang(candidate)
            }
            ExitKind::Hang => Ok(Outcome { hang: true, ..Outcome::default() }),
            _ => self.keep_late(candidate, verdict, duration),
        }
    }

    fn save_hang(&mut self, candidate: &Candidate) -> Result<Outcome, CampaignError> {
        let description = self.description(candidate);
        let found = self.found(candidate, description);
        let number = self.statistics.saved_hangs;
        let name = names::hang_name(number, &found);
        let path = self.write(|output| output.save_hang(&name, &candidate.bytes))?;
        self.statistics.hang_saved();
        self.start_triage();
        let (source, saved) = (source(&candidate.origin), saved_as(number, &path));
        self.bus.send(&Event::HangSaved { number, path, source });
        Ok(Outcome { hang: true, ..saved })
    }

    /// Endless loops look promising, too: no more than a tenth of the time is spent on waiting, beyond the first
    /// few.
    fn may_wait(&self) -> bool {
        self.statistics.waited <= FIRST_WAITS + self.statistics.started.elapsed() / 10
    }

    /// The same without the first few.
    fn has_time_to_wait(&self) -> bool {
        self.statistics.waited <= self.statistics.started.elapsed() / 10
    }

    /// No verdict of a run that is too slow for a seed: what it showed has to stay new for others.
    fn run_patiently(
        &mut self,
        candidate: &Candidate,
        patient: Duration,
    ) -> Result<(ExitKind, Option<Verdict>, Duration), CampaignError> {
        let (usual, room) = (self.fuzzer.timeout(), self.room_for_slow());
        let (timeout, judging) = (Some(patient), Judging::InTime { room });
        match self.run(Run { timeout, judging, ..Run::of(&candidate.bytes) }) {
            Err(error) if error.is_interruption() => Ok((ExitKind::Hang, None, usual)),
            seen => {
                let Seen { exit, verdict, duration, .. } = seen?;
                self.statistics.waited += duration;
                Ok((exit, verdict, duration))
            }
        }
    }

    /// How far the time limit may move for a slow input that improves a domain. As a seed it would time out in
    /// every turn otherwise.
    fn room_for_slow(&self) -> Option<Duration> {
        match self.options.target.timeout {
            _ if !self.fuzzer.guided() => None,
            TimeoutSpec::Fixed(_) => None,
            TimeoutSpec::Upto(limit) => Some(limit),
            TimeoutSpec::Auto => Some(HANG_TIMEOUT),
        }
    }

    /// An input that ended well or crashed only when it got more time, or only the second time.
    fn keep_late(
        &mut self,
        candidate: &Candidate,
        verdict: Option<Verdict>,
        duration: Duration,
    ) -> Result<Outcome, CampaignError> {
        let slow = Outcome { hang: true, ..Outcome::default() };
        let Some(verdict) = verdict else { return Ok(slow) };
        if let Some(Finding::Crash { signal, unique }) = verdict.finding {
            return self.keep_crash(candidate, CrashIn::Target, signal, unique);
        }
        if duration > self.fuzzer.timeout() {
            let Some(limit) = self.room_for_slow() else { return Ok(slow) };
            self.fuzzer.set_timeout((duration * 2).min(limit));
        }
        self.keep_interesting(candidate, verdict)
    }
}
