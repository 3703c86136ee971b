//! The starting seeds: read, run, stored under their ids; and the timeout that follows from them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keep::{MAX_CRASHES, MAX_HANGS};
use super::resume::Known;
use super::{Campaign, CampaignError};
use crate::config::options::{Input, TimeoutSpec, Wanted};
use crate::disk::output::state::State;
use crate::engine::corpus::{Origin, Seed, SeedId, names};
use crate::engine::executor::ExitKind;
use crate::engine::feedback::Finding;
use crate::engine::fuzzer::admit::{self, Crash};
use crate::engine::fuzzer::door::{Door, Judging, Run};
use crate::engine::mutate::MAX_INPUT;
use crate::engine::mutate::{Candidate, below};
use crate::event::Event;
use crate::sys::file;

/// Rules by which AFL derives the timeout from the seeds' mean time: a multiple that falls with the
/// time, rounded up to 20 ms, at most one second.
const TIMEOUT_STEP_MS: u128 = 20;
const TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// Entries that may be missing in a queue: a name of somebody's own is no reason to reserve memory for more.
const MOST_GAPS: u32 = 1 << 20;

/// A starting input before it has an id.
pub(super) struct Start {
    path: PathBuf,
    pub(super) name: String,
    /// Set if the file already lies in the queue under this id.
    id: Option<SeedId>,
    /// It lies in the queue, under whatever name.
    queued: bool,
}

impl Start {
    /// A power failure may leave a name without its bytes.
    pub(super) fn is_empty(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|data| data.len() == 0)
    }

    fn read(&self) -> Result<Vec<u8>, CampaignError> {
        let path = &self.path;
        read_limited(path).map_err(|source| CampaignError::Seed { path: path.clone(), source })
    }
}

/// What is known while the starting inputs are taken in.
struct DryRun {
    /// Entries that an earlier process has run.
    known: Known,
    /// The seed that stands for all with this path.
    paths: HashMap<u64, SeedId>,
    total: usize,
    /// How many had to be run.
    run: usize,
}

/// A starting input in the queue.
struct Stored {
    id: SeedId,
    name: String,
    path: PathBuf,
    data: Vec<u8>,
    /// The user's file,
    from: PathBuf,
    /// and its size, if it is too large to be taken as a whole.
    cut: Option<u64>,
}

impl Campaign {
    /// Every seed is stored, then run, judged and calibrated (the dry run). Mutators know all files
    /// before the first run, as in AFL++.
    pub(super) fn import_seeds(&mut self) -> Result<(), CampaignError> {
        let state = self.load_state();
        let mut starts = self.list_starts(&state)?;
        if let Input::Directory(dir) = &self.options.input {
            self.output.note_source(Some(dir))?;
        }
        if let Some(first) = starts.first() {
            self.prepare_modules(&first.read()?, starts.len(), &state)?;
        }
        let known = self.take_up(state, &starts);
        let findings = self.count_findings()?;
        self.statistics.expect_corpus(corpus_of(&starts));
        let mut dry_run = DryRun { known, paths: HashMap::new(), total: starts.len(), run: 0 };
        if self.options.seeds.shuffle {
            for last in (1..starts.len()).rev() {
                let other =
                    below(&mut self.fuzzer.rng, u32::try_from(last + 1).unwrap_or(u32::MAX));
                starts.swap(last, other as usize);
            }
        }
        let mut stored = Vec::new();
        for start in starts {
            let next = stored.last().map_or(SeedId(0), |last: &Stored| SeedId(last.id.0 + 1));
            stored.push(self.store(start, next)?);
        }
        self.tell_cut_seeds(&stored);
        let message = format!("dry run of {} seeds", stored.len());
        self.bus.send(&Event::Notice { message });
        let (count, mut taken) = (stored.len(), 0);
        for (index, seed) in stored.into_iter().enumerate() {
            // The entries of an earlier campaign are taken in whatever its limit was.
            let out_of_runs = self.is_out_of_runs() && !self.output.resumed();
            if self.stop.is_over() || out_of_runs {
                break;
            }
            taken = index + 1;
            self.fill_gap(seed.id);
            self.import(seed, index, &mut dry_run)?;
            self.obey()?;
            self.tick_if_due();
        }
        self.complete = taken == count && !self.stop.is_over();
        if self.output.resumed() {
            let DryRun { total, run, .. } = dry_run;
            let message = format!("resumed: {total} queue entries, {run} of them run again");
            self.bus.send(&Event::Notice { message });
        }
        self.replay_crashes(findings)?;
        self.finish_import()?;
        // If no seed can be used, the next start looks there for others.
        self.output.note_source(None)?;
        self.save_state();
        Ok(())
    }

