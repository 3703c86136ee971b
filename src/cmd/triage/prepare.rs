//! From the command line to what a triage needs: the programs, how they are run, what is written where.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::Args;
use crate::cmd::exit::Failure;
use crate::cmd::fuzz::args::Args as FuzzArgs;
use crate::cmd::fuzz::custom::{self as mutators, About};
use crate::cmd::fuzz::resolve;
use crate::cmd::tool::{self, Scratch};
use crate::config::env::Environment;
use crate::config::options::{CustomOptions, TargetOptions};
use crate::config::sanitizers::{Report as Style, SANITIZER_VARIABLES, report_environment};
use crate::crashes::collector::{CollectorError, Settings, Target, Values, beside};
use crate::crashes::crash::{Program, StableHasher};
use crate::crashes::triage::report::{self, Report};
use crate::crashes::triage::{
    Cores, Courier, Debugging, FOLDER, IDENTITY, Orders, Rerun, Symbolizer, Tools, Work,
    clang_version, program,
};
use crate::exec::{Fresh, Setup, binary};
use crate::mutators::Mutators;

/// A symbolizer may take ten times as long as a run: both are slower for a large program. It reads a
/// file in any case, and nobody waits longer for names.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// Everything that is known before the first run.
pub(super) struct Plan {
    pub(super) orders: Orders,
    target: TargetOptions,
    sanitizer: Option<TargetOptions>,
    tools: Arc<Tools>,
    extension: Option<String>,
    late: bool,
    process: bool,
}

impl Plan {
    pub(super) fn new(
        args: &Args,
        environment: &Environment,
        folders: &[PathBuf],
        root: PathBuf,
    ) -> Result<Self, Failure> {
        let (runs, timeout, minimize) = (args.runs()?, args.timeout()?, args.minimize()?);
        let command = command(args, folders)?;
        let target = target(args, environment, command)?;
        let sanitizer = args.sanitizer.as_ref().map(|binary| sanitizer_build(&target, binary));
        let sanitizer = sanitizer.transpose()?;
        let search = target.search_path.as_deref();
        let given = environment.get("ASAN_SYMBOLIZER_PATH");
        let patience = (timeout * 10).clamp(LEAST_PATIENCE, MOST_PATIENCE);
        let examined = sanitizer.as_ref().unwrap_or(&target);
        let version = clang_version(Path::new(&examined.command[0]));
        let symbolizer = Symbolizer::find(given, search, version, patience);
        let reports = |style| report_environment(&target.extra_env, style);
        let gdb = program(&["gdb"], search);
        let tools = Tools {
            raw: reports(Style::Raw),
            readable: reports(Style::Readable(
                symbolizer.as_ref().and_then(Symbolizer::for_sanitizers),
            )),
            bare: reports(Style::Bare),
            debugging: debugging(environment, gdb.is_some())?,
            gdb,
            symbolizer,
            timeout,
            hangs: args.report_hangs,
            program: description(&target),
        };
        let orders = Orders {
            folder: root.join(FOLDER),
            root,
            runs,
            timeout,
            minimize,
            beside: args.follow,
            program: tools.program.clone(),
            env: shown_environment(
                &tools.readable,
                [Some(&target), sanitizer.as_ref()],
                environment,
            ),
        };
        Ok(Self {
            orders,
            target,
            sanitizer,
            tools: Arc::new(tools),
            extension: args.extension()?,
            late: environment.flag(&["AFL_CUSTOM_MUTATOR_LATE_SEND"]),
            // Otherwise crashes are stored as the target got them.
            process: environment.flag(&["AFL_POST_PROCESS_KEEP_ORIGINAL"]),
        })
    }

