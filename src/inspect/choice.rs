//! Selects the files of a process to analyze: the program and the libraries that the user names.

use std::path::Path;

/// Beginnings of the names of language runtime libraries.
pub const RUNTIME: [&str; 12] = [
    "libc.so",
    "libc-",
    "libm.so",
    "libmvec.so",
    "libpthread.so",
    "libdl.so",
    "librt.so",
    "libstdc++.so",
    "libgcc_s.so",
    "libgomp.so",
    "ld-linux",
    "ld-musl",
];

/// Files of a process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Choice {
    /// All but the loader.
    All,
    /// All but the language runtime libraries.
    Own,
    /// Files with counters of `ffuzz-cc`.
    Counted,
    /// Files of these names, with or without the version.
    Named(Vec<String>),
}

impl Choice {
    /// Parses file names separated by colons or commas, or `all`.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        if list == "all" {
            return Self::All;
        }
        let names = list.split([':', ',']).filter(|name| !name.is_empty());
        Self::Named(names.map(str::to_owned).collect())
    }

    /// Returns true if the choice includes files of this name; the content is not checked.
    #[must_use]
    pub fn takes(&self, file: &str) -> bool {
        match self {
            Self::All | Self::Counted => true,
            Self::Own => !is_runtime(file),
            Self::Named(names) => names.iter().any(|name| is_called(file, name)),
        }
    }
}

/// Compares without the version: `libx.so` and `libx.so.1` both match `libx.so.1.2`.
#[must_use]
fn is_called(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns true for a language runtime library, which every program uses whatever its input.
#[must_use]
pub fn is_runtime(name: &str) -> bool {
    RUNTIME.iter().any(|start| name.starts_with(start))
}

/// Returns true for the language runtime: all code uses its comparisons and jumps, and breakpoint handlers call it.
#[must_use]
pub fn is_language(path: &Path) -> bool {
    is_runtime(&path.file_name().unwrap_or_default().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_called_by_its_name_with_or_without_the_version() {
        for name in ["libx.so", "libx.so.1", "libx.so.1.2"] {
            assert!(Choice::parse(name).takes("libx.so.1.2"));
        }
        assert!(!Choice::parse("libx.so.1.:liby,libz").takes("libx.so.1.2"));
        assert!(!Choice::parse("libx").takes("libxy.so"));
    }

    #[test]
    fn own_files_are_all_but_the_language_runtime() {
        assert!(Choice::Own.takes("libcrypto.so.3") && !Choice::Own.takes("libc.so.6"));
        assert!(Choice::parse("all").takes("libc.so.6"));
    }
}
