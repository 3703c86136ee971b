//! Finds the socket on which a target that never ends is waiting.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use super::launcher::Setup;
use super::{Fresh, FreshOptions, TargetError};
use ffuzz_config::options::TargetOptions;
use ffuzz_mutators::Mutators;
use ffuzz_sys::process::{self, Listening};
use ffuzz_sys::traced::TraceStop;

/// Minimum and maximum duration of the observed run: start-up may be slow, and the user waits.
const LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Finds the socket for the target of a campaign with this run `timeout`. Only a hint depends on it.
pub(super) fn awaited_socket(
    setup: &Setup,
    timeout: Duration,
    input: &[u8],
    file: &Path,
) -> Option<String> {
    let limit = timeout.clamp(LIMITS.0, LIMITS.1);
    find(&setup.options, input, file, limit).ok().flatten()
}

/// Runs the program of `options` once, as by hand, until `limit`. Returns the socket on which it then waits for
/// connections or data, as a value of `--net`. `file` is the input file.
fn find(
    options: &TargetOptions,
    input: &[u8],
    file: &Path,
    limit: Duration,
) -> Result<Option<String>, TargetError> {
    let program = options.command.first().cloned().unwrap_or_default();
    let plain = TargetOptions { skip_binary_check: true, ..options.for_other_build(program) };
    let mut target =
        Fresh::new(Setup::new(&plain, file, None)?, Mutators::default(), false, false)?;
    // Only the first check counts: later ones may see the kernel restart the call that it interrupted.
    let first = RefCell::new(None);
    let mut look = |stop: &TraceStop| {
        first.borrow_mut().get_or_insert_with(|| process::awaited_socket(stop.thread));
    };
    target.run(input, FreshOptions { look: Some(&mut look), ..FreshOptions::within(limit) })?;
    let socket = first.into_inner().flatten();
    Ok(socket.map(|socket| match socket {
        Some(Listening::Tcp(port)) => format!("tcp:{port}"),
        Some(Listening::Udp(port)) => format!("udp:{port}"),
        Some(Listening::Unix(path)) => format!("unix:{path}"),
        None => "tcp-client".into(),
    }))
}
