//! Formats keys as lines or as JSON. Lines begin as in FuzzFactory's `afl-showdsf`; names and files follow in columns.

use std::cmp::Reverse;
use std::ffi::OsString;

use serde::Serialize;

use crate::cmd::coverage::CoverageStates;
use crate::engine::domain::{Aggregates, Domain, KeyNames, Reducer, Site};
use crate::report::owners::Owners;

/// Version of the JSON format; adding a field does not change it.
const JSON_VERSION: u32 = 1;
/// Maximum number of files per line; JSON has all.
const FILES_SHOWN: usize = 3;

/// One key.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct KeyRow {
    key: u32,
    /// Index of the domain.
    domain: usize,
    value: Value,
    files: Vec<String>,
}

#[derive(Debug, Eq, PartialEq)]
enum Value {
    Aggregate(u32),
    /// Values in two folders; None where the key was not reached.
    Both(Option<u32>, Option<u32>),
}

/// All keys that left their initial value and exceed the loaded state, ascending, or the best `top` of each domain.
pub(super) fn rows(
    aggregates: &Aggregates,
    states: &CoverageStates,
    top: Option<usize>,
    owners: &Owners,
) -> Vec<KeyRow> {
    let mut rows = Vec::new();
    for (index, domain) in aggregates.domains().iter().enumerate() {
        let mut keys = states.better(aggregates.changed_in(domain));
        if let Some(top) = top {
            match domain.reducer {
                Reducer::Min | Reducer::BitIntersect => keys.sort_by_key(|(_, value)| *value),
                _ => keys.sort_by_key(|(_, value)| Reverse(*value)),
            }
            keys.truncate(top);
        }
        rows.extend(keys.into_iter().map(|(key, value)| {
            let (value, files) = (Value::Aggregate(value), owners.files(key));
            KeyRow { key, domain: index, value, files }
        }));
    }
    rows
}

/// Keys whose aggregates differ, ascending.
pub(super) fn differences(a: &Aggregates, b: &Aggregates) -> Vec<KeyRow> {
    let mut rows = Vec::new();
    for (index, domain) in a.domains().iter().enumerate() {
        let reached = |value: u32| Some(value).filter(|value| *value != domain.initial);
        let (a, b) = (&a.values()[domain.range()], &b.values()[domain.range()]);
        let values = (domain.start..).zip(a.iter().zip(b));
        rows.extend(values.filter(|(_, (a, b))| a != b).map(|(key, (a, b))| {
            let value = Value::Both(reached(*a), reached(*b));
            KeyRow { key, domain: index, value, files: vec![] }
        }));
    }
    rows
}

/// Formats `dsf[K] = V`, with the requested additions in columns.
pub(super) fn lines(rows: &[KeyRow], names: Option<&KeyNames>, files: bool) -> String {
    let mut table: Vec<Vec<String>> = Vec::new();
    for row in rows {
        let mut head = row.head();
        let mut owners = if files { row.shown_files() } else { String::new() };
        let Some(names) = names else {
            table.push(vec![head, owners]);
            continue;
        };
        for name in names.names(row.key) {
            let mut cells = vec![std::mem::take(&mut head)];
            cells.extend([name.domain, name.place, name.function, name.what]);
            cells.push(std::mem::take(&mut owners));
            table.push(cells);
        }
    }
    aligned(&table)
}

