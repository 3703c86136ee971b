//! Actions that need no crash: signatures, inputs and spools.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::{Failure, say};
use crate::cmd::print;
use crate::crashes::collector::{self, Client, Delivery, Settings, Spool, download_name};

/// A server that is not there within this time is not coming back while somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(130);
const INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn refresh(program: &str, settings: &Settings) -> Result<ExitCode, Failure> {
    let folder = settings.signatures()?;
    let client = Client::new(settings.server()?)?;
    let refreshed = collector::refresh(&folder, &client)?;
    for name in &refreshed.others {
        say(program, &format!("warning: {name} in {} is not a signature", folder.display()));
    }
    say(program, &format!("{} signatures in {}", refreshed.signatures, folder.display()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn download(settings: &Settings, number: u64) -> Result<ExitCode, Failure> {
    let client = Client::new(settings.server()?)?;
    let record = client.crash(number)?;
    let Some(name) = save(&client, number, &record)? else {
        let cause = format!("crash {number} was reported without its input");
        return Err(Failure::new(cause, "choose another crash of its bucket"));
    };
    print(&format!("{}{name}\n", about(&record)))
}

pub(super) fn download_all(settings: &Settings, bucket: u64) -> Result<ExitCode, Failure> {
    let client = Client::new(settings.server()?)?;
    let crashes = client.bucket(bucket)?;
    let mut count = 0;
    for record in &crashes {
        let Some(number) = record["id"].as_u64() else { continue };
        if let Some(name) = save(&client, number, record)? {
            print(&format!("{name}\n"))?;
            count += 1;
        }
    }
    if count == 0 {
        let cause = format!("bucket {bucket} has {} crashes, none with an input", crashes.len());
        return Err(Failure::new(cause, "check the number of the bucket"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the input of a crash, if it has one. Returns the name.
fn save(client: &Client, number: u64, record: &Value) -> Result<Option<String>, Failure> {
    let Some(name) = download_name(number, record) else { return Ok(None) };
    let bytes = client.testcase(number)?;
    fs::write(&name, bytes).map_err(|error| {
        Failure::new(format!("cannot write {name}: {error}"), "change to a folder with free space")
    })?;
    Ok(Some(name))
}

/// How the program was called, in the words of the reference.
fn about(record: &Value) -> String {
    let parsed = |key: &str| serde_json::from_str::<Value>(record[key].as_str()?).ok();
    let mut text = String::new();
    if let Some(Value::Array(words)) = parsed("args") {
        let words: Vec<String> = words.iter().map(shown).collect();
        text += &format!("Command line arguments: {}\n\n", words.join(" "));
    }
    let pairs = |key| match parsed(key) {
        Some(Value::Object(pairs)) => pairs,
        _ => serde_json::Map::new(),
    };
    let env: Vec<String> =
        pairs("env").iter().map(|(key, value)| format!("{key} = {}", shown(value))).collect();
    if !env.is_empty() {
        text += &format!("Environment variables: {}\n\n", env.join(" "));
    }
    let metadata: String = pairs("metadata")
        .iter()
        .map(|(key, value)| format!("{key} = {}\n", shown(value)))
        .collect();
    if !metadata.is_empty() {
        text += &format!("== Metadata ==\n{metadata}\n");
    }
    text
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Delivers until nothing waits, or the server does not take it.
pub(super) fn deliver(
    program: &str,
    settings: &Settings,
    path: &Path,
) -> Result<ExitCode, Failure> {
    if !path.is_dir() {
        let cause = format!("{} is not a spool", path.display());
        return Err(Failure::new(cause, "name the folder OUT/triage/spool of a campaign"));
    }
    let spool = Spool::open(path)?;
    let Some(claim) = spool.claim()? else {
        let cause = format!("another process delivers the reports in {}", path.display());
        return Err(Failure::new(cause, "wait for it, or stop it first"));
    };
    let client = Client::new(settings.server()?)?;
    claim.retry_refused()?;
    let mut delivery = Delivery::new(claim, client, settings.signatures_for(path));
    let start = Instant::now();
    let mut said = String::new();
    loop {
        delivery.deliver_due(SystemTime::now, || true)?;
        let counts = spool.counts()?;
        if counts.waiting == 0 && counts.refused == 0 {
            say(program, &format!("{} reports are at the server", counts.sent));
            if counts.known > 0 {
                say(program, &format!("{} were skipped: their bugs are frequent", counts.known));
            }
            return Ok(ExitCode::SUCCESS);
        }
        if counts.waiting == 0 {
            let cause = format!("{} reports were refused", counts.refused);
            let remedy = format!(
                "see {}/refused/*.txt for the reasons; correct them, then run it again",
                path.display()
            );
            return Err(Failure::new(cause, remedy));
        }
        if start.elapsed() > PATIENCE || delivery.is_blocked() {
            return Err(left(&delivery, counts.waiting + counts.refused));
        }
        let error = delivery.last_error().map(ToString::to_string).unwrap_or_default();
        if !error.is_empty() && error != said {
            say(program, &format!("{error}; trying again later"));
            said = error;
        }
        thread::sleep(INTERVAL);
    }
}

fn left(delivery: &Delivery, count: usize) -> Failure {
    match delivery.last_error() {
        Some(error) => Failure::new(format!("{count} reports are left: {error}"), error.remedy()),
        None => Failure::new(format!("{count} reports are left"), "try again later"),
    }
}
