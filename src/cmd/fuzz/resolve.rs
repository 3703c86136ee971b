//! Converts [`Args`] and the environment to [`Options`]. Makes every check that needs no target; each error has one
//! line of cause and one of remedy. Reads the file system, but changes nothing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{Args, Unsupported};
use super::custom::{self, About};
use super::{mutators, reports, resume, triage, values};
use crate::assets::{Assets, HEAP};
use crate::cmd::exit::Failure;
use crate::config::env::{AssetPlaces, EnvError, Environment};
use crate::config::net::NetOptions;
use crate::config::options::{
    CalibrationOptions, Colors, CoverageOptions, CpuChoice, DeterministicStage, DomainMode, Input,
    Inspected, KillerbeezOptions, LENGTH_SHARE, Limits, Logger, MutationOptions, NativeDomain,
    NativeEngine, NativeOptions, Options, OutputOptions, RunMode, SanitizerOptions, Schedule,
    SeedPolicy, Strategy, SyncOptions, TargetOptions, TimeoutSpec, UiMode, Wanted,
};
use crate::config::sanitizers;
use crate::disk::{archive, inputs, output};
use crate::harness::beside::Beside;
use crate::inspect::binary::{self, ProgramError};
use crate::sys::remedy::Remedy;

/// Maximum input size: AFL's limit, and the size of the memory that targets share.
const MAX_INPUT: u64 = 1 << 20;
/// Maximum map size: far beyond any program, but small enough to allocate.
const MAX_MAP: i64 = 1 << 29;
const MAX_DICTIONARIES: usize = 4;
/// Maximum number of `-F` folders, as in AFL.
const MAX_FOREIGN: usize = 32;

impl From<EnvError> for Failure {
    fn from(error: EnvError) -> Self {
        Self::of(&error)
    }
}

/// Resolves the options. Also returns warnings to print before the campaign begins.
pub fn resolve(
    mut args: Args,
    env: &Environment,
    command_line: Vec<OsString>,
) -> Result<(Options, Vec<String>), Failure> {
    let mut warnings = first_checks(&args, env)?;
    let Some(target) = args.command.first() else {
        return Err(Failure::usage(
            "no target given",
            "write the program and its arguments last: ffuzz -i SEEDS -o OUT ./target @@",
        ));
    };
    let program = binary::locate(target, env.get("PATH")).unwrap_or_default();
    let beside = Beside::find(&program);
    let banner = match &args.banner {
        Some(text) => text.clone(),
        None => target.to_string_lossy().into_owned(),
    };
    warnings.extend(fill_from(&beside, &mut args, env));
    let output = output_options(&args, env, command_line)?;
    let main_node = output.main_node;
    let input = input(&args, env, &output)?;
    let mut target = target_options(&args, env)?;
    add_beside(&mut target, beside, env);
    let instance = output.root.join(&output.instance);
    let mut custom = custom::options(
        env,
        &About { command: &target.command, file: target.file.as_deref(), out: Some(&instance) },
    );
    let rng_seed = args.seed.as_ref().map(|text| values::number("-s", text, 0, u64::MAX));
    let rng_seed = rng_seed.transpose()?;
    let mutation = mutation(&args, env, main_node)?;
    let (libraries, killerbeez) = mutators::mutators(&args, env)?;
    custom.libraries.extend(libraries);
    custom.by_message = custom::by_message(args.net.as_deref(), args.mutator_sees.as_deref())?;
    custom.killerbeez =
        KillerbeezOptions { max_len: mutation.max_len, fixed_seed: rng_seed, ..killerbeez };
    let triage = triage::options(&args, env, &output, &target, &custom)?;
    let options = Options {
        input,
        output,
        target,
        schedule: schedule(&args)?,
        domains: domain_mode(&args),
        mutation,
        custom,
        limits: limits(&args, env)?,
        coverage: CoverageOptions {
            load: args.load_coverage.as_deref().map(values::absolute).transpose()?,
            save: args.save_coverage.as_deref().map(values::absolute).transpose()?,
        },
        seeds: seeds(&args, env)?,
        sync: sync(&args, env)?,
        calibration: calibration(env),
        findings: reports::findings(env)?,
        sanitizers: sanitizers(&args, env, &mut warnings)?,
        logger: logger(&args, env)?,
        statsd: reports::statsd(env)?,
        control: reports::control(&args)?,
        metrics: args.metrics.as_deref().map(reports::address).transpose()?,
        triage,
        ui: if args.json { UiMode::Json } else { ui(env)? },
        colors: colors(env),
        banner,
        crash_command: args.crash_command.clone(),
        rng_seed,
    };
    Ok((options, warnings))
}

