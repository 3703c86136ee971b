//! Mirror of `runtime/channel.h`: the memory that a target built by `ffuzz-cc` shares with the fuzzer.
//!
//! Everything the target writes is checked here once, after its hello; then the sizes are sealed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::TargetError;
use super::runs::{self, RunChannel};
use ffuzz_comparisons::log::ComparisonLog;
use ffuzz_engine::domain::{self, Domain, Reducer};
use ffuzz_engine::executor::InputFunctions;
use ffuzz_inspect::modules::Named;
use ffuzz_sys::memory::{self, SharedMap};

/// Name of the environment variable that holds the descriptor number.
pub(super) const ENV: &str = "FFUZZ_CHANNEL";
/// Descriptor of the channel in the target, next to AFL's 198 and 199.
pub(super) const TARGET_FD: i32 = 197;

const MAGIC: u32 = 0x5a5a_4646;
const VERSION: u32 = 3;
pub(super) const HEADER: usize = 8192;
const PAGE: u64 = 4096;

/// Maximum edge map size: AFL's own limit.
const MAX_MAP: u64 = 1 << 29;
/// Maximum number of domain keys: 1 GiB of values.
const MAX_KEYS: u64 = 1 << 28;
/// Maximum number of modules and domains; a larger record table means a broken target.
const MAX_RECORDS: u64 = 1 << 16;

/// Byte offsets of the header's fields (`struct ffuzz_channel`).
mod field {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 4;
    pub(super) const ACCEPTED: usize = 8;
    pub(super) const FEATURES: usize = 12;
    pub(super) const SIZE: usize = 16;
    pub(super) const MAP_OFFSET: usize = 24;
    pub(super) const MAP_SIZE: usize = 32;
    pub(super) const MODULES_OFFSET: usize = 40;
    pub(super) const DOMAINS_OFFSET: usize = 48;
    pub(super) const DSF_OFFSET: usize = 56;
    pub(super) const TOUCHED_OFFSET: usize = 64;
    pub(super) const MODULE_COUNT: usize = 72;
    pub(super) const DOMAIN_COUNT: usize = 76;
    pub(super) const DSF_TOTAL: usize = 80;
    pub(super) const TOUCHED_CAPACITY: usize = 84;
    pub(super) const TOUCHED_COUNT: usize = 88;
    pub(super) const OFFERED: usize = 92;
    pub(super) const ARENA_OFFSET: usize = 96;
    pub(super) const VIRGIN_OFFSET: usize = 104;
    pub(super) const BARS_OFFSET: usize = 112;
    pub(super) const REFUSED: usize = 120;
    pub(super) const LATE_COUNT: usize = 124;
    pub(super) const LATE_NAME: usize = 128;
    pub(super) const LOG_OFFSET: usize = 240;
    pub(super) const ABSENT: usize = 248;
    pub(super) const ABSENT_ALONE: usize = 256;
    pub(super) const REJECTED: usize = 264;
}

/// Bits of the field `features`.
const COPIED_COUNTERS: u32 = 1;
const RUNS: u32 = 2;
const SNAPSHOT: u32 = 4;
const PATHS: u32 = 8;
const LOG: u32 = 16;
const MUTATOR: u32 = 32;
const CROSSOVER: u32 = 64;

/// Offsets in `struct ffuzz_log`, and its bounds.
const LOG_COUNT: usize = 0;
const LOG_USED: usize = 4;
const LOG_SEEN: usize = 64;
const LOG_SLOTS: usize = 16_384;
const LOG_ENTRIES: usize = LOG_SEEN + 4 * LOG_SLOTS;
const COMPARISON: usize = 24;
const MOST_COMPARISONS: usize = 65_536;
const LOG_BYTES: usize = LOG_ENTRIES + COMPARISON * MOST_COMPARISONS;
const LOG_ARENA: usize = 1 << 20;

const MODULE_BYTES: usize = 128;
const MODULE_NAME: usize = 112;
const DOMAIN_BYTES: usize = 64;
const DOMAIN_NAME: usize = 48;
const LATE_NAME: usize = 112;
/// Maximum number of objects that a program may load.
const MOST_LATE: u32 = 1 << 16;

/// Offer of a channel, before the target has answered.
#[derive(Debug)]
pub(super) struct Offer {
    fd: OwnedFd,
    header: SharedMap,
}

