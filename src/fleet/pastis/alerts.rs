//! Alerts of a static analysis: detects which of them an input reaches or validates.
//!
//! An instrumented target prints `REACHED ID n` at each alert. Each find runs once more in a separate
//! process, whose output is read; a crash validates the alert reached last.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::link::BrokerLink;
use super::messages::{Data, Level, Log, Message};
use super::order::StartOrder;
use ffuzz_config::options::TargetOptions;
use ffuzz_engine::executor::ExitKind;
use ffuzz_exec::{Ended, Fresh, FreshOptions, Setup, TargetError};
use ffuzz_mutators::Mutators;
use ffuzz_sys::remedy::Remedy;

const MARK: &[u8] = b"REACHED ID ";
/// Time limit of one run.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of queued finds.
const MOST_FINDS: usize = 1000;
/// Interval between attempts to send.
const RETRY: Duration = Duration::from_secs(1);

/// The fields of a report's alerts that are used here.
#[derive(Clone, Debug, Default)]
pub struct AlertReport {
    ids: BTreeSet<i64>,
    covered: BTreeSet<i64>,
    validated: BTreeSet<i64>,
}

#[derive(Deserialize)]
struct Alert {
    id: i64,
    #[serde(default)]
    covered: bool,
    #[serde(default)]
    validated: bool,
}

/// Message to the broker about one alert.
#[derive(Debug, Eq, PartialEq, Serialize)]
pub(crate) struct AlertNews {
    pub id: i64,
    pub covered: bool,
    pub validated: bool,
    /// The input in base64.
    pub seed: String,
    pub address: u64,
}

impl AlertReport {
    /// Parses a report; None if it is empty.
    pub(crate) fn read(json: &[u8]) -> Result<Option<Self>, String> {
        if json.is_empty() {
            return Ok(None);
        }
        let alerts: Vec<Alert> = serde_json::from_slice(json)
            .map_err(|error| format!("the report cannot be read, so no alert is sent: {error}"))?;
        let those = |wanted: fn(&Alert) -> bool| {
            alerts.iter().filter(|alert| wanted(alert)).map(|alert| alert.id).collect()
        };
        Ok(Some(Self {
            ids: those(|_| true),
            covered: those(|alert| alert.covered),
            validated: those(|alert| alert.validated),
        }))
    }

    /// New facts from a run of `input` with this output.
    fn learn(&mut self, input: &[u8], printed: &[&[u8]], crashed: bool) -> Vec<AlertNews> {
        let reached: Vec<i64> = printed.iter().flat_map(|text| ids(text)).collect();
        let reached = reached.into_iter().filter(|id| self.ids.contains(id)).collect::<Vec<_>>();
        let proven = reached.last().copied().filter(|_| crashed);
        let mut news = Vec::new();
        for id in reached {
            let validated = proven == Some(id) && self.validated.insert(id);
            if self.covered.insert(id) || validated {
                let seed = BASE64_STANDARD.encode(input);
                news.push(AlertNews { id, covered: true, validated, seed, address: 0 });
            }
        }
        news
    }
}

/// Numbers after the marks, in output order.
fn ids(text: &[u8]) -> Vec<i64> {
    let number = |at: usize| {
        let digits = text[at..].split(|byte| !byte.is_ascii_digit()).next()?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let marks = text.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.filter_map(|(at, _)| number(at + MARK.len())).collect()
}

/// Runs finds in separate processes.
struct Checker {
    report: AlertReport,
    target: Fresh,
}

impl Checker {
    /// Prepares the target. `input` is the file that it reads, if any.
    fn new(
        report: AlertReport,
        options: &TargetOptions,
        input: &Path,
    ) -> Result<Self, TargetError> {
        let setup = Setup::new(options, input, None)?;
        Ok(Self { report, target: Fresh::new(setup, Mutators::default(), false, false)? })
    }

    /// New facts for the broker from this input.
    fn check(&mut self, input: &[u8]) -> Result<Vec<AlertNews>, TargetError> {
        let Ended { exit, stdout, stderr, .. } =
            self.target.run(input, FreshOptions::within(PATIENCE))?;
        let crashed = matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom);
        Ok(self.report.learn(input, &[&stdout, &stderr], crashed))
    }
}

/// A thread that searches finds for alerts, and reports them to the broker.
#[derive(Debug)]
pub(super) struct AlertWatcher {
    finds: SyncSender<Vec<u8>>,
}

impl AlertWatcher {
    /// Starts the thread, which ends when the watcher is dropped.
    #[must_use]
    pub(super) fn start(order: &StartOrder, link: &BrokerLink) -> Self {
        let (finds, inbox) = sync_channel(MOST_FINDS);
        let (order, link) = (order.clone(), link.clone());
        let run = move || {
            if let Err(error) = watch(&order, &link, &inbox) {
                let message = format!("alerts are not searched for: {error} ({})", error.remedy());
                link.send(Message::Log(Log { message, level: Level::Error as i32 }));
            }
        };
        // If this fails, finds are dropped.
        let _ = thread::Builder::new().name("pastis-alerts".into()).spawn(run);
        Self { finds }
    }

    /// Queues a find; drops it if the queue is full.
    pub(super) fn look(&self, find: Vec<u8>) {
        let _ = self.finds.try_send(find);
    }
}

fn watch(
    order: &StartOrder,
    link: &BrokerLink,
    inbox: &Receiver<Vec<u8>>,
) -> Result<(), TargetError> {
    let mut command = vec![order.program.clone().into_os_string()];
    command.extend(order.argv.iter().cloned());
    let mut options = TargetOptions::for_command(command);
    let variables = order.environment.iter().filter_map(|text| text.split_once('='));
    options.extra_env = variables.map(|(name, value)| (name.into(), value.into())).collect();
    let report = order.report.clone().unwrap_or_default();
    let mut checker = Checker::new(report, &options, &order.folder.join("alert-input"))?;
    let mut unsent: VecDeque<AlertNews> = VecDeque::new();
    loop {
        match inbox.recv_timeout(RETRY) {
            Ok(find) => unsent.extend(checker.check(&find)?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while let Some(news) = unsent.front() {
            let json = serde_json::to_string(news).unwrap_or_default();
            if !link.send(Message::Data(Data { json })) {
                break;
            }
            unsent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &[u8] =
        br#"[{"id": 1, "type": "BoF", "covered": false}, {"id": 22, "covered": true}]"#;

    #[test]
    fn alerts_are_sent_when_they_are_new() {
        let mut report = AlertReport::read(REPORT).unwrap().unwrap();
        let printed = b"x\nREACHED ID 22\nREACHED ID 99\nREACHED ID 1\n";
        let news = report.learn(b"in", &[printed], false);
        let covered =
            AlertNews { id: 1, covered: true, validated: false, seed: "aW4=".into(), address: 0 };
        assert_eq!(news, [covered]);
        assert!(report.learn(b"in", &[printed], false).is_empty());
        let proven = report.learn(b"!", &[b"", b"REACHED ID 1REACHED ID 22"], true);
        assert_eq!(proven.iter().map(|n| (n.id, n.validated)).collect::<Vec<_>>(), [(22, true)]);
        assert!(report.learn(b"!", &[b"REACHED ID 22"], true).is_empty());
    }

    #[test]
    fn no_report_and_nonsense_differ() {
        assert!(AlertReport::read(b"").unwrap().is_none());
        assert!(AlertReport::read(b"{").unwrap_err().contains("cannot be read"));
        assert_eq!(ids(b"REACHED ID REACHED ID 99999999999999999999"), [0i64; 0]);
    }
}
