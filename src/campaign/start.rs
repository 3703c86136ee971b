//! Opening a campaign: output folder, target, dictionary, host checks.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::imports::Imports;
use super::limits::CampaignLimits;
use super::orders::PendingOrders;
use super::outside::Outside;
use super::reports::Reports;
use super::state::StateFiles;
use super::statistics::Statistics;
use super::wait::Obstacles;
use super::{Campaign, CampaignError};
use crate::config::options::{
    CpuChoice, DomainMode, Input, Logger, Options, OutputOptions, SanitizerOptions, SyncOptions,
    TargetOptions, TimeoutSpec,
};
use crate::crashes::triage::Follower;
use crate::disk::output::OutputDir;
use crate::disk::output::earlier::Earlier;
use crate::disk::sync::{Peers, SyncFolders};
use crate::engine::calibrate;
use crate::engine::domain::{self, Domain};
use crate::engine::executor::{Executor, InputFunctions, TargetInfo};
use crate::engine::fuzzer::admit::HANG_TIMEOUT;
use crate::engine::fuzzer::{AdmissionOptions, Fuzzer, Plan, Sidecars};
use crate::engine::runner::Runner;
use crate::engine::schedule::ScheduleOptions;
use crate::event::{Event, EventBus, EventSink};
use crate::exec::{self, HarnessMutator, Hooked, Setup, TargetError};
use crate::fleet::control::CommandSource;
use crate::mutate::dictionary::{Dictionary, Token};
use crate::mutate::words::{self, MAX_WORDS};
use crate::mutators::{self, Mutators};
use crate::sys::stop::Stop;
use crate::sys::waits::Wait;
use crate::sys::{affinity, file, underway};

/// Timeout of a run until the seeds are known.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// Of a dictionary; one with a million tokens is smaller.
const LARGEST_DICTIONARY: u64 = 64 << 20;

/// Malformed lines of a dictionary, or files of a folder, that have a warning of their own. A file that is
/// no dictionary has thousands.
const DICTIONARY_WARNINGS: usize = 10;

/// Opens everything. A target that has not started when the limit of time is reached is not at fault.
pub(super) fn open(
    options: Options,
    sinks: impl FnOnce(&OutputDir) -> Vec<Box<dyn EventSink>>,
    control: Vec<CommandSource>,
) -> Result<Campaign, CampaignError> {
    let stop = Stop::default();
    open_parts(options, sinks, control, stop.clone()).map_err(|error| match error {
        CampaignError::Target(TargetError::NoHello { .. })
        | CampaignError::Logger { source: TargetError::NoHello { .. }, .. }
            if stop.is_over() && !stop.asked() =>
        {
            CampaignError::LimitAtStart
        }
        error => error,
    })
}

/// The order is that in which a mistake of the user costs least.
fn open_parts(
    mut options: Options,
    sinks: impl FnOnce(&OutputDir) -> Vec<Box<dyn EventSink>>,
    control: Vec<CommandSource>,
    stop: Stop,
) -> Result<Campaign, CampaignError> {
    check_core_pattern(&options.target)?;
    let (mut dictionary, mut not_loaded) = load_dictionaries(&options.mutation.dictionaries)?;
    let mut output = OutputDir::open(&options.output, options.input == Input::Resume)?;
    let abandoned = exec::end_abandoned(output.instance_dir());
    // From here on code of the user's runs: its init functions have the limit, too. Until all is loaded,
    // signals end the process at once.
    underway::stop_on(&stop);
    stop.limit(options.limits.time);
    let seed = options.rng_seed.unwrap_or_else(seed_of_the_day);
    let mut mutators = mutators::load(&options.custom, seed)?;
    options.target.run_mode = options.target.run_mode.min(mutators.run_mode());
    let target = &options.target;
    output.write_target_command(&target.command)?;
    let setup = Setup::new(target, output.input_path(), Some(output.instance_dir()))?;
    let setup = setup.stop_on(stop.request());
    let triage = prepare_triage(&options, &mutators);
    let core = bind_core(target.cpu)?;
    let mut executor = start_target(setup.clone(), target)?;
    let functions = executor.info().input_functions();
    if functions.any() {
        mutators.add(Box::new(HarnessMutator::new(setup, functions, seed)), seed);
    }
    mutators::check(&mutators, &options.custom)?;
    let recorded = match options.findings.record {
        asked if executor.info().process().is_some() => asked.max(super::confirm::MOST_BEFORE),
        asked => asked,
    };
    // A process that goes on from run to run is better interrupted at once.
    if executor.info().run_mode().forks_each_run() {
        affinity::wait_patiently();
    }
    for token in executor.take_dictionary() {
        dictionary.add_auto(&token);
    }
    if !target.ignore_auto_dictionary {
        not_loaded.extend(add_words(&mut dictionary, executor.info()));
    }
    let (flow, damaged) = executor.info().flow();
    not_loaded.extend(damaged.iter().map(|file| damaged_flow(file)));
    let mut bus = EventBus::default();
    for sink in sinks(&output) {
        bus.add(sink);
    }
    stop.listen().map_err(CampaignError::Signals)?;
    stop.suspend_between_runs().map_err(CampaignError::Signals)?;
    let runner = Runner::new(executor).send_late(options.custom.late_send).recording(recorded);
    let sidecars = start_sanitizers(&options, &mut output, &stop)?;
    let logger = start_logger(&options, &mut output, &stop, runner.info())?;
    let orders = PendingOrders::new(control, &stop, &mut bus)?;
    let mut campaign =
        assemble(options, Hooked { runner, mutators }, output, bus, dictionary, stop);
    (campaign.imports, campaign.orders) = (imports(&campaign.options), orders);
    let Campaign { options, fuzzer, outside, state, .. } = &mut campaign;
    (outside.statistics.core, outside.reports.triage) = (core, triage);
    fuzzer.follow(&flow);
    sidecars.into_iter().for_each(|sidecars| fuzzer.run_beside(sidecars));
    logger.into_iter().for_each(|logger| fuzzer.log_by(logger));
    outside.limits.arm(&outside.statistics);
    introduce(fuzzer, &mut outside.reports, functions, abandoned);
    report_domains(options, fuzzer, &mut outside.reports);
    not_loaded.into_iter().for_each(|warning| outside.warn(warning));
    state.coverage.load(fuzzer, outside)?;
    Ok(campaign)
}

