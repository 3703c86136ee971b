//! Combines the snapshots of several workers into one. Each group of statistics selects a method per field.
//!
//! Work and corpora add up, as in `ffuzz-whatsup`. Edges do not: workers import each other's finds within seconds, so
//! the worker with the most edges, the leader, stands for all.

/// A group of statistics that several workers have.
pub trait Join: Sized {
    /// The joined group. Write it as a struct expression without `..`, so that a forgotten field does not compile.
    fn join(all: &All<'_, Self>) -> Self;
}

/// The same part of every worker's snapshot, in worker order.
#[derive(Debug)]
pub struct All<'a, T> {
    each: Vec<&'a T>,
    leader: Option<&'a T>,
}

impl<'a, T> All<'a, T> {
    /// Selects as the leader the first element with the highest `rank`.
    pub fn new<R: Ord>(each: &[&'a T], rank: fn(&T) -> R) -> Self {
        let leader = each.iter().rev().max_by_key(|one| rank(one)).copied();
        Self { each: each.to_vec(), leader }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a T> {
        self.each.iter().copied()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.each.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// A subgroup of each element.
    #[must_use]
    pub fn part<U>(&self, group: fn(&T) -> &U) -> All<'a, U> {
        All { each: self.iter().map(group).collect(), leader: self.leader.map(group) }
    }

    /// A joined subgroup.
    #[must_use]
    pub fn join<U: Join>(&self, group: fn(&T) -> &U) -> U {
        U::join(&self.part(group))
    }

    #[must_use]
    pub fn sum(&self, field: fn(&T) -> u64) -> u64 {
        self.iter().map(field).sum()
    }

    /// The sum of rates.
    #[must_use]
    pub fn rate(&self, field: fn(&T) -> f64) -> f64 {
        self.iter().map(field).sum()
    }

    #[must_use]
    pub fn mean(&self, field: fn(&T) -> f64) -> f64 {
        self.rate(field) / self.len().max(1) as f64
    }

    #[must_use]
    pub fn largest<N: Default + Ord>(&self, field: fn(&T) -> N) -> N {
        self.iter().map(field).max().unwrap_or_default()
    }

    #[must_use]
    pub fn smallest<N: Default + Ord>(&self, field: fn(&T) -> N) -> N {
        self.iter().map(field).min().unwrap_or_default()
    }

    /// The leader's value.
    #[must_use]
    pub fn leading<U: Clone + Default>(&self, field: fn(&T) -> &U) -> U {
        self.leader.map_or_else(U::default, |leader| field(leader).clone())
    }
}
