//! The runs that the work on comparisons orders, see [`Work`](ffuzz_comparisons::work::Work).

use std::mem::take;
use std::time::Duration;

use super::super::Turn;
use super::super::repair::run_logged;
use super::edits::run_edits;
use crate::corpus::{Origin, SeedId, Step};
use crate::executor::ExitKind;
use crate::feedback::Verdict;
use crate::fuzzer::admit::Crash;
use crate::fuzzer::door::{Discovery, Host, Run};
use crate::mutate::Candidate;
use crate::runner::SLOWER;
use crate::schedule::Budget;
use ffuzz_comparisons::log::OwnLog;
use ffuzz_comparisons::work::{Lent, Order, Ran};

/// Maximum time to repeat the inputs before a crash.
const LONGEST_REPLAY: Duration = Duration::from_secs(2);

/// Lends to `work` what the search knows of comparisons.
pub(super) fn lend<H: Host, T>(turn: &mut Turn<'_, H>, work: impl FnOnce(&mut Lent) -> T) -> T {
    let (logs, fuzzer) = (&mut turn.shared.logs, turn.door.fuzzer_mut());
    let (results, repairs) = (take(&mut logs.results), take(&mut logs.repairs));
    let mut lent = Lent { results, repairs, blockers: take(&mut fuzzer.blockers) };
    let result = work(&mut lent);
    (logs.results, logs.repairs, fuzzer.blockers) = (lent.results, lent.repairs, lent.blockers);
    result
}

/// Carries out an order and answers it. Returns it if the stage has no time left for the rest of it.
pub(super) fn carry_out<H: Host>(
    turn: &mut Turn<'_, H>,
    order: Order,
    budget: Budget,
) -> Result<Option<Order>, H::Error> {
    match order {
        Order::Log { input, op, to } => to.send(logged(turn, input, op)?),
        Order::TryOut { input, op, to } => to.send(try_out(turn, input, op)?),
        Order::Edit { mut edits, to } => match run_edits(turn, &mut edits, budget)? {
            true => return Ok(Some(Order::Edit { edits, to })),
            false => to.send(()),
        },
        Order::Lengths { input, to } => {
            let corpus = &turn.door.fuzzer().corpus;
            to.send(turn.shared.lengths_in(corpus, turn.id, &input));
        }
        Order::Deciding { input, to } => {
            let corpus = &turn.door.fuzzer().corpus;
            to.send(turn.shared.logs.deciding(corpus, turn.id, &input));
        }
        Order::NoteDeciding { input, at, to } => {
            turn.shared.logs.note_deciding(turn.id, &input, at);
            to.send(());
        }
    }
    Ok(None)
}

/// The origin of an input that a solver made from the seed.
fn origin(id: SeedId, op: &'static str) -> Origin {
    Origin { parent: id, other: None, step: Step::Stacked { op, count: 1 }, by: 0 }
}

/// Runs an input with its log, with its known fields corrected. If the run crashes or times out, the input is run
/// again without the log, which shows its edges.
pub(in crate::stage) fn logged<H: Host>(
    turn: &mut Turn<'_, H>,
    mut input: Vec<u8>,
    op: &'static str,
) -> Result<Ran, H::Error> {
    let mut log = OwnLog::default();
    let exit = run_logged(turn, &mut input, |run| run.copy_to(&mut log))?;
    let ran = Ran { bytes: input, log, ends_well: exit == ExitKind::Ok };
    if ran.ends_well {
        return Ok(ran);
    }
    let candidate = Candidate { bytes: ran.bytes.clone(), origin: origin(turn.id, op) };
    let last = ran.log.view().iter().last().map(|comparison| comparison.site);
    match exit {
        // The next fork server would die as well.
        ExitKind::Ok | ExitKind::Lost => {}
        ExitKind::Hang | ExitKind::Cut => {
            turn.door.fuzzer_mut().admission.put_off(&candidate, true)
        }
        ExitKind::Crash { signal } => repeat(turn, &candidate, signal, last)?,
        ExitKind::Oom => repeat(turn, &candidate, libc::SIGKILL, last)?,
    }
    Ok(ran)
}

/// Runs a logged input as a usual mutant; a run over the soft limit is cut. Returns true if it became a seed.
pub(in crate::stage) fn try_out<H: Host>(
    turn: &mut Turn<'_, H>,
    bytes: Vec<u8>,
    op: &'static str,
) -> Result<bool, H::Error> {
    let seeds = turn.door.fuzzer().corpus.next_id();
    turn.door.run_batch(&[Candidate { bytes, origin: origin(turn.id, op) }], None)?;
    Ok(turn.door.fuzzer().corpus.next_id() != seeds)
}

/// Repeats a crash without the log: alone, then after the earlier inputs of its process. If it does not recur, its
/// last comparison distinguishes it from other crashes.
fn repeat<H: Host>(
    turn: &mut Turn<'_, H>,
    candidate: &Candidate,
    signal: i32,
    last: Option<u32>,
) -> Result<(), H::Error> {
    // A crash of another build need not be one of the target.
    let is_own = !turn.door.fuzzer().has_logger();
    let record = if is_own { turn.door.fuzzer_mut().take_record() } else { Vec::new() };
    // On a busy machine a crash may take longer than any seed.
    let timeout = Some(turn.door.fuzzer().timeout() * SLOWER);
    let alone = turn.door.run(Run { timeout, ..Run::judged(&candidate.bytes) })?;
    turn.door.keep_if_deserved(candidate, alone.verdict.unwrap_or_default())?;
    if crashes(alone.exit) || !is_own {
        return Ok(());
    }
    let unique = turn.shared.logs.unrepeated.insert(last);
    if unique && let Some(after) = replay(turn, &record)? {
        turn.door.keep_if_deserved(candidate, after)?;
    } else {
        let crash = Crash::of_target(signal, unique);
        turn.door.store(candidate, Discovery::Crash(crash))?;
    }
    Ok(())
}

/// Runs the recorded inputs in a new process. Returns the verdict on the last one if it crashes.
fn replay<H: Host>(
    turn: &mut Turn<'_, H>,
    record: &[Vec<u8>],
) -> Result<Option<Verdict>, H::Error> {
    let Some((last, before)) = record.split_last() else { return Ok(None) };
    turn.door.fuzzer_mut().end_process();
    let begin = turn.door.elapsed();
    for input in before {
        let seen = turn.door.run(Run { is_delivered: true, ..Run::of(input) })?;
        if seen.exit != ExitKind::Ok
            || turn.door.elapsed() - begin > LONGEST_REPLAY
            || turn.door.is_over()
        {
            return Ok(None);
        }
    }
    let seen = turn.door.run(Run { is_delivered: true, ..Run::judged(last) })?;
    Ok(seen.verdict.filter(|_| crashes(seen.exit)))
}

fn crashes(exit: ExitKind) -> bool {
    matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom)
}
