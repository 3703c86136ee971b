//! Preparation of a triage: programs, their options, output places.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::report::{self, TriageReport};
use super::{
    BugDelivery, Cores, Debugging, FOLDER, IDENTITY, Rerun, RerunTools, Symbolizer, TriageError,
    TriageWork, WorkOptions, clang_version, program,
};
use crate::collector::{IniValues, Settings, Target, beside};
use crate::crash::{Output, ProgramInfo, StableHasher};
use ffuzz_config::env::Environment;
use ffuzz_config::options::{CustomOptions, TargetOptions};
use ffuzz_config::sanitizers::{ReportStyle, SANITIZER_VARIABLES, report_environment};
use ffuzz_exec::{Fresh, Scratch, Setup, TargetError};
use ffuzz_inspect::binary;
use ffuzz_mutators::Mutators;
use ffuzz_sys::affinity;

/// Bounds of the symbolizer's time limit, which is ten times that of a run: both are slower for a large program. It
/// always has to read a file, and the user should not wait longer for names.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// User options.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The target, with the path of its program.
    pub target: TargetOptions,
    /// The sanitizer build: a program for the same command line.
    pub sanitizer: Option<OsString>,
    /// Their hooks change what the target gets.
    pub mutators: CustomOptions,
    /// The output folder.
    pub root: PathBuf,
    /// Number of runs of each crash.
    pub runs: u32,
    /// Timeout of a run.
    pub timeout: Duration,
    /// Time limit for minimizing one input; zero: off.
    pub minimize: Duration,
    /// Counts a run that takes too long as a bug.
    pub hangs: bool,
    /// True beside a running campaign, which has priority.
    pub beside: bool,
    /// Extension of the input's file.
    pub extension: Option<String>,
    /// Settings that override the user's files about the crash server; None: no delivery.
    pub server: Option<IniValues>,
}

/// Everything that is known before the first run.
pub struct TriagePlan {
    pub options: WorkOptions,
    target: TargetOptions,
    sanitizer: Option<TargetOptions>,
    mutators: CustomOptions,
    pub(super) tools: Arc<RerunTools>,
    server: Option<IniValues>,
}

impl TriagePlan {
    /// Finds the programs and the tools.
    pub fn new(options: PlanOptions, environment: &Environment) -> Result<Self, TriageError> {
        let mut target = options.target;
        // Needs no fork server.
        target.non_instrumented = true;
        let sanitizer =
            options.sanitizer.map(|binary| for_program(&target, &binary)).transpose()?;
        let tools =
            tools(&target, sanitizer.as_ref(), options.timeout, options.hangs, environment)?;
        let work = WorkOptions {
            folder: options.root.join(FOLDER),
            root: options.root,
            runs: options.runs,
            timeout: options.timeout,
            minimize: options.minimize,
            beside: options.beside,
            program: tools.program.clone(),
            env: shown_environment(
                &tools.readable,
                [Some(&target), sanitizer.as_ref()],
                environment,
            ),
            names_file: target.file.is_some(),
            extension: options.extension,
        };
        Ok(Self {
            options: work,
            target,
            sanitizer,
            mutators: options.mutators,
            tools: Arc::new(tools),
            server: options.server,
        })
    }

    /// Creates the work, with delivery of its bugs if a server is set. `warn` gets warnings about settings.
    pub fn work(
        &self,
        environment: &Environment,
        warn: impl Fn(&str),
    ) -> Result<TriageWork, TriageError> {
        let delivery = self.server.clone().map(|server| self.delivery(server, environment, warn));
        Ok(self.undelivered_work().deliver_by(delivery.transpose()?))
    }

    fn delivery(
        &self,
        server: IniValues,
        environment: &Environment,
        warn: impl Fn(&str),
    ) -> Result<BugDelivery, TriageError> {
        let settings = Settings::read(environment, server)?;
        let binary = Path::new(&self.target.command[0]);
        let target = match beside(binary).exists() {
            true => Target::read(Some(binary), IniValues::new()),
            false => Target::read(None, values_of(&self.options.program)),
        }?;
        settings.warnings.iter().chain(&target.warnings).for_each(|warning| warn(warning));
        let words = self.target.command[1..].iter();
        let words = words.map(|word| word.to_string_lossy().replace("@@", "TESTFILE"));
        let mut words: Vec<String> = words.collect();
        words.pop_if(|last| last == "TESTFILE");
        let shown = |text: &OsStr| text.to_string_lossy().into_owned();
        let env = self.options.env.iter().map(|(name, value)| (shown(name), shown(value)));
        Ok(BugDelivery::start(&self.options.folder, &settings, target, words, env.collect())?)
    }

