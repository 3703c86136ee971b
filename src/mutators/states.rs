//! Progress of a mutator on each seed, for the lifetime of a campaign.
//!
//! A Killerbeez module works on one seed at a time, in an object created from its own state text. States are kept per
//! module, options and seed in `state.json`, which is written with the statistics and at the end.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use ffuzz_engine::corpus::SeedId;

/// Progress of a mutator on one seed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reached {
    /// The mutator's own text, which ffuzz does not interpret.
    State(CString),
    /// All inputs are made; the last state, if there is one.
    Exhausted(Option<CString>),
    /// The mutator failed; it skips the seed until the next start.
    Failed,
}

impl Reached {
    /// Returns true if no more inputs will follow.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::State(_))
    }
}

/// The states of one mutator.
#[derive(Clone, Debug, Default)]
pub struct States {
    name: String,
    options: Option<String>,
    seeds: BTreeMap<Work, Reached>,
}

/// A seed and the number of the message to change in it; 0 if the seed is not a list of messages.
pub type Work = (SeedId, u32);

/// Stored form of [`States`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StoredStates {
    mutator: String,
    options: Option<String>,
    /// By seed number. An empty text means exhausted.
    seeds: BTreeMap<u32, String>,
    /// The states of messages after the first: seed, message, state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<(u32, u32, String)>,
}

impl StoredStates {
    /// Returns true if every state belongs to one of the first `seeds` seeds.
    #[must_use]
    pub fn is_within(&self, seeds: usize) -> bool {
        let messages = self.messages.iter().map(|(id, ..)| id);
        self.seeds.keys().chain(messages).all(|id| (*id as usize) < seeds)
    }
}

impl States {
    #[must_use]
    pub fn new(name: &str, options: Option<&CStr>) -> Self {
        let options = options.map(|text| text.to_string_lossy().into_owned());
        Self { name: name.to_owned(), options, seeds: BTreeMap::new() }
    }

    #[must_use]
    pub fn get(&self, seed: SeedId) -> Option<&Reached> {
        self.of((seed, 0))
    }

    /// State of the last message worked on, if messages come in order.
    #[must_use]
    pub fn last(&self, seed: SeedId) -> Option<&Reached> {
        self.seeds.range((seed, 0)..=(seed, u32::MAX)).next_back().map(|(_, reached)| reached)
    }

    #[must_use]
    pub fn of(&self, work: Work) -> Option<&Reached> {
        self.seeds.get(&work)
    }

    /// Sets the state of a seed; None: start from the beginning.
    pub fn set(&mut self, seed: SeedId, reached: Option<Reached>) {
        self.set_of((seed, 0), reached);
    }

    pub fn set_of(&mut self, work: Work, reached: Option<Reached>) {
        match reached {
            Some(reached) => self.seeds.insert(work, reached),
            None => self.seeds.remove(&work),
        };
    }

    /// The stored form. Omits texts that are not UTF-8, which JSON cannot hold.
    #[must_use]
    pub fn stored(&self) -> StoredStates {
        let text = |reached: &Reached| match reached {
            Reached::State(state) => state.to_str().ok().map(str::to_owned),
            Reached::Exhausted(_) => Some(String::new()),
            Reached::Failed => None,
        };
        let all = self.seeds.iter();
        let all = all.filter_map(|((id, message), reached)| Some((id.0, *message, text(reached)?)));
        let (first, messages): (Vec<_>, Vec<_>) = all.partition(|(_, message, _)| *message == 0);
        StoredStates {
            mutator: self.name.clone(),
            options: self.options.clone(),
            seeds: first.into_iter().map(|(id, _, text)| (id, text)).collect(),
            messages,
        }
    }

    /// Restores states of the same mutator with the same options.
    pub fn restore(&mut self, stored: &[StoredStates]) {
        let own =
            |stored: &&StoredStates| stored.mutator == self.name && stored.options == self.options;
        let Some(stored) = stored.iter().find(own) else { return };
        let first = stored.seeds.iter().map(|(id, text)| (*id, 0, text));
        let others = stored.messages.iter().map(|(id, message, text)| (*id, *message, text));
        for (id, message, text) in first.chain(others) {
            let reached = match CString::new(text.as_str()) {
                Ok(text) if text.is_empty() => Reached::Exhausted(None),
                Ok(text) => Reached::State(text),
                Err(_) => continue,
            };
            self.seeds.insert((SeedId(id), message), reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_for_the_same_options_only() {
        let mut states = States::new("flip", Some(c"{}"));
        states.set(SeedId(1), Some(Reached::State(c"{\"i\": -3}".into())));
        states.set(SeedId(2), Some(Reached::Exhausted(Some(c"{}".into()))));
        states.set(SeedId(3), Some(Reached::Failed));
        states.set_of((SeedId(2), 1), Some(Reached::State(c"4".into())));
        let text = serde_json::to_string(&[states.stored()]).unwrap();
        let stored: Vec<StoredStates> = serde_json::from_str(&text).unwrap();
        let mut again = States::new("flip", Some(c"{}"));
        again.restore(&stored);
        assert_eq!(again.get(SeedId(1)), Some(&Reached::State(c"{\"i\": -3}".into())));
        assert_eq!(again.get(SeedId(2)), Some(&Reached::Exhausted(None)));
        assert_eq!(again.get(SeedId(3)), None);
        assert_eq!(again.of((SeedId(2), 1)), Some(&Reached::State(c"4".into())));
        assert!(stored[0].is_within(3) && !stored[0].is_within(2));
        let mut other = States::new("flip", None);
        other.restore(&stored);
        assert_eq!(other.get(SeedId(1)), None);
    }
}
