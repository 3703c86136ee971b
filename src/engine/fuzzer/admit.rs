//! Admission: acts on the verdict of a candidate. Stores crashes and hangs, and adds seeds to the corpus.
//!
//! ```text
//! Verdict ─┬─ crash ──────► Host::store
//!          ├─ hang, cut ──► run again with more time, within a tenth of the time ─► Host::store, or on as below
//!          └─ new edges, or keys moved ─► keys: a second run has to move them as well ─► Host::store_seed
//!               ─► calibrated ─► corpus, owners ─► Host::notice
//! ```
//!
//! The implementation of [`Host`] decides what is stored and how.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use super::door::{Discovery, Door, DoorError, Host, Judging, Notice, Run, Seen};
use crate::calibrate::{self, Calibration};
use crate::corpus::{Seed, SeedId};
use crate::coverage::Novelty;
use crate::domain::KeyGain;
use crate::executor::ExitKind;
use crate::feedback::{Finding, Verdict};
use crate::mutate::Candidate;
use crate::mutate::foreign::ForeignMutators;
use crate::schedule::ledger::{Effort, FIRST_WAITS, Purpose};

/// Default time after which a slow input is a hang: one second, as in AFL.
pub const HANG_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of timeouts and cut runs that wait for their second run.
const MOST_DOUBTFUL: usize = 64;

/// How finds are confirmed.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// Wall time limit of the second run of a unique timeout. No effect unless longer than the usual timeout.
    pub hang_timeout: Duration,
    /// Limit to which the timeout may grow for a slow input that improves a domain: otherwise its mutants would time
    /// out in every turn. None: the timeout does not grow.
    pub longest_timeout: Option<Duration>,
    /// Number of calibration runs of a new seed.
    pub calibration_runs: u32,
    /// Inputs that improve a domain are recorded separately; that alone does not make them seeds.
    pub records: bool,
    /// Finds are stored as mutated, not as delivered to the target.
    pub keeps_original: bool,
}

impl Default for AdmissionOptions {
    fn default() -> Self {
        Self {
            hang_timeout: HANG_TIMEOUT,
            longest_timeout: None,
            calibration_runs: calibrate::RUNS,
            records: false,
            keeps_original: false,
        }
    }
}

/// The options, and the inputs that wait for a second run.
#[derive(Debug)]
pub struct Admission {
    pub options: AdmissionOptions,
    doubtful: VecDeque<Doubtful>,
}

/// An input with a unique timeout or cut.
#[derive(Debug)]
struct Doubtful {
    candidate: Candidate,
    /// True if the run was cut at the soft limit or timed out while logging comparisons, false for a usual timeout.
    was_cut: bool,
}

impl Admission {
    pub(super) fn new(options: AdmissionOptions) -> Self {
        Self { options, doubtful: VecDeque::new() }
    }

    /// Number of unique timeouts that wait for a second run.
    #[must_use]
    pub fn doubtful_timeouts(&self) -> usize {
        self.doubtful.iter().filter(|doubtful| !doubtful.was_cut).count()
    }

    /// Queues a candidate for a second run. Drops it if [`MOST_DOUBTFUL`] are waiting.
    pub(crate) fn put_off(&mut self, candidate: &Candidate, was_cut: bool) {
        if self.doubtful.len() < MOST_DOUBTFUL {
            self.doubtful.push_back(Doubtful { candidate: candidate.clone(), was_cut });
        }
    }
}

/// A find's number and file.
#[derive(Clone, Debug)]
pub struct Stored {
    pub number: u64,
    pub path: PathBuf,
}

/// Outcome of a candidate.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// True if it became a seed.
    pub kept: bool,
    pub crash: bool,
    pub hang: bool,
    /// None if no file was written.
    pub stored: Option<Stored>,
}

/// A crash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Crash {
    pub signal: i32,
    /// As in [`Finding`].
    pub unique: bool,
    /// True if a sanitizer build crashed, not the target.
    pub in_sanitizer: bool,
}

impl Crash {
    #[must_use]
    pub fn of_target(signal: i32, unique: bool) -> Self {
        Self { signal, unique, in_sanitizer: false }
    }
}

/// A candidate about to become a seed.
#[derive(Clone, Copy, Debug)]
pub struct NewSeed<'a> {
    pub id: SeedId,
    pub candidate: &'a Candidate,
    pub new_edge: bool,
    pub waypoint: bool,
    /// True if it takes longer than the timeout.
    pub slow: bool,
}

