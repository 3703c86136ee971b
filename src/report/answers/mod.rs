//! Answers to programs' questions about a campaign. Agents (over the Model Context Protocol) and clients of the
//! control socket get the same answers.
//!
//! An [`Analyst`] reads the campaign's folder and runs its queue in a separate target, so it needs no running
//! campaign and does not disturb one.

mod lists;
mod runs;
pub mod tools;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Map, Value, json};

use ffuzz_disk::find;
use ffuzz_engine::executor::ExitKind;
use ffuzz_exec::Hooked;

use crate::assemble;
use crate::campaign::{CampaignFolder, Find, finds};
use crate::data::{Report, Source};
use crate::survey::{StuckPlace, Survey};
use tools::{Tool, ToolArgs};

/// Approximate size limit of a list in bytes, and limit of any answer.
const MOST_BYTES: usize = 13_000;
const LARGEST: usize = 16_000;
/// Default number of list entries.
const USUAL: usize = 20;
/// Maximum time for logging the comparisons of new inputs, per question.
const LOG_TIME: Duration = Duration::from_secs(10);
/// Default duration of a preference in seconds.
const PREFERRED_S: u64 = 600;
/// Maximum number of known stuck places.
const MOST_STUCK: usize = 200;

/// Starts the target of a campaign.
pub type TargetStarter = Box<dyn FnMut(&CampaignFolder) -> Result<Hooked, String>>;

/// A running campaign that takes orders.
pub trait Orders {
    /// Sends a command of the control socket and waits for its answer.
    fn order(&mut self, command: Value) -> Result<Value, String>;
}

/// Answers questions about one campaign.
pub struct Analyst {
    root: PathBuf,
    start: TargetStarter,
    orders: Option<Box<dyn Orders>>,
    session: Option<QueueAnalysis>,
}

/// State of the queue's analysis.
struct QueueAnalysis {
    target: Hooked,
    survey: Survey,
    /// Finds by input number of the survey.
    finds: Vec<Find>,
    known: HashSet<PathBuf>,
    /// Stuck places, valid until there are new inputs.
    places: Option<Vec<StuckPlace>>,
    source: Option<Source>,
}

impl Analyst {
    /// `root` is the folder of the fuzzer's `-o`. `orders`: the campaign, if it may be changed.
    #[must_use]
    pub fn new(root: PathBuf, start: TargetStarter, orders: Option<Box<dyn Orders>>) -> Self {
        Self { root, start, orders, session: None }
    }

