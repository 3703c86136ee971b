//! What a target compares in one run, by places in the source.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::args::Args;
use super::{input, start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, print, print_messages, report, say};
use crate::config::env::Environment;
use crate::engine::comparison::{Comparison, ComparisonKind, Operand};
use crate::engine::domain::Site;
use crate::exec::Hooked;

/// Different pairs of operands that are shown of a place.
const MOST_PAIRS: usize = 8;
/// Occurrences of a place up to which each is logged.
const ALL_LOGGED: usize = 16;
/// Cases of a `switch` that are shown.
const MOST_CASES: usize = 16;

/// Prints them; returns the exit code.
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

/// What was compared at one place of the program.
#[derive(Default)]
struct Place {
    count: usize,
    pairs: Vec<String>,
}

impl Place {
    fn add(&mut self, comparison: &Comparison<'_>) {
        self.count += 1;
        let pair = pair(comparison);
        if self.pairs.len() < MOST_PAIRS && !self.pairs.contains(&pair) {
            self.pairs.push(pair);
        }
    }
}

/// By file and line.
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

/// A comparison's place in the source, and what kind it is.
pub(super) fn place(site: Option<&Site>, key: u32) -> String {
    match site {
        Some(site @ Site { file, line, column, what, .. }) => {
            format!("{file}:{line}:{column}: {}: {what}", site.short_function())
        }
        None => format!("place {key:#x}"),
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

pub(super) fn pair(comparison: &Comparison<'_>) -> String {
    let side = |operand: &Operand<'_>, constant: bool| {
        let text = match operand {
            Operand::Value(value) => number(*value, comparison),
            Operand::Bytes(bytes) if comparison.kind == ComparisonKind::Switch => cases(bytes),
            Operand::Bytes(bytes) if comparison.bytes > 8 => wide(bytes),
            Operand::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        };
        if constant { format!("{text} (constant)") } else { text }
    };
    let [a, b] = comparison.constant;
    format!("{} {} {}", side(&comparison.a, a), between(comparison), side(&comparison.b, b))
}

fn between(comparison: &Comparison<'_>) -> &'static str {
    match comparison.kind {
        ComparisonKind::Switch => "among",
        ComparisonKind::Search => "searched for",
        _ => "and",
    }
}

/// With its letters, if it has some.
fn number(value: u64, comparison: &Comparison<'_>) -> String {
    match (comparison.kind, comparison.bytes) {
        (ComparisonKind::Float, 4) => format!("{:?}", f32::from_bits(value as u32)),
        (ComparisonKind::Float, _) => format!("{:?}", f64::from_bits(value)),
        (_, bytes) => {
            let all = value.to_le_bytes();
            let letters: Vec<u8> =
                all[..bytes.min(8)].iter().copied().take_while(|byte| *byte != 0).collect();
            let is_text = !letters.is_empty()
                && value >> (8 * letters.len().min(7)) <= 0xff
                && letters.iter().all(u8::is_ascii_graphic);
            let text =
                if is_text { format!(" '{}'", letters.escape_ascii()) } else { String::new() };
            format!("{value:#x}{text}")
        }
    }
}

fn wide(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0x0".into() } else { format!("0x{digits}") }
}

fn cases(bytes: &[u8]) -> String {
    let all: Vec<String> = bytes
        .chunks_exact(8)
        .filter_map(|case| case.try_into().ok().map(u64::from_le_bytes))
        .map(|case| format!("{case:#x}"))
        .collect();
    match all.len() {
        0..=MOST_CASES => all.join(" "),
        count => format!("{} … ({count} cases)", all[..MOST_CASES].join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(kind: ComparisonKind, bytes: usize) -> Comparison<'static> {
        let value = Operand::Value(0);
        let constant = [false, true];
        Comparison { site: 1, kind, bytes, constant, ignores_case: false, a: value, b: value }
    }

    #[test]
    fn operands_are_shown_as_what_they_are() {
        let equal = comparison(ComparisonKind::Equal, 4);
        let of = |a, b| Comparison { a: Operand::Value(a), b: Operand::Value(b), ..equal };
        assert_eq!(pair(&of(0x4947_414d, 7)), "0x4947414d 'MAGI' and 0x7 (constant)");
        assert_eq!(pair(&of(0x41, 0)), "0x41 'A' and 0x0 (constant)");
        assert_eq!(pair(&of(0x0041_0041, 0)), "0x410041 and 0x0 (constant)");
        let double = Comparison {
            a: Operand::Value(1.5f64.to_bits()),
            b: Operand::Value(0),
            ..comparison(ComparisonKind::Float, 8)
        };
        assert_eq!(pair(&double), "1.5 and 0.0 (constant)");
        let switch = Comparison {
            a: Operand::Value(3),
            b: Operand::Bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]),
            constant: [false; 2],
            ..comparison(ComparisonKind::Switch, 1)
        };
        assert_eq!(pair(&switch), "0x3 among 0x1 0x2");
        let text = Comparison {
            a: Operand::Bytes(b"a\x01"),
            b: Operand::Bytes(b"key"),
            constant: [false; 2],
            ..comparison(ComparisonKind::Text, 0)
        };
        assert_eq!(pair(&text), "\"a\\x01\" and \"key\"");
        let mut big = [0; 16];
        big[8] = 1;
        let wide = Comparison {
            a: Operand::Bytes(&big),
            b: Operand::Bytes(&[0; 16]),
            ..comparison(ComparisonKind::Equal, 16)
        };
        assert_eq!(pair(&wide), "0x10000000000000000 and 0x0 (constant)");
    }
}