    /// Who delivers, if somebody is to.
    pub(super) fn courier(
        &self,
        args: &Args,
        environment: &Environment,
    ) -> Result<Option<Courier>, Failure> {
        let Some(url) = &args.collector else { return Ok(None) };
        let failure = |error: CollectorError| Failure::new(&error, error.remedy());
        let settings = Settings::read(environment, address(url.as_deref())?).map_err(failure)?;
        let binary = Path::new(&self.target.command[0]);
        let target = match beside(binary).exists() {
            true => Target::read(Some(binary), Values::new()),
            false => Target::read(None, values_of(&self.orders.program)),
        };
        let target = target.map_err(failure)?;
        for warning in settings.warnings.iter().chain(&target.warnings) {
            tool::say(false, &format!("[!] {warning}"));
        }
        let words = self.target.command[1..].iter();
        let words = words.map(|word| word.to_string_lossy().replace("@@", "TESTFILE"));
        let mut words: Vec<String> = words.collect();
        words.pop_if(|last| last == "TESTFILE");
        let shown = |text: &OsStr| text.to_string_lossy().into_owned();
        let env = self.orders.env.iter().map(|(name, value)| (shown(name), shown(value)));
        let courier = Courier::start(&self.orders.folder, &settings, target, words, env.collect());
        courier.map(Some).map_err(failure)
    }

    pub(super) fn work(&self) -> Work {
        let words = |words: &[OsString]| {
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let sanitizer = self.sanitizer.as_ref().map(|options| &options.command[0]);
        let report = Report {
            version: report::VERSION,
            tool: format!("ffuzz {}", env!("CARGO_PKG_VERSION")),
            command: words(&self.target.command),
            sanitizer_build: sanitizer.map(|path| path.to_string_lossy().into_owned()),
            fingerprint: report::hex(self.fingerprint()),
            runs: self.orders.runs,
            ..Report::default()
        };
        Work::new(self.orders.clone(), report, Report::load(&self.orders.folder))
    }

    /// Everything that decides what a run shows.
    fn fingerprint(&self) -> u64 {
        let mut hasher = StableHasher::default();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        for options in [Some(&self.target), self.sanitizer.as_ref()].into_iter().flatten() {
            fs::read(&options.command[0]).ok().hash(&mut hasher);
            (&options.command, &options.extra_env, options.memory_limit).hash(&mut hasher);
        }
        let forced = match self.tools.debugging {
            Debugging::Silent => 0,
            Debugging::Always => 1,
            Debugging::Core(_) => 2,
        };
        (self.tools.hangs, forced, IDENTITY).hash(&mut hasher);
        hasher.finish()
    }

    /// A core file is found by its being new.
    pub(super) fn leaves_cores(&self) -> bool {
        matches!(self.tools.debugging, Debugging::Core(_))
    }

    /// The file for the inputs of one of several targets.
    pub(super) fn scratch(&self) -> Scratch {
        Scratch::new("triage", self.extension.as_deref())
    }

    pub(super) fn mutators(&self, environment: &Environment) -> Result<Mutators, Failure> {
        let about =
            About { command: &self.target.command, file: self.target.file.as_deref(), out: None };
        let options = CustomOptions { only: false, ..mutators::options(environment, &about) };
        crate::mutators::load(&options, 0).map_err(|error| Failure::new(&error, error.remedy()))
    }

    pub(super) fn rerun(
        &self,
        environment: &Environment,
        scratch: &Scratch,
    ) -> Result<Rerun, Failure> {
        let fresh = |options: &TargetOptions| {
            let setup = Setup::new(options, &scratch.file, None).map_err(tool::failure)?;
            let mutators = self.mutators(environment)?;
            Fresh::new(setup, mutators, self.late, self.process).map_err(tool::failure)
        };
        let sanitizer = self.sanitizer.as_ref().map(fresh).transpose()?;
        Ok(Rerun::new(fresh(&self.target)?, sanitizer, Arc::clone(&self.tools)))
    }
}

/// Of the variables for a readable run those that a person needs: options only of sanitizers that the
/// programs have, and those of the user.
fn shown_environment(
    readable: &[(OsString, OsString)],
    programs: [Option<&TargetOptions>; 2],
    environment: &Environment,
) -> Vec<(OsString, OsString)> {
    let of = |options: &TargetOptions| {
        let path = Path::new(&options.command[0]);
        binary::sanitizer_variables(path).unwrap_or_else(|| SANITIZER_VARIABLES.to_vec())
    };
    let linked: Vec<&str> = programs.into_iter().flatten().flat_map(of).collect();
    let is_needed = |name: &OsString| {
        let Some(name) = SANITIZER_VARIABLES.into_iter().find(|known| *known == name) else {
            return true;
        };
        linked.contains(&name) || environment.get(name).is_some()
    };
    readable.iter().filter(|(name, _)| is_needed(name)).cloned().collect()
}

/// About which crashes the user wants to hear gdb.
fn debugging(environment: &Environment, has_gdb: bool) -> Result<Debugging, Failure> {
    let wanted = ["FTB_FORCE_GDBCORE", "FTB_FORCE_GDB"].into_iter();
    let Some(name) = wanted.into_iter().find(|name| environment.flag(&[name])) else {
        return Ok(Debugging::Silent);
    };
    if !has_gdb {
        let cause = format!("{name} is set, but there is no gdb");
        return Err(Failure::new(cause, format!("install gdb, or unset {name}")));
    }
    if name == "FTB_FORCE_GDB" {
        return Ok(Debugging::Always);
    }
    let cores = Cores::find().map_err(|error| Failure::new(&error, error.remedy()))?;
    Ok(Debugging::Core(cores))
}

/// Host and port of `http://HOST:PORT`, as the configuration file names them.
fn address(url: Option<&str>) -> Result<Values, Failure> {
    let Some(url) = url else { return Ok(Values::new()) };
    let parts = url.split_once("://").map(|(proto, rest)| (proto, rest.trim_end_matches('/')));
    let Some((proto, rest)) = parts.filter(|(_, rest)| !rest.is_empty()) else {
        let cause = format!("--collector={url} is not an address");
        return Err(Failure::usage(cause, "write it as https://HOST:PORT"));
    };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let values = [("serverproto", Some(proto)), ("serverhost", Some(host)), ("serverport", port)];
    let given = values.into_iter().filter_map(|(key, value)| Some((key.into(), value?.into())));
    Ok(given.collect())
}

fn values_of(program: &Program) -> Values {
    let Program { product, product_version, platform, os } = program;
    let all = [
        ("product", product),
        ("product_version", product_version),
        ("platform", platform),
        ("os", os),
    ];
    all.map(|(key, value)| (key.to_owned(), value.clone())).into()
}

/// What was given, or what the fuzzer has noted.
fn command(args: &Args, folders: &[PathBuf]) -> Result<Vec<OsString>, Failure> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    crate::disk::find::command(folders).ok_or_else(|| {
        let cause = "no command line: there is no file cmdline next to the crashes";
        Failure::new(cause, "give the target after --, for example: -- ./target @@")
    })
}

