//! Where a corpus is stuck: forks with branches that no run has taken, and the comparisons that decide them.

use crate::coverage::frontier::{Fork, Frontier};
use ffuzz_comparisons::blockers::{Blocker, Blockers};

/// A place beyond which no run gets.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// None if the control flow of the target is unknown: then only the comparison is set.
    pub fork: Option<Fork>,
    /// The comparison that decides the fork, if logs show that it always has the same result.
    pub comparison: Option<Blocker>,
    /// Site of a comparison at this place in the source, if there is one.
    pub site: Option<u32>,
    /// Counter that shows which runs reach the fork, and the first counter behind it. The latter gives the source
    /// position if no comparison does.
    pub counter: Option<u32>,
    pub behind: Option<u32>,
}

/// Lists at most `most` places, those with the most counters behind them first. If the control flow of the target is
/// unknown, lists the comparisons that always had the same result.
#[must_use]
pub fn stuck(frontier: &Frontier, blockers: &Blockers, most: usize) -> Vec<Stuck> {
    if !frontier.is_known() {
        let alone = |comparison: Blocker| Stuck {
            fork: None,
            site: Some(comparison.site),
            comparison: Some(comparison),
            counter: None,
            behind: None,
        };
        return blockers.list(most).into_iter().map(alone).collect();
    }
    let explained = |fork: &Fork| {
        let sites = frontier.sites(fork.block);
        let known = sites.iter().filter_map(|site| blockers.get(*site));
        let comparison = known.min_by_key(|one| (!one.is_never_equal(), one.distance, one.site));
        Stuck {
            fork: Some(*fork),
            site: comparison.as_ref().map(|one| one.site).or(sites.first().copied()),
            comparison,
            counter: frontier.counter_of(fork.block),
            behind: frontier.first_counter(fork.to),
        }
    };
    frontier.forks().iter().take(most).map(explained).collect()
}
