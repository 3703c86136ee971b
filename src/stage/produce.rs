//! Producers: stages that make candidates from a seed, one after the other.

use crate::corpus::{Origin, SeedId, Step};
use crate::mutate::deterministic::Deterministic;
use crate::mutate::dictionary::Dictionary;
use crate::mutate::havoc::{HavocContext, havoc};
use crate::mutate::splice::splice;
use crate::mutate::{Candidate, Rng, below};

/// Most runs of the deterministic stage on one seed. The full classic stage is a net loss on
/// larger inputs (fuzzbench 113); this keeps the quick early steps and all steps on small inputs.
const DETERMINISTIC_RUNS: u64 = 16 * 1024;

/// Attempts to find a second seed that can be spliced.
const DONOR_ATTEMPTS: u32 = 8;

/// What producers work from.
#[derive(Clone, Copy)]
pub struct Materials<'a> {
    pub seed: SeedId,
    pub input: &'a [u8],
    /// The input is text, see [`crate::mutate::is_text`].
    pub text: bool,
    pub dictionary: &'a Dictionary,
    /// Number of seeds, and their bytes.
    pub seeds: u32,
    pub bytes_of: &'a dyn Fn(SeedId) -> &'a [u8],
    pub min_len: usize,
    pub max_len: usize,
    /// Block classes and stack depth that havoc may use; they grow while nothing is found.
    pub long_blocks: u32,
    pub stack_power: u32,
    /// The seed is a step on the way to a higher value, see [`HavocContext::gentle`].
    pub climbing: bool,
}

impl<'a> Materials<'a> {
    /// Another seed, drawn at random.
    fn donor(&self, rng: &mut Rng) -> Option<(SeedId, &'a [u8])> {
        (0..DONOR_ATTEMPTS)
            .map(|_| SeedId(below(rng, self.seeds.max(1))))
            .map(|id| (id, (self.bytes_of)(id)))
            .find(|(id, bytes)| *id != self.seed && bytes.len() >= 4)
    }

    fn havoc_context<'b>(&'b self, donor: Option<&'b [u8]>) -> HavocContext<'b> {
        HavocContext {
            dictionary: self.dictionary,
            donor,
            min_len: self.min_len,
            max_len: self.max_len,
            long_blocks: self.long_blocks,
            stack_power: self.stack_power,
            text: self.text,
            exploit: false,
            gentle: self.climbing,
        }
    }
}

/// A stage that makes candidates.
pub enum Producer {
    /// `until`: number of steps after which the walk pauses.
    Deterministic {
        steps: Box<Deterministic>,
        until: u64,
    },
    Havoc {
        done: u64,
        planned: u64,
    },
    /// Rounds of: join with another seed, then havoc on the result.
    Splice {
        done: u64,
        planned: u64,
        joined: Vec<u8>,
        other: Option<SeedId>,
    },
}

/// Runs up to which a stage that finds something is doubled, AFL's number: one that finds for ever
/// would starve all other seeds.
const LONGEST_EXTENSION: u64 = 6400;

/// Havoc runs between two splices, AFL++'s number.
const SPLICE_HAVOC: u64 = 32;

impl Producer {
    #[must_use]
    pub fn deterministic(steps: Deterministic, slice: u64) -> Self {
        let until = steps.done().saturating_add(slice).min(DETERMINISTIC_RUNS);
        Self::Deterministic { steps: Box::new(steps), until }
    }

    #[must_use]
    pub fn havoc(planned: u64) -> Self {
        Self::Havoc { done: 0, planned }
    }

    #[must_use]
    pub fn splice(planned: u64) -> Self {
        Self::Splice { done: 0, planned, joined: Vec::new(), other: None }
    }

    /// Name for the status screen and for the table of yields.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Deterministic { steps, .. } => steps.stage_name(),
            Self::Havoc { .. } => "havoc",
            Self::Splice { .. } => "splice",
        }
    }

    /// Runs done and planned.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Self::Deterministic { steps, .. } => {
                (steps.done(), steps.planned().min(DETERMINISTIC_RUNS))
            }
            Self::Havoc { done, planned } | Self::Splice { done, planned, .. } => (*done, *planned),
        }
    }

    /// Lengthens the stage: it just found something, and more may be near.
    pub fn extend(&mut self) {
        if let Self::Havoc { planned, .. } | Self::Splice { planned, .. } = self {
            *planned = (*planned * 2).min((*planned).max(LONGEST_EXTENSION));
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
            Self::Deterministic { steps, until } if steps.done() >= until => {
                Some(*steps).filter(|steps| steps.done() < DETERMINISTIC_RUNS)
            }
            _ => None,
        }
    }

    /// Writes the next candidate in `out`; false when the stage is over.
    pub fn next(&mut self, from: &Materials<'_>, rng: &mut Rng, out: &mut Candidate) -> bool {
        let step = match self {
            Self::Deterministic { steps, until } => {
                if steps.done() >= *until {
                    return false;
                }
                steps.next(from.input, from.dictionary, &mut out.bytes).map(|step| (step, None))
            }
            Self::Havoc { done, planned } => {
                *done += 1;
                (*done <= *planned).then(|| next_havoc(from, rng, from.input, "havoc", out))
            }
            Self::Splice { done, planned, joined, other } => {
                if *done % SPLICE_HAVOC == 0 {
                    *other = join(from, rng, joined);
                }
                *done += 1;
                other.filter(|_| *done <= *planned).map(|other| {
                    let (step, _) = next_havoc(from, rng, joined, "splice", out);
                    (step, Some(other))
                })
            }
        };
        let Some((step, other)) = step else { return false };
        out.origin = Origin { parent: from.seed, other, step };
        true
    }
}

fn next_havoc(
    from: &Materials<'_>,
    rng: &mut Rng,
    base: &[u8],
    op: &'static str,
    out: &mut Candidate,
) -> (Step, Option<SeedId>) {
    let donor = from.donor(rng).map(|(_, bytes)| bytes);
    out.bytes.clear();
    out.bytes.extend_from_slice(base);
    let count = havoc(rng, &mut out.bytes, &from.havoc_context(donor));
    (Step::Stacked { op, count }, None)
}

/// Joins the seed with another one.
fn join(from: &Materials<'_>, rng: &mut Rng, joined: &mut Vec<u8>) -> Option<SeedId> {
    (0..DONOR_ATTEMPTS).find_map(|_| {
        let (id, bytes) = from.donor(rng)?;
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
            dictionary: &dictionary,
            seeds: 1,
            bytes_of: &|_| b"seed",
            min_len: 1,
            max_len: 1024,
            long_blocks: 1,
            stack_power: 4,
            climbing: false,
        };
        let mut rng = Rng::seed_from_u64(1);
        let mut made = |slice| {
            let (mut all, mut out) = (Vec::new(), Candidate::default());
            let mut steps = Some(Deterministic::new(4, &dictionary, false));
            while let Some(walk) = steps.take() {
                let (mut stage, before) = (Producer::deterministic(walk, slice), all.len() as u64);
                while stage.next(&from, &mut rng, &mut out) {
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
