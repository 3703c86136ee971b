//! Minimizes the input of a bug like `tmin`, on condition that the crash stays the same.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::rerun::Rerun;
use super::seen::Build;
use ffuzz_engine::minimize::tmin::Tmin;
use ffuzz_exec::TargetError;

/// Result of a minimization.
pub(super) struct Small {
    pub(super) data: Vec<u8>,
    /// False if it was interrupted.
    pub(super) done: bool,
}

/// The smallest input found until the time limit, or until there is no progress.
pub(super) fn minimize(
    rerun: &mut Rerun,
    build: Build,
    input: &[u8],
    time: Duration,
    is_same: impl Fn(u64) -> bool,
    goes_on: impl Fn() -> bool,
) -> Result<Small, TargetError> {
    let deadline = Instant::now() + time;
    let start = if rerun.has_messages() { Tmin::of_messages } else { Tmin::new };
    let (mut tmin, mut best, mut proposal) =
        (start(input, NonZeroUsize::MIN), input.to_vec(), Vec::new());
    while Instant::now() < deadline && tmin.next(&best, &mut proposal) {
        if !goes_on() {
            return Ok(Small { data: best, done: false });
        }
        let seen = rerun.quick(build, &proposal)?;
        if seen.crashed() && is_same(seen.key()) {
            std::mem::swap(&mut best, &mut proposal);
            tmin.accepted();
        } else {
            tmin.rejected();
        }
    }
    Ok(Small { data: best, done: true })
}
