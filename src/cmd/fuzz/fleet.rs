//! `-j N`: converts one command line to those of all workers. All checks precede the start of the first worker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::args::Args;
use super::found::FindWatch;
use super::handed::{self, Workers};
use super::{print_warnings, reports, resolve, resume, root_warning, this_program, values};
use crate::cmd::exit::Failure;
use crate::cmd::screen::Analysis;
use crate::config::env::Environment;
use crate::config::options::{CpuChoice, Input, Options, Schedule};
use crate::disk::output::{self, OutputError};
use crate::event::EventSink;
use crate::fleet::control::Hello;
use crate::fleet::workers::strategy::{self, WorkerStrategy};
use crate::fleet::workers::{self, FleetOptions, WorkerPlan};
use crate::sys::affinity;
use crate::sys::remedy::Remedy;

/// Far beyond any machine's cores; prevents typing errors from starting thousands of processes.
const MOST_WORKERS: u64 = 1024;
/// Instance of a single fuzzer, whose seeds a fleet can resume.
const SINGLE: &str = "default";

pub(super) fn run(
    program: &str,
    args: &Args,
    environment: &Environment,
    command_line: Vec<OsString>,
) -> Result<ExitCode, Failure> {
    let count = count(args.workers.as_deref().unwrap_or_default())?;
    refuse(args, count)?;
    let found = FindWatch::new(args)?;
    let (options, mut warnings) = resolve::resolve(for_main(args), environment, command_line)?;
    let inputs = inputs(&options, count)?;
    let cores = cores(&options, count, &mut warnings);
    warnings.extend(left_out(&options, count));
    warnings.extend(root_warning());
    print_warnings(program, options.ui, &warnings);
    let plan = FleetPlan { program: this_program(), args, options: &options, inputs, cores };
    let fleet = FleetOptions {
        workers: plan.plans(),
        time: options.limits.time,
        until_crash: options.limits.until_crash,
        command_line: join(&options.output.command_line),
        root: options.output.root.clone(),
        resume: resume::line(args),
        triage: options.triage.clone(),
    };
    let statsd = options.statsd.as_ref().map(reports::connect).transpose()?;
    let metrics = options.metrics.map(reports::serve).transpose()?;
    let names = fleet.workers.iter().map(|plan| plan.name.clone()).collect();
    let hello = || Hello::new(options.output.root.clone(), None, names);
    let analysis = Analysis::of(&options.output.root);
    let mut control = reports::open(options.control.as_ref(), hello, &analysis)?;
    let around = analysis.surroundings(options.ui, &options.output.root, None, &mut control);
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    sinks.extend(statsd.map(|statsd| Box::new(statsd) as Box<_>));
    sinks.extend(metrics.map(|metrics| Box::new(metrics) as Box<_>));
    sinks.push(found.sink());
    sinks.extend(crate::ui::sink(options.ui, options.colors, || around));
    let result = workers::run(fleet, sinks, control);
    let failed = |cause: &dyn std::fmt::Display, remedy| {
        let failure = Failure::new(cause, remedy);
        Failure { code: found.code().unwrap_or(failure.code), ..failure }
    };
    result.map(|_| found.exit_code()).map_err(|error| failed(&error, error.remedy()))
}

/// Parses the number of workers. `auto` and 0 mean all available cores, as limited by affinity and cgroup.
fn count(text: &str) -> Result<usize, Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if text == "auto" {
        return Ok(cores());
    }
    match values::number("-j", text, 0, MOST_WORKERS) {
        Ok(0) => Ok(cores()),
        Ok(count) => Ok(usize::try_from(count).unwrap_or(1)),
        Err(failure) => Err(Failure { remedy: "give a number, or auto".into(), ..failure }),
    }
}

/// Fails on options that several workers cannot share.
fn refuse(args: &Args, count: usize) -> Result<(), Failure> {
    let rows = args.given.iter().filter_map(|option| handed::row_of(option));
    let mut excluded = rows.filter_map(|row| match row.workers {
        Workers::Refused(why) => Some(why),
        Workers::OnlyOne(why) | Workers::OnlyOneOwn(why) if count > 1 => Some(why),
        _ => None,
    });
    match excluded.next() {
        Some(why) => Err(Failure::usage(why.cause, why.remedy)),
        None => Ok(()),
    }
}

/// The command line for the main alone; its errors are errors for all.
fn for_main(args: &Args) -> Args {
    let mut args = args.clone();
    args.workers = None;
    args.main = Some(strategy::name(0));
    if !main_takes(&args) {
        args.schedule = None;
    }
    args
}

/// Returns true if the main can use the given schedule. A main has one of two schedules; others go to the secondaries.
fn main_takes(args: &Args) -> bool {
    let given = args.schedule.as_deref().map(values::schedule);
    given.is_none_or(|given| given.is_err() || given.is_ok_and(Schedule::is_for_main))
}

