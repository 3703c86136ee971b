//! Answers about coverage, stuck places and finds.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::tools::ToolArgs;
use super::{Analyst, QueueAnalysis, USUAL, part};
use crate::assemble;
use crate::data::{Function, LineRun, Reach, Reason, Report, SourceFile, Stacks};
use crate::survey::StuckPlace;
use crate::texts;

/// Maximum number of inputs and operands that explain a place, and number of lines around it.
const EXPLAINED_BY: usize = 3;
const MOST_OPERANDS: usize = 8;
const AROUND: u32 = 10;
/// Time limit for finding inputs that reach a place.
const SEARCH_TIME: Duration = Duration::from_secs(5);
/// Maximum number of source lines in one answer.
const MOST_LINES: usize = 200;
/// Maximum number of unreached parts of a file in one answer.
const MOST_PARTS: usize = 100;
/// Maximum number of further stacks of a bug, and of frames of each.
const MOST_STACKS: usize = 3;
const MOST_FRAMES: usize = 30;
/// Percentage of unreached code that only another harness can reach, from which on the answer mentions
/// it.
const HARNESS: u32 = 30;

impl Analyst {
    pub(super) fn status(&mut self) -> Result<Value, String> {
        let (campaign, mut report) = self.report()?;
        let may_write = self.may_write();
        let mut next = Vec::new();
        match self.session() {
            Ok(session) => session.add_to(&mut report, &mut next),
            Err(error) => next.push(format!("make the target run: {error}")),
        }
        if !report.bugs.is_empty() {
            next.push("look at `bugs`".into());
        }
        if may_write && !campaign.is_running() {
            next.push("start the campaign again: orders need one that runs".into());
        }
        let seconds = campaign.most("run_time");
        let since = |span: u64| {
            let start = seconds.saturating_sub(span) * 1000;
            let finds = campaign.queue().into_iter();
            finds
                .filter(|find| find.name.new_edge && find.name.time.is_some_and(|at| at >= start))
                .count()
        };
        let totals = report.totals;
        Ok(json!({
            "verdict": report.verdict,
            "running": campaign.is_running(),
            "runs": totals.runs, "seconds": seconds, "runs_per_second": totals.runs.checked_div(seconds),
            "edges": totals.edges, "lines": totals.lines, "functions": totals.functions,
            "bugs": totals.bugs, "crashes": totals.crashes, "hangs": totals.hangs,
            "inputs": report.corpus.files, "stuck": totals.stuck,
            "new_edge_inputs": {"last_minute": since(60), "last_ten_minutes": since(600)},
            "seconds_since_last_edge": totals.last_edge, "chance_of_an_edge_in_a_million_runs": totals.chance,
            "target": report.campaigns[0].target, "fuzzer": report.campaigns[0].fuzzer,
            "warnings": report.warnings.iter().map(|it| &it.text).collect::<Vec<_>>(),
            "next": next,
        }))
    }

    pub(super) fn stuck(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let session = self.session()?;
        session.places()?;
        let fits = |one: &&StuckPlace| {
            let place = &one.place;
            given.text("file").is_none_or(|file| Path::new(&place.file).ends_with(file))
                && given.text("function").is_none_or(|name| place.function.contains(name))
                && given.number("min_behind").is_none_or(|least| place.behind.unwrap_or(0) >= least)
        };
        let places = session.places.iter().flatten().filter(fits);
        Ok(part(places.map(|one| summary(one, session)), given))
    }

    pub(super) fn explain_stuck(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let id = given.text("place").unwrap_or_default();
        let session = self.session()?;
        let one = session.place(id)?;
        let counters: Vec<u32> = one.counter.into_iter().collect();
        let inputs = session.inputs_hitting(&counters, EXPLAINED_BY, SEARCH_TIME)?;
        let mut seen = Vec::new();
        for number in inputs.iter().copied().chain(one.input) {
            let Some(find) = session.finds.get(number) else { continue };
            let bytes = ffuzz_sys::file::read(&find.path, 1 << 20).unwrap_or_default();
            let operands = session.operands(&bytes, one.comparison.as_ref().map(|it| it.site))?;
            seen.push(
                json!({"input": session.name(number), "size": bytes.len(), "operands": operands}),
            );
        }
        let behind = one.fork.map(|fork| session.survey.frontier.counters_behind(&fork));
        let behind = behind.unwrap_or_default();
        let mut answer = summary(&one, session);
        answer["source"] = json!(texts::around(&one.place.file, one.place.line, AROUND));
        answer["lines_behind"] = session.survey.lines_of(&behind).into();
        answer["behind_it"] = json!(session.lines(&behind, 20));
        answer["seen"] = seen.into();
        Ok(answer)
    }

