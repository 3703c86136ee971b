//! The handshake between a fuzzer and a fork server, in all versions.
//!
//! AFL 2.5x sends 0. AFL++ up to 4.10 sends a word of option bits, AFL++ from 4.20 starts a versioned
//! exchange. FuzzFactory sends the number of its domains.

use std::time::{Duration, Instant};

use super::TargetError;
use crate::maps::{CLASSIC_MAP, LEGACY_KEYS};
use ffuzz_engine::domain::{self, Domain, Reducer};
use ffuzz_sys::stop::Leave;
use ffuzz_sys::wire::{NoWord, WordReader, WordWriter};

/// What the target reported in its hello.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct ForkServerHello {
    /// Size of the edge map in bytes, if reported.
    pub(super) map_size: Option<usize>,
    /// True if the target reads test cases from shared memory.
    pub(super) shared_input: bool,
    pub(super) dictionary: Vec<Vec<u8>>,
    /// Domains of a FuzzFactory target.
    pub(super) domains: Vec<Domain>,
    pub(super) runtime: Runtime,
}

/// Runtimes, as far as their comparison logs differ in layout.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Runtime {
    /// No runtime, or an unrecognised one.
    #[default]
    Other,
    /// AFL++ up to 4.10.
    Old,
    /// AFL++ from 4.20 on.
    Versioned,
}

impl ForkServerHello {
    /// Size of the edge map in bytes: the reported size, or else `asked` by the user, or else AFL's
    /// classic size.
    pub(super) fn edges(&self, asked: Option<usize>) -> usize {
        self.map_size.unwrap_or_else(|| asked.unwrap_or(CLASSIC_MAP))
    }
}

/// Both directions of the protocol.
pub(super) struct Wires<'a> {
    pub(super) status: &'a mut WordReader,
    pub(super) control: &'a mut WordWriter,
    pub(super) timeout: Duration,
    /// Conditions that end the wait before the timeout.
    pub(super) leave: Leave,
}

/// Reason for a missing hello.
#[derive(Debug)]
pub(super) enum NoHello {
    Ended,
    Error(TargetError),
}

impl From<TargetError> for NoHello {
    fn from(error: TargetError) -> Self {
        Self::Error(error)
    }
}

impl Wires<'_> {
    fn word(&mut self) -> Result<u32, NoHello> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoHello> {
        let begin = Instant::now();
        self.status.fill(bytes, self.timeout, &mut self.leave).map_err(|error| match error {
            NoWord::Closed => NoHello::Ended,
            NoWord::Timeout => {
                let milliseconds = begin.elapsed().min(self.timeout).as_millis();
                TargetError::NoHello { milliseconds }.into()
            }
            NoWord::Failed(error) => protocol(error.to_string()).into(),
        })
    }

    fn send(&mut self, word: u32) -> Result<(), NoHello> {
        self.control.write(word).map_err(|_| NoHello::Ended)
    }
}

fn protocol(what: impl Into<String>) -> TargetError {
    TargetError::Protocol { what: what.into() }
}

const V1_ERROR: u32 = 0xeffe_0000;
const V1: u32 = 0x4146_4c01;
const OLD_ERROR: u32 = 0xf800_008f;
const OLD_OPTIONS: u32 = 0x8000_0001;
const OLD_MAP_SIZE: u32 = 0x4000_0000;
const OLD_DICTIONARY: u32 = 0x1000_0000;
const OLD_SHARED: u32 = 0x0100_0000;
const OLD_LOG: u32 = 0x0200_0000;
const OLD_UNUSED: u32 = 0x0f00_0000;
const V1_MAP_SIZE: u32 = 1;
const V1_SHARED: u32 = 2;
const V1_DICTIONARY: u32 = 0x800;
const KILLERBEEZ: u32 = 0x4141_4141;

/// Reads the hello and answers it in the same version.
pub(super) fn greet(wires: &mut Wires<'_>) -> Result<ForkServerHello, NoHello> {
    let word = wires.word()?;
    match word {
        _ if word & 0xffff_0000 == V1_ERROR => Err(reported(word & 0xffff).into()),
        _ if word & 0xffff_ff00 == V1 & 0xffff_ff00 => greet_v1(wires, word),
        _ if word & OLD_ERROR == OLD_ERROR => Err(reported(word >> 8 & 0xffff).into()),
        _ if word & OLD_OPTIONS == OLD_OPTIONS => greet_old(wires, word),
        1..=4 => greet_domains(wires, word),
        KILLERBEEZ => Err(TargetError::Killerbeez.into()),
        _ => Ok(ForkServerHello::default()),
    }
}

