//! `-merge=1 CORPUS FOLDER…`: the first folder gets what the others add to its coverage. The work is that of `ffuzz cmin`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::campaign::report;
use super::eprint_line;
use super::files::{self, Workshop, files_below};
use super::options::Order;
use crate::cmd::exit::Failure;

/// What a pass of `cmin` says behind its number of features.
const FEATURES: &str = " unique tuples";

pub(super) fn run(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    let Some((corpus, others)) = order.folders.split_first().filter(|(_, rest)| !rest.is_empty())
    else {
        eprint_line("INFO: Merge requires two or more corpus dirs");
        return Ok(ExitCode::SUCCESS);
    };
    let unreadable = |error: io::Error| {
        Failure::new(format!("cannot merge: {error}"), "check the folders, and the room in TMPDIR")
    };
    let workshop = Workshop::new().map_err(unreadable)?;
    let first = files_below(corpus).map_err(unreadable)?;
    let mut total = first.len();
    for folder in others {
        total += files_below(folder).map_err(unreadable)?.len();
    }
    eprint_line(&format!("INFO: Seed: {}", std::process::id()));
    let known = first.len();
    eprint_line(&format!(
        "MERGE-OUTER: {total} files, {known} in the initial corpus, 0 processed earlier"
    ));
    eprint_line("MERGE-OUTER: attempt 1");
    let mut merge = Merge { harness, order, workshop: &workshop, state: None };
    let before = if first.is_empty() { 0 } else { merge.pass(&[corpus], "first", &[])? };
    let others: Vec<&PathBuf> = others.iter().collect();
    let is_empty = total == known;
    let added = if is_empty { 0 } else { merge.pass(&others, "new", &[])? };
    let kept = files_below(&workshop.place("new")).unwrap_or_default();
    let edges = merge.edges(&kept)?;
    let features = before + added;
    let processed = total.max(1);
    eprint_line(&format!(
        "#{processed}\tDONE   cov: {} ft: {features} exec/s: 0 rss: 0Mb",
        edges.1
    ));
    for file in files_below(&workshop.place("crashes")).unwrap_or_default() {
        let content = fs::read(&file).map_err(unreadable)?;
        report(harness, order, "crash", &file, &content);
    }
    for file in &kept {
        let content = fs::read(file).map_err(unreadable)?;
        files::save_input(corpus, &content).map_err(unreadable)?;
    }
    eprint_line("MERGE-OUTER: successful in 1 attempt(s)");
    eprint_line(&format!(
        "MERGE-OUTER: {} new files with {added} new features added; {} new coverage edges",
        kept.len(),
        edges.0
    ));
    Ok(ExitCode::SUCCESS)
}

struct Merge<'a> {
    harness: &'a Path,
    order: &'a Order,
    workshop: &'a Workshop,
    /// What earlier passes have reached.
    state: Option<PathBuf>,
}

impl Merge<'_> {
    /// Keeps the files of some folders that reach more than earlier passes. Returns the number of their features.
    fn pass(&mut self, folders: &[&PathBuf], name: &str, options: &[&str]) -> Result<u64, Failure> {
        let state = self.workshop.place(&format!("{name}.state"));
        let mut command = Command::new(crate::cmd::fuzz::this_program());
        command.arg("cmin").args(options).arg("-o").arg(self.workshop.place(name));
        command.arg("--crash-dir").arg(self.workshop.place("crashes"));
        command.arg("--save-coverage").arg(&state);
        for folder in folders {
            command.arg("-i").arg(folder);
        }
        if let Some(earlier) = &self.state {
            command.arg("--load-coverage").arg(earlier);
        }
        command.arg("--").arg(self.harness).args(&self.order.rest);
        command.env_remove("AFL_QUIET");
        let output = command.output();
        let output = output.map_err(|error| {
            Failure::new(
                format!("cannot start ffuzz cmin: {error}"),
                "set FFUZZ to the path of ffuzz",
            )
        })?;
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let found = said
            .lines()
            .find_map(|line| line.split_once(FEATURES)?.0.rsplit_once(' ')?.1.parse().ok());
        match found.filter(|_| output.status.success()) {
            Some(features) => {
                self.state = Some(state);
                Ok(features)
            }
            None => {
                let last = said.lines().last().unwrap_or("it says nothing").to_owned();
                Err(Failure::new(
                    format!("ffuzz cmin failed: {last}"),
                    "run it by itself to see more",
                ))
            }
        }
    }

    /// Edges of the new files beyond the corpus, and all that are known.
    fn edges(&self, kept: &[PathBuf]) -> Result<(u64, u64), Failure> {
        let count = |folders: &[&PathBuf], earlier: Option<PathBuf>, name: &str| {
            let mut merge = Merge { state: earlier, ..*self };
            merge.pass(folders, name, &["-e"])
        };
        let new = self.workshop.place("new");
        let first = self.workshop.place("first");
        let before = match first.exists() && !files_below(&first).unwrap_or_default().is_empty() {
            true => count(&[&first], None, "first-edges")?,
            false => 0,
        };
        if kept.is_empty() {
            return Ok((0, before));
        }
        let all: Vec<&PathBuf> = [&first, &new].into_iter().filter(|path| path.exists()).collect();
        let all = count(&all, None, "all-edges")?;
        Ok((all.saturating_sub(before), all))
    }
}
