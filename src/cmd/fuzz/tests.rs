//! The table of option letters as tests.

use super::*;
use crate::config::options::{
    CpuChoice, DeterministicStage, DomainMode, Input, Logger, RunMode, Schedule, StatsdTags,
    Strategy, TimeoutSpec, UiMode, Wanted,
};
use std::path::Path;
use std::time::Duration;

/// A folder with seeds (`in/a`), a dictionary (`d`) and an empty `out`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("folder");
        std::fs::create_dir(dir.path().join("in")).expect("in");
        std::fs::write(dir.path().join("in/a"), "x").expect("seed");
        std::fs::write(dir.path().join("d"), "\"x\"").expect("dictionary");
        Self(dir)
    }

    /// Resolves a line in which `IN`, `OUT` and `DICT` stand for the paths.
    fn with_env(
        &self,
        line: &str,
        env: &[(&str, &str)],
    ) -> Result<(Options, Vec<String>), Failure> {
        let path = |name: &str| self.0.path().join(name).display().to_string();
        let words = line.split_whitespace().map(|word| {
            word.replace("IN", &path("in")).replace("OUT", &path("out")).replace("DICT", &path("d"))
        });
        let args = Args::from_words(words.map(OsString::from).collect())?;
        resolve::resolve(args, &Environment::from_pairs(env), vec!["ffuzz".into()])
    }

    fn run(&self, line: &str) -> Result<Options, Failure> {
        self.with_env(line, &[]).map(|(options, _)| options)
    }

    /// Resolves options after `-i IN -o OUT`.
    fn good(&self, line: &str) -> Options {
        self.run(&format!("-i IN -o OUT {line}")).unwrap_or_else(|f| panic!("{line}: {}", f.cause))
    }

    fn bad(&self, line: &str) -> Failure {
        match self.run(line) {
            Ok(_) => panic!("{line} was accepted"),
            Err(failure) => failure,
        }
    }
}

#[test]
fn p_is_a_flag_unless_a_schedule_and_a_target_follow() {
    let place = Place::new();
    let table: &[(&str, DomainMode, Schedule, &[&str])] = &[
        ("-p ./t", DomainMode::Guide, Schedule::Explore, &["./t"]),
        ("-p fast ./t @@", DomainMode::Off, Schedule::Fast, &["./t", "@@"]),
        ("-p fast -t 50 ./t", DomainMode::Off, Schedule::Fast, &["./t"]),
        ("-p fast -- ./t", DomainMode::Off, Schedule::Fast, &["./t"]),
        ("-p fast", DomainMode::Guide, Schedule::Explore, &["fast"]),
        ("-p fast --", DomainMode::Guide, Schedule::Explore, &["fast", "--"]),
        ("-p ./fast", DomainMode::Guide, Schedule::Explore, &["./fast"]),
        ("-p ./fast rare", DomainMode::Guide, Schedule::Explore, &["./fast", "rare"]),
        ("-p -- fast x", DomainMode::Guide, Schedule::Explore, &["fast", "x"]),
        ("-p faster x", DomainMode::Guide, Schedule::Explore, &["faster", "x"]),
        ("-pexploit ./t", DomainMode::Off, Schedule::Exploit, &["./t"]),
        ("-dp quad ./t", DomainMode::Off, Schedule::Quad, &["./t"]),
        ("-pd ./t", DomainMode::Guide, Schedule::Explore, &["./t"]),
        ("--domains --schedule coe ./t", DomainMode::Guide, Schedule::Coe, &["./t"]),
        ("-p -p lin ./t", DomainMode::Guide, Schedule::Lin, &["./t"]),
        ("--dsf-record ./t", DomainMode::Record, Schedule::Explore, &["./t"]),
    ];
    for (line, domains, schedule, command) in table {
        let options = place.good(line);
        assert_eq!((options.domains, options.schedule), (*domains, *schedule), "{line}");
        assert_eq!(options.target.command, *command, "{line}");
    }
    for name in Schedule::ALL.map(Schedule::name) {
        place.good(&format!("-p {name} ./t"));
    }
    assert!(place.bad("-i IN -o OUT --schedule slow ./t").cause.contains("slow"));
    assert_eq!(place.bad("-i IN -o OUT -p --dsf-record ./t").code, 2);
}

