//! Questions of clients about the campaign. A separate process, `ffuzz mcp`, answers them; it starts with the first
//! question and runs the queue in its own target, so the campaign does not wait.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use ffuzz_report::answers::tools::TOOLS;
use ffuzz_sys::{affinity, process};

/// Returns true if a command is a question.
pub(super) fn is_question(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name && !tool.writes)
}

/// The answering process, and its pipes.
#[derive(Debug)]
pub struct Questions {
    out: PathBuf,
    /// Cores allowed before the campaign was bound to one.
    cores: Vec<usize>,
    pipes: Mutex<Option<Pipes>>,
    child: Mutex<ProcessState>,
}

#[derive(Debug, Default)]
struct ProcessState {
    child: Option<Child>,
    over: bool,
}

#[derive(Debug)]
struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Questions {
    /// Prepares questions about the campaign in `out`. Call it before this process is bound to a core.
    #[must_use]
    pub fn new(out: PathBuf) -> Self {
        let child = Mutex::default();
        Self { out, cores: affinity::allowed(), pipes: Mutex::default(), child }
    }

    /// Answers a question with a line for its client. Other questions wait meanwhile.
    pub(super) fn answer(&self, question: &Value) -> String {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.ask(&mut pipes, question);
        asked.unwrap_or_else(|error| {
            *pipes = None;
            let error = format!("nothing answers questions: {error}");
            super::line(
                &json!({"event": "reply", "id": question["id"], "ok": false, "error": error}),
            )
        })
    }

    /// Answers a question from this program.
    pub fn ask_inside(&self, question: &Value) -> Result<Value, String> {
        let line = self.answer(question);
        let mut reply: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        match reply["ok"].as_bool() {
            Some(true) => Ok(reply["answer"].take()),
            _ => Err(reply["error"].as_str().unwrap_or("there is no answer").to_owned()),
        }
    }

    fn ask(&self, pipes: &mut Option<Pipes>, question: &Value) -> io::Result<String> {
        if pipes.is_none() {
            *pipes = Some(self.start()?);
        }
        let ended = || io::Error::other("its process has ended");
        let Pipes { input, output } = pipes.as_mut().ok_or_else(ended)?;
        input.write_all(super::line(question).as_bytes())?;
        let mut line = String::new();
        match output.read_line(&mut line)? {
            0 => Err(ended()),
            _ => Ok(line),
        }
    }

    fn start(&self) -> io::Result<Pipes> {
        let mut state = self.state();
        end(&mut state);
        if state.over {
            return Err(io::Error::other("the campaign has ended"));
        }
        let mut command = Command::new("/proc/self/exe");
        command.args(["mcp", "--plain"]).arg(&self.out);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        process::on_cores(&mut command, &self.cores);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        state.child = Some(child);
        let (input, output) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok(Pipes { input, output: BufReader::new(output) })
    }

    /// Ends the process, even while it works on an answer. No other one starts afterwards.
    pub fn stop(&self) {
        let mut state = self.state();
        state.over = true;
        end(&mut state);
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(state: &mut ProcessState) {
    if let Some(mut child) = state.child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}
