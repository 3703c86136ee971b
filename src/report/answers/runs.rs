//! Answers about single inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use ffuzz_engine::coverage;
use ffuzz_engine::executor::ExitKind;
use ffuzz_engine::minimize::tmin::Tmin;

use super::tools::ToolArgs;
use super::{Analyst, QueueAnalysis, USUAL};
use crate::survey::StuckPlace;

/// Maximum number of places in one answer.
const MOST_PLACES: usize = 20;
/// Maximum number of lines of one input in an answer.
const MOST_LINES: usize = 500;
/// Maximum number of preferred inputs.
const MOST_PREFERRED: usize = 50;
/// Time limit for minimizing an input.
const MINIMIZE_TIME: Duration = Duration::from_secs(10);
/// Time limit for finding inputs that reach a line.
const SEARCH_TIME: Duration = Duration::from_secs(20);

/// Files and lines.
type FileLines = BTreeSet<(String, u32)>;

/// A place or line that a run is tested for.
enum Aim {
    Place(Box<StuckPlace>),
    Line { file: String, line: u32, counters: Vec<u32> },
}

impl Analyst {
    pub(super) fn inputs_reaching(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let (file, line) =
            (given.text("file").unwrap_or_default(), given.number("line").unwrap_or(0));
        let session = self.session()?;
        let counters = session.counters_of(file, line)?;
        let limit = given.size("limit").unwrap_or(USUAL);
        let found = session.inputs_hitting(&counters, limit, SEARCH_TIME)?;
        let entries = found.into_iter().filter_map(|number| {
            Some(json!({"input": session.name(number)?, "size": session.finds.get(number)?.size}))
        });
        Ok(json!({"entries": entries.collect::<Vec<_>>()}))
    }

    pub(super) fn explain_input(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let path = self.path_of(given.text("input").unwrap_or_default())?;
        let session = self.session()?;
        let number = session.finds.iter().position(|find| find.path == path);
        let number = number.ok_or_else(|| format!("{} is not in the queue", path.display()))?;
        let facts = session.survey.counters.iter().enumerate();
        let first = facts.filter(|(_, facts)| facts.first == Some(number));
        let new: Vec<u32> = first.map(|(counter, _)| counter as u32).collect();
        let find = &session.finds[number];
        let name = &find.name;
        let aggregates = &session.survey.aggregates;
        let owned =
            aggregates.changed().filter(|(key, _)| session.survey.owners.of(*key) == Some(number));
        let owned: Vec<_> = owned.take(MOST_PLACES).collect();
        Ok(json!({
            "input": session.name(number), "path": path, "size": find.size,
            "found_after_seconds": name.time.map(|time| time / 1000), "runs": name.execs,
            "parent": name.src, "operator": name.op, "from": name.peer, "seed": name.orig,
            "new_edges": new.len(), "new_lines": session.lines(&new, MOST_PLACES),
            "best_of_domain_keys": owned,
        }))
    }

    pub(super) fn run_input(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let bytes = self.given_bytes(given)?;
        let session = self.session()?;
        let watch = given.text("watch").map(|watch| session.watch(watch)).transpose()?;
        let (exit, edges) = session.observe(&bytes)?;
        let new = session.survey.new_counters(&edges);
        let mut answer = json!({
            "outcome": outcome(exit), "size": bytes.len(), "edges": coverage::count(&edges),
            "new_edges": new.len(), "new_lines": session.lines(&new, MOST_PLACES),
        });
        if let Some(watch) = watch {
            answer["watch"] = session.watched(&watch, &bytes, &edges)?;
        }
        Ok(answer)
    }

