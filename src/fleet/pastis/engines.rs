//! Data about this client for the broker: engines on offer, this machine, and numbers of a campaign.

use std::fs;

use super::messages::{
    Architecture, EngineMessage, EngineState, HelloMessage, Platform, Telemetry,
};
use ffuzz_event::Snapshot;

/// Common version of this program and of the Python package with the descriptors.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Engine names with the domains that guide them, and the Python modules of their descriptors. A broker
/// assigns each new client the engine that fewest clients have, among those for which it has a target.
pub const ENGINES: &[(&str, &str)] = &[
    ("FFUZZ", "pastisffuzz.addon"),
    ("FFUZZ-CMP", "pastisffuzz.cmp"),
    ("FFUZZ-CMP-MEM", "pastisffuzz.cmp_mem"),
    ("FFUZZ-DIFF", "pastisffuzz.diff"),
    ("FFUZZ-HEAP", "pastisffuzz.heap"),
    ("FFUZZ-MEM", "pastisffuzz.mem"),
    ("FFUZZ-OUT", "pastisffuzz.out"),
    ("FFUZZ-PERF", "pastisffuzz.perf"),
    ("FFUZZ-SLACK", "pastisffuzz.slack"),
    ("FFUZZ-SLOW", "pastisffuzz.slow"),
    ("FFUZZ-STACK", "pastisffuzz.stack"),
    ("FFUZZ-VALID", "pastisffuzz.valid"),
];
/// Maximum length of a host name, which becomes part of file names.
const LONGEST_HOST: usize = 60;

/// The domains that guide the engine of this name.
pub(crate) fn domains(name: &str) -> Vec<String> {
    name.split('-').skip(1).map(str::to_lowercase).collect()
}