/// A seed as it is stored.
#[derive(Clone, Debug, Default)]
pub struct StoredSeed {
    pub name: String,
    pub path: PathBuf,
    pub data: Vec<u8>,
}

/// Acts on a verdict.
pub fn admit<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    verdict: Verdict,
) -> Result<Outcome, H::Error> {
    match verdict.finding {
        Some(Finding::Crash { signal, unique }) => {
            let crash = keep_crash(door, candidate, Crash::of_target(signal, unique))?;
            if !verdict.is_interesting() {
                return Ok(crash);
            }
            let seed = keep_interesting(door, candidate, verdict)?;
            Ok(if seed.kept { Outcome { crash: true, ..seed } } else { crash })
        }
        Some(Finding::Hang { unique }) => {
            let hang = keep_hang(door, candidate, unique, &verdict.gains)?;
            if hang.kept || verdict.novelty == Novelty::None {
                return Ok(hang);
            }
            Ok(Outcome { hang: true, ..keep_seed(door, candidate, verdict)? })
        }
        Some(Finding::Lost { unique }) => keep_lost(door, candidate, unique),
        Some(Finding::Cut { unique }) => {
            keep_cut(door, candidate, unique);
            Ok(Outcome::default())
        }
        None if verdict.is_interesting() => keep_interesting(door, candidate, verdict),
        None => Ok(Outcome::default()),
    }
}

fn keep_interesting<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    mut verdict: Verdict,
) -> Result<Outcome, H::Error> {
    let ended_badly = match confirm(door, &candidate.bytes, &mut verdict)? {
        Some(Finding::Crash { signal, unique }) => {
            keep_crash(door, candidate, Crash::of_target(signal, unique))?
        }
        Some(Finding::Hang { unique }) => keep_hang(door, candidate, unique, &[])?,
        Some(Finding::Lost { unique }) => keep_lost(door, candidate, unique)?,
        Some(Finding::Cut { unique }) => {
            keep_cut(door, candidate, unique);
            Outcome::default()
        }
        None => Outcome::default(),
    };
    if !verdict.is_interesting() {
        return Ok(ended_badly);
    }
    if door.fuzzer().admission.options.records && !verdict.gains.is_empty() {
        door.store(candidate, Discovery::Record(&verdict.gains))?;
        if verdict.novelty == Novelty::None {
            return Ok(Outcome::default());
        }
    }
    keep_seed(door, candidate, verdict)
}