    fn list_starts(&mut self, state: &State) -> Result<Vec<Start>, CampaignError> {
        let Input::Directory(dir) = &self.options.input else {
            let queue = self.only_files(self.output.queue_files()?);
            let mut starts = queue_starts(queue, state);
            self.add_unfinished(&mut starts);
            return Ok(starts);
        };
        let queue = dir.join("queue");
        let dir = if queue.is_dir() { &queue } else { dir };
        let mut files = Vec::new();
        collect_files(dir, &mut files)?;
        if files.is_empty() {
            return Err(CampaignError::NoSeeds { path: dir.clone() });
        }
        Ok(files
            .into_iter()
            .map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Start { path, name, id: None, queued: false }
            })
            .collect())
    }

    /// Leaves out what has the name of an entry and is none: a FIFO, a device, a link to nowhere.
    fn only_files(&mut self, mut files: Vec<(String, PathBuf)>) -> Vec<(String, PathBuf)> {
        let mut strange = Vec::new();
        files.retain(|(_, path)| {
            let good = file::may_be_regular(path);
            strange.extend((!good).then(|| path.clone()));
            good
        });
        if let Some(first) = strange.first() {
            let (first, count) = (first.display(), strange.len());
            self.warn(format!("{first} is not a regular file ({count} such): not read"));
        }
        files
    }

    /// Adds the seeds that an earlier process was killed before it had them in the queue.
    fn add_unfinished(&mut self, starts: &mut Vec<Start>) {
        let Some(dir) = self.output.unfinished_source() else { return };
        let queue = dir.join("queue");
        let dir = if queue.is_dir() { queue } else { dir };
        let mut files = Vec::new();
        if let Err(error) = collect_files(&dir, &mut files) {
            self.warn(format!(
                "{error}: the earlier start has not taken in all seeds of this folder"
            ));
        }
        let content = |path: &Path| read_limited(path).unwrap_or_default();
        let known: HashSet<Vec<u8>> = starts.iter().map(|start| content(&start.path)).collect();
        let before = starts.len();
        for path in files {
            if !known.contains(&content(&path)) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                starts.push(Start { path, name, id: None, queued: false });
            }
        }
        let (added, dir) = (starts.len() - before, dir.display());
        if added == 0 {
            return;
        }
        let message = format!("the earlier start was ended early: {added} more seeds from {dir}");
        self.bus.send(&Event::Notice { message });
    }

    /// A number missing in a resumed queue keeps its place: ids never change.
    fn fill_gap(&mut self, id: SeedId) {
        if self.fuzzer.corpus.next_id() < id {
            self.warn(format!("seed {} is missing in the queue", self.fuzzer.corpus.next_id().0));
        }
        while self.fuzzer.corpus.next_id() < id {
            let id = self.fuzzer.corpus.next_id();
            self.fuzzer.corpus.add(Seed { id, disabled: true, ..Seed::default() });
        }
    }

    /// Puts a file into the queue, under the number `next` unless it is there already.
    fn store(&mut self, start: Start, next: SeedId) -> Result<Stored, CampaignError> {
        let mut data = start.read()?;
        let whole = data.len() < MAX_INPUT.min(self.options.mutation.max_len);
        let size = fs::metadata(&start.path).map_or(0, |data| data.len());
        let cut = (size > data.len().min(self.options.mutation.max_len) as u64).then_some(size);
        data.truncate(self.options.mutation.max_len);
        let id = start.id.map_or(next, |id| id.max(next));
        let resumed = start.id == Some(id);
        let extension = self.options.output.extension.as_deref();
        let name = if resumed {
            start.name.clone()
        } else {
            names::seed_name(id, &start.name, self.execs(), extension)
        };
        let path = if resumed {
            start.path.clone()
        } else if whole && self.fuzzer.mutators.is_empty() {
            self.write(|output| output.link_seed(&name, &start.path, &data))?
        } else {
            // Mutators may write to the queue's file, but not to the user's.
            self.write(|output| output.save_seed(&name, &data))?
        };
        if start.queued && !resumed {
            // It has got another name.
            let _ = fs::remove_file(&start.path);
        }
        let data = self.tell_mutators(&path, None, data);
        Ok(Stored { id, name, path, data, from: start.path, cut })
    }

    fn tell_cut_seeds(&mut self, stored: &[Stored]) {
        let cut: Vec<_> = stored.iter().filter_map(|seed| Some((&seed.from, seed.cut?))).collect();
        let Some((path, size)) = cut.first() else { return };
        let more = match cut.len() {
            1 => String::new(),
            count => format!("; and so are {} more", count - 1),
        };
        let most = MAX_INPUT.min(self.options.mutation.max_len);
        let remedy = if most < MAX_INPUT { "-G sets the limit" } else { "inputs have no more" };
        self.warn(format!(
            "the seed {} of {size} bytes is cut to {most}: {remedy}{more}",
            path.display()
        ));
    }

    fn import(
        &mut self,
        stored: Stored,
        index: usize,
        dry_run: &mut DryRun,
    ) -> Result<(), CampaignError> {
        let Stored { id, name, path, data, from, .. } = stored;
        let mut seed = self.starting_seed(id, name, &data);
        if let Some(known) = dry_run.known.remove(&seed.name)
            && self.adopt(&seed, &known)
        {
            return Ok(());
        }
        dry_run.run += 1;
        let seen = self.run(Run::judged(&data))?;
        let (exit, mut verdict) = (seen.exit, seen.verdict.unwrap_or_default());
        self.statistics.crashing_seeds += u64::from(matches!(exit, ExitKind::Crash { .. }));
        if !self.fuzzer.judge().accepts(exit) {
            self.bad_seed(from, exit, &data, verdict.finding)?;
            seed.disabled = true;
            self.fuzzer.corpus.add(seed);
            return Ok(());
        }
        // A seed that crashes now and then is the user's own file.
        _ = admit::confirm(self, &data, &mut verdict)?;
        let gains = verdict.gains;
        let calibration = self.calibrated(&data, self.start_calibration_runs())?;
        let path_hash = calibration.path_hash;
        if gains.is_empty() && self.supersede_twin(dry_run, path_hash, data.len()) {
            seed.disabled = true;
        }
        admit::add_seed(self, seed, calibration, &gains);
        self.inspect(&Candidate { bytes: data, origin: Origin::default() })?;
        if !self.fuzzer.corpus[id].disabled {
            dry_run.paths.insert(path_hash, id);
        }
        let (index, total) = (index + 1, dry_run.total);
        self.bus.send(&Event::SeedImported { id, path, index, total });
        Ok(())
    }

    /// The run that was judged is the first of them.
    fn start_calibration_runs(&self) -> u32 {
        match self.options.calibration.skip_at_start {
            true => 1,
            false => self.fuzzer.admission.options.calibration_runs - 1,
        }
    }

    fn starting_seed(&self, id: SeedId, name: String, data: &[u8]) -> Seed {
        let parsed = names::parse(&name);
        // The number of an imported one is that of another queue.
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
            det_done: self.output.det_done(&name),
            name,
            ..Seed::default()
        }
    }

    /// Of two starting seeds with one path the longer is disabled. True if the new one is it.
    fn supersede_twin(&mut self, dry_run: &DryRun, path_hash: u64, len: usize) -> bool {
        let Some(&id) = dry_run.paths.get(&path_hash) else { return false };
        let longer = self.fuzzer.corpus[id].data.len() > len;
        if longer && !self.fuzzer.scheduler.is_owner(id) {
            self.fuzzer.corpus[id].disabled = true;
            return false;
        }
        !longer
    }

    fn bad_seed(
        &mut self,
        path: PathBuf,
        exit: ExitKind,
        data: &[u8],
        finding: Option<Finding>,
    ) -> Result<(), CampaignError> {
        let (crash, slow) = &mut self.statistics.bad_seeds;
        match exit {
            ExitKind::Ok => {}
            ExitKind::Hang | ExitKind::Cut => *slow += 1,
            _ => *crash += 1,
        }
        let what = match exit {
            ExitKind::Ok => "does not crash, as -C wants it",
            ExitKind::Hang | ExitKind::Cut => "takes longer than the timeout",
            ExitKind::Oom => "is killed for its use of memory",
            _ => "crashes the target",
        };
        if self.options.seeds.exit_on_issues {
            return Err(CampaignError::BadSeed { path, what });
        }
        self.warn(format!("the seed {path:?} {what}; it is used for splicing only"));
        if let (true, Some(Finding::Crash { signal, unique })) =
            (self.options.seeds.crashes_as_finds, finding)
        {
            let candidate = Candidate { bytes: data.to_vec(), origin: Origin::default() };
            self.crashed(&candidate, Crash::of_target(signal, unique))?;
        }
        Ok(())
    }

    pub(super) fn no_usable_seed(&self) -> CampaignError {
        if self.options.seeds.wanted == Wanted::Crashing {
            return CampaignError::NoCrashingSeed;
        }
        let (crash, slow) = self.statistics.bad_seeds;
        CampaignError::NoUsableSeed { crash, slow }
    }

    /// Counts the crashes and hangs of an earlier process before anything is run: they are there from the
    /// start. Those that its state does not know are returned.
    fn count_findings(&mut self) -> Result<Vec<PathBuf>, CampaignError> {
        if self.options.input != Input::Resume {
            return Ok(Vec::new());
        }
        let (crashes, hangs) = (self.output.crash_files()?, self.output.hang_files()?);
        let (crashes, hangs) = (self.only_files(crashes), self.only_files(hangs));
        let (crashes_known, hangs_known) =
            (self.statistics.saved_crashes, self.statistics.saved_hangs);
        // Numbers are never used again, also if somebody has taken files away.
        self.statistics.saved_crashes = crashes_known.max(next_number(&crashes, MAX_CRASHES));
        self.statistics.saved_hangs = hangs_known.max(next_number(&hangs, MAX_HANGS));
        let unknown = |from| move |file: &(String, PathBuf)| number(file) >= from;
        let crashes = crashes.into_iter().filter(unknown(crashes_known));
        let hangs = hangs.into_iter().filter(unknown(hangs_known));
        Ok(crashes.chain(hangs).map(|(_, path)| path).collect())
    }

    /// A resumed campaign learns from its crashes and hangs which ones are not new. One that ends well by now, in
    /// a target that was repaired, shows nothing that would be in the queue, so it teaches nothing.
    fn replay_crashes(&mut self, findings: Vec<PathBuf>) -> Result<(), CampaignError> {
        for path in &findings {
            if self.stop.is_over() {
                break;
            }
            let data = read_limited(path)
                .map_err(|source| CampaignError::Seed { path: path.clone(), source })?;
            self.run(Run { judging: Judging::IfBad, ..Run::of(&data) })?;
        }
        Ok(())
    }

    fn finish_import(&mut self) -> Result<(), CampaignError> {
        if self.complete && self.fuzzer.corpus.iter().all(|seed| seed.disabled) {
            return Err(self.no_usable_seed());
        }
        self.look_for_reading()?;
        let usable = || self.fuzzer.corpus.iter().filter(|seed| !seed.disabled);
        let total: u64 = usable().map(|seed| seed.exec_us).sum();
        let mean = Duration::from_micros(total / usable().count().max(1) as u64);
        let timeout =
            derive_timeout(self.options.target.timeout, mean, self.fuzzer.progress.slowest);
        self.fuzzer.set_timeout(timeout);
        if self.fuzzer.judge().watches_domains() {
            let aggregates = self.fuzzer.judge().aggregates();
            self.log.starting_keys(aggregates.domains(), aggregates.values());
        }
        self.statistics.dry_run_over(self.complete);
        if self.complete {
            self.arm_limit();
        }
        Ok(())
    }
}