    /// The smallest inputs that reach a function or a line.
    pub(super) fn preferred(&mut self, given: ToolArgs<'_>) -> Result<Vec<PathBuf>, String> {
        if given.number("seconds") == Some(0) {
            return Ok(Vec::new());
        }
        let session = self.session()?;
        let counters = match (given.text("function"), given.text("line")) {
            (Some(name), None) => session.counters_of_function(name)?,
            (None, Some(line)) => {
                let (file, line) = line.rsplit_once(':').ok_or("a line is FILE:LINE")?;
                let number = line.parse().map_err(|_| format!("{line} is no line"))?;
                session.counters_of(file, number)?
            }
            _ => return Err("give a function or a line".into()),
        };
        let found = session.inputs_hitting(&counters, MOST_PREFERRED, SEARCH_TIME)?;
        let paths = found.into_iter().filter_map(|number| session.finds.get(number));
        let paths: Vec<PathBuf> = paths.map(|find| find.path.clone()).collect();
        match paths.is_empty() {
            true => Err("no input of the queue reaches it".into()),
            false => Ok(paths),
        }
    }

    pub(super) fn minimize(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let mut best = self.given_bytes(given)?;
        let before = best.len();
        let session = self.session()?;
        let watch = given.text("watch").map(|watch| session.watch(watch)).transpose()?;
        let mut shown = |bytes: &[u8]| -> Result<(ExitKind, usize), String> {
            let (exit, edges) = session.observe(bytes)?;
            let far = watch.as_ref().map_or(0, |watch| session.far(watch, &edges));
            Ok((exit, far))
        };
        let wanted = shown(&best)?;
        if wanted.1 == 0 && (watch.is_some() || wanted.0 == ExitKind::Ok) {
            return Err(match watch {
                Some(_) => "the input does not come to that place".into(),
                None => "the input ends well: say with `watch` what is to stay".into(),
            });
        }
        let (deadline, mut runs) = (Instant::now() + MINIMIZE_TIME, 0_u64);
        let (mut tmin, mut proposal) = (Tmin::new(&best, NonZeroUsize::MIN), Vec::new());
        while Instant::now() < deadline && tmin.next(&best, &mut proposal) {
            runs += 1;
            let (exit, far) = shown(&proposal)?;
            if exit == wanted.0 && far >= wanted.1 {
                std::mem::swap(&mut best, &mut proposal);
                tmin.accepted();
            } else {
                tmin.rejected();
            }
        }
        let is_done = Instant::now() < deadline;
        let text =
            String::from_utf8(best.clone()).ok().filter(|text| !text.contains(char::is_control));
        Ok(json!({
            "outcome": outcome(wanted.0), "size": [before, best.len()], "runs": runs, "done": is_done,
            "data": super::base64(&best), "text": text,
        }))
    }

    pub(super) fn compare_inputs(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let [a, b] = ["a", "b"].map(|name| self.bytes_of(given.text(name).unwrap_or_default()));
        let (a, b) = (a?, b?);
        let session = self.session()?;
        let mut seen = |bytes: &[u8]| -> Result<_, String> {
            let (exit, edges) = session.observe(bytes)?;
            Ok((outcome(exit), coverage::count(&edges), session.survey.lines_of_run(&edges)))
        };
        let ((ends_a, edges_a, lines_a), (ends_b, edges_b, lines_b)) = (seen(&a)?, seen(&b)?);
        let only = |one: &FileLines, other: &FileLines| {
            let mut files: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            for (file, line) in one.difference(other).take(MOST_LINES) {
                files.entry(file).or_default().push(*line);
            }
            json!(files)
        };
        Ok(json!({
            "a": {"outcome": ends_a, "edges": edges_a, "only_lines": only(&lines_a, &lines_b)},
            "b": {"outcome": ends_b, "edges": edges_b, "only_lines": only(&lines_b, &lines_a)},
            "lines_of_both": lines_a.intersection(&lines_b).count(),
        }))
    }

    /// The input that is given itself or by its path.
    fn given_bytes(&self, given: ToolArgs<'_>) -> Result<Vec<u8>, String> {
        let by_path = || self.bytes_of(given.text("path").unwrap_or_default());
        given.bytes()?.map_or_else(by_path, Ok)
    }

