//! Finds the first matching of many signatures: searches all literals that their expressions need in one pass over each
//! text, and tries only possible matches.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use serde_json::{Map, Value};

use super::symptom::{CrashTexts, Symptom, TextSource};
use super::{CrashFacts, Signature, SignatureError};

/// A signature of a collection, with the content of its metadata file.
#[derive(Clone, Debug)]
pub struct CollectedSignature {
    pub name: String,
    pub signature: Signature,
    pub metadata: Map<String, Value>,
}

/// Signatures in the order in which they are tried.
#[derive(Debug, Default)]
pub struct Signatures {
    entries: Vec<CollectedSignature>,
    /// Needs of each entry; all must be met.
    needs: Vec<Vec<Need>>,
    literals: Option<AhoCorasick>,
}

/// A need: one of the literals must occur in one of the places.
#[derive(Debug)]
struct Need {
    places: &'static [TextSource],
    literals: Vec<usize>,
}

/// Minimum length of a literal, bytes; shorter ones occur everywhere.
const SHORTEST: usize = 3;

impl Signatures {
    /// Builds the list from name, JSON text and metadata; returns invalid signatures with their errors.
    #[must_use]
    pub fn new(
        triples: impl IntoIterator<Item = (String, String, Map<String, Value>)>,
    ) -> (Self, Vec<(String, SignatureError)>) {
        let (mut entries, mut refused) = (vec![], vec![]);
        for (name, text, metadata) in triples {
            match Signature::parse(&text) {
                Ok(signature) => entries.push(CollectedSignature { name, signature, metadata }),
                Err(reason) => refused.push((name, reason)),
            }
        }
        let mut numbers = HashMap::new();
        let needs = entries.iter().map(|entry| needs(&entry.signature, &mut numbers)).collect();
        let mut literals = vec![""; numbers.len()];
        for (literal, number) in &numbers {
            literals[*number] = literal;
        }
        // Without the automaton (its limits exceeded) every signature is tried.
        let literals = AhoCorasick::new(&literals).ok();
        (Self { needs, literals, entries }, refused)
    }

    #[must_use]
    pub fn find(&self, crash: &CrashFacts<'_>) -> Option<&CollectedSignature> {
        let seen = CrashTexts::new(*crash);
        let present = self.literals.as_ref().map(|literals| present(literals, &seen));
        let met = |need: &Need| {
            present.as_ref().is_none_or(|present| {
                let has =
                    |place: &TextSource| need.literals.iter().any(|l| present[*place as usize][*l]);
                need.places.iter().any(has)
            })
        };
        let mut candidates = self.entries.iter().zip(&self.needs);
        let found =
            candidates.find(|(entry, needs)| needs.iter().all(met) && entry.signature.holds(&seen));
        found.map(|(entry, _)| entry)
    }
}

/// Needs of a signature; numbers its literals.
fn needs(signature: &Signature, numbers: &mut HashMap<String, usize>) -> Vec<Need> {
    let mut needs = vec![];
    for symptom in &signature.symptoms {
        let Symptom::Line { text, places } = symptom else { continue };
        let texts = text.literals();
        if texts.is_empty() || texts.iter().any(|text| text.len() < SHORTEST) {
            continue;
        }
        let mut number = |text: &String| {
            let next = numbers.len();
            *numbers.entry(text.clone()).or_insert(next)
        };
        needs.push(Need { places, literals: texts.iter().map(&mut number).collect() });
    }
    needs
}

/// For each place, the literals that occur in it.
fn present(literals: &AhoCorasick, seen: &CrashTexts<'_>) -> Vec<Vec<bool>> {
    let mark = |text: &str, present: &mut Vec<bool>| {
        for found in literals.find_overlapping_iter(text) {
            present[found.pattern().as_usize()] = true;
        }
    };
    TextSource::ALL
        .iter()
        .map(|place| {
            let mut present = vec![false; literals.patterns_len()];
            let text = seen.text(*place);
            mark(text, &mut present);
            if seen.tries_slashes() && text.contains('\\') {
                mark(&text.replace('\\', "/"), &mut present);
            }
            present
        })
        .collect()
}
