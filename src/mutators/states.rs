//! What a mutator has reached on each seed, for as long as the campaign lives.
//!
//! A Killerbeez module works on one seed at a time, in an object that is made for it from the module's own state.
//! States are kept per module, options and seed in `state.json`, written with the statistics and at the end.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use ffuzz_engine::corpus::SeedId;

/// How far a mutator is with a seed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reached {
    /// The mutator's own text, which ffuzz does not interpret.
    State(CString),
    /// It has made all its inputs; its last state, if it has one.
    Exhausted(Option<CString>),
    /// It failed there, and is left alone until the next start.
    Failed,
}

impl Reached {
    /// Nothing more is to come.
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

/// What a mutator works on: a seed, and the number of the message that it changes there; else 0.
pub type Work = (SeedId, u32);

/// The form in which they are stored.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StoredStates {
    mutator: String,
    options: Option<String>,
    /// By number of the seed. An empty text: exhausted.
    seeds: BTreeMap<u32, String>,
    /// The same for messages after the first: seed, message, state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<(u32, u32, String)>,
}

impl StoredStates {
    /// Adapts it to a corpus of this number of seeds.
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

    /// That of the last message that was worked on, if messages come in their order.
    #[must_use]
    pub fn last(&self, seed: SeedId) -> Option<&Reached> {
        self.seeds.range((seed, 0)..=(seed, u32::MAX)).next_back().map(|(_, reached)| reached)
    }

    #[must_use]
    pub fn of(&self, work: Work) -> Option<&Reached> {
        self.seeds.get(&work)
    }

    /// None: start from the beginning.
    pub fn set(&mut self, seed: SeedId, reached: Option<Reached>) {
        self.set_of((seed, 0), reached);
    }

    pub fn set_of(&mut self, work: Work, reached: Option<Reached>) {
        match reached {
            Some(reached) => self.seeds.insert(work, reached),
            None => self.seeds.remove(&work),
        };
    }

    /// What is worth storing. A text that is no UTF-8 cannot be part of a JSON file.
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

    /// Takes over what was stored for the same mutator with the same options.
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
