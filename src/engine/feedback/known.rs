//! Knowledge about a program from all runs so far, as a value that can be stored and joined with others.
//!
//! Joining is commutative, associative and idempotent, so the states of any number of machines can be
//! joined in any order, and twice. No I/O, no clock.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Judge;
use crate::coverage::{self, Classes};
use crate::domain::Domain;
use crate::executor::{ExitKind, Observation};

/// A file whose edges are part of the map.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    /// File name. Compared only if builds differ: a copy under another name is the same program.
    pub name: String,
    /// Identifies the build: the linker's build-id, or a hash of the file.
    pub build: String,
    /// Path of the file, used to name its edges. Not compared.
    pub file: String,
    /// Range of its counters in the maps.
    pub counters: Range<usize>,
}

impl Part {
    fn is(&self, other: &Self) -> bool {
        (&self.build, &self.counters) == (&other.build, &other.counters)
    }
}

/// Why two states do not belong to the same program.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Mismatch {
    #[error("its map has {found} edges, and {expected} were expected")]
    MapSize { found: usize, expected: usize },
    #[error("it is of another build of {name}")]
    Build { name: String },
    #[error("it is of another program: {found} instead of {expected}")]
    Program { found: String, expected: String },
    #[error("it is of a program with other domains: {found} instead of {expected}")]
    Domains { found: String, expected: String },
}

/// Edges, crashes, hangs and domain values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Known {
    /// In the order of their counters; empty: the program is unknown, as in files of other tools.
    pub parts: Vec<Part>,
    /// Virgin map of good runs: the hit-count classes not seen yet. All maps have the same size.
    pub edges: Vec<u8>,
    /// Virgin maps of runs that crashed and of runs that timed out; each edge is hit or not hit.
    pub crashes: Vec<u8>,
    pub hangs: Vec<u8>,
    /// Empty if the program has no domains or is unknown.
    pub domains: Vec<Domain>,
    /// Values by global key; only those that differ from the initial value.
    pub values: BTreeMap<u32, u32>,
    /// Maps of crashes and hangs in AFL's simplified form; empty unless they hold more than `crashes` and `hangs`.
    pub simplified: [Vec<u8>; 2],
    /// True if a part came from a file that does not name its program, so the match could not be checked.
    pub unnamed: bool,
}

const HIT: u8 = 0x80;
const NOT_HIT: u8 = 0x01;

/// Converts a map of hit or not hit (bit 0) to AFL's form: bit 7 is cleared for an edge that a run has hit, bit 0 for
/// an edge that a run has missed. Misses are not recorded; every edge is assumed to be missed by some run.
fn simplified(virgin: &[u8]) -> Vec<u8> {
    if virgin.iter().all(|byte| *byte == 0xff) {
        return virgin.to_vec();
    }
    let of = |byte: &u8| if *byte == 0xff { !NOT_HIT } else { !(HIT | NOT_HIT) };
    virgin.iter().map(of).collect()
}

fn by_hit(simplified: &[u8]) -> Vec<u8> {
    simplified.iter().map(|byte| if byte & HIT == 0 { 0xfe } else { 0xff }).collect()
}

/// The difference of two states.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Beyond {
    /// Edges that the other state has not seen.
    pub edges: Vec<usize>,
    /// Edges that the other state has seen, but not with these hit counts.
    pub counts: Vec<usize>,
    pub crashes: usize,
    pub hangs: usize,
    /// Key, value in this state, and value in the other.
    pub keys: Vec<(u32, u32, u32)>,
}

impl Beyond {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Known {
    /// A state without any runs.
    #[must_use]
    pub fn new(parts: Vec<Part>, map_size: usize, domains: &[Domain]) -> Self {
        let virgin = || vec![0xff; map_size];
        Self {
            unnamed: parts.is_empty(),
            simplified: Default::default(),
            parts,
            edges: virgin(),
            crashes: virgin(),
            hangs: virgin(),
            domains: domains.to_vec(),
            values: BTreeMap::new(),
        }
    }

    /// Builds a state from AFL's maps of edges, crashes and hangs, all of the same size.
    #[must_use]
    pub fn from_maps([edges, crashes, hangs]: [Vec<u8>; 3]) -> Self {
        let maps = [crashes, hangs];
        let [crashes, hangs] = [&maps[0], &maps[1]].map(|map| by_hit(map));
        let mut known = Self { edges, crashes, hangs, ..Self::default() };
        known.set_simplified(maps);
        known
    }

