//! The runtime as a library that is loaded before all others (`LD_PRELOAD`), for a program that was linked without
//! it.
//!
//! This is needed if a library of the program is instrumented but the program is not. The library's stub functions
//! forward to this one (`runtime/stub.c`); the fork server starts between the loader and `main`
//! (`runtime/preload/start.c`).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use ffuzz_assets::{Assets, AssetsError};
use ffuzz_config::env::AssetPlaces;
use ffuzz_inspect::binary;
use ffuzz_inspect::choice::is_runtime;
use ffuzz_inspect::objects::Objects;

const VARIABLE: &str = "LD_PRELOAD";
/// Mode bits of a program that runs as its owner or its group.
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Reason why one of our libraries cannot be loaded.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PreloadError {
    #[error("{path:?} cannot be loaded: its path has a space, a colon or a comma")]
    #[diagnostic(help("set XDG_CACHE_HOME to a folder without them"))]
    Path { path: PathBuf },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Assets(AssetsError),
}

/// Unpacks a library of [`ffuzz_assets`]. Its path must fit into the lists of the loader and QEMU, so it has no
/// separators.
pub(super) fn library(places: &AssetPlaces, name: &str) -> Result<PathBuf, PreloadError> {
    let path = Assets::open(places).map_err(PreloadError::Assets)?.directory.join(name);
    match path.as_os_str().as_bytes().iter().any(|byte| b" :,".contains(byte)) {
        true => Err(PreloadError::Path { path }),
        false => Ok(path),
    }
}

/// One of our libraries that the target loads first.
#[derive(Debug)]
pub(super) struct Preload {
    library: PathBuf,
}

impl Preload {
    /// Opens a library of [`ffuzz_assets`] by `name`.
    pub(super) fn open(places: &AssetPlaces, name: &str) -> Result<Self, PreloadError> {
        let library = library(places, name)?;
        Ok(Self { library })
    }

    /// The variable to add to the environment `env` of a target.
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

/// Returns true if `ffuzz-cc` built a library of the program and the runtime can be loaded into it. `env` is added
/// to the target's environment.
pub(super) fn has_instrumented_library(program: &Path, env: &[(OsString, OsString)]) -> bool {
    if !binary::runs_here(program) || binary::loader(program).is_none() || changes_user(program) {
        return false;
    }
    let Ok(objects) = Objects::of(program, env) else { return false };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut own = objects.files.iter().skip(1).filter(|path| !is_runtime(&name(path)));
    own.any(|path| fs::read(path).is_ok_and(|content| binary::needs_runtime(&content)))
}

/// Returns true if the program runs as another user or group: the loader then skips preloaded libraries.
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
