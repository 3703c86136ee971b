//! The runtime as a library that is loaded into a program before all others (`LD_PRELOAD`), because the program
//! itself was linked without it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ffuzz_assets::{Assets, AssetsError};
use ffuzz_config::env::AssetPlaces;
use object::{Architecture, Object, ObjectKind};

use super::binary;
use super::choice::is_runtime;
use super::objects::Objects;

const VARIABLE: &str = "LD_PRELOAD";
/// Mode bits of a program that runs as its owner or group.
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Why the runtime cannot be loaded into a program.
#[derive(Debug, thiserror::Error)]
pub enum PreloadError {
    #[error("the loader of programs cannot load {path:?}: its path has a space or a colon")]
    Path { path: PathBuf },
    #[error(transparent)]
    Assets(AssetsError),
}

impl PreloadError {
    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Path { .. } => "set XDG_CACHE_HOME to a folder without them",
            Self::Assets(error) => error.remedy(),
        }
    }
}

/// A library of ours that the target loads first.
#[derive(Debug)]
pub(super) struct Preload {
    library: PathBuf,
}

impl Preload {
    /// `name` is one of [`ffuzz_assets`].
    pub(super) fn open(places: &AssetPlaces, name: &str) -> Result<Self, PreloadError> {
        let assets = Assets::open(places).map_err(PreloadError::Assets)?;
        let library = assets.directory.join(name);
        if library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
            return Err(PreloadError::Path { path: library });
        }
        Ok(Self { library })
    }

    /// What is to be set in the environment of a target that gets these variables.
    pub(super) fn variable(&self, env: &[(OsString, Option<OsString>)]) -> (OsString, OsString) {
        let user = env.iter().rev().find(|(name, _)| name == VARIABLE);
        let user = user.and_then(|(_, list)| list.as_ref()).filter(|list| !list.is_empty());
        let mut list = self.library.clone().into_os_string();
        if let Some(user) = user {
            list.push(":");
            list.push(user);
        }
        (VARIABLE.into(), list)
    }
}

/// The first library of a program that `ffuzz-cc` has built; none if the runtime cannot be loaded into the program.
/// `env` is added to the target's environment.
pub(super) fn instrumented_library(
    program: &Path,
    env: &[(OsString, OsString)],
) -> Option<PathBuf> {
    if !is_of_this_machine(program) || changes_user(program) {
        return None;
    }
    let libraries = Objects::of(program, env).ok()?.files.into_iter().skip(1);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut own = libraries.filter(|path| !is_runtime(&name(path)));
    own.find(|path| fs::read(path).is_ok_and(|content| binary::needs_runtime(&content)))
}

/// A program that the loader starts, of the processor and word size of our libraries.
fn is_of_this_machine(program: &Path) -> bool {
    let here =
        if cfg!(target_arch = "x86_64") { Architecture::X86_64 } else { Architecture::Aarch64 };
    let Ok(content) = fs::read(program) else { return false };
    let file = object::File::parse(&*content);
    let fits = |file: object::File<'_>| {
        let is_program = matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic);
        is_program && file.architecture() == here && file.is_64()
    };
    file.is_ok_and(fits) && binary::loader(program).is_some()
}

/// The program runs as another user or group: the loader leaves preloaded libraries out then.
pub(super) fn changes_user(program: &Path) -> bool {
    let Ok(data) = fs::metadata(program) else { return false };
    let mode = data.permissions().mode();
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    mode & SET_USER != 0 && data.uid() != user || mode & SET_GROUP != 0 && data.gid() != group
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn our_library_is_in_front_of_those_of_the_user() {
        let preload = Preload { library: "/lib/ours.so".into() };
        let variable = |value: Option<&str>| {
            let env = [(VARIABLE.into(), value.map(Into::into))];
            preload.variable(&env).1
        };
        assert_eq!(variable(Some("/a.so:/b.so")), OsStr::new("/lib/ours.so:/a.so:/b.so"));
        assert_eq!(variable(Some("")), OsStr::new("/lib/ours.so"));
        assert_eq!(variable(None), OsStr::new("/lib/ours.so"));
    }
}
