//! Which harnesses a change can reach: the files of a change against those that a harness was compiled from.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::CiError;
use ffuzz_inspect::lines::{CoveredSource, LineMap};

/// Files that no harness is made of.
const TEXTS: [&str; 6] = ["md", "rst", "txt", "adoc", "yml", "yaml"];

/// The files of a change, relative to the root of the repository.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ChangeSet {
    pub(super) files: Vec<String>,
}

impl ChangeSet {
    /// What was changed since `base`, or since the work of HEAD and `base` parted; uncommitted changes, too.
    pub(super) fn since(base: &str, root: &Path) -> Result<Self, CiError> {
        let git = |words: &[&str]| {
            let output = Command::new("git").current_dir(root).args(words).output();
            let failed = |reason: String| CiError::Git { base: base.to_owned(), reason };
            let output = output.map_err(|error| failed(error.to_string()))?;
            match output.status.success() {
                true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
                false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            }
        };
        let start = git(&["merge-base", "--end-of-options", base, "HEAD"])?;
        let listed = git(&["diff", "--name-only", "-z", "--relative", start.trim(), "--"])?;
        let files = listed.split('\0').filter(|file| !file.is_empty()).map(str::to_owned);
        Ok(Self { files: files.collect() })
    }

    /// For each harness whether the change may reach it, by the files that it was compiled from (None: unknown). A file
    /// of the change that no harness is known to have, such as a header of macros or a Makefile, reaches all.
    pub(super) fn reaches(&self, harnesses: &[Option<BTreeSet<String>>]) -> Vec<bool> {
        let has = |sources: &BTreeSet<String>, file: &str| {
            sources.iter().any(|source| {
                let before = source.strip_suffix(file);
                before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
            })
        };
        let is_text = |file: &str| {
            Path::new(file).extension().is_some_and(|end| TEXTS.iter().any(|text| end == *text))
        };
        let is_known = |file: &str| harnesses.iter().flatten().any(|sources| has(sources, file));
        let reaches_all = self.files.iter().any(|file| !is_text(file) && !is_known(file));
        let reaches = |sources: &Option<BTreeSet<String>>| match sources {
            Some(sources) => reaches_all || self.files.iter().any(|file| has(sources, file)),
            None => true,
        };
        harnesses.iter().map(reaches).collect()
    }
}

/// The source files of a harness; None without debug information.
pub(super) fn sources(program: &Path) -> Option<BTreeSet<String>> {
    let mut covered = CoveredSource::default();
    let map = LineMap::read(program, None).and_then(LineMap::with_lines);
    map.ok()?.collect(0, &mut covered);
    Some(covered.files.into_keys().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reaches_the_harnesses_with_its_files() {
        let set = |files: &[&str]| Some(files.iter().map(|file| (*file).to_owned()).collect());
        let harnesses =
            [set(&["/b/src/a.c", "/b/src/common.h"]), set(&["/b/src/b.c", "lib/x.c"]), None];
        let reaches = |files: &[&str]| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            ChangeSet { files }.reaches(&harnesses)
        };
        assert_eq!(reaches(&["src/a.c"]), [true, false, true]);
        assert_eq!(reaches(&["lib/x.c", "docs/a.md"]), [false, true, true]);
        assert_eq!(reaches(&["README.md"]), [false, false, true]);
        // Of the end of a name only.
        assert_eq!(reaches(&["a.c"]), [true, false, true]);
        assert_eq!(reaches(&["rc/a.c"]), [true, true, true]);
        assert_eq!(reaches(&["src/a.c", "Makefile"]), [true, true, true]);
        assert_eq!(reaches(&[]), [false, false, true]);
    }
}