    pub(super) fn coverage(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let session = self.session()?;
        let source = session.source();
        let function = |file: &SourceFile, it: &Function| {
            json!({"function": it.name, "file": file.path, "line": it.line, "entered": it.entered, "inputs": it.inputs,
                   "edges": [it.hit, it.counters]})
        };
        let wanted = |file: &&SourceFile| {
            given.text("file").is_none_or(|name| Path::new(&file.path).ends_with(name))
        };
        let files: Vec<&SourceFile> = source.files.iter().filter(wanted).collect();
        if let Some(name) = given.text("function") {
            let all =
                files.iter().flat_map(|file| file.functions.iter().map(move |it| (*file, it)));
            let all = all.filter(|(_, it)| it.name.contains(name));
            return Ok(part(all.map(|(file, it)| function(file, it)), given));
        }
        match (given.text("file"), &files[..]) {
            (None, _) => {
                let totals = source.totals;
                let mut files = files;
                files
                    .sort_by_key(|file| std::cmp::Reverse(file.totals.lines - file.totals.reached));
                let rows = files.into_iter().map(|file| {
                    let it = file.totals;
                    json!({"file": file.path, "lines": [it.reached, it.lines], "functions": [it.entered, it.functions]})
                });
                let mut answer = part(rows, given);
                answer["lines"] = json!([totals.reached, totals.lines]);
                answer["functions"] = json!([totals.entered, totals.functions]);
                Ok(answer)
            }
            (Some(name), []) => Err(format!("no source file of the target is {name}")),
            (Some(_), [file]) if given.flag("lines") => Ok(listing(file, given)),
            (Some(_), [file]) => {
                let it = file.totals;
                let unreached = file.lines.iter().filter(|run| run.state == Reach::Unreached);
                let parts: Vec<_> = unreached.map(|run| [run.first, run.last]).collect();
                let mut answer = part(file.functions.iter().map(|it| function(file, it)), given);
                answer["file"] = json!(file.path);
                answer["lines"] = json!([it.reached, it.lines]);
                answer["unreached"] = json!(parts.get(..parts.len().min(MOST_PARTS)));
                Ok(answer)
            }
            (Some(name), [_, ..]) => {
                let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
                Err(format!("{name} may be any of {}", paths.join(", ")))
            }
        }
    }

    pub(super) fn never_entered(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let reason = match given.text("reason") {
            None => None,
            Some("caller") => Some(Reason::Caller),
            Some("pointer") => Some(Reason::Pointer),
            Some("harness") => Some(Reason::Harness),
            Some(other) => return Err(format!("{other} is none of caller, pointer, harness")),
        };
        let session = self.session()?;
        let all = session.survey.never_entered(session.target.info()).into_iter();
        Ok(part(all.filter(|it| reason.is_none_or(|reason| it.reason == reason)), given))
    }

    pub(super) fn bugs(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let (_, report) = self.report()?;
        let rows = report.bugs.iter().map(|bug| {
            json!({"id": bug.id, "title": bug.title, "class": bug.class, "place": bug.place, "files": bug.files,
                   "seen": bug.seen, "input": bug.input})
        });
        let mut answer = part(rows, given);
        answer["warnings"] = json!(report.warnings.iter().map(|it| &it.text).collect::<Vec<_>>());
        Ok(answer)
    }

    pub(super) fn bug(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let (_, report) = self.report()?;
        let id = given.text("bug").unwrap_or_default();
        let bug = report.bugs.iter().find(|bug| bug.id == id);
        let mut bug = bug.ok_or_else(|| format!("there is no bug {id}"))?.clone();
        let Stacks { crash, allocation, free, others } = &mut bug.stacks;
        others.truncate(MOST_STACKS);
        let stacks = [crash, allocation, free].into_iter().chain(others);
        stacks.for_each(|stack| stack.truncate(MOST_FRAMES));
        serde_json::to_value(bug).map_err(|error| error.to_string())
    }

    pub(super) fn domains(&mut self, given: ToolArgs<'_>) -> Result<Value, String> {
        let (campaign, mut report) = self.report()?;
        let session = self.session()?;
        let finds: Vec<_> = session.finds.iter().collect();
        let campaigns = std::slice::from_ref(&campaign);
        assemble::domains(&mut report, &session.survey, &session.target, campaigns, &finds);
        let limit = given.size("limit").unwrap_or(USUAL);
        for domain in &mut report.domains {
            domain.keys.truncate(limit);
        }
        let wanted = report.domains.iter();
        let wanted = wanted.filter(|it| given.text("name").is_none_or(|name| it.name == name));
        Ok(part(wanted, given))
    }
}

