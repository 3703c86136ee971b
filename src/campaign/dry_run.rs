//! The dry run: stores every starting seed under its id, then runs, judges and calibrates it, and derives the
//! timeout.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keep::{MAX_CRASHES, MAX_HANGS};
use super::outside::Outside;
use super::seeds::{QueuedSeed, Start, corpus_of, list, only_files, read_limited, remove_unpacked};
use super::state::{self, KnownEntries};
use super::{BadSeeds, Campaign, CampaignError, reading};
use crate::config::options::{Input, TimeoutSpec, Wanted};
use crate::disk::output::state::SavedState;
use crate::disk::sessions;
use crate::engine::corpus::{Origin, Seed, SeedId, names};
use crate::engine::executor::ExitKind;
use crate::engine::feedback::Finding;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::admit::{self, Crash};
use crate::engine::fuzzer::door::{Discovery, Host, Judging, Run};
use crate::engine::stage::Stages;
use crate::event::Event;
use crate::mutate::{Candidate, below};
use crate::mutators::Mutators;

/// Constants of AFL's rule for the timeout: a multiple of the seeds' mean time that falls with that time, rounded up
/// to 20 ms, at most one second.
const TIMEOUT_STEP_MS: u128 = 20;
const TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// State of the dry run.
struct DryRun {
    /// Entries that an earlier process ran; `adopted` has those that are unchanged.
    known: KnownEntries,
    adopted: BTreeSet<SeedId>,
    /// The seed that represents each path.
    paths: HashMap<u64, SeedId>,
    total: usize,
    /// Number of inputs that had to be run.
    run: usize,
    /// File of the first seed that the harness rejected.
    first_rejected: Option<PathBuf>,
}

impl DryRun {
    /// Disables an earlier starting seed with the same path that is longer and owns nothing. Returns true if the new
    /// seed is not shorter, and must be disabled instead.
    fn supersede_twin(&self, fuzzer: &mut Fuzzer<Mutators>, path_hash: u64, len: usize) -> bool {
        let Some(&id) = self.paths.get(&path_hash) else { return false };
        let longer = fuzzer.corpus[id].data.len() > len;
        if longer && !fuzzer.scheduler.is_owner(id) {
            fuzzer.corpus[id].disabled = true;
            return false;
        }
        !longer
    }
}

impl Campaign {
    /// Stores, runs, judges and calibrates every seed. Mutators get all files before the first run, as in AFL++.
    pub(super) fn import_seeds(&mut self, stages: &mut Stages<Self>) -> Result<(), CampaignError> {
        let (starts, known) = self.prepare_starts()?;
        let findings = match self.options.input {
            Input::Resume => self.outside.count_findings()?,
            Input::Directory(_) => Vec::new(),
        };
        self.outside.statistics.expect_corpus(corpus_of(&starts));
        let mut dry_run = DryRun {
            known,
            adopted: BTreeSet::new(),
            paths: HashMap::new(),
            total: starts.len(),
            run: 0,
            first_rejected: None,
        };
        let stored = self.store_starts(starts)?;
        self.run_starts(stored, &mut dry_run, stages)?;
        if self.outside.output.resumed() {
            let DryRun { total, run, .. } = dry_run;
            let message = format!("resumed: {total} queue entries, {run} of them run again");
            self.outside.reports.note(message);
        }
        self.report_rejected(dry_run.first_rejected);
        self.replay_crashes(findings)?;
        self.run_empty_input()?;
        self.finish_import()?;
        // If no seed is usable, the next start reads the source again.
        self.outside.output.note_source(None)?;
        remove_unpacked(&self.outside);
        self.state.save(&mut self.fuzzer, &mut self.outside);
        Ok(())
    }

    /// Lists the starting inputs, and those that an earlier process ran. Stores nothing.
    fn prepare_starts(&mut self) -> Result<(Vec<Start>, KnownEntries), CampaignError> {
        let Self { options, fuzzer, outside, state: files, .. } = self;
        let state = files.load(fuzzer, outside);
        let starts = list(&options.input, &state, outside)?;
        if let Input::Directory(dir) = &options.input {
            outside.output.note_source(Some(dir))?;
        }
        if let Some(first) = starts.first() {
            let first = first.read()?;
            self.show_first_session(&first)?;
            self.prepare_mutators(&first, starts.len(), &state)?;
        }
        let known = self.state.take_up(state, &starts, &mut self.fuzzer, &mut self.outside);
        Ok((starts, known))
    }

