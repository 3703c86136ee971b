//! Where a corpus is stuck: the forks at which all of its runs go the same ways, and the comparisons that decide there.

use crate::comparison::{Blocker, Blockers};
use crate::coverage::frontier::{Fork, Frontier};

/// A place that no run goes on from.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// None if the control flow of the target is not known: then the comparison is all there is.
    pub fork: Option<Fork>,
    /// The comparison that decides there, if a log has shown that it always comes to the same.
    pub comparison: Option<Blocker>,
    /// The number of a comparison at this place in the source, if there is one.
    pub site: Option<u32>,
    /// A counter that shows which runs come there, and the first one behind it, which has the place if no comparison has.
    pub counter: Option<u32>,
    pub behind: Option<u32>,
}

/// At most `most` places: those first behind which most lies, by the counters of the target. Of a target whose control flow
/// is not known these are the comparisons that always came to the same.
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
