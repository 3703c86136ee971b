//! Crashes of processes that take many inputs: does the input crash a fresh one, or does it need what came
//! before it? That is asked when the crash is on the disk, and what is needed is written beside it.

use std::time::{Duration, Instant};

use super::CampaignError;
use super::outside::Outside;
use crate::engine::corpus::names;
use crate::engine::executor::ExitKind;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::door::{Door, DoorError, Run};
use crate::mutators::Mutators;
use crate::sys::stop::Stop;

/// Number of inputs of a process that are remembered.
pub(super) const MOST_BEFORE: usize = 1000;
/// Number of inputs that are kept of those before a crash that nothing repeats,
const KEPT: usize = 64;
/// and of files for all crashes of a campaign.
const MOST_FILES: u64 = 10_000;
/// Runs by itself: one that crashes in a third of its runs is taken for one that needs others in one case of
/// thirteen.
const ALONE: u32 = 7;
/// What one crash may cost, and all of them beyond this part of the campaign's time.
const LONGEST: Duration = Duration::from_secs(2);
const PART: u32 = 10;

/// What a crash needs.
pub(super) enum Needs {
    /// It happens in a fresh process.
    Nothing,
    /// These inputs in the same process before it.
    Inputs(usize),
    /// It did not happen again.
    Unknown,
}

impl Outside {
    /// When the question about one more crash is given up; None if there is no time for it.
    pub(super) fn limit_of_confirming(&self) -> Option<Limit> {
        let statistics = &self.statistics;
        let allowed = LONGEST + statistics.started.elapsed() / PART;
        let left = allowed.saturating_sub(statistics.confirming).min(LONGEST);
        let stop = self.limits.stop.clone();
        (!left.is_zero()).then(|| Limit { end: Instant::now() + left, stop })
    }

    /// Writes the last of `inputs` beside a crash, as many as the user has asked for.
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

    /// Writes beside a crash what is known of it that a new process does not show.
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

    /// Writes beside a crash, the last of `inputs`, what it needs of the others.
    pub(super) fn save_needed(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        crash: u64,
        inputs: &[Vec<u8>],
        needs: Needs,
    ) -> Result<(), CampaignError> {
        let (count, known) = match needs {
            Needs::Nothing => return Ok(()),
            Needs::Inputs(count) => (count, true),
            Needs::Unknown => (KEPT.min(inputs.len() - 1), false),
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

/// When the question is given up.
pub(super) struct Limit {
    end: Instant,
    stop: Stop,
}

impl Limit {
    fn is_reached(&self) -> bool {
        Instant::now() >= self.end || self.stop.is_over()
    }
}

/// What the last of `inputs` needs to crash. Alone first, then after ever more of what came before.
pub(super) fn needs<D: Door>(
    door: &mut D,
    inputs: &[Vec<u8>],
    limit: &Limit,
) -> Result<Needs, D::Error> {
    for _ in 0..ALONE {
        if crashes_again(door, &inputs[inputs.len() - 1..], limit.end)? {
            return Ok(Needs::Nothing);
        }
        if limit.is_reached() {
            return Ok(Needs::Unknown);
        }
    }
    let most = inputs.len() - 1;
    let mut count = 1;
    loop {
        if limit.is_reached() {
            return Ok(Needs::Unknown);
        }
        if crashes_again(door, &inputs[most - count..], limit.end)? {
            return Ok(Needs::Inputs(count));
        }
        if count == most {
            return Ok(Needs::Unknown);
        }
        count = (count * 2).min(most);
    }
}

/// Whether a fresh process that gets these inputs crashes at the last of them.
fn crashes_again<D: Door>(
    door: &mut D,
    inputs: &[Vec<u8>],
    end: Instant,
) -> Result<bool, D::Error> {
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

/// A run that is given up because of the user proves nothing.
fn exit_of<D: Door>(door: &mut D, input: &[u8]) -> Result<ExitKind, D::Error> {
    match door.run(Run { is_delivered: true, ..Run::of(input) }) {
        Err(error) if error.is_interruption() => Ok(ExitKind::Hang),
        seen => Ok(seen?.exit),
    }
}
