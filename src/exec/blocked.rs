//! What a target that never ends waits for.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use super::launcher::Setup;
use super::{Fresh, FreshOptions, TargetError};
use ffuzz_config::options::TargetOptions;
use ffuzz_mutators::Mutators;
use ffuzz_sys::process;
use ffuzz_sys::traced::TraceStop;

/// The run that is looked at takes as long, at least and at most: a start may be slow, a user waits.
const LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The same for the target of a campaign, whose runs may take `timeout`. Only a hint depends on it.
pub(super) fn by(setup: &Setup, timeout: Duration, input: &[u8], file: &Path) -> bool {
    let limit = timeout.clamp(LIMITS.0, LIMITS.1);
    waits_on_socket(&setup.options, input, file, limit).unwrap_or(false)
}

/// Runs the program of `options` once, as by hand, and looks at it when its time is up: whether it waits for
/// connections or data on a socket. `file` is the file for the input.
fn waits_on_socket(
    options: &TargetOptions,
    input: &[u8],
    file: &Path,
    limit: Duration,
) -> Result<bool, TargetError> {
    let program = options.command.first().cloned().unwrap_or_default();
    let plain = TargetOptions { skip_binary_check: true, ..options.for_other_build(program) };
    let mut target =
        Fresh::new(Setup::new(&plain, file, None)?, Mutators::default(), false, false)?;
    // Later looks may show how the kernel restarts a call that the first one has interrupted.
    let first = Cell::new(None);
    let mut look = |stop: &TraceStop| {
        first.set(first.get().or_else(|| Some(process::waits_on_socket(stop.thread))));
    };
    target.run(input, FreshOptions { look: Some(&mut look), ..FreshOptions::within(limit) })?;
    Ok(first.get() == Some(true))
}
