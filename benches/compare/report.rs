//! Tables and a picture of the rows that are comparable. Pure: rows in, text out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::kinds::{REFERENCE, partner};
use super::row::{Row, edges};
use super::sets::{JUDGING, Sets, TUNING, parts};
use super::statistics::{a12, geometric_mean, mann_whitney, median};

/// Functions named for each pair of kinds on a target.
const MOST_FUNCTIONS: usize = 4;

/// Function of each edge, by target.
pub(super) type Functions = BTreeMap<String, Vec<String>>;

pub(super) struct Report {
    rows: Vec<Row>,
    sets: Sets,
}

impl Report {
    /// Rows that [`super::row::comparable`] has left.
    pub(super) fn new(rows: Vec<Row>, sets: Sets) -> Self {
        Self { rows, sets }
    }

    fn of(&self, target: &str, kind: &str) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.target == target && row.kind == kind).collect()
    }

    fn edges(&self, target: &str, kind: &str) -> Vec<f64> {
        self.of(target, kind).iter().map(|row| f64::from(row.edges)).collect()
    }

    fn names(&self, name: impl Fn(&Row) -> &String) -> Vec<String> {
        let names: BTreeSet<&String> = self.rows.iter().map(name).collect();
        names.into_iter().cloned().collect()
    }

    /// The reference and its partner come first.
    fn kinds(&self) -> Vec<String> {
        let mut kinds = self.names(|row| &row.kind);
        kinds.sort_by_key(|kind| (partner(kind) != *kind, kind.clone()));
        kinds
    }

    pub(super) fn text(&self, functions: &Functions) -> String {
        let parts =
            [self.builds(), self.seeds(), self.table(), self.means(), self.one_sided(functions)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// What the kinds are, and on which machines they ran.
    fn builds(&self) -> String {
        let mut text = String::from(
            "| kind | build | options | campaigns | CPU s each | machines |\n|---|---|---|---|---|---|\n",
        );
        for kind in self.kinds() {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.kind == kind).collect();
            let machines: BTreeSet<String> =
                rows.iter().map(|row| format!("{} ({} cores)", row.machine, row.cores)).collect();
            let machines = machines.into_iter().collect::<Vec<_>>().join("; ");
            let Some(last) = rows.last() else { continue };
            let profile = if last.profile.is_empty() { "" } else { ", " };
            let cpu = median(&rows.iter().map(|row| row.cpu).collect::<Vec<_>>());
            let _ = writeln!(
                text,
                "| {kind} | {}{profile}{} | {} | {} | {cpu:.1} | {machines} |",
                last.commit,
                last.profile,
                last.options,
                rows.len()
            );
        }
        text
    }

    /// Which seeds the campaigns began with.
    fn seeds(&self) -> String {
        let targets = self.names(|row| &row.target);
        let seeds: BTreeSet<&str> = targets.iter().map(|target| parts(target).1).collect();
        let named = seeds.iter().map(|name| match *name {
            "" => "the small ones of each target".to_owned(),
            name => format!("{name} (rows TARGET+{name})"),
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { String::new() } else { format!("Seeds: {}.\n", named.join("; ")) }
    }

    fn table(&self) -> String {
        let mut text = String::from(
            "| target | kind | n | edges, median (range) | runs/CPU s | ratio | A12 | p |\n|---|---|---|---|---|---|---|---|\n",
        );
        for target in self.names(|row| &row.target) {
            for kind in self.kinds() {
                let (own, other) =
                    (self.edges(&target, &kind), self.edges(&target, &partner(&kind)));
                if own.is_empty() {
                    continue;
                }
                let rates: Vec<f64> =
                    self.of(&target, &kind).iter().map(|row| row.runs as f64 / row.cpu).collect();
                let least = own.iter().copied().fold(f64::INFINITY, f64::min);
                let most = own.iter().copied().fold(0.0, f64::max);
                let against = if kind == partner(&kind) || other.is_empty() {
                    "| | ".into()
                } else {
                    let ratio = median(&own) / median(&other);
                    let p = mann_whitney(&own, &other);
                    format!("{ratio:.3} | {:.2} | {p:.3}", a12(&own, &other))
                };
                let _ = writeln!(
                    text,
                    "| {target} | {kind} | {} | {:.0} ({least:.0} to {most:.0}) | {:.0} | {against} |",
                    own.len(),
                    median(&own),
                    median(&rates)
                );
            }
        }
        text
    }

    /// Of each set by itself, if there are targets of both.
    fn means(&self) -> String {
        let all = self.names(|row| &row.target);
        let set = |set: &str| -> Vec<String> {
            all.iter().filter(|target| self.sets.of(target) == set).cloned().collect()
        };
        let (judging, tuning) = (set(JUDGING), set(TUNING));
        if judging.is_empty() || tuning.is_empty() {
            return self.summary(&all);
        }
        format!(
            "The judging set:\n\n{}\nThe tuning set:\n\n{}",
            self.summary(&judging),
            self.summary(&tuning)
        )
    }

    /// Over those of these targets that both kinds have.
    fn summary(&self, targets: &[String]) -> String {
        let mut text = String::from(
            "| kind | against | targets | geometric mean of ratios | better, p < 0.05 | worse, p < 0.05 |\n|---|---|---|---|---|---|\n",
        );
        for (kind, other) in self.pairs() {
            let samples: Vec<(Vec<f64>, Vec<f64>)> = targets
                .iter()
                .map(|target| (self.edges(target, &kind), self.edges(target, &other)))
                .filter(|(own, theirs)| !own.is_empty() && !theirs.is_empty())
                .collect();
            let ratios: Vec<f64> =
                samples.iter().map(|(own, theirs)| median(own) / median(theirs)).collect();
            let clear = |better: bool| {
                let is_clear = |(own, theirs): &&(Vec<f64>, Vec<f64>)| {
                    mann_whitney(own, theirs) < 0.05 && (a12(own, theirs) > 0.5) == better
                };
                samples.iter().filter(is_clear).count()
            };
            if !ratios.is_empty() {
                let _ = writeln!(
                    text,
                    "| {kind} | {other} | {} | {:.3} | {} | {} |",
                    ratios.len(),
                    geometric_mean(&ratios),
                    clear(true),
                    clear(false)
                );
            }
        }
        text
    }

    /// Each kind, and what it is compared with; the reference also with its own dictionary.
    fn pairs(&self) -> Vec<(String, String)> {
        let pairs = self.kinds().into_iter().map(|kind| (partner(&kind), kind));
        pairs
            .map(
                |(other, kind)| {
                    if other == kind { (kind, REFERENCE.into()) } else { (kind, other) }
                },
            )
            .filter(|(kind, other)| kind != other)
            .collect()
    }

    /// Edges that some campaign of one kind has reached, and none of the other.
    fn one_sided(&self, functions: &Functions) -> String {
        let mut text = String::from(
            "| target | kind | only it | against | only that | functions of the first, of the second |\n|---|---|---|---|---|---|\n",
        );
        let all = |target: &str, kind: &str| -> BTreeSet<usize> {
            self.of(target, kind).iter().flat_map(|row| edges(&row.bits)).collect()
        };
        for target in self.names(|row| &row.target) {
            for (kind, other) in self.pairs() {
                let (own, theirs) = (all(&target, &kind), all(&target, &other));
                if own.is_empty() || theirs.is_empty() {
                    continue;
                }
                let names = functions.get(&target).map(Vec::as_slice).unwrap_or_default();
                let [first, second] = [(&own, &theirs), (&theirs, &own)]
                    .map(|(a, b)| a.difference(b).copied().collect::<Vec<usize>>());
                let _ = writeln!(
                    text,
                    "| {target} | {kind} | {} | {other} | {} | {}; {} |",
                    first.len(),
                    second.len(),
                    most_frequent(&first, names),
                    most_frequent(&second, names)
                );
            }
        }
        text
    }

    /// A small chart a target: median edges by CPU time, one line a kind.
    pub(super) fn picture(&self) -> String {
        let (targets, kinds) = (self.names(|row| &row.target), self.kinds());
        let height = HEAD + targets.len().div_ceil(COLUMNS) * TALL;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            COLUMNS * WIDE
        );
        for (index, kind) in kinds.iter().enumerate() {
            let (x, y) = (10 + index % 6 * 145, 15 + index / 6 * 15);
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" fill=\"{}\">— {}</text>",
                color(index),
                escaped(kind)
            );
        }
        for (index, target) in targets.iter().enumerate() {
            let corner = (index % COLUMNS * WIDE, HEAD + index / COLUMNS * TALL);
            svg += &self.chart(target, &kinds, corner);
        }
        svg + "</svg>\n"
    }

    fn chart(&self, target: &str, kinds: &[String], (left, top): (usize, usize)) -> String {
        let lines: Vec<Vec<(f64, f64)>> =
            kinds.iter().map(|kind| median_line(&self.of(target, kind))).collect();
        let points = || lines.iter().flatten();
        let end = points().map(|point| point.0).fold(1.0, f64::max);
        let least = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let most = points().map(|point| point.1).fold(1.0, f64::max);
        let (width, height) = ((WIDE - 60) as f64, (TALL - 50) as f64);
        let (x0, y0) = (left as f64 + 45.0, top as f64 + 20.0);
        let mut svg = format!(
            "<text x=\"{x0}\" y=\"{}\" font-weight=\"bold\">{}</text>\n<rect x=\"{x0}\" y=\"{y0}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#999\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most:.0}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{least:.0}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{end:.0} s</text>\n",
            y0 - 5.0,
            escaped(target),
            x0 - 4.0,
            y0 + 10.0,
            x0 - 4.0,
            y0 + height,
            x0 + width,
            y0 + height + 14.0
        );
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let place = |(x, y): &(f64, f64)| {
                let up = (y - least) / (most - least).max(1.0);
                format!("{:.1},{:.1}", x0 + x / end * width, y0 + height * (1.0 - up))
            };
            let places = line.iter().map(place).collect::<Vec<_>>().join(" ");
            let _ = writeln!(
                svg,
                "<polyline points=\"{places}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
                color(index)
            );
        }
        svg
    }
}