    /// Runs the first seed once and reports how a target with a socket uses it.
    fn show_first_session(&mut self, seed: &[u8]) -> Result<(), CampaignError> {
        let file = self.outside.output.add_input_path();
        let session = sessions::as_list(seed, self.options.seeds.separator.as_deref());
        let seed = session.as_deref().unwrap_or(seed);
        let Some(seen) = self.fuzzer.target().first_session(seed, &file) else { return Ok(()) };
        match seen.remedy {
            None => self.outside.reports.note(seen.line),
            Some(remedy) if seen.is_used => self.outside.warn(format!("{}: {remedy}", seen.line)),
            Some(remedy) => return Err(CampaignError::NoSession { line: seen.line, remedy }),
        }
        Ok(())
    }

    /// Gives the first of `count` seeds to the mutators, so that modules report errors now, and restores the state of
    /// an earlier process.
    fn prepare_mutators(
        &mut self,
        first: &[u8],
        count: usize,
        state: &SavedState,
    ) -> Result<(), CampaignError> {
        let only = self.options.custom.killerbeez.only;
        if only && count != 1 && self.options.input != Input::Resume {
            return Err(CampaignError::OneSeed { count });
        }
        let mutators = &mut self.fuzzer.mutators;
        mutators.check(first).map_err(CampaignError::Mutator)?;
        mutators.restore(&state.mutators);
        self.state.module.load(mutators)
    }

    fn store_starts(&mut self, mut starts: Vec<Start>) -> Result<Vec<QueuedSeed>, CampaignError> {
        let Self { options, fuzzer, outside, .. } = self;
        if options.seeds.shuffle {
            for last in (1..starts.len()).rev() {
                let other = below(&mut fuzzer.rng, u32::try_from(last + 1).unwrap_or(u32::MAX));
                starts.swap(last, other as usize);
            }
        }
        let (mut stored, separator) = (Vec::new(), options.seeds.separator.as_deref());
        for start in starts {
            let next = stored.last().map_or(SeedId(0), |last: &QueuedSeed| SeedId(last.id.0 + 1));
            stored.push(outside.store_start(fuzzer, start, separator, next)?);
        }
        outside.warn_of_cut_seeds(fuzzer.mutation.max_len, &stored);
        Ok(stored)
    }

    fn run_starts(
        &mut self,
        stored: Vec<QueuedSeed>,
        dry_run: &mut DryRun,
        stages: &mut Stages<Self>,
    ) -> Result<(), CampaignError> {
        self.outside.reports.note(format!("dry run of {} seeds", stored.len()));
        let (count, mut taken) = (stored.len(), 0);
        let stop = self.outside.limits.stop.clone();
        for (index, seed) in stored.into_iter().enumerate() {
            // Entries of an earlier campaign are imported whatever its limit was.
            let execs = self.outside.statistics.execs(&self.fuzzer);
            let is_out_of_runs = self.outside.limits.is_out_of_runs(execs);
            if stop.is_over() || (is_out_of_runs && !self.outside.output.resumed()) {
                break;
            }
            taken = index + 1;
            self.fill_gap(seed.id, &dry_run.known);
            self.import(seed, index, dry_run)?;
            if dry_run.known.is_empty() && !self.state.has_known {
                self.restore_stages(dry_run, stages);
            }
            self.carry_out_orders()?;
            self.tick_if_due();
        }
        self.state.is_complete = taken == count && !stop.is_over();
        if self.state.is_complete && !self.state.has_known {
            self.restore_stages(dry_run, stages);
        }
        Ok(())
    }

    /// Restores the stages, once all seed data of an earlier process is in the corpus.
    fn restore_stages(&mut self, dry_run: &DryRun, stages: &mut Stages<Self>) {
        let Self { fuzzer, outside, state, .. } = self;
        state.has_known = true;
        state.restore_stages(stages, fuzzer, &dry_run.adopted, outside);
    }

    /// Keeps the place of a number missing in a resumed queue: ids never change. An earlier process leaves a gap for
    /// each seed that it rejected, and an entry without a name in its state.
    fn fill_gap(&mut self, id: SeedId, known: &KnownEntries) {
        let Self { fuzzer: Fuzzer { corpus, .. }, outside, .. } = self;
        if corpus.next_id() < id && !known.contains_key("") {
            outside.warn(format!("seed {} is missing in the queue", corpus.next_id().0));
        }
        while corpus.next_id() < id {
            let id = corpus.next_id();
            corpus.add(Seed { id, disabled: true, ..Seed::default() });
        }
    }