/// Entries of a queue, by number. What has no number of its own, because somebody put it there, comes last.
fn queue_starts(mut files: Vec<(String, PathBuf)>, state: &State) -> Vec<Start> {
    let known: HashSet<&str> = state.seeds.iter().map(|seed| &*seed.name).collect();
    files.sort_by_key(|(name, _)| {
        (names::parse(name).map(|parsed| parsed.id), !known.contains(&**name))
    });
    let most = u32::try_from(files.len()).unwrap_or(u32::MAX).saturating_add(MOST_GAPS);
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for (name, path) in files {
        let id = names::parse(&name).map(|parsed| SeedId(parsed.id));
        let is_taken =
            own.last().and_then(|start: &Start| start.id).is_some_and(|last| id <= Some(last));
        match id.filter(|id| id.0 < most && !is_taken) {
            Some(id) => own.push(Start { path, name, id: Some(id), queued: true }),
            None => other.push(Start { path, name, id: None, queued: true }),
        }
    }
    own.extend(other);
    own
}

/// Seeds that there will be: missing numbers keep their places.
fn corpus_of(starts: &[Start]) -> usize {
    let last = starts.iter().filter_map(|start| start.id).max();
    let other = starts.iter().filter(|start| start.id.is_none()).count();
    last.map_or(0, |last| last.index() + 1) + other
}