    /// The maps of crashes and hangs in AFL's simplified form.
    #[must_use]
    pub fn simplified(&self) -> [Vec<u8>; 2] {
        let [crashes, hangs] = &self.simplified;
        [(crashes, &self.crashes), (hangs, &self.hangs)].map(|(exact, map)| {
            match exact.is_empty() {
                true => simplified(map),
                false => exact.clone(),
            }
        })
    }

    /// Stores the simplified `maps` that hold more than `crashes` and `hangs`.
    fn set_simplified(&mut self, maps: [Vec<u8>; 2]) {
        let [crashes, hangs] = maps;
        let kept = |exact: Vec<u8>, map: &[u8]| {
            if exact == simplified(map) { Vec::new() } else { exact }
        };
        self.simplified = [kept(crashes, &self.crashes), kept(hangs, &self.hangs)];
    }

    #[must_use]
    pub fn map_size(&self) -> usize {
        self.edges.len()
    }

    /// Numbers of edges seen in good runs, in crashes and in hangs, and of keys that left their initial value.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        let seen = |map: &[u8]| map.iter().filter(|byte| **byte != 0xff).count();
        [seen(&self.edges), seen(&self.crashes), seen(&self.hangs), self.values.len()]
    }

    /// Adds one run.
    pub fn add(&mut self, run: &Observation<'_>) {
        let size = run.edges.len().max(self.map_size());
        for map in [&mut self.edges, &mut self.crashes, &mut self.hangs] {
            map.resize(size, 0xff);
        }
        let exact = self.simplified.iter().any(|map| !map.is_empty()).then(|| self.simplified());
        let (map, classes) = match run.exit {
            ExitKind::Ok => (&mut self.edges, Classes::Counts),
            ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => (&mut self.hangs, Classes::Binary),
            ExitKind::Crash { .. } | ExitKind::Oom => (&mut self.crashes, Classes::Binary),
        };
        coverage::merge(run.edges, &mut map[..run.edges.len()], classes);
        if let Some(exact) = exact {
            self.join_simplified(exact);
        }
        if run.exit == ExitKind::Ok {
            let values = &mut self.values;
            run.dsf.for_each_changed(|domain, key, value| {
                let known = values.get(&key).copied().unwrap_or(domain.initial);
                values.insert(key, domain.reducer.apply(known, value));
            });
        }
    }

    /// Whether `value` improves the known value of `key`.
    #[must_use]
    pub fn gains(&self, key: u32, value: u32) -> bool {
        let domain = self.domains.iter().find(|domain| key < domain.end());
        domain.is_none_or(|domain| {
            let known = self.values.get(&key).copied().unwrap_or(domain.initial);
            domain.reducer.join(known, value) != known
        })
    }

    /// Checks that `other` can be joined with this state.
    pub fn check(&self, other: &Self) -> Result<(), Mismatch> {
        same_parts(&self.parts, &other.parts)?;
        if self.map_size() != other.map_size() {
            let (found, expected) = (other.map_size(), self.map_size());
            return Err(Mismatch::MapSize { found, expected });
        }
        let known = !self.domains.is_empty() && !other.domains.is_empty();
        // A file of another tool names neither the program nor its domains.
        if self.domains != other.domains
            && (known || !(self.parts.is_empty() || other.parts.is_empty()))
        {
            let (found, expected) = (names(&other.domains), names(&self.domains));
            return Err(Mismatch::Domains { found, expected });
        }
        Ok(())
    }

    /// Adds the state `other`. Changes nothing on a mismatch.
    pub fn join(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check(other)?;
        let mut exact = self.simplified();
        exact.iter_mut().zip(other.simplified()).for_each(|(own, other)| intersect(own, &other));
        intersect(&mut self.edges, &other.edges);
        intersect(&mut self.crashes, &other.crashes);
        intersect(&mut self.hangs, &other.hangs);
        self.set_simplified(exact);
        self.unnamed |= other.unnamed;
        if self.parts.is_empty() {
            self.parts.clone_from(&other.parts);
        }
        if self.domains.is_empty() {
            self.domains.clone_from(&other.domains);
        }
        for (key, value) in &other.values {
            if let Some(domain) = self.domains.iter().find(|domain| *key < domain.end()) {
                let known = self.values.entry(*key).or_insert(domain.initial);
                *known = domain.reducer.join(*known, *value);
            }
        }
        Ok(())
    }

    /// Merges the previous simplified maps back in after `crashes` or `hangs` have changed.
    fn join_simplified(&mut self, mut exact: [Vec<u8>; 2]) {
        let now = [&self.crashes, &self.hangs].map(|map| simplified(map));
        for (exact, now) in exact.iter_mut().zip(now) {
            exact.resize(now.len(), 0xff);
            intersect(exact, &now);
        }
        self.set_simplified(exact);
    }

