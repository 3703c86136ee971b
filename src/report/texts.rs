//! Lines of source files, for readers of a place.

use std::path::Path;

use ffuzz_sys::file;

/// Maximum number of letters kept of a line.
const LONGEST_LINE: usize = 200;

/// The lines from `around` before `line` to `around` after it, with their numbers.
pub(crate) fn around(path: &str, line: u32, around: u32) -> Vec<(u32, String)> {
    match line {
        0 => Vec::new(),
        _ => lines(path, line.saturating_sub(around).max(1), 2 * around as usize + 1),
    }
}

/// At most `most` lines from `first` on, with their numbers; empty if the file cannot be read.
pub(crate) fn lines(path: &str, first: u32, most: usize) -> Vec<(u32, String)> {
    let short = |line: String| line.chars().take(LONGEST_LINE).collect();
    let lines = file::lines(Path::new(path), first, most);
    lines.into_iter().map(|(number, line)| (number, short(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_a_place_end_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.c");
        std::fs::write(&path, "1\n2\n3\n4\n5\n").unwrap();
        let numbers = |line| {
            let found = around(&path.to_string_lossy(), line, 1);
            found.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(
            (numbers(1), numbers(3), numbers(5)),
            (vec![1, 2, 3], vec![2, 3, 4], vec![4, 5])
        );
        assert_eq!(
            (numbers(0), around("/none", 3, 1), around("/dev/zero", 3, 1)),
            (vec![], vec![], vec![])
        );
    }
}
