//! Scheduling: choice of the next seed, and the budget of its turn.
//!
//! Pure: no I/O and no clock; the random generator is a parameter.

pub(crate) mod bandit;
mod energy;
mod favored;
mod guide;
pub mod ledger;
mod pending;
mod preferred;
mod weights;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::energy::Budget;
use self::energy::Means;
use self::favored::{Claimant, EdgeWinners, KeyOwners};
use self::guide::Guide;
use self::pending::Pending;
use self::preferred::Preferred;
use self::weights::AliasTable;
use crate::corpus::{Corpus, Seed, SeedId};
use crate::domain::Domain;
use crate::mutate::{Rng, below};
use crate::options::Schedule;

/// While favourites are pending, one pick in this number ignores them (AFL skips the other seeds with 99 %).
const PENDING_LOTTERY: u32 = 100;
/// Skip probability of a seed that is not favoured, percent: if it was fuzzed or in the first cycle, and if it is new
/// in a later cycle (AFL).
const SKIP_OLD: u32 = 95;
const SKIP_NEW: u32 = 75;
/// Minimum number of runs per seed between computations of the weights, so that the cost per run does not grow with the
/// corpus. New seeds wait for their weight, not for their turn: they are pending.
const RUNS_PER_WEIGHT: u64 = 8;
/// Number of seeds up to which none is skipped (AFL).
const SKIP_NONE_UP_TO: u32 = 10;
/// Maximum number of skips in a row: with 99 % of skips, one lottery in thirteen ends here.
const MAX_SKIPS: u32 = 256;
/// Size of the table of path counts: 2^21 entries of 4 bytes, indexed by the low bits of the path hash (AFL).
const PATH_TABLE: usize = 1 << 21;

/// Options for choosing seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleOptions {
    pub schedule: Schedule,
    /// `-s`: measured times must not change a decision.
    pub fixed_seed: bool,
    /// `-Z`: seeds in order of the queue.
    pub sequential: bool,
    /// `-p`: owners of domain keys are favoured as well.
    pub guided: bool,
}

/// Chooses seeds. The caller reports every seed ([`Scheduler::added`]), every improved key (`Scheduler::owns`) and
/// every key whose value a seed also reaches (`Scheduler::reaches`); a turn is `cull`, `pick`, `energy`, `picked`.
#[derive(Debug)]
pub struct Scheduler {
    options: ScheduleOptions,
    winners: EdgeWinners,
    owners: KeyOwners,
    guide: Guide,
    means: Means,
    /// Per seed: true if `added` has counted it.
    known: Vec<bool>,
    /// Number of seeds that were not disabled when added.
    enabled: u32,
    /// True if the favourites must be chosen again.
    stale_favored: bool,
    choices: u64,
    /// True if the weights must be computed again.
    stale_weights: bool,
    /// Runs since the weights were computed.
    runs: u64,
    pending: Pending,
    preferred: Preferred,
    /// Per seed, see [`Scheduler::note_ahead`].
    ahead: Vec<f32>,
    table: AliasTable,
    /// Runs per path hash; empty unless the schedule needs them.
    path_counts: Vec<u32>,
    cycles: u64,
    /// Picks in the present cycle.
    picks: u32,
    /// Next seed in sequential mode.
    cursor: usize,
}

impl Scheduler {
    /// Creates a scheduler for an edge map of `map_size` edges; larger indices in traces are allowed.
    #[must_use]
    pub(crate) fn new(options: ScheduleOptions, map_size: usize, domains: &[Domain]) -> Self {
        let paths = if needs_path_counts(options.schedule) { PATH_TABLE } else { 0 };
        Self {
            options,
            winners: EdgeWinners::new(map_size),
            owners: KeyOwners::default(),
            guide: Guide::new(domains),
            means: Means::default(),
            known: Vec::new(),
            enabled: 0,
            stale_favored: false,
            choices: 0,
            stale_weights: true,
            runs: 0,
            pending: Pending::default(),
            preferred: Preferred::default(),
            ahead: Vec::new(),
            table: AliasTable::default(),
            path_counts: vec![0; paths],
            cycles: 0,
            picks: 0,
            cursor: 0,
        }
    }

    /// Reports a seed that was added to the corpus or has a new trace. Seeds that are no longer the best for any edge
    /// lose their trace, which would be most of the memory of a large corpus.
    pub fn added(&mut self, corpus: &mut Corpus, id: SeedId) {
        self.stale_weights = true;
        if corpus[id].disabled {
            return;
        }
        if self.first_time(id) {
            self.enabled += 1;
            self.means.count(&corpus[id]);
            if corpus[id].new_edge {
                self.guide.found(id, None);
            }
        }
        let by_length = self.length_only();
        if self.winners.challenge(corpus, id, |seed| cost(seed, by_length)) {
            self.stale_favored = true;
        }
    }