/// The `-i` of each worker: existing workers resume, new ones start with another worker's seeds.
fn inputs(options: &Options, count: usize) -> Result<Vec<Option<PathBuf>>, Failure> {
    let root = &options.output.root;
    let names: Vec<String> = (0..count).map(strategy::name).collect();
    let failure = |error: OutputError| Failure::of(&error);
    let works = |name: &str| output::find_work(root, name).map_err(failure);
    let known = names.iter().map(|name| works(name)).collect::<Result<Vec<bool>, _>>()?;
    let first = known.iter().position(|works| *works).map(|number| names[number].as_str());
    if options.input != Input::Resume {
        return match first.filter(|_| !options.output.autoresume) {
            Some(name) => {
                Err(failure(OutputError::HoldsWork { path: root.join(name), autoresume: false }))
            }
            None => Ok(vec![None; count]),
        };
    }
    let source = match first {
        Some(name) => name,
        None if works(SINGLE)? => SINGLE,
        None => {
            let path = root.join(&names[0]).join("queue");
            return Err(failure(OutputError::NothingToResume { path }));
        }
    };
    let input = |works: bool| Some(if works { "-".into() } else { root.join(source) });
    Ok(known.into_iter().map(input).collect())
}

/// Warns about workers of an earlier, larger fleet.
fn left_out(options: &Options, count: usize) -> Option<String> {
    let known = (count..).map(strategy::name);
    let works = |name: &String| output::find_work(&options.output.root, name).unwrap_or(false);
    let there = known.take_while(works).count();
    (there > 0).then(|| {
        let (first, all) = (strategy::name(count), count + there);
        format!("{first} and later ones are not continued: -j {all} goes on with all {all}")
    })
}

/// Free cores, at most one per worker.
fn cores(options: &Options, count: usize, warnings: &mut Vec<String>) -> Vec<usize> {
    match options.target.cpu {
        CpuChoice::None => Vec::new(),
        CpuChoice::Fixed(core) => vec![core],
        CpuChoice::Free => {
            let free = affinity::free_cores();
            if free.len() < count {
                let (free, rest) = (free.len(), count - free.len());
                warnings.push(format!(
                    "{count} workers, free cores: {free}; {rest} workers share cores"
                ));
            }
            free
        }
    }
}

fn join(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Inputs for the workers' command lines and variables.
struct FleetPlan<'a> {
    program: PathBuf,
    args: &'a Args,
    options: &'a Options,
    /// Per worker, the folder that replaces the user's `-i`.
    inputs: Vec<Option<PathBuf>>,
    /// Cores of the first workers.
    cores: Vec<usize>,
}

