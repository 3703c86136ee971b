//! Finds the file and the interface of a `--mutator` argument.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use object::{Architecture, Object, ObjectSymbol};

/// The interface of a mutator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MutatorKind {
    /// A custom mutator of AFL++.
    Custom,
    Killerbeez,
}

/// The reason why a `--mutator` argument is no mutator.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum FindError {
    #[error("the mutator {name} is not in {}", dir.display())]
    #[diagnostic(help(
        "a name means libNAME_mutator.so or libNAME.so in this folder: --mutator-list shows them"
    ))]
    NotInDir { name: String, dir: PathBuf },
    #[error("the mutator {name} is not in this folder, and no other is named")]
    #[diagnostic(help(
        "name the folder with --mutator-dir or FFUZZ_MUTATOR_DIR, or write a path with a /"
    ))]
    NoDir { name: String },
    #[error("cannot read the mutator {}: {source}", path.display())]
    #[diagnostic(help("check the path given to --mutator"))]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the mutator {} is no shared library for this machine", path.display())]
    #[diagnostic(help("build it with cc -shared -fPIC, for this machine"))]
    NoLibrary { path: PathBuf },
    #[error(
        "the mutator {} has neither `afl_custom_init` (AFL++) nor `init` (Killerbeez)",
        path.display()
    )]
    #[diagnostic(help(
        "docs/mutators.md describes what a mutator exports; C++ needs extern \"C\""
    ))]
    NoSymbol { path: PathBuf },
}

/// The file of `word`: a path if it has a slash, otherwise a name in the folder of modules.
pub fn find(word: &OsStr, dir: Option<&Path>) -> Result<PathBuf, FindError> {
    if word.as_bytes().contains(&b'/') {
        return Ok(word.into());
    }
    let named = |before: &str, after: &str| {
        let mut name = OsString::from(before);
        name.push(word);
        name.push(after);
        name
    };
    let names = [named("lib", "_mutator.so"), named("lib", ".so"), word.to_owned()];
    let inside = dir.into_iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
    let here = Path::new(".").join(word);
    let name = || word.to_string_lossy().into_owned();
    inside.chain([here]).find(|path| path.is_file()).ok_or_else(|| match dir {
        Some(dir) => FindError::NotInDir { name: name(), dir: dir.into() },
        None => FindError::NoDir { name: name() },
    })
}

/// Determines the interface from the symbols that the file exports; runs no code.
pub fn kind(path: &Path) -> Result<MutatorKind, FindError> {
    let content =
        fs::read(path).map_err(|source| FindError::Unreadable { path: path.into(), source })?;
    let file = object::File::parse(&*content)
        .ok()
        .filter(|file| file.architecture() == HOST && file.kind() == object::ObjectKind::Dynamic);
    let file = file.ok_or_else(|| FindError::NoLibrary { path: path.into() })?;
    let exports = |names: &[&str]| {
        let mut symbols = file.dynamic_symbols().filter(ObjectSymbol::is_definition);
        symbols.any(|symbol| symbol.name().is_ok_and(|name| names.contains(&name)))
    };
    if exports(&["afl_custom_init", "afl_custom_fuzz"]) {
        Ok(MutatorKind::Custom)
    } else if exports(&["init"]) {
        Ok(MutatorKind::Killerbeez)
    } else {
        Err(FindError::NoSymbol { path: path.into() })
    }
}

#[cfg(target_arch = "x86_64")]
const HOST: Architecture = Architecture::X86_64;
#[cfg(target_arch = "aarch64")]
const HOST: Architecture = Architecture::Aarch64;

/// Short name of a mutator: its file name without `lib`, `_mutator` and extension.
#[must_use]
pub fn short_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_prefix("lib").unwrap_or(&stem);
    stem.strip_suffix("_mutator").unwrap_or(stem).to_owned()
}

/// All Killerbeez modules in a folder, by name.
pub fn modules(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let library = path.extension() == Some(OsStr::new("so"));
        if library && kind(&path).is_ok_and(|kind| kind == MutatorKind::Killerbeez) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_has_no_trimmings() {
        let names = ["/a/libbit_flip_mutator.so", "x/libnop.so", "radamsa.so", "./lib_mutator.so"];
        let short = names.map(|name| short_name(Path::new(name)));
        assert_eq!(short, ["bit_flip", "nop", "radamsa", ""]);
    }

    #[test]
    fn a_name_is_looked_for_in_the_folder_and_a_path_is_not() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["liba_mutator.so", "liba.so", "libb.so"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = |word: &str| find(OsStr::new(word), Some(dir.path())).ok();
        assert_eq!(found("a"), Some(dir.path().join("liba_mutator.so")));
        assert_eq!(found("b"), Some(dir.path().join("libb.so")));
        assert_eq!(found("libb.so"), Some(dir.path().join("libb.so")));
        assert_eq!(found("c"), None);
        assert_eq!(found("./c"), Some(PathBuf::from("./c")));
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let own = std::env::current_exe().unwrap();
        assert!(matches!(
            kind(&own),
            Err(FindError::NoSymbol { .. } | FindError::NoLibrary { .. })
        ));
        let text = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(kind(text.path()), Err(FindError::NoLibrary { .. })));
        assert!(matches!(kind(Path::new("/no/such")), Err(FindError::Unreadable { .. })));
    }
}
