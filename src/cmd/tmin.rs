//! `ffuzz tmin`: makes an input smaller and simpler, as `afl-tmin` does, or while it keeps a domain's value.

mod args;
mod goal;

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

pub(super) use args::Args;
use goal::TminJudge;

use super::exit::Failure;
use super::tool::{self, Scratch, ToolTarget, print_messages, say};
use crate::config::env::Environment;
use crate::disk::inputs;
use crate::engine::executor::ExitKind;
use crate::engine::minimize::tmin::{FILLER, Note, Stage, Tmin};
use crate::exec::Hooked;
use crate::mutate::Candidate;
use crate::mutate::MAX_INPUT;

/// Minimum timeout, as in AFL.
const MIN_TIMEOUT_MS: u64 = 10;
/// Timeout without `-t`.
const TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let args = match tool::parse::<Args>(program, words) {
        Ok(args) => args,
        Err(code) => return Ok(code),
    };
    minimize(&args, &tool::environment(false)).map_err(tool::cannot)?;
    Ok(ExitCode::SUCCESS)
}

fn minimize(args: &Args, environment: &Environment) -> Result<(), Failure> {
    args.check()?;
    let quiet = environment.flag(&["AFL_QUIET"]);
    let timeout = args.target.timeout(MIN_TIMEOUT_MS, TIMEOUT)?;
    let input = read(args, quiet)?;
    let scratch = Scratch::new("tmin", None);
    tool::exit_on_signals(&[&scratch], None);
    let mut wanted = ToolTarget::new(&args.target, &scratch, timeout);
    wanted.native = Some(&args.native);
    wanted.domains = args.dsf.is_some();
    wanted.file = args.file.as_deref();
    wanted.exit_is_crash = args.exit_is_crash;
    // A crash ends its process, so only runs in fresh processes compare equal.
    wanted.fresh_runs = environment.flag(&["AFL_TMIN_EXACT"]);
    let mut target = wanted.start_aloud(environment, quiet)?;
    say(quiet, &format!("[*] Target map size: {}", target.info().map_size()));
    let judge = dry_run(args, environment, &mut target, &input, timeout)?;
    say(quiet, &format!("[+] {}", judge.describe()));
    let (least, has_messages) = (args.least_block, args.target.net.is_some());
    let mut work = TminWork::new(target, judge, input, least, has_messages, quiet);
    work.run()?;
    print_messages(&mut work.target, quiet);
    work.conclude();
    say(quiet, &format!("[*] Writing output to '{}'...", args.output.display()));
    tool::replace(&args.output, &work.input)?;
    say(quiet, "[+] We're done here. Have a nice day!");
    Ok(())
}

fn read(args: &Args, quiet: bool) -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    inputs::read(&args.input, &mut input)?;
    let path = args.input.display();
    if input.is_empty() {
        return Err(Failure::new(format!("{path} is empty"), "give an input with at least a byte"));
    }
    if fs::metadata(&args.input).is_ok_and(|data| data.len() > MAX_INPUT as u64) {
        say(quiet, &format!("[!] {path} is larger than 1 MiB: only the first MiB is used"));
    }
    say(quiet, &format!("[+] Read {} from '{path}'.", bytes(input.len())));
    Ok(input)
}

/// Determines the behavior to keep from the second run: in a loop, the first run includes the loop's start. Whatever
/// differs in a third run is not kept.
fn dry_run(
    args: &Args,
    environment: &Environment,
    target: &mut Hooked,
    input: &[u8],
    timeout: Duration,
) -> Result<TminJudge, Failure> {
    let quiet = environment.flag(&["AFL_QUIET"]);
    let memory = args.target.memory.as_deref().unwrap_or("0");
    let ms = timeout.as_millis();
    let line = format!("[*] Performing dry run (mem limit = {memory} MB, timeout = {ms} ms)...");
    say(quiet, &line);
    let exact = environment.flag(&["AFL_TMIN_EXACT"]);
    let before = target.info().rejected_runs();
    let exit = target.observe(input).map_err(tool::failure)?.exit;
    if exit == ExitKind::Ok && target.info().rejected_runs() != before {
        let cause = "the harness rejects this input (it returns -1): the run shows nothing to keep";
        return Err(Failure::new(cause, "give an input that it accepts, or one that crashes"));
    }
    let judge = TminJudge::of(&target.observe(input).map_err(tool::failure)?, args, exact)?;
    if !judge.accepts(&target.observe(input).map_err(tool::failure)?) {
        let text = "[!] Another run of the input differs: some candidates will be rejected \
                    by mistake (-e compares edges only)";
        say(quiet, text);
    }
    Ok(judge)
}

/// An input being minimized.
struct TminWork {
    target: Hooked,
    judge: TminJudge,
    tmin: Tmin,
    input: Vec<u8>,
    given: Vec<u8>,
    batch: Vec<Candidate>,
    /// Rejected proposals: normal ends, crashes, timeouts.
    fruitless: [u64; 3],
    quiet: bool,
}

