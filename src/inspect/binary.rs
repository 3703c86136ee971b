//! Facts from the target's file that are known before it is started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use memchr::memmem;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{FileKind, ReadCache};
use object::{Architecture, Endianness, Object};

use miette::Diagnostic;

/// Facts found in the file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traits {
    pub instrumented: bool,
    pub persistent: bool,
    pub deferred: bool,
    /// Persistent loop of `ffuzz-cc`: started by hand, it first runs the inputs that a variable names.
    pub replays: bool,
    /// Built by `ffuzz-cc`, of any version.
    pub takes_channel: bool,
    /// Harness with AFL++'s driver: started by hand, it runs the files on its command line.
    pub runs_files: bool,
    /// Harness with the driver of `ffuzz-cc`.
    pub is_harness: bool,
    /// Persistent loop of AFL++ 4.20 or newer, which needs the fork server's handshake to continue.
    pub greets: bool,
    /// Linked with a sanitizer runtime.
    pub sanitizer: bool,
    /// Linked with ThreadSanitizer, which runs a thread of its own in each process.
    pub thread_sanitizer: bool,
    /// Kind of a program that is not instrumented; the remedy depends on it.
    pub kin: Kin,
}

/// Programs for which rebuilding with `ffuzz-cc` is not the remedy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Kin {
    #[default]
    Plain,
    /// Harness with the driver of libFuzzer or a compatible one.
    LibFuzzer,
    /// The Python interpreter.
    Python,
    Go,
}

/// Reason why a file is no program to run.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ProgramError {
    #[error("cannot find the target {program:?}")]
    #[diagnostic(help("give its path, for example ./target"))]
    NotFound { program: PathBuf },
    #[error("cannot read the target {path:?}: {source}")]
    #[diagnostic(help("check the file and its permissions"))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the target {path:?} is not an executable file")]
    #[diagnostic(help("chmod +x {}", path.display()))]
    NotExecutable { path: PathBuf },
    #[error("the target {path:?} is a script, not a program")]
    #[diagnostic(help(
        "name the program that the script starts; without -Q, AFL_SKIP_BIN_CHECK=1 runs the \
         script anyway"
    ))]
    Script { path: PathBuf },
    #[error("the target {path:?} is {what}, not a program")]
    #[diagnostic(help("name a Linux program; AFL_SKIP_BIN_CHECK=1 tries it anyway"))]
    NotProgram { path: PathBuf, what: &'static str },
    #[error("the target {path:?} is built for {found}, this machine runs {host}")]
    #[diagnostic(help("build the target for this machine"))]
    Architecture { path: PathBuf, found: String, host: &'static str },
}

fn kin(path: &Path, content: &[u8]) -> Kin {
    let name = path.file_name().unwrap_or_default().as_bytes();
    if name.starts_with(b"python") || contains(content, b"Py_BytesMain\0") {
        Kin::Python
    } else if contains(content, b"\xff Go buildinf:") {
        Kin::Go
    } else if contains(content, b"LLVMFuzzerTestOneInput\0") {
        Kin::LibFuzzer
    } else {
        Kin::Plain
    }
}

/// Finds the program like a shell: a name without a slash is searched in `search_path`.
pub fn locate(program: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let path = PathBuf::from(program);
    let found = if program.as_bytes().contains(&b'/') {
        path.exists().then_some(path)
    } else {
        search_path
            .into_iter()
            .flat_map(std::env::split_paths)
            .map(|dir| dir.join(&path))
            .find(|path| path.is_file())
    };
    found
        .and_then(|path| std::path::absolute(path).ok())
        .ok_or_else(|| ProgramError::NotFound { program: program.into() })
}

/// Reads the file and collects its markers; fails if it is no program for this machine (any machine if
/// `is_emulated`).
pub fn inspect(path: &Path, is_emulated: bool) -> Result<Traits, ProgramError> {
    let unreadable = |source| ProgramError::Unreadable { path: path.into(), source };
    let data = fs::metadata(path).map_err(unreadable)?;
    if !data.is_file() {
        let what = if data.is_dir() { "a folder" } else { "no regular file" };
        return Err(ProgramError::NotProgram { path: path.into(), what });
    }
    if data.permissions().mode() & 0o111 == 0 {
        return Err(ProgramError::NotExecutable { path: path.into() });
    }
    let content = fs::read(path).map_err(unreadable)?;
    if content.starts_with(b"#!") {
        return Err(ProgramError::Script { path: path.into() });
    }
    check_machine(path, &content, is_emulated)?;
    let instrumented = contains(&content, b"__AFL_SHM_ID\0");
    Ok(Traits {
        instrumented,
        kin: if instrumented { Kin::Plain } else { kin(path, &content) },
        persistent: contains(&content, b"##SIG_AFL_PERSISTENT##\0"),
        replays: contains(&content, b"FFUZZ_REPLAY\0"),
        takes_channel: takes_channel(&content),
        runs_files: contains(&content, DRIVER),
        is_harness: contains(&content, OWN_DRIVER),
        greets: contains(&content, b"wrong forkserver message from AFL++ tool"),
        deferred: contains(&content, b"##SIG_AFL_DEFER_FORKSRV##\0"),
        sanitizer: [b"__asan_init".as_slice(), b"__msan_init", b"__lsan_init"]
            .iter()
            .any(|name| contains(&content, name)),
        thread_sanitizer: contains(&content, b"__tsan_init"),
    })
}

/// Markers of the `main` that `-fsanitize=fuzzer` links: AFL++'s driver and ours.
const DRIVER: &[u8] = b"AFL_DRIVER_CLOSE_FD_MASK\0";
const OWN_DRIVER: &[u8] = b"##FFUZZ_HARNESS##\0";

/// Returns true if a program has a libFuzzer harness and a `main` of its own, which may not call the harness.
#[must_use]
pub fn has_harness_beside_main(program: &OsStr, search_path: Option<&OsStr>) -> bool {
    let content = locate(program, search_path).ok().and_then(|path| fs::read(path).ok());
    let content = content.unwrap_or_default();
    let has_driver = [DRIVER, OWN_DRIVER].iter().any(|marker| contains(&content, marker));
    contains(&content, b"LLVMFuzzerTestOneInput\0") && !has_driver
}

/// Returns true if a program has the `main` of `runtime/driver`, which accepts libFuzzer's command lines.
#[must_use]
pub fn has_driver(program: &Path) -> bool {
    fs::read(program).is_ok_and(|content| contains(&content, OWN_DRIVER))
}

/// Returns true if any version of `ffuzz-cc` built the program: its runtime looks for a channel.
pub fn takes_channel(program: &[u8]) -> bool {
    contains(program, b"FFUZZ_CHANNEL\0")
}

/// Returns true if `ffuzz-cc` linked the library, which needs the maps of the program's runtime
/// (`runtime/stub.c`).
pub fn needs_runtime(library: &[u8]) -> bool {
    contains(library, b"__ffuzz_guard_init\0")
}

/// Returns true if a program is for this machine's processor and word size.
pub fn runs_here(path: &Path) -> bool {
    processor(path).is_ok_and(|name| name.is_ok_and(|name| name == std::env::consts::ARCH))
}

/// Returns true if a program is for another processor.
#[must_use]
pub fn runs_elsewhere(path: &Path) -> bool {
    matches!(inspect(path, false), Err(ProgramError::Architecture { .. }))
}

/// Names of the option variables of the sanitizers linked into a program; None if the file is no program for
/// this machine (a script, for example).
#[must_use]
pub fn sanitizer_variables(path: &Path) -> Option<Vec<&'static str>> {
    const RUNTIMES: [(&str, &[u8]); 5] = [
        ("ASAN_OPTIONS", b"__asan_init"),
        ("UBSAN_OPTIONS", b"__ubsan_handle"),
        ("MSAN_OPTIONS", b"__msan_init"),
        ("LSAN_OPTIONS", b"__lsan_init"),
        ("TSAN_OPTIONS", b"__tsan_init"),
    ];
    let content = fs::read(path).ok()?;
    check_machine(path, &content, false).ok()?;
    let linked = RUNTIMES.iter().filter(|(_, name)| contains(&content, name));
    Some(linked.map(|(variable, _)| *variable).collect())
}

