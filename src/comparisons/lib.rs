//! What a target compares, and the inputs that change it.
//!
//! | module | |
//! |---|---|
//! | `log`, `text` | the comparisons of one run |
//! | `results`, `blockers` | the results so far; comparisons that always have the same one |
//! | `input_to_state` | edits for operands that are copies of the input |
//! | `solvers` | inputs for operands that are calculated from it |
//! | `checksums` | fields of the input that must equal a calculated value |
//! | `lengths` | edits with updated length fields |

pub mod blockers;
pub mod checksums;
pub mod input_to_state;
pub mod lengths;
pub mod log;
pub mod results;
pub mod solvers;
mod text;
