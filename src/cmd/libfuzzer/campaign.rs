//! The campaign behind a harness's command line.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

use super::files::{self, CampaignFiles};
use super::lines::{self, StatusLines};
use super::options::Order;
use super::{WRONG, eprint_line};
use crate::cmd::exit::Failure;
use crate::config::env::Environment;
use crate::config::sanitizers;
use crate::event::{Event, InputOrigin};
use crate::sys::subprocess::Subprocess;

/// libFuzzer's exit codes.
const OUT_OF_MEMORY: u8 = 71;
const TIMEOUT: u8 = 70;
pub(super) const INTERRUPTED: u8 = 72;
/// Interval between checks for signals and `-stop_file`.
const LOOK: Duration = Duration::from_millis(100);
/// Time limit for the campaign's end.
const LONGEST_END: Duration = Duration::from_secs(30);
/// Text in builds with AddressSanitizer.
const ASAN: &[u8] = b"__asan_init";

/// Performs the order if all folders exist or can be created.
pub(super) fn checked(
    order: &Order,
    work: impl FnOnce() -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    match missing_folder(order) {
        None => work(),
        Some(line) => {
            eprint_line(&line);
            Ok(ExitCode::from(WRONG))
        }
    }
}

/// Fuzzes until a limit, a signal or a failing input.
pub(super) fn fuzz(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    if order.number("runs") == 0 {
        return run_by_harness(harness, order);
    }
    if order.number("jobs") > 0 {
        return super::jobs::run(harness, order);
    }
    let words = match words_of(order) {
        Ok(words) => words,
        Err(line) => {
            eprint_line(&line);
            return Ok(ExitCode::from(WRONG));
        }
    };
    let workshop = CampaignFiles::new().map_err(|error| cannot("make a folder", &error))?;
    let collected = workshop.collect(order);
    let (sizes, counts) = collected.map_err(|error| cannot("read the corpus", &error))?;
    let mut lines = StatusLines::new(order);
    if order.flag("use_cmp") {
        let words =
            crate::inspect::words::of_program(harness).into_iter().map(|word| word.bytes.into());
        lines.know_words(words);
    }
    let seed = match u32::try_from(order.number("seed")) {
        Ok(seed) if seed > 0 => seed,
        _ => std::process::id(),
    };
    if let Some(words) = words {
        eprint_line(&format!("Dictionary: {words} entries"));
    }
    lines.begin(order, seed.into(), sizes, &counts);
    let mut campaign = FuzzerProcess::start(harness, order, &workshop, sizes.most)
        .map_err(|error| cannot("start ffuzz", &error))?;
    let end = campaign.watch(&mut lines);
    let spent = campaign.begun.elapsed();
    let code = match end {
        End::Limit => {
            lines.end(order, spent);
            // With `-fork`, ignored failures still determine the exit code, as in libFuzzer.
            let last = lines.last_failed.filter(|_| order.number("fork") > 0);
            last.map_or(0, |kind| code_of(kind, order))
        }
        End::Stopped => 0,
        End::Interrupted => {
            eprint_line(&format!("=={}== libFuzzer: run interrupted; exiting", std::process::id()));
            INTERRUPTED
        }
        End::Failing(Failing { kind, code, .. }) => {
            if order.flag("print_final_stats") {
                lines.end(order, spent);
            }
            code.unwrap_or_else(|| code_of(kind, order))
        }
        End::Failed(text) => {
            eprint_line(&text);
            WRONG
        }
    };
    if order.number("fork") > 0 {
        eprint_line(&format!("INFO: exiting: {code} time: {}s", spent.as_secs()));
    }
    Ok(ExitCode::from(code))
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    let cause = format!("cannot {what}: {error}");
    Failure { code: WRONG, ..Failure::new(cause, "make room, or set TMPDIR to another folder") }
}

fn code_of(kind: &str, order: &Order) -> u8 {
    let number = match kind {
        "timeout" => order.number("timeout_exitcode"),
        "oom" => OUT_OF_MEMORY.into(),
        _ => order.number("error_exitcode"),
    };
    u8::try_from(number & 255).unwrap_or(u8::MAX)
}

/// libFuzzer's message for a missing folder, unless it is to be created.
fn missing_folder(order: &Order) -> Option<String> {
    let prefix = Path::new(order.text("artifact_prefix"));
    let is_folder = order.text("artifact_prefix").ends_with('/');
    let above = if is_folder { Some(prefix) } else { prefix.parent() };
    let above = above.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
    for folder in order.folders.iter().cloned().chain(above) {
        if folder.is_dir()
            || (order.flag("create_missing_dirs") && fs::create_dir_all(&folder).is_ok())
        {
            continue;
        }
        let shown = folder.display();
        return Some(match folder.exists() {
            true => format!("Not a directory: {shown}; exiting"),
            false => format!("ERROR: The required directory \"{shown}\" does not exist"),
        });
    }
    None
}

