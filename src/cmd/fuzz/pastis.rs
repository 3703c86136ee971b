//! `--pastis HOST:PORT`: combines the user's options and a broker's order into the fuzzer's command line.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::args::Args;
use super::handed::{self, OptionRow, Pastis};
use super::{resolve, this_program, values, words};
use crate::cmd::exit::Failure;
use crate::config::env::{Environment, placeholder_in};
use crate::exec::net::StandInError;
use crate::fleet::pastis::{self, Level, PastisOptions, StartOrder};
use crate::fleet::workers::{WorkerPlan, strategy};

/// Output folder without `-o`.
const OUTPUT: &str = "ffuzz-pastis";
const NET: &str = "--net";

pub(super) fn run(
    address: &str,
    args: &Args,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    check(address, args)?;
    let root = values::absolute(args.output.as_deref().unwrap_or(OUTPUT.as_ref()))?;
    let defaults = Defaults {
        program: this_program(),
        options: args.given.clone(),
        input: args.input.as_deref().map(values::absolute).transpose()?,
        workers: args.workers.clone().unwrap_or_else(|| "auto".into()),
        target_env: environment.get("AFL_TARGET_ENV").map(OsString::from),
    };
    let quiet = environment.flag(&["AFL_QUIET"]);
    let options = PastisOptions {
        address: address.to_owned(),
        root,
        plan: Box::new(move |order, seeds, socket| defaults.plan(order, seeds, socket)),
        say: Box::new(move |level, text| say(quiet, level, text)),
    };
    let result = pastis::run(options);
    result.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::of(&error))
}

/// Prints a message. Ignores a closed pipe.
fn say(quiet: bool, level: Level, text: &str) {
    let kind = match level {
        Level::Warning => "warning: ",
        Level::Error | Level::Critical => "error: ",
        Level::Debug => return,
        _ if quiet => return,
        _ => "",
    };
    let _ = writeln!(std::io::stderr().lock(), "ffuzz: {kind}{text}");
}

fn check(address: &str, args: &Args) -> Result<(), Failure> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    if port.is_none_or(|(_, port)| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err(values::bad("--pastis", address, "HOST:PORT, for example localhost:5555"));
    }
    if !args.command.is_empty() {
        return Err(Failure::usage(
            "with --pastis the broker names the target",
            "leave the target out; it belongs into the broker's bins folder",
        ));
    }
    let program = args.cmplog.as_deref().filter(|given| *given != "-" && *given != "0");
    if let Some(program) = program {
        let cause = "it is a build of one target, and the broker sends the targets";
        let name = format!("-c {}", program.display());
        return Err(Failure::usage(format!("--pastis excludes {name}: {cause}"), "leave it out"));
    }
    if let Some((name, why)) = refused(&args.given) {
        let cause = format!("--pastis excludes {name}: {why}");
        return Err(Failure::usage(cause, format!("leave out {name}")));
    }
    // The domains that `--answers` needs may be the broker's.
    if let Some(net) = &args.net {
        values::net(net, args.answers.as_deref())?;
    }
    args.split.as_deref().map_or(Ok(()), |text| values::separator(text).map(drop))
}

fn refused(options: &[Vec<OsString>]) -> Option<(&'static str, &'static str)> {
    options.iter().filter_map(|option| handed::row_of(option)).find_map(|row| match row.pastis {
        Pastis::Refused(why) => Some((row.name(), why)),
        _ => None,
    })
}

/// Returns true if the user's option goes to a fuzzer with these engine options.
fn is_kept(option: &[OsString], engine: &[Vec<OsString>]) -> bool {
    let Some(row) = handed::row_of(option) else { return true };
    match row.pastis {
        Pastis::Own | Pastis::Refused(_) => false,
        Pastis::GetsBoth => true,
        Pastis::Gets => {
            let theirs = |other: &OptionRow| other.name() == row.name();
            !engine.iter().filter_map(|option| handed::row_of(option)).any(theirs)
        }
    }
}

/// Rejects a socket that the fuzzer would reject at each start.
fn check_socket(options: &[OsString], target: &[OsString]) -> Result<(), String> {
    let cause = |failure: Failure| failure.cause;
    let args = Args::from_words(options.to_vec()).map_err(cause)?;
    if resolve::net(&args).map_err(cause)?.is_none() {
        return Ok(());
    }
    if target.iter().any(|word| placeholder_in(word).is_some()) {
        return Err(StandInError::File.to_string());
    }
    args.split.as_deref().map_or(Ok(()), |text| values::separator(text).map(drop)).map_err(cause)
}

/// The user's settings.
struct Defaults {
    program: PathBuf,
    options: Vec<Vec<OsString>>,
    input: Option<PathBuf>,
    workers: String,
    target_env: Option<OsString>,
}