fn calibration(env: &Environment) -> CalibrationOptions {
    CalibrationOptions {
        fast: env.flag(&["AFL_CAL_FAST", "AFL_FAST_CAL"]),
        skip_at_start: env.flag(&["AFL_NO_STARTUP_CALIBRATION"]),
        silent_instability: env.flag(&["AFL_NO_WARN_INSTABILITY"]),
    }
}

fn seeds(args: &Args, env: &Environment) -> Result<SeedPolicy, Failure> {
    Ok(SeedPolicy {
        exit_on_issues: env.flag(&["AFL_EXIT_ON_SEED_ISSUES"]),
        crashes_as_finds: env.flag(&["AFL_CRASHING_SEEDS_AS_NEW_CRASH"]),
        leave_comparisons: env.flag(&["AFL_CMPLOG_ONLY_NEW"]),
        shuffle: env.flag(&["AFL_SHUFFLE_QUEUE"]),
        separator: args.split.as_deref().map(values::separator).transpose()?,
        wanted: match (args.crash_mode, env.flag(&["AFL_KEEP_TIMEOUTS"])) {
            (true, _) => Wanted::Crashing,
            (false, true) => Wanted::GoodOrSlow,
            (false, false) => Wanted::Good,
        },
    })
}

/// Refuses what cannot be honoured, and collects warnings, before anything is read.
fn first_checks(args: &Args, env: &Environment) -> Result<Vec<String>, Failure> {
    refuse(&args.unsupported)?;
    if let Some((name, variable)) = env.refused() {
        return Err(Failure::new(format!("{name}: {}", variable.meaning), format!("unset {name}")));
    }
    let mut warnings = env.warnings();
    if args.mopt.is_some() {
        warnings.push("-L (MOpt) has no effect".to_owned());
    }
    check_level(args, &mut warnings)?;
    Ok(warnings)
}

/// Rejects options of other fuzzers and of missing features: without them, the campaign would not do what the user
/// wants.
fn refuse(unsupported: &Unsupported) -> Result<(), Failure> {
    let given = unsupported.rows().into_iter().find(|row| row.given);
    given.map_or(Ok(()), |row| {
        let cause = format!("{} ({}) is {}", row.option, row.meaning, row.state());
        Err(Failure::usage(cause, "leave it out"))
    })
}

fn output_options(
    args: &Args,
    env: &Environment,
    command_line: Vec<OsString>,
) -> Result<OutputOptions, Failure> {
    let Some(root) = &args.output else {
        return Err(Failure::usage("no output folder given", "name one with -o OUT"));
    };
    let (instance, main_node) = match (&args.main, &args.secondary) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("-M and -S exclude each other", "leave one of them out"));
        }
        (Some(name), None) => (Some(values::instance("-M", name)?), true),
        (None, Some(name)) => (Some(values::instance("-S", name)?), false),
        (None, None) => (None, false),
    };
    let stats = env.number("AFL_FUZZER_STATS_UPDATE_INTERVAL", 1, i64::MAX)?;
    Ok(OutputOptions {
        root: values::absolute(root)?,
        links: instance.is_none(),
        instance: instance.unwrap_or_else(|| "default".to_owned()),
        main_node,
        extension: args.extension.as_deref().map(values::extension).transpose()?,
        tmpdir: match env.get("AFL_TMPDIR") {
            Some(path) => Some(existing_folder("AFL_TMPDIR", path)?),
            None => None,
        },
        stats_interval: Duration::from_secs(stats.map_or(60, i64::unsigned_abs)),
        crash_readme: !env.flag(&["AFL_NO_CRASH_README"]),
        command_line,
        resume: resume::line(args),
        environment: env.known(),
        autoresume: env.flag(&["AFL_AUTORESUME"]),
    })
}