/// Error codes of AFL's runtimes, and from 512 on those of this project, with meaning and remedy.
const REPORTS: &[(u32, &str, &str)] = &[
    (
        1,
        "the map offered is too small for its edges",
        "set AFL_MAP_SIZE to the number that AFL_DUMP_MAP_SIZE=1 ./target prints",
    ),
    (
        2,
        "the fixed address of its map is taken",
        "rebuild it without AFL_LLVM_MAP_ADDR, or with AFL_LLVM_MAP_DYNAMIC=1",
    ),
    (
        4,
        "it cannot open a shared memory object",
        "rebuild it with ffuzz-cc: its runtime needs another kind of shared memory",
    ),
    (
        8,
        "it cannot attach the shared memory segment",
        "a larger -m, or -m none; a target in a container of its own cannot attach it",
    ),
    (16, "it cannot map shared memory", "a larger -m, or -m none"),
    (32, "its comparison log has another layout", "rebuild it with ffuzz-cc"),
    (64, "its comparison log for QEMU has another layout", "rebuild it with ffuzz-cc"),
    (
        512,
        "there is no memory for the maps of its domains",
        "use smaller domain maps, or allow it more memory (-m)",
    ),
    (
        513,
        "its code cannot be made writable, so it can have no breakpoints",
        "allow it (SELinux: execmod); --qemu helps where a program may make code of its own, not under PR_SET_MDWE",
    ),
];

fn reported(code: u32) -> TargetError {
    let known = REPORTS.iter().find(|(known, _, _)| *known == code);
    let (meaning, remedy) = known.map_or_else(
        || (format!("code {code}, which is unknown"), "rebuild it with ffuzz-cc"),
        |(_, meaning, remedy)| ((*meaning).to_owned(), *remedy),
    );
    TargetError::Reported { meaning, remedy }
}

fn greet_old(wires: &mut Wires<'_>, word: u32) -> Result<ForkServerHello, NoHello> {
    // Only an old, broken runtime sets all four bits.
    let word = if word & OLD_UNUSED == OLD_UNUSED { word & !OLD_UNUSED } else { word };
    let mut hello = ForkServerHello::default();
    if word & OLD_MAP_SIZE != 0 {
        hello.map_size = Some((word >> 1 & 0x007f_ffff) as usize + 1);
    }
    hello.shared_input = word & OLD_SHARED != 0;
    if word & OLD_LOG != 0 {
        hello.runtime = Runtime::Old;
    }
    let offered = word & (OLD_SHARED | OLD_DICTIONARY);
    if offered != 0 {
        // Accept everything offered: a target whose dictionary is refused reads the answer as its
        // first run command, and stays one run ahead.
        wires.send(OLD_OPTIONS | offered)?;
    }
    if word & OLD_DICTIONARY != 0 {
        hello.dictionary = read_dictionary(wires)?;
    }
    Ok(hello)
}

fn greet_v1(wires: &mut Wires<'_>, word: u32) -> Result<ForkServerHello, NoHello> {
    if word != V1 {
        return Err(protocol(format!("unknown version {}", word & 0xff)).into());
    }
    wires.send(!word)?;
    let options = wires.word()?;
    let (shared_input, runtime) = (options & V1_SHARED != 0, Runtime::Versioned);
    let mut hello = ForkServerHello { shared_input, runtime, ..ForkServerHello::default() };
    if options & V1_MAP_SIZE != 0 {
        hello.map_size = Some(wires.word()? as usize);
    }
    if options & V1_DICTIONARY != 0 {
        hello.dictionary = read_dictionary(wires)?;
    }
    let last = wires.word()?;
    if last & 0x4146_4cff != V1 {
        return Err(protocol(format!("the handshake ended with {last:#010x}")).into());
    }
    Ok(hello)
}

fn read_dictionary(wires: &mut Wires<'_>) -> Result<Vec<Vec<u8>>, NoHello> {
    let len = wires.word()?;
    if !(2..=0x00ff_ffff).contains(&len) {
        return Err(protocol(format!("a dictionary of {len} bytes")).into());
    }
    let mut bytes = vec![0; len as usize];
    wires.fill(&mut bytes)?;
    let mut tokens = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((len, tail)) = rest.split_first() {
        let Some((token, tail)) = tail.split_at_checked(usize::from(*len)) else { break };
        tokens.push(token.to_vec());
        rest = tail;
    }
    Ok(tokens)
}

fn greet_domains(wires: &mut Wires<'_>, count: u32) -> Result<ForkServerHello, NoHello> {
    let mut domains = Vec::new();
    for index in 0..count as usize {
        let mut record = [0; 16];
        wires.fill(&mut record)?;
        domains.push(domain_of(index, &record).map_err(TargetError::from)?);
    }
    domain::check_records(&domains, LEGACY_KEYS as u64).map_err(TargetError::from)?;
    Ok(ForkServerHello { domains, map_size: Some(CLASSIC_MAP), ..ForkServerHello::default() })
}