/// A target's answer to the offer.
#[derive(Debug)]
pub(super) enum OfferAnswer {
    Accepted(Box<Channel>),
    /// The target supports the channel, but cannot use it.
    Refused(std::io::Error),
    Unknown,
}

/// A channel that the target accepted; every region lies inside of `memory`.
#[derive(Debug)]
pub(super) struct Channel {
    memory: SharedMap,
    pub(super) counters_are_copied: bool,
    /// Orders and reports of runs, until the executor takes them; None if runs use AFL's pipes.
    pub(super) runs: Option<RunChannel>,
    /// Children can be restored after a run, if the target has an ordinary `main`.
    pub(super) can_snapshot: bool,
    /// Children that run batches hash the path of each run.
    pub(super) hashes_paths: bool,
    /// Input-generating functions of a harness.
    pub(super) functions: InputFunctions,
    /// Offset of the comparison log; None if the program cannot log.
    log: Option<usize>,
    map: Region,
    dsf: Region,
    touched: Region,
    pub(super) domains: Vec<Domain>,
    pub(super) modules: Vec<Named>,
    /// Bytes of the edge map that nothing counts in and that stay 0: with copies of functions, and without.
    pub(super) absent: [usize; 2],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) offset: usize,
    pub(super) count: usize,
}

impl Offer {
    /// `runs`: offers to order runs through the channel.
    pub(super) fn new(runs: bool) -> std::io::Result<Self> {
        let fd = memory::memfd(c"ffuzz-channel", HEADER)?;
        let mut header = SharedMap::file(&fd, HEADER)?;
        header.words_mut(field::MAGIC, 1)[0] = MAGIC;
        header.words_mut(field::VERSION, 1)[0] = VERSION;
        header.words_mut(field::OFFERED, 1)[0] = if runs { RUNS | SNAPSHOT } else { 0 };
        Ok(Self { fd, header })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Checks the answer.
    pub(super) fn accept(self) -> Result<OfferAnswer, TargetError> {
        match self.header.load(field::ACCEPTED) {
            0 => return Ok(self.no_channel()),
            VERSION => {}
            other => return Err(broken(format!("it accepted version {other}"))),
        }
        memory::seal_size(&self.fd).map_err(|error| broken(error.to_string()))?;
        let size = memory::size(&self.fd).map_err(|error| broken(error.to_string()))?;
        let map = || {
            SharedMap::file(&self.fd, size)
                .map_err(|source| TargetError::Memory { bytes: size, source })
        };
        let mut channel = Channel::check(map()?)?;
        let features = channel.memory.load(field::FEATURES);
        channel.functions = InputFunctions {
            mutator: features & MUTATOR != 0,
            crossover: features & CROSSOVER != 0,
        };
        if features & self.header.load(field::OFFERED) & RUNS != 0 {
            channel.runs = Some(channel.open_runs(map()?)?);
            channel.can_snapshot = features & SNAPSHOT != 0;
            channel.hashes_paths = features & PATHS != 0;
            if features & LOG != 0 {
                channel.log = Some(channel.find_log()?);
            }
        }
        Ok(OfferAnswer::Accepted(Box::new(channel)))
    }

    fn no_channel(&self) -> OfferAnswer {
        match self.header.load(field::REFUSED).cast_signed() {
            0 => OfferAnswer::Unknown,
            code => OfferAnswer::Refused(std::io::Error::from_raw_os_error(code)),
        }
    }
}

fn broken(what: impl Into<String>) -> TargetError {
    TargetError::Channel { what: what.into() }
}

fn long(memory: &SharedMap, offset: usize) -> u64 {
    u64::from(memory.load(offset)) | u64::from(memory.load(offset + 4)) << 32
}

/// Text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn is_unprintable(letter: char) -> bool {
    letter.is_control() || letter == char::REPLACEMENT_CHARACTER
}

/// Checks one region of `count` items of `bytes` each against the size of the channel.
fn region(
    memory: &SharedMap,
    what: &str,
    offset: u64,
    count: u64,
    bytes: u64,
    limit: u64,
) -> Result<Region, TargetError> {
    let end = count.checked_mul(bytes).and_then(|len| len.checked_add(offset));
    let inside = end.is_some_and(|end| end <= memory.len() as u64);
    if count > limit || !inside || offset < PAGE || !offset.is_multiple_of(PAGE) {
        return Err(broken(format!("{what}: {count} items at offset {offset}")));
    }
    Ok(Region { offset: offset as usize, count: count as usize })
}