/// Resolves `-w`.
fn sanitizers(
    args: &Args,
    env: &Environment,
    warnings: &mut Vec<String>,
) -> Result<SanitizerOptions, Failure> {
    let mut builds = Vec::new();
    if args.non_instrumented && !args.sanitizer.is_empty() {
        let cause = "-w runs what takes a new path in the target, and with -n no path is known";
        return Err(Failure::usage(cause, "leave -n or -w out"));
    }
    for given in &args.sanitizer {
        let failure = |error: ProgramError| {
            Failure::new(format!("-w {}: {error}", given.display()), error.remedy())
        };
        let program = binary::locate(given, env.get("PATH")).map_err(failure)?;
        let traits = binary::inspect(&program, false).map_err(failure)?;
        if !traits.sanitizer {
            warnings.push(format!("-w {}: this program has no sanitizer", given.display()));
        }
        builds.push(program);
    }
    let inspected = match env.get("AFL_SAN_ABSTRACTION").and_then(OsStr::to_str) {
        None | Some("simplify_trace") => Inspected::Edges,
        Some("unique_trace") => Inspected::Counts,
        Some("coverage_increase") => Inspected::Seeds,
        Some(other) => {
            let known = "simplify_trace, unique_trace or coverage_increase";
            let cause = format!("AFL_SAN_ABSTRACTION={other} is unknown");
            return Err(Failure::new(cause, format!("use {known}")));
        }
    };
    if builds.is_empty() && env.get("AFL_SAN_ABSTRACTION").is_some() {
        warnings.push("AFL_SAN_ABSTRACTION has no effect without -w".to_owned());
    }
    Ok(SanitizerOptions { builds, inspected })
}

/// Resolves `-c`.
fn logger(args: &Args, env: &Environment) -> Result<Logger, Failure> {
    let Some(given) = args.cmplog.as_deref().filter(|given| *given != "-") else {
        return Ok(Logger::TargetIfAble);
    };
    if args.non_instrumented {
        let cause = "-c solves comparisons to reach new edges, and -n sees none";
        return Err(Failure::usage(cause, "leave -n or -c out"));
    }
    if env.flag(&["AFL_NO_FORKSRV"]) {
        let cause = "-c needs a fork server, and AFL_NO_FORKSRV=1 forbids it";
        return Err(Failure::usage(cause, "unset AFL_NO_FORKSRV"));
    }
    if given == "0" {
        return Ok(Logger::Target);
    }
    let failure = |error: ProgramError| {
        Failure::new(format!("-c {}: {error}", given.display()), error.remedy())
    };
    let program = binary::locate(given, env.get("PATH")).map_err(failure)?;
    if !env.flag(&["AFL_SKIP_BIN_CHECK"]) {
        binary::inspect(&program, false).map_err(failure)?;
    }
    Ok(Logger::Build(program))
}

/// Checks `-l`.
fn check_level(args: &Args, warnings: &mut Vec<String>) -> Result<(), Failure> {
    let level = args.cmplog_level.as_deref().unwrap_or_default().to_string_lossy();
    if let Some(letter) = level.chars().find(|letter| !"0123AaTtXxSsRr".contains(*letter)) {
        let cause = format!("-l {level}: {letter} is unknown");
        return Err(Failure::usage(cause, "use 1, 2, 3 and the letters A, T, X, S, R"));
    }
    if level.contains(['R', 'r']) {
        let text = "-l R has no effect: bytes are always replaced by others of their kind";
        warnings.push(text.into());
    }
    Ok(())
}

