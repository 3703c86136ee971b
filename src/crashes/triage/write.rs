//! The folder of a bug: everything needed to analyse it. All of it is on the disk before the report names the bug, so
//! that a power failure leaves no empty file as an input.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::before::BEFORE;
use super::group;
use super::report::TriagedBug;
use super::seen::Seen;
use ffuzz_disk::output::setup::quoted;
use ffuzz_disk::output::{OutputError, replace_for_good};
use ffuzz_exec::{REPLAY, REPLAY_FILE, Replay};
use ffuzz_sys::file::settled;

/// Best of the bug's files, and its minimized version.
pub(super) const INPUT: &str = "input";
pub(super) const MINIMIZED: &str = "minimized";
/// Runs the target on either.
pub(super) const SCRIPT: &str = "reproduce.sh";
/// Sends the messages of an input over real sockets.
const SENDER: &str = "send.py";

/// Creates a folder that only its owner can read: inputs may be secret.
pub fn create(folder: &Path) -> Result<(), OutputError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(|error| OutputError::write(folder, error))
}

/// Writes the results of one run.
pub(super) fn seen(folder: &Path, seen: &Seen) -> Result<(), OutputError> {
    create(folder)?;
    // Syncs the parent folder, which holds its name.
    let names = folder.parent().map_or(Ok(()), |around| settled(File::open(around)?.sync_all()));
    names.map_err(|error| OutputError::write(folder, error))?;
    let put =
        |name: &str, text: &str| replace_for_good(folder, &folder.join(name), text.as_bytes());
    let output = &seen.output;
    put("stdout.txt", &output.stdout)?;
    put("stderr.txt", &output.stderr)?;
    if !output.crash_data.is_empty() {
        put("debugger.txt", &output.crash_data)?;
    }
    if !seen.session.is_empty() {
        put("session.txt", &seen.session)?;
    }
    let lines = |stack: Vec<String>| -> String {
        let numbered = stack.iter().enumerate();
        numbered.map(|(number, name)| format!("#{number} {name}\n")).collect()
    };
    let stacks: Vec<String> = group::stacks(seen).into_iter().map(lines).collect();
    put("stack.txt", &stacks.join("\n"))
}

/// Writes the facts, and the signature by itself.
pub(super) fn facts(folder: &Path, bug: &TriagedBug) -> Result<(), OutputError> {
    let put = |name: &str, text: Vec<u8>| replace_for_good(folder, &folder.join(name), &text);
    put("bug.json", serde_json::to_vec_pretty(bug).unwrap_or_default())?;
    if let Some(signature) = &bug.signature {
        put("bug.signature", serde_json::to_vec_pretty(signature).unwrap_or_default())?;
    }
    Ok(())
}

/// Writes an input.
pub(super) fn input(folder: &Path, name: &str, data: &[u8]) -> Result<(), OutputError> {
    create(folder)?;
    replace_for_good(folder, &folder.join(name), data)
}

/// How the script hands the input to the target.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptInput<'a> {
    /// Name of the input in the command line; empty for standard input.
    pub(super) name: &'a Path,
    /// True if the user named this file (`-f`): the target knows it without the command line.
    pub(super) is_users: bool,
    /// Extension that the file of the input must have.
    pub(super) extension: Option<&'a str>,
    pub(super) replay: Replay,
    /// Value of `--net` if the target is a server, which can also run with real sockets.
    pub(super) server: Option<&'a str>,
}

