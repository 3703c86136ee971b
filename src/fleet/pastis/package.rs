//! The target as a broker sends it: an ELF file, or a ZIP archive with it and further files.
//!
//! A sender of packages can run any program here; the checks only prevent accidents, and files
//! outside the package's folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use sha1::{Digest, Sha1};
use zip::ZipArchive;

use super::error::{Refusal, shortened};
use ffuzz_inspect::binary;

/// Maximum total unpacked size; guards against zip bombs.
const LARGEST: u64 = 1 << 30;
const MOST_FILES: usize = 10_000;
/// Maximum length of the target's name in bytes. File systems allow 255.
const LONGEST_NAME: usize = 200;
const ELF: &[u8] = b"\x7fELF";
const ZIP: &[u8] = b"PK\x03\x04";

/// The unpacked target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Package {
    pub(super) program: PathBuf,
    pub(super) dictionary: Option<PathBuf>,
    pub(super) instrumented: bool,
    /// Hash of the files; equal for packages with the same files.
    pub(super) fingerprint: [u8; 20],
}

/// Writes the package into a folder that does not exist yet, and checks that the target can run on
/// this machine.
pub(super) fn unpack(name: &str, bytes: &[u8], folder: &Path) -> Result<Package, Refusal> {
    unpack_within(LARGEST, name, bytes, folder)
}

fn unpack_within(most: u64, name: &str, bytes: &[u8], folder: &Path) -> Result<Package, Refusal> {
    if !is_name(name) {
        return Err(Refusal::Name(shortened(name)));
    }
    let mut writer = PackageWriter { folder, left: most, files: Vec::new() };
    make_folder(folder)?;
    if bytes.starts_with(ELF) {
        writer.file(Path::new(name), true, &mut &*bytes)?;
    } else if bytes.starts_with(ZIP) {
        writer.archive(bytes)?;
    } else {
        return Err(Refusal::Format);
    }
    let program = folder.join(name);
    if !fs::symlink_metadata(&program).is_ok_and(|data| data.is_file()) {
        return Err(Refusal::Missing(name.to_owned()));
    }
    let executable = fs::set_permissions(&program, fs::Permissions::from_mode(0o700));
    executable.map_err(|source| Refusal::Write { path: program.clone(), source })?;
    let instrumented = binary::inspect(&program, true)?.instrumented;
    if instrumented {
        binary::inspect(&program, false)?;
    }
    let dictionary = folder.join(format!("{name}.dict"));
    let dictionary = dictionary.is_file().then_some(dictionary);
    Ok(Package { program, dictionary, instrumented, fingerprint: writer.fingerprint() })
}

/// Returns true for a plain file name of limited length. It is shown to users, and part of a longer
/// name.
fn is_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    let printable = !name.contains(char::is_control) && name.len() <= LONGEST_NAME;
    plain && parts.next().is_none() && printable && !name.starts_with('-')
}

struct PackageWriter<'a> {
    folder: &'a Path,
    left: u64,
    /// Path and digest of each file.
    files: Vec<(PathBuf, [u8; 20])>,
}

impl PackageWriter<'_> {
    fn archive(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let damaged = |error: &dyn std::fmt::Display| Refusal::Damaged(error.to_string());
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| damaged(&e))?;
        if archive.len() > MOST_FILES {
            return Err(Refusal::Large(LARGEST >> 20));
        }
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).map_err(|e| damaged(&e))?;
            let shown = || shortened(&String::from_utf8_lossy(file.name_raw()));
            if file.is_symlink() {
                return Err(Refusal::Link(shown()));
            }
            let inside = file.enclosed_name().filter(|_| !file.name_raw().starts_with(b"/"));
            let Some(path) = inside else { return Err(Refusal::Outside(shown())) };
            if file.is_dir() {
                make_folder(&self.folder.join(path))?;
                continue;
            }
            let executable = file.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
            self.file(&path, executable, &mut file)?;
        }
        Ok(())
    }

    /// Writes a file. Two files of the same name mean a damaged package.
    fn file(&mut self, path: &Path, executable: bool, from: &mut impl Read) -> Result<(), Refusal> {
        let to = self.folder.join(path);
        to.parent().map_or(Ok(()), make_folder)?;
        let mode = if executable { 0o700 } else { 0o600 };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&to);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Refusal::Damaged(format!("{path:?} is there twice")),
            _ => Refusal::Write { path: to.clone(), source: error },
        })?;
        let digest = self.copy(&to, file, from)?;
        self.files.push((path.to_owned(), digest));
        Ok(())
    }

    fn copy(
        &mut self,
        to: &Path,
        mut file: File,
        from: &mut impl Read,
    ) -> Result<[u8; 20], Refusal> {
        let mut digest = Sha1::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = from.read(&mut buffer).map_err(|e| Refusal::Damaged(e.to_string()))?;
            if count == 0 {
                return Ok(digest.finalize().into());
            }
            let left = self.left.checked_sub(count as u64);
            self.left = left.ok_or(Refusal::Large(LARGEST >> 20))?;
            digest.update(&buffer[..count]);
            let written = file.write_all(&buffer[..count]);
            written.map_err(|source| Refusal::Write { path: to.to_owned(), source })?;
        }
    }

    /// Hash of the files, independent of their order, which depends on the broker's folder.
    fn fingerprint(mut self) -> [u8; 20] {
        self.files.sort();
        let mut digest = Sha1::new();
        for (path, content) in &self.files {
            digest.update(Sha1::digest(path.as_os_str().as_encoded_bytes()));
            digest.update(content);
        }
        digest.finalize().into()
    }
}