/// Number of words in the dictionary, if there is one; libFuzzer's error line for an invalid one.
fn words_of(order: &Order) -> Result<Option<usize>, String> {
    let file = order.text("dict");
    if file.is_empty() {
        return Ok(None);
    }
    let content = fs::read(file).unwrap_or_default();
    if content.is_empty() {
        return Err("ParseDictionaryFile: file does not exist or is empty".into());
    }
    let mut words = 0;
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        // NAME="WORD", or only the word.
        let quote = line.iter().position(|byte| *byte == b'"');
        let is_word = quote.is_some_and(|at| at + 1 < line.len()) && line.ends_with(b"\"");
        if !is_word {
            let text = String::from_utf8_lossy(line);
            return Err(format!("ParseDictionaryFile: error in line {}\n\t\t{text}", number + 1));
        }
        words += 1;
    }
    Ok(Some(words))
}

/// Lets the harness run its corpus or single files by itself.
pub(super) fn run_by_harness(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    let mut command = Command::new(harness);
    let run = command.args(order.words_without(&["jobs", "workers", "fork"])).status();
    let status = run.map_err(|error| cannot("start the harness", &error))?;
    Ok(ExitCode::from(status.code().map_or(77, |code| code as u8)))
}

/// Reason for the end of a campaign.
enum End {
    /// Time limit or run limit.
    Limit,
    /// `-stop_file`, SIGUSR1 or SIGUSR2.
    Stopped,
    Interrupted,
    Failing(Failing),
    /// The campaign failed.
    Failed(String),
}

/// A failing input.
struct Failing {
    kind: &'static str,
    /// Exit code of the harness.
    code: Option<u8>,
}

struct FuzzerProcess<'a> {
    harness: &'a Path,
    order: &'a Order,
    process: Subprocess,
    messages: mpsc::Receiver<Message>,
    begun: Instant,
    asked: [Arc<AtomicBool>; 2],
}

enum Message {
    Event(Box<Event>),
    /// An event of one of several campaigns.
    Part(Box<Event>),
    Line(String),
}