#[test]
fn an_afl_command_line_works() {
    let place = Place::new();
    let line = "-i IN -o OUT -m none -t 1000+ -x DICT -M main01 -p fast -a text -P explore -Z \
                -D -- ./t -x @@ --";
    let options = place.run(line).unwrap_or_else(|f| panic!("{}", f.cause));
    assert_eq!(options.target.command, ["./t", "-x", "@@", "--"]);
    assert_eq!(options.target.timeout, TimeoutSpec::Upto(Duration::from_secs(1)));
    assert_eq!((options.output.instance.as_str(), options.output.main_node), ("main01", true));
    assert!(!options.output.links);
    assert!(options.mutation.sequential && options.mutation.skip_trim);
    assert_eq!(options.mutation.dictionaries.len(), 1);
}

#[test]
fn target_letters() {
    let place = Place::new();
    let o = place.good("-t 50 -m 50 -f in.txt -e .png -N -n -b 1 ./t -t 3");
    assert_eq!(o.target.timeout, TimeoutSpec::Fixed(Duration::from_millis(50)));
    assert_eq!(o.target.memory_limit, Some(50 << 20));
    assert!(o.target.file.is_some_and(|f| f.is_absolute() && f.ends_with("in.txt")));
    assert_eq!(o.output.extension.as_deref(), Some("png"));
    assert!(o.target.keep_input_file && o.target.non_instrumented);
    assert_eq!(o.target.cpu, CpuChoice::Fixed(1));
    assert_eq!(o.target.command, ["./t", "-t", "3"]);
    assert_eq!(o.target.fork_server_kill_signal, libc::SIGTERM);
}

#[test]
fn search_and_stop_letters() {
    let place = Place::new();
    let o = place.good("-xDICT@3 -x DICT -g 4 -G 9 -s 7 -V 10 -E 2000 -T - -I -x -C -z ./t");
    let levels: Vec<u32> = o.mutation.dictionaries.iter().map(|d| d.1).collect();
    assert_eq!(levels, [3, 0]);
    assert_eq!((o.mutation.min_len, o.mutation.max_len), (4, 9));
    assert_eq!((o.rng_seed, o.limits.execs), (Some(7), Some(2000)));
    assert_eq!(o.limits.time, Some(Duration::from_secs(10)));
    assert_eq!((o.banner.as_str(), o.crash_command), ("-", Some("-x".into())));
    assert_eq!(o.seeds.wanted, Wanted::Crashing);
    assert_eq!(o.mutation.deterministic, DeterministicStage::Skipped);
    assert_eq!(o.target.run_mode, RunMode::Fork);
    let stage = |line| place.good(line).mutation.deterministic;
    assert_eq!(stage("-d ./t"), DeterministicStage::Skipped);
    assert_eq!(stage("-D ./t"), DeterministicStage::Always);
    assert_eq!(stage("-d -D ./t"), DeterministicStage::Always);
    assert_eq!(stage("./t"), DeterministicStage::Competes);
    assert!(place.good("-S b ./t").output.instance == "b");
    let (_, warnings) = place.with_env("-i IN -o OUT -L 0 ./t", &[]).unwrap_or_else(|f| {
        panic!("{}", f.cause);
    });
    assert_eq!(warnings, ["-L (MOpt) has no effect"]);
    assert!(place.good("-c 0 ./t").mutation.solves_comparisons);
    assert!(!place.good("-c - ./t").mutation.solves_comparisons);
    for (line, count) in [("-l 2AT ./t", 0), ("-l 3axs -c - ./t", 0), ("-l 2R ./t", 1)] {
        let (_, warnings) = place.with_env(&format!("-i IN -o OUT {line}"), &[]).unwrap();
        assert_eq!(warnings.len(), count, "{line}: {warnings:?}");
    }
    let program = std::env::current_exe().unwrap();
    let logger = |given: &str| place.good(&format!("-c {given} ./t")).logger;
    assert_eq!((logger("-"), logger("0")), (Logger::TargetIfAble, Logger::Target));
    assert_eq!(logger(program.to_str().unwrap()), Logger::Build(program.clone()));
}

