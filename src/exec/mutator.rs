//! The mutator of a libFuzzer harness: `LLVMFuzzerCustomMutator` and `LLVMFuzzerCustomCrossOver`.
//!
//! A second process of the harness calls them (`runtime/driver/mutations.h`): a mutator that crashes or never returns
//! costs an input, not the campaign. `LLVMFuzzerMutate` is one step of havoc, which that process requests during a
//! call.
//!
//! A harness offers three things: a persistent loop for the fuzzer, these functions, and a command line
//! (`runtime/driver/`, `ffuzz libfuzzer`). The target's channel says which functions there are
//! (`TargetInfo::input_functions`). The campaign then adds one more member to its mutators, after those of the user;
//! the process starts at its first call and runs no inputs. Each answer is checked against the size of the memory.
//!
//! ```text
//!                        ┌─ loop: TestOneInput on a copy of exactly `size` bytes ─► maps (channel, as every target)
//! harness ──started as───┤
//!                        └─ FFUZZ_MUTATOR=fd: CustomMutator, CustomCrossOver ◄─► HarnessMutator (shared memory)
//!                                 └─ LLVMFuzzerMutate asks back ─► Job::havoc, one change of the engine
//! ```

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::channel::TARGET_FD;
use super::launcher::{Setup, describe_end};
use ffuzz_engine::corpus::SeedId;
use ffuzz_engine::coverage::mix;
use ffuzz_engine::executor::InputFunctions;
use ffuzz_mutate::MAX_INPUT;
use ffuzz_mutate::foreign::{Job, Made};
use ffuzz_mutators::{Hook, HookError, Hooks, Mutator};
use ffuzz_sys::memory::{self, SharedMap};
use ffuzz_sys::process::{self, Launch, OutputTo, Process};
use ffuzz_sys::strays::Strays;
use ffuzz_sys::{futex, stop::Leave};

/// Name of the mutator on the screen and in the names of finds.
const NAME: &str = "libfuzzer";
/// Environment variable that names the shared memory.
const ENV: &str = "FFUZZ_MUTATOR";

const MAGIC: u32 = u32::from_le_bytes(*b"FFMT");
const VERSION: u32 = 1;

/// Offsets in `struct ffuzz_mutations`.
mod field {
    /// The version follows.
    pub(super) const MAGIC: usize = 0;
    pub(super) const ORDER: usize = 8;
    pub(super) const SEED: usize = 12;
    pub(super) const FIRST_SIZE: usize = 16;
    pub(super) const SECOND_SIZE: usize = 20;
    pub(super) const MOST: usize = 24;
    pub(super) const ORDERED: usize = 28;
    pub(super) const REPORT: usize = 64;
    pub(super) const SIZE: usize = 68;
    pub(super) const WANTED: usize = 72;
    pub(super) const ANSWERED: usize = 76;
    pub(super) const FIRST: usize = 128;
    pub(super) const SECOND: usize = FIRST + super::MAX_INPUT;
    pub(super) const BYTES: usize = SECOND + super::MAX_INPUT;
}

/// `enum ffuzz_mutations_order`.
const MUTATE: u32 = 1;
const CROSS: u32 = 2;
const GO_ON: u32 = 3;
/// `enum ffuzz_mutations_report`.
const READY: u32 = 1;
const MADE: u32 = 2;
const WANTS: u32 = 3;

/// Length of a chain of inputs, each made from the one before; libFuzzer's `-mutate_depth`.
const DEPTH: u32 = 5;
/// Time limits of the start of the process and of a call.
const LONGEST_START: Duration = Duration::from_secs(20);
const LONGEST_CALL: Duration = Duration::from_secs(2);
/// Shortest and longest interval between two checks of the process: a crash does not wake the waiting thread.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(100)];
/// Number of consecutive calls without a return after which no more are made.
const MOST_HANGS: u32 = 3;

/// The mutator of a harness, with its process.
pub struct HarnessMutator {
    setup: Setup,
    functions: InputFunctions,
    partner: Option<Partner>,
    /// Seed of the random numbers, and the number of those drawn (`drawn`).
    seed: u64,
    drawn: u64,
    /// The last input, and its distance from the seed (`depth`).
    chain: Vec<u8>,
    depth: u32,
    hangs: u32,
}

/// The process that calls the harness's functions.
struct Partner {
    process: Process,
    memory: SharedMap,
    /// Number of answers received.
    answers: u32,
    _strays: Strays,
}

impl HarnessMutator {
    /// Creates the mutator of a harness with these functions. The first call starts the process.
    #[must_use]
    pub fn new(setup: Setup, functions: InputFunctions, seed: u64) -> Self {
        let chain = Vec::new();
        Self { setup, functions, partner: None, seed, drawn: 0, chain, depth: 0, hangs: 0 }
    }

    /// Returns the line that introduces these functions to the user.
    #[must_use]
    pub fn introduction(functions: InputFunctions) -> String {
        let names = [
            functions.mutator.then_some("LLVMFuzzerCustomMutator"),
            functions.crossover.then_some("LLVMFuzzerCustomCrossOver"),
        ];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        format!("the harness makes inputs, too: {}", names.join(", "))
    }