impl TminWork {
    fn new(
        mut target: Hooked,
        judge: TminJudge,
        input: Vec<u8>,
        least_block: NonZeroUsize,
        has_messages: bool,
        quiet: bool,
    ) -> Self {
        if judge.wants_bad_ends() {
            // With all edges known, a batch only stops at a run that ends badly.
            let edges = target.info().map_size();
            target.runner.executor_mut().learn_edges(&vec![0; edges]);
        } else {
            target.runner.show_every_run(true);
        }
        let start = if has_messages { Tmin::of_messages } else { Tmin::new };
        let (tmin, given) = (start(&input, least_block), input.clone());
        Self { target, judge, tmin, input, given, batch: Vec::new(), fruitless: [0; 3], quiet }
    }

    fn run(&mut self) -> Result<(), Failure> {
        loop {
            let proposals = self.foresee();
            if proposals == 0 {
                self.print_notes();
                return Ok(());
            }
            let accepted = self.try_out(proposals)?;
            for _ in 0..accepted.unwrap_or(proposals) {
                self.step(false);
            }
            if accepted.is_some() {
                self.step(true);
            }
        }
    }

    /// Fills the batch with the next proposals, assuming that each is rejected.
    fn foresee(&mut self) -> usize {
        let most = self.target.batch_size();
        self.batch.resize_with(self.batch.len().max(most), Candidate::default);
        let mut ahead = self.tmin.clone();
        let mut count = 0;
        while count < most && ahead.next(&self.input, &mut self.batch[count].bytes) {
            ahead.rejected();
            count += 1;
        }
        if count == 0 {
            self.tmin = ahead;
        }
        count
    }

    /// The first proposal that keeps the behavior.
    fn try_out(&mut self, proposals: usize) -> Result<Option<usize>, Failure> {
        let (mut next, mut shown) = (0, 0);
        let batch = &self.batch[..proposals];
        while let Some(run) = self.target.run(batch, &mut next).map_err(tool::failure)? {
            // Runs that were not reported ended normally.
            self.fruitless[0] += (run.index - shown) as u64;
            shown = run.index + 1;
            if self.judge.accepts(&run) {
                return Ok(Some(run.index));
            }
            let kind = match run.exit {
                ExitKind::Ok => 0,
                ExitKind::Crash { .. } | ExitKind::Oom => 1,
                ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => 2,
            };
            self.fruitless[kind] += 1;
        }
        self.fruitless[0] += (proposals - shown) as u64;
        Ok(None)
    }

    fn step(&mut self, accepted: bool) {
        let mut proposal = Vec::new();
        if self.tmin.next(&self.input, &mut proposal) {
            self.print_notes();
            if accepted {
                self.input = proposal;
                self.tmin.accepted();
            } else {
                self.tmin.rejected();
            }
        }
    }

    fn print_notes(&mut self) {
        for note in self.tmin.take_notes() {
            say(self.quiet, &line(&note));
        }
    }

    fn conclude(&self) {
        let others = |input: &[u8]| input.iter().filter(|byte| **byte != FILLER).count();
        let (before, after) = (self.given.len(), self.input.len());
        let share = |part: usize| part as f64 * 100.0 / before as f64;
        let simplified = others(&self.given).saturating_sub(others(&self.input));
        let [path, crash, hang] = self.fruitless;
        let text = format!(
            "\n     File size reduced by : {:.2}% (to {})\n    Characters simplified : {:.2}%\n     \
             Number of execs done : {}\n          Fruitless execs : path={path} crash={crash} \
             hang={hang}\n",
            share(before - after),
            bytes(after),
            share(simplified),
            self.target.info().execs(),
        );
        say(self.quiet, &text);
    }
}

fn bytes(count: usize) -> String {
    if count == 1 { "1 byte".into() } else { format!("{count} bytes") }
}

fn line(note: &Note) -> String {
    let points = |count: usize| {
        if count == 1 { "1 code point".into() } else { format!("{count} code points") }
    };
    match note {
        Note::Pass(pass) => format!("[*] --- Pass #{pass} ---"),
        Note::Begins { stage, symbols } => match stage {
            Stage::Messages => "[*] Removing whole messages...".into(),
            Stage::Fill => "[*] Stage #0: One-time block normalization...".into(),
            Stage::Remove => "[*] Stage #1: Removing blocks of data...".into(),
            Stage::Symbols => format!("[*] Stage #2: Minimizing symbols ({})...", points(*symbols)),
            Stage::Characters | Stage::Done => "[*] Stage #3: Character minimization...".into(),
        },
        Note::Block { size, left } => {
            format!("    Block length = {size}, remaining size = {left}")
        }
        Note::Ends { stage, times, bytes: count } => match stage {
            Stage::Messages => format!("[+] Message removal complete, {} deleted.", bytes(*count)),
            Stage::Fill => {
                format!("[+] Block normalization complete, {} replaced.", bytes(*count))
            }
            Stage::Remove => format!("[+] Block removal complete, {} deleted.", bytes(*count)),
            Stage::Symbols => {
                let symbols = if *times == 1 { "symbol" } else { "symbols" };
                let count = bytes(*count);
                format!("[+] Symbol minimization finished, {times} {symbols} ({count}) replaced.")
            }
            Stage::Characters | Stage::Done => {
                format!("[+] Character minimization done, {} replaced.", bytes(*count))
            }
        },
    }
}
