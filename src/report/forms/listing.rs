//! Coverage as text for a terminal: a table of files, and a file line by line.

use std::fmt::Write as _;

use super::percent;
use crate::data::{LineRun, Reach, Source, SourceFile, SourceTotals};

/// Table with a row for each file and one for the total.
#[must_use]
pub fn table(source: &Source) -> String {
    let mut text = format!("{:>15} {:>7} {:>13} {:>7}  file\n", "lines", "", "functions", "");
    for file in &source.files {
        row(&mut text, &file.totals, &clean(&file.path));
    }
    row(&mut text, &source.totals, "all");
    text
}

fn row(text: &mut String, totals: &SourceTotals, name: &str) {
    let of = |part: usize, whole: usize| (format!("{part}/{whole}"), percent(part, whole));
    let (lines, lines_percent) = of(totals.reached, totals.lines);
    let (functions, functions_percent) = of(totals.entered, totals.functions);
    let _ = writeln!(
        text,
        "{lines:>15} {lines_percent:>6.1}% {functions:>13} {functions_percent:>6.1}%  {name}"
    );
}

/// The text of a file, with the number of inputs that reached each line. A `~` before the number means that it
/// follows from other lines. Lines without code have no number.
#[must_use]
pub fn annotated(file: &SourceFile, text: &str) -> String {
    let mut runs = file.lines.iter().peekable();
    let mut listing = format!("{}:\n", clean(&file.path));
    for (line, code) in (1..).zip(text.lines()) {
        while runs.next_if(|run| run.last < line).is_some() {}
        let run = runs.peek().filter(|run| run.first <= line);
        let count = run.map_or(String::new(), |run| count(run));
        let _ = writeln!(listing, "{line:>5}|{count:>8}|{}", clean(code));
    }
    listing
}

fn count(run: &LineRun) -> String {
    match run.state {
        Reach::Derived => format!("~{}", run.inputs),
        Reach::Proved | Reach::Unreached => run.inputs.to_string(),
    }
}

/// Replaces control characters: names and code come from the target and are shown in terminals.
pub(crate) fn clean(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\t', "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::tests::example;

    #[test]
    fn the_table_has_a_row_for_each_file_and_a_sum() {
        let mut source = example();
        source.files[1].path = "/src/\x1b[2Jmain.c".into();
        let rows: Vec<String> = table(&source).lines().map(str::to_owned).collect();
        assert_eq!(
            rows[1..],
            [
                "            2/3   66.7%           1/2   50.0%  /src/lib/a.c",
                "            0/1    0.0%           0/0    0.0%  /src/?[2Jmain.c",
                "            2/4   50.0%           1/2   50.0%  all",
            ]
        );
    }

    #[test]
    fn lines_stand_beside_their_counts() {
        let text = "int f() {\n  a();\n\tb();\n}\n  c();\x07\n";
        assert_eq!(
            annotated(&example().files[0], text),
            "/src/lib/a.c:\n    1|        |int f() {\n    2|       5|  a();\n    3|      ~4|\tb();\n\
             \x20   4|        |}\n    5|       0|  c();?\n"
        );
    }
}
