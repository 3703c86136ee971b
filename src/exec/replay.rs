//! Inputs that a process without a fork server runs before its own: a crash may depend on inputs that the
//! crashing process ran earlier.
//!
//! There are three ways. The runtime of `ffuzz-cc` reads files (`runtime/replay.c`); the driver of AFL++ takes
//! files on the command line; AFL's loop stops for each input, and in AFL++ 4.20 and later requires a fork
//! server, for which the orders are prepared.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::delivery::InputDelivery;
use ffuzz_engine::corpus::names;
use ffuzz_inspect::binary::Traits;
use ffuzz_sys::{memory, process};

/// Variables with the common prefix of the files' names and, unless it is standard input, with the file that the
/// program reads (`runtime/replay.c`).
pub const REPLAY: &str = "FFUZZ_REPLAY";
pub const REPLAY_FILE: &str = "FFUZZ_REPLAY_FILE";
/// Variable that makes AFL's loop stop its process after each input.
pub(super) const PERSISTENT: &str = "__AFL_PERSISTENT";
/// Maximum number of files that are searched.
const MOST: usize = 1 << 16;

/// How a program takes several inputs in one process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Replay {
    /// The runtime of `ffuzz-cc` reads them from files that a variable names.
    Runtime,
    /// The driver of AFL++ runs the files on its command line, one after the other.
    Words,
    /// The loop of AFL stops the process after each input, and whoever traces it delivers the next one. Since
    /// AFL++ 4.20 it does so only below a fork server.
    Stops,
}

impl Replay {
    pub(super) fn of(traits: &Traits) -> Self {
        match traits {
            Traits { replays: true, .. } => Self::Runtime,
            Traits { runs_files: true, .. } => Self::Words,
            _ => Self::Stops,
        }
    }
}

/// Files whose names begin with `start`. The last one is the crash itself, or empty.
#[must_use]
pub fn files(start: &Path) -> Vec<PathBuf> {
    let named = |number| {
        let mut name = start.as_os_str().to_owned();
        name.push(names::record_end(number));
        PathBuf::from(name)
    };
    (0..MOST).map(named).take_while(|file| file.exists()).collect()
}

/// All files but the last, which is the crash.
fn inputs_before(start: &Path) -> Vec<PathBuf> {
    let mut files = files(start);
    files.pop();
    files
}

/// Variables for [`Replay::Runtime`]; `file` is the input file, empty for standard input.
pub(super) fn variables(start: &Path, file: &Path) -> Vec<(OsString, Option<OsString>)> {
    let set = |name: &str, path: &Path| (name.into(), Some(path.as_os_str().to_owned()));
    let mut env = vec![set(REPLAY, start)];
    env.extend((!file.as_os_str().is_empty()).then(|| set(REPLAY_FILE, file)));
    env
}

/// The command line for [`Replay::Words`].
pub(super) fn words(start: &Path, argv: &[OsString], file: &Path) -> Vec<OsString> {
    let own = argv.iter().rposition(|word| word.as_os_str() == file.as_os_str());
    let (first, last) = argv.split_at(own.unwrap_or(argv.len()));
    let before = inputs_before(start).into_iter().map(PathBuf::into_os_string);
    first.iter().cloned().chain(before).chain(last.iter().cloned()).collect()
}

/// All that a fork server of AFL++ 4.20 or newer reads before it starts a process: the answer to its hello, and
/// one order. Neither depends on its output, so both are prepared in advance.
pub(super) fn orders() -> io::Result<File> {
    const ANSWER: u32 = !0x4146_4c01;
    const RUN: u32 = 0;
    let words = [ANSWER, RUN].map(u32::to_ne_bytes).concat();
    let orders = File::from(memory::memfd(c"orders", words.len())?);
    orders.write_all_at(&words, 0)?;
    Ok(orders)
}

/// Queued inputs of a process that stops after each one.
#[derive(Debug)]
pub(super) struct Line {
    inputs: std::vec::IntoIter<Vec<u8>>,
    /// True if the process was killed after its last input.
    pub(super) is_over: bool,
}

impl Line {
    /// Delivers the first input immediately.
    pub(super) fn begin(
        start: &Path,
        own: &[u8],
        delivery: &mut InputDelivery,
    ) -> Result<Self, super::TargetError> {
        let read = |path: &PathBuf| fs::read(path).unwrap_or_default();
        let mut inputs: Vec<Vec<u8>> = inputs_before(start).iter().map(read).collect();
        inputs.push(own.to_vec());
        let mut inputs = inputs.into_iter();
        delivery.deliver(&inputs.next().unwrap_or_default())?;
        Ok(Self { inputs, is_over: false })
    }

    /// Delivers the next input; call it when the process has stopped.
    pub(super) fn next(&mut self, delivery: &mut InputDelivery, pid: i32) {
        let next = self.inputs.next();
        if next.is_none_or(|input| delivery.deliver(&input).is_err()) {
            self.is_over = true;
            process::send(pid, libc::SIGKILL);
        }
    }
}
