//! Short rounds: each seed with new edges is run once with its log, and a round tries to pass the rarest site that no
//! seed passes, from its cheapest seed.
//!
//! Long rounds are so expensive that most seeds never get one: a few dozen of thousands have had one after a minute.
//! A short round tries only copies of operands, without the log. An input that passes is a new seed and is scanned
//! next.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};

use super::super::Turn;
use super::edits::run_edits;
use super::runs::logged;
use crate::corpus::{Corpus, SeedId};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::Host;
use crate::schedule::Budget;
use ffuzz_comparisons::adjust::with_lengths;
use ffuzz_comparisons::input_to_state::{Edit, Logged, edits};
use ffuzz_comparisons::log::{ComparisonKind, OwnLog};
use ffuzz_comparisons::results::Place;
use ffuzz_comparisons::sites::Sites;
use ffuzz_comparisons::work::Edits;

/// Maximum number of occurrences of a site that are tried, of edits for one site, and of edits in a round.
const MOST_OCCURRENCES: u32 = 4;
const MOST_OF_SITE: usize = 64;
const MOST_EDITS: usize = 400;
/// Maximum number of rounds of a seed with too many edits for one round.
const MOST_ROUNDS: u32 = 4;

/// State of the short rounds.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct ShortRounds {
    sites: Sites,
    /// First seed not yet considered for scanning.
    from: SeedId,
    /// Seeds to scan, the newest last.
    unscanned: Vec<SeedId>,
    /// Number of rounds of each seed.
    rounds: HashMap<SeedId, u32>,
    /// True while no site is left; reset by new seeds.
    is_idle: bool,
}

impl ShortRounds {
    /// Queues new seeds for scanning: those with new edges and those without a parent.
    pub(super) fn note_new(&mut self, corpus: &Corpus, from: SeedId) {
        let new = corpus.iter().skip(self.from.max(from).index());
        let new = new.filter(|seed| seed.new_edge || seed.parent.is_none());
        self.unscanned.extend(new.map(|seed| seed.id));
        self.from = corpus.next_id();
        self.is_idle &= self.unscanned.is_empty();
    }

    /// Whether there may be something to do.
    pub(super) fn has_work(&self) -> bool {
        !self.is_idle
    }

    /// Allows more tries of each site, from seeds with rounds left.
    pub(super) fn begin_again(&mut self) {
        self.sites.forget_tries();
        self.is_idle = false;
    }

    /// The seed of the next round.
    fn next<H: Host>(&self, turn: &mut Turn<'_, H>) -> Option<SeedId> {
        turn.door.fuzzer_mut().frontier();
        let frontier = turn.door.fuzzer().known_frontier();
        let corpus = &turn.door.fuzzer().corpus;
        let may_try = |id: SeedId| {
            let rounds = self.rounds.get(&id).copied().unwrap_or(0);
            rounds < MOST_ROUNDS && id < corpus.next_id() && !corpus[id].disabled
        };
        self.sites.next(&turn.shared.logs.results, |site| frontier.behind(site) > 0, may_try)
    }

    /// Removes state of seeds that are not kept.
    pub(super) fn retain(&mut self, is_kept: impl Fn(SeedId) -> bool) {
        self.sites.retain(&is_kept);
        self.rounds.retain(|id, _| is_kept(*id));
        self.unscanned.retain(|id| is_kept(*id));
    }

    /// Scans the newest unscanned seed. Returns false if there is none.
    pub(super) fn scan_next<H: Host>(&mut self, turn: &mut Turn<'_, H>) -> Result<bool, H::Error> {
        let Some(id) = self.unscanned.pop() else { return Ok(false) };
        self.scan(&mut turn.of(id)).map(|()| true)
    }

    /// Makes a round. Returns false if no site is left.
    pub(super) fn solve_next<H: Host>(&mut self, turn: &mut Turn<'_, H>) -> Result<bool, H::Error> {
        let Some(id) = self.next(turn) else {
            self.is_idle = self.unscanned.is_empty();
            return Ok(false);
        };
        let Some(budget) = turn.door.fuzzer().budget(id) else {
            self.rounds.insert(id, MOST_ROUNDS);
            return Ok(true);
        };
        self.solve(&mut turn.of(id), budget.longest())?;
        Ok(true)
    }

