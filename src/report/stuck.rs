//! Stuck places of a campaign: branches that inputs reach but never take, with source positions.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use ffuzz_comparisons::blockers::{Blocker, ranges};
use ffuzz_comparisons::log::ComparisonLog;
use ffuzz_disk::inputs;
use ffuzz_engine::domain::Site;
use ffuzz_engine::executor::TargetInfo;
use ffuzz_engine::feedback::Stuck;
use ffuzz_event::BlockedComparison;
use ffuzz_exec::Hooked;

use crate::survey::SurveyError;

/// Number of places examined per listed one, because copies are joined.
pub const COPIES: usize = 4;

/// Maximum number of bytes of the closest inputs that are changed to see their effect, and of runs for that.
const MOST_PROBED: usize = 4096;
const MOST_RUNS: usize = 50_000;

/// Names the stuck places of a target. Reads its comparison sites on first use.
#[derive(Debug, Default)]
pub struct TargetPlaces(OnceCell<HashMap<u32, Site>>);

impl TargetPlaces {
    /// Describes a place without seeds. `sites` returns the comparisons of the logging program.
    pub fn entry(
        &self,
        stuck: &Stuck,
        target: &dyn TargetInfo,
        sites: impl FnOnce() -> Vec<Site>,
    ) -> BlockedComparison {
        let by_number = || sites().into_iter().map(|site| (site.key, site)).collect();
        let sites = self.0.get_or_init(by_number);
        let place_of = |counter: Option<u32>| target.place_of_counter(counter?);
        let behind = place_of(stuck.behind);
        let to = behind.as_ref().map_or(0, |site| site.line);
        let site = stuck.site.and_then(|site| sites.get(&site)).cloned();
        let site = site.or(behind).or_else(|| place_of(stuck.counter));
        let named = |site: Site| BlockedComparison {
            file: site.file.to_string(),
            line: site.line,
            column: site.column,
            function: match &*site.function {
                "" => String::new(),
                _ => site.short_function().to_string(),
            },
            comparison: site.what.to_string(),
            ..BlockedComparison::default()
        };
        let mut entry = site.map(named).unwrap_or_default();
        (entry.to, entry.copies) = (to, 1);
        if let Some(fork) = stuck.fork {
            entry.behind = Some(fork.behind.into());
            entry.functions = fork.functions.into();
            entry.outcome = match fork.ways {
                2 => "one way is never taken".into(),
                ways => format!("{} of {ways} ways are never taken", fork.shut),
            };
        }
        if let Some(blocker) = &stuck.comparison {
            entry.outcome = blocker.outcome().into();
            entry.seeds = blocker.inputs as u64;
            entry.attempts = blocker.attempts;
            entry.operands = blocker.comparison().to_string();
            entry.bytes = ranges(blocker.deciding.iter().copied());
        }
        entry
    }
}

/// A place with data of a particular list.
pub trait Listed {
    fn place(&self) -> &BlockedComparison;
    fn place_mut(&mut self) -> &mut BlockedComparison;
}

impl Listed for BlockedComparison {
    fn place(&self) -> &BlockedComparison {
        self
    }

    fn place_mut(&mut self) -> &mut BlockedComparison {
        self
    }
}

/// Joins the copies of one place in the source: of a template, of an inlined function, of a file included several
/// times. The unreached code is that of the first copy; the other data is that of the first one with a comparison.
/// Gives each place its id. Returns at most `most` places, in the order of `entries`.
pub fn joined<T: Listed>(entries: impl Iterator<Item = T>, most: usize) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    let mut known: HashMap<(String, u32, u32, u32), usize> = HashMap::new();
    for mut entry in entries {
        let place = entry.place();
        let key = (place.file.clone(), place.line, place.column, place.to);
        let number = all.len();
        let first = match place.line {
            0 => number,
            _ => *known.entry(key).or_insert(number),
        };
        let Some(kept) = all.get_mut(first) else {
            all.push(entry);
            continue;
        };
        let (behind, functions) = (kept.place().behind, kept.place().functions);
        if kept.place().operands.is_empty() && !entry.place().operands.is_empty() {
            std::mem::swap(kept, &mut entry);
        }
        let (kept, copy) = (kept.place_mut(), entry.place());
        kept.copies += copy.copies;
        kept.attempts += copy.attempts;
        (kept.behind, kept.functions) = (behind, functions);
    }
    all.truncate(most);
    for entry in &mut all {
        let place = entry.place_mut();
        place.id = id(place);
    }
    all
}

