//! File operations used by [`super`].
//!
//! Folders are 0700 and files 0600, as in AFL: inputs may be secret.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, FcntlArg, OFlag, fcntl};
use nix::unistd::linkat;

use super::OutputError;
use super::settle::sync;
use ffuzz_sys::file::{self, settled};

/// Temporary name in the instance folder. One is enough: only the owner of the lock writes.
const TEMPORARY: &str = ".new_file";
/// Maximum number of links followed, as in the kernel.
const MOST_LINKS: usize = 40;

/// Writes `path` whole or not at all: first under a temporary name in `folder` (same file system), then renamed over an
/// existing file.
pub fn replace_file(folder: &Path, path: &Path, data: &[u8]) -> Result<(), OutputError> {
    replace(folder, path, |file| file.write_all(data))
}

/// Like [`replace_file`]; after a power failure the old or the new content remains, as far as the file system can.
pub(super) fn replace_safely(folder: &Path, path: &Path, data: &[u8]) -> Result<(), OutputError> {
    replace(folder, path, |file| file.write_all(data).and_then(|()| settled(file.sync_all())))
}

/// Like [`replace_file`]; on return the file survives a power failure.
pub fn replace_for_good(folder: &Path, path: &Path, data: &[u8]) -> Result<(), OutputError> {
    replace_lastingly(folder, path, data).map(drop)
}

/// Like [`replace_for_good`]. Returns false if the name may not survive a power failure: the file is complete, so do
/// not write it again.
pub(super) fn replace_lastingly(
    folder: &Path,
    path: &Path,
    data: &[u8],
) -> Result<bool, OutputError> {
    replace_safely(folder, path, data)?;
    Ok(path.parent().is_none_or(|parent| settled(sync(parent)).is_ok()))
}

/// Writes a file named by the user. Replaces a regular file, or the target of a link, whole or not at all, keeping its
/// permissions; writes into a device or a pipe.
pub fn replace_user_file(path: &Path, data: &[u8]) -> Result<(), OutputError> {
    let failed = |source| OutputError::write(path, source);
    let Some(goal) = place_of(path)? else { return write_into(path, data).map_err(failed) };
    let temporary = beside(&goal);
    let written = create_like(&temporary, &goal)
        .and_then(|mut file| file.write_all(data).and_then(|()| settled(file.sync_all())))
        .and_then(|()| fs::rename(&temporary, &goal));
    written.map_err(|source| {
        remove(&temporary);
        failed(source)
    })
}

/// Checks that [`replace_user_file`] can begin; leaves no file behind.
pub fn check_user_file(path: &Path) -> Result<(), OutputError> {
    let Some(goal) = place_of(path)? else { return Ok(()) };
    let temporary = beside(&goal);
    create_like(&temporary, &goal).map(drop).map_err(|source| OutputError::write(path, source))?;
    remove(&temporary);
    Ok(())
}

/// Resolves links to the path of a regular file, which need not exist. None for a device, a pipe or an open file
/// (`/dev/stdout`), which is written into.
fn place_of(path: &Path) -> Result<Option<PathBuf>, OutputError> {
    if path.is_dir() {
        return Err(OutputError::IsFolder { path: path.to_owned() });
    }
    if is_special(path) {
        return Ok(None);
    }
    let mut goal = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&goal) else { return Ok(Some(goal)) };
        let folder = goal.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // Links there are open files whose names are only text.
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return Ok(None);
        }
        goal = folder.join(next);
    }
    Err(OutputError::write(path, Errno::ELOOP.into()))
}

/// Creates the temporary file of `goal` with its permissions, or with default ones if it does not exist.
fn create_like(temporary: &Path, goal: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(temporary);
    let file = create().or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => fs::remove_file(temporary).and_then(|()| create()),
        _ => Err(error),
    })?;
    if let Ok(data) = fs::metadata(goal) {
        file.set_permissions(data.permissions())?;
    }
    Ok(file)
}

/// Writes into a device or a pipe; fails at once on a pipe without a reader.
fn write_into(path: &Path, data: &[u8]) -> io::Result<()> {
    let flags = OFlag::O_NONBLOCK.bits();
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENXIO) => io::Error::other("no program reads this pipe"),
        _ => error,
    })?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    file.write_all(data)
}

/// True for a device, a pipe or a socket, also through a link: `/dev/null`, `/dev/stdout`.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Temporary name for a user's file.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

fn replace(
    folder: &Path,
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), OutputError> {
    replace_through(&folder.join(TEMPORARY), path, fill)
}

fn replace_through(
    temporary: &Path,
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), OutputError> {
    let written = file::create(temporary)
        .and_then(|mut file| fill(&mut file))
        .and_then(|()| fs::rename(temporary, path));
    written.map_err(|source| {
        remove(temporary);
        OutputError::write(path, source)
    })
}

/// Creates a hard link, unless the name exists. Follows a symbolic link.
pub(super) fn hard_link(file: &Path, name: &Path) -> io::Result<()> {
    let here = nix::fcntl::AT_FDCWD;
    linkat(here, file, here, name, AtFlags::AT_SYMLINK_FOLLOW).map_err(Into::into)
}

/// Creates a folder and its parents unless they exist.
pub(super) fn create_dir(path: &Path) -> Result<(), OutputError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(|e| OutputError::write(path, e))
}

/// Warning about an existing folder that others can write to: they could replace the fuzzer's files.
pub(super) fn exposed(path: &Path) -> Option<String> {
    let data = fs::metadata(path).ok()?;
    let (own, owner) = (nix::unistd::geteuid().as_raw(), data.uid());
    let (mode, shown) = (data.mode() & 0o7777, path.display());
    if own != 0 && owner != own && owner != 0 {
        return Some(format!("{shown} belongs to another user (uid {owner}): choose another -o"));
    }
    (mode & 0o002 != 0).then(|| {
        format!(
            "every user can write to {shown} (mode {mode:04o}): chmod 700 {shown} prevents that"
        )
    })
}

/// Creates the symbolic link `link` to `goal`. Replaces only a link, never a file or a folder. Returns false on a file
/// system without links.
pub(super) fn link(link: &Path, goal: &Path) -> Result<bool, OutputError> {
    match fs::read_link(link) {
        Ok(old) if old == goal => return Ok(true),
        Ok(_) => fs::remove_file(link).map_err(|e| OutputError::write(link, e))?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(_) => return Err(OutputError::InTheWay { path: link.to_owned() }),
    }
    match symlink(goal, link) {
        // Another instance in the same OUT may have been faster.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(e) if file::has_no_links(&e) => Ok(false),
        Err(e) => Err(OutputError::write(link, e)),
        Ok(()) => Ok(true),
    }
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
