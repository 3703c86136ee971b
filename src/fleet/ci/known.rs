//! The list of known bugs: a text file in the repository, with the id of a bug at the start of each line.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::CiError;
use ffuzz_sys::file;

/// A list of so many bugs is a mistake.
const LONGEST: u64 = 16 << 20;

/// Ids of the list; an empty one if there is no file.
pub(super) fn read(path: &Path) -> Result<BTreeSet<String>, CiError> {
    let text = match file::read_text(path, LONGEST) {
        Err(error) if file::is_missing(&error) => return Ok(BTreeSet::new()),
        text => text.map_err(|source| CiError::Read { path: path.to_owned(), source })?,
    };
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    Ok(words.filter(|word| !word.starts_with('#')).map(str::to_owned).collect())
}

/// The text of a list with these bugs at its end: ids, titles behind a `#`.
pub(super) fn with(before: &str, new: &[(&str, &str)]) -> String {
    let mut text = before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (id, title) in new {
        let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "{id} # {title}");
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
        std::fs::write(&path, with("# ours\n\nold-1", &[("new-2", "a\nb")])).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# ours\n\nold-1\nnew-2 # a b\n");
        assert_eq!(read(&path).unwrap(), BTreeSet::from(["old-1".into(), "new-2".into()]));
    }
}
