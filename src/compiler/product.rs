//! Reports the contents of a linked program: the numbers of edges and words, and the domains without sites in any
//! source.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use ffuzz_mutate::words;
use object::read::{Object, ObjectSection, ReadCache};

/// Section with the addresses of clang's counters, two words each.
const TABLE: &str = "__sancov_pcs";
/// Section with the counters. Go's compiler creates it without the table.
const COUNTERS: &str = "__sancov_cntrs";
/// Section by `llvm-passes/ffuzz-domain.hpp`: one line per source and domain with the number of sites.
const SITES: &str = ".ffuzz_sites";
/// Section by `llvm-passes/ffuzz-words.hpp`.
const WORDS: &str = ".ffuzz_words";
/// Maximum size of a text section; enough for a million sources.
const MOST_TEXT: u64 = 32 << 20;

/// Lines for the user; empty if the file is no program.
pub(super) fn report(path: &Path, coverage: bool) -> Vec<String> {
    let shown = path.display();
    let Some(Contents { edges, has_counters, sites, words }) = read(path) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    match edges {
        _ if !coverage => {}
        0 if has_counters => {}
        0 => lines.push(format!(
            "warning: {shown}: no edge is instrumented; compile its sources with ffuzz-cc, too"
        )),
        edges => {
            let words = match words {
                0 => String::new(),
                1 => ", 1 word".to_owned(),
                words => format!(", {words} words"),
            };
            lines.push(format!("{shown}: {edges} edges instrumented{words}"));
        }
    }
    let empty = add_up(&sites).into_iter().filter(|(_, count)| *count == 0);
    lines.extend(
        empty.map(|(name, _)| format!("warning: {shown}: no instrumentation targets for {name}")),
    );
    lines
}

struct Contents {
    edges: u64,
    has_counters: bool,
    sites: Vec<u8>,
    words: usize,
}

fn read(path: &Path) -> Option<Contents> {
    // Skip devices such as /dev/null.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let word = if file.is_64() { 8 } else { 4 };
    let edges = file.section_by_name(TABLE).map_or(0, |section| section.size() / (2 * word));
    let has_counters = file.section_by_name(COUNTERS).is_some_and(|section| section.size() != 0);
    let text = |name| {
        let section = file.section_by_name(name).filter(|section| section.size() <= MOST_TEXT)?;
        section.data().ok().map(<[u8]>::to_vec)
    };
    let mut words = text(WORDS).and_then(|table| words::parse(&table).ok()).unwrap_or_default();
    words::keep_first(&mut words);
    let sites = text(SITES).unwrap_or_default();
    Some(Contents { edges, has_counters, sites, words: words.len() })
}

/// Sums up the sites of each domain over all sources.
fn add_up(text: &[u8]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(text).split(['\n', '\0']) {
        let Some((name, count)) = line.split_once('\t') else { continue };
        let count: u64 = count.parse().unwrap_or(0);
        *counts.entry(name.to_owned()).or_insert(0) += count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_of_all_sources_add_up() {
        let counts = add_up(b"Cmp\t0\nMem\t0\n\0Cmp\t3\nnonsense\n");
        let counts: Vec<_> = counts.into_iter().collect();
        assert_eq!(counts, [("Cmp".into(), 3), ("Mem".into(), 0)]);
    }

    #[test]
    fn what_is_no_program_has_no_lines() {
        assert_eq!(report(Path::new("/dev/null"), true), [""; 0]);
        assert_eq!(report(Path::new("/proc/none"), true), [""; 0]);
    }
}
