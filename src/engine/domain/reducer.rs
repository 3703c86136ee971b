//! The five reducers.

/// Function that merges a value into the aggregate of its key. The numbers are those of the protocol.
///
/// Applying the same value twice changes nothing the second time: `f(f(a, v), v) == f(a, v)`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Reducer {
    Max = 0,
    Min = 1,
    /// The highest set bit of every value seen.
    LogBucket = 2,
    BitUnion = 3,
    BitIntersect = 4,
}

impl Reducer {
    /// Parses the number in the protocol.
    #[must_use]
    pub fn from_wire(number: u32) -> Option<Self> {
        [Self::Max, Self::Min, Self::LogBucket, Self::BitUnion, Self::BitIntersect]
            .into_iter()
            .find(|reducer| *reducer as u32 == number)
    }

    /// Parses FuzzFactory's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        (0..5).filter_map(Self::from_wire).find(|reducer| reducer.name() == name)
    }

    /// FuzzFactory's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Max => "MAX",
            Self::Min => "MIN",
            Self::LogBucket => "LOG_BUCKETING",
            Self::BitUnion => "BITWISE_UNION",
            Self::BitIntersect => "BITWISE_INTERSECTION",
        }
    }

    /// Aggregate after merging `value`.
    #[must_use]
    pub fn apply(self, aggregate: u32, value: u32) -> u32 {
        match self {
            Self::Max => aggregate.max(value),
            Self::Min => aggregate.min(value),
            Self::LogBucket => aggregate | highest_bit(value),
            Self::BitUnion => aggregate | value,
            Self::BitIntersect => aggregate & value,
        }
    }

    /// Merges two aggregates.
    #[must_use]
    pub fn join(self, one: u32, other: u32) -> u32 {
        match self {
            Self::LogBucket => one | other,
            _ => self.apply(one, other),
        }
    }

    /// Key and aggregate to show: the first with the largest aggregate, or the smallest if the reducer minimizes.
    pub fn most_remarkable(self, keys: impl Iterator<Item = (u32, u32)>) -> Option<(u32, u32)> {
        match self {
            Self::Min | Self::BitIntersect => keys.min_by_key(|(_, value)| *value),
            _ => keys.max_by_key(|(key, value)| (*value, std::cmp::Reverse(*key))),
        }
    }

    /// Merit of a value; larger is better.
    #[must_use]
    pub fn merit(self, value: u32) -> u32 {
        match self {
            Self::Min | Self::BitIntersect => u32::MAX - value,
            _ => value,
        }
    }

    /// The less extreme of two values of one input.
    #[must_use]
    pub(crate) fn weaker(self, one: u32, other: u32) -> u32 {
        match self {
            Self::Max | Self::LogBucket => one.min(other),
            Self::Min => one.max(other),
            Self::BitUnion => one & other,
            Self::BitIntersect => one | other,
        }
    }

    /// Threshold for being better than `aggregate` by an eighth; bitwise reducers have no margin.
    #[must_use]
    pub(crate) fn clear_threshold(self, aggregate: u32) -> u32 {
        match self {
            Self::Max => aggregate.saturating_add(aggregate / 8),
            Self::Min => aggregate - aggregate / 8,
            Self::LogBucket | Self::BitUnion | Self::BitIntersect => aggregate,
        }
    }

    /// True if `value` is better than `aggregate` by an eighth; always for bitwise reducers.
    #[must_use]
    pub(crate) fn clearly_better(self, aggregate: u32, value: u32) -> bool {
        self.is_bitwise() || {
            let threshold = self.clear_threshold(aggregate);
            self.apply(threshold, value) != threshold
        }
    }

    /// True if several inputs can own one key, each some of its bits.
    #[must_use]
    pub fn is_bitwise(self) -> bool {
        !matches!(self, Self::Max | Self::Min)
    }
}

fn highest_bit(value: u32) -> u32 {
    if value == 0 { 0 } else { 1 << value.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Reducer; 5] =
        [Reducer::Max, Reducer::Min, Reducer::LogBucket, Reducer::BitUnion, Reducer::BitIntersect];

    #[test]
    fn log_bucket_keeps_the_highest_bit_only() {
        assert_eq!(Reducer::LogBucket.apply(0, 5), 4);
        assert_eq!(Reducer::LogBucket.apply(0, 0), 0);
        assert_eq!(Reducer::LogBucket.apply(4, u32::MAX), 0x8000_0004);
    }

    #[test]
    fn wire_numbers_round_trip() {
        for reducer in ALL {
            assert_eq!(Reducer::from_wire(reducer as u32), Some(reducer));
        }
        assert_eq!(Reducer::from_wire(5), None);
    }

    proptest! {
        #[test]
        fn reducers_are_idempotent(aggregate: u32, value: u32) {
            for reducer in ALL {
                let once = reducer.apply(aggregate, value);
                prop_assert_eq!(reducer.apply(once, value), once);
            }
        }

        #[test]
        fn reducers_never_forget(aggregate: u32, first: u32, second: u32) {
            for reducer in ALL {
                let both = reducer.apply(reducer.apply(aggregate, first), second);
                prop_assert_eq!(reducer.apply(both, first), both);
            }
        }
    }
}
