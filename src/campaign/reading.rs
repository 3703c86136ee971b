//! Does the target look at its input at all? A forgotten `@@` costs a night otherwise.
//!
//! Seeds that take different paths answer it. Where they do not, standard input tells by its offset, and
//! a file by inputs that no parser takes for the same. Those runs are not judged: they are nobody's finds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Campaign, CampaignError};
use crate::config::options::TargetOptions;
use crate::disk::output::setup::shell_line;
use crate::engine::fuzzer::door::Door;

impl Campaign {
    /// Warns if the target seems not to read its input. After the dry run, and not again when
    /// the campaign is resumed.
    pub(super) fn look_for_reading(&mut self) -> Result<(), CampaignError> {
        // Of twins all but one are disabled.
        let usable: Vec<_> =
            self.fuzzer.corpus.iter().filter(|seed| seed.edges > 0 || !seed.disabled).collect();
        let Some(first) = usable.first() else { return Ok(()) };
        let same = usable.iter().all(|seed| seed.path_hash == first.path_hash);
        // What a mutator does with an input is its own affair.
        let known = self.output.resumed() || self.stop.asked();
        if !same || known || !self.fuzzer.executor.mutators.is_empty() {
            return Ok(());
        }
        let (path, data, seeds) = (first.path_hash, first.data.clone(), usable.len());
        let reads = self.reads_stdin(&data)?;
        let target = &self.options.target;
        let message = match reads {
            Some(false) => Some(not_read(&target.command)),
            None if names_file(target) => {
                let is_one = self.takes_one_path(&data, path)?;
                is_one.then(|| ignored(&self.options.target))
            }
            _ if seeds > 1 => Some(format!(
                "all {seeds} seeds take the same path through the target: are they inputs that it \
                 accepts? (ffuzz-showmap shows what one reaches)"
            )),
            _ => None,
        };
        message.into_iter().for_each(|message| self.warn(message));
        Ok(())
    }

    /// Whether inputs that have nothing in common do the same.
    fn takes_one_path(&mut self, data: &[u8], path: u64) -> Result<bool, CampaignError> {
        let inverted: Vec<u8> = data.iter().map(|byte| !byte).collect();
        let longer: Vec<u8> = data.iter().rev().chain(data).chain(b"\n\0\xff").copied().collect();
        for input in [&inverted[..], &longer, b"\n"] {
            if self.behaviour_of(input)?.path != path {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// For a target whose standard input is the input.
fn not_read(command: &[OsString]) -> String {
    format!(
        "the target does not read its standard input: it finds nothing this way. If it reads a file, \
         name it by @@: ffuzz … -- {}",
        shell_line(&with_file(command))
    )
}

fn has_place(word: &OsStr) -> bool {
    word.as_bytes().windows(2).any(|pair| pair == b"@@")
}

fn names_file(target: &TargetOptions) -> bool {
    target.file.is_some() || target.command.iter().any(|word| has_place(word))
}

/// For one that is given a file.
fn ignored(target: &TargetOptions) -> String {
    let start = "the target takes the same path whatever is in its file: does it read it?";
    if let Some(file) = &target.file {
        return format!("{start} Start it by hand on {}", file.display());
    }
    let rest: Vec<_> = target.command.iter().filter(|word| !has_place(word)).cloned().collect();
    let line = shell_line(&rest);
    format!("{start} If it reads its standard input, leave @@ out: ffuzz … -- {line}")
}

/// The likely command line: `@@` where a single `@` or a file stands, else at the end.
fn with_file(command: &[OsString]) -> Vec<OsString> {
    let mut words = command.to_vec();
    let single = |word: &OsString| word == "@" || word.as_bytes().ends_with(b"=@");
    let place = words.iter().skip(1).position(single);
    let file = || words.iter().skip(1).position(|word| Path::new(word).is_file());
    match place.or_else(file) {
        Some(at) if single(&words[at + 1]) => {
            let word = &mut words[at + 1];
            *word = [word.as_os_str(), OsStr::new("@")].into_iter().collect();
        }
        Some(at) => words[at + 1] = "@@".into(),
        None => words.push("@@".into()),
    }
    words
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
        for (given, expected) in [
            ("./t", "./t @@"),
            ("./t -q", "./t -q @@"),
            ("./t @", "./t @@"),
            ("./t --in=@ -o x", "./t --in=@@ -o x"),
            (&fixed, "./t -o @@ -v"),
        ] {
            let words: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            assert_eq!(shell_line(&with_file(&words)), expected, "{given}");
        }
    }
}