    /// The set difference `self - other`.
    pub fn beyond(&self, other: &Self) -> Result<Beyond, Mismatch> {
        self.check(other)?;
        let mut beyond = Beyond::default();
        for (place, (own, known)) in self.edges.iter().zip(&other.edges).enumerate() {
            match !own & known {
                0 => {}
                _ if *known == 0xff => beyond.edges.push(place),
                _ => beyond.counts.push(place),
            }
        }
        let more = |own: &[u8], known: &[u8]| {
            own.iter().zip(known).filter(|(own, known)| !**own & **known != 0).count()
        };
        beyond.crashes = more(&self.crashes, &other.crashes);
        beyond.hangs = more(&self.hangs, &other.hangs);
        for (key, value) in &self.values {
            let Some(domain) = self.domains.iter().find(|domain| *key < domain.end()) else {
                continue;
            };
            if other.gains(*key, *value) {
                let known = other.values.get(key).copied().unwrap_or(domain.initial);
                beyond.keys.push((*key, *value, known));
            }
        }
        Ok(beyond)
    }
}

/// Keeps in `map` what neither virgin map has seen.
fn intersect(map: &mut [u8], other: &[u8]) {
    map.iter_mut().zip(other).for_each(|(own, other)| *own &= other);
}

fn same_parts(expected: &[Part], found: &[Part]) -> Result<(), Mismatch> {
    if expected.is_empty() || found.is_empty() {
        return Ok(());
    }
    if expected.len() == found.len() && expected.iter().zip(found).all(|(own, other)| own.is(other))
    {
        return Ok(());
    }
    for (own, other) in expected.iter().zip(found) {
        if own.name != other.name {
            break;
        }
        if !own.is(other) {
            return Err(Mismatch::Build { name: own.name.clone() });
        }
    }
    let names =
        |parts: &[Part]| parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", ");
    let (expected, found) = (names(expected), names(found));
    Err(Mismatch::Program { found, expected })
}

fn names(domains: &[Domain]) -> String {
    if domains.is_empty() {
        return "none".into();
    }
    let name = |(index, domain): (usize, &Domain)| {
        format!("{} ({} {})", domain.label(index), domain.size, domain.reducer.name())
    };
    domains.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
}

impl Judge {
    /// The judge's state as a [`Known`] of the program with these `parts`.
    #[must_use]
    pub fn known(&self, parts: Vec<Part>) -> Known {
        Known {
            unnamed: self.unnamed || parts.is_empty(),
            simplified: Default::default(),
            parts,
            edges: self.virgin.clone(),
            crashes: self.virgin_crash.clone(),
            hangs: self.virgin_hang.clone(),
            domains: self.aggregates.domains().to_vec(),
            values: self.aggregates.changed().collect(),
        }
    }

    /// Merges the knowledge of others, which is then no longer new. `known` must pass [`Known::check`].
    pub fn know(&mut self, known: &Known) {
        self.make_room(known.map_size());
        intersect(&mut self.virgin, &known.edges);
        intersect(&mut self.virgin_crash, &known.crashes);
        intersect(&mut self.virgin_hang, &known.hangs);
        self.aggregates.join(known.values.iter().map(|(key, value)| (*key, *value)));
        self.edges_moved = true;
        self.unnamed |= known.unnamed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DsfView, Reducer};
    use proptest::prelude::*;
    use std::time::Duration;

    const SIZE: usize = 24;
    const REDUCERS: [Reducer; 5] =
        [Reducer::Max, Reducer::Min, Reducer::LogBucket, Reducer::BitUnion, Reducer::BitIntersect];

    fn domains() -> Vec<Domain> {
        let domain = |(start, reducer)| {
            let lowest = matches!(reducer, Reducer::Min | Reducer::BitIntersect);
            let initial = if lowest { u32::MAX } else { 0 };
            Domain { name: format!("d{start}"), start, size: 1, reducer, initial }
        };
        (0..).zip(REDUCERS).map(domain).collect()
    }

    fn part() -> Part {
        Part { name: "a".into(), build: "1".into(), file: "/x/a".into(), counters: 0..SIZE }
    }