    /// Returns true if orders can be carried out.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.orders.is_some()
    }

    /// Answers a question with checked arguments ([`Tool::check`]).
    pub fn answer(&mut self, tool: &Tool, given: &Map<String, Value>) -> Result<Value, String> {
        let answer = self.answer_of_any_size(tool, ToolArgs(given))?;
        match answer.to_string().len() {
            ..=LARGEST => Ok(answer),
            size => {
                Err(format!("the answer has {size} bytes: ask for less (limit, file, function)"))
            }
        }
    }

    fn answer_of_any_size(&mut self, tool: &Tool, given: ToolArgs<'_>) -> Result<Value, String> {
        match tool.name {
            "status" => self.status(),
            "stuck" => self.stuck(given),
            "explain_stuck" => self.explain_stuck(given),
            "coverage" => self.coverage(given),
            "never_entered" => self.never_entered(given),
            "inputs_reaching" => self.inputs_reaching(given),
            "explain_input" => self.explain_input(given),
            "run_input" => self.run_input(given),
            "minimize" => self.minimize(given),
            "compare_inputs" => self.compare_inputs(given),
            "bugs" => self.bugs(given),
            "bug" => self.bug(given),
            "domains" => self.domains(given),
            _ => self.order(tool, given),
        }
    }

    fn campaign(&self) -> Result<CampaignFolder, String> {
        let campaign = CampaignFolder::read(&self.root);
        campaign.map_err(|error| format!("cannot read {}: {error}", self.root.display()))
    }

    /// The current analysis, after running new inputs of the queue.
    fn session(&mut self) -> Result<&mut QueueAnalysis, String> {
        if self.session.is_none() {
            let campaign = self.campaign()?;
            let target = (self.start)(&campaign)?;
            self.session = Some(QueueAnalysis {
                survey: Survey::new(target.info()),
                target,
                finds: Vec::new(),
                known: HashSet::new(),
                places: None,
                source: None,
            });
        }
        let session = self.session.as_mut().ok_or("there is no target")?;
        if let Err(error) = session.refresh(&self.root) {
            // The next question restarts it.
            self.session = None;
            return Err(error);
        }
        self.session.as_mut().ok_or_else(|| "there is no target".into())
    }

    fn report(&self) -> Result<(CampaignFolder, Report), String> {
        let campaign = self.campaign()?;
        let report = assemble::of_folders(std::slice::from_ref(&campaign), SystemTime::now());
        Ok((campaign, report))
    }

    fn order(&mut self, tool: &Tool, given: ToolArgs<'_>) -> Result<Value, String> {
        let path = given.text("path").map(|path| self.path_of(path)).transpose()?;
        let preferred = match (tool.name, self.may_write()) {
            ("prefer", true) => self.preferred(given)?,
            _ => Vec::new(),
        };
        let orders = self.orders.as_mut().ok_or("orders are not allowed here")?;
        match tool.name {
            "inject_input" => {
                let command = match (given.bytes()?, path) {
                    (Some(bytes), _) => json!({"cmd": "inject", "data": base64(&bytes)}),
                    (None, Some(path)) => json!({"cmd": "inject", "path": path}),
                    (None, None) => return Err("give one of data, text and path".into()),
                };
                orders.order(command)
            }
            "add_tokens" => {
                let tokens = given.texts("tokens");
                for token in &tokens {
                    orders.order(json!({"cmd": "set", "token": base64(token.as_bytes())}))?;
                }
                Ok(json!({"added": tokens.len()}))
            }
            "prefer" => {
                let seconds = given.number("seconds").unwrap_or(PREFERRED_S);
                orders.order(json!({"cmd": "prefer", "inputs": preferred, "seconds": seconds}))?;
                Ok(json!({"inputs": preferred.len(), "seconds": seconds}))
            }
            name => orders.order(json!({"cmd": name})),
        }
    }

    /// Resolves an input's name in the queue, the beginning of a name (`id:000123`), or any path.
    fn path_of(&self, name: &str) -> Result<PathBuf, String> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let queues = find::queues(&self.root).unwrap_or_default();
        let files = queues.iter().flat_map(|queue| finds(queue)).map(|find| find.path);
        let is_it = |path: &PathBuf| {
            let own = path.file_name().unwrap_or_default().to_string_lossy();
            let rest = own.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
        };
        let mut found = files.filter(is_it);
        found.next().ok_or_else(|| format!("no input of the queue is named {name}"))
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}

