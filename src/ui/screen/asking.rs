//! Questions of pages that need runs of inputs, so that the engine cannot answer them. They are the queries of `ffuzz
//! mcp` (`docs/agents.md`). A thread asks them; a page shows what is known until the answer arrives.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Answers a query such as `{"cmd": "coverage"}`. May take any time.
pub type QueryHandler = Arc<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;

/// Minimum age of an answer before it is requested again.
const VALID: Duration = Duration::from_secs(5);
/// Minimum age of such an answer, as a multiple of the time it took.
const TIMES: u32 = 20;
/// Maximum number of answers kept.
const MOST: usize = 64;

/// Known answers by question.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    known: HashMap<String, Answered>,
    /// Questions of the pages since the last frame.
    wanted: RefCell<Vec<Value>>,
    asker: Option<Asker>,
}

#[derive(Debug)]
struct Answered {
    answer: Result<Value, String>,
    at: Instant,
    took: Duration,
}

/// Channel ends of the asking thread.
#[derive(Debug)]
struct Asker {
    questions: Sender<Value>,
    answers: Receiver<(String, Answered)>,
    /// True while the thread works on a question; it handles one at a time.
    is_busy: bool,
}

impl Answers {
    /// Starts the asking thread. It ends when this is dropped, or after its current answer.
    pub(super) fn from(ask: QueryHandler) -> io::Result<Self> {
        let (questions, asked) = channel::<Value>();
        let (replies, answers) = channel();
        let work = move || {
            for question in asked {
                let start = Instant::now();
                let answer = ask(&question);
                let took = start.elapsed();
                let answered = Answered { answer, at: Instant::now(), took };
                if replies.send((question.to_string(), answered)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("asking".into()).spawn(work)?;
        let asker = Asker { questions, answers, is_busy: false };
        Ok(Self { asker: Some(asker), ..Self::default() })
    }

    /// Returns the answer if known, and marks the question as wanted.
    pub(crate) fn get(&self, question: Value) -> Option<Result<&Value, &str>> {
        let known = self.known.get(&question.to_string());
        self.wanted.borrow_mut().push(question);
        known.map(|known| known.answer.as_ref().map_err(String::as_str))
    }

    /// Sends an unanswered or outdated question of the last frame. `may_ask`: the page has been shown for a moment.
    pub(super) fn ask(&mut self, may_ask: bool) {
        let wanted = self.wanted.take();
        let Some(asker) = self.asker.as_mut().filter(|asker| may_ask && !asker.is_busy) else {
            return;
        };
        let is_due = |question: &Value| {
            let known = self.known.get(&question.to_string());
            known.is_none_or(|known| known.at.elapsed() > VALID.max(known.took * TIMES))
        };
        if let Some(question) = wanted.into_iter().find(is_due) {
            asker.is_busy = asker.questions.send(question).is_ok();
        }
    }

    /// Receives an answer; returns true if one arrived.
    pub(super) fn receive(&mut self) -> bool {
        let Some(asker) = &mut self.asker else { return false };
        let Ok((question, answered)) = asker.answers.try_recv() else { return false };
        asker.is_busy = false;
        if self.known.len() >= MOST {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.at);
            if let Some(oldest) = oldest.map(|(question, _)| question.clone()) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(question, answered);
        true
    }

    /// Sets an answer, for tests.
    #[cfg(test)]
    pub(crate) fn set(&mut self, question: &Value, answer: Result<Value, String>) {
        let answered = Answered { answer, at: Instant::now(), took: Duration::ZERO };
        self.known.insert(question.to_string(), answered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn one_question_is_asked_at_a_time_and_not_again_at_once() {
        let (started, starts) = channel();
        let (go, wait) = sync_channel::<()>(1);
        let wait = std::sync::Mutex::new(wait);
        let ask: QueryHandler = Arc::new(move |question| {
            started.send(question["cmd"].clone()).unwrap();
            wait.lock().unwrap().recv().unwrap();
            if question["cmd"] == "bad" { Err("no".into()) } else { Ok(json!(1)) }
        });
        let mut answers = Answers::from(ask).unwrap();
        let (good, bad) = (json!({"cmd": "good"}), json!({"cmd": "bad"}));
        assert_eq!(answers.get(good.clone()), None);
        answers.ask(false);
        assert!(starts.try_recv().is_err());
        for _ in 0..2 {
            answers.get(good.clone());
            answers.get(bad.clone());
            answers.ask(true);
        }
        let next = |answers: &mut Answers| {
            assert!(starts.try_recv().is_err(), "two at a time");
            go.send(()).unwrap();
            while !answers.receive() {
                std::thread::yield_now();
            }
        };
        let is_first = |starts: &Receiver<Value>| starts.recv().unwrap();
        assert_eq!(is_first(&starts), "good");
        next(&mut answers);
        answers.get(good.clone());
        answers.get(bad.clone());
        answers.ask(true);
        assert_eq!(is_first(&starts), "bad");
        next(&mut answers);
        assert_eq!(answers.get(good), Some(Ok(&json!(1))));
        assert_eq!(answers.get(bad), Some(Err("no")));
        answers.ask(true);
        assert!(starts.recv_timeout(Duration::from_millis(50)).is_err(), "both are valid");
    }
}
