//! The files that travel inside the executable, unpacked on first use into a private folder whose name is
//! the hash of all contents: runtime, passes and sources for clang.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use ffuzz_config::env::AssetPlaces;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/assets.rs"));
}

/// Of the contents of all files: another one belongs to another version.
pub const HASH: &str = embedded::HASH;
/// The linker script that gives counters pages of their own.
pub const SCRIPT: &str = "counters.ld";
/// The runtime functions that a program offers to its shared libraries.
pub const EXPORTED: &str = "exported.list";
/// The runtime as a library, for a program whose libraries are instrumented.
pub const PRELOAD: &str = "libffuzz-preload.so";
/// The same with breakpoints, for programs without instrumentation (x86-64).
pub const NATIVE: &str = "libffuzz-native.so";
/// The plugin of QEMU's user mode emulation (hosts with 64 bits).
pub const QEMU: &str = "libffuzz-qemu.so";
/// A heap that shows its misuse, for `LD_PRELOAD`.
pub const HEAP: &str = "libffuzz-heap.so";
/// A stand-in for the network, for `LD_PRELOAD`.
pub const NET: &str = "libffuzz-net.so";
const RUNTIME: &str = "libffuzz-rt.a";

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum AssetsError {
    #[error("cannot unpack the runtime into {}: {source}", path.display())]
    #[diagnostic(help("set XDG_CACHE_HOME to a folder of your own with room for 1 MB"))]
    Unpack { path: PathBuf, source: io::Error },
    #[error("{} belongs to another user or can be written by others", .0.display())]
    #[diagnostic(help("set XDG_CACHE_HOME to a folder of your own with room for 1 MB"))]
    ForeignFolder(PathBuf),
    #[error("FFUZZ_LIB_DIR={} holds no libffuzz-rt.a", .0.display())]
    #[diagnostic(help("unset FFUZZ_LIB_DIR to use what is built in"))]
    EmptyLibDir(PathBuf),
}

/// Where the files are.
#[derive(Clone, Debug)]
pub struct Assets {
    /// A folder with all of them.
    pub directory: PathBuf,
    /// A private folder for what is compiled or generated on first use.
    pub made: PathBuf,
    /// The private folder that outlives a new version of ffuzz.
    pub root: PathBuf,
}

impl Assets {
    /// `FFUZZ_LIB_DIR`, else `AFL_PATH` if it holds the files of ffuzz, else the cache.
    pub fn open(places: &AssetPlaces) -> Result<Self, AssetsError> {
        let is_ours = |folder: &&PathBuf| folder.join(RUNTIME).is_file();
        if let Some(folder) = places.lib_dir.as_ref().filter(|folder| !is_ours(folder)) {
            return Err(AssetsError::EmptyLibDir(folder.clone()));
        }
        let given = places.lib_dir.as_ref().or(places.afl_path.as_ref().filter(is_ours));
        let (private, fallback) = cache_folders(places);
        match private.map(|root| Self::below(root, given)) {
            Some(Ok(assets)) => Ok(assets),
            None | Some(Err(_)) => Self::below(fallback, given),
        }
    }

    fn below(root: PathBuf, given: Option<&PathBuf>) -> Result<Self, AssetsError> {
        if let Some(directory) = given {
            let made = root.join("made");
            private_folder(&root)?;
            private_folder(&made)?;
            return Ok(Self { directory: directory.clone(), made, root });
        }
        let directory = unpack(&root)?;
        Ok(Self { made: directory.clone(), directory, root })
    }

    /// An object with the path of this program, for what is linked to start it. None if the path is too long, or there
    /// is no room: then it is looked for in the user's PATH.
    #[must_use]
    pub fn object_of(&self, program: &Path) -> Option<PathBuf> {
        self.with_path("ffuzz-where.o", program, |hash| format!("ffuzz-where-{hash}.o"))
    }

    /// One of the archives with the whole runtime, with the path of this program if there is room for it.
    #[must_use]
    pub fn archive_of(&self, name: &str, program: &Path) -> PathBuf {
        let made = self.with_path(name, program, |hash| format!("engine-{hash}/{name}"));
        made.unwrap_or_else(|| self.directory.join(name))
    }

