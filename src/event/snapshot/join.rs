//! How one state is made of those of several workers: the ways there are. Each group says for every
//! field which one is its own.
//!
//! What workers do and what they keep adds up, as in `ffuzz-whatsup`. Edges do not: workers take
//! over each other's finds within seconds, so that the one that knows most, the leader, knows what
//! all know.

/// A group of numbers that several workers have.
pub trait Join: Sized {
    /// That of all. Written as a struct expression without `..`: a field that is forgotten
    /// does not compile.
    fn join(all: &All<'_, Self>) -> Self;
}

/// The same part of the state of every worker, in their order.
#[derive(Debug)]
pub struct All<'a, T> {
    each: Vec<&'a T>,
    leader: Option<&'a T>,
}

impl<'a, T> All<'a, T> {
    /// `leader` is the first of those for which `rank` is the highest.
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

    /// A group in the state of each.
    #[must_use]
    pub fn part<U>(&self, group: fn(&T) -> &U) -> All<'a, U> {
        All { each: self.iter().map(group).collect(), leader: self.leader.map(group) }
    }

    /// A group of all.
    #[must_use]
    pub fn join<U: Join>(&self, group: fn(&T) -> &U) -> U {
        U::join(&self.part(group))
    }

    #[must_use]
    pub fn sum(&self, field: fn(&T) -> u64) -> u64 {
        self.iter().map(field).sum()
    }

    /// The sum of numbers per second.
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

    /// What the leader says.
    #[must_use]
    pub fn leading<U: Clone + Default>(&self, field: fn(&T) -> &U) -> U {
        self.leader.map_or_else(U::default, |leader| field(leader).clone())
    }
}
