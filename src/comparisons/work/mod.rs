//! The work on the comparisons of a seed: for each of its inputs, tries to flip the comparisons of its run.
//!
//! If an operand is a copy of bytes of the input, the other operand replaces them (`copies.rs`). If that flips
//! nothing, runs show which bytes decide the open comparisons, and how (`probe.rs`).

mod ask;
mod copies;
mod fields;
mod probe;
mod restore;

pub use ask::{Edits, Lent, Order, Ran, Reply, SeedInput, Work};

use std::collections::VecDeque;

use ffuzz_mutate::{Rng, below, messages};

use self::ask::Ask;
use crate::InputRules;
use crate::log::{ComparisonKind, OwnLog};
use crate::results::{Missing, Place, SiteCounts};

/// Maximum number of inputs in a round, for copies and for the probe.
const MOST_INPUTS: usize = 64;
/// An attempt that no longer reaches its comparison is repeated with a longer input: it may have changed a length or
/// an offset. Maximum number of such repeats for one input or comparison, and the bytes added.
const MOST_EXTENSIONS: usize = 64;
const EXTENSION: usize = 64;
/// Maximum number of inputs in a round that are tried with more bytes at their end if nothing flips: the program may
/// read a field there.
const MOST_LENGTHENED: usize = 2;
/// Maximum bytes of inputs kept for the next round of a seed.
const LARGEST_CUT: usize = 1 << 16;

/// Inputs of one seed still to be solved.
#[derive(Debug)]
pub struct Inputs {
    /// Inputs whose copies are tried next, the last one first.
    fresh: Vec<Vec<u8>>,
    unprobed: VecDeque<Unprobed>,
}

/// An input whose copies were tried and that is to be probed.
#[derive(Debug)]
struct Unprobed {
    input: Vec<u8>,
    /// See [`Base`].
    colored: Vec<u8>,
}

impl Inputs {
    /// The first input of a seed.
    #[must_use]
    pub fn of(seed: &[u8]) -> Self {
        Self { fresh: vec![seed.into()], unprobed: VecDeque::new() }
    }

    /// True if some are left, few enough to be kept until the next round.
    #[must_use]
    pub fn are_small(&self) -> bool {
        let fresh = self.fresh.iter().map(Vec::len);
        let unprobed = self.unprobed.iter().map(|one| one.input.len() * 2);
        (1..=LARGEST_CUT).contains(&fresh.chain(unprobed).sum())
    }
}

/// The current input and the log of its run.
#[derive(Debug)]
struct Base {
    input: Vec<u8>,
    /// The input with other bytes where they decide nothing, see [`Logged`](crate::input_to_state::Logged).
    colored: Vec<u8>,
    counts: SiteCounts,
    log: OwnLog,
}

impl Base {
    fn of(input: &[u8], colored: Vec<u8>, log: OwnLog) -> Self {
        Self { input: input.into(), colored, counts: SiteCounts::of(log.view()), log }
    }

    /// Applies the changes of `changed` to the colored input. Returns `changed` itself if its length differs.
    fn colored_like(&self, changed: &[u8]) -> Vec<u8> {
        if changed.len() != self.input.len() {
            return changed.to_vec();
        }
        let bytes = changed.iter().zip(&self.input).zip(&self.colored);
        bytes.map(|((new, old), colored)| if new == old { *colored } else { *new }).collect()
    }
}

/// Work on a seed and the inputs that flipped something, the newest first: behind a comparison comes another one.
/// Probes cost more and come after all copies. The result are the inputs that are left.
#[must_use]
pub fn work_on(seed: SeedInput, inputs: Inputs, rules: InputRules, rng: Rng) -> Work<Inputs> {
    Work::new(seed, rules, |ask| async move {
        let mut round = Round { ask, rng, inputs, lengthened: 0 };
        for _ in 0..MOST_INPUTS {
            let Some(flipping) = round.next().await else { break };
            // The first flipped input comes next: most remains behind it.
            round.inputs.fresh.extend(flipping.into_iter().rev());
            if round.ask.is_over() {
                break;
            }
        }
        round.inputs
    })
}

struct Round {
    ask: Ask,
    rng: Rng,
    inputs: Inputs,
    lengthened: usize,
}

impl Round {
    /// Works on the next input. Returns the inputs that flip something; None if no input is left.
    async fn next(&mut self) -> Option<Vec<Vec<u8>>> {
        let Self { ask, rng, inputs, lengthened } = self;
        if let Some(input) = inputs.fresh.pop() {
            ask.begin(&input);
            let (flipping, colored) = copies::flip(ask, rng, &input).await;
            if ask.is_over() {
                inputs.fresh.push(input);
            } else if flipping.is_empty() {
                inputs.unprobed.push_back(Unprobed { input, colored });
            } else {
                // The inputs that flipped it are probed first.
                inputs.unprobed.push_front(Unprobed { input, colored });
            }
            return Some(flipping);
        }
        let unprobed = inputs.unprobed.pop_back()?;
        ask.begin(&unprobed.input);
        let flipping = probe::flip(ask, rng, &unprobed).await;
        if ask.is_over() {
            inputs.unprobed.push_back(unprobed);
        } else if flipping.is_empty() && *lengthened < MOST_LENGTHENED {
            *lengthened += 1;
            let longer = extended(&ask.rules, rng, &unprobed.input);
            inputs.fresh.push(ask.logged(longer, "length").await.bytes);
        }
        Some(flipping)
    }
}

