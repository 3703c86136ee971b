//! What a target compares, and the inputs that change it.
//!
//! | module | |
//! |---|---|
//! | `log`, `text` | the comparisons of one run |
//! | `results`, `blockers` | the results so far; comparisons that always have the same one |
//! | `input_to_state` | edits for operands that are copies of the input |
//! | `solvers` | inputs for operands that are calculated from it |
//! | `checksums` | fields of the input that must equal a calculated value |
//! | `adjust` | edits with updated length fields |
//! | `work` | the runs that all this takes, on one input after another |
//! | `sites` | sites that no run passes, and the seeds that reach them |

pub mod adjust;
pub mod blockers;
pub mod checksums;
pub mod input_to_state;
pub mod log;
pub mod results;
pub mod sites;
mod solvers;
mod text;
pub mod work;

use std::ops::RangeInclusive;

/// What inputs may be.
#[derive(Clone, Debug)]
pub struct InputRules {
    pub lengths: RangeInclusive<usize>,
    /// Inputs are lists of messages.
    pub messages: bool,
    /// See [`ComparisonLog::is_partial`](log::ComparisonLog::is_partial).
    pub is_partial: bool,
}