    fn bytes_of(&self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.path_of(name)?;
        let bytes = ffuzz_sys::file::read(&path, 1 << 20);
        bytes.map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

impl QueueAnalysis {
    fn counters_of(&self, file: &str, line: u64) -> Result<Vec<u32>, String> {
        let line = u32::try_from(line).unwrap_or(0);
        let counters = self.survey.counters_of_line(file, line);
        match counters.is_empty() {
            true => Err(format!("{file}:{line} is no line with code of the target")),
            false => Ok(counters),
        }
    }

    fn counters_of_function(&mut self, name: &str) -> Result<Vec<u32>, String> {
        let source = self.source();
        let files = source.files.iter();
        let functions = files.flat_map(|file| file.functions.iter().map(move |it| (file, it)));
        let it = functions.filter(|(_, it)| it.name == name || it.symbol == name);
        let places: Vec<(String, u32)> =
            it.map(|(file, it)| (file.path.clone(), it.line)).collect();
        let counters =
            places.iter().flat_map(|(file, line)| self.survey.counters_of_line(file, *line));
        let counters: Vec<u32> = counters.collect();
        match counters.is_empty() {
            true => Err(format!("no function of the target is named {name}")),
            false => Ok(counters),
        }
    }

    fn watch(&mut self, watch: &str) -> Result<Aim, String> {
        if let Some((file, line)) = watch.rsplit_once(':')
            && let Ok(line) = line.parse::<u32>()
        {
            let counters = self.counters_of(file, line.into())?;
            return Ok(Aim::Line { file: file.to_owned(), line, counters });
        }
        Ok(Aim::Place(Box::new(self.place(watch)?)))
    }

    /// Progress of a run at a place: 0 does not reach it, 1 reaches it, 2 passes it.
    fn far(&self, watch: &Aim, edges: &[u8]) -> usize {
        let is_hit = |counter: &u32| edges.get(*counter as usize).is_some_and(|count| *count > 0);
        match watch {
            Aim::Line { counters, .. } => usize::from(counters.iter().any(is_hit)),
            Aim::Place(one) => {
                let behind = one.fork.map(|fork| self.survey.frontier.counters_behind(&fork));
                match behind.unwrap_or_default().iter().any(is_hit) {
                    true => 2,
                    false => usize::from(one.counter.as_ref().is_some_and(is_hit)),
                }
            }
        }
    }

    fn watched(&mut self, watch: &Aim, bytes: &[u8], edges: &[u8]) -> Result<Value, String> {
        let is_hit = |counter: &u32| edges.get(*counter as usize).is_some_and(|count| *count > 0);
        let (file, line, mut answer) = match watch {
            Aim::Line { file, line, counters } => {
                (file.clone(), *line, json!({"reached": counters.iter().any(is_hit)}))
            }
            Aim::Place(one) => {
                let far = self.far(watch, edges);
                let (reached, passed) = (far > 0, far > 1);
                let operands = self.operands(bytes, one.comparison.as_ref().map(|it| it.site))?;
                let answer = json!({"reached": reached, "passed": passed, "operands": operands});
                (one.place.file.clone(), one.place.line, answer)
            }
        };
        if answer["reached"] == false {
            let lines = self.survey.lines_of_run(edges);
            let before = lines
                .iter()
                .filter(|(path, number)| *number <= line && Path::new(path).ends_with(&file));
            answer["last_reached_line_before"] = json!(before.map(|(_, number)| *number).max());
        }
        Ok(answer)
    }
}

fn outcome(exit: ExitKind) -> String {
    match exit {
        ExitKind::Ok => "ok".into(),
        ExitKind::Crash { signal: 0 } => "crash by exit code".into(),
        ExitKind::Crash { signal } => format!("crash by signal {signal}"),
        ExitKind::Hang | ExitKind::Cut => "timeout".into(),
        ExitKind::Oom => "killed: out of memory?".into(),
        ExitKind::Lost => "took its fork server along".into(),
    }
}
