//! Counters of the corpus.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Corpus {
    pub corpus_count: u64,
    pub corpus_favored: u64,
    pub corpus_found: u64,
    pub corpus_imported: u64,
    pub corpus_variable: u64,
    pub max_depth: u32,
    pub pending_favored: u64,
    pub pending_total: u64,
}

impl Join for Corpus {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            corpus_count: all.sum(|c| c.corpus_count),
            corpus_favored: all.sum(|c| c.corpus_favored),
            corpus_found: all.sum(|c| c.corpus_found),
            corpus_imported: all.sum(|c| c.corpus_imported),
            corpus_variable: all.sum(|c| c.corpus_variable),
            max_depth: all.largest(|c| c.max_depth),
            pending_favored: all.sum(|c| c.pending_favored),
            pending_total: all.sum(|c| c.pending_total),
        }
    }
}