/// Id of a place: the same in every run of one build, and mostly after a change elsewhere in the source.
fn id(place: &BlockedComparison) -> String {
    let name = place.file.rsplit('/').next().unwrap_or_default();
    let text = format!("{name}\t{}\t{}\t{}", place.function, place.column, place.to);
    // FNV-1a.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = text.bytes().fold(0x811c_9dc5, step);
    format!("{}-{hash:08x}", place.line)
}

/// The bytes of each comparison's closest input that change its operands; only the first `MOST_PROBED` bytes are
/// tested.
pub(crate) fn deciding<'a>(
    target: &mut Hooked,
    blockers: impl Iterator<Item = &'a Blocker>,
    files: &[PathBuf],
) -> Result<HashMap<u32, BTreeSet<usize>>, SurveyError> {
    let mut by_input: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for blocker in blockers {
        by_input.entry(blocker.closest).or_default().push(blocker.site);
    }
    let (mut deciding, mut runs) = (HashMap::<u32, BTreeSet<usize>>::new(), 0);
    let mut bytes = Vec::new();
    for (number, sites) in by_input {
        inputs::read(&files[number], &mut bytes)?;
        let usual = operands(target, &bytes, &sites)?;
        for at in 0..bytes.len().min(MOST_PROBED) {
            if runs >= MOST_RUNS {
                return Ok(deciding);
            }
            let byte = bytes[at];
            // For a number in text, another digit shows more than another bit.
            let other =
                if byte.is_ascii_digit() { b'0' + (byte - b'0' + 1) % 10 } else { byte ^ 1 };
            bytes[at] = other;
            let changed = operands(target, &bytes, &sites)?;
            bytes[at] = byte;
            runs += 1;
            for (site, hash) in changed {
                if usual.get(&site).is_some_and(|usual| *usual != hash) {
                    deciding.entry(site).or_default().insert(at);
                }
            }
        }
    }
    Ok(deciding)
}

/// Hash of the first operands of each of these sites that the run reaches.
fn operands(
    target: &mut Hooked,
    bytes: &[u8],
    sites: &[u32],
) -> Result<HashMap<u32, u64>, SurveyError> {
    let run = target.observe_logged(bytes)?;
    Ok(hashes(run.comparisons, sites))
}

fn hashes(log: ComparisonLog<'_>, sites: &[u32]) -> HashMap<u32, u64> {
    let mut hashes = HashMap::new();
    for comparison in log.iter().filter(|comparison| sites.contains(&comparison.site)) {
        hashes.entry(comparison.site).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            (comparison.a, comparison.b).hash(&mut hasher);
            hasher.finish()
        });
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_place_are_one_entry() {
        let entry = |file: &str, line, to, behind, operands: &str| BlockedComparison {
            file: file.into(),
            line,
            to,
            behind,
            operands: operands.into(),
            attempts: 1,
            copies: 1,
            ..BlockedComparison::default()
        };
        let all = [
            entry("/a.c", 1, 2, Some(9), "a"),
            entry("/b.c", 1, 2, Some(8), ""),
            entry("", 0, 0, Some(7), ""),
            entry("", 0, 0, Some(6), ""),
            entry("/b.c", 1, 2, Some(5), "b"),
            entry("/b.c", 1, 3, Some(4), "c"),
        ];
        let seen: Vec<_> = joined(all.clone().into_iter(), 4)
            .into_iter()
            .map(|it| (it.operands, it.behind, it.copies, it.attempts))
            .collect();
        let place =
            |operands: &str, behind, copies| (operands.to_owned(), Some(behind), copies, copies);
        assert_eq!(seen, [place("a", 9, 1), place("b", 8, 2), place("", 7, 1), place("", 6, 1)]);
        let ids: BTreeSet<String> =
            joined(all.clone().into_iter(), 9).into_iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), 4, "{ids:?}");
        let again: BTreeSet<String> =
            joined(all.into_iter(), 9).into_iter().map(|it| it.id).collect();
        assert_eq!(ids, again);
    }
}
