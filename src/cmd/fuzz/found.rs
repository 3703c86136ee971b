//! `--error-exitcode`: the exit code tells a script that this call has found a bug.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::Args;
use super::values;
use crate::cmd::exit::Failure;
use crate::event::{Event, EventSink};

/// Parses the option, also for `triage`. 0 is rejected, since it would carry no information.
pub(in crate::cmd) fn code(text: Option<&str>) -> Result<Option<u8>, Failure> {
    let number = |text| values::number("--error-exitcode", text, 1, u64::from(u8::MAX));
    Ok(text.map(number).transpose()?.and_then(|code| u8::try_from(code).ok()))
}

/// Records finds of one campaign or of all workers, and crashing seeds. Finds of earlier calls do not count.
#[derive(Clone, Debug)]
pub(super) struct FindWatch {
    code: Option<u8>,
    hangs: bool,
    any: Arc<AtomicBool>,
}

impl FindWatch {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let code = code(args.error_exitcode.as_deref())?;
        Ok(Self { code, hangs: args.report_hangs, any: Arc::default() })
    }

    pub(super) fn sink(&self) -> Box<dyn EventSink> {
        Box::new(self.clone())
    }

    /// The code, if one is set and something was found.
    pub(super) fn code(&self) -> Option<u8> {
        self.code.filter(|_| self.any.load(Ordering::Relaxed))
    }

    /// Exit code of a campaign that ended normally.
    pub(super) fn exit_code(&self) -> ExitCode {
        self.code().map_or(ExitCode::SUCCESS, ExitCode::from)
    }
}

impl EventSink for FindWatch {
    fn handle(&mut self, event: &Event) {
        let found = match event {
            Event::CrashSaved { .. } => true,
            Event::HangSaved { .. } => self.hangs,
            Event::Stopped { snapshot, .. } => snapshot.finds.crashing_seeds > 0,
            _ => false,
        };
        if found {
            self.any.store(true, Ordering::Relaxed);
        }
    }

    fn handle_of(&mut self, _worker: &str, event: &Event) {
        self.handle(event);
    }
}