    fn import(
        &mut self,
        stored: QueuedSeed,
        index: usize,
        dry_run: &mut DryRun,
    ) -> Result<(), CampaignError> {
        let QueuedSeed { id, name, path, data, from, .. } = stored;
        let mut seed = self.starting_seed(id, name, &data);
        if let Some(known) = dry_run.known.remove(&seed.name)
            && state::adopt(&mut self.fuzzer, &seed, &known)
        {
            dry_run.adopted.insert(id);
            return Ok(());
        }
        dry_run.run += 1;
        let rejected_before = self.fuzzer.target().rejected_runs();
        let seen = self.door().run(Run::judged(&data))?;
        let (exit, mut verdict) = (seen.exit, seen.verdict.unwrap_or_default());
        if exit == ExitKind::Ok && self.fuzzer.target().rejected_runs() != rejected_before {
            return self.reject(id, from, &path, dry_run);
        }
        self.outside.statistics.crashing_seeds += u64::from(matches!(exit, ExitKind::Crash { .. }));
        if !self.fuzzer.judge().accepts(exit) {
            self.bad_seed(from, exit, &data, verdict.finding)?;
            seed.disabled = true;
            self.fuzzer.corpus.add(seed);
            return Ok(());
        }
        // An unreliably crashing seed is the user's own file, so the result is ignored.
        _ = admit::confirm(&mut self.door(), &data, &mut verdict)?;
        let gains = verdict.gains;
        let runs = self.start_calibration_runs();
        let calibration = self.door().calibrated(&data, runs)?;
        if let Some(exit) = calibration.failed {
            self.bad_seed(from, exit, &data, calibration.finding)?;
        }
        let path_hash = calibration.path_hash;
        if gains.is_empty() && dry_run.supersede_twin(&mut self.fuzzer, path_hash, data.len()) {
            seed.disabled = true;
        }
        admit::add_seed(&mut self.door(), seed, calibration, &gains);
        self.door().inspect(&Candidate { bytes: data, origin: Origin::default() })?;
        if !self.fuzzer.corpus[id].disabled {
            dry_run.paths.insert(path_hash, id);
        }
        let (index, total) = (index + 1, dry_run.total);
        self.outside.reports.bus.send(&Event::SeedImported { id, path, index, total });
        Ok(())
    }

    /// Removes the file from the queue; the user's own stays. The number is not reused.
    fn reject(
        &mut self,
        id: SeedId,
        from: PathBuf,
        path: &Path,
        dry_run: &mut DryRun,
    ) -> Result<(), CampaignError> {
        if self.options.seeds.exit_on_issues {
            return Err(CampaignError::BadSeed { path: from, what: "is rejected by the harness" });
        }
        self.outside.statistics.bad_seeds.rejected += 1;
        _ = std::fs::remove_file(path);
        self.fuzzer.corpus.add(Seed { id, disabled: true, ..Seed::default() });
        dry_run.first_rejected.get_or_insert(from);
        Ok(())
    }

    fn report_rejected(&mut self, first: Option<PathBuf>) {
        let Some(first) = first else { return };
        let count = self.outside.statistics.bad_seeds.rejected;
        self.outside.warn(format!(
            "{count} seeds left out: LLVMFuzzerTestOneInput rejects them (it returns -1), for example {first:?}"
        ));
    }

    /// Number of further calibration runs; the judged run is the first.
    fn start_calibration_runs(&self) -> u32 {
        match self.options.calibration.skip_at_start {
            true => 1,
            false => self.fuzzer.admission.options.calibration_runs - 1,
        }
    }

    fn starting_seed(&self, id: SeedId, name: String, data: &[u8]) -> Seed {
        let parsed = names::parse(&name);
        // An imported file has the number of another queue.
        let own = parsed.as_ref().filter(|parsed| parsed.peer.is_none());
        let source = own.and_then(|parsed| parsed.src).map(SeedId);
        let parent = source.filter(|source| *source < id);
        Seed {
            id,
            data: data.into(),
            parent,
            depth: parent.map_or(0, |parent| self.fuzzer.corpus[parent].depth + 1),
            new_edge: parsed.as_ref().is_some_and(|parsed| parsed.new_edge),
            waypoint: parsed.as_ref().is_some_and(|parsed| parsed.waypoint),
            det_done: self.outside.output.det_done(&name),
            name,
            ..Seed::default()
        }
    }