impl<'a> FuzzerProcess<'a> {
    fn start(
        harness: &'a Path,
        order: &'a Order,
        workshop: &CampaignFiles,
        longest: u64,
    ) -> io::Result<Self> {
        let asked: [Arc<AtomicBool>; 2] = Default::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&asked[0]))?;
        }
        for signal in [SIGUSR1, SIGUSR2] {
            signal_hook::flag::register(signal, Arc::clone(&asked[1]))?;
        }
        let (argv, env) = command(harness, order, workshop, longest);
        let (out, out_theirs) = io::pipe()?;
        let (err, err_theirs) = io::pipe()?;
        let process =
            Subprocess::start(&argv, &env, Stdio::null(), out_theirs.as_fd(), err_theirs.as_fd())?;
        drop((out_theirs, err_theirs));
        let (sender, messages) = mpsc::channel();
        let lines = sender.clone();
        std::thread::spawn(move || read_lines(out, |line| sender.send(message(line)).is_ok()));
        std::thread::spawn(move || {
            read_lines(err, |line| lines.send(Message::Line(line.to_owned())).is_ok());
        });
        Ok(Self { harness, order, process, messages, begun: Instant::now(), asked })
    }

    /// Follows the campaign to its end.
    fn watch(&mut self, lines: &mut StatusLines) -> End {
        let mut last_line = String::new();
        let mut end = None;
        let mut ending: Option<Instant> = None;
        loop {
            if ending.is_none()
                && let Some(asked) = self.look()
            {
                (end, ending) = (Some(asked), Some(Instant::now()));
                self.process.signal(SIGTERM);
            }
            let message = match self.messages.recv_timeout(LOOK) {
                Ok(message) => message,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if ending.is_some_and(|since| since.elapsed() > LONGEST_END) {
                        break;
                    }
                    continue;
                }
            };
            let (event, is_part) = match message {
                Message::Event(event) => (event, false),
                Message::Part(event) => (event, true),
                Message::Line(line) => {
                    if self.order.number("verbosity") >= 2 {
                        eprint_line(&line);
                    }
                    last_line = line;
                    continue;
                }
            };
            // One failing input ends the run; further ones until the end are not reported.
            let has_failed = matches!(end, Some(End::Failing(_)));
            if has_failed && matches!(*event, Event::CrashSaved { .. } | Event::HangSaved { .. }) {
                continue;
            }
            if let Some(failing) = self.note(*event, is_part, lines)
                && ending.is_none()
            {
                (end, ending) = (Some(End::Failing(failing)), Some(Instant::now()));
                self.process.signal(SIGTERM);
            }
        }
        self.process.wait(LONGEST_END);
        match (end, self.process.try_wait()) {
            (Some(end), _) => end,
            (None, Some(0)) => End::Limit,
            (None, _) => End::Failed(format!("ERROR: the campaign could not go on: {last_line}")),
        }
    }

    /// Checks for requests of the user.
    fn look(&self) -> Option<End> {
        let [interrupted, stopped] = &self.asked;
        let stop_file = self.order.text("stop_file");
        match () {
            () if interrupted.load(Ordering::Relaxed) => Some(End::Interrupted),
            () if stopped.load(Ordering::Relaxed) => Some(End::Stopped),
            () if !stop_file.is_empty() && Path::new(stop_file).exists() => Some(End::Limit),
            () => None,
        }
    }

    /// Returns a failing input, unless failures are ignored.
    fn note(&self, event: Event, is_part: bool, lines: &mut StatusLines) -> Option<Failing> {
        match event {
            Event::Started if !is_part => lines.started(),
            Event::Tick(snapshot) if !is_part => lines.tick(*snapshot),
            Event::Stopped { snapshot, .. } if !is_part => lines.tick(*snapshot),
            Event::SeedSaved { path, source: InputOrigin::Own, new_edge, .. } => {
                let Ok(content) = fs::read(&path) else { return None };
                if let Some(folder) = self.order.folders.first()
                    && let Err(error) = files::save_input(folder, &content)
                {
                    eprint_line(&format!("WARNING: cannot write to {}: {error}", folder.display()));
                }
                let execs = part_of(&path, "execs:").and_then(|number| number.parse().ok());
                let operations = part_of(&path, "op:").unwrap_or_default();
                lines.new_input(&content, operations, execs.unwrap_or_default(), new_edge);
            }
            Event::CrashSaved { path, .. } => return self.failing("crash", &path, lines),
            Event::HangSaved { path, .. } => return self.failing("timeout", &path, lines),
            _ => {}
        }
        None
    }

    /// Saves the input, and shows the harness's report.
    fn failing(&self, kind: &'static str, path: &Path, lines: &mut StatusLines) -> Option<Failing> {
        let order = self.order;
        let content = fs::read(path).ok()?;
        let (kind, code) = report(self.harness, order, kind, path, &content);
        *lines.failed.entry(kind).or_default() += 1;
        lines.last_failed = Some(kind);
        let forks = order.number("fork") > 0;
        let is_ignored = match kind {
            "crash" => order.flag("ignore_crashes"),
            "oom" => forks && order.flag("ignore_ooms"),
            _ => forks && order.flag("ignore_timeouts"),
        };
        // An exit code chosen by the user has precedence over a sanitizer's.
        let code = code.filter(|_| !order.is_given("error_exitcode") && kind != "timeout");
        (!is_ignored).then_some(Failing { kind, code: code.filter(|code| *code != 0) })
    }
}

/// Shows the harness's report of a failing input and saves the input. Returns the kind, and the exit code of the
/// harness.
pub(super) fn report(
    harness: &Path,
    order: &Order,
    kind: &'static str,
    path: &Path,
    content: &[u8],
) -> (&'static str, Option<u8>) {
    let (kind, code) = said_of(harness, order, kind, path);
    match files::save_artifact(order, kind, content) {
        Ok(saved) => lines::artifact(order, content, &saved),
        Err(error) => eprint_line(&format!("ERROR: cannot save the input: {error}")),
    }
    (kind, code)
}

/// As [`report`], for an input that is already saved.
pub(super) fn show(harness: &Path, order: &Order, saved: &Path, content: &[u8]) {
    said_of(harness, order, "crash", saved);
    lines::artifact(order, content, saved);
}

fn said_of(
    harness: &Path,
    order: &Order,
    kind: &'static str,
    path: &Path,
) -> (&'static str, Option<u8>) {
    let report = (kind == "crash").then(|| report_of(harness, order, path));
    let (code, text) = report.transpose().unwrap_or_default().unwrap_or_default();
    let kind = match code {
        Some(OUT_OF_MEMORY) => "oom",
        Some(TIMEOUT) => "timeout",
        _ => kind,
    };
    // The campaign's file will be gone when the user reads this.
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.starts_with(b"Running: "));
    let _ = io::stderr().lock().write_all(&lines.flatten().copied().collect::<Vec<u8>>());
    if !text.windows(8).any(|part| part == b"SUMMARY:") {
        let (what, short) = match kind {
            "timeout" => (format!("timeout after {} seconds", order.number("timeout")), "timeout"),
            _ => ("deadly signal".into(), "deadly signal"),
        };
        eprint_line(&format!("=={}== ERROR: libFuzzer: {what}", std::process::id()));
        eprint_line(&format!("SUMMARY: libFuzzer: {short}"));
    }
    (kind, code)
}

