//! What can be learned from the target's file before it is started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::TargetError;

/// Facts found in the file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traits {
    pub instrumented: bool,
    pub persistent: bool,
    pub deferred: bool,
    /// Linked with a sanitizer runtime.
    pub sanitizer: bool,
}

/// Finds the program as a shell would: a name without a slash is looked up in `search_path`.
pub fn locate(program: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, TargetError> {
    let path = PathBuf::from(program);
    let is_file = |path: &Path| path.is_file();
    let found = if program.as_bytes().contains(&b'/') {
        is_file(&path).then_some(path)
    } else {
        search_path
            .into_iter()
            .flat_map(std::env::split_paths)
            .map(|dir| dir.join(&path))
            .find(|path| is_file(path))
    };
    found
        .and_then(|path| std::path::absolute(path).ok())
        .ok_or_else(|| TargetError::NotFound { program: program.into() })
}

/// Looks into the file: is it a program of this machine, and which markers does it carry?
pub fn inspect(path: &Path) -> Result<Traits, TargetError> {
    let unreadable = |source| TargetError::Unreadable { path: path.into(), source };
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o111 == 0 {
        return Err(TargetError::NotExecutable { path: path.into() });
    }
    let content = fs::read(path).map_err(unreadable)?;
    if content.starts_with(b"#!") {
        return Err(TargetError::Script { path: path.into() });
    }
    check_machine(path, &content)?;
    Ok(Traits {
        instrumented: contains(&content, b"__AFL_SHM_ID\0"),
        persistent: contains(&content, b"##SIG_AFL_PERSISTENT##\0"),
        deferred: contains(&content, b"##SIG_AFL_DEFER_FORKSRV##\0"),
        sanitizer: [b"__asan_init".as_slice(), b"__msan_init", b"__lsan_init"]
            .iter()
            .any(|name| contains(&content, name)),
    })
}

/// Path of the dynamic loader that the program asks for, if that loader does not exist.
#[must_use]
pub fn missing_loader(path: &Path) -> Option<PathBuf> {
    let content = fs::read(path).ok()?;
    // The loader's path stands near the start of every dynamic ELF program.
    let head = &content[..content.len().min(1 << 16)];
    let start = head.windows(4).position(|window| window == b"/lib")?;
    let name = head[start..].split(|byte| *byte == 0).next()?;
    let loader = PathBuf::from(OsStr::from_bytes(name));
    (name.windows(3).any(|window| window == b"ld-") && !loader.exists()).then_some(loader)
}

const ELF_MAGIC: &[u8] = b"\x7fELF";

#[cfg(target_arch = "x86_64")]
const HOST: (u16, u8, &str) = (62, 2, "x86-64");
#[cfg(target_arch = "aarch64")]
const HOST: (u16, u8, &str) = (183, 2, "aarch64");

fn check_machine(path: &Path, content: &[u8]) -> Result<(), TargetError> {
    if !content.starts_with(ELF_MAGIC) || content.len() < 20 {
        return Err(TargetError::NotElf { path: path.into() });
    }
    let machine = u16::from_le_bytes([content[18], content[19]]);
    let class = content[4];
    // 32-bit x86 programs run on 64-bit kernels, and their runtimes speak the same protocol.
    let runs_here = (machine, class) == (HOST.0, HOST.1) || (HOST.0 == 62 && machine == 3);
    if runs_here {
        return Ok(());
    }
    Err(TargetError::Architecture { path: path.into(), found: machine_name(machine), host: HOST.2 })
}

fn machine_name(machine: u16) -> String {
    let names =
        [(3, "x86"), (8, "MIPS"), (20, "PowerPC"), (40, "ARM"), (62, "x86-64"), (183, "aarch64")];
    let known = names.iter().find(|(number, _)| *number == machine);
    known.map_or_else(|| format!("ELF machine {machine}"), |(_, name)| (*name).to_owned())
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    let mut rest = haystack;
    // Programs are large, markers begin with a rare byte: jump from one first byte to the next.
    while let Some(start) = rest.iter().position(|byte| *byte == needle[0]) {
        if rest[start..].starts_with(needle) {
            return true;
        }
        rest = &rest[start + 1..];
    }
    false
}

/// Replaces `@@` in every argument by the path of the input file; true if there was any.
pub fn substitute(arguments: &mut [OsString], input: &Path) -> bool {
    let mut any = false;
    for argument in arguments {
        let bytes = argument.as_bytes();
        if let Some(at) = bytes.windows(2).position(|pair| pair == b"@@") {
            let parts = [&bytes[..at], input.as_os_str().as_bytes(), &bytes[at + 2..]];
            *argument = OsStr::from_bytes(&parts.concat()).to_owned();
            any = true;
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_signs_are_replaced_inside_of_an_argument() {
        let mut arguments = vec!["x".into(), "--in=@@".into(), "y".into()];
        assert!(substitute(&mut arguments, Path::new("/o/.cur_input")));
        assert_eq!(arguments, ["x", "--in=/o/.cur_input", "y"]);
        assert!(!substitute(&mut arguments, Path::new("/o")));
    }

    #[test]
    fn markers_are_found_anywhere() {
        assert!(contains(b"xx__AFL_SHM_ID\0yy", b"__AFL_SHM_ID\0"));
        assert!(contains(b"___AFL_SHM_ID\0", b"__AFL_SHM_ID\0"));
        assert!(!contains(b"__AFL_SHM_IDX\0", b"__AFL_SHM_ID\0"));
    }

    #[test]
    fn wrong_files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8], mode| {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            inspect(&path).unwrap_err()
        };
        assert!(matches!(file("a", b"", 0o644), TargetError::NotExecutable { .. }));
        assert!(matches!(file("b", b"#!/bin/sh\n", 0o755), TargetError::Script { .. }));
        assert!(matches!(file("c", b"MZ", 0o755), TargetError::NotElf { .. }));
        let mut mips = vec![0; 64];
        mips[..5].copy_from_slice(b"\x7fELF\x02");
        mips[18] = 8;
        assert!(matches!(file("d", &mips, 0o755), TargetError::Architecture { .. }));
        let missing = locate(OsStr::new("./no-such-program"), None);
        assert!(matches!(missing, Err(TargetError::NotFound { .. })));
    }
}
