//! Guidance by domains (`-p`): chooses the next domain to serve, and one of its owners.

use super::bandit::Bandit;
use crate::corpus::{Corpus, Seed, SeedId};
use crate::domain::Domain;
use crate::mutate::{Rng, below};

/// Arm of edges; domain number `n` has arm `n + 1`.
const EDGES: usize = 0;

/// Serves edges and domains in proportion to their yield.
#[derive(Debug)]
pub(super) struct Guide {
    /// First key after each domain.
    ends: Vec<u32>,
    /// See [`Domain::leads_to_edges`].
    leads_to_edges: Vec<bool>,
    /// See [`Domain::favors_quick_runs`].
    favors_quick_runs: Vec<bool>,
    bandit: Bandit,
    /// Per domain: its favoured owners, ascending.
    owners: Vec<Vec<SeedId>>,
    /// Arm of the current turn, and the finds of the turn.
    serving: usize,
    finds: u64,
    /// Last seed counted as a find.
    last: Option<SeedId>,
}

impl Guide {
    pub(super) fn new(domains: &[Domain]) -> Self {
        Self {
            ends: domains.iter().map(Domain::end).collect(),
            favors_quick_runs: domains.iter().map(Domain::favors_quick_runs).collect(),
            leads_to_edges: domains.iter().map(Domain::leads_to_edges).collect(),
            bandit: Bandit::new(domains.len() + 1),
            owners: vec![Vec::new(); domains.len()],
            serving: EDGES,
            finds: 0,
            last: None,
        }
    }

    pub(super) fn domain_of(&self, key: u32) -> usize {
        self.ends.partition_point(|end| *end <= key)
    }

    /// Replaces the owners of each domain's keys.
    pub(super) fn set_owners(&mut self, owners: impl Iterator<Item = (usize, SeedId)>) {
        self.owners.iter_mut().for_each(Vec::clear);
        for (domain, id) in owners {
            if let Some(list) = self.owners.get_mut(domain) {
                list.push(id);
            }
        }
        for list in &mut self.owners {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// Counts a new seed as a find of the turn if it brought edges, or moved the served domain. Excludes domains that
    /// lead to edges: nearly every comparison can get a bit closer, so their values improve all the time.
    pub(super) fn found(&mut self, id: SeedId, domain: Option<usize>) {
        let leads = |domain: usize| self.leads_to_edges.get(domain).is_some_and(|leads| *leads);
        let counts = domain.is_none_or(|domain| domain + 1 == self.serving && !leads(domain));
        if counts && self.last != Some(id) {
            self.last = Some(id);
            self.finds += 1;
        }
    }

    /// Ends the turn, which cost as much as `cost` runs of average length.
    pub(super) fn turn_over(&mut self, cost: f64) {
        self.bandit.note(self.serving, cost, std::mem::take(&mut self.finds));
    }

    /// True if the current turn serves a domain that may look for slow inputs.
    pub(super) fn may_serve_slow(&self) -> bool {
        let quick = |domain: usize| self.favors_quick_runs.get(domain).copied();
        self.serving.checked_sub(1).and_then(quick).is_some_and(|quick| !quick)
    }

    /// True if the current turn serves a domain.
    pub(super) fn serves_domain(&self) -> bool {
        self.serving != EDGES
    }

    /// Chooses the arm to serve and returns an owner of its domain; None for edges. In a domain that leads to edges,
    /// seeds with the least `slowness` come first.
    pub(super) fn pick(
        &mut self,
        corpus: &Corpus,
        rng: &mut Rng,
        slowness: impl Fn(&Seed) -> u32,
    ) -> Option<SeedId> {
        let owners = &self.owners;
        let open = |arm: usize| arm == EDGES || !owners[arm - 1].is_empty();
        self.serving = self.bandit.draw(rng, open).unwrap_or(EDGES);
        let domain = self.serving.checked_sub(1)?;
        let list = self.owners.get(domain)?;
        match self.leads_to_edges[domain] {
            true => draw_owner(corpus, list, rng, slowness),
            false => draw_owner(corpus, list, rng, |_| 0),
        }
    }
}

/// Draws an owner: of the quickest unfuzzed ones the newest, because values climb step by step; otherwise by weight,
/// which falls with the number of turns.
fn draw_owner(
    corpus: &Corpus,
    owners: &[SeedId],
    rng: &mut Rng,
    slowness: impl Fn(&Seed) -> u32,
) -> Option<SeedId> {
    let usable = || owners.iter().copied().filter(|id| !corpus[*id].disabled);
    let fresh = usable().rev().filter(|id| corpus[*id].fuzzed == 0);
    if let Some(fresh) = fresh.min_by_key(|id| slowness(&corpus[*id])) {
        return Some(fresh);
    }
    let weight = |id: SeedId| 4096 / (corpus[id].fuzzed.min(4095) + 1);
    let total: u32 = usable().map(weight).fold(0, u32::saturating_add);
    let mut left = below(rng, total.max(1));
    usable().find(|id| {
        let weight = weight(*id);
        let found = left < weight;
        left = left.saturating_sub(weight);
        found
    })
}