fn domain_of(index: usize, record: &[u8; 16]) -> Result<Domain, domain::RecordError> {
    let word = |at: usize| {
        u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
    };
    let (start, end) = (word(0).cast_signed(), word(4).cast_signed());
    let range =
        domain::RecordError::Range { index, start: start.into(), end: end.into(), expected: 0 };
    let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else {
        return Err(range);
    };
    let size = end.checked_sub(start).ok_or(range)?;
    let reducer = word(8);
    let reducer =
        Reducer::from_wire(reducer).ok_or(domain::RecordError::Reducer { index, reducer })?;
    Ok(Domain { name: String::new(), start, size, reducer, initial: word(12) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_sys::wire::pipe;

    /// Replays the target's words; returns the result and the fuzzer's answers.
    fn play(words: &[u32]) -> (Result<ForkServerHello, NoHello>, Vec<u32>) {
        let (status_in, status_out) = pipe().unwrap();
        let (control_in, control_out) = pipe().unwrap();
        let mut target = WordWriter::from(status_out);
        for word in words {
            target.write(*word).unwrap();
        }
        drop(target);
        let mut status = WordReader::from(status_in);
        let mut control = WordWriter::from(control_out);
        let timeout = Duration::from_secs(1);
        let leave = Leave::default();
        let mut wires = Wires { status: &mut status, control: &mut control, timeout, leave };
        let result = greet(&mut wires);
        drop(control);
        let mut answers = Vec::new();
        let mut reader = WordReader::from(control_in);
        while let Ok(word) = reader.read(timeout) {
            answers.push(word);
        }
        (result, answers)
    }

    #[test]
    fn classic_hello_has_no_answer() {
        let (hello, answers) = play(&[0]);
        assert_eq!(hello.unwrap(), ForkServerHello::default());
        assert_eq!(answers, [0; 0]);
    }

    #[test]
    fn old_hello_with_map_size_only_has_no_answer() {
        let (hello, answers) = play(&[OLD_OPTIONS | OLD_MAP_SIZE | (100 - 1) << 1]);
        assert_eq!(hello.unwrap().map_size, Some(100));
        assert_eq!(answers, [0; 0]);
    }

    #[test]
    fn old_hello_is_accepted_with_everything_it_offers() {
        let hello = OLD_OPTIONS | OLD_MAP_SIZE | OLD_SHARED | OLD_DICTIONARY | (64 - 1) << 1;
        let record = u32::from_ne_bytes([3, b'a', b'b', b'c']);
        let (hello, answers) = play(&[hello, 4, record]);
        let hello = hello.unwrap();
        assert!(hello.shared_input);
        assert_eq!(hello.dictionary, [b"abc"]);
        assert_eq!(answers, [OLD_OPTIONS | OLD_SHARED | OLD_DICTIONARY]);
    }

    #[test]
    fn v1_hello_is_complemented() {
        let (hello, answers) = play(&[V1, V1_MAP_SIZE | V1_SHARED, 12_000_001, V1]);
        let hello = hello.unwrap();
        assert_eq!((hello.map_size, hello.shared_input), (Some(12_000_001), true));
        assert_eq!(answers, [0xbeb9_b3fe]);
    }

    #[test]
    fn fuzzfactory_hello_brings_domain_records() {
        let (hello, _) = play(&[2, 0, 4, 0, 0, 4, 6, 1, u32::MAX]);
        let domains = hello.unwrap().domains;
        assert_eq!((domains[1].start, domains[1].size), (4, 2));
        assert_eq!((domains[1].reducer, domains[1].initial), (Reducer::Min, u32::MAX));
    }

    #[test]
    fn records_out_of_range_are_refused() {
        for records in [
            [1, 0, 0x0008_0000, 0, 0],
            [1, 0, 4, 5, 0],
            [1, 4, 8, 0, 0],
            [1, 8, 4, 0, 0],
            [1, 0, 0, 0, 0],
            [1, u32::MAX, 4, 0, 0],
        ] {
            let (hello, _) = play(&records);
            assert!(
                matches!(hello, Err(NoHello::Error(TargetError::Records(_)))),
                "{records:?}: {hello:?}"
            );
        }
    }

    #[test]
    fn errors_of_both_encodings_are_reported() {
        let refusal = |word| match play(&[word]).0 {
            Err(NoHello::Error(error @ TargetError::Reported { .. })) => error.to_string(),
            other => panic!("{word:#x}: {other:?}"),
        };
        for (code, expected, _) in REPORTS {
            for word in [0xf800_008f | code << 8, 0xeffe_0000 | code] {
                assert!(refusal(word).ends_with(expected), "{word:#x}");
            }
        }
        assert!(refusal(0xeffe_0003).ends_with("code 3, which is unknown"));
        assert!(matches!(play(&[KILLERBEEZ]).0, Err(NoHello::Error(TargetError::Killerbeez))));
        assert!(matches!(play(&[]).0, Err(NoHello::Ended)));
    }
}