    fn scan<H: Host>(&mut self, turn: &mut Turn<'_, H>) -> Result<(), H::Error> {
        let (id, fuzzer) = (turn.id, turn.door.fuzzer_mut());
        if fuzzer.corpus[id].disabled {
            return Ok(());
        }
        fuzzer.limit_mutants_of(id);
        let seed = &fuzzer.corpus[id];
        let time = if fuzzer.counts_time() { seed.exec_us } else { 0 };
        let cost = time + seed.data.len() as u64 / 8;
        let log = log_of(turn)?;
        let results = &mut turn.shared.logs.results;
        self.sites.scan(id, cost, log.view(), results);
        let Fuzzer { blockers, corpus, .. } = turn.door.fuzzer_mut();
        blockers.add(id.index(), &corpus[id].data, log.view());
        Ok(())
    }

    /// Makes one round on the turn's seed.
    fn solve<H: Host>(&mut self, turn: &mut Turn<'_, H>, budget: Budget) -> Result<(), H::Error> {
        let id = turn.id;
        turn.door.fuzzer_mut().limit_mutants_of(id);
        let input = turn.door.fuzzer().corpus[id].data.to_vec();
        let log = log_of(turn)?;
        let (edits, is_cut) = self.choose(turn, &input, &log);
        let rounds = self.rounds.entry(id).or_default();
        *rounds = if is_cut { *rounds + 1 } else { MOST_ROUNDS };
        run_edits(turn, &mut Edits::new(&input, edits), budget)?;
        Ok(())
    }

    /// The edits that may pass a shut site, those of the rarest site first. Returns true if some sites did not fit.
    fn choose<H: Host>(
        &mut self,
        turn: &Turn<'_, H>,
        input: &[u8],
        log: &OwnLog,
    ) -> (Vec<Edit>, bool) {
        let lengths = turn.shared.lengths_of(&turn.door.fuzzer().corpus, turn.id);
        let (results, sites) = (&turn.shared.logs.results, &mut self.sites);
        let is_left = |place: Place, kind| {
            let is_shut = kind == ComparisonKind::Switch || results.is_one_sided(place.key);
            place.occurrence < MOST_OCCURRENCES && is_shut && sites.is_left(place.key, results)
        };
        let (log, messages) = (log.view(), turn.door.fuzzer().mutation.messages);
        let run = Logged { input, log, colored: input, colored_log: log, messages };
        let mut chosen = edits(run, is_left);
        let mut of_key = HashMap::<u32, usize>::default();
        chosen.retain(|edit| {
            let count = of_key.entry(edit.place.key).or_default();
            *count += 1;
            *count <= MOST_OF_SITE
        });
        let frontier = turn.door.fuzzer().known_frontier();
        let leads = |site| frontier.behind(site) > 0;
        chosen.sort_by_key(|edit| sites.rank(edit.place.key, leads(edit.place.site)));
        let rest = chosen.split_off(chosen.len().min(MOST_EDITS));
        let chosen = with_lengths(chosen, input, &lengths);
        let tried: BTreeSet<u32> = chosen.iter().map(|edit| edit.place.key).collect();
        let cut: BTreeSet<u32> = rest.iter().map(|edit| edit.place.key).collect();
        // A site without a copy of its operands counts as tried as well.
        let all: BTreeSet<u32> = log.iter().map(|one| one.key()).collect();
        all.into_iter()
            .filter(|key| tried.contains(key) || !cut.contains(key))
            .for_each(|key| sites.tried(key));
        (chosen, !cut.is_subset(&tried))
    }
}

/// The log of the turn's seed.
fn log_of<H: Host>(turn: &mut Turn<'_, H>) -> Result<OwnLog, H::Error> {
    let input = turn.door.fuzzer().corpus[turn.id].data.to_vec();
    logged(turn, input, "copy").map(|ran| ran.log)
}