#[test]
fn kinds_of_input_and_strategies() {
    let place = Place::new();
    for (line, text) in [
        ("-a text ./t", Some(true)),
        ("-a binary ./t", Some(false)),
        ("-a default ./t", None),
        ("./t", None),
    ] {
        assert_eq!(place.good(line).mutation.text, text, "{line}");
    }
    let after = |seconds| Strategy::Alternate(Duration::from_secs(seconds));
    for (line, strategy) in [
        ("-P explore ./t", Strategy::Explore),
        ("-P exploit ./t", Strategy::Exploit),
        ("-P 0 ./t", after(0)),
        ("-P 900 ./t", after(900)),
        ("./t", Strategy::Explore),
    ] {
        assert_eq!(place.good(line).mutation.strategy, strategy, "{line}");
    }
    assert!(place.bad("-i IN -o OUT -P often ./t").cause.contains("explore, exploit"));
}

#[test]
fn variables_about_findings_and_servers() {
    let place = Place::new();
    let with = |env| place.with_env("-i IN -o OUT ./t", env).map(|(options, _)| options);
    let good = |env| with(env).unwrap_or_else(|failure| panic!("{}", failure.cause));
    assert!(good(&[]).statsd.is_none());
    let o = good(&[("AFL_IGNORE_TIMEOUTS", "1"), ("AFL_PERSISTENT_RECORD", "20")]);
    assert_eq!((o.findings.ignore_timeouts, o.findings.record), (true, 20));
    assert_eq!(good(&[("AFL_KEEP_TIMEOUTS", "1")]).seeds.wanted, Wanted::GoodOrSlow);
    let o = good(&[("AFL_CRASH_TRACES", "1"), ("AFL_NO_STARTUP_CALIBRATION", "1")]);
    assert!(o.findings.traces && o.calibration.skip_at_start);
    assert!(good(&[("AFL_EXPAND_HAVOC_NOW", "1")]).mutation.expand_havoc);
    let statsd = good(&[("AFL_STATSD", "1")]).statsd.unwrap();
    assert_eq!(
        (statsd.host.as_str(), statsd.port, statsd.tags),
        ("127.0.0.1", 8125, StatsdTags::None)
    );
    let env = [
        ("AFL_STATSD", "1"),
        ("AFL_STATSD_HOST", "stats"),
        ("AFL_STATSD_PORT", "9"),
        ("AFL_STATSD_TAGS_FLAVOR", "librato"),
    ];
    let statsd = good(&env).statsd.unwrap();
    assert_eq!((statsd.host.as_str(), statsd.port, statsd.tags), ("stats", 9, StatsdTags::Librato));
    for bad in
        [("AFL_STATSD_PORT", "0"), ("AFL_STATSD_TAGS_FLAVOR", "x"), ("AFL_PERSISTENT_RECORD", "x")]
    {
        let env = [("AFL_STATSD", "1"), bad];
        assert!(place.with_env("-i IN -o OUT ./t", &env).is_err(), "{bad:?}");
    }
}

#[test]
fn letters_of_the_ancestors_get_a_hint() {
    let place = Place::new();
    let table = [
        ("-N 100 ./t", "-G 100"),
        ("-N100 ./t", "-G 100"),
        ("-n 5 ./t", "-E 5"),
        ("-a ./t", "--dsf-record"),
    ];
    for (line, hint) in table {
        let failure = place.bad(&format!("-i IN -o OUT {line}"));
        assert!(failure.remedy.contains(hint), "{line}: {}", failure.remedy);
        assert_eq!(failure.code, 2);
    }
}

#[test]
fn what_is_not_built_is_refused_in_one_line() {
    let place = Place::new();
    let not_yet = ["-B file", "-r"];
    for option in not_yet {
        let failure = place.bad(&format!("-i IN -o OUT {option} ./t"));
        assert!(failure.cause.ends_with("is not supported yet"), "{option}: {}", failure.cause);
        assert_eq!(failure.code, 2, "{option}");
    }
    for option in ["-O", "-U", "-W", "-X", "-Y", "-A", "-R", "-k"] {
        let failure = place.bad(&format!("-i IN -o OUT {option} ./t"));
        assert!(failure.cause.ends_with("is not supported"), "{option}: {}", failure.cause);
    }
    place.good("-c - ./t");
    place.good("-u ./t");
}

