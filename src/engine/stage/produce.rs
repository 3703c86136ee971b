//! Producers: what makes candidates from a seed, one after the other.

use std::time::Duration;

use super::foreign::{Base, Foreign};
use crate::corpus::{Origin, SeedId, Step};
use crate::mutate::deterministic::Deterministic;
use crate::mutate::dictionary::Dictionary;
use crate::mutate::donors::{DONOR_ATTEMPTS, Lent};
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::mutate::havoc::{HavocContext, havoc};
use crate::mutate::splice::splice;
use crate::mutate::{Candidate, Rng};
use crate::schedule::Budget;

/// What producers work from.
#[derive(Clone, Copy)]
pub struct Materials<'a> {
    pub seed: SeedId,
    pub input: &'a [u8],
    /// The input is text, see [`crate::mutate::is_text`].
    pub text: bool,
    /// Havoc changes whole words, see [`HavocContext::words`].
    pub words: bool,
    pub dictionary: &'a Dictionary,
    pub donors: Lent<'a>,
    pub min_len: usize,
    pub max_len: usize,
    /// Block classes and stack depth that havoc may use; they grow while nothing is found.
    pub long_blocks: u32,
    pub stack_power: u32,
    /// The seed is a step on the way to a higher value, see [`HavocContext::gentle`].
    pub climbing: bool,
    /// See [`HavocContext::exploit`].
    pub exploit: bool,
    /// Time that the stage has taken so far.
    pub spent: Duration,
}

impl Materials<'_> {
    fn havoc_context<'b>(&'b self, donor: Option<&'b [u8]>) -> HavocContext<'b> {
        HavocContext {
            dictionary: self.dictionary,
            donor,
            min_len: self.min_len,
            max_len: self.max_len,
            long_blocks: self.long_blocks,
            stack_power: self.stack_power,
            text: self.text,
            words: self.words,
            exploit: self.exploit,
            gentle: self.climbing,
        }
    }
}

/// Makes candidates.
pub enum Producer {
    /// `done`: steps of this slice.
    Deterministic {
        steps: Box<Deterministic>,
        done: u64,
        slice: Budget,
        paused: bool,
    },
    Havoc {
        done: u64,
        budget: Budget,
    },
    /// Rounds of: join with another seed, then foreign mutators and havoc on the result.
    Splice {
        done: u64,
        budget: Budget,
        joined: Vec<u8>,
        other: Option<SeedId>,
        foreign: Foreign,
        foreign_budget: Budget,
    },
    /// Foreign mutators.
    Custom {
        foreign: Foreign,
    },
}

/// Havoc runs between two splices, AFL++'s number.
const SPLICE_HAVOC: u64 = 32;

impl Producer {
    #[must_use]
    pub fn deterministic(steps: Deterministic, slice: Budget) -> Self {
        Self::Deterministic { steps: Box::new(steps), done: 0, slice, paused: false }
    }

    #[must_use]
    pub fn havoc(budget: Budget) -> Self {
        Self::Havoc { done: 0, budget }
    }

    /// `foreign_budget`: of each foreign mutator after each join.
    #[must_use]
    pub fn splice(budget: Budget, foreign_budget: Budget) -> Self {
        let foreign = Foreign::ended();
        Self::Splice { done: 0, budget, joined: Vec::new(), other: None, foreign, foreign_budget }
    }

    #[must_use]
    pub fn custom(budget: Budget) -> Self {
        Self::Custom { foreign: Foreign::new(budget) }
    }

    /// Of mutators whose turn comes after all others'.
    #[must_use]
    pub fn modules(budget: Budget) -> Self {
        Self::Custom { foreign: Foreign::late(budget) }
    }

