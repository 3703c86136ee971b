//! Many signatures, of which the first that matches is wanted.

use serde_json::{Map, Value};

use super::{Crash, Refused, Signature};

/// A signature of a collection, with what its metadata file holds.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub signature: Signature,
    pub metadata: Map<String, Value>,
}

/// In the order in which they are tried.
#[derive(Debug, Default)]
pub struct Signatures {
    entries: Vec<Entry>,
}

impl Signatures {
    /// From name, JSON text and metadata; what is no signature is left out and named.
    #[must_use]
    pub fn new(
        triples: impl IntoIterator<Item = (String, String, Map<String, Value>)>,
    ) -> (Self, Vec<(String, Refused)>) {
        let (mut entries, mut refused) = (vec![], vec![]);
        for (name, text, metadata) in triples {
            match Signature::parse(&text) {
                Ok(signature) => entries.push(Entry { name, signature, metadata }),
                Err(reason) => refused.push((name, reason)),
            }
        }
        (Self { entries }, refused)
    }

    #[must_use]
    pub fn find(&self, crash: &Crash<'_>) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.signature.matches(crash))
    }
}
