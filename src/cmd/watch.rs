//! `ffuzz watch`: shows the screen of a campaign from its folder. The campaign may run in another process, have ended,
//! or belong to afl-fuzz.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use super::exit::Failure;
use super::fuzz::resolve;
use super::screen::Analysis;
use crate::config::env::Environment;
use crate::config::options::UiMode;
use crate::event::{Event, EventBus};
use crate::fleet::follow::Follow;
use crate::sys::stop::Stop;
use crate::ui;

/// Time between two checks for signals and keys.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-watch",
    about = "Show the screen of a campaign that runs elsewhere or has ended",
    after_help = "OUT is the folder that was given to the fuzzer's -o, of ffuzz or afl-fuzz. Nothing is written there. The \
                  keys are those of the campaign's own screen (? shows them); q closes this one, and the campaign goes on. \
                  Without a terminal lines are printed until the campaign ends.\n\nExamples:\n  \
                  ffuzz-watch out\n  \
                  ssh server ffuzz-watch --json out | jq -c 'select(.event == \"crash_saved\")'"
)]
pub(super) struct Args {
    /// Print an event per line as JSON, as ffuzz --json does
    #[arg(long)]
    json: bool,
    /// Folder of the campaign
    #[arg(value_name = "OUT")]
    folder: PathBuf,
}

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(ExitCode::SUCCESS) };
    let mut follow = Follow::new(args.folder.clone());
    let failed = Failure::cannot_read_output(&args.folder);
    let (mut events, mut is_running) = follow.read().map_err(&failed)?;
    let no_signals = |error| {
        Failure::new(
            format!("cannot listen to signals: {error}"),
            "allow this user more open files: ulimit -n",
        )
    };
    let stop = Stop::on_signals().map_err(no_signals)?;
    stop.suspend_between_runs().map_err(no_signals)?;
    let analysis = Analysis::of(&args.folder);
    let is_closed = Arc::new(AtomicBool::new(false));
    let close = Arc::clone(&is_closed);
    let wish = move |_| close.store(true, Ordering::Relaxed);
    let environment = Environment::read();
    let mode = if args.json { UiMode::Json } else { resolve::ui(&environment)? };
    let colors = resolve::colors(&environment);
    let mut bus = EventBus::default();
    let sink = ui::sink(mode, colors, || analysis.watching(&args.folder, Box::new(wish), true));
    sink.into_iter().for_each(|sink| bus.add(sink));
    loop {
        for (worker, event) in events {
            match worker {
                Some(worker) if !matches!(event, Event::Tick(_)) => bus.send_of(&worker, &event),
                _ => bus.send(&event),
            }
        }
        // A screen stays open until the user closes it.
        if !is_running && !ui::is_screen(mode) {
            break;
        }
        let until = Instant::now() + follow.pause();
        while Instant::now() < until && !is_closed.load(Ordering::Relaxed) && !stop.asked() {
            std::thread::sleep(LOOK);
            let _ = stop.suspend();
        }
        if is_closed.load(Ordering::Relaxed) || stop.asked() {
            break;
        }
        (events, is_running) = follow.read().map_err(&failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
