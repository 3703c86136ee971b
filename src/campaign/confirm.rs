//! Crashes of processes that take many inputs: does the input crash a fresh one, or does it need what came
//! before it? That is asked when the crash is on the disk, and what is needed is written beside it.

use std::time::{Duration, Instant};

use super::{Campaign, CampaignError};
use crate::engine::corpus::names;
use crate::engine::executor::ExitKind;
use crate::engine::fuzzer::door::{Door, DoorError, Run};

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
enum Needs {
    /// It happens in a fresh process.
    Nothing,
    /// These inputs in the same process before it.
    Inputs(usize),
    /// It did not happen again.
    Unknown,
}

impl Campaign {
    /// Looks whether a crash that was just saved happens in a process of its own, and keeps what came before
    /// it if not.
    pub(super) fn confirm_crash(&mut self, crash: u64) -> Result<(), CampaignError> {
        let inputs = self.fuzzer.take_record();
        let asked = self.options.findings.record;
        if asked > 0 {
            let last = &inputs[inputs.len().saturating_sub(asked)..];
            for (number, input) in last.iter().enumerate() {
                let name = names::record_name(crash, number);
                self.write(|output| output.save_record(&name, input))?;
            }
        }
        // Some(0): the crash took the fork server along, and there was no run since.
        let is_many = self.fuzzer.target().process().is_some_and(|process| process != 0);
        if !is_many || inputs.len() < 2 {
            return Ok(());
        }
        let begin = Instant::now();
        let allowed = LONGEST + self.statistics.started.elapsed() / PART;
        let left = allowed.saturating_sub(self.statistics.confirming).min(LONGEST);
        let needs = match left.is_zero() {
            true => Needs::Unknown,
            false => self.needs(&inputs, begin + left)?,
        };
        self.statistics.confirming += begin.elapsed();
        // What the next crash needs begins with a process of its own.
        self.fuzzer.end_process();
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
            self.write(|output| output.save_before(&name, input))?;
        }
        let said = match known {
            true => format!("it crashes in a process that gets these inputs first: {count}\n"),
            false => format!("it did not crash again, neither alone nor after these: {count}\n"),
        };
        let name = format!("{}.txt", names::record_start(crash));
        self.write(|output| output.save_before(&name, said.as_bytes())).map(drop)
    }

    /// Alone first, then after ever more of what came before.
    fn needs(&mut self, inputs: &[Vec<u8>], end: Instant) -> Result<Needs, CampaignError> {
        for _ in 0..ALONE {
            if self.crashes_again(&inputs[inputs.len() - 1..], end)? {
                return Ok(Needs::Nothing);
            }
            if Instant::now() >= end || self.stop.is_over() {
                return Ok(Needs::Unknown);
            }
        }
        let most = inputs.len() - 1;
        let mut count = 1;
        loop {
            if Instant::now() >= end || self.stop.is_over() {
                return Ok(Needs::Unknown);
            }
            if self.crashes_again(&inputs[most - count..], end)? {
                return Ok(Needs::Inputs(count));
            }
            if count == most {
                return Ok(Needs::Unknown);
            }
            count = (count * 2).min(most);
        }
    }

    /// Whether a fresh process that gets these inputs crashes at the last of them.
    fn crashes_again(&mut self, inputs: &[Vec<u8>], end: Instant) -> Result<bool, CampaignError> {
        self.fuzzer.end_process();
        let Some((last, before)) = inputs.split_last() else { return Ok(false) };
        for input in before {
            let exit = self.exit_of(input)?;
            if exit != ExitKind::Ok || Instant::now() >= end {
                return Ok(false);
            }
        }
        Ok(matches!(self.exit_of(last)?, ExitKind::Crash { .. } | ExitKind::Oom))
    }

    /// A run that is given up because of the user proves nothing.
    fn exit_of(&mut self, input: &[u8]) -> Result<ExitKind, CampaignError> {
        match self.run(Run { is_delivered: true, ..Run::of(input) }) {
            Err(error) if error.is_interruption() => Ok(ExitKind::Hang),
            seen => Ok(seen?.exit),
        }
    }
}