/// The input with random letters at its end, so that repair can locate a field that is read from there.
fn extended(rules: &InputRules, rng: &mut Rng, input: &[u8]) -> Vec<u8> {
    let count = EXTENSION.min(rules.lengths.end().saturating_sub(input.len()));
    let more: Vec<u8> = (0..count).map(|_| b'a' + below(rng, 26) as u8).collect();
    with_end(rules, input, &more)
}

/// The input with more bytes at its end: in its last message if it is a list of them.
fn with_end(rules: &InputRules, input: &[u8], more: &[u8]) -> Vec<u8> {
    let mut longer = Vec::new();
    match rules.messages && messages::edit(input, input.len()..input.len(), more, &mut longer) {
        true => longer,
        false => [input, more].concat(),
    }
}

/// Whether a comparison missing in the log of the changed input is now equal, for logs that omit equal integers. If
/// the log is ambiguous, a usual run decides: it must make a seed. `op`: how the input was made.
async fn comes_equal(
    ask: &Ask,
    base: &Base,
    place: Place,
    kind: ComparisonKind,
    changed: &Ran,
    op: &'static str,
) -> bool {
    let missing = base.counts.missing(&SiteCounts::of(changed.log.view()), place.site);
    let is_flipped = match missing {
        Missing::Not => false,
        Missing::Equal => true,
        Missing::EqualOrUnreached | Missing::Unknown => {
            ask.try_out(changed.bytes.clone(), op).await
        }
    };
    if is_flipped && missing != Missing::Unknown {
        ask.lent().results.learn_equal(place, kind, &base.input);
    }
    is_flipped
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng as _;

    use super::*;

    /// Works on a seed, whose runs are calls of `target`. Returns the inputs that were run as usual mutants, and those
    /// that are left. `runs`: number of runs with a log after which the round is to end.
    fn worked(
        seed: &[u8],
        runs: usize,
        target: impl Fn(&[u8], &mut OwnLog),
    ) -> (Vec<Vec<u8>>, Inputs) {
        let rules = InputRules { lengths: 1..=64, messages: false, is_partial: false };
        let input = SeedInput { number: 0, bytes: seed.into() };
        let mut work = work_on(input, Inputs::of(seed), rules, Rng::seed_from_u64(1));
        let (mut lent, mut tried, mut logged) = (Lent::default(), Vec::new(), 0);
        loop {
            match work.take_order() {
                None => assert_eq!(logged, 0, "it waits without an order"),
                Some(Order::Log { input, to, .. }) => {
                    let mut log = OwnLog::default();
                    target(&input, &mut log);
                    logged += 1;
                    to.send(Ran { bytes: input, log, ends_well: true });
                }
                Some(Order::TryOut { input, to, .. }) => {
                    tried.push(input);
                    to.send(false);
                }
                Some(Order::Edit { edits: Edits { input, edits, .. }, to }) => {
                    tried.extend(edits.iter().map(|edit| edit.applied(&input)));
                    to.send(());
                }
                Some(Order::Lengths { to, .. }) => to.send(Vec::new()),
                Some(Order::Deciding { to, .. }) => to.send(Box::default()),
                Some(Order::NoteDeciding { to, .. }) => to.send(()),
            }
            if let Some(left) = work.go_on(&mut lent, logged >= runs) {
                return (tried, left);
            }
        }
    }

    fn word(input: &[u8], at: usize) -> u32 {
        input.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
    }

    /// A copy of the input, and behind it a calculated value.
    fn gates(input: &[u8], log: &mut OwnLog) {
        log.add_integers(1, ComparisonKind::Equal, 4, word(input, 0).into(), 0xcafe_f00d);
        if word(input, 0) == 0xcafe_f00d {
            let sum = word(input, 4).wrapping_mul(3).wrapping_add(word(input, 8));
            log.add_integers(2, ComparisonKind::Equal, 4, sum.into(), 0x1234_5678);
        }
    }

    #[test]
    fn gates_of_one_seed_are_passed_one_after_the_other() {
        let (tried, left) = worked(b"0123456789ab", usize::MAX, gates);
        let passes = |input: &&Vec<u8>| {
            let sum = word(input, 4).wrapping_mul(3).wrapping_add(word(input, 8));
            word(input, 0) == 0xcafe_f00d && sum == 0x1234_5678
        };
        assert!(tried.iter().any(|input| passes(&input)), "{} inputs", tried.len());
        assert!(!left.are_small(), "nothing is left");
    }

    #[test]
    fn a_round_that_ends_early_leaves_its_input() {
        let (_, left) = worked(b"0123456789ab", 1, gates);
        assert!(left.are_small());
        assert_eq!(left.fresh, [b"0123456789ab"]);
    }
}