fn damaged_flow(file: &Path) -> String {
    format!(
        "the table of the control flow of {} is damaged: its machine code is read instead",
        file.display()
    )
}

/// Says what the target offers, and how many processes of an earlier fuzzer were ended.
fn introduce(
    fuzzer: &mut Fuzzer<Mutators>,
    reports: &mut Reports,
    functions: InputFunctions,
    abandoned: usize,
) {
    if let Some(line) = fuzzer.target().introduction() {
        reports.note(line);
    }
    if functions.any() {
        reports.note(HarnessMutator::introduction(functions));
    }
    if abandoned > 0 {
        let end = "they were left by a fuzzer that was killed";
        reports
            .note(format!("processes of this output folder that were ended: {abandoned}; {end}"));
    }
    reports.report_notes(fuzzer);
}

/// Puts the parts together.
pub(super) fn assemble(
    mut options: Options,
    target: Hooked,
    mut output: OutputDir,
    mut bus: EventBus,
    dictionary: Dictionary,
    stop: Stop,
) -> Campaign {
    let plan = Plan {
        mutation: options.mutation.clone(),
        foreign_only: options.custom.only,
        schedule: ScheduleOptions {
            schedule: options.schedule,
            fixed_seed: options.rng_seed.is_some(),
            sequential: options.mutation.sequential,
            guided: options.domains == DomainMode::Guide,
        },
        watch_domains: options.domains != DomainMode::Off,
        wanted: options.seeds.wanted,
        admission: admission_options(&options),
        rng_seed: options.rng_seed.unwrap_or_else(seed_of_the_day),
    };
    let mut fuzzer = Fuzzer::new(target.runner, target.mutators, dictionary, plan);
    fuzzer.allow_for_load(options.target.timeout == TimeoutSpec::Auto);
    let mut statistics = Statistics::new(fuzzer.target().domains().len());
    if output.resumed() {
        let earlier = Earlier::read(output.instance_dir());
        if earlier.is_damaged {
            let message = "fuzzer_stats holds numbers that cannot be: they begin at 0 again";
            bus.send(&Event::Warning { message: message.into() });
        }
        fuzzer.progress.found = earlier.found;
        statistics.continue_from(earlier);
    }
    for message in output.take_notes() {
        bus.send(&Event::Warning { message });
    }
    let outside = Outside {
        reports: Reports::new(&options, bus, &output),
        output,
        statistics,
        limits: CampaignLimits { options: std::mem::take(&mut options.limits), stop },
        obstacles: Obstacles::default(),
        extension: options.output.extension.clone(),
    };
    let state = StateFiles::new(&options, &fuzzer);
    Campaign { options, fuzzer, outside, state, imports: None, orders: None }
}