#[test]
fn wrong_usage_names_cause_and_remedy() {
    let place = Place::new();
    let usage = [
        ("-o OUT ./t", "no seed folder given"),
        ("-i IN ./t", "no output folder given"),
        ("-i IN -o OUT", "no target given"),
        ("-i IN -o OUT --", "no target given"),
        ("-i IN -o IN ./t", "-i and -o name the same folder"),
        ("-i IN -o OUT -t 4 ./t", "-t 4 is not a number from 5 to 4294967295"),
        ("-i IN -o OUT -t x ./t", "-t x is not a number from 5 to 4294967295"),
        ("-i IN -o OUT -m 1 ./t", "-m 1 is not none, or a size"),
        ("-i IN -o OUT -g 9 -G 4 ./t", "the smallest input (9) is larger than the largest (4)"),
        ("-i IN -o OUT -G 1048577 ./t", "-G 1048577 is not a number from 1 to 1048576"),
        ("-i IN -o OUT -V 0 ./t", "-V 0 is not a number"),
        ("-i IN -o OUT -s -1 ./t", "unexpected argument"),
        ("-i IN -o OUT -M a -S b ./t", "-M and -S exclude each other"),
        ("-i IN -o OUT -M a -p rare ./t", "a main instance (-M) supports only the schedules"),
        ("-i IN -o OUT -S a/b ./t", "-S a/b is not a name"),
        ("-i IN -o OUT --foo ./t", "unexpected argument '--foo' found"),
        ("-i IN -i IN -o OUT ./t", "the argument '-i <SEEDS>' cannot be used multiple times"),
        ("-i", "a value is required for '-i <SEEDS>'"),
    ];
    for (line, cause) in usage {
        let failure = place.bad(line);
        assert!(failure.cause.starts_with(cause), "{line}: {}", failure.cause);
        assert!(failure.code == 2 && !failure.remedy.is_empty(), "{line}");
        assert!(!failure.cause.contains('\n'), "{line}");
    }
}

#[test]
fn seed_folders_are_looked_into() {
    let place = Place::new();
    let root = place.0.path();
    std::fs::create_dir_all(root.join("empty/sub")).expect("folder");
    std::fs::write(root.join("empty/sub/zero"), "").expect("file");
    std::fs::write(root.join("empty/README.txt"), "x").expect("file");
    let line = |name: &str| format!("-i {} -o OUT ./t", root.join(name).display());
    let empty = place.bad(&line("empty"));
    assert!(empty.cause.ends_with("holds no seed") && empty.code == 1, "{}", empty.cause);
    let missing = place.bad(&line("missing"));
    assert!(missing.cause.contains("No such file") && missing.code == 1, "{}", missing.cause);
    std::fs::write(root.join("empty/sub/zero"), "x").expect("file");
    assert!(place.run(&line("empty")).is_ok());
    std::fs::create_dir_all(root.join("old/queue")).expect("folder");
    std::fs::write(root.join("old/queue/id:000000,orig:a"), "x").expect("file");
    let options = place.run(&line("old")).unwrap_or_else(|f| panic!("{}", f.cause));
    assert_eq!(options.input, Input::Directory(root.join("old/queue")));
}

#[test]
fn resume_is_asked_for_or_automatic() {
    let place = Place::new();
    let resumed = |options: &Options| options.input == Input::Resume;
    assert!(place.run("-i - -o OUT ./t").is_ok_and(|o| resumed(&o)));
    let auto = [("AFL_AUTORESUME", "1")];
    let run = |line: &str| place.with_env(line, &auto).map(|(options, _)| resumed(&options)).ok();
    assert_eq!(run("-i IN -o OUT ./t"), Some(false));
    let queue = place.0.path().join("out/default/queue");
    std::fs::create_dir_all(&queue).expect("queue");
    std::fs::write(queue.join("id:000000,orig:a"), "x").expect("entry");
    assert_eq!(run("-i IN -o OUT ./t"), Some(true));
    assert_eq!(run("-o OUT ./t"), Some(true));
    assert_eq!(run("-i IN -o OUT -S b ./t"), Some(false));
}