impl Channel {
    fn check(memory: SharedMap) -> Result<Self, TargetError> {
        let word = |offset| u64::from(memory.load(offset));
        if long(&memory, field::SIZE) > memory.len() as u64 {
            return Err(broken("it is smaller than it says"));
        }
        let at = |offset| long(&memory, offset);
        let (start, size) = (at(field::MAP_OFFSET), at(field::MAP_SIZE));
        let map = region(&memory, "edge map", start, size, 1, MAX_MAP)?;
        let domains = Self::read_domains(&memory)?;
        let keys = word(field::DSF_TOTAL);
        if keys > MAX_KEYS {
            return Err(TargetError::TooManyKeys { keys, most: MAX_KEYS });
        }
        let listed = word(field::TOUCHED_CAPACITY);
        let (dsf, touched) = if domains.is_empty() {
            let nothing = Region { offset: HEADER, count: 0 };
            (nothing, nothing)
        } else {
            (
                region(&memory, "domain keys", at(field::DSF_OFFSET), keys, 4, MAX_KEYS)?,
                region(&memory, "touched keys", at(field::TOUCHED_OFFSET), listed, 4, MAX_KEYS)?,
            )
        };
        domain::check_records(&domains, dsf.count as u64)?;
        let modules = Self::read_modules(&memory, map.count as u64)?;
        let counters_are_copied = memory.load(field::FEATURES) & COPIED_COUNTERS != 0;
        let (runs, can_snapshot, hashes_paths, log) = (None, false, false, None);
        let absent = [field::ABSENT, field::ABSENT_ALONE].map(|offset| {
            usize::try_from(at(offset)).map_or(map.count, |absent| absent.min(map.count))
        });
        Ok(Self {
            absent,
            memory,
            counters_are_copied,
            functions: InputFunctions::default(),
            runs,
            can_snapshot,
            hashes_paths,
            log,
            map,
            dsf,
            touched,
            domains,
            modules,
        })
    }

    /// Opens the orders and reports of runs. `memory` maps the channel a second time: runs are read while maps are
    /// borrowed.
    fn open_runs(&self, memory: SharedMap) -> Result<RunChannel, TargetError> {
        let at = |offset| long(&self.memory, offset);
        let part = |what, offset, count, bytes, limit| {
            region(&self.memory, what, at(offset), count as u64, bytes, limit)
        };
        let arena = part("test cases", field::ARENA_OFFSET, runs::ARENA, 1, runs::ARENA as u64)?;
        let virgin = part("virgin map", field::VIRGIN_OFFSET, self.map.count, 1, MAX_MAP)?;
        let thresholds = match self.dsf.count {
            0 => self.dsf,
            keys => part("thresholds", field::BARS_OFFSET, keys, 4, MAX_KEYS)?,
        };
        Ok(RunChannel::new(memory, arena, virgin, thresholds, &self.domains))
    }

    fn find_log(&self) -> Result<usize, TargetError> {
        let size = (LOG_BYTES + LOG_ARENA) as u64;
        let offset = long(&self.memory, field::LOG_OFFSET);
        Ok(region(&self.memory, "comparison log", offset, size, 1, u64::MAX)?.offset)
    }

    /// Runs whose input the harness refused, wrapping.
    pub(super) fn rejected(&self) -> u32 {
        self.memory.load(field::REJECTED)
    }

    pub(super) fn can_log(&self) -> bool {
        self.log.is_some()
    }

    /// Empties the log, before a run.
    pub(super) fn clear_log(&mut self) {
        let Some(log) = self.log else { return };
        self.memory.words_mut(log + LOG_COUNT, 2).fill(0);
        self.memory.words_mut(log + LOG_SEEN, LOG_SLOTS).fill(0);
    }