    fn bad_seed(
        &mut self,
        path: PathBuf,
        exit: ExitKind,
        data: &[u8],
        finding: Option<Finding>,
    ) -> Result<(), CampaignError> {
        let bad_seeds = &mut self.outside.statistics.bad_seeds;
        match exit {
            ExitKind::Ok => {}
            ExitKind::Hang | ExitKind::Cut => bad_seeds.slow += 1,
            ExitKind::Lost => bad_seeds.lost += 1,
            ExitKind::Crash { .. } | ExitKind::Oom => bad_seeds.crash += 1,
        }
        let what = match exit {
            ExitKind::Ok => "does not crash, as -C wants it",
            ExitKind::Hang | ExitKind::Cut => "takes longer than the timeout",
            ExitKind::Oom => "is killed for its use of memory",
            ExitKind::Lost => "ends the target's fork server",
            ExitKind::Crash { .. } => "crashes the target",
        };
        if self.options.seeds.exit_on_issues {
            return Err(CampaignError::BadSeed { path, what });
        }
        self.outside.warn(format!("the seed {path:?} {what}; it is used for splicing only"));
        let candidate = Candidate { bytes: data.to_vec(), origin: Origin::default() };
        let is_lost = matches!(finding, Some(Finding::Lost { .. }));
        match is_lost || self.options.seeds.crashes_as_finds {
            true => self.store_finding(&candidate, finding),
            false => Ok(()),
        }
    }

    fn store_finding(
        &mut self,
        candidate: &Candidate,
        finding: Option<Finding>,
    ) -> Result<(), CampaignError> {
        let as_what = match finding {
            Some(Finding::Crash { signal, unique }) => {
                Discovery::Crash(Crash::of_target(signal, unique))
            }
            Some(Finding::Hang { unique: true }) => Discovery::Hang,
            Some(Finding::Lost { unique }) => Discovery::Lost { unique },
            _ => return Ok(()),
        };
        self.store(candidate, as_what).map(drop)
    }

    pub(super) fn no_usable_seed(&mut self) -> CampaignError {
        if self.options.seeds.wanted == Wanted::Crashing {
            return CampaignError::NoCrashingSeed;
        }
        let bad_seeds = self.outside.statistics.bad_seeds;
        let file = self.outside.output.add_input_path();
        let mut seeds = self.fuzzer.corpus.iter();
        let is_slow = matches!(bad_seeds, BadSeeds { crash: 0, slow: 1.., lost: 0, .. });
        let seed = seeds.next().filter(|_| is_slow && self.options.target.net.is_none());
        match seed.and_then(|seed| self.fuzzer.target().awaited_socket(&seed.data, &file)) {
            Some(option) => CampaignError::WaitsOnSocket { seeds: bad_seeds, option },
            None => CampaignError::NoUsableSeed(bad_seeds),
        }
    }

    /// Runs saved crashes and hangs of a resumed campaign, so that the judge knows them. A finding that now ends
    /// well, because the target was repaired, is skipped: its coverage is not in the queue.
    fn replay_crashes(&mut self, findings: Vec<PathBuf>) -> Result<(), CampaignError> {
        for path in &findings {
            if self.outside.limits.stop.is_over() {
                break;
            }
            let data = read_limited(path)
                .map_err(|source| CampaignError::Seed { path: path.clone(), source })?;
            self.door().run(Run { judging: Judging::IfBad, ..Run::of(&data) })?;
        }
        Ok(())
    }

    /// libFuzzer runs the empty input first. A failure of a harness on it is a find, but never a seed, because it has
    /// nothing to mutate.
    fn run_empty_input(&mut self) -> Result<(), CampaignError> {
        let is_over = self.outside.limits.stop.is_over();
        if is_over || self.outside.output.resumed() || !self.fuzzer.target().is_harness() {
            return Ok(());
        }
        let seen = self.door().run(Run { judging: Judging::IfBad, ..Run::of(b"") })?;
        let finding = seen.verdict.and_then(|verdict| verdict.finding);
        self.store_finding(&Candidate::default(), finding)
    }

    fn finish_import(&mut self) -> Result<(), CampaignError> {
        if self.state.is_complete && self.fuzzer.corpus.iter().all(|seed| seed.disabled) {
            return Err(self.no_usable_seed());
        }
        self.look_for_reading()?;
        self.look_for_edges();
        let Self { options, fuzzer, outside, .. } = self;
        let usable = || fuzzer.corpus.iter().filter(|seed| !seed.disabled);
        let total: u64 = usable().map(|seed| seed.exec_us).sum();
        let mean = Duration::from_micros(total / usable().count().max(1) as u64);
        fuzzer.set_timeout(derive_timeout(options.target.timeout, mean, fuzzer.progress.slowest));
        if fuzzer.judge().watches_domains() {
            let aggregates = fuzzer.judge().aggregates();
            outside.reports.log.starting_keys(aggregates.domains(), aggregates.values());
        }
        outside.statistics.dry_run_over(self.state.is_complete);
        if self.state.is_complete {
            outside.limits.arm(&outside.statistics);
        }
        Ok(())
    }