impl Defaults {
    fn plan(&self, order: &StartOrder, seeds: &Path, socket: &Path) -> Result<WorkerPlan, String> {
        let engine = self.engine_options(&order.engine_args)?;
        let mut argv: Vec<OsString> = vec![self.program.clone().into()];
        argv.extend(["-j", &self.workers, "--json", "--control"].map(OsString::from));
        argv.extend([socket.into(), "-o".into(), order.output().into_os_string()]);
        argv.extend(["-i".into(), self.input.as_deref().unwrap_or(seeds).into()]);
        if let Some(dictionary) = &order.dictionary {
            argv.extend(["-x".into(), dictionary.into()]);
        }
        let kept = self.options.iter().filter(|option| is_kept(option, &engine));
        let mut all: Vec<Vec<OsString>> = kept.chain(&engine).cloned().collect();
        let mut add = |names: &[&str], option: &[&str]| {
            if !all.iter().any(|known| names.contains(&words::name(known).as_str())) {
                all.push(option.iter().map(OsString::from).collect());
            }
        };
        if !order.domains.is_empty() {
            add(&["-p", "--domains", "--dsf-record"], &["-p"]);
        }
        if order.native {
            add(&["-Q"], &["-Q"]);
        } else if order.single {
            add(&["--run-mode"], &["--run-mode", "fork"]);
        }
        let all: Vec<OsString> = all.into_iter().flatten().collect();
        check_socket(&all, &order.argv)?;
        argv.extend(all);
        argv.extend(["--".into(), order.program.clone().into()]);
        argv.extend(order.argv.iter().cloned());
        Ok(WorkerPlan {
            name: strategy::name(0),
            argv,
            env: self.variables(order)?,
            tmpdir: None,
            takes_commands: false,
        })
    }

    /// Options of the broker's engine; they override the user's.
    fn engine_options(&self, text: &str) -> Result<Vec<Vec<OsString>>, String> {
        let Some(words) = values::shell_words(text) else {
            return Err("a quote is not closed".into());
        };
        // The broker's `--split` and `--answers` may belong to the user's `--net`.
        let has_socket = words.iter().any(|word| word.split('=').next() == Some(NET));
        let socket = self.options.iter().find(|option| words::name(option) == NET && !has_socket);
        let words = words.into_iter().map(OsString::from);
        let words = socket.into_iter().flatten().cloned().chain(words).collect();
        let mut args = Args::from_words(words).map_err(|failure| failure.cause)?;
        args.given.retain(|option| has_socket || words::name(option) != NET);
        if let Some(word) = args.command.first() {
            return Err(format!("{word:?} is no option"));
        }
        if let Some((name, why)) = refused(&args.given) {
            return Err(format!("{name}: {why}"));
        }
        let mut rows = args.given.iter().filter_map(|option| handed::row_of(option));
        match rows.find(|row| row.pastis == Pastis::Own) {
            Some(row) => Err(format!("{} is not the broker's to set", row.name())),
            None => Ok(args.given),
        }
    }

    /// Passes variables of the fuzzer and of sanitizers to the fuzzer, and all others to the target.
    fn variables(&self, order: &StartOrder) -> Result<Vec<(OsString, Option<OsString>)>, String> {
        // Resume the target's folder; the broker's crashing seeds count as crashes.
        let always = ["AFL_AUTORESUME", "AFL_CRASHING_SEEDS_AS_NEW_CRASH"];
        let mut env: Vec<(OsString, Option<OsString>)> =
            always.map(|name| (name.into(), Some("1".into()))).into();
        let mut target: Vec<String> =
            self.target_env.iter().map(|text| text.to_string_lossy().into_owned()).collect();
        for text in &order.environment {
            let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(format!("{text:?} is no NAME=VALUE"));
            };
            let known = ["AFL_", "FFUZZ_"].iter().any(|prefix| name.starts_with(prefix));
            if known || name.ends_with("SAN_OPTIONS") {
                env.push((name.into(), Some(value.into())));
            } else {
                target.push(format!("{name}='{}'", value.replace('\'', "'\\''")));
            }
        }
        if order.native && !order.domains.is_empty() {
            env.push(("WAYPOINTS".into(), Some(order.domains.join(",").into())));
        }
        if !target.is_empty() {
            env.push(("AFL_TARGET_ENV".into(), Some(target.join(" ").into())));
        }
        Ok(env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> StartOrder {
        StartOrder {
            name: "t-1".into(),
            folder: "/r/t-1".into(),
            engine: "FFUZZ".into(),
            program: "/r/t-1/package/t".into(),
            argv: vec!["@@".into()],
            dictionary: None,
            domains: vec![],
            single: false,
            native: false,
            engine_args: String::new(),
            environment: vec![],
            report: None,
            notes: vec![],
        }
    }

    fn plan(line: &str, change: impl FnOnce(&mut StartOrder)) -> Result<String, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        let args = Args::from_words(words).unwrap();
        let defaults = Defaults {
            program: "ffuzz".into(),
            options: args.given,
            input: None,
            workers: "3".into(),
            target_env: None,
        };
        let mut order = order();
        change(&mut order);
        let plan = defaults.plan(&order, Path::new("IN"), Path::new("SOCK"))?;
        let env = plan.env.iter().skip(2).filter_map(|(name, value)| {
            Some(format!("{}={}", name.display(), value.as_ref()?.display()))
        });
        let words = plan.argv.iter().map(|word| word.display().to_string());
        Ok(env.chain(words).collect::<Vec<_>>().join(" "))
    }