const COLUMNS: usize = 3;
const WIDE: usize = 300;
const TALL: usize = 200;
const HEAD: usize = 50;

fn color(index: usize) -> &'static str {
    const COLORS: [&str; 10] = [
        "#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf",
        "#bcbd22", "#333333",
    ];
    COLORS[index % COLORS.len()]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// The median of time and of edges at each point that all rows have.
fn median_line(rows: &[&Row]) -> Vec<(f64, f64)> {
    let points = rows.iter().map(|row| row.samples.len()).min().unwrap_or(0);
    let at = |point: usize| {
        let (times, edges): (Vec<f64>, Vec<f64>) = rows
            .iter()
            .map(|row| row.samples[point])
            .map(|(cpu, edges)| (cpu, f64::from(edges)))
            .unzip();
        (median(&times), median(&edges))
    };
    (0..points).map(at).collect()
}

/// The functions that have most of these edges, and how many.
fn most_frequent(edges: &[usize], functions: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in edges {
        *counts.entry(functions.get(*edge).map_or("?", String::as_str)).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let named = counts.iter().take(MOST_FUNCTIONS);
    let named: Vec<String> = named.map(|(name, count)| format!("{name} {count}")).collect();
    if named.is_empty() { "–".into() } else { named.join(", ") }
}
