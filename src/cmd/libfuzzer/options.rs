//! libFuzzer's options: what each means here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::WRONG;
use crate::cmd::exit::Failure;

/// What becomes of an option.
#[derive(Clone, Copy, Debug)]
enum Treatment {
    Works,
    /// The search does that by itself, or has nothing of the kind. Said under `-verbosity=2`.
    Idle,
    /// It would change the result: said always, and the campaign goes on.
    Missing(&'static str),
    /// The campaign would be another one without it.
    Refused(&'static str),
}
use Treatment::{Idle, Missing, Refused, Works};

/// Name, value without the option, treatment, help.
struct Row(&'static str, &'static str, Treatment, &'static str);

const BY_HAND: &str = "give files, which the harness runs by itself";

/// In the order of `-help=1`.
const ROWS: &[Row] = &[
    Row("runs", "-1", Works, "number of runs; -1: no limit"),
    Row("max_total_time", "0", Works, "seconds of fuzzing; 0: no limit"),
    Row("timeout", "1200", Works, "seconds after which a run is a timeout"),
    Row("max_len", "0", Works, "longest input in bytes; 0: from the corpus"),
    Row("len_control", "100", Idle, "short inputs first"),
    Row("seed", "0", Works, "of random numbers; 0: another one each time"),
    Row(
        "seed_inputs",
        "",
        Works,
        "files to begin with, separated by commas, or @FILE with that list",
    ),
    Row("keep_seed", "0", Idle, "seeds stay in the corpus"),
    Row("dict", "", Works, "file with words"),
    Row("stop_file", "", Works, "the end once this file is there"),
    Row("rss_limit_mb", "2048", Works, "memory of the harness, MB; 0: no limit"),
    Row(
        "malloc_limit_mb",
        "0",
        Works,
        "largest allocation, MB, in a build with AddressSanitizer; 0: no limit",
    ),
    Row(
        "fork",
        "0",
        Works,
        "campaigns side by side, which go on behind crashes if -ignore_crashes=1",
    ),
    Row("jobs", "0", Works, "number of campaigns, each with its fuzz-N.log"),
    Row("workers", "0", Works, "of -jobs at the same time; 0: half of the cores"),
    Row("fork_corpus_groups", "0", Idle, "groups of -fork"),
    Row("ignore_crashes", "0", Works, "go on behind crashes"),
    Row("ignore_timeouts", "1", Works, "with -fork: go on behind timeouts"),
    Row("ignore_ooms", "1", Works, "with -fork: go on behind runs without memory"),
    Row("artifact_prefix", "./", Works, "begins the names of crash-SHA1, timeout-SHA1, oom-SHA1"),
    Row("exact_artifact_path", "", Works, "file for the one input that fails"),
    Row("create_missing_dirs", "0", Works, "make folders that are missing"),
    Row("error_exitcode", "77", Works, "exit code of a crash"),
    Row("timeout_exitcode", "70", Works, "exit code of a timeout"),
    Row("verbosity", "1", Works, "0: fewer lines, 2: more"),
    Row("print_final_stats", "0", Works, "statistics at the end"),
    Row("close_fd_mask", "0", Idle, "what a harness prints under a campaign goes nowhere"),
    Row("help", "0", Works, "this list"),
    Row("ignore_remaining_args", "0", Works, "what follows is for LLVMFuzzerInitialize"),
    Row("shuffle", "1", Idle, "order of the corpus at the start"),
    Row("prefer_small", "1", Idle, "small inputs first"),
    Row("reload", "1", Idle, "inputs that others add to the folders"),
    Row("shrink", "0", Idle, "shorter inputs in place of longer ones"),
    Row("reduce_inputs", "1", Idle, "shorter inputs in place of longer ones"),
    Row("mutate_depth", "5", Idle, "changes in a row"),
    Row("reduce_depth", "0", Idle, "changes in a row"),
    Row("cross_over", "1", Idle, "splicing"),
    Row("cross_over_uniform_dist", "0", Idle, "splicing"),
    Row("use_counters", "1", Idle, "hit counts"),
    Row("use_memmem", "1", Idle, "comparisons"),
    Row("use_cmp", "1", Idle, "comparisons"),
    Row(
        "use_value_profile",
        "0",
        Idle,
        "comparisons: the domain `cmp` (WAYPOINTS=cmp ffuzz-cc, ffuzz -p) does that",
    ),
    Row("entropic", "1", Idle, "schedule"),
    Row("entropic_feature_frequency_threshold", "255", Idle, "schedule"),
    Row("entropic_number_of_rarest_features", "100", Idle, "schedule"),
    Row("entropic_scale_per_exec_time", "0", Idle, "schedule"),
    Row("purge_allocator_interval", "1", Idle, "allocator"),
    Row("report_slow_units", "10", Idle, "slow inputs: ffuzz keeps those beyond -timeout"),
    Row("print_funcs", "2", Idle, "new functions"),
    Row("handle_segv", "1", Idle, "signals end the process that runs the inputs, not the campaign"),
    Row("handle_bus", "1", Idle, "signals"),
    Row("handle_abrt", "1", Idle, "signals"),
    Row("handle_ill", "1", Idle, "signals"),
    Row("handle_fpe", "1", Idle, "signals"),
    Row("handle_int", "1", Idle, "signals"),
    Row("handle_term", "1", Idle, "signals"),
    Row("handle_xfsz", "1", Idle, "signals"),
    Row("handle_trap", "1", Idle, "signals"),
    Row("handle_usr1", "1", Idle, "signals"),
    Row("handle_usr2", "1", Idle, "signals"),
    Row("dump_coverage", "0", Idle, "no meaning any more, in libFuzzer as well"),
    Row("use_clang_coverage", "0", Idle, "no meaning any more, in libFuzzer as well"),
    Row(
        "detect_leaks",
        "1",
        Idle,
        "leaks: ffuzz-triage finds them in a build with AddressSanitizer",
    ),
    Row("only_ascii", "0", Refused("ffuzz -a text prefers text"), "text alone"),
    Row("focus_function", "", Missing("the whole program is fuzzed"), "function to look at"),
    Row("trace_malloc", "0", Missing("WAYPOINTS=mem ffuzz-cc counts allocations"), "allocations"),
    Row("print_pcs", "0", Missing("ffuzz-tracer shows what an input executes"), "new places"),
    Row(
        "print_corpus_stats",
        "0",
        Missing("fuzzer_stats of ffuzz has numbers"),
        "numbers of the corpus",
    ),
    Row(
        "print_coverage",
        "0",
        Missing("ffuzz-showmap and ffuzz-tracer show coverage"),
        "coverage at the end",
    ),
    Row(
        "print_full_coverage",
        "0",
        Missing("ffuzz-showmap and ffuzz-tracer show coverage"),
        "coverage at the end",
    ),
    Row(
        "mutation_graph_file",
        "",
        Missing("the names in the queue of ffuzz have parents"),
        "parents of inputs",
    ),
    Row("merge", "0", Works, "keep what adds coverage"),
    Row("set_cover_merge", "0", Works, "keep a small set"),
    Row("merge_control_file", "", Missing("an interrupted merge begins again"), "state of -merge"),
    Row("minimize_crash", "0", Works, "a shorter input that crashes"),
    Row("cleanse_crash", "0", Works, "an input without bytes that do not matter"),
    Row(
        "analyze_dict",
        "0",
        Refused("ffuzz-showmap --tokens lists words of the program"),
        "value of words",
    ),
    Row(
        "data_flow_trace",
        "",
        Refused("ffuzz finds by itself which bytes decide"),
        "trace of DFSan",
    ),
    Row(
        "collect_data_flow",
        "",
        Refused("ffuzz finds by itself which bytes decide"),
        "program of DFSan",
    ),
    Row("features_dir", "", Refused("it is internal to libFuzzer"), "features of inputs"),
    Row("exit_on_src_pos", "", Refused(BY_HAND), "the end at a place"),
    Row("exit_on_item", "", Refused(BY_HAND), "the end at an input"),
];

/// What a command line asks for.
#[derive(Debug, Default)]
pub(super) struct Order {
    values: BTreeMap<&'static str, String>,
    pub(super) folders: Vec<PathBuf>,
    /// For the harness.
    pub(super) rest: Vec<OsString>,
    /// Lines to be said before anything else.
    pub(super) notes: Vec<String>,
}

impl Order {
    /// Options that are unknown are said and skipped, as in libFuzzer; of several the last one counts.
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

    /// True: what follows is for the harness.
    fn option(&mut self, option: &str) -> Result<bool, Failure> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let row = ROWS.iter().find(|Row(known, ..)| *known == name);
        let Some(Row(name, default, treatment, _)) = row.filter(|_| option.contains('=')) else {
            let line = "use -help=1 to list all flags";
            self.notes.push(format!("WARNING: unrecognized flag '-{option}'; {line}"));
            return Ok(false);
        };
        let is_default = value == *default;
        match treatment {
            Works => {}
            Idle if self.number_of("verbosity") >= 2 && !is_default => {
                self.notes
                    .push(format!("INFO: -{name} has no effect: ffuzz decides that by itself"));
            }
            Missing(instead) if !is_default => {
                self.notes.push(format!("WARNING: -{name} is not supported: {instead}"));
            }
            Refused(instead) if !is_default => {
                let cause = format!("the option -{name} is not supported here");
                return Err(Failure { code: WRONG, ..Failure::new(cause, *instead) });
            }
            Idle | Missing(_) | Refused(_) => {}
        }
        self.values.insert(name, value.to_owned());
        Ok(*name == "ignore_remaining_args" && value == "1")
    }

    /// The value, or that of libFuzzer without the option.
    pub(super) fn text(&self, name: &str) -> &str {
        let default = || ROWS.iter().find(|row| row.0 == name).map_or("", |row| row.1);
        self.values.get(name).map_or_else(default, String::as_str)
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn number_of(&self, name: &str) -> i64 {
        number(self.text(name))
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        self.number_of(name)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.number_of(name) != 0
    }

    /// The same without an option, for the processes of `-jobs`.
    pub(super) fn words_without(&self, names: &[&str]) -> Vec<OsString> {
        let given = self.values.iter().filter(|(name, _)| !names.contains(name));
        let options = given.map(|(name, value)| OsString::from(format!("-{name}={value}")));
        let folders = self.folders.iter().map(|folder| folder.clone().into_os_string());
        options.chain(folders).chain(self.rest.iter().cloned()).collect()
    }
}

/// Digits up to the first other character, as libFuzzer reads numbers.
fn number(text: &str) -> i64 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    sign * digits[..end].parse().unwrap_or(if end == 0 { 0 } else { i64::MAX })
}

/// The answer to `-help=1`.
pub(super) fn help() -> String {
    let mut text = String::from("Options (-NAME=VALUE; of several the last one counts):\n");
    for Row(name, default, treatment, what) in ROWS {
        let state = match treatment {
            Works => "",
            Idle => " (accepted, no effect)",
            Missing(_) => " (not supported)",
            Refused(_) => " (refused)",
        };
        text.push_str(&format!("  {name:<38} {default:>6}  {what}{state}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A value that is the usual one asks for nothing.
        assert!(order(&["-analyze_dict=0", "-print_pcs=0"]).notes.is_empty());
    }

    #[test]
    fn all_options_have_one_row() {
        let mut names: Vec<&str> = ROWS.iter().map(|row| row.0).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(help().lines().count() == all + 1);
    }
}