impl QueueAnalysis {
    fn refresh(&mut self, root: &Path) -> Result<(), String> {
        let queues =
            find::queues(root).map_err(|error| format!("cannot read the queue: {error}"))?;
        let mut new: Vec<Find> = queues.iter().flat_map(|queue| finds(queue)).collect();
        new.retain(|find| !self.known.contains(&find.path));
        if new.is_empty() {
            return Ok(());
        }
        new.sort_by_key(|find| (find.name.time, find.name.id));
        for find in new {
            let path = [find.path.clone()];
            self.known.insert(find.path.clone());
            // Skip a file that was removed in the meantime.
            match self.survey.run(&mut self.target, &path, |_, _| {}) {
                Ok(()) => self.finds.push(find),
                Err(crate::survey::SurveyError::Input(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let logged = self.survey.log(&mut self.target, LOG_TIME);
        logged.map_err(|error| error.to_string())?;
        if let Ok(campaign) = CampaignFolder::read(root) {
            self.survey.note_attempts(&[campaign]);
        }
        (self.places, self.source) = (None, None);
        Ok(())
    }

    fn places(&mut self) -> Result<&[StuckPlace], String> {
        if self.places.is_none() {
            let places = self.survey.stuck(&mut self.target, MOST_STUCK);
            self.places = Some(places.map_err(|error| error.to_string())?);
        }
        Ok(self.places.as_deref().unwrap_or_default())
    }

    fn source(&mut self) -> &Source {
        self.source.get_or_insert_with(|| Source::new(&self.survey.covered(), |_| true))
    }

    /// The smallest inputs that hit one of these counters.
    fn inputs_hitting(
        &mut self,
        counters: &[u32],
        most: usize,
        time: Duration,
    ) -> Result<Vec<usize>, String> {
        let found = self.survey.inputs_hitting(&mut self.target, counters, most, time);
        found.map_err(|error| error.to_string())
    }

    /// Runs an input: how it ends, and the edges that it reaches.
    fn observe(&mut self, bytes: &[u8]) -> Result<(ExitKind, Vec<u8>), String> {
        let run = self.target.observe(bytes).map_err(|error| error.to_string())?;
        Ok((run.exit, run.edges.to_vec()))
    }

    /// File name of an input.
    fn name(&self, number: usize) -> Option<String> {
        let name = self.finds.get(number)?.path.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Source lines of counters without repetitions, at most `most`.
    fn lines(&self, counters: &[u32], most: usize) -> Vec<String> {
        let mut lines = BTreeSet::new();
        for counter in counters {
            if lines.len() >= most {
                break;
            }
            if let Some(site) = self.target.info().place_of_counter(*counter) {
                lines.insert(format!("{}:{} {}", site.file, site.line, site.function));
            }
        }
        lines.into_iter().collect()
    }
}

/// Part of a list: as many entries after `after` as fit, and the position of the rest.
fn part<T: Serialize>(all: impl Iterator<Item = T>, given: ToolArgs<'_>) -> Value {
    let after = given.size("after").unwrap_or(0);
    let limit = given.size("limit").unwrap_or(USUAL);
    let mut all = all.skip(after).peekable();
    let (mut entries, mut size) = (Vec::new(), 0);
    while entries.len() < limit {
        let Some(entry) = all.next() else { break };
        let entry = serde_json::to_value(entry).unwrap_or_default();
        let bytes = entry.to_string().len();
        if !entries.is_empty() && size + bytes > MOST_BYTES {
            return json!({"entries": entries, "next": after + entries.len()});
        }
        size += bytes;
        entries.push(entry);
    }
    match all.peek() {
        Some(_) => json!({"next": after + entries.len(), "entries": entries}),
        None => json!({"entries": entries}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_given_in_parts_that_fit() {
        let some = |value: Value, count: usize, size: usize| {
            let given = value.as_object().unwrap().clone();
            part((0..count).map(|number| format!("{number:0size$}")), ToolArgs(&given))
        };
        let all = some(json!({}), 3, 1);
        assert_eq!(all, json!({"entries": ["0", "1", "2"]}));
        let first = some(json!({"limit": 2}), 3, 1);
        assert_eq!(first, json!({"entries": ["0", "1"], "next": 2}));
        assert_eq!(some(json!({"limit": 2, "after": 2}), 3, 1), json!({"entries": ["2"]}));
        assert_eq!(some(json!({"after": 99}), 3, 1), json!({"entries": []}));
        let large = some(json!({"limit": 1000}), 100, 1000);
        assert!(large.to_string().len() < 16_384, "{}", large.to_string().len());
        assert_eq!(
            large["next"].as_u64().unwrap() as usize,
            large["entries"].as_array().unwrap().len()
        );
    }
}