/// Runs the harness with one file. Returns the exit code (None for a signal) and standard error.
fn report_of(harness: &Path, order: &Order, input: &Path) -> io::Result<(Option<u8>, Vec<u8>)> {
    let mut command = Command::new(harness);
    command.arg("-verbosity=0").args(order.limits());
    let output = command.arg(input).args(&order.rest).stdin(Stdio::null()).output()?;
    Ok((output.status.code().map(|code| code as u8), output.stderr))
}

/// A part of a find's name, such as the operator or the number of runs.
fn part_of<'a>(path: &'a Path, key: &str) -> Option<&'a str> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split(',').find_map(|part| part.strip_prefix(key))
}

/// Command line and environment of the campaign.
fn command(
    harness: &Path,
    order: &Order,
    workshop: &CampaignFiles,
    longest: u64,
) -> (Vec<OsString>, Vec<(OsString, Option<OsString>)>) {
    let mut argv: Vec<OsString> = vec![crate::cmd::fuzz::this_program().into(), "fuzz".into()];
    let mut put = |name: &str, value: OsString| argv.extend([name.into(), value]);
    put("-i", workshop.seeds().into());
    put("-o", workshop.output().into());
    let number = |name: &str| order.number(name);
    if number("max_total_time") > 0 {
        put("-V", number("max_total_time").to_string().into());
    }
    if number("runs") > 0 {
        put("-E", number("runs").to_string().into());
    }
    let most = match number("max_len") {
        0 => longest.clamp(4096, 1 << 20),
        most => most.unsigned_abs(),
    };
    put("-G", most.to_string().into());
    if number("seed") > 0 {
        put("-s", number("seed").to_string().into());
    }
    if !order.text("dict").is_empty() {
        put("-x", order.text("dict").into());
    }
    if number("fork") > 0 {
        put("-j", number("fork").to_string().into());
    }
    let has_asan =
        fs::read(harness).is_ok_and(|content| memchr::memmem::find(&content, ASAN).is_some());
    if order.is_given("rss_limit_mb") && number("rss_limit_mb") > 0 && !has_asan {
        put("-m", number("rss_limit_mb").to_string().into());
    }
    argv.extend(["--json".into(), "--".into()]);
    argv.push(std::path::absolute(harness).unwrap_or_else(|_| PathBuf::from(harness)).into());
    argv.extend(order.rest.iter().cloned());
    let mut env: Vec<(OsString, Option<OsString>)> = Vec::new();
    let mut set = |name: &str, value: String| env.push((name.into(), Some(value.into())));
    for name in [
        "AFL_CRASHING_SEEDS_AS_NEW_CRASH",
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES",
        "AFL_SKIP_CPUFREQ",
        "FFUZZ_NO_TRIAGE",
    ] {
        set(name, "1".into());
    }
    if !order.flag("ignore_crashes") {
        set("AFL_BENCH_UNTIL_CRASH", "1".into());
    }
    let milliseconds = number("timeout").clamp(1, 1 << 20) * 1000;
    set("AFL_HANG_TMOUT", milliseconds.to_string());
    for (name, value) in sanitizer_variables(order, has_asan) {
        set(name, value);
    }
    (argv, env)
}

/// Sanitizer options with libFuzzer's limits, for a harness with or without AddressSanitizer.
pub(super) fn sanitizer_variables(order: &Order, has_asan: bool) -> Vec<(&'static str, String)> {
    let limits =
        [("rss_limit_mb", "hard_rss_limit_mb"), ("malloc_limit_mb", "max_allocation_size_mb")];
    let limits = limits.into_iter().filter(|(name, _)| has_asan && order.number(name) > 0);
    let limits: Vec<String> =
        limits.map(|(name, option)| format!("{option}={}", order.number(name))).collect();
    sanitizers::completed(&Environment::read(), &limits)
}

/// Passes on each line until `take` returns false.
fn read_lines(from: impl io::Read, mut take: impl FnMut(&str) -> bool) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while let Ok(1..) = {
        line.clear();
        reader.read_until(b'\n', &mut line)
    } {
        if !take(String::from_utf8_lossy(&line).trim_end()) {
            return;
        }
    }
}

fn message(line: &str) -> Message {
    #[derive(Deserialize)]
    struct Tag {
        worker: Option<IgnoredAny>,
    }
    let tag = serde_json::from_str::<Tag>(line);
    match (tag, serde_json::from_str(line)) {
        (Ok(Tag { worker: Some(_) }), Ok(event)) => Message::Part(Box::new(event)),
        (_, Ok(event)) => Message::Event(Box::new(event)),
        _ => Message::Line(line.to_owned()),
    }
}