/// The number that follows the largest one in use. A campaign gives no number above `most`: a name with
/// one is somebody else's.
fn next_number(files: &[(String, PathBuf)], most: u64) -> u64 {
    files
        .iter()
        .map(number)
        .filter(|number| *number < most)
        .map(|number| number + 1)
        .max()
        .unwrap_or(0)
}

fn number((name, _): &(String, PathBuf)) -> u64 {
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

/// Files in order of their names, folders recursed into; hidden ones, README.txt and empty files
/// are left out, and so are links to folders, which may lead in a circle.
pub fn collect_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), CampaignError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| CampaignError::Seed { path, source }
    };
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(unreadable(dir))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        if name.as_encoded_bytes().starts_with(b".") || name == "README.txt" {
            continue;
        }
        let data = fs::metadata(&path).map_err(unreadable(&path))?;
        if data.is_dir() {
            if !path.is_symlink() {
                collect_files(&path, files)?;
            }
        } else if data.is_file() && data.len() > 0 {
            files.push(path);
        }
    }
    Ok(())
}

/// The first MiB of a file, however long it is.
pub fn read_limited(path: &Path) -> std::io::Result<Vec<u8>> {
    file::patiently(|| file::read(path, MAX_INPUT as u64))
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

    #[test]
    fn seeds_are_listed_by_name_and_the_useless_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        for (name, content) in
            [("b", "2"), ("a", "1"), ("README.txt", "x"), (".c", "3"), ("e", ""), ("d/f", "4")]
        {
            put(name, content);
        }
        let mut files = Vec::new();
        collect_files(dir.path(), &mut files).unwrap();
        let names: Vec<_> =
            files.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("a"), Path::new("b"), Path::new("d/f")]);
    }
}
