//! Joined states and differences as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::engine::domain::KeyNames;
use crate::engine::feedback::{Beyond, Known, Part};
use crate::inspect::lines::Places;
use crate::inspect::parts::build_of;
use crate::inspect::sites;
use crate::sys::remedy::Remedy;

/// Numbers of edges in good runs, crashes and hangs, and of keys.
#[derive(Serialize)]
struct MergeCounts {
    version: u32,
    states: usize,
    edges: usize,
    crash_edges: usize,
    hang_edges: usize,
    keys: usize,
}

pub(super) fn counts(states: usize, [edges, crashes, hangs, keys]: [usize; 4]) -> String {
    format!(
        "merged {states} states: {edges} edges, {crashes} crash edges, {hangs} timeout edges, \
         {keys} keys\n"
    )
}

pub(super) fn counts_json(
    states: usize,
    [edges, crash_edges, hang_edges, keys]: [usize; 4],
) -> String {
    line(&MergeCounts { version: 1, states, edges, crash_edges, hang_edges, keys })
}

fn line(document: &impl Serialize) -> String {
    serde_json::to_string(document).map_or_else(|_| String::new(), |text| text + "\n")
}

/// Names of edges and keys, if the program's files are available.
pub(super) struct EdgeNames<'a> {
    known: &'a Known,
    places: Vec<Option<Places>>,
    keys: KeyNames,
    /// Reasons for missing names, a line per file.
    pub(super) notes: Vec<String>,
}

#[derive(Serialize)]
struct Difference {
    version: u32,
    /// Edges that the other state lacks.
    edges: Vec<MergedEdge>,
    /// Edges that the other state has with other hit counts only.
    counts: Vec<MergedEdge>,
    crash_edges: usize,
    hang_edges: usize,
    keys: Vec<MergedKey>,
}

#[derive(Default, Serialize)]
struct MergedEdge {
    index: usize,
    module: String,
    function: String,
    file: String,
    line: u32,
}

#[derive(Serialize)]
struct MergedKey {
    key: u32,
    domain: String,
    value: u32,
    before: u32,
    function: String,
    place: String,
}

impl<'a> EdgeNames<'a> {
    pub(super) fn read(known: &'a Known) -> Self {
        let (mut places, mut files, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for part in &known.parts {
            match read_part(part) {
                Ok(read) => {
                    places.push(Some(read));
                    files.push(Path::new(&part.file));
                }
                Err(note) => {
                    places.push(None);
                    notes.push(note);
                }
            }
        }
        let keys = KeyNames::new(&known.domains, sites::of_files(&files));
        Self { known, places, keys, notes }
    }

    fn edge(&self, index: usize) -> MergedEdge {
        let within = |part: &Part| part.counters.contains(&index);
        let Some(at) = self.known.parts.iter().position(within) else {
            return MergedEdge { index, ..MergedEdge::default() };
        };
        let part = &self.known.parts[at];
        let places = self.places[at].as_ref();
        let place = places.and_then(|places| places.of(index - part.counters.start));
        MergedEdge {
            index,
            module: part.name.clone(),
            function: place.as_ref().map(|place| place.function.to_string()).unwrap_or_default(),
            file: place.as_ref().map(|place| place.file.to_string()).unwrap_or_default(),
            line: place.map_or(0, |place| place.line),
        }
    }

    fn key(&self, key: u32, value: u32, before: u32) -> MergedKey {
        let domains = &self.known.domains;
        let domain = domains.iter().enumerate().find(|(_, domain)| domain.holds(key));
        let label = domain.map(|(index, domain)| domain.label(index)).unwrap_or_default();
        let names = self.keys.names(key);
        let (function, place) = names
            .first()
            .map(|name| (name.function.clone(), name.place.clone()))
            .unwrap_or_default();
        MergedKey { key, domain: label, value, before, function, place }
    }

    fn difference(&self, beyond: &Beyond) -> Difference {
        let edges = |indices: &[usize]| indices.iter().map(|index| self.edge(*index)).collect();
        Difference {
            version: 1,
            edges: edges(&beyond.edges),
            counts: edges(&beyond.counts),
            crash_edges: beyond.crashes,
            hang_edges: beyond.hangs,
            keys: beyond
                .keys
                .iter()
                .map(|&(key, value, before)| self.key(key, value, before))
                .collect(),
        }
    }

    pub(super) fn json(&self, beyond: &Beyond) -> String {
        line(&self.difference(beyond))
    }

    pub(super) fn text(&self, beyond: &Beyond) -> String {
        let Difference { edges, counts, crash_edges, hang_edges, keys, .. } =
            self.difference(beyond);
        let mut text = String::new();
        for (kind, edges) in [("edge", &edges), ("count", &counts)] {
            for MergedEdge { index, module, function, file, line } in edges {
                let place = if file.is_empty() { String::new() } else { format!(" {file}:{line}") };
                let function = if function.is_empty() { "?" } else { function };
                let _ = writeln!(text, "{kind} {index} {module} {function}{place}");
            }
        }
        for MergedKey { key, domain, value, before, function, place } in &keys {
            let name = format!("{function} {place}");
            let name = if name.trim().is_empty() { "" } else { name.trim() };
            let _ = writeln!(text, "key {domain}[{key}] = {value} (before: {before}) {name}");
        }
        let _ = writeln!(
            text,
            "beyond: {} edges, {} hit counts, {crash_edges} crash edges, {hang_edges} timeout edges, {} keys",
            edges.len(),
            counts.len(),
            keys.len()
        );
        text
    }
}

/// The counters of a file, if it is still the state's build.
fn read_part(part: &Part) -> Result<Places, String> {
    let path = Path::new(&part.file);
    match build_of(path) {
        None => Err(format!("no names of {}: {} is not there", part.name, path.display())),
        Some(build) if build != part.build => {
            Err(format!("no names of {}: {} is another build", part.name, path.display()))
        }
        Some(_) => Places::read(path, None)
            .map_err(|error| format!("no names of {}: {error} ({})", part.name, error.remedy())),
    }
}