/// Aligns columns with two blanks between them and none at the end.
fn aligned(table: &[Vec<String>]) -> String {
    let count = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |cell: &String| cell.chars().count();
    let column = |at: usize| table.iter().map(|cells| cells.get(at).map_or(0, width)).max();
    let widths: Vec<usize> = (0..count).filter_map(column).collect();
    let mut text = String::new();
    for cells in table {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            line += &format!("{cell:<width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

impl KeyRow {
    fn head(&self) -> String {
        let number = |value: Option<u32>| value.map_or("-".into(), |value| value.to_string());
        match self.value {
            Value::Aggregate(value) => format!("dsf[{}] = {value}", self.key),
            Value::Both(a, b) => format!("dsf[{}] = {} -> {}", self.key, number(a), number(b)),
        }
    }

    fn shown_files(&self) -> String {
        let shown = self.files.iter().take(FILES_SHOWN).cloned().collect::<Vec<_>>().join(" ");
        match self.files.len().checked_sub(FILES_SHOWN) {
            Some(more @ 1..) => format!("{shown} and {more} more"),
            _ => shown,
        }
    }
}

#[derive(Serialize)]
struct DsfDocument<'a> {
    version: u32,
    target: Vec<String>,
    domains: Vec<JsonDomain>,
    keys: Vec<JsonKey<'a>>,
}

#[derive(Serialize)]
struct JsonDomain {
    name: String,
    start: u32,
    size: u32,
    reducer: &'static str,
    initial: u32,
}

#[derive(Serialize)]
struct JsonKey<'a> {
    key: u32,
    domain: String,
    domain_key: u32,
    #[serde(flatten)]
    value: JsonValue,
    sites: Vec<JsonSite<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [String]>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum JsonValue {
    Aggregate { value: u32 },
    Both { a: Option<u32>, b: Option<u32> },
}

#[derive(Serialize)]
struct JsonSite<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    function: &'a str,
    what: &'a str,
}

/// The complete JSON output; `files` if requested.
pub(super) fn json(
    command: &[OsString],
    domains: &[Domain],
    rows: &[KeyRow],
    names: &KeyNames,
    files: bool,
) -> String {
    let document = DsfDocument {
        version: JSON_VERSION,
        target: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        domains: domains.iter().enumerate().map(|(i, domain)| json_domain(i, domain)).collect(),
        keys: rows.iter().map(|row| json_key(row, domains, names, files)).collect(),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn json_domain(index: usize, domain: &Domain) -> JsonDomain {
    JsonDomain {
        name: domain.label(index),
        start: domain.start,
        size: domain.size,
        reducer: domain.reducer.name(),
        initial: domain.initial,
    }
}

fn json_key<'a>(
    row: &'a KeyRow,
    domains: &[Domain],
    names: &'a KeyNames,
    files: bool,
) -> JsonKey<'a> {
    let domain = &domains[row.domain];
    JsonKey {
        key: row.key,
        domain: domain.label(row.domain),
        domain_key: row.key - domain.start,
        value: match row.value {
            Value::Aggregate(value) => JsonValue::Aggregate { value },
            Value::Both(a, b) => JsonValue::Both { a, b },
        },
        sites: names.sites(row.key).map(json_site).collect(),
        files: files.then_some(&row.files),
    }
}

fn json_site(site: &Site) -> JsonSite<'_> {
    let Site { file, line, column, function, what, .. } = site;
    JsonSite { file, line: *line, column: *column, function, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::domain::DsfView;

    fn domains() -> Vec<Domain> {
        let domain = |name: &str, start, size, reducer, initial| {
            let name = name.to_owned();
            Domain { name, start, size, reducer, initial }
        };
        vec![
            domain("mem", 0, 4, Reducer::Max, 0),
            domain("slack", 4, 3, Reducer::Min, u32::MAX),
            domain("", 7, 1, Reducer::BitUnion, 0),
        ]
    }

    fn aggregates(values: &[u32]) -> Aggregates {
        let domains = domains();
        let mut aggregates = Aggregates::new(&domains);
        aggregates.merge(&DsfView { domains: &domains, values, touched: None });
        aggregates
    }

    fn sample() -> Aggregates {
        aggregates(&[0, 12, 2_147_483_645, 12, 9, u32::MAX, 3, 5])
    }

    fn names() -> KeyNames {
        let table =
            b"mem\t2\t/a/demo.c\t23\t10\tcascade\tmalloc\nmem\t6\t/a/x.c\t7\t1\tf\tcalloc\n\
            slack\t2\t/a/demo.c\t9\t3\tmain\ti32 <\n";
        KeyNames::new(&domains(), Site::parse(table))
    }

    #[test]
    fn the_plain_form_is_that_of_fuzzfactory() {
        let rows = rows(&sample(), &CoverageStates::default(), None, &Owners::default());
        let expected = "dsf[1] = 12\ndsf[2] = 2147483645\ndsf[3] = 12\ndsf[4] = 9\ndsf[6] = 3\n\
            dsf[7] = 5\n";
        assert_eq!(lines(&rows, None, false), expected);
    }

    #[test]
    fn names_stand_in_columns() {
        let rows = rows(&sample(), &CoverageStates::default(), Some(1), &Owners::default());
        insta::assert_snapshot!(lines(&rows, Some(&names()), false), @r"
        dsf[2] = 2147483645  mem    demo.c:23  cascade()  malloc
                             mem    x.c:7      f()        calloc
        dsf[6] = 3           slack  demo.c:9   main()     i32 <
        dsf[7] = 5           map 2  key 0
        ");
    }

    #[test]
    fn the_best_come_first_in_each_domain() {
        let rows = rows(&sample(), &CoverageStates::default(), Some(2), &Owners::default());
        let keys: Vec<u32> = rows.iter().map(|row| row.key).collect();
        assert_eq!(keys, [2, 1, 6, 4, 7]);
    }

    #[test]
    fn differences_have_both_values() {
        let other = aggregates(&[0, 12, 7, 0, 9, 1, 3, 5]);
        let rows = differences(&sample(), &other);
        let expected = "dsf[2] = 2147483645 -> 7\ndsf[3] = 12 -> -\ndsf[5] = - -> 1\n";
        assert_eq!(lines(&rows, None, false), expected);
        assert_eq!(differences(&other, &other), []);
    }

    #[test]
    fn many_files_are_cut_in_lines() {
        let files = |count: u32| (0..count).map(|n| n.to_string()).collect();
        let row =
            |count| KeyRow { key: 1, domain: 0, value: Value::Aggregate(3), files: files(count) };
        assert_eq!(lines(&[row(3)], None, true), "dsf[1] = 3  0 1 2\n");
        assert_eq!(lines(&[row(5)], None, true), "dsf[1] = 3  0 1 2 and 2 more\n");
    }

    #[test]
    fn json_has_one_shape() {
        let rows = rows(&sample(), &CoverageStates::default(), Some(1), &Owners::default());
        let command = ["./demo".into(), "@@".into()];
        insta::assert_snapshot!("json", json(&command, &domains(), &rows, &names(), false));
    }
}
