//! libFuzzer's options and their effects here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::WRONG;
use crate::cmd::exit::Failure;

/// Treatment of an option.
#[derive(Clone, Copy, Debug)]
enum Treatment {
    Works,
    /// No effect: the search does this itself or has nothing comparable. Reported with `-verbosity=2`.
    Idle,
    /// Unsupported, affects the result: always reported, and the campaign continues.
    Missing(&'static str),
    /// Unsupported and essential: an error.
    Refused(&'static str),
}
use Treatment::{Idle, Missing, Refused, Works};

/// All options, one per line: `NUMBER(name, default, "help")` or `TEXT(name, "help")`.
const LIST: &str = include_str!("../../../runtime/driver/options.def");

/// Options without effect: the search decides by itself, or has nothing comparable.
const IDLE: &[&str] = &[
    "len_control",
    "keep_seed",
    "fork_corpus_groups",
    "close_fd_mask",
    "shuffle",
    "prefer_small",
    "reload",
    "shrink",
    "reduce_inputs",
    "mutate_depth",
    "reduce_depth",
    "cross_over",
    "cross_over_uniform_dist",
    "use_counters",
    "use_memmem",
    "use_value_profile",
    "entropic",
    "entropic_feature_frequency_threshold",
    "entropic_number_of_rarest_features",
    "entropic_scale_per_exec_time",
    "purge_allocator_interval",
    "report_slow_units",
    "print_funcs",
    "handle_segv",
    "handle_bus",
    "handle_abrt",
    "handle_ill",
    "handle_fpe",
    "handle_int",
    "handle_term",
    "handle_xfsz",
    "handle_trap",
    "handle_usr1",
    "handle_usr2",
    "dump_coverage",
    "use_clang_coverage",
    "detect_leaks",
];

const COVERAGE: &str = "ffuzz-showmap and ffuzz-tracer show coverage";
const DEPENDENCE: &str = "ffuzz finds by itself which bytes decide";
const BY_HAND: &str = "give files, which the harness runs by itself";

/// Options that a search lacks, and their replacements.
const OTHERS: &[(&str, Treatment)] = &[
    ("use_cmp", Missing("comparisons are always solved")),
    ("focus_function", Missing("the whole program is fuzzed")),
    ("trace_malloc", Missing("WAYPOINTS=mem ffuzz-cc counts allocations")),
    ("print_pcs", Missing("ffuzz-tracer shows what an input executes")),
    ("print_corpus_stats", Missing("fuzzer_stats of ffuzz has numbers")),
    ("print_coverage", Missing(COVERAGE)),
    ("print_full_coverage", Missing(COVERAGE)),
    ("mutation_graph_file", Missing("the names in the queue of ffuzz have parents")),
    ("only_ascii", Refused("ffuzz -a text prefers text")),
    ("analyze_dict", Refused("ffuzz-showmap --tokens lists words of the program")),
    ("data_flow_trace", Refused(DEPENDENCE)),
    ("collect_data_flow", Refused(DEPENDENCE)),
    ("features_dir", Refused("it is internal to libFuzzer")),
    ("exit_on_src_pos", Refused(BY_HAND)),
    ("exit_on_item", Refused(BY_HAND)),
];

/// An option of libFuzzer.
#[derive(Clone, Copy, Debug)]
struct FlagRow {
    name: &'static str,
    /// Value if the option is not given.
    default: &'static str,
    help: &'static str,
}

impl FlagRow {
    /// Parses a line of [`LIST`].
    fn of(line: &'static str) -> Option<Self> {
        let (is_number, rest) = match line.strip_prefix("NUMBER(") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("TEXT(")?),
        };
        let (head, help) = rest.strip_suffix("\")")?.split_once(", \"")?;
        let (name, default) = if is_number { head.split_once(", ")? } else { (head, "") };
        let default = if name == "artifact_prefix" { "./" } else { default };
        Some(Self { name, default, help })
    }

    fn named(name: &str) -> Option<Self> {
        rows().find(|row| row.name == name)
    }

    fn treatment(self) -> Treatment {
        if IDLE.contains(&self.name) {
            return Idle;
        }
        let other = OTHERS.iter().find(|(name, _)| *name == self.name);
        other.map_or(Works, |(_, treatment)| *treatment)
    }
}

fn rows() -> impl Iterator<Item = FlagRow> {
    LIST.lines().filter_map(FlagRow::of)
}

/// A parsed command line.
#[derive(Debug, Default)]
pub(super) struct Order {
    values: BTreeMap<&'static str, String>,
    pub(super) folders: Vec<PathBuf>,
    /// Arguments for the harness.
    pub(super) rest: Vec<OsString>,
    /// Lines to print first.
    pub(super) notes: Vec<String>,
}

impl Order {
    /// Parses the words. Reports and skips unknown options, as libFuzzer does; the last value of an option counts.
    pub(super) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, Failure> {
        let (mut order, mut is_rest) = (Self::default(), false);
        for word in words {
            let text = word.to_string_lossy().into_owned();
            if is_rest {
                order.rest.push(word);
            } else if let Some(name) = text.strip_prefix("--") {
                order.notes.push(format!(
                    "WARNING: did you mean '-{name}' (single dash)?\n\
                     INFO: libFuzzer ignores flags that start with '--'"
                ));
                order.rest.push(word);
            } else if let Some(option) = text.strip_prefix('-').filter(|_| text.len() > 1) {
                is_rest = order.option(option)?;
                if is_rest {
                    order.rest.push(word);
                }
            } else {
                order.folders.push(word.into());
            }
        }
        Ok(order)
    }