    /// Reports that the seed improved a domain key. `bits` 0: the key has one slot, and the new owner replaces the old
    /// one (MAX, MIN). Otherwise each gained bit has its own owner.
    pub(crate) fn owns(&mut self, corpus: &Corpus, id: SeedId, key: u32, bits: u32) {
        self.owners.insert(self.claimant(corpus, id), key, bits);
        self.guide.found(id, Some(self.guide.domain_of(key)));
        self.stale_favored |= self.options.guided;
    }

    /// Reports that the seed reaches the value of a key's owner (`bits` as in [`Scheduler::owns`]). It becomes the
    /// owner if it is cheaper, or if it is a waypoint and not much more expensive.
    pub(crate) fn reaches(&mut self, corpus: &Corpus, id: SeedId, key: u32, bits: u32) {
        let by_length = self.length_only();
        let seed = self.claimant(corpus, id);
        if self.owners.challenge(seed, key, bits, |owner| cost(&corpus[owner], by_length)) {
            self.stale_favored |= self.options.guided;
        }
    }

    /// Restores the keys that a seed owned before a restart, without counting finds.
    pub fn gives_back(&mut self, corpus: &Corpus, id: SeedId, keys: &[(u32, u32)]) {
        for (key, bits) in keys {
            self.owners.insert(self.claimant(corpus, id), *key, *bits);
        }
        self.stale_favored |= self.options.guided;
    }

    /// Keys by owner, with their bits (0: the whole key).
    #[must_use]
    pub fn claims(&self) -> BTreeMap<SeedId, Vec<(u32, u32)>> {
        let mut claims: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (owner, slot) in self.owners.claims() {
            claims.entry(owner).or_default().push(slot);
        }
        claims
    }

    fn claimant(&self, corpus: &Corpus, id: SeedId) -> Claimant {
        let seed = &corpus[id];
        Claimant { id, price: cost(seed, self.length_only()), ahead: seed.waypoint }
    }

    /// True if the turn serves a domain and the seed owns a key: it is a step towards a higher value.
    #[must_use]
    pub(crate) fn climbs(&self, id: SeedId) -> bool {
        self.options.guided && self.guide.serves_domain() && self.owners.is_owner(id)
    }

    /// Cheapest seed that hits an edge; None if no seed does.
    #[must_use]
    pub fn best_of(&self, edge: u32) -> Option<SeedId> {
        self.winners.best_of(edge)
    }

    /// True if the seed owns a domain key.
    #[must_use]
    pub fn is_owner(&self, id: SeedId) -> bool {
        self.owners.is_owner(id)
    }

    /// Chooses the favourites again if anything changed: seeds that together hit every edge, and, under guidance, seeds
    /// that together own every key.
    pub(crate) fn cull(&mut self, corpus: &mut Corpus) {
        if !std::mem::take(&mut self.stale_favored) {
            return;
        }
        let by_length = self.length_only();
        // Separate covers: the best seed for a key may be a detour to an edge.
        let favored = self.winners.cover(corpus);
        let owners = match self.options.guided {
            true => self.owners.cover(corpus, |seed| cost(seed, by_length)),
            false => Vec::new(),
        };
        self.choices += 1;
        corpus.iter_mut().for_each(|seed| seed.favored = false);
        for &id in favored.iter().chain(&owners) {
            corpus[id].favored = true;
        }
        if self.options.guided {
            let slots = self.owners.slots().filter(|(_, id)| corpus[*id].favored);
            let guide = &self.guide;
            let owners: Vec<_> = slots.map(|(key, id)| (guide.domain_of(key), id)).collect();
            self.guide.set_owners(owners.into_iter());
        }
        self.pending.rebuild(corpus, favored, &self.ahead);
        self.stale_weights = true;
    }

    /// Sets how much unreached code lies ahead of each seed, behind the forks to which it is the cheapest way.
    pub(crate) fn note_ahead(&mut self, ahead: Vec<f32>) {
        self.ahead = ahead;
        self.pending.order(&self.ahead);
    }

    /// Amount of code ahead of a seed, at least 0, see [`Scheduler::note_ahead`].
    pub(crate) fn ahead_of(&self, id: SeedId) -> f32 {
        self.ahead.get(id.index()).copied().unwrap_or(0.0)
    }

    /// Number of times the favourites were chosen.
    pub(crate) fn choices(&self) -> u64 {
        self.choices
    }

    /// Gives every second turn to one of `seeds`, in order; an empty list ends this.
    pub fn prefer(&mut self, seeds: Vec<SeedId>) {
        self.preferred.set(seeds);
    }

