//! The source with its coverage, file by file.

use maud::{Markup, html};

use super::{ShownFiles, heading, number, percent};
use crate::data::{Reach, Report, Source, SourceFile};

/// Maximum number of lines shown by default.
const FITTING: usize = 100_000;
/// Maximum length of a shown line.
const LONGEST: usize = 400;

pub(super) fn section(
    report: &Report,
    shown: ShownFiles,
    read: impl Fn(&str) -> Option<String>,
) -> Markup {
    let Some(source) = &report.source else {
        return html! {
            (heading("source"))
            p.soft { "No line of the target is known: build it with ffuzz-cc, or with -g." }
        };
    };
    let mut files: Vec<&SourceFile> = source.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.totals.lines - file.totals.reached));
    let texts: Vec<Option<String>> = files.iter().map(|file| read(&file.path)).collect();
    let lines: usize = texts.iter().flatten().map(|text| text.lines().count()).sum();
    let shows = |file: &SourceFile| match shown {
        ShownFiles::All => true,
        ShownFiles::None => false,
        ShownFiles::Reached => file.totals.reached > 0,
        ShownFiles::Fitting => lines <= FITTING || file.totals.reached > 0,
    };
    html! {
        (heading("source"))
        (legend(source))
        .wide { table {
            tr { th { "file" } th {} th.n { "lines" } th.n { "not reached" } th.n { "functions" } }
            @for (at, file) in files.iter().enumerate() {
                @let totals = &file.totals;
                @let part = percent(totals.reached, totals.lines);
                tr {
                    td.m { a href={ "#f" (at) } { (file.path) } }
                    td { span.bar { i style=(format!("width:{part:.0}%")) {} } " " (format!("{part:.1}")) " %" }
                    td.n { (number(totals.reached as u64)) " / " (number(totals.lines as u64)) }
                    td.n { (number((totals.lines - totals.reached) as u64)) }
                    td.n { (totals.entered) " / " (totals.functions) }
                }
            }
        } }
        @for (at, (file, text)) in files.iter().zip(&texts).enumerate() {
            details {
                summary { span.m { (file.path) } }
                span id={ "f" (at) } {}
                (functions(file))
                @if shows(file) {
                    @match text {
                        Some(text) => (lines_of(file, text)),
                        None => p.soft { "The file cannot be read here." },
                    }
                }
            }
        }
    }
}

fn legend(source: &Source) -> Markup {
    let totals = &source.totals;
    html! {
        pre.src {
            i.p { " reached: a counter shows it " } " "
            i.d { " reached: it follows from others " } " "
            i.u { " not reached " }
        }
        p.soft {
            (number(totals.reached as u64)) " of " (number(totals.lines as u64)) " lines with code are reached, "
            (number((totals.reached - totals.proved) as u64))
            " of them by what follows from other lines. An optimised program has code for fewer lines than its source."
        }
    }
}

fn functions(file: &SourceFile) -> Markup {
    html! {
        @if !file.functions.is_empty() {
            .wide { table {
                tr { th { "function" } th.n { "line" } th.n { "edges" } th.n { "inputs" } }
                @for function in &file.functions {
                    tr {
                        td.m class=[(!function.entered).then_some("bad")] {
                            (if function.name.is_empty() { &function.symbol } else { &function.name })
                        }
                        td.n { (function.line) }
                        td.n { (function.hit) " / " (function.counters) }
                        td.n { (number(function.inputs)) }
                    }
                }
            } }
        }
    }
}

fn lines_of(file: &SourceFile, text: &str) -> Markup {
    let mut runs = file.lines.iter().peekable();
    let lines = (1u32..).zip(text.lines()).map(|(line, code)| {
        while runs.next_if(|run| run.last < line).is_some() {}
        let run = runs.peek().filter(|run| run.first <= line).copied();
        let code: String =
            code.chars().take(LONGEST).filter(|c| !c.is_control() || *c == '\t').collect();
        (line, run, code)
    });
    html! {
        pre.src {
            @for (line, run, code) in lines {
                b { (line) }
                @match run {
                    None => (code),
                    Some(run) => {
                        @let class = match run.state {
                            Reach::Proved => "p",
                            Reach::Derived => "d",
                            Reach::Unreached => "u",
                        };
                        @if run.state == Reach::Unreached { i.(class) { (code) } }
                        @else { i.(class) title={ (run.inputs) " inputs" } { (code) } }
                    }
                }
                "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::tests::{example, report};

    #[test]
    fn each_line_has_the_shade_of_its_state() {
        let text = "int f() {\n  a < b;\n  c();\n}\n  never();\n";
        let page = lines_of(&example().files[0], text).into_string();
        assert!(page.contains("<b>1</b>int f() {\n"), "{page}");
        assert!(
            page.contains("<b>2</b><i class=\"p\" title=\"5 inputs\">  a &lt; b;</i>\n"),
            "{page}"
        );
        assert!(page.contains("<b>3</b><i class=\"d\" title=\"4 inputs\">  c();</i>\n"), "{page}");
        assert!(page.contains("<b>5</b><i class=\"u\">  never();</i>\n"), "{page}");
    }

    #[test]
    fn files_with_most_left_to_reach_come_first() {
        let mut report = report();
        let read = |_: &str| Some("text\n".to_owned());
        let source = report.source.as_mut().unwrap();
        source.files[1].totals.lines = 9;
        let page = section(&report, ShownFiles::Reached, read).into_string();
        assert!(page.find("/src/main.c") < page.find("/src/lib/a.c"));
        // No line of the unreached file is shown.
        assert_eq!(page.matches("<b>1</b>").count(), 1);
        assert_eq!(
            section(&report, ShownFiles::None, read).into_string().matches("<b>1</b>").count(),
            0
        );
        let page = section(&report, ShownFiles::All, |_| None).into_string();
        assert_eq!(page.matches("cannot be read").count(), 2);
    }
}
