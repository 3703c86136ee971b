//! Donors: seeds that provide pieces for candidates of another seed.

use crate::corpus::{Corpus, SeedId};
use crate::mutate::{Rng, below};
use ffuzz_sys::memory::prefetch;

/// Maximum number of attempts to find a second seed that can be spliced.
pub(crate) const DONOR_ATTEMPTS: u32 = 8;

/// Number of donors at a time, and of runs until others are drawn. Donors are reused because in a large corpus the
/// first access to a seed's bytes waits for memory, longer than a short run takes.
const DONORS: usize = 4;
const RUNS_PER_DRAW: usize = 128;

/// Minimum length of a donor, bytes.
const SHORTEST_DONOR: usize = 4;

/// Number of seeds from which on a corpus does not fit into the processor's caches.
const LARGE_CORPUS: u32 = 1024;

/// Randomly drawn seeds that provide pieces for candidates.
#[derive(Debug, Default)]
pub(crate) struct DonorPool {
    drawn: Vec<SeedId>,
    /// The next donors, in a large corpus. Their bytes are being prefetched.
    coming: Vec<SeedId>,
    runs_left: usize,
}

impl DonorPool {
    /// Draws donors for the next `runs` runs on `seed`.
    pub(crate) fn draw<'a>(
        &mut self,
        rng: &mut Rng,
        corpus: &'a Corpus,
        seed: SeedId,
        runs: usize,
    ) -> Donors<'a> {
        if self.runs_left == 0 {
            self.runs_left = RUNS_PER_DRAW;
            self.change(rng, corpus, seed);
        }
        self.runs_left = self.runs_left.saturating_sub(runs);
        let mut donors = Donors::default();
        for id in self.drawn.iter().filter(|id| **id != seed) {
            donors.seeds[donors.count as usize] = (*id, &corpus[*id].data);
            donors.count += 1;
        }
        donors
    }

    fn change(&mut self, rng: &mut Rng, corpus: &Corpus, seed: SeedId) {
        std::mem::swap(&mut self.drawn, &mut self.coming);
        if self.drawn.is_empty() {
            choose(&mut self.drawn, rng, corpus, seed);
        }
        self.coming.clear();
        if corpus.next_id().0 >= LARGE_CORPUS {
            choose(&mut self.coming, rng, corpus, seed);
            self.coming.iter().for_each(|id| prefetch(&corpus[*id].data));
        }
    }

    /// Called when the turn of another seed begins: in a small corpus it gets its own donors.
    pub(crate) fn next_seed(&mut self) {
        if self.coming.is_empty() {
            self.runs_left = 0;
        }
    }
}

fn choose(into: &mut Vec<SeedId>, rng: &mut Rng, corpus: &Corpus, seed: SeedId) {
    let random = (0..DONORS as u32 + DONOR_ATTEMPTS)
        .map(|_| SeedId(below(rng, corpus.next_id().0)))
        .filter(|id| *id != seed && corpus[*id].data.len() >= SHORTEST_DONOR);
    into.extend(random.take(DONORS));
}

/// The donors and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Donors<'a> {
    seeds: [(SeedId, &'a [u8]); DONORS],
    count: u32,
}

impl<'a> Donors<'a> {
    /// Picks a random donor.
    pub(crate) fn pick(&self, rng: &mut Rng) -> Option<(SeedId, &'a [u8])> {
        self.seeds[..self.count as usize].get(below(rng, self.count) as usize).copied()
    }
}