    fn draw(&mut self) -> u32 {
        self.drawn += 1;
        (mix(self.seed ^ self.drawn) >> 32) as u32
    }

    fn call(&mut self, what: u32, job: &mut Job<'_>, from: &[u8]) -> Result<usize, HookError> {
        if self.hangs >= MOST_HANGS {
            return Err(HookError(format!("did not return {MOST_HANGS} times")));
        }
        let seed = self.draw();
        let partner = match &mut self.partner {
            Some(partner) => partner,
            none => none.insert(Partner::start(&self.setup)?),
        };
        let second = if what == CROSS { job.other.unwrap_or_default() } else { &[] };
        partner.order(what, seed, from, second, job.max_len);
        let made = partner.result(&mut self.setup.leave, &mut job.havoc);
        match made {
            Ok(made) => {
                self.hangs = 0;
                Ok(made)
            }
            Err(failure) => {
                self.hangs = if matches!(failure, Failure::Hangs) { self.hangs + 1 } else { 0 };
                self.partner = None;
                match failure {
                    Failure::Interrupted => Ok(0),
                    failure => Err(HookError(failure.text())),
                }
            }
        }
    }
}

impl Mutator for HarnessMutator {
    fn name(&self) -> &str {
        NAME
    }

    fn hooks(&self) -> Hooks {
        let hooks = Hooks::from_iter([Hook::Stage, Hook::Fuzz]);
        if self.functions.crossover { hooks } else { hooks.with(Hook::SpliceOptout) }
    }

    fn competes(&self) -> bool {
        true
    }

    fn stage_begins(&mut self, _seed: SeedId, _input: &[u8]) -> Result<(), HookError> {
        self.depth = 0;
        Ok(())
    }

    fn fuzz(&mut self, job: &mut Job<'_>, out: &mut Vec<u8>) -> Result<Made, HookError> {
        let InputFunctions { mutator, crossover } = self.functions;
        let crosses = crossover && job.other.is_some();
        let what = match (mutator, crosses) {
            (true, true) if self.draw() & 1 == 0 => CROSS,
            (true, _) => MUTATE,
            (false, true) => CROSS,
            (false, false) => return Ok(Made::Nothing),
        };
        let chain = std::mem::take(&mut self.chain);
        let from = if self.depth == 0 { job.input } else { &chain };
        let made = self.call(what, job, from);
        self.chain = chain;
        self.depth = (self.depth + 1) % DEPTH;
        let made = made.inspect_err(|_| self.depth = 0)?;
        let Some(partner) = self.partner.as_ref().filter(|_| made > 0) else {
            self.depth = 0;
            return Ok(Made::Nothing);
        };
        out.extend_from_slice(partner.memory.bytes(field::FIRST, made));
        self.chain.clone_from(out);
        Ok(Made::Input)
    }
}

/// Why a call failed.
enum Failure {
    Ended(Option<i32>),
    Hangs,
    Nonsense,
    Interrupted,
}

impl Failure {
    fn text(&self) -> String {
        match self {
            Self::Ended(status) => {
                format!("ended its process ({}): it is started again", describe_end(*status))
            }
            Self::Hangs => {
                let limit = LONGEST_CALL.as_secs();
                format!("did not return within {limit} seconds: its process is started again")
            }
            Self::Nonsense => "wrote over the memory that it shares with the fuzzer".into(),
            Self::Interrupted => "was interrupted".into(),
        }
    }
}

impl Partner {
    fn start(setup: &Setup) -> Result<Self, HookError> {
        let failed = |what: String| HookError(format!("could not be started: {what}"));
        let fd =
            memory::memfd(c"ffuzz-mutations", field::BYTES).map_err(|e| failed(e.to_string()))?;
        let mut map = SharedMap::file(&fd, field::BYTES).map_err(|e| failed(e.to_string()))?;
        map.words_mut(field::MAGIC, 2).copy_from_slice(&[MAGIC, VERSION]);
        let mut env = setup.base_env();
        env.push((ENV.into(), Some(OsString::from(TARGET_FD.to_string()))));
        setup.way().add_runtime(&mut env);
        let strays = Strays::default();
        let process = process::launch(Launch {
            argv: &setup.argv,
            env: &env,
            stdin: Stdio::null(),
            output: OutputTo::shown(setup.options.show_output),
            fds: &[(fd.as_fd(), TARGET_FD)],
            memory_limit: setup.options.memory_limit,
            core_limit: 0,
            guarded: true,
            traced: false,
            strays: Some(&strays),
            fixed_addresses: false,
        })
        .map_err(|error| failed(error.to_string()))?;
        let mut partner = Self { process, memory: map, answers: 0, _strays: strays };
        let mut leave = setup.leave.clone();
        match partner.answer(&mut leave, LONGEST_START) {
            Ok(READY) => Ok(partner),
            Ok(_) => Err(failed(Failure::Nonsense.text())),
            Err(Failure::Hangs) => Err(failed("it did not answer".into())),
            Err(failure) => Err(failed(failure.text())),
        }
    }

