//! `ffuzz mcp`: answers queries about a campaign over the Model Context Protocol, on standard input and output.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Map, Value, json};

use super::exit::Failure;
use super::fuzz::args::Args as FuzzArgs;
use super::report::{Started, campaign};
use super::tool::{self, Scratch};
use crate::fleet::control::SocketClient;
use crate::report::answers::tools::{TOOLS, Tool};
use crate::report::answers::{Analyst, Orders, TargetStarter};
use crate::report::campaign::CampaignFolder;
use crate::report::mcp::{self, ToolHandler};
use crate::sys::stdio;

/// Maximum length of a client's line: an input of 1 MiB in base64, and room for the rest.
const LONGEST_LINE: usize = 2 << 20;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-mcp",
    about = "Answer an agent's questions about a campaign (Model Context Protocol)",
    after_help = "OUT is the folder that was given to the fuzzer's -o; the campaign may run or have ended. Requests are \
                  read from stdin and answered on stdout, one JSON object per line.\n\nExamples:\n  \
                  ffuzz-mcp out\n  \
                  ffuzz-mcp --write --control /tmp/fuzz.sock out\n  \
                  claude mcp add fuzz -- ffuzz-mcp --write $PWD/out"
)]
pub(super) struct Args {
    /// Offer the tools that change the running campaign, too: inject inputs, add words, pause, stop
    #[arg(long)]
    write: bool,
    /// With --write: the campaign's control socket; without it the one that the campaign was started with
    #[arg(long, value_name = "SOCKET", requires = "write")]
    control: Option<PathBuf>,
    /// Take questions as the control socket does: {"cmd":"stuck","id":1}
    #[arg(long, hide = true, conflicts_with = "write")]
    plain: bool,
    /// Folder of the campaign
    #[arg(value_name = "OUT")]
    folder: PathBuf,
    /// The target and its arguments; without it those that the fuzzer noted
    #[arg(last = true, value_name = "TARGET")]
    command: Vec<OsString>,
}

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(ExitCode::SUCCESS) };
    let known = campaign(&args.folder)?;
    let orders = args.write.then(|| socket(&args, &known)).transpose()?;
    let scratch = Scratch::new("mcp", None);
    tool::exit_on_signals(&[&scratch], None);
    let command = args.command.clone();
    let start: TargetStarter = Box::new(move |campaign| {
        let started = Started::of(std::slice::from_ref(campaign), &command, None);
        let target = started.and_then(|started| started.start(&scratch, None));
        target.map_err(|failure| format!("{} ({})", failure.cause, failure.remedy))
    });
    let orders =
        orders.map(|path| Box::new(ControlSocket { path, client: None }) as Box<dyn Orders>);
    let mut desk = McpServer(Analyst::new(args.folder.clone(), start, orders));
    let answer = |line: &[u8]| match args.plain {
        true => Some(plain(line, &mut desk)),
        false => mcp::answer(line, &mut desk),
    };
    serve(answer).map_err(|error| {
        Failure::new(format!("cannot go on: {error}"), "start it with stdin and stdout open")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The given socket, or the one of the campaign's own `--control`.
fn socket(args: &Args, campaign: &CampaignFolder) -> Result<PathBuf, Failure> {
    if let Some(path) = &args.control {
        return Ok(path.clone());
    }
    let words = campaign.instances.iter().filter_map(|instance| instance.setup.clone());
    let used = words
        .filter_map(|setup| FuzzArgs::from_words(setup.words.into_iter().skip(1).collect()).ok());
    let place = used.filter_map(|used| used.control).find(|place| place != "-");
    place.map(PathBuf::from).ok_or_else(|| {
        let cause = "--write needs the control socket of the campaign";
        Failure::new(cause, "start the campaign with --control SOCKET, or name it here")
    })
}

/// Answers each line until the end of the input.
fn serve(mut answer: impl FnMut(&[u8]) -> Option<Value>) -> io::Result<()> {
    let mut input = io::BufReader::new(stdio::input()?);
    let mut output = stdio::output()?;
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(answer) = answer(&line) {
            output.write_all(format!("{answer}\n").as_bytes())?;
            output.flush()?;
        }
    }
    Ok(())
}

/// Reads a line, and only the start of an overlong one. Returns false at the end.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = memchr::memchr(b'\n', bytes);
        let length = end.map_or(bytes.len(), |at| at + 1);
        let room = LONGEST_LINE.saturating_sub(line.len()).min(length);
        line.extend_from_slice(&bytes[..room]);
        input.consume(length);
        if end.is_some() {
            return Ok(true);
        }
    }
}

struct McpServer(Analyst);

impl ToolHandler for McpServer {
    fn call(&mut self, tool: &Tool, given: &Map<String, Value>) -> Result<Value, String> {
        self.0.answer(tool, given)
    }

    fn may_write(&self) -> bool {
        self.0.may_write()
    }
}

/// Answers a query in the format of the control socket.
fn plain(line: &[u8], desk: &mut McpServer) -> Value {
    let question: Result<Map<String, Value>, _> = serde_json::from_slice(line);
    let (id, answer) = match question {
        Err(error) => (Value::Null, Err(format!("this is not JSON: {error}"))),
        Ok(mut given) => {
            let id = given.remove("id").unwrap_or_default();
            let name = given.remove("cmd");
            let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
            let tool = TOOLS.iter().find(|tool| tool.name == name && !tool.writes);
            let tool = tool.ok_or_else(|| format!("{name:?} is no question"));
            (id, tool.and_then(|tool| tool.check(&given).and_then(|()| desk.call(tool, &given))))
        }
    };
    match answer {
        Ok(answer) => json!({"event": "reply", "id": id, "ok": true, "answer": answer}),
        Err(error) => json!({"event": "reply", "id": id, "ok": false, "error": error}),
    }
}

/// The control socket; connects at the first command.
struct ControlSocket {
    path: PathBuf,
    client: Option<SocketClient>,
}

impl Orders for ControlSocket {
    fn order(&mut self, command: Value) -> Result<Value, String> {
        if self.client.is_none() {
            self.client = Some(connect(&self.path)?);
        }
        let client = self.client.as_mut().ok_or("there is no connection")?;
        let answer = client.order(command);
        if answer.is_err() {
            // A restarted campaign has a new socket.
            self.client = None;
        }
        answer
    }
}

fn connect(path: &Path) -> Result<SocketClient, String> {
    SocketClient::connect(path).map_err(|error| {
        format!("no campaign listens at {}: {error} (start it with --control)", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_read() {
        let text = [vec![b'x'; LONGEST_LINE + 10], b"\nnext\nlast".to_vec()].concat();
        let (mut input, mut line) = (io::BufReader::new(&text[..]), Vec::new());
        let mut read = || read_line(&mut input, &mut line).unwrap().then(|| line.clone());
        assert_eq!(read().map(|line| line.len()), Some(LONGEST_LINE));
        assert_eq!(read().as_deref(), Some(&b"next\n"[..]));
        assert_eq!((read().as_deref(), read()), (Some(&b"last"[..]), None));
    }
}
