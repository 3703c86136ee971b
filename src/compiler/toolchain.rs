//! Finds clang and guesses the linker, usually without starting a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::CompilerError;
use super::env::Env;

/// Tested versions, newest first.
const VERSIONS: &[u32] = &[19, 18, 17, 16, 15, 14];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    C,
    Cxx,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Clang {
    pub path: PathBuf,
    pub major: u32,
}

/// Whether a linker accepts the linker script.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Linker {
    TakesScript,
    RefusesScript,
    Unknown,
}

/// Finds clang: `FFUZZ_CC`, then `AFL_CC`/`AFL_CXX`, then the newest known clang, then plain `clang`.
pub fn find(language: Language, env: &Env) -> Result<Clang, CompilerError> {
    let name = if language == Language::C { "clang" } else { "clang++" };
    let afl = if language == Language::C { &env.afl_cc } else { &env.afl_cxx };
    let wanted = match (&env.clang, afl) {
        (Some(choice), _) if choice.parse::<u32>().is_ok() => {
            Some(PathBuf::from(format!("{name}-{choice}")))
        }
        (Some(path), _) => Some(for_language(Path::new(path), language)),
        (None, afl) => afl.clone(),
    };
    if let Some(wanted) = wanted {
        let path = locate(&wanted, &env.path)
            .ok_or_else(|| CompilerError::NoClang { tried: wanted.display().to_string() })?;
        let major = major(&path).ok_or_else(|| CompilerError::NotClang(path.clone()))?;
        return Ok(Clang { path, major });
    }
    let numbered = VERSIONS.iter().map(|version| format!("{name}-{version}"));
    numbered
        .chain([name.to_owned()])
        .find_map(|candidate| {
            let path = locate(Path::new(&candidate), &env.path)?;
            Some(Clang { major: major(&path)?, path })
        })
        .ok_or_else(|| CompilerError::NoClang { tried: format!("{name}-19 … {name}-14, {name}") })
}

/// Finds a program of clang's LLVM: next to clang, or in PATH with its version number.
pub(super) fn tool(name: &str, clang: &Clang, env: &Env) -> Option<PathBuf> {
    let beside = clang.path.canonicalize().ok().map(|path| path.with_file_name(name));
    let numbered = PathBuf::from(format!("{name}-{}", clang.major));
    beside.filter(|path| path.is_file()).or_else(|| locate(&numbered, &env.path))
}

/// Converts the compiler in `FFUZZ_CC` to the one of `language`; either may be given.
fn for_language(path: &Path, language: Language) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let c_name = name.replacen("clang++", "clang", 1);
    let name =
        if language == Language::C { c_name } else { c_name.replacen("clang", "clang++", 1) };
    path.with_file_name(name)
}

/// Resolves a program: a path with a slash stays, a name is searched in PATH.
pub(super) fn locate(program: &Path, path: &[PathBuf]) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    path.iter().map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Finds the major version: from the name (`clang-19`), from the folder that a link points to (`…/llvm-19/bin/clang`),
/// otherwise by running clang.
fn major(clang: &Path) -> Option<u32> {
    let name = clang.file_name()?.to_str()?;
    if let Some((stem, version)) = name.rsplit_once('-')
        && stem.starts_with("clang")
        && let Ok(version) = version.parse()
    {
        return Some(version);
    }
    let real = clang.canonicalize().ok()?;
    let mut folder =
        real.iter().rev().filter_map(|part| part.to_str()?.strip_prefix("llvm-")?.parse().ok());
    if real.file_name().is_some_and(|name| name.to_string_lossy().starts_with("clang"))
        && let Some(version) = folder.next()
    {
        return Some(version);
    }
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rest = text.split_once("clang version ")?.1;
    rest.split('.').next()?.parse().ok()
}

/// Classifies clang's default linker: `ld` in PATH, links resolved.
#[must_use]
pub(crate) fn default_linker(env: &Env) -> Linker {
    let Some(ld) = locate(Path::new("ld"), &env.path).and_then(|ld| ld.canonicalize().ok()) else {
        return Linker::Unknown;
    };
    let name = ld.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.contains("bfd") { Linker::TakesScript } else { by_name(&name) }
}

/// Classifies `-fuse-ld=NAME`, `--ld-path=PATH` or the file of `ld`.
#[must_use]
pub(crate) fn by_name(name: &str) -> Linker {
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.contains("gold") || name.contains("mold") {
        Linker::RefusesScript
    } else if name.contains("bfd") || name.contains("lld") {
        Linker::TakesScript
    } else {
        Linker::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_of_the_other_language_is_beside_it() {
        let cxx = |path| for_language(Path::new(path), Language::Cxx);
        assert_eq!(cxx("/opt/bin/clang-16"), Path::new("/opt/bin/clang++-16"));
        assert_eq!(cxx("clang++"), Path::new("clang++"));
        let c = for_language(Path::new("/opt/bin/clang++-16"), Language::C);
        assert_eq!(c, Path::new("/opt/bin/clang-16"));
    }

    #[test]
    fn linkers_are_known_by_their_names() {
        assert_eq!(by_name("/usr/bin/ld.gold"), Linker::RefusesScript);
        assert_eq!(by_name("mold"), Linker::RefusesScript);
        assert_eq!(by_name("lld-19"), Linker::TakesScript);
        assert_eq!(by_name("bfd"), Linker::TakesScript);
        assert_eq!(by_name("wild"), Linker::Unknown);
    }
}