#[test]
fn variables_reach_the_options() {
    let place = Place::new();
    let env = [
        ("AFL_KILL_SIGNAL", "6"),
        ("AFL_CRASH_EXITCODE", "-1"),
        ("AFL_PRELOAD", "a.so"),
        ("AFL_TARGET_ENV", "A='1 2'"),
        ("AFL_NO_AFFINITY", "1"),
        ("AFL_MAPSIZE", "1000"),
        ("AFL_NO_UI", "1"),
        ("AFL_INPUT_LEN_MAX", "77"),
        ("AFL_HANG_TMOUT", "300"),
        ("AFL_SYNC_TIME", "3"),
        ("AFL_FINAL_SYNC", "1"),
        ("AFL_DISABLE_REDUNDANT", "1"),
    ];
    let (o, warnings) = match place.with_env("-i IN -o OUT ./t", &env) {
        Ok(resolved) => resolved,
        Err(failure) => panic!("{}", failure.cause),
    };
    assert_eq!((o.target.kill_signal, o.target.fork_server_kill_signal), (6, 6));
    assert_eq!((o.target.crash_exit_code, o.target.map_size), (Some(255), Some(1000)));
    assert!(o.target.extra_env.contains(&("LD_PRELOAD".into(), "a.so".into())));
    assert_eq!(o.target.extra_env.last(), Some(&("A".into(), "1 2".into())));
    assert_eq!((o.target.cpu, o.ui, o.mutation.max_len), (CpuChoice::None, UiMode::Lines, 77));
    assert_eq!(o.target.hang_timeout, Some(Duration::from_millis(300)));
    assert!(o.output.environment.contains(&("AFL_NO_UI".into(), "1".into())));
    assert_eq!((o.sync.relist, o.sync.last), (Duration::from_secs(180), true));
    assert!(warnings[0].starts_with("AFL_DISABLE_REDUNDANT is ignored"), "{warnings:?}");
}

#[test]
fn variables_that_cannot_be_used_are_named() {
    let place = Place::new();
    let table: &[&[(&str, &str)]] = &[
        &[("AFL_LD_PRELOAD", "x")],
        &[("AFL_POST_LIBRARY", "x")],
        &[("AFL_HANG_TMOUT", "soon")],
        &[("AFL_CRASH_EXITCODE", "0")],
        &[("AFL_TMPDIR", "/nowhere/at/all")],
        &[("AFL_TARGET_ENV", "x")],
        &[("AFL_NO_UI", "1"), ("AFL_FORCE_UI", "1")],
        &[("ASAN_OPTIONS", "detect_leaks=1")],
    ];
    for env in table {
        match place.with_env("-i IN -o OUT ./t", env) {
            Ok(_) => panic!("{env:?} was accepted"),
            Err(failure) => assert!(failure.cause.contains(env[0].0), "{}", failure.cause),
        }
    }
}

#[test]
fn help_and_version_need_nothing_else() {
    let text = |line: &str| {
        let words = line.split_whitespace().map(OsString::from).collect();
        Args::from_words(words).ok().and_then(|args| information(&args)).expect("text")
    };
    assert_eq!(text("--version"), format!("ffuzz {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(text("-h"), text("--help"));
    assert!(text("-hh").contains("AFL_AUTORESUME"));
    insta::assert_snapshot!("help", args::help(Some(100)));
}

#[test]
fn every_letter_of_the_help_is_listed_once() {
    use clap::CommandFactory;
    Args::command().debug_assert();
    let letters: String = "iopamtfxsVEMSGnNdDbcCeFgIlLPQTZzBOUWXYARjwkruh".into();
    for arg in Args::command().get_arguments() {
        assert!(arg.get_short().is_none_or(|letter| letters.contains(letter)), "{arg}");
    }
    assert!(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/env.md")).exists());
}
