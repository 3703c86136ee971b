//! Records the blocks that one run executes, in order, in every thread and child.
//!
//! Breakpoints at the starts of the blocks ([`Code`]) stop the process; no other build is needed. Files that are
//! loaded later get their breakpoints when the loader announces them.
//!
//! [`Fresh`] runs the process, so delivery, limits and mutators are the same as in every other run.
//! `sys::breakpoints` stops the process at the places that a [`Watcher`] names, and queries it again when the loader
//! announces new code (`_dl_debug_state`). A [`Choice`] selects the files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Ended, Fresh, FreshOptions, TargetError};
use ffuzz_engine::executor::ExitKind;
use ffuzz_inspect::choice::Choice;
use ffuzz_inspect::code::{Code, WantedBlocks};
use ffuzz_sys::breakpoints::{self, Next, Place, Watcher};
use ffuzz_sys::listen::Limit;

/// Maximum number of recorded steps of a run: 64 MB.
pub const MOST_STEPS: usize = 4 << 20;
/// Stands for the loader's notice; no file has that many blocks.
const NOTICE: u64 = u64::MAX;
/// One executed block.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TraceStep {
    /// Number of the file in [`Tracer::files`].
    pub file: u32,
    pub block: u32,
    /// Number of the thread by first appearance, from 0.
    pub thread: u32,
}

impl TraceStep {
    /// File and block, without the thread.
    #[must_use]
    pub fn place(self) -> (u32, u32) {
        (self.file, self.block)
    }
}

/// Recording of a run.
pub struct TracedRun {
    /// Executed blocks, each up to the tracer's limit.
    pub steps: Vec<TraceStep>,
    pub ended: Ended,
}

/// Runs a target from breakpoint to breakpoint.
pub struct Tracer {
    fresh: Fresh,
    known: KnownFiles,
    /// Maximum number of recorded executions of one block per run.
    most: u32,
}

fn wanted(choice: &Choice, code: &Code) -> WantedBlocks {
    let is_named = matches!(choice, Choice::Named(_));
    match choice {
        _ if code.is_loader() && !is_named => WantedBlocks::Nothing,
        Choice::Counted => WantedBlocks::Counters,
        choice if choice.takes(&code.name) => WantedBlocks::Blocks,
        _ => WantedBlocks::Nothing,
    }
}

/// The files seen so far.
struct KnownFiles {
    choice: Choice,
    files: Vec<Code>,
    /// Index of each file; None if its code is unknown.
    numbers: HashMap<PathBuf, Option<u32>>,
}

impl Tracer {
    /// `most`: maximum number of recorded executions of a block per run, at least 1.
    #[must_use]
    pub fn new(fresh: Fresh, choice: Choice, most: u32) -> Self {
        let known = KnownFiles { choice, files: Vec::new(), numbers: HashMap::new() };
        Self { fresh, known, most }
    }

    /// Traces the files of `choice` from now on and forgets those seen.
    pub fn choose(&mut self, choice: Choice) {
        self.known = KnownFiles { choice, files: Vec::new(), numbers: HashMap::new() };
    }

    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.known.choice
    }

    /// Returns true if no block of any file is known.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.known.files.iter().all(|file| file.size() == 0)
    }

    /// The files that any run has mapped so far, including those without blocks.
    #[must_use]
    pub fn files(&self) -> &[Code] {
        &self.known.files
    }

    /// The code that a step has reached.
    #[must_use]
    pub fn code(&self, step: TraceStep) -> &Code {
        &self.known.files[step.file as usize]
    }

    /// Runs one input, and repeats the run if it timed out while files were read.
    pub fn run(&mut self, input: &[u8], limit: impl Into<Limit>) -> Result<TracedRun, TargetError> {
        if !breakpoints::SUPPORTED {
            return Err(TargetError::NoTracing);
        }
        let (limit, known) = (limit.into(), self.files().len());
        let run = self.run_once(input, limit)?;
        let was_delayed = run.ended.exit == ExitKind::Hang && self.files().len() > known;
        if was_delayed { self.run_once(input, limit) } else { Ok(run) }
    }

    fn run_once(&mut self, input: &[u8], limit: Limit) -> Result<TracedRun, TargetError> {
        let mut watch = WatchedRun {
            known: &mut self.known,
            most: self.most,
            counts: Vec::new(),
            steps: Vec::new(),
            threads: HashMap::new(),
        };
        let options = FreshOptions { watcher: Some(&mut watch), ..FreshOptions::within(limit) };
        let ended = self.fresh.run(input, options)?;
        let WatchedRun { steps, .. } = watch;
        Ok(TracedRun { steps, ended })
    }

    /// See [`Fresh::missing_libraries`].
    #[must_use]
    pub fn missing_libraries(&self, run: &TracedRun) -> Vec<String> {
        self.fresh.missing_libraries(&run.ended)
    }

    /// Messages of the mutators.
    pub fn take_messages(&mut self) -> Vec<String> {
        self.fresh.take_messages()
    }
}