fn admission_options(options: &Options) -> AdmissionOptions {
    AdmissionOptions {
        hang_timeout: options.target.hang_timeout.unwrap_or(HANG_TIMEOUT),
        longest_timeout: match options.target.timeout {
            TimeoutSpec::Fixed(_) => None,
            TimeoutSpec::Upto(limit) => Some(limit),
            TimeoutSpec::Auto => Some(HANG_TIMEOUT),
        },
        calibration_runs: match options.calibration.fast {
            true => calibrate::RUNS_FAST,
            false => calibrate::RUNS,
        },
        records: options.domains == DomainMode::Record,
        keeps_original: options.custom.keep_original,
    }
}

/// None without other instances or folders.
fn imports(options: &Options) -> Option<Imports> {
    let SyncOptions { instances, folders, relist, .. } = &options.sync;
    if !instances && folders.is_empty() {
        return None;
    }
    let output = &options.output;
    let instances = instances.then(|| (output.root.clone(), output.instance.clone()));
    let places = SyncFolders { instances, folders: folders.clone(), relist: *relist };
    Some(Imports::new(Peers::new(places)))
}

fn seed_of_the_day() -> u64 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = time.map_or(0, |time| time.as_nanos()) as u64;
    crate::engine::coverage::mix(nanoseconds ^ u64::from(std::process::id()) << 40)
}

/// The builds of `-w`.
fn start_sanitizers(
    options: &Options,
    output: &mut OutputDir,
    stop: &Stop,
) -> Result<Option<Sidecars>, CampaignError> {
    let SanitizerOptions { builds, inspected } = &options.sanitizers;
    let start = |program: &PathBuf| {
        let mut target = options.target.for_other_build(program.clone().into_os_string());
        // A sanitizer reserves terabytes of addresses.
        target.memory_limit = None;
        let input = output.add_input_path();
        let setup = Setup::new(&target, &input, Some(output.instance_dir()))?;
        start_target(setup.stop_on(stop.request()), &target).map_err(CampaignError::from)
    };
    if builds.is_empty() {
        return Ok(None);
    }
    let builds: Result<_, CampaignError> = builds.iter().map(start).collect();
    Ok(Some(Sidecars::new(builds?, *inspected)))
}

/// The build of `-c`; None if the target logs its comparisons itself, or nothing does.
fn start_logger(
    options: &Options,
    output: &mut OutputDir,
    stop: &Stop,
    target: &dyn TargetInfo,
) -> Result<Option<Box<dyn Executor>>, CampaignError> {
    let program = match &options.logger {
        Logger::TargetIfAble => return Ok(None),
        Logger::Target if target.logs_comparisons() => return Ok(None),
        Logger::Target => options.target.command.first().cloned().unwrap_or_default(),
        Logger::Build(program) => program.clone().into_os_string(),
    };
    let target = options.target.for_other_build(program.clone());
    let input = output.add_input_path();
    let setup = Setup::new(&target, &input, Some(output.instance_dir())).and_then(Setup::logging);
    let logger = setup.and_then(|setup| start_target(setup.stop_on(stop.request()), &target));
    let failure = |source| CampaignError::Logger { program: program.into(), source };
    Ok(Some(logger.map_err(failure)?))
}

fn start_target(setup: Setup, options: &TargetOptions) -> Result<Box<dyn Executor>, TargetError> {
    let timeout = match options.timeout {
        TimeoutSpec::Fixed(timeout) | TimeoutSpec::Upto(timeout) => timeout,
        TimeoutSpec::Auto => FIRST_TIMEOUT,
    };
    let _wait = Wait::begin("the target has not started");
    exec::open(setup, timeout)
}

/// What names mutators: triage loads none if the stored inputs are what the target got.
const NO_MUTATORS: [&str; 2] = ["AFL_CUSTOM_MUTATOR_LIBRARY", "AFL_PYTHON_MODULE"];

fn prepare_triage(options: &Options, mutators: &Mutators) -> Option<Follower> {
    let mut triage = options.triage.clone()?;
    if !mutators.are_needed_to_replay(options.custom.keep_original) {
        triage.env = NO_MUTATORS.map(|name| (name.into(), "".into())).into();
    }
    Some(Follower::new(triage))
}

fn check_core_pattern(options: &TargetOptions) -> Result<(), CampaignError> {
    let pattern = fs::read("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with(b"|") && !options.skip_core_pattern_check {
        return Err(CampaignError::CorePattern);
    }
    Ok(())
}

/// A core of its own makes hand-overs four times cheaper; without a free one fuzzing goes on.
/// Returns the core to which this process is bound now.
fn bind_core(choice: CpuChoice) -> Result<Option<usize>, CampaignError> {
    match choice {
        CpuChoice::Free => Ok(affinity::free_core().filter(|core| affinity::bind(*core).is_ok())),
        CpuChoice::Fixed(core) => match affinity::bind(core) {
            Ok(()) => Ok(Some(core)),
            Err(_) => Err(CampaignError::Core { core, allowed: affinity::allowed() }),
        },
        CpuChoice::None => Ok(None),
    }
}

