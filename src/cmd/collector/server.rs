//! Actions that need no crash: signatures, inputs and spools.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::{Failure, say};
use crate::cmd::print;
use crate::crashes::collector::{self, Client, DrainError, Settings, download_name};

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

/// Saves the input of a crash, if it has one. Returns the name.
fn save(client: &Client, number: u64, record: &Value) -> Result<Option<String>, Failure> {
    let Some(name) = download_name(number, record) else { return Ok(None) };
    let bytes = client.testcase(number)?;
    fs::write(&name, bytes).map_err(|error| {
        Failure::new(format!("cannot write {name}: {error}"), "change to a folder with free space")
    })?;
    Ok(Some(name))
}

/// Describes the program's call as the reference does.
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

pub(super) fn deliver(
    program: &str,
    settings: &Settings,
    spool: &Path,
) -> Result<ExitCode, Failure> {
    let delayed = |error: &str| say(program, &format!("{error}; trying again later"));
    let counts = collector::drain(spool, settings, delayed)?;
    say(program, &format!("{} reports are at the server", counts.sent));
    if counts.known > 0 {
        say(program, &format!("{} were skipped: their bugs are frequent", counts.known));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<DrainError> for Failure {
    fn from(error: DrainError) -> Self {
        match error {
            DrainError::Collector(error) => error.into(),
            error => Self::of(&error),
        }
    }
}
