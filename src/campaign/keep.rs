//! Stores finds: first on disk, then as events.

use super::CampaignError;
use super::mutators::description;
use super::outside::Outside;
use crate::engine::corpus::{Origin, Seed, SeedId, Step, names};
use crate::engine::domain::KeyGain;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::admit::{Crash, NewSeed, Stored, StoredSeed};
use crate::event::{Event, InputOrigin};
use crate::mutate::Candidate;
use crate::mutators::Mutators;

/// Maximum number of stored crashes and hangs. A target beyond them crashes on nearly everything. AFL++ 4.40c stops
/// at 25600 and 512.
pub(super) const MAX_CRASHES: u64 = 10_000;
pub(super) const MAX_HANGS: u64 = 500;

fn source(origin: &Origin) -> InputOrigin {
    match origin.step {
        Step::Synced { peer, .. } => InputOrigin::Import { peer: peer.to_owned() },
        Step::Injected { .. } => InputOrigin::Inject,
        Step::At { .. } | Step::Stacked { .. } | Step::Custom { .. } => InputOrigin::Own,
    }
}

impl Outside {
    pub(super) fn store_seed(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        new: &NewSeed<'_>,
    ) -> Result<StoredSeed, CampaignError> {
        let NewSeed { id, candidate, new_edge, waypoint, slow } = *new;
        let found = names::Found { slow, ..self.found(fuzzer, candidate) };
        let name = names::queue_name(id, &found, new_edge, waypoint);
        let path = self.write(fuzzer, |output| output.save_seed(&name, &candidate.bytes))?;
        let (parent, data) = (candidate.origin.parent(), candidate.bytes.clone());
        let data = self.announce_file(fuzzer, &path, parent, data);
        Ok(StoredSeed { name, path, data })
    }

    pub(super) fn report_seed(
        &mut self,
        fuzzer: &Fuzzer<Mutators>,
        new: &NewSeed<'_>,
        gains: &[KeyGain],
        stored: &Stored,
    ) {
        self.statistics.corpus_grew();
        let NewSeed { id, candidate, new_edge, waypoint, .. } = *new;
        self.statistics.imported += u64::from(candidate.origin.parent().is_none());
        let (path, gains) = (stored.path.clone(), self.reports.domain_gains(fuzzer, gains));
        let source = source(&candidate.origin);
        self.reports.bus.send(&Event::SeedSaved { id, path, new_edge, waypoint, source, gains });
    }