/// The words that `ffuzz-cc` has found in the target's sources. Also a warning for each file whose table cannot
/// be read, and one if there are too many.
fn add_words(dictionary: &mut Dictionary, target: &dyn TargetInfo) -> Vec<String> {
    let (mut words, damaged) = target.words();
    let count = words.len();
    words::thin_out(&mut words, MAX_WORDS);
    dictionary.add_words(words.iter().map(|word| &*word.bytes));
    let mut warnings: Vec<String> = damaged
        .iter()
        .map(|file| format!("the words of {} are damaged: not used", file.display()))
        .collect();
    if count > MAX_WORDS {
        warnings.push(format!(
            "the target has {count} words: {MAX_WORDS} of them, evenly spread, are used (see \
             ffuzz-showmap --tokens; -x takes a selection, AFL_NO_AUTODICT=1 leaves all out)"
        ));
    }
    warnings
}

/// The user's dictionaries, each with its level. Also a warning for what is no token, each.
fn load_dictionaries(files: &[(PathBuf, u32)]) -> Result<(Dictionary, Vec<String>), CampaignError> {
    let (mut dictionary, mut not_loaded) = (Dictionary::default(), vec![]);
    for (path, level) in files {
        let (tokens, malformed) = load_dictionary(path, *level)?;
        dictionary.add_user(tokens);
        not_loaded.extend(malformed);
    }
    Ok((dictionary, not_loaded))
}

/// A dictionary file, or a folder with one token a file. Also a warning for what is no token, each.
fn load_dictionary(path: &Path, level: u32) -> Result<(Vec<Token>, Vec<String>), CampaignError> {
    let error = |source| CampaignError::Dictionary { path: path.into(), source };
    let read = |path: &Path| file::read_whole(path, LARGEST_DICTIONARY).map_err(error);
    if !path.is_dir() {
        let (tokens, malformed) = Dictionary::parse(&read(path)?, level);
        let file = path.display();
        let reasons = malformed
            .iter()
            .map(|line| format!("dictionary {file}, {line}: not loaded (a line is name=\"text\")"));
        return Ok((tokens, warnings_of(path, reasons)));
    }
    let mut files: Vec<_> = fs::read_dir(path)
        .map_err(error)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && path.extension() != Some(OsStr::new("md")))
        .collect();
    files.sort();
    let (mut tokens, mut malformed) = (Vec::new(), Vec::new());
    for file in files {
        match Token::new(&read(&file)?) {
            Some(token) => tokens.push(token),
            None => malformed.push(file),
        }
    }
    let reasons = malformed.iter().map(|file| {
        format!("dictionary {} is not loaded: it is no token of 1 to 128 bytes", file.display())
    });
    Ok((tokens, warnings_of(path, reasons)))
}

/// The first of many, and how many more there are.
fn warnings_of(path: &Path, reasons: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = reasons.len().saturating_sub(DICTIONARY_WARNINGS);
    let rest = (more > 0).then(|| format!("dictionary {}: {more} more like these", path.display()));
    reasons.take(DICTIONARY_WARNINGS).chain(rest).collect()
}

/// What the user should know about the target's domains before the long silence.
fn report_domains(options: &Options, fuzzer: &Fuzzer<Mutators>, reports: &mut Reports) {
    let domains = fuzzer.target().domains();
    if options.domains == DomainMode::Off {
        return warn_of_unused_domains(&options.output, domains, reports);
    }
    reports.bus.send(&Event::DomainsFound { lines: domain::describe(domains) });
    if domains.is_empty() {
        let message = if options.target.native.is_some() {
            "-p has no effect: domains of programs without source need breakpoints"
        } else {
            "the target registers no domain: -p has no effect (build it with \
             WAYPOINTS=cmp,mem ffuzz-cc …)"
        };
        reports.warn(message.into());
    }
}

/// A target with domains was built for a purpose that nothing serves now. A secondary leaves it to
/// its main: some are without domains on purpose.
fn warn_of_unused_domains(output: &OutputOptions, domains: &[Domain], reports: &mut Reports) {
    let names: Vec<&str> = domains.iter().map(|domain| domain.name.as_str()).collect();
    if names.is_empty() || !(output.main_node || output.links) {
        return;
    }
    let named = names.iter().any(|name| !name.is_empty());
    let which = if named { format!(" ({})", names.join(", ")) } else { String::new() };
    reports.warn(format!(
        "the target has domains{which}, which do not guide the search: add -p \
         (--dsf-record only stores what improves them)"
    ));
}
