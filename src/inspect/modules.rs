//! Assigns the parts of the edge map to files: the program and instrumented libraries.

use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sites;
use ffuzz_engine::executor::Module;

/// A file with counters, as the target names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Named {
    pub counters: Range<usize>,
    /// The end of the path under which the loader opened the file.
    pub name: String,
}

/// Resolves the names, which are untrusted; only files mapped in the process are accepted.
pub fn located(named: &[Named], pid: i32) -> Vec<Module> {
    let files = sites::files_of(pid);
    let module = |named: &Named| {
        let file = file(&named.name, &files)?.to_owned();
        Some(Module { counters: named.counters.clone(), file })
    };
    named.iter().filter_map(module).collect()
}

fn file<'a>(name: &str, files: &'a [PathBuf]) -> Option<&'a PathBuf> {
    if name.is_empty() {
        return None;
    }
    // The loader may have followed a link.
    let real = fs::canonicalize(name).ok();
    let by_link = files.iter().find(|file| real.as_deref() == Some(file));
    let plain = Path::new(name.trim_start_matches("./")).as_os_str().as_bytes();
    by_link.or_else(|| files.iter().find(|file| file.as_os_str().as_bytes().ends_with(plain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_a_link_and_by_the_end_of_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("libx.so.1.2");
        fs::write(&real, "").unwrap();
        let link = dir.path().join("libx.so");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let files = [PathBuf::from("/bin/a"), real.clone()];
        assert_eq!(file(&link.to_string_lossy(), &files), Some(&real));
        assert_eq!(file("ibx.so.1.2", &files), Some(&real));
        assert_eq!(file("./libx.so.1.2", &files), Some(&real));
        assert_eq!((file("/etc/passwd", &files), file("", &files)), (None, None));
    }
}
