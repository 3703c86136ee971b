//! Actions on a given crash: search, generate, submit.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use super::{Args, Failure, NO_MATCH, read, say};
use crate::cmd::{print, tool};
use crate::crashes::collector::{self, Client, CrashReport, Directory, Settings, Target};
use crate::crashes::crash::{
    self, CrashFacts, CrashInfo, Output, ProgramInfo, Signature, SignatureOptions,
};

/// Prints the information extracted from a crash. The program may be unknown.
pub(super) fn show(args: &Args) -> Result<ExitCode, Failure> {
    let platform = args.about.platform.clone().unwrap_or_else(|| "x86-64".into());
    let program = ProgramInfo { platform, ..ProgramInfo::default() };
    let info = crash::beyond::parse(&args.crash.output()?, &program);
    // Program output may contain terminal escapes.
    let clean = |text: &str| text.replace(char::is_control, "?");
    let mut text = format!("kind: {}\nshort: {}\n", info.kind.name(), clean(&info.short_text()));
    if let Some(address) = info.address {
        let _ = writeln!(text, "address: {address:#x}");
    }
    if let Some(instruction) = &info.instruction {
        let _ = writeln!(text, "instruction: {}", clean(instruction));
    }
    for (number, frame) in info.backtrace.iter().enumerate() {
        let _ = writeln!(text, "#{number} {}", clean(frame));
    }
    print(&text)
}

/// A crash as described by the command line.
pub(super) struct GivenCrash {
    report: CrashReport,
    info: CrashInfo,
    wanted: SignatureOptions,
}

impl GivenCrash {
    pub(super) fn read(args: &Args, target: Target, output: Output) -> Result<Self, Failure> {
        let info = crash::beyond::parse(&output, &target.program);
        let mut metadata = target.metadata;
        metadata.extend(args.about.metadata.iter().cloned());
        let report = CrashReport {
            key: String::new(),
            program: target.program,
            output,
            testcase: args.crash.testcase()?,
            args: args.words(),
            env: args.about.env.iter().cloned().collect(),
            metadata,
        };
        let wanted = SignatureOptions {
            frames: args.crash.numframes,
            force_address: args.crash.forcecrashaddr,
            force_instruction: args.crash.forcecrashinst,
        };
        Ok(Self { report, info, wanted })
    }

    pub(super) fn search(&self, program: &str, settings: &Settings) -> Result<ExitCode, Failure> {
        let folder = Directory::open(&settings.signatures()?)?;
        for (name, reason) in &folder.refused {
            say(program, &format!("warning: {name} is not a signature: {reason}"));
        }
        let crash = self.crash();
        let Some(entry) = folder.find(&crash) else {
            tool::say(false, "No match found");
            return Ok(ExitCode::from(NO_MATCH));
        };
        let path = folder.path(&entry.name);
        let metadata = fs::read_to_string(path.with_extension("metadata")).unwrap_or_default();
        let lines = [path.display().to_string(), metadata.trim_end().to_owned()];
        print(&format!("{}\n", lines.join("\n").trim_end()))
    }

    fn crash(&self) -> CrashFacts<'_> {
        let bytes = self.report.testcase.as_ref().map(|testcase| &testcase.bytes);
        CrashFacts {
            info: &self.info,
            output: &self.report.output,
            program: &self.report.program,
            testcase: bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()),
        }
    }

    /// Prints the signature in this file, generalized to match the crash.
    pub(super) fn generalize(&self, path: &Path) -> Result<ExitCode, Failure> {
        let text = read(path)?;
        let signature = Signature::parse(&String::from_utf8_lossy(&text)).map_err(|reason| {
            let cause = format!("{} is not a signature: {reason}", path.display());
            Failure::new(cause, "give a file of the folder of signatures: NAME.signature")
        })?;
        match signature.fitted(&self.crash()) {
            Some(fitted) => print(&format!("{}\n", fitted.to_json())),
            None => {
                tool::say(false, "No match found");
                Ok(ExitCode::from(NO_MATCH))
            }
        }
    }

    pub(super) fn generate(&self, settings: &Settings) -> Result<ExitCode, Failure> {
        let folder = Directory::open(&settings.signatures()?)?;
        let Some(signature) = Signature::create(&self.info, self.wanted) else {
            return Err(Failure::new(
                "the crash report has too little information for a signature",
                "give a report with a stack: --stderr or --crashdata of a sanitizer build or of gdb",
            ));
        };
        print(&format!("{}\n", folder.add(&signature)?.display()))
    }

    pub(super) fn submit(self, program: &str, settings: &Settings) -> Result<ExitCode, Failure> {
        let client = Client::new(settings.server()?)?;
        let number = collector::submit(&client, self.report, |wait, error| {
            say(program, &format!("{error}; trying again in {} s", wait.as_secs()));
            thread::sleep(wait);
        })?;
        say(program, &format!("stored as crash {number} at {}", client.server().url));
        Ok(ExitCode::SUCCESS)
    }
}
