//! The rows of jobs as a table, as lines and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::fleet::jobs::{JobRow, JobStatus};

const HEAD: [&str; 12] = [
    "target", "mutators", "seed", "state", "execs", "time", "finds", "edges", "new", "crashes",
    "bugs", "hangs",
];
/// Number of text columns; the others are right-aligned numbers.
const WORDS: usize = 4;

#[derive(Serialize)]
struct JobsDocument<'a> {
    version: u32,
    jobs: &'a [JobRow],
    /// Edges that the jobs of each target know together.
    edges: &'a BTreeMap<String, u64>,
}

pub(super) fn json(rows: &[JobRow], edges: &BTreeMap<String, u64>) -> String {
    let document = JobsDocument { version: 1, jobs: rows, edges };
    serde_json::to_string(&document).map_or_else(|_| String::new(), |text| text + "\n")
}

fn state(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Waiting => "waiting",
        JobStatus::Done => "done",
        JobStatus::Failed => "failed",
    }
}

/// The line printed when a job ends.
pub(super) fn line(row: &JobRow) -> String {
    let JobRow { target, mutators, seed, execs, seconds, new_edges, bugs, .. } = row;
    let name = format!("{target}/{mutators}/{seed}");
    match row.status {
        JobStatus::Failed => format!("failed {name}: {} ({})", row.cause, row.remedy),
        _ => format!("done {name}: {execs} runs, {seconds} s, {new_edges} new edges, {bugs} bugs"),
    }
}

pub(super) fn table(rows: &[JobRow], edges: &BTreeMap<String, u64>) -> String {
    let mut cells = vec![HEAD.map(str::to_owned)];
    cells.extend(rows.iter().map(columns));
    let width = |column: usize| cells.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column < WORDS {
                true => write!(line, "{cell:<width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let sum = |of: fn(&JobRow) -> u64| rows.iter().map(of).sum::<u64>();
    let done = rows.iter().filter(|row| row.status == JobStatus::Done).count();
    let _ = writeln!(
        text,
        "{done} of {} jobs done: {} runs, {} finds, {} crashes, {} bugs, {} hangs",
        rows.len(),
        sum(|row| row.execs),
        sum(|row| row.finds),
        sum(|row| row.crashes),
        sum(|row| row.bugs),
        sum(|row| row.hangs)
    );
    for (target, edges) in edges {
        let _ = writeln!(text, "{target}: {edges} edges in total");
    }
    for row in rows.iter().filter(|row| row.status == JobStatus::Failed) {
        let _ = writeln!(text, "{}", line(row));
    }
    text
}

fn columns(row: &JobRow) -> [String; 12] {
    let seed = match row.round {
        1 => row.seed.clone(),
        round => format!("{} round {round}", row.seed),
    };
    let [execs, finds, edges, new, crashes, bugs, hangs] =
        [row.execs, row.finds, row.edges, row.new_edges, row.crashes, row.bugs, row.hangs]
            .map(|number| number.to_string());
    let time = format!("{} s", row.seconds);
    let (target, mutators) = (row.target.clone(), row.mutators.clone());
    let state = state(row.status).to_owned();
    [target, mutators, seed, state, execs, time, finds, edges, new, crashes, bugs, hangs]
}