    /// Data of a find for its file name.
    fn found<'a>(
        &'a self,
        fuzzer: &mut Fuzzer<Mutators>,
        candidate: &'a Candidate,
    ) -> names::Found<'a> {
        names::Found {
            origin: &candidate.origin,
            description: description(&mut fuzzer.mutators, candidate),
            run_time_ms: self.statistics.campaign_ms(),
            execs: self.statistics.execs(fuzzer),
            slow: false,
            sanitizer: false,
            extension: self.extension.as_deref(),
        }
    }

    /// Notes what a seed gained: in the statistics, and in the log of FuzzFactory.
    pub(super) fn note_gains(&mut self, fuzzer: &Fuzzer<Mutators>, id: SeedId, gains: &[KeyGain]) {
        self.reports.log_seed(fuzzer, &self.output, id, gains);
        self.statistics.domains_moved(fuzzer, gains);
    }

    /// `--dsf-record`: stores the input separately; it does not guide the search.
    pub(super) fn store_record(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        candidate: &Candidate,
        gains: &[KeyGain],
    ) -> Result<(), CampaignError> {
        self.reports.log_gains(fuzzer, gains);
        let name = format!("id_{:06}", self.statistics.execs(fuzzer));
        self.write(fuzzer, |output| output.save_recorded(&name, &candidate.bytes))?;
        Ok(())
    }

    /// Counts a crash, and writes the first one of its kind. It is reported after its confirmation.
    pub(super) fn store_crash(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        candidate: &Candidate,
        crash: Crash,
    ) -> Result<Option<Stored>, CampaignError> {
        let Crash { signal, unique, in_sanitizer } = crash;
        self.statistics.total_crashes += 1;
        let number = self.statistics.saved_crashes;
        if !unique || number >= MAX_CRASHES {
            return Ok(None);
        }
        let found = self.found(fuzzer, candidate);
        let found = names::Found { sanitizer: in_sanitizer, ..found };
        let name = names::crash_name(number, signal, &found);
        let path = self.write(fuzzer, |output| output.save_crash(&name, &candidate.bytes))?;
        self.statistics.sanitizer_crashes += u64::from(in_sanitizer);
        Ok(Some(Stored { number, path }))
    }

    pub(super) fn report_crash(
        &mut self,
        fuzzer: &Fuzzer<Mutators>,
        origin: &Origin,
        signal: i32,
        stored: &Stored,
    ) {
        self.statistics.crash_saved(self.statistics.execs(fuzzer));
        self.start_triage();
        let (number, path, source) = (stored.number, stored.path.clone(), source(origin));
        self.reports.bus.send(&Event::CrashSaved { number, path, signal, source });
    }

    pub(super) fn store_hang(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        candidate: &Candidate,
    ) -> Result<Stored, CampaignError> {
        let number = self.statistics.saved_hangs;
        let name = names::hang_name(number, &self.found(fuzzer, candidate));
        let path = self.write(fuzzer, |output| output.save_hang(&name, &candidate.bytes))?;
        self.statistics.hang_saved();
        self.start_triage();
        let (stored, source) = (Stored { number, path: path.clone() }, source(&candidate.origin));
        self.reports.bus.send(&Event::HangSaved { number, path, source });
        Ok(stored)
    }

    /// Counts a run that ended the fork server, and writes the first one among the hangs: it is no crash of the
    /// target, and triage would find nothing in it.
    pub(super) fn store_lost(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        candidate: &Candidate,
        unique: bool,
        how: &str,
    ) -> Result<Option<Stored>, CampaignError> {
        self.statistics.lost_runs += 1;
        let number = self.statistics.saved_hangs;
        if !unique || number >= MAX_HANGS {
            return Ok(None);
        }
        let name = names::lost_name(number, &self.found(fuzzer, candidate));
        let path = self.write(fuzzer, |output| output.save_hang(&name, &candidate.bytes))?;
        self.statistics.hang_saved();
        self.warn(format!(
            "{}: {how}; does the target signal its parent or its process group, or write where it must not?",
            path.display()
        ));
        let (stored, source) = (Stored { number, path: path.clone() }, source(&candidate.origin));
        self.reports.bus.send(&Event::HangSaved { number, path, source });
        Ok(Some(stored))
    }

    /// Creates the output folder again if it was removed, and writes the queue into it. Returns true if it did.
    pub(super) fn restore_folder(
        &mut self,
        fuzzer: &Fuzzer<Mutators>,
    ) -> Result<bool, CampaignError> {
        if !self.output.restore()? {
            return Ok(false);
        }
        let count = self.write_gone(fuzzer)?;
        let queue = self.output.seed_path("");
        self.warn(format!(
            "{} was removed while the campaign ran: it is made again, with the {count} files of its queue; crashes \
             and hangs that were in it are lost",
            queue.parent().unwrap_or(&queue).display()
        ));
        Ok(true)
    }

    /// Writes queue files that were deleted during the campaign: their content is in memory, and the next process
    /// needs them.
    pub(super) fn restore_queue(&mut self, fuzzer: &Fuzzer<Mutators>) -> Result<(), CampaignError> {
        if self.restore_folder(fuzzer)? {
            return Ok(());
        }
        let count = self.write_gone(fuzzer)?;
        if count > 0 {
            let queue = self.output.seed_path("");
            self.warn(format!(
                "{count} files of {} are gone: they are written again",
                queue.display()
            ));
        }
        Ok(())
    }

    /// Writes the seeds whose files are missing in the queue, and returns their number.
    fn write_gone(&mut self, fuzzer: &Fuzzer<Mutators>) -> Result<usize, CampaignError> {
        let there = self.output.queue_names()?;
        let is_gone = |seed: &&Seed| !seed.name.is_empty() && !there.contains(&seed.name);
        let gone: Vec<&Seed> = fuzzer.corpus.iter().filter(is_gone).collect();
        for seed in &gone {
            self.output.save_seed(&seed.name, &seed.data)?;
        }
        Ok(gone.len())
    }

    /// Warns of doubtful timeouts at the end.
    pub(super) fn warn_of_doubtful_timeouts(&mut self, fuzzer: &Fuzzer<Mutators>) {
        let count = fuzzer.admission.doubtful_timeouts();
        if count > 0 {
            self.warn(format!(
                "timeouts of a new kind that were not run again with the hang timeout: {count}; others used \
                 up a tenth of the time (a smaller AFL_HANG_TMOUT makes each cost less)"
            ));
        }
    }
}