    /// Picks the seed for the next turn; None only if every seed is disabled.
    ///
    /// Under guidance, first decides whether to serve edges or one of the domains. For edges, unfuzzed favourites come
    /// first: mostly those with most code ahead (K-Scheduler, She et al., S&P 2022, uses a similar order), sometimes
    /// the oldest or the newest. Otherwise draws by weight, mostly skipping seeds that are not favoured.
    pub fn pick(&mut self, corpus: &Corpus, rng: &mut Rng) -> Option<SeedId> {
        if let Some(id) = self.preferred.pick(corpus) {
            return Some(id);
        }
        if self.options.sequential {
            return self.pick_in_order(corpus, rng);
        }
        if self.picks >= self.enabled.max(1) {
            self.picks = 0;
            self.cycles += 1;
            self.stale_weights = true;
        }
        let by_length = self.length_only();
        let guided = match self.options.guided {
            true => self.guide.pick(corpus, rng, |seed| slowness(seed, by_length)),
            false => None,
        };
        let id = match guided {
            Some(id) => id,
            None => {
                let lottery = below(rng, PENDING_LOTTERY) == 0;
                let pending = if lottery { None } else { self.pending.next(corpus, rng) };
                pending.or_else(|| self.pick_weighted(corpus, rng))?
            }
        };
        self.picks += 1;
        Some(id)
    }

    /// Ends a turn that cost as much as `cost` runs of average length: counts it and reduces the seed's handicap. Call
    /// it once per turn, after `Scheduler::energy`.
    pub fn picked(&mut self, corpus: &mut Corpus, id: SeedId, cost: f64) {
        self.guide.turn_over(cost);
        self.runs += cost as u64;
        let seed = &mut corpus[id];
        seed.fuzzed = seed.fuzzed.saturating_add(1);
        seed.handicap -= energy::handicap_step(seed.handicap);
        self.stale_weights |= seed.fuzzed == 1;
    }

    /// Budget of one stage of a turn, in time or in runs. None for a seed that schedule `coe` leaves out because its
    /// path is more common than the average.
    #[must_use]
    pub(crate) fn budget(&self, corpus: &Corpus, id: SeedId, by_time: bool) -> Option<Budget> {
        let energy = self.energy(corpus, id);
        (energy > 0).then(|| self.means.budget(&corpus[id], energy, by_time))
    }

    /// Processor time after which a mutant of the seed counts as much too slow.
    #[must_use]
    pub(crate) fn soft_limit(&self, corpus: &Corpus, id: SeedId) -> Duration {
        self.means.soft_limit(&corpus[id])
    }

    /// True if measured times may change decisions: the user did not fix the random seed.
    #[must_use]
    pub(crate) fn uses_measured_times(&self) -> bool {
        !self.options.fixed_seed
    }

    /// Energy of a turn with the seed: 100 for an average one, at most 6400, at least 1; 0 only under
    /// schedule `coe`.
    #[must_use]
    pub(crate) fn energy(&self, corpus: &Corpus, id: SeedId) -> u32 {
        self.energy_of(&corpus[id])
    }