    fn run<'a>(
        exit: ExitKind,
        edges: &'a [u8],
        domains: &'a [Domain],
        values: &'a [u32],
    ) -> Observation<'a> {
        let dsf = DsfView { domains, values, touched: None };
        Observation {
            index: 0,
            exit,
            duration: Duration::ZERO,
            edges,
            dsf,
            comparisons: Default::default(),
        }
    }

    /// Generates states from runs: states that no run can produce need not be joined.
    fn state() -> impl Strategy<Value = Known> {
        let one =
            (0..3u8, prop::collection::vec(0..9u8, SIZE), prop::collection::vec(any::<u32>(), 5));
        (any::<bool>(), prop::collection::vec(one, 0..5)).prop_map(|(foreign, runs)| {
            let domains = domains();
            let (parts, domains) =
                if foreign { (Vec::new(), Vec::new()) } else { (vec![part()], domains) };
            let mut known = Known::new(parts, SIZE, &domains);
            for (exit, edges, values) in runs {
                let exit = [ExitKind::Ok, ExitKind::Hang, ExitKind::Crash { signal: 6 }]
                    [usize::from(exit)];
                known.add(&run(exit, &edges, &domains, &values[..domains.len()]));
            }
            known
        })
    }

    fn joined(a: &Known, b: &Known) -> Known {
        let mut joined = a.clone();
        joined.join(b).expect("one program");
        joined
    }

    proptest! {
        #[test]
        fn order_does_not_matter(a in state(), b in state()) {
            prop_assert_eq!(joined(&a, &b), joined(&b, &a));
        }

        #[test]
        fn grouping_does_not_matter(a in state(), b in state(), c in state()) {
            prop_assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)));
        }

        #[test]
        fn twice_is_once(a in state(), b in state()) {
            prop_assert_eq!(&joined(&a, &a), &a);
            let both = joined(&a, &b);
            prop_assert_eq!(&joined(&both, &b), &both);
        }

        #[test]
        fn nothing_is_forgotten(a in state(), b in state()) {
            let both = joined(&a, &b);
            prop_assert!(a.beyond(&both).unwrap().is_empty());
            prop_assert!(b.beyond(&both).unwrap().is_empty());
            let more = both.beyond(&a).unwrap();
            prop_assert_eq!(more.is_empty(), both.edges == a.edges && both.crashes == a.crashes
                && both.hangs == a.hangs && both.values == a.values);
        }

        #[test]
        fn a_judge_that_knows_both_finds_nothing_new(
            edges in prop::collection::vec(0..9u8, SIZE),
            values in prop::collection::vec(any::<u32>(), 5),
            other in state(),
        ) {
            let domains = domains();
            let run = run(ExitKind::Ok, &edges, &domains, &values);
            let mut known = Known::new(vec![part()], SIZE, &domains);
            known.add(&run);
            let mut judge = Judge::new(SIZE, &domains, true);
            judge.know(&joined(&known, &other));
            let verdict = judge.judge(&run);
            prop_assert!(!verdict.is_interesting(), "{:?}", verdict);
        }

        #[test]
        fn a_judge_passes_on_what_it_has_learned(a in state()) {
            let domains = domains();
            let mut judge = Judge::new(SIZE, &domains, true);
            judge.know(&a);
            let known = judge.known(a.parts.clone());
            prop_assert_eq!((known.edges, known.crashes, known.hangs), (a.edges, a.crashes, a.hangs));
            prop_assert_eq!(known.values, a.values);
        }
    }

    #[test]
    fn states_of_other_programs_are_distinguished() {
        let own = Known::new(vec![part()], SIZE, &domains());
        let mut other = own.clone();
        other.parts[0].build = "2".into();
        assert_eq!(own.check(&other), Err(Mismatch::Build { name: "a".into() }));
        other.parts[0].name = "b".into();
        assert!(matches!(own.check(&other), Err(Mismatch::Program { .. })));
        // A copy under another name.
        let mut other = own.clone();
        other.parts[0].name = "b".into();
        assert_eq!(own.check(&other), Ok(()));
        let mut other = own.clone();
        other.parts.push(Part { name: "lib.so".into(), ..part() });
        assert!(matches!(own.check(&other), Err(Mismatch::Program { .. })));
        let other = Known::new(vec![part()], SIZE, &domains()[..3]);
        assert!(own.check(&other).unwrap_err().to_string().contains("d4 (1 BITWISE_INTERSECTION)"));
        let other = Known::new(Vec::new(), SIZE + 1, &[]);
        assert!(matches!(own.check(&other), Err(Mismatch::MapSize { .. })));
        let mut moved = own.clone();
        moved.parts[0].file = "/y/a".into();
        assert_eq!(own.check(&moved), Ok(()));
    }
}
