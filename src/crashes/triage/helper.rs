//! Helper programs for a crash, symbolizers and debuggers: each has a time limit.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use ffuzz_sys::listen::Listener;
use ffuzz_sys::process::{Launch, launch};

/// Number of bytes kept from the beginning and from the end of an answer.
const PART: usize = 1 << 20;

/// Output of a program; None on timeout.
pub(super) fn ask(argv: &[OsString], patience: Duration) -> io::Result<Option<String>> {
    let mut listener = Listener::new(PART)?;
    let mut process = launch(Launch {
        argv,
        env: &[],
        stdin: Stdio::null(),
        output: listener.output(),
        fds: &[],
        memory_limit: None,
        core_limit: 0,
        guarded: false,
        traced: false,
        strays: None,
        fixed_addresses: false,
    })?;
    let ended = listener.wait(&mut process, patience);
    let [stdout, _] = listener.into_output();
    Ok(ended.map(|_| String::from_utf8_lossy(&stdout).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_waited_for_so_long_and_no_longer() {
        let ask = |script: &str, ms| {
            ask(&["/bin/sh", "-c", script].map(Into::into), Duration::from_millis(ms))
        };
        assert_eq!(ask("echo yes; echo no >&2", 60_000).unwrap().as_deref(), Some("yes\n"));
        assert_eq!(ask("echo yes; sleep 1000", 100).unwrap(), None);
        assert!(super::ask(&["/proc/none".into()], Duration::ZERO).is_err());
    }
}
