//! What an earlier process of the same campaign left in `fuzzer_stats`.

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
}

impl Earlier {
    /// Reads the file of an instance folder; what is missing or damaged counts as zero.
    #[must_use]
    pub fn read(instance: &Path) -> Self {
        let text = std::fs::read_to_string(instance.join("fuzzer_stats")).unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let values = stats::parse(text);
        let number = |name: &str| values.get(name).and_then(|v| v.parse().ok()).unwrap_or(0);
        Self {
            run_time: Duration::from_secs(number("run_time")),
            execs: number("execs_done"),
            cycles: number("cycles_done"),
            found: number("corpus_found"),
            imported: number("corpus_imported"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_damage_counts_as_zero() {
        let text = "run_time          : 12\nexecs_done        : 4000\ncycles_done       : x\n";
        let earlier = Earlier::parse(text);
        assert_eq!((earlier.run_time.as_secs(), earlier.execs, earlier.cycles), (12, 4000, 0));
        assert_eq!(Earlier::parse(""), Earlier::default());
    }
}
