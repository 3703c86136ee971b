//! Reports outside the output folder: texts and inputs of crashes, metrics for a server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use super::args::Args;
use super::values;
use crate::cmd::exit::Failure;
use crate::cmd::screen::Analysis;
use crate::config::env::Environment;
use crate::config::options::{ControlPlace, FindingOptions, StatsdOptions, StatsdTags};
use crate::fleet::control::{CommandSource, Hello};
use crate::ui::{Metrics, Statsd};

/// Maximum number of inputs recorded per crash: 16 batches.
const MOST_RECORDED: i64 = 1024;
const STATSD_PORT: u16 = 8125;
/// Default port, in the range that Prometheus reserves for exporters.
const METRICS_PORT: u16 = 9477;

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

pub(super) fn control(args: &Args) -> Result<Option<ControlPlace>, Failure> {
    match &args.control {
        Some(path) if path == "-" && !args.json => Err(Failure::usage(
            "--control - sends replies in the stream of --json, which is not given",
            "give --json as well, or the path of a socket",
        )),
        Some(path) if path == "-" => Ok(Some(ControlPlace::Stdin)),
        Some(path) if path.is_empty() => Err(values::bad("--control", "", "a path")),
        Some(path) => Ok(Some(ControlPlace::Path(path.into()))),
        None => Ok(None),
    }
}

/// Parses `--metrics`: an address, a port, or both. Only local clients are served unless the user gives an address.
pub(super) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let expected = "an address, a port, or ADDR:PORT";
    let bad = || values::bad("--metrics", text, expected);
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, METRICS_PORT).into());
    }
    if let Ok(port) = text.trim_start_matches(':').parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    // A resolver parses a bare number as an address: 70000 would be 0.1.17.112.
    if text.trim_start_matches(':').bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(values::bad("--metrics", text, "a port from 0 to 65535"));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| bad())?),
        None => (text, METRICS_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut found = (host, port).to_socket_addrs().map_err(|_| bad())?;
    found.next().ok_or_else(bad)
}

pub(super) fn open(
    place: Option<&ControlPlace>,
    hello: impl FnOnce() -> Hello,
    analysis: &Analysis,
) -> Result<Vec<CommandSource>, Failure> {
    let open = |place| CommandSource::open(place, hello(), analysis.questions());
    let opened = place.map(open).transpose().map_err(|error| Failure::of(&error))?;
    Ok(opened.into_iter().collect())
}

pub(super) fn serve(address: SocketAddr) -> Result<Metrics, Failure> {
    Metrics::serve(address).map_err(|error| {
        let cause = format!("cannot serve numbers at {address}: {error}");
        Failure::new(cause, "name another port or address with --metrics")
    })
}

pub(super) fn connect(options: &StatsdOptions) -> Result<Statsd, Failure> {
    Statsd::new(options).map_err(|error| {
        let cause = format!("cannot reach the StatsD server {}: {error}", options.host);
        Failure::new(cause, "check AFL_STATSD_HOST, or unset AFL_STATSD")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_served_here_by_default() {
        for (text, expected) in [
            ("9100", "127.0.0.1:9100"),
            (":9100", "127.0.0.1:9100"),
            ("0.0.0.0", "0.0.0.0:9477"),
            ("127.0.0.2:0", "127.0.0.2:0"),
            ("::1", "[::1]:9477"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(
                address(text).map(|found| found.to_string()).ok().as_deref(),
                Some(expected)
            );
        }
        for text in
            ["", ":", "1.2.3.4:x", "1.2.3.4:70000", "70000", ":70000", "no-such-host.invalid"]
        {
            assert_eq!(address(text).unwrap_err().code, 2, "{text}");
        }
    }
}