    const HEAD: &str = "ffuzz -j 3 --json --control SOCK -o /r/t-1/out -i IN";

    #[test]
    fn the_users_options_are_defaults() {
        let line = "--pastis h:1 -o x -t 100 -x d --json";
        assert_eq!(
            plan(line, |_| {}).unwrap(),
            format!("{HEAD} -t 100 -x d -- /r/t-1/package/t @@")
        );
        let all = |order: &mut StartOrder| {
            order.engine_args = "-t 50 -p".into();
            order.dictionary = Some("/r/t.dict".into());
            (order.domains, order.single) = (vec!["cmp".into()], true);
        };
        assert_eq!(
            plan(line, all).unwrap(),
            format!("{HEAD} -x /r/t.dict -x d -t 50 -p --run-mode fork -- /r/t-1/package/t @@")
        );
        let twice = |order: &mut StartOrder| order.engine_args = "--domains".into();
        assert_eq!(plan("-p", twice).unwrap(), format!("{HEAD} --domains -- /r/t-1/package/t @@"));
        let heap = |order: &mut StartOrder| order.domains = vec!["heap".into()];
        let guided = plan("--dsf-record", heap).unwrap();
        assert!(!guided.contains("-p"), "{guided}");
        let native = |order: &mut StartOrder| (heap(order), order.native = true).0;
        assert_eq!(
            plan("", native).unwrap(),
            format!("WAYPOINTS=heap {HEAD} -p -Q -- /r/t-1/package/t @@")
        );
    }

    #[test]
    fn a_socket_is_handed_on_from_both_sides() {
        let engine = |text: &'static str| {
            move |order: &mut StartOrder| {
                (order.engine_args, order.argv) = (text.into(), vec!["serve".into()]);
            }
        };
        for (user, broker, options) in [
            ("--net tcp:80 --split ;", "", "--net tcp:80 --split ;"),
            ("", "--net tcp:80 --split ';'", "--net tcp:80 --split ;"),
            ("--net tcp:80", "--split ';'", "--net tcp:80 --split ;"),
            ("--net tcp:80 --split ;", "--net udp:53", "--split ; --net udp:53"),
            ("--net tcp:80 -p", "--answers a", "--net tcp:80 -p --answers a"),
            ("--net=tcp:80", "-t 9", "--net=tcp:80 -t 9"),
        ] {
            let expected = format!("{HEAD} {options} -- /r/t-1/package/t serve");
            assert_eq!(plan(user, engine(broker)).unwrap(), expected);
        }
        for (user, broker, cause) in [
            ("", "--net x", "--net x: \"x\" names no socket"),
            ("", "--split ';'", "--net"),
            ("--net tcp:80", "--answers a", "--answers names a domain"),
            ("--net tcp:80", "--record f", "--record: it makes a seed and ends"),
        ] {
            let shown = plan(user, engine(broker)).unwrap_err();
            assert!(shown.contains(cause), "{broker}: {shown}");
        }
        let shown = plan("--net tcp:80", |_| {}).unwrap_err();
        assert!(shown.contains("gives inputs to a socket"), "{shown}");
    }

    #[test]
    fn variables_go_where_they_are_understood() {
        let change = |order: &mut StartOrder| {
            order.environment = ["A=x y", "Q=it's", "AFL_DISABLE_TRIM=1", "ASAN_OPTIONS=a=1"]
                .map(Into::into)
                .into();
        };
        let line = plan("", change).unwrap();
        let expected = "AFL_DISABLE_TRIM=1 ASAN_OPTIONS=a=1 AFL_TARGET_ENV=A='x y' Q='it'\\''s' ";
        assert!(line.starts_with(expected), "{line}");
        let text = expected.split_once("TARGET_ENV=").unwrap().1;
        let read = values::assignments(text).unwrap();
        assert_eq!(read, [("A".into(), "x y".into()), ("Q".into(), "it's".into())]);
        assert!(plan("", |order| order.environment = vec!["=x".into()]).is_err());
    }

    #[test]
    fn wrong_arguments_of_the_engine_are_refused() {
        for (text, cause) in [
            ("-t '5", "quote"),
            ("word", "no option"),
            ("-o /tmp", "not the broker's"),
            ("--pastis h:1", "not the broker's"),
            ("-M a", "names the workers"),
            ("--no-such", "--no-such"),
        ] {
            let cause_shown = plan("", |order| order.engine_args = text.into()).unwrap_err();
            assert!(cause_shown.contains(cause), "{text}: {cause_shown}");
        }
    }
}
