//! Answers to questions about a campaign, for programs: the same for an agent over the Model Context Protocol and for a
//! client of the control socket.
//!
//! An [`Analyst`] reads the campaign's folder, and runs its queue in a target of its own; so it needs no campaign that
//! runs, and does not disturb one.

mod lists;
mod runs;
pub mod tools;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Map, Value, json};

use ffuzz_disk::find;
use ffuzz_exec::Hooked;

use crate::assemble;
use crate::campaign::{Campaign, Find, finds};
use crate::data::{Report, Source};
use crate::survey::{StuckPlace, Survey};
use tools::{Given, Tool};

/// Bytes of a list, about, and of any answer.
const MOST_BYTES: usize = 13_000;
const LARGEST: usize = 16_000;
/// Entries of a list, unless more are asked for.
const USUAL: u64 = 20;
/// Longest time for the comparisons of new inputs, at one question.
const LOG_TIME: Duration = Duration::from_secs(10);
/// Seconds for which inputs are preferred, unless another time is given.
const PREFERRED_S: u64 = 600;
/// Places that are known.
const MOST_STUCK: usize = 200;

/// Starts the target of a campaign.
pub type Start = Box<dyn FnMut(&Campaign) -> Result<Hooked, String>>;

/// A running campaign that takes orders.
pub trait Orders {
    /// Sends a command of the control socket, waits for its answer.
    fn order(&mut self, command: Value) -> Result<Value, String>;
}

/// Answers questions about one campaign.
pub struct Analyst {
    root: PathBuf,
    start: Start,
    orders: Option<Box<dyn Orders>>,
    session: Option<Session>,
}

/// What is known of the queue.
struct Session {
    target: Hooked,
    survey: Survey,
    /// By number of the survey.
    finds: Vec<Find>,
    known: HashSet<PathBuf>,
    /// Valid until there are new inputs.
    places: Option<Vec<StuckPlace>>,
    source: Option<Source>,
}

impl Analyst {
    /// `root`: the folder of the fuzzer's `-o`. `orders`: the campaign, if it may be changed.
    #[must_use]
    pub fn new(root: PathBuf, start: Start, orders: Option<Box<dyn Orders>>) -> Self {
        Self { root, start, orders, session: None }
    }

    /// Orders are carried out.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.orders.is_some()
    }

    /// Answers a question whose arguments are checked ([`Tool::check`]).
    pub fn answer(&mut self, tool: &Tool, given: &Map<String, Value>) -> Result<Value, String> {
        let answer = self.answer_of_any_size(tool, Given(given))?;
        match answer.to_string().len() {
            ..=LARGEST => Ok(answer),
            size => {
                Err(format!("the answer has {size} bytes: ask for less (limit, file, function)"))
            }
        }
    }

    fn answer_of_any_size(&mut self, tool: &Tool, given: Given<'_>) -> Result<Value, String> {
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

    fn campaign(&self) -> Result<Campaign, String> {
        let campaign = Campaign::read(&self.root);
        campaign.map_err(|error| format!("cannot read {}: {error}", self.root.display()))
    }

    /// What is known now: new inputs of the queue are run first.
    fn session(&mut self) -> Result<&mut Session, String> {
        if self.session.is_none() {
            let campaign = self.campaign()?;
            let target = (self.start)(&campaign)?;
            self.session = Some(Session {
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
            // The next question starts it again.
            self.session = None;
            return Err(error);
        }
        self.session.as_mut().ok_or_else(|| "there is no target".into())
    }

    fn report(&self) -> Result<(Campaign, Report), String> {
        let campaign = self.campaign()?;
        let report = assemble::of_folders(std::slice::from_ref(&campaign), SystemTime::now());
        Ok((campaign, report))
    }

    fn order(&mut self, tool: &Tool, given: Given<'_>) -> Result<Value, String> {
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

    /// An input's name in the queue, the beginning of one (`id:000123`), or any path.
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

impl Session {
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
            // One that has gone meanwhile is left out.
            match self.survey.run(&mut self.target, &path, |_, _| {}) {
                Ok(()) => self.finds.push(find),
                Err(crate::survey::SurveyError::Input(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let logged = self.survey.log(&mut self.target, LOG_TIME);
        logged.map_err(|error| error.to_string())?;
        if let Ok(campaign) = Campaign::read(root) {
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

    /// Name of an input.
    fn name(&self, number: usize) -> Option<String> {
        let name = self.finds.get(number)?.path.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Where counters stand, at most `most` of them, each line once.
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

/// Part of a list: entries from `after` on, as many as fit; and where the rest begins.
fn part<T: Serialize>(all: impl Iterator<Item = T>, given: Given<'_>) -> Value {
    let after = usize::try_from(given.number("after").unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = usize::try_from(given.number("limit").unwrap_or(USUAL)).unwrap_or(usize::MAX);
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
            part((0..count).map(|number| format!("{number:0size$}")), Given(&given))
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