    /// The comparisons that the last run logged.
    pub(super) fn log(&self) -> ComparisonLog<'_> {
        let Some(log) = self.log else { return ComparisonLog::default() };
        let count = self.memory.load(log + LOG_COUNT) as usize;
        let used = (self.memory.load(log + LOG_USED) as usize).min(LOG_ARENA);
        let kept = count.min(MOST_COMPARISONS);
        let entries = self.memory.bytes(log + LOG_ENTRIES, kept * COMPARISON);
        ComparisonLog::new(entries, self.memory.bytes(log + LOG_BYTES, used), count > kept)
    }

    fn read_domains(memory: &SharedMap) -> Result<Vec<Domain>, TargetError> {
        let count = u64::from(memory.load(field::DOMAIN_COUNT));
        if count == 0 {
            return Ok(Vec::new());
        }
        let (at, size) = (long(memory, field::DOMAINS_OFFSET), DOMAIN_BYTES as u64);
        let table = region(memory, "domains", at, count, size, MAX_RECORDS)?;
        (0..table.count)
            .map(|index| {
                let at = table.offset + index * DOMAIN_BYTES;
                let number = memory.load(at + 8);
                let reducer = Reducer::from_wire(number)
                    .ok_or(domain::RecordError::Reducer { index, reducer: number })?;
                Ok(Domain {
                    name: text(memory.bytes(at + 16, DOMAIN_NAME)),
                    start: memory.load(at),
                    size: memory.load(at + 4),
                    reducer,
                    initial: memory.load(at + 12),
                })
            })
            .collect()
    }

    /// Reads the modules; `map_size` must be the end of the last one's counters.
    fn read_modules(memory: &SharedMap, map_size: u64) -> Result<Vec<Named>, TargetError> {
        let count = u64::from(memory.load(field::MODULE_COUNT));
        if count == 0 {
            return Ok(Vec::new());
        }
        let (at, size) = (long(memory, field::MODULES_OFFSET), MODULE_BYTES as u64);
        let table = region(memory, "modules", at, count, size, MAX_RECORDS)?;
        (0..table.count)
            .map(|index| {
                let at = table.offset + index * MODULE_BYTES;
                let (start, count) = (long(memory, at), long(memory, at + 8));
                let end = start.checked_add(count).filter(|end| *end <= map_size);
                let end = end.ok_or_else(|| broken(format!("module {index}: {count} counters")))?;
                let name = text(memory.bytes(at + 16, MODULE_NAME));
                Ok(Named { counters: start as usize..end as usize, name })
            })
            .collect()
    }

    /// Name of the first instrumented object that was loaded too late to be counted, and the number of such objects.
    /// None if the program overwrote the name.
    pub(super) fn late(&self) -> Option<(String, u32)> {
        let count = self.memory.load(field::LATE_COUNT);
        let name = text(self.memory.bytes(field::LATE_NAME, LATE_NAME));
        let is_name = !name.is_empty() && name.len() < LATE_NAME && !name.contains(is_unprintable);
        ((1..=MOST_LATE).contains(&count) && is_name).then_some((name, count))
    }

    pub(super) fn edges(&self) -> &[u8] {
        self.memory.bytes(self.map.offset, self.map.count)
    }

    pub(super) fn edges_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut(self.map.offset, self.map.count)
    }

    pub(super) fn dsf(&self) -> &[u32] {
        self.memory.words(self.dsf.offset, self.dsf.count)
    }

    pub(super) fn dsf_mut(&mut self) -> &mut [u32] {
        self.memory.words_mut(self.dsf.offset, self.dsf.count)
    }

    /// Copies the list of touched keys, dropping impossible ones; false if the list overflowed.
    pub(super) fn copy_touched(&self, keys: &mut Vec<u32>) -> bool {
        keys.clear();
        let count = self.memory.load(field::TOUCHED_COUNT) as usize;
        if count > self.touched.count {
            return false;
        }
        let total = self.dsf.count;
        let list = self.memory.words(self.touched.offset, count);
        keys.extend(list.iter().filter(|key| (**key as usize) < total));
        true
    }

    pub(super) fn forget_touched(&mut self) {
        self.memory.words_mut(field::TOUCHED_COUNT, 1)[0] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_constant(name: &str) -> u32 {
        let header = include_str!("../../runtime/channel.h");
        let line = header.lines().find(|line| line.contains(&format!("#define {name} "))).unwrap();
        let value = line.split_whitespace().nth(2).unwrap().trim_end_matches('u');
        value
            .strip_prefix("0x")
            .map_or_else(|| value.parse().unwrap(), |hex| u32::from_str_radix(hex, 16).unwrap())
    }

    const RUN_FIELDS: [(&str, usize); 30] = [
        ("want", runs::field::WANT),
        ("lasting", runs::field::LASTING),
        ("prologue", runs::field::PROLOGUE),
        ("no_detours", runs::field::NO_DETOURS),
        ("prefix", runs::field::PREFIX),
        ("go", runs::field::GO),
        ("count", runs::field::COUNT),
        ("each", runs::field::EACH),
        ("watch", runs::field::WATCH),
        ("crash_codes", runs::field::CRASH_CODES),
        ("paths", runs::field::PATHS),
        ("log", runs::field::LOG),
        ("breakpoints", runs::field::BREAKPOINTS),
        ("learned", runs::field::LEARNED),
        ("report", runs::field::REPORT),
        ("started", runs::field::STARTED),
        ("finished", runs::field::FINISHED),
        ("shown", runs::field::SHOWN),
        ("began", runs::field::BEGAN),
        ("stopped", runs::field::STOPPED),
        ("why", runs::field::WHY),
        ("detail", runs::field::DETAIL),
        ("pages", runs::field::PAGES),
        ("prologue_calls", runs::field::PROLOGUE_CALLS),
        ("child", runs::field::CHILD),
        ("ended", runs::field::ENDED),
        ("status", runs::field::STATUS),
        ("lasting_child", runs::field::LASTING_CHILD),
        ("lasting_ended", runs::field::LASTING_ENDED),
        ("lasting_status", runs::field::LASTING_STATUS),
    ];

    #[test]
    fn constants_are_those_of_the_header() {
        assert_eq!(header_constant("FFUZZ_CHANNEL_MAGIC"), MAGIC);
        assert_eq!(header_constant("FFUZZ_CHANNEL_VERSION"), VERSION);
        assert_eq!(header_constant("FFUZZ_CHANNEL_HEADER") as usize, HEADER);
        assert_eq!(u64::from(header_constant("FFUZZ_PAGE")), PAGE);
        assert_eq!(header_constant("FFUZZ_FEATURE_COPIED_COUNTERS"), COPIED_COUNTERS);
        assert_eq!(header_constant("FFUZZ_FEATURE_RUNS"), RUNS);
        assert_eq!(header_constant("FFUZZ_FEATURE_SNAPSHOT"), SNAPSHOT);
        assert_eq!(header_constant("FFUZZ_FEATURE_PATHS"), PATHS);
        assert_eq!(header_constant("FFUZZ_FEATURE_LOG"), LOG);
        assert_eq!(header_constant("FFUZZ_LOG_SLOTS") as usize, LOG_SLOTS);
        assert_eq!(header_constant("FFUZZ_MOST_COMPARISONS") as usize, MOST_COMPARISONS);
        assert_eq!(header_constant("FFUZZ_LOG_ARENA") as usize, LOG_ARENA);
        assert_eq!(header_constant("FFUZZ_INPUT_OFFSET") as usize, runs::INPUT);
        assert_eq!(header_constant("FFUZZ_LEFT_OFFSET") as usize, runs::LEFT);
        assert_eq!(header_constant("FFUZZ_RUNS_OFFSET") as usize, runs::RUNS);
        assert_eq!(header_constant("FFUZZ_CASES_OFFSET") as usize, runs::CASES);
        assert_eq!(header_constant("FFUZZ_PATHS_OFFSET") as usize, runs::PATHS);
        assert_eq!(header_constant("FFUZZ_MOST_CASES") as usize, runs::MOST_CASES);
        assert_eq!(header_constant("FFUZZ_ARENA") as usize, runs::ARENA);
    }

    /// Asks the C compiler for the offsets of every field that is mirrored here.
    #[test]
    fn offsets_are_those_of_the_header() {
        let fields = [
            ("magic", field::MAGIC),
            ("version", field::VERSION),
            ("accepted", field::ACCEPTED),
            ("features", field::FEATURES),
            ("size", field::SIZE),
            ("map_offset", field::MAP_OFFSET),
            ("map_size", field::MAP_SIZE),
            ("modules_offset", field::MODULES_OFFSET),
            ("domains_offset", field::DOMAINS_OFFSET),
            ("dsf_offset", field::DSF_OFFSET),
            ("touched_offset", field::TOUCHED_OFFSET),
            ("module_count", field::MODULE_COUNT),
            ("domain_count", field::DOMAIN_COUNT),
            ("dsf_total", field::DSF_TOTAL),
            ("touched_capacity", field::TOUCHED_CAPACITY),
            ("touched_count", field::TOUCHED_COUNT),
            ("offered", field::OFFERED),
            ("arena_offset", field::ARENA_OFFSET),
            ("virgin_offset", field::VIRGIN_OFFSET),
            ("bars_offset", field::BARS_OFFSET),
            ("refused", field::REFUSED),
            ("late_count", field::LATE_COUNT),
            ("late_name", field::LATE_NAME),
            ("log_offset", field::LOG_OFFSET),
            ("absent", field::ABSENT),
            ("absent_alone", field::ABSENT_ALONE),
            ("rejected", field::REJECTED),
        ];
        let mut source = String::from("#include <stddef.h>\n#include \"channel.h\"\n");
        for (name, offset) in fields {
            source += &format!(
                "_Static_assert(offsetof(struct ffuzz_channel, {name}) == {offset}, \"{name}\");\n"
            );
        }
        source += &format!(
            "_Static_assert(sizeof(struct ffuzz_domain) == {DOMAIN_BYTES}, \"domain\");\n\
             _Static_assert(offsetof(struct ffuzz_domain, name) == 16, \"name\");\n\
             _Static_assert(sizeof(((struct ffuzz_domain *)0)->name) == {DOMAIN_NAME}, \"name\");\n\
             _Static_assert(sizeof(struct ffuzz_module) == {MODULE_BYTES}, \"module\");\n\
             _Static_assert(offsetof(struct ffuzz_module, counters) == 8, \"counters\");\n\
             _Static_assert(offsetof(struct ffuzz_module, name) == 16, \"name\");\n\
             _Static_assert(sizeof(((struct ffuzz_module *)0)->name) == {MODULE_NAME}, \"name\");\n\
             _Static_assert(sizeof(((struct ffuzz_channel *)0)->late_name) == {LATE_NAME}, \"late\");\n"
        );
        let log = [
            ("count", LOG_COUNT),
            ("used", LOG_USED),
            ("seen", LOG_SEEN),
            ("entries", LOG_ENTRIES),
            ("arena", LOG_BYTES),
        ];
        for (name, offset) in log {
            source += &format!(
                "_Static_assert(offsetof(struct ffuzz_log, {name}) == {offset}, \"{name}\");\n"
            );
        }
        source += &format!(
            "_Static_assert(sizeof(struct ffuzz_comparison) == {COMPARISON}, \"comparison\");\n"
        );
        for (name, offset) in RUN_FIELDS {
            source += &format!(
                "_Static_assert(offsetof(struct ffuzz_runs, {name}) == {offset}, \"{name}\");\n"
            );
        }
        source += &format!(
            "_Static_assert(sizeof(((struct ffuzz_input *)0)->path) == {}, \"path\");\n",
            runs::INPUT_PATH
        );
        source += "_Static_assert(sizeof(struct ffuzz_case) == 8, \"case\");\n\
                   _Static_assert(FFUZZ_TICK == 256, \"tick\");\n\
                   _Static_assert(FFUZZ_RUNS_OFFSET + sizeof(struct ffuzz_runs) <= FFUZZ_PATHS_OFFSET, \"runs\");\n\
                   _Static_assert(FFUZZ_PATHS_OFFSET + 8 * FFUZZ_MOST_CASES <= FFUZZ_CASES_OFFSET, \"paths\");\n\
                   _Static_assert(FFUZZ_CASES_OFFSET + 8 * FFUZZ_MOST_CASES <= FFUZZ_CHANNEL_HEADER, \"cases\");\n";
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("offsets.c");
        std::fs::write(&file, source).unwrap();
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime");
        let status = std::process::Command::new("cc")
            .args(["-fsyntax-only", "-I", include])
            .arg(file)
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn offer_with(
        fill: impl FnOnce(&Offer, &mut SharedMap),
    ) -> Result<Option<Channel>, TargetError> {
        let offer = Offer::new(false).unwrap();
        memory::resize(&offer.fd, 5 * HEADER).unwrap();
        let mut target = SharedMap::file(&offer.fd, 5 * HEADER).unwrap();
        fill(&offer, &mut target);
        accepted(offer)
    }

    fn accepted(offer: Offer) -> Result<Option<Channel>, TargetError> {
        Ok(match offer.accept()? {
            OfferAnswer::Accepted(channel) => Some(*channel),
            OfferAnswer::Refused(_) | OfferAnswer::Unknown => None,
        })
    }

    /// Each part of the channel in the tests has the size of the header.
    const PART: u32 = HEADER as u32;

    fn fill_well(target: &mut SharedMap) {
        let mut put = |offset: usize, value: u32| target.words_mut(offset, 1)[0] = value;
        put(field::ACCEPTED, VERSION);
        put(field::SIZE, 5 * PART);
        put(field::MAP_OFFSET, PART);
        put(field::MAP_SIZE, 10);
        put(field::DOMAINS_OFFSET, 2 * PART);
        put(field::DOMAIN_COUNT, 1);
        put(2 * HEADER + 4, 7);
        put(field::DSF_OFFSET, 3 * PART);
        put(field::DSF_TOTAL, 7);
        put(field::TOUCHED_OFFSET, 4 * PART);
        put(field::TOUCHED_CAPACITY, 7);
    }

    #[test]
    fn runs_need_both_sides() {
        let runs = |offered, features| {
            let offer = Offer::new(offered).unwrap();
            let size = 5 * HEADER + runs::ARENA + 2 * HEADER;
            memory::resize(&offer.fd, size).unwrap();
            let mut target = SharedMap::file(&offer.fd, size).unwrap();
            fill_well(&mut target);
            let mut put = |offset: usize, value: u32| target.words_mut(offset, 1)[0] = value;
            put(field::FEATURES, features);
            put(field::SIZE, size as u32);
            put(field::ARENA_OFFSET, 5 * PART);
            put(field::VIRGIN_OFFSET, 5 * PART + runs::ARENA as u32);
            put(field::BARS_OFFSET, 6 * PART + runs::ARENA as u32);
            accepted(offer).unwrap().unwrap().runs.is_some()
        };
        assert!(runs(true, RUNS));
        // An older runtime, and one that accepts more than was offered.
        assert!(!runs(true, COPIED_COUNTERS) && !runs(false, RUNS));
    }

    #[test]
    fn a_silent_target_has_no_channel() {
        assert!(offer_with(|_, _| ()).unwrap().is_none());
    }

    #[test]
    fn an_accepted_channel_shows_its_regions() {
        let channel = offer_with(|_, target| fill_well(target)).unwrap().unwrap();
        assert_eq!((channel.edges().len(), channel.dsf().len()), (10, 7));
        assert_eq!(channel.domains[0].size, 7);
    }

    #[test]
    fn regions_outside_of_the_channel_are_refused() {
        let bad = [
            (field::MAP_SIZE, 5 * PART),
            (field::MAP_OFFSET, 100),
            (field::MAP_OFFSET + 4, 1),
            (field::DSF_TOTAL, 1 << 20),
            (field::DOMAIN_COUNT, 1 << 30),
            (field::TOUCHED_OFFSET, 0xffff_f000),
            (field::SIZE + 4, 1),
            (field::ACCEPTED, VERSION + 1),
            (2 * HEADER, 1),
            (2 * HEADER + 4, 8),
            (2 * HEADER + 8, 9),
        ];
        for (offset, value) in bad {
            let result = offer_with(|_, target| {
                fill_well(target);
                target.words_mut(offset, 1)[0] = value;
            });
            assert!(result.is_err(), "field at {offset} = {value} was accepted");
        }
    }

    #[test]
    fn impossible_touched_keys_are_dropped_and_an_overflow_is_seen() {
        let mut channel = offer_with(|_, target| {
            fill_well(target);
            target.words_mut(4 * HEADER, 3).copy_from_slice(&[6, 7, 2]);
            target.words_mut(field::TOUCHED_COUNT, 1)[0] = 3;
        })
        .unwrap()
        .unwrap();
        let mut keys = Vec::new();
        assert!(channel.copy_touched(&mut keys));
        assert_eq!(keys, [6, 2]);
        channel.memory.words_mut(field::TOUCHED_COUNT, 1)[0] = 8;
        assert!(!channel.copy_touched(&mut keys));
    }
}