/// Creates a folder that only this user can read.
pub(super) fn make_folder(folder: &Path) -> Result<(), Refusal> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| Refusal::Write { path: folder.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    /// A program of this machine, as far as its header shows.
    fn elf(marker: &str) -> Vec<u8> {
        let own = fs::read("/proc/self/exe").unwrap();
        let mut bytes = own[..64].to_vec();
        bytes.extend(marker.as_bytes());
        bytes.push(0);
        bytes
    }

    fn instrumented() -> Vec<u8> {
        elf("__AFL_SHM_ID")
    }

    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(vec![]));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, content) in files {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// Unpacks into a fresh folder, and checks that nothing else appears beside it.
    fn unpacked(name: &str, bytes: &[u8]) -> Result<Package, Refusal> {
        let dir = tempfile::tempdir().unwrap();
        let result = unpack(name, bytes, &dir.path().join("package"));
        let around: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert!(around.len() <= 1, "{around:?}");
        result
    }

    #[test]
    fn a_lone_program_and_an_archive_are_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let lone = unpack("t", &instrumented(), &dir.path().join("a")).unwrap();
        assert_eq!(lone.dictionary, None);
        let mode = fs::metadata(&lone.program).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let bytes = zip(&[("t.dict", b"a=\"b\""), ("t", &instrumented()), ("conf", b"x")]);
        let package = unpack("t", &bytes, &dir.path().join("b")).unwrap();
        assert_eq!(package.program, dir.path().join("b/t"));
        assert_eq!(fs::read(package.dictionary.unwrap()).unwrap(), b"a=\"b\"");
        assert_eq!(fs::read(dir.path().join("b/conf")).unwrap(), b"x");
    }

    #[test]
    fn the_fingerprint_depends_on_content_and_not_on_order() {
        let program = instrumented();
        let fingerprint = |files: &[(&str, &[u8])]| unpacked("t", &zip(files)).unwrap().fingerprint;
        let one = fingerprint(&[("t", &program), ("a", b"1")]);
        assert_eq!(one, fingerprint(&[("a", b"1"), ("t", &program)]));
        assert_ne!(one, fingerprint(&[("a", b"2"), ("t", &program)]));
        assert_ne!(one, fingerprint(&[("b", b"1"), ("t", &program)]));
    }

    #[test]
    fn nothing_leaves_the_folder() {
        let program = instrumented();
        for name in ["../out", "/tmp/ffuzz-out", "a/../../out"] {
            let bytes = zip(&[("t", &program), (name, b"x")]);
            assert!(matches!(unpacked("t", &bytes), Err(Refusal::Outside(_))), "{name}");
        }
        let long = "t".repeat(LONGEST_NAME + 1);
        for name in ["../t", "a/t", "", ".", "..", "/t", "t/", "-t", "t\0", "t\u{1b}[2J", &long] {
            assert!(matches!(unpacked(name, &program), Err(Refusal::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn links_are_refused() {
        let mut writer = ZipWriter::new(Cursor::new(vec![]));
        writer.add_symlink("link", "/etc", SimpleFileOptions::default()).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert!(matches!(unpacked("t", &bytes), Err(Refusal::Link(_))));
    }

    #[test]
    fn zeros_that_were_packed_to_nothing_are_refused() {
        let mut writer = ZipWriter::new(Cursor::new(vec![]));
        writer.start_file("t", SimpleFileOptions::default()).unwrap();
        writer.write_all(&vec![0; 10 << 20]).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert!(bytes.len() < 100_000);
        let dir = tempfile::tempdir().unwrap();
        let result = unpack_within(8 << 20, "t", &bytes, &dir.path().join("package"));
        assert!(matches!(result, Err(Refusal::Large(_))), "{result:?}");
        assert!(fs::metadata(dir.path().join("package/t")).unwrap().len() <= 8 << 20);
    }

    #[test]
    fn what_is_no_package_is_named() {
        let program = instrumented();
        let refusal = |name: &str, bytes: &[u8]| unpacked(name, bytes).unwrap_err().to_string();
        assert!(refusal("t", b"").contains("neither"));
        assert!(refusal("t", b"#!/bin/sh\n").contains("neither"));
        assert!(refusal("t", b"PK\x03\x04nonsense").contains("damaged"));
        assert!(refusal("t", &zip(&[("other", &program)])).contains("does not have the target"));
        let dir = tempfile::tempdir().unwrap();
        let plain = unpack("t", &elf("nothing"), &dir.path().join("plain")).unwrap();
        assert!(!plain.instrumented);
        let mut foreign = program;
        // Another machine: its number is at offset 18.
        foreign[18] = 8;
        assert!(refusal("t", &foreign).contains("is built for MIPS"), "{}", refusal("t", &foreign));
    }
}