    fn undelivered_work(&self) -> TriageWork {
        let words = |words: &[OsString]| {
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let sanitizer = self.sanitizer.as_ref().map(|options| &options.command[0]);
        let report = TriageReport {
            version: report::VERSION,
            tool: format!("ffuzz {}", env!("CARGO_PKG_VERSION")),
            command: words(&self.target.command),
            sanitizer_build: sanitizer.map(|path| path.to_string_lossy().into_owned()),
            fingerprint: report::hex(self.fingerprint()),
            runs: self.options.runs,
            ..TriageReport::default()
        };
        TriageWork::new(self.options.clone(), report, TriageReport::load(&self.options.folder))
    }

    /// Hash of everything that affects the result of a run.
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

    /// Number of concurrent targets for this number of files. Only one with mutators, with a user's input file, or with
    /// core files, which are recognized by being new.
    pub fn jobs(&self, wanted: Option<usize>, files: usize) -> Result<usize, TriageError> {
        let wanted = wanted.unwrap_or_else(|| affinity::allowed().len());
        let leaves_cores = matches!(self.tools.debugging, Debugging::Core(_));
        let alone =
            self.target.file.is_some() || leaves_cores || self.load_mutators()?.touch_runs();
        Ok(if alone { 1 } else { wanted.min(files) }.max(1))
    }

    /// Input file of one of several targets.
    #[must_use]
    pub fn scratch(&self) -> Scratch {
        Scratch::new("triage", self.options.extension.as_deref())
    }

    fn load_mutators(&self) -> Result<Mutators, TriageError> {
        Ok(ffuzz_mutators::load(&self.mutators, 0)?)
    }

    /// Creates one of several runners of inputs.
    pub fn rerun(&self, scratch: &Scratch) -> Result<Rerun, TriageError> {
        let fresh = |options: &TargetOptions| -> Result<Fresh, TriageError> {
            let setup = Setup::new(options, &scratch.file, None)?;
            // Without keep_original crashes are stored as the target got them.
            let (late, process) = (self.mutators.late_send, self.mutators.keep_original);
            Ok(Fresh::new(setup, self.load_mutators()?, late, process)?)
        };
        let sanitizer = self.sanitizer.as_ref().map(fresh).transpose()?;
        Ok(Rerun::new(fresh(&self.target)?, sanitizer, Arc::clone(&self.tools)))
    }

    /// Readable output of the target if it crashes on this input, and messages of its mutators.
    pub fn once(&self, input: &[u8]) -> Result<Option<(Output, Vec<String>)>, TriageError> {
        let scratch = self.scratch();
        let mut rerun = self.rerun(&scratch)?;
        let Some(seen) = rerun.examine(input, 1)?.seen else { return Ok(None) };
        let seen = rerun.readable(input, &seen)?;
        Ok(Some((seen.output, rerun.take_messages())))
    }
}

/// Finds the helper programs.
fn tools(
    target: &TargetOptions,
    sanitizer: Option<&TargetOptions>,
    timeout: Duration,
    hangs: bool,
    environment: &Environment,
) -> Result<RerunTools, TriageError> {
    let search = target.search_path.as_deref();
    let given = environment.get("ASAN_SYMBOLIZER_PATH");
    let patience = (timeout * 10).clamp(LEAST_PATIENCE, MOST_PATIENCE);
    let examined = sanitizer.unwrap_or(target);
    let version = clang_version(Path::new(&examined.command[0]));
    let symbolizer = Symbolizer::find(given, search, version, patience);
    let reports = |style| report_environment(&target.extra_env, style);
    let gdb = program(&["gdb"], search);
    Ok(RerunTools {
        raw: reports(ReportStyle::Raw),
        readable: reports(ReportStyle::Readable(
            symbolizer.as_ref().and_then(Symbolizer::for_sanitizers),
        )),
        bare: reports(ReportStyle::Bare),
        debugging: debugging(environment, gdb.is_some())?,
        gdb,
        symbolizer,
        timeout,
        hangs,
        program: description(target),
    })
}

/// Variables to show for a readable run: options of sanitizers linked into the programs or set by the user, and the
/// target's own.
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
    let reports = readable.iter().filter(|(name, _)| is_needed(name)).cloned();
    reports.chain(of_the_target(programs[0])).collect()
}

/// Variables that the user sets for the target, and libraries preloaded into it.
fn of_the_target(target: Option<&TargetOptions>) -> Vec<(OsString, OsString)> {
    let is_own = |name: &OsString| {
        let fuzzers = ["RUST_BACKTRACE", "LD_BIND_NOW"].into_iter().chain(SANITIZER_VARIABLES);
        !fuzzers.into_iter().any(|other| name == other)
    };
    let all = target.into_iter().flat_map(|target| &target.extra_env);
    all.filter(|(name, _)| is_own(name)).cloned().collect()
}

/// Crashes for which the user wants gdb's report.
fn debugging(environment: &Environment, has_gdb: bool) -> Result<Debugging, TriageError> {
    let wanted = ["FTB_FORCE_GDBCORE", "FTB_FORCE_GDB"].into_iter();
    let Some(name) = wanted.into_iter().find(|name| environment.flag(&[name])) else {
        return Ok(Debugging::Silent);
    };
    if !has_gdb {
        return Err(TriageError::NoGdb(name));
    }
    if name == "FTB_FORCE_GDB" {
        return Ok(Debugging::Always);
    }
    Ok(Debugging::Core(Cores::find()?))
}

fn values_of(program: &ProgramInfo) -> IniValues {
    let ProgramInfo { product, product_version, platform, os } = program;
    let all = [
        ("product", product),
        ("product_version", product_version),
        ("platform", platform),
        ("os", os),
    ];
    all.map(|(key, value)| (key.to_owned(), value.clone())).into()
}

/// The same command line for another program.
fn for_program(target: &TargetOptions, binary: &OsStr) -> Result<TargetOptions, TargetError> {
    let program = binary::locate(binary, target.search_path.as_deref())?;
    Ok(target.for_other_build(program.into_os_string()))
}

/// Description of the target for signatures.
fn description(target: &TargetOptions) -> ProgramInfo {
    let name = Path::new(&target.command[0]).file_name().unwrap_or_default();
    let platform = match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "arm64",
        other => other,
    };
    ProgramInfo {
        product: name.to_string_lossy().to_lowercase(),
        product_version: String::new(),
        platform: platform.to_owned(),
        os: std::env::consts::OS.to_owned(),
    }
}