/// QEMU's name of the processor that a program is for; the inner error describes an unsupported processor, the
/// outer one says why the file is no program.
pub fn processor(path: &Path) -> Result<Result<&'static str, String>, String> {
    let content = fs::read(path).map_err(|error| error.to_string())?;
    let file = object::File::parse(&*content).map_err(|error| error.to_string())?;
    let is_little = file.is_little_endian();
    let of_order = |little, big| if is_little { little } else { big };
    Ok(Ok(match (file.architecture(), file.is_64()) {
        (Architecture::X86_64, _) => "x86_64",
        (Architecture::I386, _) => "i386",
        (Architecture::Aarch64, _) => of_order("aarch64", "aarch64_be"),
        (Architecture::Arm, _) => of_order("arm", "armeb"),
        (Architecture::Mips | Architecture::Mips64, true) => of_order("mips64el", "mips64"),
        (Architecture::Mips, false) => of_order("mipsel", "mips"),
        (Architecture::PowerPc64, _) => of_order("ppc64le", "ppc64"),
        (Architecture::PowerPc, _) => "ppc",
        (Architecture::Riscv64, _) => "riscv64",
        (Architecture::Riscv32, _) => "riscv32",
        (Architecture::S390x, _) => "s390x",
        (Architecture::LoongArch64, _) => "loongarch64",
        (other, _) => return Ok(Err(format!("{other:?}"))),
    }))
}

/// Path of the program's dynamic loader.
#[must_use]
pub fn loader(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(fs::File::open(path).ok()?);
    let name = match FileKind::parse(&cache).ok()? {
        FileKind::Elf32 => interpreter::<FileHeader32<Endianness>>(&cache),
        FileKind::Elf64 => interpreter::<FileHeader64<Endianness>>(&cache),
        _ => None,
    };
    Some(OsStr::from_bytes(name?).into())
}

