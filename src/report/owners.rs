//! Maps each key to the inputs that reach its aggregate.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ffuzz_engine::domain::{DsfView, Reducer};

/// The inputs of a folder, with the best values of each.
#[derive(Debug, Default)]
pub struct Owners {
    inputs: Vec<OwningInput>,
    keys: BTreeMap<u32, Vec<KeyShare>>,
}

#[derive(Debug)]
struct OwningInput {
    path: PathBuf,
    len: usize,
}

/// One input's part of a key's aggregate: all of it, or one bit.
#[derive(Debug)]
struct KeyShare {
    value: u32,
    input: usize,
}

impl Owners {
    /// Adds a run of `path` (`len` bytes).
    pub fn add(&mut self, path: PathBuf, len: usize, run: &DsfView<'_>) {
        let input = self.inputs.len();
        self.inputs.push(OwningInput { path, len });
        run.for_each_changed(|domain, key, value| {
            let shares = self.keys.entry(key).or_default();
            if domain.reducer.is_bitwise() {
                for bit in domain.moved_bits(value) {
                    offer(shares, &self.inputs, bit, input, |share| share.value == bit);
                }
            } else {
                if shares.first().is_some_and(|old| is_better(domain.reducer, old.value, value)) {
                    shares.clear();
                }
                let beaten = |share: &KeyShare| is_better(domain.reducer, value, share.value);
                if !shares.first().is_some_and(beaten) {
                    offer(shares, &self.inputs, value, input, |_| true);
                }
            }
        });
    }

    /// Number of the input with the largest share of the key's aggregate, or its highest bit.
    #[must_use]
    pub fn of(&self, key: u32) -> Option<usize> {
        let shares = self.keys.get(&key)?.iter();
        shares.max_by_key(|share| share.value).map(|share| share.input)
    }

    /// The files that together reach the aggregate; a single one unless the reducer works on bits.
    #[must_use]
    pub fn files(&self, key: u32) -> Vec<String> {
        let mut files = Vec::new();
        for share in self.keys.get(&key).into_iter().flatten() {
            let path = self.inputs[share.input].path.display().to_string();
            if !files.contains(&path) {
                files.push(path);
            }
        }
        files
    }
}

fn is_better(reducer: Reducer, old: u32, new: u32) -> bool {
    reducer.apply(old, new) != old
}

/// Gives a share to the smallest input; to the first of equally small ones.
fn offer(
    shares: &mut Vec<KeyShare>,
    inputs: &[OwningInput],
    value: u32,
    input: usize,
    same: impl Fn(&KeyShare) -> bool,
) {
    match shares.iter_mut().find(|share| same(share)) {
        Some(share) if inputs[input].len < inputs[share.input].len => share.input = input,
        Some(_) => {}
        None => shares.push(KeyShare { value, input }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::domain::Domain;

    fn owners(reducer: Reducer, initial: u32, runs: &[(&str, usize, u32)]) -> Vec<String> {
        let domains = [Domain { name: "d".into(), start: 0, size: 1, reducer, initial }];
        let mut owners = Owners::default();
        for (path, len, value) in runs {
            let view = DsfView { domains: &domains, values: &[*value], touched: None };
            owners.add(path.into(), *len, &view);
        }
        owners.files(0)
    }

    #[test]
    fn the_best_value_wins_then_the_smallest_file() {
        let runs = [("a", 9, 5), ("b", 9, 7), ("c", 4, 7), ("d", 4, 7), ("e", 1, 6)];
        assert_eq!(owners(Reducer::Max, 0, &runs), ["c"]);
        let runs = [("a", 9, 5), ("b", 9, 3), ("c", 1, 4), ("d", 2, 3)];
        assert_eq!(owners(Reducer::Min, u32::MAX, &runs), ["d"]);
        assert_eq!(owners(Reducer::Max, 0, &[("a", 1, 0)]), [""; 0]);
    }

    #[test]
    fn bits_have_owners_of_their_own() {
        let runs = [("a", 9, 0b011), ("b", 5, 0b001), ("c", 9, 0b100)];
        assert_eq!(owners(Reducer::BitUnion, 0, &runs), ["a", "b", "c"]);
        assert_eq!(owners(Reducer::LogBucket, 0, &runs), ["a", "b", "c"]);
        let runs = [("a", 9, u32::MAX ^ 1), ("b", 5, u32::MAX ^ 3)];
        assert_eq!(owners(Reducer::BitIntersect, u32::MAX, &runs), ["b"]);
    }
}
