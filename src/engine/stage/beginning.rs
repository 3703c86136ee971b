//! Chooses how many first messages of a seed all mutants of a turn share, so that their runs start after these
//! messages ([`RunSettings::beginning`](crate::executor::RunSettings::beginning)).
//!
//! One turn in three shares none, so that every message is mutated. Half of the others use the largest number that
//! pays, half a random one of those that pay. A number pays if the runs of the turn save more than twice the start of
//! a new process with these messages: one is needed for the turn, and another one after it.

use std::collections::HashMap;
use std::time::Duration;

use super::Turn;
use crate::corpus::SeedId;
use crate::fuzzer::door::{Door, Host, Run};
use crate::messages::{Beginning, messages};
use crate::mutate::below;
use crate::mutate::foreign::ForeignMutators as _;
use crate::schedule::Budget;

/// Maximum number of message counts that are timed for a seed.
const MOST_TIMED: usize = 8;
/// Runs for one timing; the quickest counts.
const TIMED_RUNS: u32 = 3;
/// One turn in this number shares no messages.
const WHOLE_ONE_OF: u32 = 3;

/// Measured times of the first messages of seeds.
#[derive(Debug, Default)]
pub(super) struct MessageTimes {
    of_seeds: HashMap<SeedId, Timed>,
}

/// The times of one seed.
#[derive(Clone, Debug)]
struct Timed {
    /// Length of the seed when it was timed.
    len: usize,
    /// Message counts, ascending, and the time of a session with them beyond that of an empty session.
    saved: Vec<(usize, Duration)>,
}

impl MessageTimes {
    /// Chooses the shared messages of a turn with this budget; None: mutants change the whole input.
    pub(super) fn choose<H: Host>(
        &mut self,
        Turn { door, id, shared }: &mut Turn<'_, H>,
        budget: Budget,
    ) -> Result<Option<Beginning>, H::Error> {
        let (id, fuzzer) = (*id, door.fuzzer_mut());
        let can = fuzzer.mutation.messages
            && fuzzer.counts_time()
            && fuzzer.target().shares_beginnings()
            && !fuzzer.mutators.touch_runs()
            && !shared.logs.have_fields(&fuzzer.corpus, id);
        if !can || below(&mut fuzzer.rng, WHOLE_ONE_OF) == 0 {
            return Ok(None);
        }
        let run = Duration::from_micros(fuzzer.corpus[id].exec_us);
        let runs = u32::try_from(budget.expected(run)).unwrap_or(u32::MAX);
        let start = fuzzer.target().snapshot_runs().unwrap_or_default().start;
        let pays = |saved: Duration| saved.saturating_mul(runs) > 2 * (start + saved);
        if !pays(run) {
            return Ok(None);
        }
        let saved = self.time_messages(door, id)?;
        let fuzzer = door.fuzzer_mut();
        let paying: Vec<usize> =
            saved.iter().filter(|(_, saved)| pays(*saved)).map(|(count, _)| *count).collect();
        let drawn = below(&mut fuzzer.rng, paying.len() as u32) as usize;
        let wanted = if below(&mut fuzzer.rng, 2) == 0 { paying.last() } else { paying.get(drawn) };
        let data = &fuzzer.corpus[id].data;
        Ok(wanted.and_then(|count| Beginning::of(data, *count)))
    }

    /// Times of sessions with the first messages of a seed, by message count.
    fn time_messages<H: Host>(
        &mut self,
        door: &mut Door<'_, H>,
        id: SeedId,
    ) -> Result<Vec<(usize, Duration)>, H::Error> {
        let data = door.fuzzer().corpus[id].data.clone();
        if let Some(timed) = self.of_seeds.get(&id).filter(|timed| timed.len == data.len()) {
            return Ok(timed.saved.clone());
        }
        let most = messages(&data).count().saturating_sub(1);
        let none = time_of(door, &[])?;
        let mut saved = Vec::new();
        for part in 1..=most.min(MOST_TIMED) {
            let count = part * most / most.min(MOST_TIMED);
            let Some(beginning) = Beginning::of(&data, count) else { continue };
            saved.push((count, time_of(door, beginning.bytes())?.saturating_sub(none)));
        }
        self.of_seeds.insert(id, Timed { len: data.len(), saved: saved.clone() });
        Ok(saved)
    }
}

fn time_of<H: Host>(door: &mut Door<'_, H>, input: &[u8]) -> Result<Duration, H::Error> {
    let mut quickest = Duration::MAX;
    for _ in 0..TIMED_RUNS {
        quickest = quickest.min(door.run(Run::of(input))?.duration);
    }
    Ok(quickest)
}
