//! Which of the user's options other processes get: the workers of `-j`, the triage of a campaign, the fuzzer of a
//! PASTIS session, and the command line that resumes a campaign.
//!
//! All these command lines are generated from this table, which has one row per option. A test compares it with
//! [`super::args::Args`]. Unsupported options ([`super::args::Unsupported`]) have no row.

use std::ffi::OsString;

use super::args::Args;
use super::words;
use crate::config::options::{OutputOptions, TargetOptions};

/// An option and its recipients.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionRow {
    /// All spellings.
    names: &'static [&'static str],
    pub(super) workers: Workers,
    triage: Triage,
    pub(super) pastis: Pastis,
    resume: Resume,
    /// True if the jobs of a list may use it.
    jobs: bool,
}

/// How the workers of `-j` get an option.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Workers {
    Get,
    /// Omitted: the fleet uses it itself or sets it per worker.
    Without,
    /// Incompatible with `-j`.
    Refused(&'static Exclusion),
    /// Incompatible with several workers; a single one gets it.
    OnlyOne(&'static Exclusion),
    /// As [`Self::OnlyOne`], but the single worker gets a value of the fleet's.
    OnlyOneOwn(&'static Exclusion),
    /// For workers that start with the user's seeds.
    NewOnes,
    /// For workers guided by domains.
    GuidedOnes,
    /// For the main only; the others get its results from there.
    Main,
    /// For the secondaries, and for the main if the schedule suits a main.
    ThoseItSuits,
}

/// The reason why several workers cannot have an option.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Exclusion {
    pub(super) cause: &'static str,
    pub(super) remedy: &'static str,
}

const NAMED: Exclusion = Exclusion {
    cause: "-j names its workers itself, so it excludes -M and -S",
    remedy: "leave out -M and -S, or start each instance by hand without -j",
};
const ONE_SEQUENCE: Exclusion = Exclusion {
    cause: "--mutator-only is one sequence of inputs, which -j cannot divide",
    remedy: "leave out -j",
};
const ONE_CORE: Exclusion = Exclusion {
    cause: "-b names one core, and -j gives each worker its own",
    remedy: "leave out -b; taskset -c says which cores are used",
};
const ONE_FILE: Exclusion = Exclusion {
    cause: "-f names one file, which the workers of -j would all write",
    remedy: "write @@ for the file in the target's arguments; -e sets its extension",
};

/// How the triage of the campaign gets an option, based on the checked options.
#[derive(Clone, Copy, Debug)]
enum Triage {
    Without,
    /// The option's name and this value, if there is one.
    Value(fn(&HandedOptions<'_>) -> Option<OsString>),
    /// This word, if there is one.
    Word(fn(&HandedOptions<'_>) -> Option<OsString>),
}

/// How the fuzzer of a PASTIS session gets an option (`-j`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pastis {
    /// The broker's value, or the user's without one.
    Gets,
    /// Both the user's and the broker's values.
    GetsBoth,
    /// The session sets it; the broker must not.
    Own,
    /// Neither the user nor the broker may set it, for this reason.
    Refused(&'static str),
}

/// Whether the command line that resumes a campaign has an option.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Resume {
    Gets,
    /// Only valid for this start. For example `-E` counts all runs of a campaign, so a resumed one would end at once.
    Without,
}

/// Inputs for the triage's options.
#[derive(Debug)]
pub(super) struct HandedOptions<'a> {
    pub(super) args: &'a Args,
    pub(super) output: &'a OutputOptions,
    pub(super) target: &'a TargetOptions,
    /// Value of `--collector`, or implied by FuzzManager's files.
    pub(super) collector: Option<OsString>,
}

const fn row(names: &'static [&'static str], workers: Workers, pastis: Pastis) -> OptionRow {
    OptionRow { names, workers, triage: Triage::Without, pastis, resume: Resume::Gets, jobs: true }
}

/// A row whose option the triage gets, too.
const fn too(
    names: &'static [&'static str],
    workers: Workers,
    pastis: Pastis,
    triage: Triage,
) -> OptionRow {
    OptionRow { names, workers, triage, pastis, resume: Resume::Gets, jobs: true }
}

/// Excludes the option from the command line that resumes a campaign.
const fn once(row: OptionRow) -> OptionRow {
    OptionRow { resume: Resume::Without, ..row }
}

/// Excludes the option from jobs of a list: the list has a key for it, or jobs cannot share it.
const fn no_job(row: OptionRow) -> OptionRow {
    OptionRow { jobs: false, ..row }
}

const J_NAMES: Pastis = Pastis::Refused("-j names the workers");

/// Rows in the order of the help. Libraries of `--mutator` reach the triage in a variable.
const TABLE: &[OptionRow] = &[
    no_job(once(row(&["-i"], Workers::NewOnes, Pastis::Own))),
    no_job(too(
        &["-o"],
        Workers::Get,
        Pastis::Own,
        Triage::Value(|c| Some(c.output.root.clone().into())),
    )),
    row(&["-p", "--domains"], Workers::GuidedOnes, Pastis::Gets),
    row(&["--dsf-record"], Workers::Get, Pastis::Gets),
    no_job(row(&["-t"], Workers::Get, Pastis::Gets)),
    row(&["--run-mode"], Workers::Get, Pastis::Gets),
    no_job(too(
        &["-m"],
        Workers::Get,
        Pastis::Gets,
        Triage::Value(|c| c.args.memory.clone().map(Into::into)),
    )),
    no_job(too(
        &["-f"],
        Workers::OnlyOne(&ONE_FILE),
        Pastis::Refused("the workers of -j would all write that file"),
        Triage::Value(|c| c.target.file.clone().map(Into::into)),
    )),
    no_job(too(
        &["-e"],
        Workers::Get,
        Pastis::Gets,
        Triage::Value(|c| c.output.extension.clone().map(Into::into)),
    )),
    row(&["-N"], Workers::Get, Pastis::Gets),
    row(&["-n"], Workers::Get, Pastis::Gets),
    row(&["-Q"], Workers::Get, Pastis::Gets),
    row(&["--native"], Workers::Get, Pastis::Gets),
    row(&["--qemu"], Workers::Get, Pastis::Gets),
    row(&["--modules"], Workers::Get, Pastis::Gets),
    too(
        &["--guard-heap"],
        Workers::Get,
        Pastis::Gets,
        Triage::Word(|c| c.target.guards_heap.then(|| "--guard-heap".into())),
    ),
    no_job(too(
        &["--net"],
        Workers::Get,
        Pastis::Gets,
        Triage::Value(|c| c.args.net.clone().map(Into::into)),
    )),
    row(&["--split"], Workers::Get, Pastis::Gets),
    no_job(row(&["--record"], Workers::Without, Pastis::Refused("it makes a seed and ends"))),
    row(&["--answers"], Workers::Get, Pastis::Gets),
    too(
        &["-w"],
        Workers::Get,
        Pastis::Refused("it is a build of one target, and the broker sends the targets"),
        Triage::Value(|c| c.args.sanitizer.first().cloned()),
    ),
    no_job(row(&["-b"], Workers::OnlyOneOwn(&ONE_CORE), Pastis::Gets)),
    row(&["-x"], Workers::Get, Pastis::GetsBoth),
    row(&["-g"], Workers::Get, Pastis::Gets),
    row(&["-G"], Workers::Get, Pastis::Gets),
    row(&["--schedule"], Workers::ThoseItSuits, Pastis::Gets),
    row(&["-d"], Workers::Get, Pastis::Gets),
    row(&["-D"], Workers::Get, Pastis::Gets),
    row(&["-z"], Workers::Get, Pastis::Gets),
    row(&["-Z"], Workers::Get, Pastis::Gets),
    row(&["-C"], Workers::Get, Pastis::Refused("inputs that crash would be sent as good ones")),
    row(&["-a"], Workers::Get, Pastis::Gets),
    row(&["-P"], Workers::Get, Pastis::Gets),
    row(&["-s"], Workers::Without, Pastis::Gets),
    no_job(row(&["--load-coverage"], Workers::Get, Pastis::Gets)),
    no_job(row(
        &["--save-coverage"],
        Workers::Main,
        Pastis::Refused("it would not end with a session"),
    )),
    no_job(row(&["--mutator"], Workers::Get, Pastis::Gets)),
    no_job(row(&["--mutator-options"], Workers::Get, Pastis::Gets)),
    no_job(row(&["--mutator-dir"], Workers::Get, Pastis::Gets)),
    row(&["--mutator-ratio"], Workers::Get, Pastis::Gets),
    too(
        &["--mutator-sees"],
        Workers::Get,
        Pastis::Gets,
        Triage::Value(|c| c.args.mutator_sees.clone().map(Into::into)),
    ),
    no_job(row(
        &["--mutator-only"],
        Workers::Refused(&ONE_SEQUENCE),
        Pastis::Refused("there is nothing to exchange"),
    )),
    no_job(row(&["--mutator-state"], Workers::Get, Pastis::Gets)),
    no_job(row(&["--mutator-list"], Workers::Without, Pastis::Gets)),
    no_job(row(&["-j"], Workers::Without, Pastis::Own)),
    no_job(row(&["-M"], Workers::Refused(&NAMED), J_NAMES)),
    no_job(row(&["-S"], Workers::Refused(&NAMED), J_NAMES)),
    row(&["-F"], Workers::Main, Pastis::Gets),
    no_job(row(&["--pastis"], Workers::Without, Pastis::Own)),
    no_job(once(row(&["-V"], Workers::Without, Pastis::Gets))),
    no_job(once(row(&["-E"], Workers::Without, Pastis::Gets))),
    row(&["-T"], Workers::Get, Pastis::Gets),
    row(&["-I"], Workers::Get, Pastis::Gets),
    too(&["--collector"], Workers::Without, Pastis::Gets, Triage::Word(|c| c.collector.clone())),
    too(
        &["--report-hangs"],
        Workers::Without,
        Pastis::Gets,
        Triage::Word(|c| c.args.report_hangs.then(|| "--report-hangs".into())),
    ),
    too(
        &["--report-records"],
        Workers::Without,
        Pastis::Gets,
        Triage::Value(|c| c.args.report_records.clone().map(Into::into)),
    ),
    no_job(row(
        &["--error-exitcode"],
        Workers::Without,
        Pastis::Refused("it serves until it is stopped"),
    )),
    no_job(row(
        &["--control"],
        Workers::Without,
        Pastis::Refused("the client itself is what is connected to it"),
    )),
    no_job(row(&["--metrics"], Workers::Without, Pastis::Gets)),
    no_job(row(&["--json"], Workers::Without, Pastis::Own)),
    no_job(row(&["-h", "--help"], Workers::Without, Pastis::Gets)),
    no_job(row(&["--version"], Workers::Without, Pastis::Gets)),
    row(&["-L"], Workers::Get, Pastis::Gets),
    row(&["-c"], Workers::Get, Pastis::Gets),
    row(&["-l"], Workers::Get, Pastis::Gets),
    row(&["-u"], Workers::Get, Pastis::Gets),
];

/// The row of an option as written; None for unsupported options.
pub(super) fn row_of(option: &[OsString]) -> Option<&'static OptionRow> {
    let name = words::name(option);
    TABLE.iter().find(|row| row.names.contains(&name.as_str()))
}

