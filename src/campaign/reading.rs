//! Tests whether the target reads its input at all; a forgotten `@@` would otherwise waste a night.
//!
//! Different paths of the seeds prove that it does. Otherwise the offset of standard input shows it or,
//! for a file, inputs so different that no parser treats them alike. These runs are not judged and are no
//! finds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::config::env;
use crate::config::options::TargetOptions;
use crate::disk::output::setup::shell_line;
use crate::engine::fuzzer::door::{Door, Host};
use crate::inspect::binary;

/// Warns if the target seems not to read its input; call it after the dry run.
pub(super) fn warning<H: Host>(
    door: &mut Door<'_, H>,
    options: &TargetOptions,
) -> Result<Option<String>, H::Error> {
    // All but one of several seeds with the same path are disabled.
    let corpus = door.fuzzer().corpus.iter();
    let usable: Vec<_> = corpus.filter(|seed| seed.edges > 0 || !seed.disabled).collect();
    let Some(first) = usable.first() else { return Ok(None) };
    if usable.iter().any(|seed| seed.path_hash != first.path_hash) {
        return Ok(None);
    }
    let (data, seeds) = (first.data.clone(), usable.len());
    Ok(match door.reads_input(&data)? {
        Some(false) => Some(not_read(options)),
        _ if seeds > 1 => Some(format!(
            "all {seeds} seeds take the same path through the target: are they inputs that it \
             accepts? (ffuzz-showmap shows what one reaches)"
        )),
        _ => None,
    })
}

/// The warning that no run has read its input.
fn not_read(target: &TargetOptions) -> String {
    let by = match &target.file {
        _ if names_place(target) => "the file given by @@".to_owned(),
        Some(file) => file.display().to_string(),
        None => return stdin_not_read(target),
    };
    format!("the target does not read {by}: it finds nothing this way. Start it by hand on a file")
}

fn stdin_not_read(target: &TargetOptions) -> String {
    let command = &target.command;
    let has_harness =
        || binary::has_harness_beside_main(&command[0], target.search_path.as_deref());
    let advice = match with_file(command) {
        None if has_harness() => {
            "it has LLVMFuzzerTestOneInput and a main of its own: leave that main out of the build, so \
             that the one of -fsanitize=fuzzer calls the harness; if it reads a file, @@ stands for the name"
                .to_owned()
        }
        Some(words) => format!("the file may belong here: ffuzz … -- {}", shell_line(&words)),
        None => "if it reads a file, @@ stands for the name".to_owned(),
    };
    format!("the target does not read its standard input: it finds nothing this way; {advice}")
}

fn has_place(word: &OsStr) -> bool {
    env::placeholder_in(word).is_some()
}

fn names_place(target: &TargetOptions) -> bool {
    target.command.iter().any(|word| has_place(word))
}

/// Suggested command line: with `@@` where a single `@` or a file name is.
fn with_file(command: &[OsString]) -> Option<Vec<OsString>> {
    let mut words = command.to_vec();
    let single = |word: &OsString| word == "@" || word.as_bytes().ends_with(b"=@");
    let place = words.iter().skip(1).position(single);
    let file = || words.iter().skip(1).position(|word| Path::new(word).is_file());
    let at = place.or_else(file)? + 1;
    if single(&words[at]) {
        words[at].push("@");
    } else {
        words[at] = "@@".into();
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likely_command_line_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.png");
        std::fs::write(&file, "x").unwrap();
        let fixed = format!("./t -o {} -v", file.display());
        for (given, expected) in
            [("./t @", "./t @@"), ("./t --in=@ -o x", "./t --in=@@ -o x"), (&fixed, "./t -o @@ -v")]
        {
            let words: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            assert_eq!(shell_line(&with_file(&words).unwrap()), expected, "{given}");
        }
        assert_eq!(with_file(&["./t".into(), "-q".into()]), None);
    }
}
