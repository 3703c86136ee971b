//! The files that `ffuzz-cc` hands to clang: embedded in the executable, unpacked on first use
//! into a private folder whose name is the hash of all contents.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::CompilerError;
use super::env::Env;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/assets.rs"));
}

/// The linker script that gives counters pages of their own.
pub const SCRIPT: &str = "counters.ld";
/// The runtime functions that a program offers to its shared libraries.
pub const EXPORTED: &str = "exported.list";
const RUNTIME: &str = "libffuzz-rt.a";

/// LLVM version of the embedded passes.
pub const PLUGIN_LLVM: Option<u32> = embedded::PLUGIN_LLVM;

/// A folder with all files.
#[derive(Clone, Debug)]
pub struct Assets {
    pub directory: PathBuf,
}

impl Assets {
    /// `FFUZZ_LIB_DIR`, else `AFL_PATH` if it is one of ours, else the cache.
    pub fn open(env: &Env) -> Result<Self, CompilerError> {
        let is_ours = |folder: &&PathBuf| folder.join(RUNTIME).is_file();
        if let Some(folder) = &env.lib_dir {
            let folder = Some(folder).filter(is_ours);
            let folder = folder
                .ok_or_else(|| CompilerError::EmptyLibDir(env.lib_dir.clone().unwrap_or_default()));
            return Ok(Self { directory: folder?.clone() });
        }
        if let Some(folder) = env.afl_path.as_ref().filter(is_ours) {
            return Ok(Self { directory: folder.clone() });
        }
        let (private, fallback) = cache_folders(env);
        let directory = match private.map(|folder| unpack(&folder)) {
            Some(Ok(directory)) => directory,
            None | Some(Err(_)) => unpack(&fallback)?,
        };
        Ok(Self { directory })
    }

    /// Names of the domains that can be asked for.
    #[must_use]
    pub fn domains(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some(name.strip_prefix("waypoints-")?.strip_suffix("-rt.o")?.to_owned())
            })
            .collect();
        names.sort_unstable();
        names
    }
}

/// The user's cache folder, and a private one in the folder for temporary files.
fn cache_folders(env: &Env) -> (Option<PathBuf>, PathBuf) {
    let absolute = |folder: &&PathBuf| folder.is_absolute();
    let cache = env.cache_home.as_ref().filter(absolute).cloned();
    let cache =
        cache.or_else(|| env.home.as_ref().filter(absolute).map(|home| home.join(".cache")));
    let temporary = env.tmpdir.clone().unwrap_or_else(|| "/tmp".into());
    let user = nix::unistd::geteuid();
    (cache.map(|folder| folder.join("ffuzz")), temporary.join(format!("ffuzz-{user}")))
}

/// Puts all files into `root`/HASH. Cheap when they are there: each is read and compared, because
/// what lies in a folder for temporary files is believed by no one.
fn unpack(root: &Path) -> Result<PathBuf, CompilerError> {
    let directory = root.join(embedded::HASH);
    let folders =
        [root.to_owned(), directory.clone(), directory.join("include"), directory.join("src")];
    for folder in folders {
        private_folder(&folder)?;
    }
    for (name, content) in embedded::FILES {
        let path = directory.join(name);
        if fs::read(&path).is_ok_and(|found| found == *content) {
            continue;
        }
        write(&path, content).map_err(|source| CompilerError::Unpack { path, source })?;
    }
    Ok(directory)
}

/// A real folder of ours that nobody else can write to; made if it is not there.
fn private_folder(path: &Path) -> Result<(), CompilerError> {
    let failed = |source| CompilerError::Unpack { path: path.to_owned(), source };
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(path).map_err(failed)?;
    let ours = found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw();
    if !ours || found.mode() & 0o022 != 0 {
        return Err(CompilerError::ForeignFolder(path.to_owned()));
    }
    Ok(())
}

/// Under another name first: a second compiler that starts at the same time never sees half a file.
pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let _ = fs::remove_file(&temporary);
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    drop(file);
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_repaired() {
        let home = tempfile::tempdir().unwrap();
        let env = Env { cache_home: Some(home.path().to_owned()), ..Env::default() };
        let assets = Assets::open(&env).unwrap();
        let script = assets.directory.join(SCRIPT);
        let good = fs::read(&script).unwrap();
        fs::write(&script, b"damaged").unwrap();
        Assets::open(&env).unwrap();
        assert_eq!(fs::read(&script).unwrap(), good);
        assert!(assets.domains().contains(&"cmp".to_owned()));
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("ffuzz");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(unpack(&folder), Err(CompilerError::ForeignFolder(_))));
    }
}
