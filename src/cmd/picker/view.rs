//! The verdicts as lines or as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::exec::evidence::{Evidence, ModuleVerdict};
use crate::inspect::choice::is_runtime;
use crate::inspect::code::Code;

/// Version of the JSON format; adding a field does not change it.
const JSON_VERSION: u32 = 1;

/// A module and its verdict.
#[derive(Serialize)]
pub(super) struct ModuleRow {
    name: String,
    path: String,
    verdict: &'static str,
    /// True if the module is part of the recommended list.
    worth: bool,
    /// True if ffuzz-cc built the module.
    counters: bool,
    /// True for a library of a language runtime.
    runtime: bool,
    /// Number of blocks, which is the number of map bytes needed.
    blocks: usize,
    reached: usize,
    varying: usize,
    noisy: usize,
    paths: usize,
    executions: u64,
    #[serde(skip)]
    order: (ModuleVerdict, std::cmp::Reverse<usize>),
}

impl ModuleRow {
    pub(super) fn new(code: &Code, evidence: &Evidence, runs: u64) -> Self {
        let (verdict, varying) = (evidence.verdict(), evidence.varying());
        let runtime = is_runtime(&code.name);
        Self {
            name: code.name.clone(),
            path: code.path.display().to_string(),
            verdict: verdict.name(),
            worth: verdict == ModuleVerdict::Varies && !runtime,
            counters: code.is_counted(),
            runtime,
            blocks: code.size(),
            reached: evidence.reached(),
            varying,
            noisy: evidence.noisy.len(),
            paths: evidence.paths(),
            executions: evidence.executions(runs),
            order: (verdict, std::cmp::Reverse(varying)),
        }
    }
}

/// The complete result.
#[derive(Serialize)]
pub(super) struct PickerReport {
    version: u32,
    seeds: usize,
    runs: usize,
    seconds: f64,
    modules: Vec<ModuleRow>,
    /// Value for `--modules` of tracer and picker; empty if no module is worth it.
    pick: String,
}

impl PickerReport {
    pub(super) fn new(
        mut modules: Vec<ModuleRow>,
        [seeds, runs]: [usize; 2],
        time: Duration,
    ) -> Self {
        modules.sort_by(|a, b| a.order.cmp(&b.order).then_with(|| a.name.cmp(&b.name)));
        let worth = modules.iter().filter(|row| row.worth).map(|row| row.name.as_str());
        let pick = worth.collect::<Vec<_>>().join(":");
        let seconds = (time.as_secs_f64() * 100.0).round() / 100.0;
        Self { version: JSON_VERSION, seeds, runs, seconds, modules, pick }
    }

    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        let width = self.modules.iter().map(|row| row.name.len()).max().unwrap_or(0).max(6);
        let _ = writeln!(
            text,
            "{:<width$}  {:<17}  {:>8}  {:>7}  {:>7}  {:>5}  {:>7}  {:>10}",
            "module", "verdict", "blocks", "reached", "varying", "noisy", "paths", "executions"
        );
        for row in &self.modules {
            let paths = format!("{}/{}", row.paths, self.seeds);
            let _ = writeln!(
                text,
                "{:<width$}  {:<17}  {:>8}  {:>7}  {:>7}  {:>5}  {paths:>7}  {:>10}",
                row.name,
                row.verdict,
                row.blocks,
                row.reached,
                row.varying,
                row.noisy,
                row.executions
            );
        }
        let _ = writeln!(
            text,
            "\n{} seeds, {} runs of each, {:.1} s",
            self.seeds, self.runs, self.seconds
        );
        self.advise(&mut text);
        text
    }

    fn advise(&self, text: &mut String) {
        let runtime = self.modules.iter().any(|row| row.runtime && row.varying > 0);
        if runtime {
            *text += "Language runtime libraries are not suggested: every program uses them.\n";
        }
        if self.pick.is_empty() {
            *text += "No module is worth instrumenting: these seeds all take the same path.\n";
            return;
        }
        let (have, lack): (Vec<&ModuleRow>, Vec<&ModuleRow>) =
            self.modules.iter().filter(|row| row.worth).partition(|row| row.counters);
        let names = |rows: &[&ModuleRow]| {
            rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        if !have.is_empty() {
            let _ = writeln!(text, "Already built by ffuzz-cc: {}", names(&have));
        }
        if !lack.is_empty() {
            let _ = writeln!(text, "Build with CC=ffuzz-cc CXX=ffuzz-c++: {}", names(&lack));
        }
        let _ = writeln!(text, "--modules {}", self.pick);
    }
}
