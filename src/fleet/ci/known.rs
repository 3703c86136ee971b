//! Which bugs somebody knows: by a text file in the repository with the names of a bug at the start of each line, or by
//! the archive.
//!
//! A bug has two names. Its id changes with its stack: a fault in a recursive parser has many. The other one is made of
//! the kind of the fault and the text of the line in which it happens, which stays when lines move.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use sha1::{Digest, Sha1};

use super::CiError;
use ffuzz_crashes::triage::report::TriagedBug;
use ffuzz_sys::file;

/// A list of so many bugs is a mistake.
const LONGEST: u64 = 16 << 20;

/// The name of a bug by its place: class, file and text of the line. None if the source cannot be read.
pub(super) fn place_name(bug: &TriagedBug, root: &Path) -> Option<String> {
    let (file, line) = bug.place.as_deref()?.rsplit_once(':')?;
    let number: usize = line.parse().ok()?;
    let path = root.join(file);
    let text = file::read_text(&path, LONGEST).ok()?;
    let text = text.lines().nth(number.checked_sub(1)?)?.trim();
    let name = path.file_name()?.to_string_lossy();
    // The size of an access depends on the input.
    let class = bug.class.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let digest = Sha1::digest(format!("{class}\n{name}\n{text}"));
    let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Some(format!("at-{hash}"))
}

/// Names of the list; an empty one if there is no file.
pub(super) fn read(path: &Path) -> Result<BTreeSet<String>, CiError> {
    let text = match file::read_text(path, LONGEST) {
        Err(error) if file::is_missing(&error) => return Ok(BTreeSet::new()),
        text => text.map_err(|source| CiError::Read { path: path.to_owned(), source })?,
    };
    let names = |line: &'_ str| -> Vec<String> {
        let words = line.split('#').next().unwrap_or_default().split_whitespace();
        words.map(str::to_owned).collect()
    };
    Ok(text.lines().flat_map(names).collect())
}

/// The text of a list with these bugs at its end: names, and titles behind a `#`.
pub(super) fn with(before: &str, new: &[(String, &str)]) -> String {
    let mut text = before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (names, title) in new {
        let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "{names} # {title}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known");
        assert!(read(&path).unwrap().is_empty());
        let new = [("new-2 at-3".to_owned(), "a\nb")];
        std::fs::write(&path, with("# ours\n\nold-1", &new)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# ours\n\nold-1\nnew-2 at-3 # a b\n");
        let names = ["old-1", "new-2", "at-3"].map(str::to_owned);
        assert_eq!(read(&path).unwrap(), BTreeSet::from(names));
    }

    #[test]
    fn a_place_keeps_its_name_when_lines_move() {
        let dir = tempfile::tempdir().unwrap();
        let bug = |class: &str, place: &str| TriagedBug {
            class: class.into(),
            place: Some(place.into()),
            ..TriagedBug::default()
        };
        let name = |class: &str, place: &str| place_name(&bug(class, place), dir.path());
        std::fs::write(dir.path().join("a.c"), "one\n  two();\n").unwrap();
        let before = name("overflow WRITE 4", "a.c:2");
        assert!(before.as_ref().is_some_and(|name| name.starts_with("at-")));
        std::fs::write(dir.path().join("a.c"), "\none\n\ttwo();\n").unwrap();
        assert_eq!(name("overflow WRITE 1", "a.c:3"), before);
        assert_ne!(name("overflow READ 1", "a.c:3"), before);
        assert_ne!(name("overflow WRITE 1", "a.c:2"), before);
        assert_eq!((name("overflow", "b.c:1"), name("overflow", "a.c:9")), (None, None));
    }
}
