//! `--record`: turns a session of the target with a real peer into a seed.
//!
//! Time and random numbers of the target are the same as in every run, so it answers the recorded messages in the same
//! way: the values agreed on in a handshake stay valid.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::exit::Failure;
use super::tool::{self, Scratch, TargetArgs, ToolTarget, say};
use crate::config::env::Environment;
use crate::exec::net::{NetEvent, Recording, Session, SessionError};
use crate::exec::{Fresh, FreshOptions};
use crate::mutate::messages;

/// Time limit of a session. Manual sessions take long; the library in the target ends one whose peer is silent for a
/// minute.
const LONGEST: Duration = Duration::from_secs(3600);
/// Time limit of a replay, which waits for no peer.
const LONGEST_REPLAY: Duration = Duration::from_secs(60);

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::of(&error)
    }
}

/// Records a session of the target `command` on socket `net` into `file`.
pub(super) fn run(
    command: &[OsString],
    net: &str,
    file: &Path,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let mut target = TargetArgs::of(command.into());
    target.net = Some(net.into());
    let scratch = Scratch::new("record", None);
    tool::exit_on_signals(&[&scratch], None);
    let mut wanted = ToolTarget::new(&target, &scratch, LONGEST);
    wanted.any_program = true;
    let (_, mut target) = wanted.start_fresh(environment)?;
    let Some(options) = target.net().cloned() else { return Ok(ExitCode::FAILURE) };
    let recording = Recording::open(&options, file)?;
    say(
        false,
        &match recording.place() {
            "" => "[*] recording: the target connects to its server".to_owned(),
            place => format!("[*] recording: connect a client to {place} within a minute"),
        },
    );
    let recorded = FreshOptions { recording: Some(&recording), ..FreshOptions::within(LONGEST) };
    let session = session(&mut target, &[], recorded)?;
    drop(recording);
    let input = fs::read(file).map_err(|error| tool::cannot_write(file, &error))?;
    let count = messages::messages(&input).count();
    if count == 0 {
        let _ = fs::remove_file(file);
        let remedy = "connect a client that sends something; ffuzz-showmap --messages shows what the target does";
        return Err(Failure::new(format!("no message came in a session with {net}"), remedy));
    }
    let replay = self::session(&mut target, &input, FreshOptions::within(LONGEST_REPLAY))?;
    let noun = if count == 1 { "message" } else { "messages" };
    let line = match difference(&session, &replay) {
        None => format!(
            "[+] {count} {noun} in {}: a run with them gives the same answers",
            file.display()
        ),
        Some(answer) => format!(
            "[!] {count} {noun} in {}: a run with them gives other answers from number {answer} on, so something is \
             different in each run that the stand-in for the network does not know",
            file.display()
        ),
    };
    say(false, &line);
    Ok(ExitCode::SUCCESS)
}

fn session(
    target: &mut Fresh,
    input: &[u8],
    options: FreshOptions<'_>,
) -> Result<Session, Failure> {
    let ended = target.run(input, options).map_err(tool::failure)?;
    Ok(ended.session.unwrap_or_default())
}

/// Number of the first answer that differs, from 1.
fn difference(recorded: &Session, replayed: &Session) -> Option<usize> {
    let (recorded, replayed) = (answers(recorded), answers(replayed));
    let same = recorded.iter().zip(&replayed).take_while(|(a, b)| a == b).count();
    (same < recorded.len().max(replayed.len())).then_some(same + 1)
}

/// Data that the target sent between two messages, with the connection.
fn answers(session: &Session) -> Vec<(u8, Vec<u8>)> {
    let mut answers: Vec<(u8, Vec<u8>)> = Vec::new();
    let mut goes_on = false;
    for event in &session.events {
        match event {
            NetEvent::Answer { connection, bytes } => match answers.last_mut() {
                Some((last, so_far)) if goes_on && last == connection => so_far.extend(bytes),
                _ => answers.push((*connection, bytes.clone())),
            },
            NetEvent::Taken { .. } | NetEvent::Accepted { .. } | NetEvent::Opened { .. } => {}
            _ => continue,
        }
        goes_on = matches!(event, NetEvent::Answer { .. });
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(events: &[(char, &str)]) -> Session {
        let event = |(kind, text): &(char, &str)| match kind {
            '<' => NetEvent::Answer { connection: 0, bytes: text.as_bytes().into() },
            _ => NetEvent::Taken { connection: 0, bytes: text.as_bytes().into() },
        };
        Session { events: events.iter().map(event).collect() }
    }

    #[test]
    fn the_first_answer_that_differs_is_named() {
        let recorded =
            of(&[('<', "hello"), ('>', "a"), ('<', "1"), ('<', "2"), ('>', "b"), ('<', "3")]);
        assert_eq!(difference(&recorded, &recorded), None);
        // Boundaries between the target's writes carry no meaning.
        let cut = of(&[('<', "hel"), ('<', "lo"), ('>', "a"), ('<', "12"), ('>', "b"), ('<', "3")]);
        assert_eq!(difference(&recorded, &cut), None);
        let other = of(&[('<', "hello"), ('>', "a"), ('<', "1"), ('>', "b"), ('<', "3")]);
        assert_eq!(difference(&recorded, &other), Some(2));
        let short = of(&[('<', "hello"), ('>', "a"), ('<', "12")]);
        assert_eq!(difference(&recorded, &short), Some(3));
    }
}
