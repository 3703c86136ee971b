//! What a target that never ends waits for.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use super::launcher::Setup;
use super::{Fresh, FreshOptions, TargetError};
use ffuzz_config::options::TargetOptions;
use ffuzz_mutators::Mutators;
use ffuzz_sys::process::{self, Listening};
use ffuzz_sys::traced::TraceStop;

/// Minimum and maximum time of the observed run: a start may be slow, and a user waits.
const LIMITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The same for the target of a campaign, whose runs may take `timeout`. Only a hint depends on it.
pub(super) fn awaited_socket(
    setup: &Setup,
    timeout: Duration,
    input: &[u8],
    file: &Path,
) -> Option<String> {
    let limit = timeout.clamp(LIMITS.0, LIMITS.1);
    find(&setup.options, input, file, limit).ok().flatten()
}

/// Runs the program of `options` once, as by hand, and looks at it when its time is up: on which socket it waits for
/// connections or data, as a value of `--net`. `file` is the file for the input.
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
    // Later looks may show how the kernel restarts a call that the first one has interrupted.
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