impl FleetPlan<'_> {
    fn plans(&self) -> Vec<WorkerPlan> {
        let plan = |number| WorkerPlan {
            name: strategy::name(number),
            argv: self.words(number),
            env: self.variables(number),
            tmpdir: self.tmpdir(number),
            takes_commands: true,
        };
        (0..self.inputs.len()).map(plan).collect()
    }

    /// The user's words, with the fleet's options replaced by the worker's own.
    fn words(&self, number: usize) -> Vec<OsString> {
        let strategy = WorkerStrategy::of(number);
        let input = self.inputs[number].as_deref();
        let mut words = vec![self.program.clone().into_os_string()];
        let role = if strategy.main { "-M" } else { "-S" };
        words.extend([role.into(), strategy::name(number).into()]);
        words.extend(["--json", "--control", "-"].map(OsString::from));
        for option in self.args.given.iter().filter(|option| self.keeps(option, strategy, input)) {
            words.extend(option.iter().cloned());
        }
        let mut add = |option: &str, value: &Path| {
            words.extend([option.into(), value.as_os_str().to_owned()]);
        };
        if let Some(input) = input {
            add("-i", input);
        }
        let (index, count) = (number as u64, self.inputs.len() as u64);
        if let Some(seed) = self.options.rng_seed {
            add("-s", Path::new(&seed.wrapping_add(index).to_string()));
        }
        if let Some(execs) = self.options.limits.execs {
            add("-E", Path::new(&part(execs, index, count).to_string()));
        }
        if let Some(core) = self.cores.get(number) {
            add("-b", Path::new(&core.to_string()));
        }
        if self.args.schedule.is_none() {
            add("--schedule", Path::new(strategy.schedule.name()));
        }
        if self.args.strategy.is_none() && strategy.exploits {
            add("-P", Path::new("exploit"));
        }
        words.extend(self.flags(strategy).map(OsString::from));
        words.push("--".into());
        words.extend(self.args.command.iter().cloned());
        words
    }

    /// Returns true if the option is passed on unchanged.
    fn keeps(&self, option: &[OsString], strategy: WorkerStrategy, input: Option<&Path>) -> bool {
        match handed::row_of(option).map_or(Workers::Get, |row| row.workers) {
            Workers::Get | Workers::OnlyOne(_) => true,
            Workers::Without | Workers::OnlyOneOwn(_) | Workers::Refused(_) => false,
            Workers::NewOnes => input.is_none(),
            Workers::GuidedOnes => strategy.domains,
            Workers::Main => strategy.main,
            Workers::ThoseItSuits => !strategy.main || main_takes(self.args),
        }
    }

    /// Options that the user omitted. A campaign guided by domains uses the deterministic steps as one of two ways to a
    /// better value, so all workers get them.
    fn flags(&self, strategy: WorkerStrategy) -> impl Iterator<Item = &'static str> + use<> {
        let args = self.args;
        let is_chosen = args.deterministic || args.skip_deterministic || args.quick || args.domains;
        let steps = strategy.deterministic || is_chosen;
        let in_order = strategy.sequential && !strategy.main && !args.sequential;
        [(!steps, "-z"), (in_order, "-Z")].into_iter().filter(|flag| flag.0).map(|flag| flag.1)
    }

    fn variables(&self, number: usize) -> Vec<(OsString, Option<OsString>)> {
        // The fleet sends the joined numbers; workers' numbers would overwrite each other.
        let mut found = vec![("AFL_STATSD".into(), None)];
        let mut set = |name: &str| found.push((name.into(), Some("1".into())));
        if !WorkerStrategy::of(number).trim {
            set("AFL_DISABLE_TRIM");
        }
        // One triage is enough for all workers.
        set("FFUZZ_NO_TRIAGE");
        // All free cores are assigned; the worker would take another one's.
        if number >= self.cores.len() && self.options.target.cpu == CpuChoice::Free {
            set("AFL_NO_AFFINITY");
        }
        let folder = self.tmpdir(number);
        found.extend(folder.map(|folder| ("AFL_TMPDIR".into(), Some(folder.into_os_string()))));
        found
    }

    /// A subfolder per worker, since every worker names its input `.cur_input`.
    fn tmpdir(&self, number: usize) -> Option<PathBuf> {
        let folder = self.options.output.tmpdir.as_ref()?;
        Some(folder.join(format!("ffuzz-{}-{}", std::process::id(), strategy::name(number))))
    }
}