fn target(
    args: &Args,
    environment: &Environment,
    command: Vec<OsString>,
) -> Result<TargetOptions, Failure> {
    let fuzz = FuzzArgs {
        command,
        file: args.file.clone(),
        memory: args.memory.clone(),
        ..FuzzArgs::default()
    };
    // Reports are wanted here: what the user has said about them need not suit a fuzzer.
    let mut options = resolve::target_options(&fuzz, &environment.without("SAN_OPTIONS"))?;
    let users = environment.ending_with("SAN_OPTIONS");
    options.extra_env.retain(|(name, _)| !users.iter().any(|(known, _)| known == name));
    options.extra_env.splice(0..0, users);
    let program = binary::locate(&options.command[0], options.search_path.as_deref());
    options.command[0] = program.map_err(tool::failure)?.into_os_string();
    // No fork server is asked for.
    options.non_instrumented = true;
    Ok(options)
}

/// The same command line for another program.
fn sanitizer_build(target: &TargetOptions, binary: &OsStr) -> Result<TargetOptions, Failure> {
    let program = binary::locate(binary, target.search_path.as_deref()).map_err(tool::failure)?;
    let mut options = target.clone();
    options.command[0] = program.into_os_string();
    Ok(options)
}

/// What signatures may ask for.
fn description(target: &TargetOptions) -> Program {
    let name = Path::new(&target.command[0]).file_name().unwrap_or_default();
    let platform = match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "arm64",
        other => other,
    };
    Program {
        product: name.to_string_lossy().to_lowercase(),
        product_version: String::new(),
        platform: platform.to_owned(),
        os: std::env::consts::OS.to_owned(),
    }
}