fn existing_folder(given: &str, path: &OsStr) -> Result<PathBuf, Failure> {
    let path = values::absolute(path)?;
    if path.is_dir() {
        return Ok(path);
    }
    let cause = format!("{given}: {} is not a folder", path.display());
    Err(Failure::new(cause, format!("create it, or leave {given} out")))
}

/// Resolves `-i`. AFL_AUTORESUME turns it into a resume if there is something to resume.
fn input(args: &Args, env: &Environment, output: &OutputOptions) -> Result<Input, Failure> {
    let resume =
        env.flag(&["AFL_AUTORESUME"]) && output::holds_work(&output.root, &output.instance);
    if resume || args.input.as_deref() == Some(OsStr::new("-")) {
        return Ok(Input::Resume);
    }
    let Some(folder) = &args.input else {
        return Err(Failure::usage(
            "no seed folder given",
            "name one with -i SEEDS, or resume the campaign in OUT with -i -",
        ));
    };
    let folder = values::absolute(folder)?;
    // An AFL output folder as input means its queue.
    let queue = folder.join("queue");
    let folder = if queue.is_dir() { queue } else { folder };
    if folder == output.root {
        return Err(Failure::usage("-i and -o name the same folder", "choose another -o"));
    }
    if archive::is_archive(&folder) {
        archive::check(&folder).map_err(|error| Failure::of(&error))?;
        return Ok(Input::Directory(folder));
    }
    match has_seed(&folder) {
        Ok(true) => Ok(Input::Directory(folder)),
        Ok(false) => Err(Failure::new(
            format!("seed folder {} holds no seed", folder.display()),
            "store at least one small valid input in it (empty files and README.txt do not count)",
        )),
        Err(error) => Err(Failure::new(
            format!("cannot read seed folder {}: {error}", folder.display()),
            format!("-i: {}", inputs::how_to_give(&folder)),
        )),
    }
}

/// Sets options that the command line omits to those beside the harness. Returns notes for the user.
fn fill_from(beside: &Beside, args: &mut Args, env: &Environment) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |what: &str, file: &Path| notes.push(format!("{what}: {}", file.display()));
    if let (None, Some(seeds)) = (&args.input, &beside.seeds) {
        note("without -i, seeds are those beside the harness", seeds);
        args.input = Some(seeds.clone().into());
    }
    let wants_words = args.dictionaries.is_empty() && !env.flag(&["AFL_NO_AUTODICT"]);
    if let (true, Some(words)) = (wants_words, &beside.dictionary) {
        note("without -x, the dictionary is the one beside the harness", words);
        args.dictionaries.push(words.clone().into());
    }
    if let (None, Some(most)) = (&args.max_len, &beside.max_len) {
        let most = most.parse().unwrap_or(MAX_INPUT).min(MAX_INPUT);
        args.max_len = Some(most.to_string());
    }
    if !beside.unused.is_empty() {
        let all = beside.unused.join(", ");
        notes.push(format!("not used of the options beside the harness: {all}"));
    }
    notes
}

/// Adds sanitizer options and variables of a file next to the harness. The user's have precedence.
fn add_beside(target: &mut TargetOptions, beside: Beside, env: &Environment) {
    for (name, value) in &mut target.extra_env {
        let options = name.to_str().and_then(|name| beside.sanitizers.get(name));
        if let Some(options) = options.filter(|_| env.get(&name.to_string_lossy()).is_none()) {
            value.push(options);
        }
    }
    let is_new = |(name, _): &(OsString, OsString)| env.get(&name.to_string_lossy()).is_none();
    target.extra_env.extend(beside.variables.into_iter().filter(is_new));
}