/// Share of worker `number` of `count` in `whole`, at least one.
fn part(whole: u64, number: u64, count: u64) -> u64 {
    (whole / count + u64::from(number < whole % count)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words and variables of each worker, for a line in which IN and OUT stand for folders.
    fn lines(dir: &Path, line: &str, env: &[(&str, &str)], cores: &[usize]) -> Vec<String> {
        let path = |name: &str| dir.join(name).display().to_string();
        let words =
            line.split(' ').map(|w| w.replace("IN", &path("in")).replace("OUT", &path("out")));
        let args = Args::from_words(words.map(OsString::from).collect()).unwrap();
        let count = count(args.workers.as_deref().unwrap()).unwrap();
        let environment = Environment::from_pairs(env);
        let resolved = resolve::resolve(for_main(&args), &environment, Vec::new());
        let (options, _) = resolved.unwrap_or_else(|failure| panic!("{}", failure.cause));
        let inputs = inputs(&options, count).unwrap();
        let program = "ffuzz".into();
        let fleet =
            FleetPlan { program, args: &args, options: &options, inputs, cores: cores.into() };
        let shown = |plan: WorkerPlan| {
            let set = plan.env.iter().filter_map(|(name, value)| {
                Some(format!("{}={}", name.display(), value.as_ref()?.display()))
            });
            let words = plan.argv.iter().map(|word| word.display().to_string());
            let line = set.chain(words).collect::<Vec<_>>().join(" ");
            line.replace(&path("in"), "IN").replace(&path("out"), "OUT")
        };
        fleet.plans().into_iter().map(shown).collect()
    }

    fn seeds() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("in")).unwrap();
        std::fs::write(dir.path().join("in/a"), "x").unwrap();
        dir
    }

    #[test]
    fn workers_differ_and_share_what_has_an_end() {
        let dir = seeds();
        let line = "-dj3 -pi IN -o OUT -E 1000 -V 9 -s 7 -- ./t -j 9";
        let all = lines(dir.path(), line, &[], &[4, 6]);
        assert_eq!(
            all,
            [
                "AFL_DISABLE_TRIM=1 FFUZZ_NO_TRIAGE=1 ffuzz -M main --json --control - -d -p -i IN -o OUT -s 7 -E 334 -b 4 \
                 --schedule explore -- ./t -j 9",
                "FFUZZ_NO_TRIAGE=1 ffuzz -S worker01 --json --control - -d -p -i IN -o OUT -s 8 -E 333 -b 6 --schedule explore \
                 -- ./t -j 9",
                "AFL_DISABLE_TRIM=1 FFUZZ_NO_TRIAGE=1 AFL_NO_AFFINITY=1 ffuzz -S worker02 --json --control - -d -p -i IN -o OUT \
                 -s 9 -E 333 --schedule exploit -- ./t -j 9",
            ]
        );
    }

    #[test]
    fn what_the_user_has_chosen_stays() {
        let dir = seeds();
        let line = "-i IN -o OUT -p rare -Z --json -j 6 ./t";
        let all = lines(dir.path(), line, &[("AFL_NO_AFFINITY", "1")], &[]);
        let quiet = "AFL_DISABLE_TRIM=1 FFUZZ_NO_TRIAGE=1";
        assert_eq!(
            all[0],
            format!("{quiet} ffuzz -M main --json --control - -i IN -o OUT -Z -- ./t")
        );
        assert_eq!(
            all[5],
            format!(
                "{quiet} ffuzz -S worker05 --json --control - -i IN -o OUT --schedule rare -Z -z -- ./t"
            )
        );
        let in_order = lines(dir.path(), "-i IN -o OUT -j 6 ./t", &[("AFL_NO_AFFINITY", "1")], &[]);
        assert!(in_order[4].ends_with("--schedule seek -P exploit -z -- ./t"), "{}", in_order[4]);
        assert!(in_order[5].ends_with("--schedule explore -z -Z -- ./t"), "{}", in_order[5]);
    }

    #[test]
    fn only_the_main_reads_foreign_folders() {
        let dir = seeds();
        let all = lines(dir.path(), "-i IN -F IN -o OUT -j 3 ./t", &[], &[]);
        assert_eq!(all.iter().filter(|line| line.contains("-F IN")).count(), 1, "{all:?}");
    }

    #[test]
    fn clients_are_the_fleets_and_workers_listen_to_it() {
        let dir = seeds();
        let line = "-i IN -o OUT --control ctl --metrics 9000 -j 2 ./t";
        let all = lines(dir.path(), line, &[("AFL_NO_AFFINITY", "1")], &[]);
        let listens = |line: &String| line.contains(" --json --control - -i IN");
        assert!(all.iter().all(listens), "{all:?}");
        assert!(!all.iter().any(|line| line.contains("ctl") || line.contains("9000")), "{all:?}");
    }

    #[test]
    fn bugs_are_reported_by_the_fleet_and_not_by_workers() {
        let dir = seeds();
        let line =
            "-i IN -o OUT --collector=http://h --report-hangs --report-records mem=1 -j 2 ./t";
        let all = lines(dir.path(), line, &[("AFL_NO_AFFINITY", "1")], &[]);
        assert!(!all.iter().any(|line| line.contains("report")), "{all:?}");
    }

    #[test]
    fn one_of_four_is_not_guided_by_domains() {
        let dir = seeds();
        let all =
            lines(dir.path(), "-i IN -o OUT --domains -j 8 ./t", &[("AFL_NO_AFFINITY", "1")], &[]);
        let without = |line: &&String| !line.contains("--domains");
        assert_eq!(all.iter().filter(without).count(), 2);
        assert!(!all.iter().any(|line| line.contains(" -z")), "{all:?}");
    }

    #[test]
    fn an_input_file_in_a_folder_of_the_user_is_each_workers_own() {
        let dir = seeds();
        let folder = dir.path().display().to_string();
        let all = lines(dir.path(), "-i IN -o OUT -j 2 ./t", &[("AFL_TMPDIR", &folder)], &[]);
        let own = |name: &str| format!("AFL_TMPDIR={folder}/ffuzz-{}-{name} ", std::process::id());
        assert!(all[0].contains(&own("main")) && all[1].contains(&own("worker01")), "{all:?}");
    }

    #[test]
    fn a_whole_is_divided_to_the_last() {
        let parts = |whole, count| (0..count).map(|n| part(whole, n, count)).sum::<u64>();
        assert_eq!((parts(1000, 3), parts(7, 7), parts(8, 3)), (1000, 7, 8));
        assert_eq!(parts(1, 3), 3);
    }

    #[test]
    fn auto_is_as_many_as_there_are_cores() {
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(
            (count("auto").ok(), count("0").ok(), count("3").ok()),
            (Some(cores), Some(cores), Some(3))
        );
        for text in ["-1", "x", "", "1025"] {
            assert_eq!(count(text).err().unwrap().code, 2, "{text}");
        }
    }
}
