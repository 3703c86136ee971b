//! Signatures: conditions on a crash, written as JSON, that recognise a bug.

use serde_json::{Map, Value};

use super::{CrashInfo, Output, Program};

/// Everything a signature may look at.
#[derive(Clone, Copy, Debug)]
pub struct Crash<'a> {
    pub info: &'a CrashInfo,
    pub output: &'a Output,
    pub program: &'a Program,
    /// The input, if it is text.
    pub testcase: Option<&'a str>,
}

/// Why a text is no signature.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    reason: String,
}

/// What to put into a new signature.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub frames: usize,
    pub force_address: bool,
    pub force_instruction: bool,
}

impl Default for Wanted {
    /// As the server proposes it.
    fn default() -> Self {
        Self { frames: 8, force_address: true, force_instruction: false }
    }
}

/// One signature.
#[derive(Clone, Debug)]
pub struct Signature {}

impl Signature {
    pub fn parse(_json: &str) -> Result<Self, Refused> {
        Err(Refused { reason: "no symptoms".into() })
    }

    #[must_use]
    pub fn matches(&self, _crash: &Crash<'_>) -> bool {
        false
    }

    /// None if the crash says too little to be recognised again.
    #[must_use]
    pub fn create(_info: &CrashInfo, _wanted: Wanted) -> Option<Self> {
        None
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        String::new()
    }
}

/// A signature of a collection, with what its metadata file holds.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub signature: Signature,
    pub metadata: Map<String, Value>,
}

/// Many signatures, of which the first in the given order that matches is wanted, quickly.
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
