//! Finds libraries that a program loads only at run time, and a program that it executes in the
//! same process. Their code is not covered, because blocks are found before the program starts.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::launcher::Setup;
use super::{Fresh, FreshOptions, TargetError};
use ffuzz_config::options::TargetOptions;
use ffuzz_engine::executor::UnseenCode;
use ffuzz_inspect::choice::{Choice, is_runtime};
use ffuzz_mutators::Mutators;

/// Variable that makes the loader report its file operations on standard error (ld.so(8)).
const REPORT: (&str, &str) = ("LD_DEBUG", "files");
/// Messages of the loader: when the program itself begins, and for each library after its
/// constructors.
const BEGIN: &[u8] = b"transferring control: ";
const LOADED: &[u8] = b"calling init: ";
/// Name prefixes of libraries that the C library loads for itself.
const OF_LIBC: [&str; 2] = ["libnss_", "libresolv"];
/// Folder of the C library's character set converters.
const CONVERTERS: &str = "/gconv/";

/// Runs the program of `options` once, without instrumentation. `file` is the input file.
pub(super) fn find(
    options: &TargetOptions,
    input: &[u8],
    file: &Path,
    limit: Duration,
) -> Result<UnseenCode, TargetError> {
    let program = options.command.first().cloned().unwrap_or_default();
    let plain = TargetOptions { skip_binary_check: true, ..options.for_other_build(program) };
    let mut target =
        Fresh::new(Setup::new(&plain, file, None)?, Mutators::default(), false, false)?;
    let env = [(REPORT.0.into(), REPORT.1.into())];
    let ended = target.run(input, FreshOptions { env: &env, ..FreshOptions::within(limit) })?;
    let choice = options.native.as_ref().and_then(|native| native.modules.as_deref());
    let choice = choice.map_or(Choice::Own, Choice::parse);
    let mut late = parse(&ended.stderr);
    late.libraries
        .retain(|path| choice.takes(&path.file_name().unwrap_or_default().to_string_lossy()));
    Ok(late)
}

/// Parses lines of the form `PID:<tab>MESSAGE` with leading blanks. Other PIDs are children. The
/// target can forge such lines, so names are made safe for a terminal.
fn parse(report: &[u8]) -> UnseenCode {
    let messages = report.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii_start();
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_number = colon > 0 && line[..colon].iter().all(u8::is_ascii_digit);
        is_number.then(|| (&line[..colon], line[colon + 1..].trim_ascii()))
    });
    let (mut libraries, mut program) = (Vec::new(), None);
    let (mut first, mut has_begun) = (None, false);
    for (pid, message) in messages {
        if *first.get_or_insert(pid) != pid {
            continue;
        }
        if let Some(name) = message.strip_prefix(BEGIN) {
            libraries.clear();
            let name = String::from_utf8_lossy(name).escape_debug().to_string();
            program = has_begun.then(|| name.into());
            has_begun = true;
        } else if let Some(path) = message.strip_prefix(LOADED).filter(|_| has_begun) {
            let path = PathBuf::from(OsStr::from_bytes(path));
            libraries.push(fs::canonicalize(&path).unwrap_or(path));
        }
    }
    libraries.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_of_libc = OF_LIBC.iter().any(|start| name.starts_with(start))
            || path.to_string_lossy().contains(CONVERTERS);
        let is_plain = !path.to_string_lossy().contains(char::is_control);
        is_plain && !is_of_libc && !is_runtime(&name)
    });
    UnseenCode { libraries, program }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_reports_after_the_start_is_late() {
        let report = b"words of the program\n  12:\tcalling init: /lib/libearly.so\n\
            12:\tinitialize program: ./t\n     12:\ttransferring control: ./t\n\
            12:\tfile=./libp.so [0];  dynamically loaded by ./t [0]\n    12:\tcalling init: /x/libq.so.1\n\
            13:\tcalling init: /x/of-a-child.so\n    12:\tcalling init: /x/libp.so\n\
            12:\tcalling init: /usr/lib/gconv/UTF-16.so\n 12:\tcalling init: /lib/libm.so.6\n";
        let names = ["/x/libq.so.1", "/x/libp.so"].map(PathBuf::from);
        let seen = UnseenCode { libraries: names.into(), program: None };
        assert_eq!(parse(report), seen);
        let early = parse(b"12: calling init: /x/a.so\nx: calling init: y");
        assert_eq!(early, UnseenCode::default());
    }

    #[test]
    fn a_program_that_takes_over_the_process_is_named() {
        let report = b"1:\ttransferring control: ./t\n1:\tcalling init: /x/a.so\n2:\ttransferring control: sh\n\
            1:\tcalling init: /x/b.so\n1:\ttransferring control: /x/u\n1:\tcalling init: /x/c.so\n";
        let libraries = vec!["/x/c.so".into()];
        assert_eq!(parse(report), UnseenCode { libraries, program: Some("/x/u".into()) });
        let forged = b"1:\ttransferring control: ./t\n1:\ttransferring control: \x1b[2J\n1:\tcalling init: /\x1b[2J\n";
        assert_eq!(
            parse(forged),
            UnseenCode { libraries: vec![], program: Some("\\u{1b}[2J".into()) }
        );
    }
}