/// Writes `reproduce.sh`: runs the command line with these variables on the smallest input, or on a given one.
pub(super) fn script(
    folder: &Path,
    command: &[OsString],
    input: ScriptInput<'_>,
    env: &[(OsString, OsString)],
) -> Result<(), OutputError> {
    let mut text =
        b"#!/bin/sh\n# Runs the target on the input of this folder, or on the file given.\n\
                     here=$(cd \"$(dirname \"$0\")\" && pwd)\nreal=\n\
                     [ \"$1\" != --real ] || { real=1; shift; }\n\
                     input=${1:-$here/minimized}\n[ -e \"$input\" ] || input=$here/input\n"
            .to_vec();
    if let Ok(folder) = std::env::current_dir() {
        text.extend_from_slice(b"case $input in /*) ;; *) input=$PWD/$input ;; esac\ncd ");
        text.extend_from_slice(&quoted(&[folder.into_os_string()]));
        text.extend_from_slice(b" || exit\n");
    }
    if let Some(net) = input.server {
        let sender = folder.join(SENDER);
        replace_for_good(folder, &sender, include_bytes!("send.py"))?;
        text.extend_from_slice(&over_sockets(net, command));
    }
    text.extend_from_slice(&placed(input));
    text.extend_from_slice(inputs_before(input).as_bytes());
    // After the commands above: a preloaded library is for the target only.
    for (name, value) in env {
        text.extend_from_slice(b"export ");
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(&quoted(std::slice::from_ref(value)));
        text.push(b'\n');
    }
    text.extend_from_slice(&run(command, input));
    let path = folder.join(SCRIPT);
    replace_for_good(folder, &path, &text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
        .map_err(|error| OutputError::write(&path, error))
}

/// The part of the script that starts the server without the stand-in, if `--real` is its first word.
fn over_sockets(net: &str, command: &[OsString]) -> Vec<u8> {
    let net = [OsString::from(net)];
    let words = [quoted(&net), b" ".into(), quoted(command)].concat();
    [b"[ -z \"$real\" ] || exec python3 \"$here/send.py\" \"$input\" ".as_slice(), &words, b"\n"]
        .concat()
}

/// The part of the script that copies the input to where the target looks for it, or to a name with the extension.
fn placed(input: ScriptInput<'_>) -> Vec<u8> {
    if input.is_users {
        let name = quoted(&[input.name.as_os_str().to_owned()]);
        return [b"cp \"$input\" ".as_slice(), &name, b" || exit\n"].concat();
    }
    let Some(extension) = input.extension.filter(|_| !input.name.as_os_str().is_empty()) else {
        return Vec::new();
    };
    let end = quoted(&[format!(".{extension}").into()]);
    let copy = quoted(&[format!("/.input.{extension}").into()]);
    [
        b"case $input in *".as_slice(),
        &end,
        b") ;; *) cp \"$input\" \"$here\"",
        &copy,
        b" || exit; input=$here",
        &copy,
        b" ;; esac\n",
    ]
    .concat()
}

/// The last line of the script.
fn run(command: &[OsString], input: ScriptInput<'_>) -> Vec<u8> {
    let mut text = b"exec".to_vec();
    let name = if input.is_users { &[] } else { input.name.as_os_str().as_bytes() };
    let mut named = false;
    for word in command {
        text.push(b' ');
        let parts = split(word.as_bytes(), name);
        named |= parts.len() > 1;
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                let is_word = part.is_empty() && parts.len() == 2;
                let own: &[u8] = match input.replay == Replay::Words && is_word {
                    true => b"\"$@\" \"$input\"",
                    false => b"\"$input\"",
                };
                text.extend_from_slice(own);
            }
            if !part.is_empty() || parts.len() == 1 {
                text.extend_from_slice(&quoted(&[OsStr::from_bytes(part).to_owned()]));
            }
        }
    }
    let stdin: &[u8] = match (input.is_users, named) {
        (true, _) => b" < /dev/null\n",
        (false, true) => b"\n",
        (false, false) => b" < \"$input\"\n",
    };
    text.extend_from_slice(stdin);
    text
}

/// Part of the script for a crash that needs inputs before its own.
fn inputs_before(input: ScriptInput<'_>) -> String {
    let first = format!("[ -e \"$here/{BEFORE},cnt:000000\" ]");
    match input.replay {
        Replay::Runtime if input.is_users => {
            let name = quoted(&[input.name.as_os_str().to_owned()]);
            let name = String::from_utf8_lossy(&name);
            format!(
                "if {first}; then\n  export {REPLAY}=\"$here/{BEFORE}\"\n  export {REPLAY_FILE}={name}\nfi\n"
            )
        }
        Replay::Runtime => {
            let name = input.name.file_name().unwrap_or_default().to_string_lossy();
            let copy = quoted(&[format!("/.replayed-{name}").into()]);
            let copy = String::from_utf8_lossy(&copy);
            // The program reads all inputs from the same file, which keeps its extension.
            let in_place = match name.is_empty() {
                true => String::new(),
                false => format!(
                    "  cp \"$input\" \"$here\"{copy} || exit\n  input=$here{copy}\n  export {REPLAY_FILE}=\"$input\"\n"
                ),
            };
            format!("if {first}; then\n  export {REPLAY}=\"$here/{BEFORE}\"\n{in_place}fi\n")
        }
        // All but the last, which is empty.
        Replay::Words => format!(
            "set --; last=\nfor file in \"$here/{BEFORE},cnt:\"*; do\n  [ -z \"$last\" ] || set -- \"$@\" \"$last\"\n  \
             last=$file\ndone\n"
        ),
        Replay::Stops => format!(
            "if {first}; then\n  echo 'Its process has to get the inputs before,cnt:* first, which needs a build \
             by ffuzz-cc.' >&2\n  exit 1\nfi\n"
        ),
    }
}

/// Splits `word` at the occurrences of `name`.
fn split<'a>(word: &'a [u8], name: &[u8]) -> Vec<&'a [u8]> {
    let (mut parts, mut rest) = (Vec::new(), word);
    if name.is_empty() {
        return vec![word];
    }
    while let Some(at) = rest.windows(name.len()).position(|window| window == name) {
        parts.push(&rest[..at]);
        rest = &rest[at + name.len()..];
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn run(command: &[&str], argument: Option<&Path>) -> String {
        let dir = tempfile::tempdir().unwrap();
        input(dir.path(), INPUT, b"data").unwrap();
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        let env = [("WORD".into(), "it's".into())];
        let given = ScriptInput {
            name: Path::new("/tmp/.cur"),
            is_users: false,
            extension: None,
            replay: Replay::Runtime,
            server: None,
        };
        script(dir.path(), &command, given, &env).unwrap();
        let mut run = Command::new(dir.path().join("reproduce.sh"));
        let output = run.args(argument).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_script_runs_the_target_on_its_input() {
        assert_eq!(run(&["cat"], None), "data");
        assert_eq!(
            run(&["sh", "-c", "cat ${1#--in=}; echo $WORD", "x", "--in=/tmp/.cur"], None),
            "datait's\n"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "other").unwrap();
        assert_eq!(run(&["cat", "/tmp/.cur"], Some(file.path())), "other");
    }
}