/// Returns true if a folder or a subfolder has a file that can be a seed.
fn has_seed(folder: &Path) -> std::io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || name == "README.txt" {
            continue;
        }
        let Ok(data) = fs::metadata(entry.path()) else { continue };
        let is_link = entry.file_type().is_ok_and(|t| t.is_symlink());
        // Links to folders are not followed: they may form a cycle.
        let good = if data.is_dir() {
            !is_link && has_seed(&entry.path()).unwrap_or(false)
        } else {
            data.is_file() && data.len() > 0
        };
        if good {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn target_options(args: &Args, env: &Environment) -> Result<TargetOptions, Failure> {
    let ms = |name| env.number(name, 1, i64::from(u32::MAX));
    let time = |value: Option<i64>| value.map(|ms| Duration::from_millis(ms.unsigned_abs()));
    let signal = |name| env.number(name, 1, 64);
    let as_signal = |value: i64| i32::try_from(value).unwrap_or(libc::SIGKILL);
    let kill = signal("AFL_KILL_SIGNAL")?;
    let fork_server_kill = signal("AFL_FORK_SERVER_KILL_SIGNAL")?.or(kill);
    let map_size = env.number("AFL_MAP_SIZE", 8, MAX_MAP)?;
    let map_size = map_size.or(env.number("AFL_MAPSIZE", 8, MAX_MAP)?);
    Ok(TargetOptions {
        search_path: env.get("PATH").map(Into::into),
        command: args.command.clone(),
        file: args.file.as_deref().map(input_file).transpose()?,
        timeout: args.timeout.as_deref().map_or(Ok(TimeoutSpec::Auto), values::timeout)?,
        memory_limit: args.memory.as_deref().map_or(Ok(None), values::memory)?,
        init_timeout: time(ms("AFL_FORKSRV_INIT_TMOUT")?),
        hang_timeout: time(ms("AFL_HANG_TMOUT")?),
        map_size: map_size.and_then(|size| usize::try_from(size).ok()),
        crash_exit_code: crash_exit_code(env)?,
        exit_is_crash: false,
        kill_signal: kill.map_or(libc::SIGKILL, as_signal),
        fork_server_kill_signal: fork_server_kill.map_or(libc::SIGTERM, as_signal),
        run_mode: run_mode(args)?,
        snapshots: !env.flag(&["FFUZZ_NO_SNAPSHOT"]),
        snapshots_at_main: env.flag(&["FFUZZ_SNAPSHOT_AT_MAIN"]),
        steady_batches: args.seed.is_some(),
        force_persistent: env.flag(&["AFL_PERSISTENT"]),
        force_deferred: env.flag(&["AFL_DEFER_FORKSRV"]),
        non_instrumented: args.non_instrumented,
        blind_fork_server: env.flag(&["AFL_DUMB_FORKSRV"]),
        native: native(args, env)?,
        places: AssetPlaces::read(),
        guards_heap: guards_heap(args, env),
        net: net(args)?,
        no_fork_server: env.flag(&["AFL_NO_FORKSRV"]),
        skip_binary_check: env.flag(&["AFL_SKIP_BIN_CHECK"]),
        ignore_auto_dictionary: env.flag(&["AFL_NO_AUTODICT"]),
        show_output: env.flag(&["AFL_DEBUG", "AFL_DEBUG_CHILD", "AFL_DEBUG_CHILD_OUTPUT"]),
        extra_env: extra_environment(env, guards_heap(args, env))?,
        keep_input_file: args.keep_input_file,
        skip_core_pattern_check: env.flag(&["AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES"]),
        cpu: cpu(args, env)?,
    })
}

/// Resolves `--guard-heap`; AFL++'s users request it with the variable of its QEMU mode.
fn guards_heap(args: &Args, env: &Environment) -> bool {
    args.guard_heap || (native_engine(args).is_some() && env.flag(&["AFL_USE_QASAN"]))
}

/// Resolves `-Q`, which `--native` and `--qemu` imply.
fn native_engine(args: &Args) -> Option<NativeEngine> {
    match args {
        Args { breakpoints: true, .. } => Some(NativeEngine::Breakpoints),
        Args { qemu: true, .. } => Some(NativeEngine::Emulator),
        Args { native: true, .. } => Some(NativeEngine::Any),
        _ => None,
    }
}

/// Resolves `--net`. Answers are only collected with domains.
pub(super) fn net(args: &Args) -> Result<Option<NetOptions>, Failure> {
    let Some(text) = &args.net else { return Ok(None) };
    let counts = args.domains || args.dsf_record;
    if args.answers.is_some() && !counts {
        return Err(Failure::usage(
            "--answers names a domain, and domains are not used",
            "add -p, or --dsf-record to store only what improves them",
        ));
    }
    let default = counts.then_some("");
    values::net(text, args.answers.as_deref().or(default)).map(Some)
}

fn native(args: &Args, env: &Environment) -> Result<Option<NativeOptions>, Failure> {
    let Some(engine) = native_engine(args) else {
        return match args.modules {
            None => Ok(None),
            Some(_) => Err(Failure::usage(
                "--modules chooses among the files of a target without instrumentation (-Q)",
                "add -Q, or omit --modules",
            )),
        };
    };
    if args.non_instrumented {
        let cause = "-Q and -n exclude each other";
        return Err(Failure::usage(cause, "leave one of them out"));
    }
    if env.flag(&["AFL_NO_FORKSRV"]) {
        let cause = "-Q needs a fork server, and AFL_NO_FORKSRV=1 forbids it";
        return Err(Failure::usage(cause, "unset AFL_NO_FORKSRV"));
    }
    let all = || env.flag(&["AFL_INST_LIBS"]).then(|| "all".to_owned());
    let modules = args.modules.clone().or_else(all);
    let counts = args.domains || args.dsf_record;
    let domains = if counts { native_domains(env)? } else { Vec::new() };
    Ok(Some(NativeOptions { modules, engine, domains }))
}

/// The domains without source that `WAYPOINTS` selects.
fn native_domains(env: &Environment) -> Result<Vec<NativeDomain>, Failure> {
    let Some(list) = env.get("WAYPOINTS") else { return Ok(NativeDomain::USUAL.into()) };
    let list = list.to_string_lossy();
    let mut domains = Vec::new();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let Some(domain) = NativeDomain::named(word) else {
            let names = NativeDomain::ALL.map(NativeDomain::name).join(", ");
            let cause = format!("WAYPOINTS names {word}, and -Q has only the domains {names}");
            return Err(Failure::new(cause, "set WAYPOINTS to some of them, or unset it"));
        };
        if domain.counts_blocks() && env.flag(&["FFUZZ_NO_DETOURS"]) {
            let cause = format!(
                "the domain {word} needs hit counts, and FFUZZ_NO_DETOURS=1 leaves them out"
            );
            return Err(Failure::new(cause, "unset FFUZZ_NO_DETOURS"));
        }
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    Ok(domains)
}

/// Limits the execution mode: a target without instrumentation, or one that crashes in every run, needs a process per
/// run.
fn run_mode(args: &Args) -> Result<RunMode, Failure> {
    let asked = args.run_mode.as_deref().map_or(Ok(RunMode::default()), values::run_mode)?;
    Ok(match (args.non_instrumented, args.crash_mode) {
        (true, _) => RunMode::Pipe,
        (false, true) => asked.min(RunMode::Fork),
        (false, false) => asked,
    })
}

/// The crash exit code as a byte: -1 is 255. 0 is rejected, since it would make every run a crash.
fn crash_exit_code(env: &Environment) -> Result<Option<u8>, Failure> {
    let code = env.number("AFL_CRASH_EXITCODE", -127, 255)?;
    if code == Some(0) {
        let cause = "AFL_CRASH_EXITCODE=0 would make every run a crash";
        return Err(Failure::new(cause, "set it to the exit code of a failure"));
    }
    Ok(code.and_then(|code| u8::try_from(code.rem_euclid(256)).ok()))
}

/// Checks the file of `-f`. ffuzz creates it for the runs, so it must not be anything else.
fn input_file(path: &OsStr) -> Result<PathBuf, Failure> {
    let path = values::absolute(path)?;
    match fs::metadata(&path) {
        Ok(data) if !data.is_file() => Err(Failure::usage(
            format!("-f {} is no regular file: runs would replace it", path.display()),
            "name a file that may be replaced, or leave -f out",
        )),
        _ => Ok(path),
    }
}

fn extra_environment(
    env: &Environment,
    guards_heap: bool,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let mut extra: Vec<(OsString, OsString)> = Vec::new();
    let mut libraries: Vec<OsString> = Vec::new();
    if guards_heap {
        let assets = Assets::open(&AssetPlaces::read()).map_err(|error| Failure::of(&error))?;
        libraries.push(assets.directory.join(HEAP).into());
    }
    libraries.extend(env.get("AFL_PRELOAD").map(Into::into));
    if !libraries.is_empty() {
        extra.push(("LD_PRELOAD".into(), libraries.join(OsStr::new(":"))));
    }
    if !env.flag(&["LD_BIND_LAZY"]) {
        // Libraries are resolved once in the fork server instead of in each run.
        extra.push(("LD_BIND_NOW".into(), "1".into()));
    }
    let sanitizers = sanitizers::target_environment(env);
    let sanitizers = sanitizers.map_err(|error| Failure::of(&error))?;
    extra.extend(sanitizers.into_iter().map(|(name, value)| (name.into(), value.into())));
    if let Some(text) = env.get("AFL_TARGET_ENV") {
        extra.extend(values::assignments(&text.to_string_lossy())?);
    }
    Ok(extra)
}

fn cpu(args: &Args, env: &Environment) -> Result<CpuChoice, Failure> {
    match (&args.bind, env.flag(&["AFL_NO_AFFINITY"])) {
        (Some(_), true) => Err(Failure::usage(
            "-b and AFL_NO_AFFINITY exclude each other",
            "leave out -b, or unset AFL_NO_AFFINITY",
        )),
        (Some(text), false) => {
            let core = values::number("-b", text, 0, 1 << 16)?;
            Ok(CpuChoice::Fixed(usize::try_from(core).unwrap_or_default()))
        }
        (None, true) => Ok(CpuChoice::None),
        (None, false) => Ok(CpuChoice::Free),
    }
}

fn schedule(args: &Args) -> Result<Schedule, Failure> {
    let schedule = args.schedule.as_deref().map_or(Ok(Schedule::default()), values::schedule)?;
    if args.main.is_some() && !schedule.is_for_main() {
        return Err(Failure::usage(
            "a main instance (-M) supports only the schedules explore and fast",
            "leave the schedule out, or use -S",
        ));
    }
    Ok(schedule)
}

fn domain_mode(args: &Args) -> DomainMode {
    match (args.domains, args.dsf_record) {
        (true, _) => DomainMode::Guide,
        (false, true) => DomainMode::Record,
        (false, false) => DomainMode::Off,
    }
}

fn mutation(args: &Args, env: &Environment, main: bool) -> Result<MutationOptions, Failure> {
    let length = |option: &str, given: &Option<String>, variable, default: u64| match given {
        Some(text) => values::number(option, text, 1, MAX_INPUT),
        None => {
            Ok(env.number(variable, 1, MAX_INPUT.cast_signed())?.map_or(default, i64::unsigned_abs))
        }
    };
    let min = length("-g", &args.min_len, "AFL_INPUT_LEN_MIN", 1)?;
    let max = length("-G", &args.max_len, "AFL_INPUT_LEN_MAX", MAX_INPUT)?;
    if min > max {
        let cause = format!("the smallest input ({min}) is larger than the largest ({max})");
        return Err(Failure::usage(cause, "check -g and -G"));
    }
    if args.dictionaries.len() > MAX_DICTIONARIES {
        return Err(Failure::usage("at most four -x can be given", "put the tokens into one file"));
    }
    let dictionaries = args.dictionaries.iter().map(|word| values::dictionary(word));
    Ok(MutationOptions {
        dictionaries: dictionaries.collect::<Result<_, _>>()?,
        min_len: usize::try_from(min).unwrap_or_default(),
        max_len: usize::try_from(max).unwrap_or_default(),
        deterministic: match args {
            Args { skip_deterministic: true, .. } => DeterministicStage::Skipped,
            Args { deterministic: true, .. } => DeterministicStage::Always,
            Args { quick: true, .. } => DeterministicStage::Skipped,
            _ => DeterministicStage::Competes,
        },
        messages: args.net.is_some(),
        skip_trim: main || env.flag(&["AFL_DISABLE_TRIM", "AFL_NO_TRIM"]),
        solves_comparisons: args.cmplog.as_deref() != Some(OsStr::new("-")),
        length_share: match env.flag(&["AFL_FRAMESHIFT_DISABLE"]) {
            true => 0.0,
            false => env.fraction("AFL_FRAMESHIFT_MAX_OVERHEAD")?.unwrap_or(LENGTH_SHARE),
        },
        skip_arith: env.flag(&["AFL_NO_ARITH"]),
        sequential: main || args.sequential,
        text: args.input_type.as_deref().map_or(Ok(None), values::input_type)?,
        strategy: args.strategy.as_deref().map_or(Ok(Strategy::Explore), values::strategy)?,
        expand_havoc: env.flag(&["AFL_EXPAND_HAVOC_NOW"]),
    })
}

fn limits(args: &Args, env: &Environment) -> Result<Limits, Failure> {
    let limit = |option: &str, given: &Option<String>| match given {
        Some(text) => values::number(option, text, 1, u64::from(u32::MAX) << 16).map(Some),
        None => Ok(None),
    };
    let idle = env.number("AFL_EXIT_ON_TIME", 1, i64::from(u32::MAX))?;
    Ok(Limits {
        time: limit("-V", &args.time_limit)?.map(Duration::from_secs),
        execs: limit("-E", &args.exec_limit)?,
        one_seed: env.flag(&["AFL_BENCH_JUST_ONE"]),
        until_crash: env.flag(&["AFL_BENCH_UNTIL_CRASH"]),
        when_done: env.flag(&["AFL_EXIT_WHEN_DONE"]),
        without_finds: idle.map(|s| Duration::from_secs(s.unsigned_abs())),
    })
}

/// Resolves `-M`, `-S`, `-F` and related variables.
fn sync(args: &Args, env: &Environment) -> Result<SyncOptions, Failure> {
    if args.foreign.len() > MAX_FOREIGN {
        let cause = format!("-F is given {} times", args.foreign.len());
        return Err(Failure::usage(cause, format!("name at most {MAX_FOREIGN} folders")));
    }
    let off = env.flag(&["AFL_NO_SYNC"]);
    let folders = args.foreign.iter().map(|folder| existing_folder("-F", folder));
    let folders: Vec<_> = folders.collect::<Result<_, _>>()?;
    let minutes = env.number("AFL_SYNC_TIME", 1, i64::from(u32::MAX))?;
    Ok(SyncOptions {
        instances: !off && (args.main.is_some() || args.secondary.is_some()),
        folders: if off { Vec::new() } else { folders },
        relist: Duration::from_secs(60) * minutes.map_or(20, |minutes| minutes as u32),
        first: env.flag(&["AFL_IMPORT_FIRST"]),
        last: env.flag(&["AFL_FINAL_SYNC"]),
    })
}

pub(in crate::cmd) fn colors(env: &Environment) -> Colors {
    match env.flag(&["NO_COLOR", "AFL_NO_COLOR", "AFL_NO_COLOUR"]) {
        true => Colors::None,
        false if env.flag(&["AFL_NO_CPU_RED"]) => Colors::CalmLoad,
        false => Colors::All,
    }
}

pub(in crate::cmd) fn ui(env: &Environment) -> Result<UiMode, Failure> {
    match (env.flag(&["AFL_FORCE_UI"]), env.flag(&["AFL_NO_UI"])) {
        (true, true) => Err(Failure::usage(
            "AFL_FORCE_UI and AFL_NO_UI exclude each other",
            "unset one of them",
        )),
        (true, false) => Ok(UiMode::Screen),
        _ if env.flag(&["AFL_QUIET"]) => Ok(UiMode::Quiet),
        (false, true) => Ok(UiMode::Lines),
        (false, false) => Ok(UiMode::Auto),
    }
}