/// Runs an input again and keeps only those gains of the verdict that the second run confirms. Returns the finding of
/// that run, if it ends badly.
pub fn confirm<H: Host>(
    door: &mut Door<'_, H>,
    input: &[u8],
    verdict: &mut Verdict,
) -> Result<Option<Finding>, H::Error> {
    if verdict.gains.is_empty() {
        return Ok(None);
    }
    let gains = std::mem::take(&mut verdict.gains);
    let run = Run { judging: Judging::Again(&gains), ..Run::of(input) };
    let second = match door.run(run) {
        // The judge has not recorded the gains yet.
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

fn keep_seed<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    verdict: Verdict,
) -> Result<Outcome, H::Error> {
    let fuzzer = door.fuzzer();
    let new = NewSeed {
        id: fuzzer.corpus.next_id(),
        candidate,
        new_edge: verdict.novelty == Novelty::Edge,
        waypoint: !verdict.gains.is_empty() && fuzzer.guided(),
        slow: matches!(verdict.finding, Some(Finding::Hang { .. })),
    };
    let StoredSeed { name, path, data } = door.store_seed(&new)?;
    let fuzzer = door.fuzzer();
    // Fewer runs suffice for a find by hit counts alone if no edge of the target has varied so far.
    let is_steady = fuzzer.judge.ignored_edges() == 0;
    let runs = match !new.new_edge && (new.waypoint || is_steady) {
        true => calibrate::RUNS_FAST,
        false => fuzzer.admission.options.calibration_runs,
    };
    let calibration = door.calibrated(&data, runs)?;
    let fuzzer = door.fuzzer();
    let parent = candidate.origin.parent().filter(|parent| *parent < new.id);
    let seed = Seed {
        id: new.id,
        name,
        data: data.into(),
        parent,
        depth: parent.map_or(0, |parent| fuzzer.corpus[parent].depth + 1),
        changed_at: candidate.origin.step.position(),
        new_edge: new.new_edge,
        waypoint: new.waypoint,
        handicap: u32::try_from(fuzzer.scheduler.cycles().saturating_sub(1)).unwrap_or(u32::MAX),
        ..Seed::default()
    };
    let finding = calibration.finding;
    add_seed(door, seed, calibration, &verdict.gains);
    if let Some(Finding::Crash { signal, unique: true }) = finding {
        keep_crash(door, candidate, Crash::of_target(signal, true))?;
    }
    let fuzzer = door.fuzzer_mut();
    let execs = fuzzer.target().execs();
    match parent {
        Some(_) => {
            fuzzer.progress.seed_found(candidate.origin.step.op(), execs);
            fuzzer.mutators.found(candidate.origin.by);
        }
        None => fuzzer.progress.corpus_grew(execs),
    }
    let gains = if new.waypoint { &*verdict.gains } else { &[] };
    let stored = Stored { number: new.id.0.into(), path };
    door.notice(Notice::SeedFound { new: &new, gains, stored: &stored });
    Ok(Outcome { kept: true, stored: Some(stored), ..Outcome::default() })
}

/// Adds a stored seed to the corpus. It owns the keys that it improved, unless it is disabled.
pub fn add_seed<H: Host>(
    door: &mut Door<'_, H>,
    seed: Seed,
    calibration: Calibration,
    gains: &[KeyGain],
) {
    let fuzzer = door.fuzzer_mut();
    let id = fuzzer.corpus.add(Seed {
        exec_us: calibration.exec_us,
        quickest_us: calibration.quickest_us,
        edges: u32::try_from(calibration.trace.len()).unwrap_or(u32::MAX),
        trace: calibration.trace,
        path_hash: calibration.path_hash,
        variable: !calibration.unstable.is_empty(),
        disabled: seed.disabled || calibration.failed.is_some(),
        ..seed
    });
    if !fuzzer.corpus[id].disabled {
        fuzzer.scheduler.added(&mut fuzzer.corpus, id);
        for (key, bits) in calibration.reached {
            fuzzer.scheduler.reaches(&fuzzer.corpus, id, key, bits);
        }
        for gain in gains {
            fuzzer.scheduler.owns(&fuzzer.corpus, id, gain.key, gain.bits);
        }
    }
    door.notice(Notice::SeedAdded { id, gains });
}

pub(super) fn keep_crash<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    crash: Crash,
) -> Result<Outcome, H::Error> {
    let stored = door.store(candidate, Discovery::Crash(crash))?;
    if stored.is_some() {
        door.fuzzer_mut().mutators.found(candidate.origin.by);
    }
    Ok(Outcome { crash: true, stored, ..Outcome::default() })
}

/// Runs a unique timeout again with the hang timeout: it may only be slow, or crash later. Does the same for one that
/// would improve a domain, because some domains favor slow inputs. Second runs get a tenth of the time: without time
/// left, a unique timeout waits and any other is dropped.
fn keep_hang<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    unique: bool,
    gains: &[KeyGain],
) -> Result<Outcome, H::Error> {
    door.notice(Notice::TimedOut);
    let lost = Outcome { hang: true, ..Outcome::default() };
    let unique = unique && door.takes_hangs();
    let may_wait = may_run_again(door, false);
    let fuzzer = door.fuzzer_mut();
    let promising = fuzzer.guided() && !gains.is_empty() && may_wait;
    if !unique && !promising {
        return Ok(lost);
    }
    let patient = fuzzer.admission.options.hang_timeout;
    if patient <= fuzzer.timeout() {
        return if unique { save_hang(door, candidate) } else { Ok(lost) };
    }
    if !may_wait {
        fuzzer.admission.put_off(candidate, false);
        return Ok(lost);
    }
    look_again(door, candidate, unique, patient)
}

fn keep_lost<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    unique: bool,
) -> Result<Outcome, H::Error> {
    let stored = door.store(candidate, Discovery::Lost { unique })?;
    Ok(Outcome { hang: true, stored, ..Outcome::default() })
}

/// Queues a unique cut run for a second run: a cut proves little and is not a timeout.
fn keep_cut<H: Host>(door: &mut Door<'_, H>, candidate: &Candidate, unique: bool) {
    door.notice(Notice::Cut);
    if unique {
        door.fuzzer_mut().admission.put_off(candidate, true);
    }
}

