//! Evaluates the runs of all seeds in a module.

use std::collections::{BTreeSet, HashMap, HashSet};

/// Executions of each block in a run, up to [`MOST`].
pub type Counts = HashMap<u32, u8>;

/// Maximum count of executions: AFL's first classes are 1, 2, 3 and more.
pub const MOST: u32 = 4;

/// Results of all seeds in one module.
#[derive(Debug, Default)]
pub struct Evidence {
    /// One run per seed.
    seeds: Vec<Counts>,
    reached: BTreeSet<u32>,
    /// Blocks whose number of executions differs between runs of one seed.
    pub noisy: BTreeSet<u32>,
    /// Executions of blocks in all runs, capped at [`MOST`] per run.
    executions: u64,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ModuleVerdict {
    Varies,
    NoisyOnly,
    SinglePath,
    NotExecuted,
}

impl ModuleVerdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Varies => "varies with input",
            Self::NoisyOnly => "noisy only",
            Self::SinglePath => "single path",
            Self::NotExecuted => "not executed",
        }
    }
}

impl Evidence {
    /// Adds a run. The first runs come in the order of the seeds. A module that was loaded later counts as not executed
    /// before. Returns true if the run showed new noise.
    pub fn add(&mut self, seed: usize, is_first: bool, run: Counts) -> bool {
        self.reached.extend(run.keys());
        self.executions += run.values().map(|count| u64::from(*count)).sum::<u64>();
        if self.seeds.len() < seed + usize::from(!is_first) {
            self.seeds.resize(seed + usize::from(!is_first), Counts::new());
        }
        if is_first {
            self.seeds.push(run);
            return false;
        }
        let (first, before) = (&self.seeds[seed], self.noisy.len());
        let differs = |block: &&u32| first.get(block) != run.get(block);
        self.noisy.extend(first.keys().chain(run.keys()).filter(differs));
        self.noisy.len() > before
    }

    pub fn reached(&self) -> usize {
        self.reached.len()
    }

    /// Number of blocks that differ between seeds but not between runs of one seed.
    pub fn varying(&self) -> usize {
        let varies = |block: &&u32| {
            let mut counts = self.seeds.iter().map(|seed| seed.get(block));
            let first = counts.next();
            counts.any(|count| Some(count) != first)
        };
        self.reached.difference(&self.noisy).filter(varies).count()
    }

    /// Number of distinct paths, without noise.
    pub fn paths(&self) -> usize {
        let path = |seed: &Counts| {
            let stable = seed.iter().filter(|(block, _)| !self.noisy.contains(block));
            let mut path: Vec<(u32, u8)> = stable.map(|(block, count)| (*block, *count)).collect();
            path.sort_unstable();
            path
        };
        let paths = self.seeds.iter().map(path).collect::<HashSet<_>>();
        if self.reached.is_empty() { 0 } else { paths.len() }
    }

    /// Average executions of blocks per run; each block counts at most [`MOST`] times.
    pub fn executions(&self, runs: u64) -> u64 {
        self.executions / runs.max(1)
    }

    pub fn verdict(&self) -> ModuleVerdict {
        match () {
            () if self.reached.is_empty() => ModuleVerdict::NotExecuted,
            () if self.varying() > 0 => ModuleVerdict::Varies,
            () if !self.noisy.is_empty() => ModuleVerdict::NoisyOnly,
            () => ModuleVerdict::SinglePath,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(blocks: &[(u32, u8)]) -> Counts {
        blocks.iter().copied().collect()
    }

    /// Evidence of seeds, each with its runs.
    fn evidence(seeds: &[&[&[(u32, u8)]]]) -> Evidence {
        let mut evidence = Evidence::default();
        for (number, seed) in seeds.iter().enumerate() {
            for (round, blocks) in seed.iter().enumerate() {
                evidence.add(number, round == 0, run(blocks));
            }
        }
        evidence
    }

    #[test]
    fn seeds_that_take_other_ways_vary() {
        assert_eq!(Evidence::default().verdict(), ModuleVerdict::NotExecuted);
        let evidence = evidence(&[&[&[(1, 1), (2, 1)]], &[&[(1, 1)]], &[&[(1, 2)]]]);
        assert_eq!(evidence.verdict(), ModuleVerdict::Varies);
        assert_eq!((evidence.varying(), evidence.paths(), evidence.reached()), (2, 3, 2));
    }

    #[test]
    fn what_differs_between_runs_of_a_seed_is_noise_for_all() {
        let evidence = evidence(&[&[&[(1, 1), (2, 1)], &[(1, 1)]], &[&[(1, 1)], &[(1, 1)]]]);
        assert_eq!((evidence.verdict(), evidence.paths()), (ModuleVerdict::NoisyOnly, 1));
        assert_eq!(evidence.noisy, [2].into());
    }

    #[test]
    fn one_way_for_all_is_a_single_path() {
        let evidence = evidence(&[&[&[(1, 4)], &[(1, 4)]], &[&[(1, 4)]]]);
        assert_eq!((evidence.verdict(), evidence.executions(3)), (ModuleVerdict::SinglePath, 4));
    }

    #[test]
    fn a_module_that_is_loaded_with_a_later_seed_varies() {
        let mut evidence = Evidence::default();
        evidence.add(2, true, run(&[(1, 1)]));
        assert_eq!((evidence.verdict(), evidence.paths()), (ModuleVerdict::Varies, 2));
        // Absent in the first run of the seed: noise.
        assert!(evidence.add(0, false, run(&[(1, 1)])));
        assert_eq!(evidence.verdict(), ModuleVerdict::NoisyOnly);
        let mut late = Evidence::default();
        assert!(late.add(1, false, run(&[(1, 1)])));
        assert_eq!(late.verdict(), ModuleVerdict::NoisyOnly);
    }
}