    /// Name for the status screen and for the table of yields.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deterministic { steps, .. } => steps.stage_name(),
            Self::Havoc { .. } => "havoc",
            Self::Splice { .. } => "splice",
            Self::Custom { .. } => "custom",
        }
    }

    /// Runs done and planned, after the stage took this time.
    #[must_use]
    pub fn progress(&self, spent: Duration) -> (u64, u64) {
        match self {
            Self::Deterministic { steps, .. } => (steps.done(), steps.planned()),
            Self::Havoc { done, budget } | Self::Splice { done, budget, .. } => {
                (*done, budget.planned(*done, spent))
            }
            Self::Custom { foreign } => foreign.progress(spent),
        }
    }

    /// Lengthens the stage: it just found something, and more may be near.
    pub fn extend(&mut self) {
        if let Self::Havoc { budget, .. } | Self::Splice { budget, .. } = self {
            budget.extend();
        }
        if let Self::Custom { foreign } = self {
            foreign.extend();
        }
    }

    /// True if it may change whole words of text.
    #[must_use]
    pub fn knows_words(&self) -> bool {
        matches!(self, Self::Havoc { .. })
    }

    /// True if candidates take pieces of other seeds.
    #[must_use]
    pub fn has_donors(&self) -> bool {
        !matches!(self, Self::Deterministic { .. })
    }

    /// True if a foreign mutator is to describe a find, which it can do only for its last input.
    #[must_use]
    pub fn is_described(&self, mutators: &dyn ForeignMutators) -> bool {
        let foreign = matches!(self, Self::Custom { .. } | Self::Splice { .. });
        foreign && mutators.describes()
    }

    /// The stage is over, maybe before its time.
    pub fn end(&mut self, mutators: &mut dyn ForeignMutators) {
        if let Self::Custom { foreign } | Self::Splice { foreign, .. } = self {
            foreign.end(mutators);
        }
    }

    /// True if the outcome of the last candidate has to be told by [`Producer::report`].
    #[must_use]
    pub fn wants_report(&self) -> bool {
        matches!(self, Self::Deterministic { steps, .. } if steps.wants_report())
    }

    /// Whether the last candidate's run differed from the seed's.
    pub fn report(&mut self, changed: bool) {
        if let Self::Deterministic { steps, .. } = self {
            steps.report(changed);
        }
    }

    /// The walk, if it only paused.
    #[must_use]
    pub fn suspended(self) -> Option<Deterministic> {
        match self {
            Self::Deterministic { steps, paused: true, .. } => Some(*steps),
            _ => None,
        }
    }

    /// Writes the next candidate in `out`, unless a foreign mutator has none this time.
    pub fn next(
        &mut self,
        from: &Materials<'_>,
        (mutators, rng): (&mut dyn ForeignMutators, &mut Rng),
        out: &mut Candidate,
    ) -> Made {
        match self {
            Self::Deterministic { steps, done, slice, paused } => {
                *paused = slice.is_used(*done, from.spent);
                if *paused {
                    return Made::Over;
                }
                *done += 1;
                let step = steps.next(from.input, from.dictionary, &mut out.bytes);
                let Some(step) = step else { return Made::Over };
                out.origin = Origin { parent: from.seed, other: None, step, by: 0 };
                Made::Input
            }
            Self::Havoc { done, budget } => {
                if budget.is_used(*done, from.spent) {
                    return Made::Over;
                }
                if *done == 0 {
                    mutators.havoc_begins();
                }
                *done += 1;
                let base = Base { input: from.input, other: None };
                let op = if from.words { "words" } else { "havoc" };
                next_havoc(from, (mutators, rng), base, op, out);
                Made::Input
            }
            Self::Splice { done, budget, joined, other, foreign, foreign_budget } => {
                if budget.is_used(*done, from.spent) {
                    return Made::Over;
                }
                if *done % SPLICE_HAVOC == 0 && foreign.is_over(mutators) {
                    *other = join(from, rng, joined);
                    *foreign = Foreign::new(*foreign_budget);
                }
                let Some(id) = *other else { return Made::Over };
                let base = Base { input: joined, other: Some(id) };
                match foreign.next(base, from, (mutators, rng), out) {
                    Made::Over => {}
                    made => return made,
                }
                if *done % SPLICE_HAVOC == 0 {
                    mutators.havoc_begins();
                }
                *done += 1;
                next_havoc(from, (mutators, rng), base, "splice", out);
                Made::Input
            }
            Self::Custom { foreign } => {
                let base = Base { input: from.input, other: None };
                foreign.next(base, from, (mutators, rng), out)
            }
        }
    }
}

fn next_havoc(
    from: &Materials<'_>,
    (mutators, rng): (&mut dyn ForeignMutators, &mut Rng),
    base: Base<'_>,
    op: &'static str,
    out: &mut Candidate,
) {
    let donor = from.donors.draw(rng).map(|(_, bytes)| bytes);
    out.bytes.clear();
    out.bytes.extend_from_slice(base.input);
    let context = from.havoc_context(donor);
    let mut by = 0;
    let count = if mutators.joins_havoc() {
        let mut pause = mutators.havoc_pause();
        let foreign = |bytes: &mut Vec<u8>| {
            if pause > 0 {
                pause -= 1;
                return;
            }
            by |= mutators.havoc(bytes, from.max_len);
            pause = mutators.havoc_pause();
        };
        let count = havoc(rng, &mut out.bytes, &context, foreign);
        mutators.havoc_paused(pause);
        count
    } else {
        havoc(rng, &mut out.bytes, &context, |_| {})
    };
    let step = Step::Stacked { op, count };
    out.origin = Origin { parent: from.seed, other: base.other, step, by };
}

/// Joins the seed with another one.
fn join(from: &Materials<'_>, rng: &mut Rng, joined: &mut Vec<u8>) -> Option<SeedId> {
    (0..DONOR_ATTEMPTS).find_map(|_| {
        let (id, bytes) = from.donors.draw(rng)?;
        let fits = splice(rng, from.input, bytes, joined) && joined.len() <= from.max_len;
        fits.then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn a_walk_in_slices_makes_every_candidate_once() {
        let dictionary = Dictionary::default();
        let from = Materials {
            seed: SeedId(0),
            input: b"seed",
            text: true,
            words: false,
            dictionary: &dictionary,
            donors: Lent::default(),
            min_len: 1,
            max_len: 1024,
            long_blocks: 1,
            stack_power: 4,
            climbing: false,
            exploit: false,
            spent: Duration::ZERO,
        };
        let mut rng = Rng::seed_from_u64(1);
        let mut made = |slice: u64| {
            let (mut all, mut out) = (Vec::new(), Candidate::default());
            let mut steps = Some(Deterministic::new(4, &dictionary, false));
            while let Some(walk) = steps.take() {
                let (mut stage, before) =
                    (Producer::deterministic(walk, Budget::of_runs(slice)), all.len() as u64);
                let mut mutators = crate::mutate::foreign::NoMutators;
                while stage.next(&from, (&mut mutators, &mut rng), &mut out) == Made::Input {
                    all.push(out.bytes.clone());
                }
                assert!(all.len() as u64 - before <= slice);
                steps = stage.suspended();
            }
            all
        };
        let whole = made(u64::MAX);
        assert!(whole.len() > 100);
        assert_eq!(made(100), whole);
    }
}