    /// Schedule by which seeds are weighed.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        self.options.schedule
    }

    /// Changes the schedule by which seeds are weighed.
    pub fn change_schedule(&mut self, schedule: Schedule) {
        self.options.schedule = schedule;
        self.stale_weights = true;
        let paths = if needs_path_counts(schedule) { PATH_TABLE } else { 0 };
        self.path_counts.resize(paths, 0);
    }

    /// Number of finished cycles: as many picks as there are enabled seeds.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// True if the schedule wants `Scheduler::count_path` after every run.
    #[must_use]
    pub fn needs_path_counts(&self) -> bool {
        !self.path_counts.is_empty()
    }

    /// Counts a run of the path with this hash. Does nothing unless the schedule needs it.
    pub(crate) fn count_path(&mut self, hash: u64) {
        if let Some(count) = self.path_counts.get_mut(hash as usize & (PATH_TABLE - 1)) {
            *count = count.saturating_add(1);
            self.means.runs += 1;
        }
    }

    /// True for a waypoint that no longer owns anything: it stays in the queue and as a donor, but gets no turn.
    fn is_retired(&self, seed: &Seed) -> bool {
        let idle = !self.owners.is_owner(seed.id) && self.winners.won(seed.id) == 0;
        self.options.guided && seed.waypoint && !seed.new_edge && idle
    }

    /// Returns true at the first call for this seed.
    fn first_time(&mut self, id: SeedId) -> bool {
        if self.known.len() <= id.index() {
            self.known.resize(id.index() + 1, false);
        }
        !std::mem::replace(&mut self.known[id.index()], true)
    }

    /// True if run times must not decide which of two seeds is better.
    fn length_only(&self) -> bool {
        self.options.fixed_seed || matches!(self.options.schedule, Schedule::Rare | Schedule::Seek)
    }

    fn path_count(&self, seed: &Seed) -> u32 {
        let place = seed.path_hash as usize & (PATH_TABLE - 1);
        self.path_counts.get(place).copied().unwrap_or(0)
    }

    fn energy_of(&self, seed: &Seed) -> u32 {
        let context = energy::Context {
            options: self.options,
            means: &self.means,
            owner: self.climbs(seed.id) && self.guide.may_serve_slow(),
            path_count: self.path_count(seed),
            edges_won: self.winners.won(seed.id),
        };
        energy::energy(seed, &context)
    }

    fn pick_weighted(&mut self, corpus: &Corpus, rng: &mut Rng) -> Option<SeedId> {
        let worth_it = self.runs >= RUNS_PER_WEIGHT * corpus.len() as u64;
        if self.stale_weights && (worth_it || self.table.is_empty()) {
            (self.stale_weights, self.runs) = (false, 0);
            self.rebuild_weights(corpus);
        }
        // Some may have been disabled since the table was built.
        (0..MAX_SKIPS)
            .map_while(|_| self.table.draw(rng))
            .find(|id| !corpus[*id].disabled)
            .or_else(|| corpus.iter().find(|seed| !seed.disabled).map(|seed| seed.id))
    }

    fn pick_in_order(&mut self, corpus: &Corpus, rng: &mut Rng) -> Option<SeedId> {
        let pending = self.pending.exists(corpus);
        for _ in 0..MAX_SKIPS {
            let id = self.advance(corpus)?;
            if !self.skips(&corpus[id], pending, rng) {
                return Some(id);
            }
        }
        self.advance(corpus)
    }

    /// Next enabled seed in order; the end of the corpus ends a cycle.
    fn advance(&mut self, corpus: &Corpus) -> Option<SeedId> {
        for _ in 0..corpus.len() {
            if self.cursor >= corpus.len() {
                self.cursor = 0;
                self.cycles += 1;
                self.refresh_path_mean(corpus);
            }
            let id = SeedId(self.cursor as u32);
            self.cursor += 1;
            if !corpus[id].disabled {
                return Some(id);
            }
        }
        None
    }

    /// AFL's skip lottery.
    fn skips(&self, seed: &Seed, pending: bool, rng: &mut Rng) -> bool {
        if pending && (seed.fuzzed > 0 || !seed.favored) {
            return below(rng, PENDING_LOTTERY) > 0;
        }
        below(rng, 100) < self.skip_percent(seed)
    }

    fn skip_percent(&self, seed: &Seed) -> u32 {
        if seed.favored || self.enabled <= SKIP_NONE_UP_TO {
            0
        } else if seed.fuzzed > 0 || self.cycles == 0 {
            SKIP_OLD
        } else {
            SKIP_NEW
        }
    }

    /// Updates the average path count, to which schedule `coe` compares a seed's path.
    fn refresh_path_mean(&mut self, corpus: &Corpus) {
        if self.options.schedule == Schedule::Coe {
            let enabled = corpus.iter().filter(|seed| !seed.disabled);
            self.means.log_path_count =
                energy::mean(enabled.map(|seed| energy::log2(self.path_count(seed))));
        }
    }

    fn rebuild_weights(&mut self, corpus: &Corpus) {
        self.refresh_path_mean(corpus);
        let newest = corpus.len().saturating_sub(weights::NEWEST);
        let in_use = |seed: &&Seed| !seed.disabled && !self.is_retired(seed);
        let weights = corpus.iter().filter(in_use).map(|seed| {
            let weight = match self.options.schedule {
                Schedule::Rare | Schedule::Seek => f64::from(self.energy_of(seed)),
                schedule => weights::weight(
                    seed,
                    &weights::Context {
                        schedule,
                        means: &self.means,
                        ignore_time: self.options.fixed_seed,
                        path_count: self.path_count(seed),
                        newest: seed.id.index() >= newest,
                    },
                ),
            };
            // The weight includes the lottery: drawing and then skipping would read memory for nothing.
            (seed.id, weight * f64::from(100 - self.skip_percent(seed)))
        });
        self.table = AliasTable::new(weights);
    }
}

fn needs_path_counts(schedule: Schedule) -> bool {
    use Schedule::{Coe, Fast, Lin, Quad, Rare};
    matches!(schedule, Fast | Coe | Lin | Quad | Rare)
}

/// Cost of a seed per turn: microseconds times bytes, or bytes alone. Less is better.
fn cost(seed: &Seed, by_length: bool) -> u64 {
    let len = seed.data.len() as u64;
    if by_length { len } else { seed.exec_us.max(1).saturating_mul(len) }
}

/// Order of magnitude of a run's time: chains of seeds that begin with a slow one take turns without more finds.
fn slowness(seed: &Seed, by_length: bool) -> u32 {
    if by_length { 0 } else { seed.exec_us.max(1).ilog2() }
}

#[cfg(test)]
mod tests;