/// Offers all engines, or only the one of this name.
#[must_use]
pub fn hello(only: Option<&str>) -> HelloMessage {
    let engine = |(name, module): &(&str, &str)| EngineMessage {
        name: (*name).into(),
        version: VERSION.into(),
        module: (*module).into(),
    };
    let offered = ENGINES.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let host = nix::unistd::gethostname().unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    HelloMessage {
        architecture: ARCHITECTURE as i32,
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        memory: memory(&read("/proc/meminfo"), "MemTotal:") * 1024,
        engines: offered.map(engine).collect(),
        host: host_name(&host.to_string_lossy()),
        platform: Platform::Linux as i32,
    }
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Architecture = Architecture::X86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Architecture = Architecture::Aarch64;

/// Host name in a form from which a broker can make file names, which it splits at `_`.
fn host_name(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
    let name = name.replace(|letter| !plain(letter), "-");
    let name = name.trim_matches(['.', '-']);
    let name = &name[..name.len().min(LONGEST_HOST)];
    if name.is_empty() { "host".into() } else { name.into() }
}

/// The load of this machine between two calls.
#[derive(Debug, Default)]
pub(crate) struct MachineLoad {
    /// Processor ticks at the last call: busy, and total.
    last: (u64, u64),
}

impl MachineLoad {
    /// Numbers for the broker, the same as in `fuzzer_stats`. Unknown numbers are 0.
    pub(crate) fn telemetry(&mut self, numbers: Option<&Snapshot>, running: bool) -> Telemetry {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let state = if running { EngineState::Running } else { EngineState::Idle };
        let own = Telemetry {
            state: state as i32,
            cpu: self.processors(&read("/proc/stat")),
            memory: used_memory(&read("/proc/meminfo")),
            ..Telemetry::default()
        };
        let Some(s) = numbers else { return own };
        Telemetry {
            execs_per_sec: s.runs.execs_per_sec as u32,
            execs: s.runs.execs,
            cycles: small(s.cycles.cycles_done),
            hangs: small(s.finds.saved_hangs),
            edges: small(s.coverage.edges_found),
            paths: small(s.corpus.corpus_count),
            last_find: s.finds.last_find_at,
            ..own
        }
    }

    /// Processor load in percent since the last call, from the first line of /proc/stat.
    fn processors(&mut self, stat: &str) -> f32 {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
        // The fourth is idle time, the fifth I/O wait.
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        let all: u64 = ticks.iter().take(8).sum();
        let now = (all.saturating_sub(idle), all);
        let (busy, all) = (now.0.saturating_sub(self.last.0), now.1.saturating_sub(self.last.1));
        self.last = now;
        busy as f32 * 100.0 / all.max(1) as f32
    }
}

fn used_memory(meminfo: &str) -> f32 {
    let (all, free) = (memory(meminfo, "MemTotal:"), memory(meminfo, "MemAvailable:"));
    all.saturating_sub(free) as f32 * 100.0 / all.max(1) as f32
}

/// A value of /proc/meminfo in kB.
fn memory(meminfo: &str, name: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::{Corpus, Coverage, Cycles, Finds, Runs};

    #[test]
    fn host_names_are_safe_in_file_names() {
        for (name, expected) in [
            ("build-7.lab", "build-7.lab"),
            ("my_host/../x", "my-host-..-x"),
            ("_", "host"),
            ("", "host"),
            ("..", "host"),
            ("größe", "gr--e"),
        ] {
            assert_eq!(host_name(name), expected);
        }
        assert_eq!(host_name(&"x".repeat(200)).len(), LONGEST_HOST);
    }

    #[test]
    fn names_of_engines_have_what_a_broker_expects() {
        for (name, module) in ENGINES {
            assert!(!name.contains(['_', '/']), "{name}");
            let domains: Vec<_> = name.split('-').skip(1).map(str::to_lowercase).collect();
            let last = if domains.is_empty() { "addon".into() } else { domains.join("_") };
            assert_eq!(*module, format!("pastisffuzz.{last}"));
        }
        assert_eq!(domains("FFUZZ-CMP-MEM"), ["cmp", "mem"]);
        assert!(domains("FFUZZ").is_empty());
    }

    #[test]
    fn load_is_that_between_two_looks() {
        let mut machine = MachineLoad::default();
        machine.processors("cpu 100 0 0 100 0 0 0 0 0 0\n");
        let percent = machine.processors("cpu 130 0 0 160 10 0 0 0 7 0\ncpu0 1 2 3\n");
        assert!((percent - 30.0).abs() < 0.01, "{percent}");
        let percent = used_memory("MemTotal:   1000 kB\nMemFree: 1 kB\nMemAvailable:  250 kB\n");
        assert!((percent - 75.0).abs() < 0.01, "{percent}");
        assert!(used_memory("") == 0.0 && machine.processors("") == 0.0);
    }

    #[test]
    fn telemetry_has_the_numbers_of_the_statistics() {
        let snapshot = Snapshot {
            runs: Runs { execs: 1 << 40, execs_per_sec: 99.9, ..Runs::default() },
            cycles: Cycles { cycles_done: 3, ..Cycles::default() },
            finds: Finds { saved_hangs: 2, last_find_at: 7, ..Finds::default() },
            coverage: Coverage { edges_found: 16, ..Coverage::default() },
            corpus: Corpus { corpus_count: 9, ..Corpus::default() },
            ..Snapshot::default()
        };
        let sent = MachineLoad::default().telemetry(Some(&snapshot), true);
        assert_eq!((sent.execs, sent.execs_per_sec, sent.cycles), (1 << 40, 99, 3));
        assert_eq!((sent.hangs, sent.edges, sent.paths, sent.last_find), (2, 16, 9, 7));
        assert_eq!((sent.blocks, sent.state), (0, EngineState::Running as i32));
        let hello = hello(None);
        assert!(hello.memory > 1 << 20 && hello.cpus > 0 && hello.engines.len() == ENGINES.len());
        assert_eq!(super::hello(Some("FFUZZ-CMP")).engines[0].name, "FFUZZ-CMP");
    }
}
