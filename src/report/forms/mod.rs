//! What is known, written for people and for other programs.

pub mod cobertura;
pub mod lcov;
pub mod listing;

/// Part of a whole in percent; of nothing 0.
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use crate::data::{Function, LineRun, Reach, Source, SourceFile, SourceTotals};

    /// Two files: one with two functions of which the second was not entered, and one that nothing has reached.
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