    /// A copy of a file in which a path replaces the text for it. Its name is made of a hash of the path.
    fn with_path(
        &self,
        file: &str,
        program: &Path,
        name: impl FnOnce(&str) -> String,
    ) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        let mut content = fs::read(self.directory.join(file)).ok()?;
        let at = content.windows(PATH_TEXT.len()).position(|part| part == PATH_TEXT)?;
        let path = program.as_os_str().as_bytes();
        if path.len() >= PATH_ROOM {
            return None;
        }
        content[at..at + PATH_TEXT.len()].fill(0);
        content[at..at + path.len()].copy_from_slice(path);
        let hash = path.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        let copy = self.made.join(name(&format!("{hash:016x}")));
        if fs::read(&copy).is_ok_and(|found| found == content) {
            return Some(copy);
        }
        fs::create_dir_all(copy.parent()?).ok()?;
        write(&copy, &content).is_ok().then_some(copy)
    }

    /// What was found out about programs without instrumentation.
    #[must_use]
    pub fn kept_blocks(&self) -> PathBuf {
        self.root.join("blocks")
    }

    /// Links to domains that were registered with `ffuzz domains`.
    #[must_use]
    pub fn kept_domains(&self) -> PathBuf {
        self.root.join("domains")
    }
}

/// Text of `runtime/where.c` that a path replaces, and its room.
const PATH_TEXT: &[u8] = b"@path of ffuzz@";
const PATH_ROOM: usize = 4096;

/// The user's cache folder, and a private one in the folder for temporary files.
fn cache_folders(places: &AssetPlaces) -> (Option<PathBuf>, PathBuf) {
    let absolute = |folder: &&PathBuf| folder.is_absolute();
    let cache = places.cache_home.as_ref().filter(absolute).cloned();
    // The home of a user such as nobody is a name only: root would make it.
    let home = places.home.as_ref().filter(absolute).filter(|home| home.is_dir());
    let cache = cache.or_else(|| home.map(|home| home.join(".cache")));
    let temporary = places.tmpdir.clone().unwrap_or_else(|| "/tmp".into());
    let user = nix::unistd::geteuid();
    (cache.map(|folder| folder.join("ffuzz")), temporary.join(format!("ffuzz-{user}")))
}

/// Puts all files into `root`/HASH. Cheap when they are there: each is read and compared, because
/// files in a folder for temporary files are not trusted.
fn unpack(root: &Path) -> Result<PathBuf, AssetsError> {
    let directory = root.join(HASH);
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
        write(&path, content).map_err(|source| AssetsError::Unpack { path, source })?;
    }
    Ok(directory)
}

/// A real folder of this user that others cannot write to; created if it does not exist.
pub fn private_folder(path: &Path) -> Result<(), AssetsError> {
    let failed = |source| AssetsError::Unpack { path: path.to_owned(), source };
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(path).map_err(failed)?;
    let ours = found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw();
    if !ours || found.mode() & 0o022 != 0 {
        return Err(AssetsError::ForeignFolder(path.to_owned()));
    }
    Ok(())
}

/// Under another name first: a second compiler that starts at the same time never reads half a file.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
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
        let cache_home = Some(home.path().to_owned());
        let places = AssetPlaces { cache_home, ..AssetPlaces::default() };
        let assets = Assets::open(&places).unwrap();
        let script = assets.directory.join(SCRIPT);
        let good = fs::read(&script).unwrap();
        fs::write(&script, b"damaged").unwrap();
        Assets::open(&places).unwrap();
        assert_eq!(fs::read(&script).unwrap(), good);
    }

    #[test]
    fn a_home_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let tmpdir = Some(folder.path().to_owned());
        let places = AssetPlaces { home: Some(home.clone()), tmpdir, ..AssetPlaces::default() };
        let root = Assets::open(&places).unwrap().root;
        assert!(!home.exists());
        assert_eq!(root.parent(), Some(folder.path()));
        fs::create_dir(&home).unwrap();
        assert_eq!(Assets::open(&places).unwrap().root, home.join(".cache/ffuzz"));
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("ffuzz");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(unpack(&folder), Err(AssetsError::ForeignFolder(_))));
    }
}