/// Name of the loader's C library, if our libraries are not built for it.
pub fn other_libc(loader: &Path) -> Option<&'static str> {
    let name = loader.file_name().unwrap_or_default().as_bytes();
    let known: [(&[u8], &str); 2] = [(b"ld-musl-", "musl"), (b"linker", "bionic")];
    known.iter().find(|(start, _)| name.starts_with(start)).map(|(_, libc)| *libc)
}

/// The content of the segment `PT_INTERP`.
fn interpreter<E: FileHeader>(file: &ReadCache<fs::File>) -> Option<&[u8]> {
    let header = E::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    segments.iter().find_map(|segment| segment.interpreter(endian, file).ok()?)
}

const ELF_MAGIC: &[u8] = b"\x7fELF";

#[cfg(target_arch = "x86_64")]
const HOST: (u16, u8, &str) = (62, 2, "x86-64");
#[cfg(target_arch = "aarch64")]
const HOST: (u16, u8, &str) = (183, 2, "aarch64");

fn check_machine(path: &Path, content: &[u8], is_any: bool) -> Result<(), ProgramError> {
    let not_program = |what| Err(ProgramError::NotProgram { path: path.into(), what });
    if !content.starts_with(ELF_MAGIC) || content.len() < 32 {
        return not_program("not an ELF file");
    }
    let (class, little_endian) = (content[4], content[5] == 1);
    let number = |at: usize| {
        let bytes = [content[at], content[at + 1]];
        if little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    };
    let (kind, machine) = (number(16), number(18));
    // 32-bit x86 programs run on 64-bit kernels, and their runtimes use the same protocol.
    let runs_here =
        (machine, class) == (HOST.0, HOST.1) || (HOST.0 == 62 && (machine, class) == (3, 1));
    if !is_any && (!runs_here || !little_endian) {
        let bits = if class == 1 { "32" } else { "64" };
        let found = format!("{} ({bits} bits)", machine_name(machine));
        return Err(ProgramError::Architecture { path: path.into(), found, host: HOST.2 });
    }
    let entry = if class == 1 { &content[24..28] } else { &content[24..32] };
    match kind {
        1 => not_program("an object file"),
        3 if entry.iter().all(|byte| *byte == 0) => not_program("a shared library"),
        4 => not_program("a core dump"),
        _ => Ok(()),
    }
}

fn machine_name(machine: u16) -> String {
    let names =
        [(3, "x86"), (8, "MIPS"), (20, "PowerPC"), (40, "ARM"), (62, "x86-64"), (183, "aarch64")];
    let known = names.iter().find(|(number, _)| *number == machine);
    known.map_or_else(|| format!("ELF machine {machine}"), |(_, name)| (*name).to_owned())
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memmem::find(haystack, needle).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_anywhere() {
        assert!(contains(b"xx__AFL_SHM_ID\0yy", b"__AFL_SHM_ID\0"));
        assert!(contains(b"___AFL_SHM_ID\0", b"__AFL_SHM_ID\0"));
        assert!(!contains(b"__AFL_SHM_IDX\0", b"__AFL_SHM_ID\0"));
    }

    #[test]
    fn the_loader_is_what_the_segment_says() {
        let own = std::env::current_exe().unwrap();
        assert!(loader(&own).is_none_or(|loader| loader.exists()), "a static test has none");
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text");
        fs::write(&text, "\x7fELF /lib64/ld-linux-x86-64.so.2\0").unwrap();
        assert_eq!(loader(&text), None);
        assert_eq!(loader(&dir.path().join("missing")), None);
    }

    #[test]
    fn wrong_files_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8], mode| {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            inspect(&path, false).unwrap_err()
        };
        assert!(matches!(file("a", b"", 0o644), ProgramError::NotExecutable { .. }));
        assert!(matches!(file("b", b"#!/bin/sh\n", 0o755), ProgramError::Script { .. }));
        assert!(matches!(file("c", b"MZ", 0o755), ProgramError::NotProgram { .. }));
        let elf = |class: u8, order: u8, kind: u8, machine: [u8; 2]| {
            let mut bytes = vec![0; 64];
            bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, order]);
            bytes[16] = kind;
            bytes[18..20].copy_from_slice(&machine);
            bytes
        };
        let refusal = |name: &str, content: Vec<u8>| file(name, &content, 0o755).to_string();
        let (machine, class, host) = HOST;
        let here = machine.to_le_bytes();
        assert!(refusal("d", elf(2, 1, 2, [8, 0])).contains("is built for MIPS (64 bits)"));
        assert!(refusal("e", elf(2, 2, 2, [0, 20])).contains("is built for PowerPC (64 bits)"));
        assert!(refusal("f", elf(1, 1, 2, here)).contains(&format!("built for {host} (32 bits)")));
        for (kind, what) in [(1, "an object file"), (3, "a shared library"), (4, "a core dump")] {
            assert!(refusal("g", elf(class, 1, kind, here)).contains(what));
        }
        let folder = inspect(dir.path(), false).unwrap_err().to_string();
        assert!(folder.contains("is a folder, not a program"), "{folder}");
        let missing = locate(OsStr::new("./no-such-program"), None);
        assert!(matches!(missing, Err(ProgramError::NotFound { .. })));
    }
}
