//! Output formats of a report, for users and for other programs.

pub mod cobertura;
pub mod html;
pub mod lcov;
pub mod listing;
pub mod markdown;

/// A duration in its two largest units: `3 min 5 s`.
#[must_use]
pub fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Share of a whole in percent; 0 if the whole is 0.
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use crate::data::{
        Behind, Bug, Campaign, Comparison, Domain, Function, InputPart, Key, LineRun, NeverEntered,
        Place, Reach, Reason, Report, Series, Source, SourceFile, SourceTotals, Stage, Stuck,
        Totals, Warning,
    };

    /// A report with one entry of each kind.
    pub(super) fn report() -> Report {
        let bytes = Some(InputPart { from: 0, size: 2, hex: "4142".into() });
        let series = Series {
            seconds: vec![0, 5, 10],
            edges: vec![1, 5, 9],
            runs: vec![0, 500, 1000],
            corpus: vec![1, 3, 4],
            speed: vec![0, 100, 100],
            domains: [("mem".to_owned(), vec![(1, 5), (7, 9)])].into(),
        };
        Report {
            verdict: "66.7 % of the lines reached, 1 bug.".into(),
            warnings: vec![Warning { code: "changed", text: "the target was built again".into() }],
            totals: Totals {
                runs: 1000,
                seconds: 10,
                edges: [9, 20],
                lines: [2, 4],
                bugs: 1,
                ..Totals::default()
            },
            campaigns: vec![Campaign {
                out: "out".into(),
                target: "./target".into(),
                series,
                ..Campaign::default()
            }],
            source: Some(example()),
            stuck: vec![Stuck {
                id: "5-aa".into(),
                at: Place { file: "/src/lib/a.c".into(), line: 5, column: 3, function: "g".into() },
                outcome: "never equal".into(),
                behind: Behind { counters: 7, functions: 1, lines: 4 },
                copies: 1,
                comparison: Some(Comparison {
                    kind: "i32 ==".into(),
                    closest: "0x41 and 0x42".into(),
                    ..Comparison::default()
                }),
                input: Some("id:000001".into()),
                bytes: bytes.clone(),
                inputs: 3,
                excerpt: vec![(5, "if (a == 'B')".into())],
                ..Stuck::default()
            }],
            never_entered: vec![NeverEntered {
                function: "h".into(),
                counters: 4,
                reason: Reason::Pointer,
                ..NeverEntered::default()
            }],
            domains: vec![Domain {
                name: "mem".into(),
                reducer: "max".into(),
                count: 1,
                keys: vec![Key { key: 3, value: 9, place: "a.c:5".into(), ..Key::default() }],
            }],
            bugs: vec![Bug {
                title: "heap-buffer-overflow in f".into(),
                files: 2,
                seen: Some([3, 300]),
                bytes,
                ..Bug::default()
            }],
            stages: vec![Stage { name: "havoc".into(), finds: 3, runs: 900 }],
            ..Report::default()
        }
    }

    /// Two files: one with two functions of which the second was not entered, and an unreached one.
    pub(super) fn example() -> Source {
        let line =
            |line, state, inputs| LineRun { first: line, last: line, state, inputs, input: None };
        let function = |name: &str, line, inputs| Function {
            name: name.into(),
            symbol: name.into(),
            line,
            entered: inputs > 0,
            inputs,
            counters: 3,
            hit: usize::from(inputs > 0),
        };
        let files = vec![
            SourceFile {
                path: "/src/lib/a.c".into(),
                totals: SourceTotals { lines: 3, reached: 2, proved: 1, functions: 2, entered: 1 },
                lines: vec![
                    line(2, Reach::Proved, 5),
                    line(3, Reach::Derived, 4),
                    line(5, Reach::Unreached, 0),
                ],
                functions: vec![function("f", 1, 5), function("g<int>", 5, 0)],
            },
            SourceFile {
                path: "/src/main.c".into(),
                totals: SourceTotals { lines: 1, ..SourceTotals::default() },
                lines: vec![line(9, Reach::Unreached, 0)],
                functions: vec![],
            },
        ];
        let totals = SourceTotals { lines: 4, reached: 2, proved: 1, functions: 2, entered: 1 };
        Source { totals, files }
    }
}
