//! Counters of an earlier process of the same campaign, from `fuzzer_stats`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::stats;

/// Counters that a resumed campaign continues.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Earlier {
    pub run_time: Duration,
    pub execs: u64,
    pub cycles: u64,
    pub found: u64,
    pub imported: u64,
    /// Unix seconds.
    pub last_find: u64,
    pub last_crash: u64,
    pub last_hang: u64,
    /// Content of the queue, until it is read again.
    pub corpus: u64,
    pub favored: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub max_depth: u32,
    pub edges: u64,
    /// True if the file has an impossible number; it counts as zero.
    pub is_damaged: bool,
}

/// Maximum of a number; larger than any real one, and far from an overflow.
const MOST: u64 = 1 << 48;
/// Maximum run time: about a thousand years.
const LONGEST_S: u64 = 1 << 35;

impl Earlier {
    /// Reads the file of an instance folder; missing or damaged numbers count as zero.
    #[must_use]
    pub fn read(instance: &Path) -> Self {
        Self::from(&stats::read(instance))
    }

    fn from(values: &BTreeMap<String, String>) -> Self {
        let mut is_damaged = false;
        let mut number = |name: &str, most: u64| match values.get(name).map(|value| value.parse()) {
            Some(Ok(number)) if number <= most => number,
            None => 0,
            Some(_) => {
                is_damaged = true;
                0
            }
        };
        let run_time = Duration::from_secs(number("run_time", LONGEST_S));
        let depth = number("max_depth", u32::MAX.into());
        let mut number = |name| number(name, MOST);
        Self {
            run_time,
            max_depth: u32::try_from(depth).unwrap_or(0),
            execs: number("execs_done"),
            cycles: number("cycles_done"),
            found: number("corpus_found"),
            imported: number("corpus_imported"),
            last_find: number("last_find"),
            last_crash: number("last_crash"),
            last_hang: number("last_hang"),
            corpus: number("corpus_count"),
            favored: number("corpus_favored"),
            crashes: number("saved_crashes"),
            hangs: number("saved_hangs"),
            edges: number("edges_found"),
            is_damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_damage_counts_as_zero() {
        let text = "run_time          : 12\nexecs_done        : 4000\ncycles_done       : x\n";
        let earlier = Earlier::from(&stats::parse(text));
        assert_eq!((earlier.run_time.as_secs(), earlier.execs, earlier.cycles), (12, 4000, 0));
        assert!(earlier.is_damaged);
        assert_eq!(Earlier::from(&stats::parse("")), Earlier::default());
        let text = format!("run_time : {0}\nexecs_done : {0}\nmax_depth : {0}\n", u64::MAX);
        let earlier = Earlier::from(&stats::parse(&text));
        assert_eq!(earlier, Earlier { is_damaged: true, ..Earlier::default() });
    }
}