/// Whether there is time for a second run. The initial allowance is reserved for timeouts, because most cut runs are
/// not hangs.
fn may_run_again<H: Host>(door: &Door<'_, H>, was_cut: bool) -> bool {
    let account = &door.fuzzer().ledger[Purpose::SecondRuns];
    let piece = if was_cut { FIRST_WAITS } else { Duration::ZERO };
    let elapsed = Effort { runs: 0, time: door.elapsed() };
    account.has_time(elapsed, piece)
}

/// Runs queued candidates again while there is time.
pub(super) fn look_at_doubtful<H: Host>(door: &mut Door<'_, H>) -> Result<(), H::Error> {
    while let Some(next) = door.fuzzer().admission.doubtful.front() {
        let was_cut = next.was_cut;
        if !may_run_again(door, was_cut) || door.is_over() {
            break;
        }
        let fuzzer = door.fuzzer_mut();
        let Some(Doubtful { candidate, .. }) = fuzzer.admission.doubtful.pop_front() else { break };
        let patient = fuzzer.admission.options.hang_timeout.max(fuzzer.timeout());
        if was_cut || door.takes_hangs() {
            let again = look_again(door, &candidate, !was_cut, patient)?;
            if was_cut && again.hang {
                door.notice(Notice::TimedOut);
            }
        }
    }
    Ok(())
}

fn look_again<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    unique: bool,
    patient: Duration,
) -> Result<Outcome, H::Error> {
    let room = longest_timeout(door);
    let (timeout, judging) = (Some(patient), Judging::InTime { room });
    let spent = |door: &Door<'_, H>| door.fuzzer().target().spent().whole();
    let before = spent(door);
    let seen = door.run(Run { timeout, judging, ..Run::of(&candidate.bytes) });
    // An executor may verify a hang by further runs, each as long.
    let waited = spent(door).saturating_sub(before);
    // Second runs have a share of their own; the current stage does not pay for them.
    let account = &mut door.fuzzer_mut().ledger[Purpose::SecondRuns];
    account.spend(Effort { runs: 1, time: waited });
    let (exit, verdict, duration) = match seen {
        Err(error) if error.is_interruption() => (ExitKind::Hang, None, door.fuzzer().timeout()),
        seen => {
            let Seen { exit, verdict, duration, .. } = seen?;
            (exit, verdict, duration)
        }
    };
    let finding = verdict.as_ref().and_then(|verdict| verdict.finding);
    let unique = unique || finding == Some(Finding::Hang { unique: true });
    match exit {
        ExitKind::Lost => {
            let unique = finding == Some(Finding::Lost { unique: true });
            keep_lost(door, candidate, unique)
        }
        ExitKind::Hang if unique && door.takes_hangs() => save_hang(door, candidate),
        ExitKind::Hang => Ok(Outcome { hang: true, ..Outcome::default() }),
        _ => keep_late(door, candidate, verdict, duration),
    }
}

fn save_hang<H: Host>(door: &mut Door<'_, H>, candidate: &Candidate) -> Result<Outcome, H::Error> {
    let stored = door.store(candidate, Discovery::Hang)?;
    Ok(Outcome { hang: true, stored, ..Outcome::default() })
}

fn longest_timeout<H: Host>(door: &Door<'_, H>) -> Option<Duration> {
    let fuzzer = door.fuzzer();
    fuzzer.admission.options.longest_timeout.filter(|_| fuzzer.guided())
}

/// Admits an input whose second run, with more time, did not hang.
fn keep_late<H: Host>(
    door: &mut Door<'_, H>,
    candidate: &Candidate,
    verdict: Option<Verdict>,
    duration: Duration,
) -> Result<Outcome, H::Error> {
    let slow = Outcome { hang: true, ..Outcome::default() };
    let Some(verdict) = verdict else { return Ok(slow) };
    if let Some(Finding::Crash { signal, unique }) = verdict.finding {
        return keep_crash(door, candidate, Crash::of_target(signal, unique));
    }
    if duration > door.fuzzer().timeout() {
        let Some(limit) = longest_timeout(door) else { return Ok(slow) };
        door.fuzzer_mut().set_timeout((duration * 2).min(limit));
    }
    keep_interesting(door, candidate, verdict)
}