impl QueueAnalysis {
    /// Adds what runs of the queue show, and what may be done next.
    fn add_to(&mut self, report: &mut Report, next: &mut Vec<String>) {
        let source = self.source().totals;
        report.totals.lines = [source.reached as u64, source.lines as u64];
        report.totals.functions = [source.entered as u64, source.functions as u64];
        if source.lines == 0 {
            next.push("build the target with ffuzz-cc, or with -g: no line of it is known".into());
        }
        report.totals.stuck = self.survey.frontier.forks().len() as u64;
        report.verdict = assemble::verdict(report);
        let unentered = self.survey.never_entered(self.target.info());
        let all: u32 = unentered.iter().map(|it| it.counters).sum();
        let harness = unentered.iter().filter(|it| it.reason == Reason::Harness);
        let harness: u32 = harness.map(|it| it.counters).sum();
        if harness > 0 && harness * 100 > all * HARNESS {
            next.push(format!(
                "extend the harness: {harness} of {all} edges in functions that are never entered are in some that \
                 nothing reached calls (never_entered)"
            ));
        }
        next.push("look at `stuck`, and write inputs that pass those places".into());
    }

    pub(super) fn place(&mut self, id: &str) -> Result<StuckPlace, String> {
        let found = self.places()?.iter().find(|one| one.place.id == id).cloned();
        found.ok_or_else(|| format!("no stuck place has the id {id}: it may be passed by now"))
    }

    /// Operands of a comparison in a run, without repeated pairs.
    pub(super) fn operands(
        &mut self,
        bytes: &[u8],
        site: Option<u32>,
    ) -> Result<Vec<String>, String> {
        let Some(site) = site else { return Ok(Vec::new()) };
        let run = self.target.observe_logged(bytes).map_err(|error| error.to_string())?;
        let mut seen = Vec::new();
        for comparison in run.comparisons.iter().filter(|comparison| comparison.site == site) {
            let text = comparison.to_string();
            if !seen.contains(&text) && seen.len() < MOST_OPERANDS {
                seen.push(text);
            }
        }
        Ok(seen)
    }
}

/// List entry of a stuck place.
fn summary(one: &StuckPlace, session: &QueueAnalysis) -> Value {
    let place = &one.place;
    let mut entry = json!({
        "id": place.id, "file": place.file, "line": place.line, "column": place.column, "function": place.function,
        "to_line": place.to, "outcome": place.outcome, "behind": place.behind, "functions_behind": place.functions,
        "copies": place.copies,
        "input": one.input.and_then(|number| session.name(number)),
    });
    if let Some(blocker) = &one.comparison {
        let comparison = blocker.comparison();
        let operand = |operand: ffuzz_comparisons::log::Operand<'_>| match operand {
            ffuzz_comparisons::log::Operand::Value(value) => json!({"value": value}),
            ffuzz_comparisons::log::Operand::Bytes(bytes) => {
                let shown = &bytes[..bytes.len().min(128)];
                json!({"hex": shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), "size": bytes.len()})
            }
        };
        entry["comparison"] = json!({
            "kind": place.comparison, "closest": place.operands, "bytes": place.bytes, "attempts": place.attempts,
            "operands": [operand(comparison.a), operand(comparison.b)], "constant": comparison.constant,
            "size": comparison.bytes,
        });
    }
    entry
}

/// Lines of a source file, each with the number of inputs that reach it.
fn listing(file: &SourceFile, given: ToolArgs<'_>) -> Value {
    let first =
        u32::try_from(given.number("after").unwrap_or(0)).unwrap_or(u32::MAX).saturating_add(1);
    let most = given.size("limit").unwrap_or(MOST_LINES);
    let texts = texts::lines(&file.path, first, most.min(MOST_LINES));
    let run_of = |line: u32| file.lines.iter().find(|run| (run.first..=run.last).contains(&line));
    let state = |run: &LineRun| match run.state {
        Reach::Unreached => "0".to_owned(),
        Reach::Derived => format!("~{}", run.inputs),
        Reach::Proved => run.inputs.to_string(),
    };
    let lines: Vec<_> = texts
        .into_iter()
        .map(|(line, text)| json!([line, run_of(line).map(state), text]))
        .collect();
    let mut size = 0;
    let fitting = lines.iter().take_while(|line| {
        size += line.to_string().len();
        size < super::MOST_BYTES
    });
    let count = fitting.count();
    let next = lines.get(count.wrapping_sub(1)).map(|line| line[0].clone());
    json!({"file": file.path, "lines": lines[..count], "next": next,
           "meaning": "line, inputs that reach it (~: it follows from other lines; null: no code), text"})
}
