//! `-S`: reads inputs from stdin and writes edges to stdout, in the protocol of `afl-showmap -S` (AFL++ 4.40c).
//!
//! Numbers have the machine's byte order. An input is its length (`u32`; 0 ends the stream) and its bytes. The answer
//! is a status (`u16`: bits 0 and 1 are 0 for a normal end, 1 for a timeout, 2 for a crash; bits 8 to 15 are the
//! signal), the number of edges (`u32`), an index (`u32`) and a value (`u8`) for each edge, and two empty texts (`u32`
//! 0) for the target's output. The code of an exit that is no crash is given as 0.

use std::io::{self, BufWriter, ErrorKind, Read, Write};

use super::args::Args;
use super::view::MapView;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, print_messages, say};
use crate::config::env::Environment;
use crate::engine::executor::{ExitKind, Observation};
use crate::mutate::MAX_INPUT;
use crate::sys::stdio;

pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let scratch = Scratch::new("showmap", None);
    let mut target = super::start(args, environment, &scratch)?;
    let broken = |error: io::Error| {
        Failure::new(
            format!("the stream ends: {error}"),
            "check the program that reads and writes it",
        )
    };
    let mut inputs = stdio::input().map_err(broken)?;
    let mut answers = BufWriter::new(io::stdout().lock());
    let mut input = Vec::new();
    while next(&mut inputs, &mut input).map_err(broken)? {
        let run = target.observe(&input).map_err(tool::failure)?;
        match answer(&run, MapView::of(args), &mut answers).and_then(|()| answers.flush()) {
            // A closed pipe is not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            result => result.map_err(broken)?,
        }
    }
    say(args.quiet, "[+] End of the stream.");
    print_messages(&mut target, args.quiet);
    Ok(0)
}

/// Reads the next input. Returns false at the end.
fn next(from: &mut impl Read, input: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        result => result?,
    }
    let length = u32::from_ne_bytes(length);
    if length as usize > MAX_INPUT {
        let text = format!("an input of {length} bytes is too large, {MAX_INPUT} is the most");
        return Err(io::Error::new(ErrorKind::InvalidData, text));
    }
    input.resize(length as usize, 0);
    from.read_exact(input)?;
    Ok(length > 0)
}

fn answer(run: &Observation<'_>, view: MapView, to: &mut impl Write) -> io::Result<()> {
    let status: u16 = match run.exit {
        ExitKind::Ok => 0,
        ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => 1,
        ExitKind::Crash { signal } => 2 | u16::try_from(signal).unwrap_or(0) << 8,
        ExitKind::Oom => 2 | (libc::SIGKILL as u16) << 8,
    };
    let hit = || (0u32..).zip(run.edges).filter(|(_, count)| **count != 0);
    let count = u32::try_from(hit().count()).unwrap_or(u32::MAX);
    to.write_all(&status.to_ne_bytes())?;
    to.write_all(&count.to_ne_bytes())?;
    for (index, count) in hit() {
        to.write_all(&index.to_ne_bytes())?;
        to.write_all(&[view.values.of(*count)])?;
    }
    to.write_all(&[0; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_with_an_empty_input_or_its_end() {
        let mut bytes = &b"\x02\0\0\0ab\x01\0\0\0c\0\0\0\0"[..];
        let mut input = Vec::new();
        assert!(next(&mut bytes, &mut input).unwrap() && input == b"ab");
        assert!(next(&mut bytes, &mut input).unwrap() && input == b"c");
        assert!(!next(&mut bytes, &mut input).unwrap());
        assert!(!next(&mut bytes, &mut input).unwrap());
        next(&mut &b"\x02\0\0\0a"[..], &mut input).unwrap_err();
        next(&mut &b"\0\0\0\xff"[..], &mut input).unwrap_err();
    }
}