    /// Warns if the target seems not to read its input; skipped when a campaign is resumed.
    fn look_for_reading(&mut self) -> Result<(), CampaignError> {
        let known = self.outside.output.resumed() || self.outside.limits.stop.is_over();
        // Mutators may deliver the input in their own way.
        if known || !self.fuzzer.mutators.is_empty() {
            return Ok(());
        }
        let options = self.options.target.clone();
        let warning = reading::warning(&mut self.door(), &options)?;
        warning.into_iter().for_each(|warning| self.outside.warn(warning));
        Ok(())
    }
}

impl Campaign {
    /// Warns if no seed reaches any edge; skipped when a campaign is resumed.
    fn look_for_edges(&mut self) {
        let options = &self.options.target;
        let known = self.outside.output.resumed() || self.outside.limits.stop.is_over();
        let counts = !options.non_instrumented && !self.fuzzer.guided();
        let mut usable = self.fuzzer.corpus.iter().filter(|seed| !seed.disabled).peekable();
        if known || !counts || usable.peek().is_none() || usable.any(|seed| seed.edges > 0) {
            return;
        }
        let remedy = match options.native.is_some() {
            true => "--modules all adds the libraries of the target, --qemu needs no .eh_frame",
            false => {
                "build it with ffuzz-cc; AFL_PRELOAD=FILE if its code is in a library that is loaded later"
            }
        };
        let message = format!("no instrumentation detected: the seeds reach no edge; {remedy}");
        self.outside.warn(message);
    }
}

impl Outside {
    /// Counts the crashes and hangs of an earlier process before anything is run, so that they are shown from the
    /// start. Returns those that its state does not know.
    fn count_findings(&mut self) -> Result<Vec<PathBuf>, CampaignError> {
        let (crashes, hangs) = (self.output.crash_files()?, self.output.hang_files()?);
        let (crashes, hangs) = (only_files(crashes, self), only_files(hangs, self));
        let (crashes_known, hangs_known) =
            (self.statistics.saved_crashes, self.statistics.saved_hangs);
        // Numbers are never reused, even if files were removed.
        self.statistics.saved_crashes = crashes_known.max(next_number(&crashes, MAX_CRASHES));
        self.statistics.saved_hangs = hangs_known.max(next_number(&hangs, MAX_HANGS));
        let unknown = |from| move |file: &(String, PathBuf)| number(&file.0) >= from;
        let crashes = crashes.into_iter().filter(unknown(crashes_known));
        let hangs = hangs.into_iter().filter(unknown(hangs_known));
        Ok(crashes.chain(hangs).map(|(_, path)| path).collect())
    }
}

/// The number after the largest one in use. Larger numbers than `most` are ignored, because no campaign assigns them.
fn next_number(files: &[(String, PathBuf)], most: u64) -> u64 {
    files
        .iter()
        .map(|(name, _)| number(name))
        .filter(|number| *number < most)
        .map(|number| number + 1)
        .max()
        .unwrap_or(0)
}

fn number(name: &str) -> u64 {
    names::parse(name).map_or(0, |parsed| parsed.id.into())
}

fn derive_timeout(spec: TimeoutSpec, mean: Duration, slowest: Duration) -> Duration {
    let limit = match spec {
        TimeoutSpec::Fixed(timeout) => return timeout,
        TimeoutSpec::Upto(limit) => limit,
        TimeoutSpec::Auto => TIMEOUT_MAX,
    };
    let factor = match mean.as_millis() {
        0..=10 => 5,
        11..=50 => 3,
        _ => 2,
    };
    let wanted = (mean * factor).max(slowest).as_millis();
    let rounded = (wanted / TIMEOUT_STEP_MS + 1) * TIMEOUT_STEP_MS;
    Duration::from_millis(u64::try_from(rounded).unwrap_or(u64::MAX)).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_follow_afls_rule() {
        let ms = Duration::from_millis;
        assert_eq!(derive_timeout(TimeoutSpec::Auto, ms(0), ms(1)), ms(20));
        assert_eq!(derive_timeout(TimeoutSpec::Auto, ms(10), ms(12)), ms(60));
        assert_eq!(derive_timeout(TimeoutSpec::Auto, ms(30), ms(200)), ms(220));
        assert_eq!(derive_timeout(TimeoutSpec::Auto, ms(800), ms(900)), ms(1000));
        assert_eq!(derive_timeout(TimeoutSpec::Fixed(ms(7)), ms(800), ms(900)), ms(7));
        assert_eq!(derive_timeout(TimeoutSpec::Upto(ms(3000)), ms(800), ms(900)), ms(1620));
    }
}