impl KnownFiles {
    /// Index of a file, which is read on its first use.
    fn number(&mut self, path: &Path) -> Option<u32> {
        if let Some(known) = self.numbers.get(path) {
            return *known;
        }
        let code = Code::read(path, |code| wanted(&self.choice, code));
        let number = code.map(|code| {
            self.files.push(code);
            u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
        });
        self.numbers.insert(path.to_owned(), number);
        number
    }
}

/// A run in progress.
struct WatchedRun<'a> {
    known: &'a mut KnownFiles,
    most: u32,
    /// Executions, by file and block.
    counts: Vec<Vec<u32>>,
    steps: Vec<TraceStep>,
    threads: HashMap<i32, u32>,
}

impl Watcher for WatchedRun<'_> {
    fn look(&mut self, pid: i32) -> Vec<Place> {
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mut places = Vec::new();
        for mapping in String::from_utf8_lossy(&maps).lines().filter_map(Mapping::parse) {
            let Some(number) = self.known.number(mapping.path) else { continue };
            let code = &self.known.files[number as usize];
            let Some(bias) = code.bias(mapping.start, mapping.offset) else { continue };
            let is_inside = |address: &u64| (mapping.start..mapping.end).contains(address);
            let notice = code.notice.map(|address| bias.wrapping_add(address));
            places.extend(notice.filter(is_inside).map(|address| (address, NOTICE)));
            let blocks = code.blocks.starts.iter().zip(u64::from(number) << 32..);
            let placed = blocks.map(|(start, name)| (bias.wrapping_add(*start), name));
            places.extend(placed.filter(|(address, _)| is_inside(address)));
        }
        places
    }

    fn hit(&mut self, thread: i32, name: u64) -> Next {
        if name == NOTICE {
            return Next::Look;
        }
        let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let thread = *self.threads.entry(thread).or_insert(next);
        let step = TraceStep { file: (name >> 32) as u32, block: name as u32, thread };
        let (file, block) = (step.file as usize, step.block as usize);
        if self.counts.len() <= file {
            self.counts.resize(file + 1, Vec::new());
        }
        let counts = &mut self.counts[file];
        if counts.is_empty() {
            *counts = vec![0; self.known.files[file].size()];
        }
        counts[block] += 1;
        self.steps.push(step);
        match () {
            () if self.steps.len() >= MOST_STEPS => Next::End,
            () if counts[block] >= self.most => Next::Remove,
            () => Next::Keep,
        }
    }
}

/// A part of a file that is mapped as code.
#[derive(Debug, Eq, PartialEq)]
struct Mapping<'a> {
    start: u64,
    end: u64,
    offset: u64,
    path: &'a Path,
}

impl<'a> Mapping<'a> {
    /// Parses a line `from-to r-xp offset device inode path`.
    fn parse(line: &'a str) -> Option<Self> {
        let path = Path::new(&line[line.find('/')?..]);
        let mut words = line.split(' ');
        let (start, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = number(words.next()?)?;
        is_code.then_some(Self { start: number(start)?, end: number(end)?, offset, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code_have_a_file() {
        let line = "55e1-55e2 r-xp 00001000 08:01 7                  /bin/a b";
        let path = Path::new("/bin/a b");
        let expected = Mapping { start: 0x55e1, end: 0x55e2, offset: 0x1000, path };
        assert_eq!(Mapping::parse(line), Some(expected));
        for line in ["55e1-55e2 r--p 0 08:01 7 /bin/a", "55e1-55e2 r-xp 0 00:00 0 [vdso]", "", "/"]
        {
            assert_eq!(Mapping::parse(line), None);
        }
    }
}
