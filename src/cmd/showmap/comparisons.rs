//! Comparisons of a target in one run, by place in the source.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::args::Args;
use super::{input, start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, print, print_messages, report, say};
use crate::comparisons::log::Comparison;
use crate::config::env::Environment;
use crate::engine::domain::Site;
use crate::exec::Hooked;

/// Maximum number of distinct operand pairs shown per place.
const MOST_PAIRS: usize = 8;
/// Number of occurrences of a place that are all logged.
const ALL_LOGGED: usize = 16;

/// Prints the comparisons; returns the exit code.
pub(super) fn run(args: &mut Args, environment: &Environment) -> Result<u8, Failure> {
    let bytes = input(args)?;
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    check_log(&target)?;
    let sites = target.info().comparison_sites();
    let run = target.observe_logged(&bytes).map_err(tool::failure)?;
    report(run.exit, None, args.quiet);
    let (mut places, mut count) = (BTreeMap::<u32, Place>::new(), 0);
    for comparison in run.comparisons.iter() {
        count += 1;
        places.entry(comparison.site).or_default().add(&comparison);
    }
    let is_cut = run.comparisons.is_cut();
    print_messages(&mut target, args.quiet);
    print(text(&sites, &places).as_bytes(), to_file(args.output()))?;
    say(args.quiet, &format!("[+] {count} comparisons at {} places", places.len()));
    if is_cut {
        say(args.quiet, "[!] The run compared more: the log was full.");
    }
    Ok(0)
}

pub(super) fn check_log(target: &Hooked) -> Result<(), Failure> {
    match target.info().logs_comparisons() {
        true => Ok(()),
        false => Err(Failure::new(
            "the target does not log comparisons",
            "build it with ffuzz-cc (and without FFUZZ_NO_LOG)",
        )),
    }
}

/// Comparisons at one place of the program.
#[derive(Default)]
struct Place {
    count: usize,
    pairs: Vec<String>,
}

impl Place {
    fn add(&mut self, comparison: &Comparison<'_>) {
        self.count += 1;
        let pair = comparison.to_string();
        if self.pairs.len() < MOST_PAIRS && !self.pairs.contains(&pair) {
            self.pairs.push(pair);
        }
    }
}

/// Formats the comparisons by file and line.
fn text(sites: &[Site], places: &BTreeMap<u32, Place>) -> String {
    let known: HashMap<u32, &Site> = sites.iter().map(|site| (site.key, site)).collect();
    let mut ordered: Vec<_> =
        places.iter().map(|(key, place)| (known.get(key), key, place)).collect();
    ordered.sort_by_key(|(site, key, _)| (site.map(|s| (&s.file, s.line, s.column)), *key));
    let mut text = String::new();
    for (site, key, seen) in ordered {
        text.push_str(&place(site.copied(), *key));
        let more = if seen.count > ALL_LOGGED { " or more" } else { "" };
        let _ = writeln!(text, ", {}{more}", times(seen.count.min(ALL_LOGGED)));
        seen.pairs.iter().for_each(|pair| {
            let _ = writeln!(text, "    {pair}");
        });
    }
    text
}

/// A comparison's place in the source, and its kind.
pub(super) fn place(site: Option<&Site>, key: u32) -> String {
    match site {
        Some(site @ Site { file, line, column, what, .. }) => {
            let function = site.short_function();
            match line {
                0 => format!("{file}: {function}: {what}"),
                _ if *column == 0 => format!("{file}:{line}: {function}: {what}"),
                _ => format!("{file}:{line}:{column}: {function}: {what}"),
            }
        }
        None => format!("place {key:#x}"),
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}
