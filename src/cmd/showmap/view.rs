//! Formats a map as text, as bytes or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::args::Args;
use crate::cmd::tool::exit_name;
use crate::cmin;
use crate::engine::coverage;
use crate::engine::executor::ExitKind;

/// Map sizes in AFL are multiples of this.
const MAP_UNIT: usize = 64;

/// Value shown for a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CounterValues {
    /// Hit-count class, 1 to 8.
    Classes,
    Counts,
    /// 1 if hit at all.
    Hit,
}

#[derive(Clone, Copy, Debug)]
enum MapForm {
    Lines,
    Cmin,
    Binary,
    Json,
}

/// How maps are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapView {
    pub(super) values: CounterValues,
    form: MapForm,
    pub(super) domains: bool,
}

/// Data to show: counters, and the keys that left their initial value.
pub(super) struct ShownMaps<'a> {
    pub(super) exit: Option<ExitKind>,
    pub(super) edges: &'a [u8],
    pub(super) keys: &'a [(u32, u32)],
}

#[derive(Serialize)]
struct MapDocument<'a> {
    version: u32,
    /// `ok`, `crash`, `hang`, `oom`; null for the sum of several runs.
    exit: Option<&'static str>,
    signal: Option<i32>,
    map_size: usize,
    edges: Vec<Edge>,
    dsf: &'a [(u32, u32)],
}

#[derive(Serialize)]
struct Edge {
    index: usize,
    count: u8,
    class: u8,
}

impl CounterValues {
    pub(super) fn of(self, count: u8) -> u8 {
        match self {
            Self::Classes => coverage::class_number(count),
            Self::Counts => count,
            Self::Hit => u8::from(count != 0),
        }
    }
}

impl MapView {
    pub(super) fn of(args: &Args) -> Self {
        // Hit counts of several runs together are meaningless.
        let values = match () {
            () if args.edges_only || args.collect => CounterValues::Hit,
            () if args.raw || args.unclassified => CounterValues::Counts,
            () => CounterValues::Classes,
        };
        let form = match () {
            () if args.json => MapForm::Json,
            () if args.cmin => MapForm::Cmin,
            () if args.binary => MapForm::Binary,
            () => MapForm::Lines,
        };
        Self { values, form, domains: args.dsf || args.json }
    }

    /// Returns true for the format of `afl-cmin`, which omits runs that did not end normally.
    pub(super) fn is_for_cmin(self) -> bool {
        matches!(self.form, MapForm::Cmin)
    }

    pub(super) fn render(self, shown: &ShownMaps<'_>) -> Vec<u8> {
        match self.form {
            MapForm::Lines => self.lines(shown).into_bytes(),
            MapForm::Cmin => {
                cmin::trace_lines(shown.edges, |count| self.values.of(count)).into_bytes()
            }
            MapForm::Binary => self.binary(shown.edges),
            MapForm::Json => json(shown).into_bytes(),
        }
    }

    fn lines(self, shown: &ShownMaps<'_>) -> String {
        let mut text = String::new();
        for (index, count) in hit(shown.edges) {
            let _ = writeln!(text, "{index:06}:{}", self.values.of(count));
        }
        for (key, value) in shown.keys.iter().filter(|_| self.domains) {
            let _ = writeln!(text, "dsf[{key}] = {value}");
        }
        text
    }

    /// Formats classes as one bit each, as in AFL's memory.
    fn binary(self, edges: &[u8]) -> Vec<u8> {
        let byte = |count: &u8| match self.values.of(*count) {
            0 => 0,
            class if self.values == CounterValues::Classes => 1 << (class - 1),
            value => value,
        };
        let mut map: Vec<u8> = edges.iter().map(byte).collect();
        map.resize(edges.len().next_multiple_of(MAP_UNIT), 0);
        map
    }

    /// The summary line.
    pub(super) fn summary(self, edges: &[u8], to: &str) -> String {
        let values = || hit(edges).map(|(_, count)| u64::from(self.values.of(count)));
        format!(
            "[+] Captured {} tuples (map size {}, highest value {}, total values {}) in '{to}'.",
            values().count(),
            edges.len(),
            values().max().unwrap_or(0),
            values().sum::<u64>()
        )
    }
}

fn hit(edges: &[u8]) -> impl Iterator<Item = (usize, u8)> + '_ {
    edges.iter().copied().enumerate().filter(|(_, count)| *count != 0)
}

fn json(shown: &ShownMaps<'_>) -> String {
    let (exit, signal) = shown.exit.map(exit_name).unzip();
    let edge = |(index, count)| Edge { index, count, class: coverage::class_number(count) };
    let edges = hit(shown.edges).map(edge).collect();
    let document = MapDocument {
        version: 1,
        exit,
        signal: signal.flatten(),
        map_size: shown.edges.len(),
        edges,
        dsf: shown.keys,
    };
    serde_json::to_string(&document).map_or_else(|_| String::new(), |text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: [u8; 5] = [0, 1, 9, 0, 200];

    fn rendered(values: CounterValues, form: MapForm) -> Vec<u8> {
        let view = MapView { values, form, domains: true };
        view.render(&ShownMaps { exit: Some(ExitKind::Ok), edges: &MAP, keys: &[(3, 7)] })
    }

    fn text(values: CounterValues, form: MapForm) -> String {
        String::from_utf8(rendered(values, form)).unwrap()
    }

    #[test]
    fn lines_have_classes_counts_or_ones() {
        assert_eq!(
            text(CounterValues::Classes, MapForm::Lines),
            "000001:1\n000002:5\n000004:8\ndsf[3] = 7\n"
        );
        assert_eq!(
            text(CounterValues::Counts, MapForm::Lines),
            "000001:1\n000002:9\n000004:200\ndsf[3] = 7\n"
        );
        assert_eq!(text(CounterValues::Hit, MapForm::Cmin), "11\n12\n14\n");
        assert_eq!(text(CounterValues::Classes, MapForm::Cmin), "11\n52\n84\n");
    }

    #[test]
    fn bytes_are_those_of_afls_memory() {
        let map = rendered(CounterValues::Classes, MapForm::Binary);
        assert_eq!((map.len(), &map[..5]), (64, &[0, 1, 16, 0, 128][..]));
        assert_eq!(&rendered(CounterValues::Counts, MapForm::Binary)[..5], &MAP);
    }

    #[test]
    fn json_has_it_all() {
        let value: serde_json::Value =
            serde_json::from_str(&text(CounterValues::Hit, MapForm::Json)).unwrap();
        assert_eq!(value["edges"][1]["count"], 9);
        assert_eq!(value["edges"][1]["class"], 5);
        assert_eq!((&value["exit"], &value["dsf"][0][1]), (&"ok".into(), &7.into()));
    }
}
