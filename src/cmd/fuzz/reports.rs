//! What is told beyond the output folder: texts and inputs of crashes, numbers for a server.

use super::values;
use crate::cmd::exit::Failure;
use crate::config::env::Environment;
use crate::config::options::{FindingOptions, StatsdOptions, StatsdTags};
use crate::ui::Statsd;

/// Most inputs that are remembered for a crash: 16 batches.
const MOST_RECORDED: i64 = 1024;
const STATSD_PORT: u16 = 8125;

pub(super) fn findings(env: &Environment) -> Result<FindingOptions, Failure> {
    let record = env.number("AFL_PERSISTENT_RECORD", 1, MOST_RECORDED)?;
    Ok(FindingOptions {
        ignore_timeouts: env.flag(&["AFL_IGNORE_TIMEOUTS"]),
        traces: env.flag(&["AFL_CRASH_TRACES"]),
        record: record.and_then(|number| usize::try_from(number).ok()).unwrap_or(0),
    })
}

pub(super) fn statsd(env: &Environment) -> Result<Option<StatsdOptions>, Failure> {
    if !env.flag(&["AFL_STATSD"]) {
        return Ok(None);
    }
    let port = env.number("AFL_STATSD_PORT", 1, i64::from(u16::MAX))?;
    let text = |name| env.get(name).map(|value| value.to_string_lossy().into_owned());
    let tags = match text("AFL_STATSD_TAGS_FLAVOR").as_deref() {
        None => StatsdTags::None,
        Some("dogstatsd") => StatsdTags::Dogstatsd,
        Some("influxdb") => StatsdTags::Influxdb,
        Some("librato") => StatsdTags::Librato,
        Some("signalfx") => StatsdTags::Signalfx,
        Some(other) => {
            let expected = "dogstatsd, influxdb, librato or signalfx";
            return Err(values::bad("AFL_STATSD_TAGS_FLAVOR", other, expected));
        }
    };
    Ok(Some(StatsdOptions {
        host: text("AFL_STATSD_HOST").unwrap_or_else(|| "127.0.0.1".into()),
        port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(STATSD_PORT),
        tags,
    }))
}

pub(super) fn connect(options: &StatsdOptions) -> Result<Statsd, Failure> {
    Statsd::new(options).map_err(|error| {
        let cause = format!("cannot reach the StatsD server {}: {error}", options.host);
        Failure::new(cause, "check AFL_STATSD_HOST, or unset AFL_STATSD")
    })
}
