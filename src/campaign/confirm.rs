//! Confirms crashes of processes that run many inputs: tests whether an input also crashes a fresh process,
//! or needs inputs that ran before it. The test follows once the crash is on disk; the needed inputs are
//! written beside it.

use std::time::{Duration, Instant};

use super::CampaignError;
use super::outside::Outside;
use crate::engine::corpus::names;
use crate::engine::executor::ExitKind;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::door::{Door, DoorError, Host, Run};
use crate::mutators::Mutators;
use crate::sys::stop::Stop;

/// Maximum number of recorded inputs of a process.
pub(super) const MOST_BEFORE: usize = 1000;
/// Maximum number of earlier inputs saved for a crash that cannot be repeated.
const KEPT: usize = 64;
/// Maximum number of such files for all crashes of a campaign.
const MOST_FILES: u64 = 10_000;
/// Number of runs alone. A crash in a third of such runs is taken for a dependent one in one case of
/// thirteen.
const ALONE: u32 = 7;
/// Time limit for one crash; beyond that, the share of the campaign's time (1/`PART`) for all of them.
const LONGEST: Duration = Duration::from_secs(2);
const PART: u32 = 10;

/// Condition under which a crash occurs.
pub(super) enum CrashCondition {
    /// None: it occurs in a fresh process.
    Nothing,
    /// The last N inputs before it must run in the same process.
    Inputs(usize),
    /// Unknown: it did not recur.
    Unknown,
}

impl Outside {
    /// Time limit for confirming one more crash; None if the time is used up.
    pub(super) fn limit_of_confirming(&self) -> Option<Limit> {
        let statistics = &self.statistics;
        let allowed = LONGEST + statistics.started.elapsed() / PART;
        let left = allowed.saturating_sub(statistics.confirming).min(LONGEST);
        let stop = self.limits.stop.clone();
        (!left.is_zero()).then(|| Limit { end: Instant::now() + left, stop })
    }

    /// Writes the last of `inputs` beside a crash, in the number that the user set.
    pub(super) fn save_record(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        crash: u64,
        inputs: &[Vec<u8>],
        asked: usize,
    ) -> Result<(), CampaignError> {
        let last = &inputs[inputs.len().saturating_sub(asked)..];
        for (number, input) in last.iter().enumerate() {
            let name = names::record_name(crash, number);
            self.write(fuzzer, |output| output.save_record(&name, input))?;
        }
        Ok(())
    }

    /// Writes the target's account of a crash beside it, which a new process does not show.
    pub(super) fn save_account(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        crash: u64,
        account: &str,
    ) -> Result<(), CampaignError> {
        self.statistics.dependent_crashes += 1;
        self.warn(format!("crash {crash}: {account}"));
        let name = format!("{}.txt", names::record_start(crash));
        self.write(fuzzer, |output| output.save_before(&name, format!("{account}\n").as_bytes()))
            .map(drop)
    }

    /// Writes beside a crash, the last of `inputs`, the other inputs that it needs.
    pub(super) fn save_needed(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        crash: u64,
        inputs: &[Vec<u8>],
        needs: CrashCondition,
    ) -> Result<(), CampaignError> {
        let (count, known) = match needs {
            CrashCondition::Nothing => return Ok(()),
            CrashCondition::Inputs(count) => (count, true),
            CrashCondition::Unknown => (KEPT.min(inputs.len() - 1), false),
        };
        self.statistics.dependent_crashes += 1;
        if self.statistics.record_files + count as u64 > MOST_FILES {
            return Ok(());
        }
        let before = &inputs[inputs.len() - 1 - count..];
        self.statistics.record_files += before.len() as u64;
        for (number, input) in before.iter().enumerate() {
            let name = names::record_name(crash, number);
            self.write(fuzzer, |output| output.save_before(&name, input))?;
        }
        let said = match known {
            true => format!("it crashes in a process that gets these inputs first: {count}\n"),
            false => format!("it did not crash again, neither alone nor after these: {count}\n"),
        };
        let name = format!("{}.txt", names::record_start(crash));
        self.write(fuzzer, |output| output.save_before(&name, said.as_bytes())).map(drop)
    }
}

/// Deadline of a confirmation.
pub(super) struct Limit {
    end: Instant,
    stop: Stop,
}

impl Limit {
    fn is_reached(&self) -> bool {
        Instant::now() >= self.end || self.stop.is_over()
    }
}

/// Determines what the last of `inputs` needs to crash: alone first, then after more and more of the others.
pub(super) fn needs<H: Host>(
    door: &mut Door<'_, H>,
    inputs: &[Vec<u8>],
    limit: &Limit,
) -> Result<CrashCondition, H::Error> {
    for _ in 0..ALONE {
        if crashes_again(door, &inputs[inputs.len() - 1..], limit.end)? {
            return Ok(CrashCondition::Nothing);
        }
        if limit.is_reached() {
            return Ok(CrashCondition::Unknown);
        }
    }
    let most = inputs.len() - 1;
    let mut count = 1;
    loop {
        if limit.is_reached() {
            return Ok(CrashCondition::Unknown);
        }
        if crashes_again(door, &inputs[most - count..], limit.end)? {
            return Ok(CrashCondition::Inputs(count));
        }
        if count == most {
            return Ok(CrashCondition::Unknown);
        }
        count = (count * 2).min(most);
    }
}

/// Returns true if a fresh process that runs these inputs crashes on the last of them.
fn crashes_again<H: Host>(
    door: &mut Door<'_, H>,
    inputs: &[Vec<u8>],
    end: Instant,
) -> Result<bool, H::Error> {
    door.fuzzer_mut().end_process();
    let Some((last, before)) = inputs.split_last() else { return Ok(false) };
    for input in before {
        let exit = exit_of(door, input)?;
        if exit != ExitKind::Ok || Instant::now() >= end {
            return Ok(false);
        }
    }
    Ok(matches!(exit_of(door, last)?, ExitKind::Crash { .. } | ExitKind::Oom))
}

/// Runs an input. A run that the user interrupts counts as a hang and proves nothing.
fn exit_of<H: Host>(door: &mut Door<'_, H>, input: &[u8]) -> Result<ExitKind, H::Error> {
    match door.run(Run { is_delivered: true, ..Run::of(input) }) {
        Err(error) if error.is_interruption() => Ok(ExitKind::Hang),
        seen => Ok(seen?.exit),
    }
}
