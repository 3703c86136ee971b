//! One campaign as a line of the rows file, and which rows are compared with each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Row {
    /// Of the start, in seconds since 1970.
    pub(super) time: u64,
    /// `git describe` of the tree that was built; the version of another fuzzer.
    pub(super) commit: String,
    /// What tells two builds of a fuzzer apart.
    pub(super) build: String,
    pub(super) profile: String,
    pub(super) machine: String,
    pub(super) cores: usize,
    pub(super) load: f64,
    pub(super) target: String,
    /// Package and version of the target.
    pub(super) source: String,
    pub(super) kind: String,
    pub(super) options: String,
    pub(super) seed: u64,
    /// CPU seconds.
    pub(super) budget: f64,
    pub(super) cpu: f64,
    pub(super) wall: f64,
    pub(super) runs: u64,
    pub(super) edges: u32,
    /// In all.
    pub(super) edges_total: u32,
    pub(super) queue: usize,
    pub(super) crashes: usize,
    /// How often the fuzzer had to be started.
    pub(super) starts: u32,
    /// CPU seconds and edges.
    pub(super) samples: Vec<(f64, u32)>,
    /// Edges that were reached, four to a hexadecimal digit, the first as its lowest bit.
    pub(super) bits: String,
}

/// Lines that cannot be read are counted.
pub(super) fn parse(text: &str) -> (Vec<Row>, usize) {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (rows, broken): (Vec<_>, Vec<_>) =
        lines.map(serde_json::from_str::<Row>).partition(Result::is_ok);
    (rows.into_iter().flatten().collect(), broken.len())
}

/// The rows of one budget that may be compared: of each kind those with its newest build and options, of each
/// target those with the newest count of edges.
pub(super) fn comparable(rows: Vec<Row>, budget: f64) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.into_iter().filter(|row| row.budget == budget).collect();
    rows.sort_by_key(|row| row.time);
    let builds: BTreeMap<String, (String, String)> = rows
        .iter()
        .map(|row| (row.kind.clone(), (row.build.clone(), row.options.clone())))
        .collect();
    let totals: BTreeMap<String, u32> =
        rows.iter().map(|row| (row.target.clone(), row.edges_total)).collect();
    rows.retain(|row| {
        let (build, options) = &builds[&row.kind];
        row.build == *build && row.options == *options && row.edges_total == totals[&row.target]
    });
    rows
}

/// Numbers of the edges in `bits`.
pub(super) fn edges(bits: &str) -> impl Iterator<Item = usize> + '_ {
    bits.chars().enumerate().flat_map(|(index, digit)| {
        let four = digit.to_digit(16).unwrap_or(0);
        (0..4).filter(move |bit| four >> bit & 1 == 1).map(move |bit| index * 4 + bit)
    })
}
