//! Storing what was found: on disk first, then it is reported.

use super::{Campaign, CampaignError};
use crate::engine::corpus::{Origin, SeedId, Step, names};
use crate::engine::domain::KeyGain;
use crate::engine::fuzzer::admit::{Crash, NewSeed, Stored, StoredSeed};
use crate::engine::mutate::Candidate;
use crate::event::{DomainGain, Event, MOST_GAINS, Source};

/// Most crashes and hangs that are stored. A campaign beyond them has a target that crashes on nearly
/// everything. AFL++ 4.40c stops at 25600 and 512.
pub(super) const MAX_CRASHES: u64 = 10_000;
pub(super) const MAX_HANGS: u64 = 500;

fn source(origin: &Origin) -> Source {
    match origin.step {
        Step::Synced { peer, .. } => Source::Import { peer: peer.to_owned() },
        Step::Injected { .. } => Source::Inject,
        Step::At { .. } | Step::Stacked { .. } | Step::Custom { .. } => Source::Own,
    }
}

impl Campaign {
    pub(super) fn store_new_seed(
        &mut self,
        new: &NewSeed<'_>,
    ) -> Result<StoredSeed, CampaignError> {
        let NewSeed { id, candidate, new_edge, waypoint, slow } = *new;
        let description = self.description(candidate);
        let found = names::Found { slow, ..self.found(candidate, description) };
        let name = names::queue_name(id, &found, new_edge, waypoint);
        let path = self.write(|output| output.save_seed(&name, &candidate.bytes))?;
        let data = self.tell_mutators(&path, candidate.origin.parent(), candidate.bytes.clone());
        Ok(StoredSeed { name, path, data })
    }

    pub(super) fn report_seed(&mut self, new: &NewSeed<'_>, gains: &[KeyGain], stored: &Stored) {
        self.statistics.corpus_grew();
        let NewSeed { id, candidate, new_edge, waypoint, .. } = *new;
        self.statistics.imported += u64::from(candidate.origin.parent().is_none());
        let (path, gains) = (stored.path.clone(), self.domain_gains(gains));
        let source = source(&candidate.origin);
        self.bus.send(&Event::SeedSaved { id, path, new_edge, waypoint, source, gains });
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

    /// Statistics, and the log of FuzzFactory.
    pub(super) fn note_gains(&mut self, id: SeedId, gains: &[KeyGain]) {
        let usable = !self.fuzzer.corpus[id].disabled;
        self.log_gains(gains);
        let path = self.output.seed_path(&self.fuzzer.corpus[id].name);
        self.log.adding(&path);
        let mut moved = vec![false; self.fuzzer.target().domains().len()];
        for gain in gains {
            let domains = self.fuzzer.target().domains();
            let index = domains.partition_point(|domain| domain.end() <= gain.key);
            moved[index] = true;
            self.statistics.domain_moved(index, gain);
            if usable {
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
    pub(super) fn store_record(
        &mut self,
        candidate: &Candidate,
        gains: &[KeyGain],
    ) -> Result<(), CampaignError> {
        self.log_gains(gains);
        let name = format!("id_{:06}", self.execs());
        self.write(|output| output.save_recorded(&name, &candidate.bytes))?;
        Ok(())
    }

    pub(super) fn store_crash(
        &mut self,
        candidate: &Candidate,
        crash: Crash,
    ) -> Result<Option<Stored>, CampaignError> {
        let Crash { signal, unique, in_sanitizer } = crash;
        self.statistics.total_crashes += 1;
        let number = self.statistics.saved_crashes;
        if !unique || number >= MAX_CRASHES {
            return Ok(None);
        }
        let description = self.description(candidate);
        let found = self.found(candidate, description);
        let found = names::Found { sanitizer: in_sanitizer, ..found };
        let name = names::crash_name(number, signal, &found);
        let path = self.write(|output| output.save_crash(&name, &candidate.bytes))?;
        if in_sanitizer {
            self.statistics.sanitizer_crashes += 1;
        } else {
            self.confirm_crash(number)?;
        }
        self.statistics.crash_saved(self.execs());
        self.start_triage();
        let (stored, source) = (Stored { number, path: path.clone() }, source(&candidate.origin));
        self.bus.send(&Event::CrashSaved { number, path, signal, source });
        Ok(Some(stored))
    }

    pub(super) fn store_hang(&mut self, candidate: &Candidate) -> Result<Stored, CampaignError> {
        let description = self.description(candidate);
        let found = self.found(candidate, description);
        let number = self.statistics.saved_hangs;
        let name = names::hang_name(number, &found);
        let path = self.write(|output| output.save_hang(&name, &candidate.bytes))?;
        self.statistics.hang_saved();
        self.start_triage();
        let (stored, source) = (Stored { number, path: path.clone() }, source(&candidate.origin));
        self.bus.send(&Event::HangSaved { number, path, source });
        Ok(stored)
    }

    /// At the end.
    pub(super) fn tell_doubtful(&mut self) {
        let count = self.fuzzer.admission.doubtful_timeouts();
        if count > 0 {
            self.warn(format!(
                "timeouts of a new kind that were not run again with the hang timeout: {count}; others used \
                 up a tenth of the time (a smaller AFL_HANG_TMOUT makes each cost less)"
            ));
        }
    }
}
