//! The fuzzers that ffuzz is measured against: where they are, and that nothing of them is missing.
//! `benches/peers.sh` obtains and builds AFL++ 4.40c, the others are Debian packages.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that `benches/peers.sh` builds.
const NEW_AFL: &str = "4.40c";
const CLANG: &str = "clang-19";

/// Without its passes AFL++'s compiler falls back to something slower.
const AFL_PARTS: [&str; 5] = [
    "SanitizerCoveragePCGUARD.so",
    "cmplog-instructions-pass.so",
    "cmplog-routines-pass.so",
    "cmplog-switches-pass.so",
    "libAFLDriver.a",
];

const INSTALL_AFL: &str = "run: apt-get install --reinstall afl++";
const INSTALL_CLANG: &str = "run: apt-get install clang-19 libclang-rt-19-dev";

/// A reason not to measure, and what to do about it.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) cause: String,
    pub(super) remedy: &'static str,
}

pub(super) struct Afl {
    /// As in the table: `AFL++ 4.40c`.
    pub(super) name: String,
    pub(super) fuzzer: PathBuf,
    pub(super) compiler: PathBuf,
}

pub(super) struct Peers {
    pub(super) new: Afl,
    pub(super) debian: Afl,
    /// What builds libFuzzer targets and the neutral ones.
    pub(super) clang: &'static str,
}

impl Peers {
    pub(super) fn find() -> Result<Self, Missing> {
        // Cargo names a folder inside of it.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench-peers");
        let new = Afl::built(&target.join(format!("aflplusplus-{NEW_AFL}")))?;
        let debian = Afl::installed()?;
        check_libfuzzer()?;
        Ok(Self { new, debian, clang: CLANG })
    }
}

impl Afl {
    /// By `benches/peers.sh`, in this folder.
    pub(super) fn built(folder: &Path) -> Result<Self, Missing> {
        let missing = |cause| Missing { cause, remedy: "run benches/peers.sh" };
        let (fuzzer, compiler) = (folder.join("afl-fuzz"), folder.join("afl-clang-fast"));
        let found = Self::find(fuzzer, compiler, folder).map_err(missing)?;
        if found.name.ends_with(NEW_AFL) {
            return Ok(found);
        }
        Err(missing(format!("{} holds {}, not {NEW_AFL}", folder.display(), found.name)))
    }

    /// As a Debian package.
    fn installed() -> Result<Self, Missing> {
        let missing = |cause| Missing { cause, remedy: INSTALL_AFL };
        let fuzzer = in_path("afl-fuzz").map_err(missing)?;
        let compiler = in_path("afl-clang-fast").map_err(missing)?;
        let parts = fuzzer.with_file_name("../lib/afl");
        Self::find(fuzzer, compiler, &parts).map_err(missing)
    }

    fn find(fuzzer: PathBuf, compiler: PathBuf, parts: &Path) -> Result<Self, String> {
        let parts = AFL_PARTS.map(|part| parts.join(part));
        let absent = [&fuzzer, &compiler].into_iter().chain(&parts).find(|path| !path.exists());
        if let Some(path) = absent {
            return Err(format!("AFL++ is not complete: no {}", path.display()));
        }
        Ok(Self { name: format!("AFL++ {}", version_of(&fuzzer)?), fuzzer, compiler })
    }
}

/// `4.40c`; older ones take the option for a mistake, and say their name all the same.
fn version_of(fuzzer: &Path) -> Result<String, String> {
    let output = Command::new(fuzzer).arg("--version").output();
    let output = output.map_err(|error| format!("{}: {error}", fuzzer.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, rest) = text
        .split_once("afl-fuzz++")
        .ok_or_else(|| format!("{} does not say its version", fuzzer.display()))?;
    Ok(rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '.').collect())
}

fn check_libfuzzer() -> Result<(), Missing> {
    let missing = |cause| Missing { cause, remedy: INSTALL_CLANG };
    let mut command = Command::new(CLANG);
    command.args(["-fsanitize=fuzzer", "-###", "-x", "c", "/dev/null"]);
    let output = command.output().map_err(|error| missing(format!("{CLANG}: {error}")))?;
    // The linker's command names the library's file, whatever this processor is called.
    let text = String::from_utf8_lossy(&output.stderr);
    let named = text.split('"').find(|word| word.contains("/libclang_rt.fuzzer"));
    match named {
        Some(library) if Path::new(library).is_file() => Ok(()),
        _ => Err(missing(format!("{CLANG} has no libFuzzer"))),
    }
}

fn in_path(program: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program));
    let mut found = found.filter(|file| file.is_file());
    found.next().ok_or_else(|| format!("{program} is not installed"))
}