    /// Parses one option. Returns true if the remaining words are for the harness.
    fn option(&mut self, option: &str) -> Result<bool, Failure> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let row = FlagRow::named(name).filter(|_| option.contains('='));
        let Some(FlagRow { name, default, .. }) = row else {
            let line = "use -help=1 to list all flags";
            self.notes.push(format!("WARNING: unrecognized flag '-{option}'; {line}"));
            return Ok(false);
        };
        let is_default = value == default;
        match row.map_or(Works, FlagRow::treatment) {
            Works => {}
            Idle if self.number("verbosity") >= 2 && !is_default => {
                self.notes
                    .push(format!("INFO: -{name} has no effect: ffuzz decides that by itself"));
            }
            Missing(instead) if !is_default => {
                self.notes.push(format!("WARNING: -{name} is not supported: {instead}"));
            }
            Refused(instead) if !is_default => {
                let cause = format!("the option -{name} is not supported here");
                return Err(Failure { code: WRONG, ..Failure::new(cause, instead) });
            }
            Idle | Missing(_) | Refused(_) => {}
        }
        self.values.insert(name, value.to_owned());
        Ok(name == "ignore_remaining_args" && value == "1")
    }

    /// The value, or libFuzzer's default.
    pub(super) fn text(&self, name: &str) -> &str {
        let default = || FlagRow::named(name).map_or("", |row| row.default);
        self.values.get(name).map_or_else(default, String::as_str)
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        number(self.text(name))
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.number(name) != 0
    }

    /// The given limits of time and memory, as options for the harness.
    pub(super) fn limits(&self) -> impl Iterator<Item = String> {
        let names = ["timeout", "rss_limit_mb", "malloc_limit_mb"].into_iter();
        let given = names.filter(|name| self.is_given(name));
        given.map(|name| format!("-{name}={}", self.text(name)))
    }

    /// The words without the given options, for the processes of `-jobs`.
    pub(super) fn words_without(&self, names: &[&str]) -> Vec<OsString> {
        let given = self.values.iter().filter(|(name, _)| !names.contains(name));
        let options = given.map(|(name, value)| OsString::from(format!("-{name}={value}")));
        let folders = self.folders.iter().map(|folder| folder.clone().into_os_string());
        options.chain(folders).chain(self.rest.iter().cloned()).collect()
    }
}

/// Parses digits up to the first other character, as libFuzzer does.
fn number(text: &str) -> i64 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    sign * digits[..end].parse().unwrap_or(if end == 0 { 0 } else { i64::MAX })
}

/// Output of `-help=1`.
pub(super) fn help() -> String {
    let mut text = String::from("Options (-NAME=VALUE; of several the last one counts):\n");
    for row in rows() {
        let FlagRow { name, default, help } = row;
        let state = match row.treatment() {
            Works => "",
            Idle => " (accepted, no effect)",
            Missing(_) => " (not supported)",
            Refused(_) => " (refused)",
        };
        text.push_str(&format!("  {name:<38} {default:>6}  {help}{state}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn order(words: &[&str]) -> Order {
        Order::read(words.iter().map(OsString::from)).unwrap()
    }

    #[test]
    fn words_are_read_as_libfuzzer_reads_them() {
        let read = order(&["-runs=12abc", "-seed=1", "a", "-seed=2", "-x=1", "-y", "--mine", "b"]);
        assert_eq!(
            (read.number("runs"), read.number("seed"), read.number("timeout")),
            (12, 2, 1200)
        );
        assert_eq!(read.folders, [PathBuf::from("a"), "b".into()]);
        assert_eq!(read.rest, ["--mine"]);
        assert!(read.notes[0].contains("unrecognized flag '-x=1'"), "{:?}", read.notes);
        assert!(read.notes[2].contains("did you mean '-mine'"));
        let rest = order(&["-ignore_remaining_args=1", "-runs=1", "x"]);
        assert_eq!((rest.number("runs"), rest.rest.len(), rest.folders.len()), (-1, 3, 0));
        assert_eq!(
            [number("abc"), number("-7"), number("99999999999999999999")],
            [0, -7, i64::MAX]
        );
    }

    #[test]
    fn what_is_not_there_is_said_or_refused() {
        assert!(
            order(&["-focus_function=f"]).notes[0].contains("-focus_function is not supported")
        );
        assert!(order(&["-entropic=0"]).notes.is_empty());
        assert!(
            order(&["-verbosity=2", "-entropic=0"]).notes[0].contains("-entropic has no effect")
        );
        let words = ["-analyze_dict=1"].map(OsString::from);
        let refused = Order::read(words.into_iter()).unwrap_err();
        assert!(refused.remedy.contains("ffuzz-showmap") && refused.code == 1);
        // A default value requests nothing.
        assert!(order(&["-analyze_dict=0", "-print_pcs=0"]).notes.is_empty());
    }

    #[test]
    fn each_line_of_the_list_is_one_option_and_each_treatment_has_one() {
        let lines = LIST.lines().filter(|line| line.starts_with(['N', 'T'])).count();
        let mut names: Vec<&str> = rows().map(|row| row.name).collect();
        assert_eq!(names.len(), lines);
        let treated = IDLE.iter().chain(OTHERS.iter().map(|(name, _)| name));
        assert!(treated.clone().all(|name| names.contains(name)));
        assert_eq!(treated.collect::<BTreeSet<_>>().len(), IDLE.len() + OTHERS.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), help().lines().count()), (lines, lines + 1));
    }
}
