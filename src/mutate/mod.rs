//! From a seed to candidates: deterministic steps, havoc, splice, dictionary.
//!
//! No I/O and no clock; the random generator is a parameter, never global.

use crate::corpus::Origin;

/// Random generator of the whole fuzzer: fast, small, reproducible from one seed.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// An input to be run and where it came from. Its buffer is reused from run to run.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    pub bytes: Vec<u8>,
    pub origin: Origin,
}