impl OptionRow {
    /// The canonical name.
    pub(super) fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// All names of the options that a job of a list must not have.
pub(super) fn refused_in_jobs() -> Vec<&'static str> {
    TABLE.iter().filter(|row| !row.jobs).flat_map(|row| row.names.iter().copied()).collect()
}

/// The options of the campaign's triage.
pub(super) fn to_triage(checked: &HandedOptions<'_>) -> Vec<OsString> {
    let mut words = Vec::new();
    for row in TABLE {
        match row.triage {
            Triage::Without => {}
            Triage::Value(value) => {
                words.extend(
                    value(checked).into_iter().flat_map(|value| [row.name().into(), value]),
                );
            }
            Triage::Word(word) => words.extend(word(checked)),
        }
    }
    words
}

/// Returns true if the command line that resumes a campaign has the option.
pub(super) fn is_resumed(option: &[OsString]) -> bool {
    row_of(option).is_none_or(|row| row.resume == Resume::Gets)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, CommandFactory};

    use super::super::args::Unsupported;
    use super::*;

    fn names(arg: &clap::Arg) -> Vec<String> {
        let short = arg.get_short().map(|letter| format!("-{letter}"));
        short.into_iter().chain(arg.get_long().map(|name| format!("--{name}"))).collect()
    }

    #[test]
    fn every_option_has_one_row_in_the_order_of_the_help() {
        let refused = Unsupported::augment_args(Command::new("refused"));
        let refused: Vec<&str> = refused.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        let command = Args::command();
        let options =
            command.get_arguments().filter(|arg| !refused.contains(&arg.get_id().as_str()));
        let options: Vec<Vec<String>> = options.map(names).collect();
        let rows: Vec<Vec<String>> =
            TABLE.iter().map(|row| row.names.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(rows, options, "src/cmd/fuzz/handed.rs says who gets an option");
    }
}