    fn put(&mut self, at: usize, word: u32) {
        self.memory.words_mut(at, 1)[0] = word;
    }

    fn put_input(&mut self, size_at: usize, at: usize, input: &[u8]) {
        let length = input.len().min(MAX_INPUT);
        self.put(size_at, length as u32);
        self.memory.bytes_mut(at, length).copy_from_slice(&input[..length]);
    }

    fn order(&mut self, what: u32, seed: u32, first: &[u8], second: &[u8], most: usize) {
        self.put(field::ORDER, what);
        self.put(field::SEED, seed);
        self.put(field::MOST, most.min(MAX_INPUT) as u32);
        self.put_input(field::FIRST_SIZE, field::FIRST, first);
        self.put_input(field::SECOND_SIZE, field::SECOND, second);
        self.send();
    }

    fn send(&self) {
        let word = self.memory.atomic(field::ORDERED);
        word.fetch_add(1, Ordering::Release);
        futex::wake(word);
    }

    /// Waits for the result of a call and returns its length in bytes; 0: no input.
    fn result(
        &mut self,
        leave: &mut Leave,
        havoc: &mut dyn FnMut(&mut Vec<u8>, usize),
    ) -> Result<usize, Failure> {
        let mut bytes = Vec::new();
        loop {
            let report = self.answer(leave, LONGEST_CALL)?;
            let size = self.memory.load(field::SIZE) as usize;
            match report {
                MADE if size <= MAX_INPUT => return Ok(size),
                WANTS if size <= MAX_INPUT => {
                    bytes.clear();
                    bytes.extend_from_slice(self.memory.bytes(field::SECOND, size));
                    let most = self.memory.load(field::WANTED) as usize;
                    havoc(&mut bytes, most.min(MAX_INPUT));
                    self.put(field::ORDER, GO_ON);
                    self.put_input(field::SECOND_SIZE, field::SECOND, &bytes);
                    self.send();
                }
                _ => return Err(Failure::Nonsense),
            }
        }
    }

    /// Waits for the next report.
    fn answer(&mut self, leave: &mut Leave, limit: Duration) -> Result<u32, Failure> {
        let (begin, [mut look, longest]) = (Instant::now(), LOOKS);
        loop {
            let now = self.memory.atomic(field::ANSWERED).load(Ordering::Acquire);
            if now != self.answers {
                self.answers = now;
                return Ok(self.memory.load(field::REPORT));
            }
            futex::wait(self.memory.atomic(field::ANSWERED), now, look);
            look = (2 * look).min(longest);
            if self.memory.atomic(field::ANSWERED).load(Ordering::Acquire) != now {
                continue;
            }
            if let Some(status) = self.process.try_wait() {
                return Err(Failure::Ended(Some(status)));
            }
            if leave.is_due() {
                return Err(Failure::Interrupted);
            }
            if begin.elapsed() >= limit {
                return Err(Failure::Hangs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_header() {
        let header = include_str!("../../runtime/driver/mutations.h");
        assert!(header.contains(&format!("FFUZZ_MUTATIONS_MAGIC {MAGIC:#x}u")));
        assert!(header.contains(&format!("FFUZZ_MUTATIONS_VERSION {VERSION}u")));
        assert!(header.contains(&format!("FFUZZ_MUTATOR_ENV {ENV:?}")));
        assert!(header.contains("FFUZZ_LONGEST_INPUT (1u << 20)") && MAX_INPUT == 1 << 20);
        let body = header.split("struct ffuzz_mutations {").nth(1).unwrap();
        let body = body.split("};").next().unwrap();
        // Without comments, each line declares a word or an array of words.
        let mut at = 0;
        let mut found = vec![];
        for line in body.lines().filter_map(|line| line.trim().strip_prefix("uint32_t ")) {
            for name in line.split(';').next().unwrap().split(',') {
                let (name, words) = match name.trim().split_once('[') {
                    Some((name, count)) => (name, count.trim_end_matches(']').parse().unwrap()),
                    None => (name.trim(), 1),
                };
                found.push((name, at));
                at += 4 * words;
            }
        }
        assert_eq!(at, field::FIRST);
        let known = [
            ("magic", field::MAGIC),
            ("version", field::MAGIC + 4),
            ("order", field::ORDER),
            ("seed", field::SEED),
            ("first_size", field::FIRST_SIZE),
            ("second_size", field::SECOND_SIZE),
            ("most", field::MOST),
            ("ordered", field::ORDERED),
            ("report", field::REPORT),
            ("size", field::SIZE),
            ("wanted", field::WANTED),
            ("answered", field::ANSWERED),
        ];
        assert_eq!(
            found.into_iter().filter(|(name, _)| !name.starts_with("pad")).collect::<Vec<_>>(),
            known
        );
    }
}
