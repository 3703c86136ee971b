//! A single page that needs no network and no script.

mod chart;
mod source;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::chart::{Chart, ChartLine};
use super::{percent, time};
use crate::data::{
    Bug, Campaign, Corpus, Domain, InputPart, NeverEntered, Reason, Report, Stage, Stuck, Totals,
};

const STYLE: &str = include_str!("style.css");
/// Policy of the page: it loads nothing, and runs nothing from the target.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// Number of input bytes per row.
const ROW: usize = 16;
/// Maximum number of listed functions per reason.
const MOST_FUNCTIONS: usize = 100;

/// Source files that the page shows line by line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ShownFiles {
    /// All, up to 100 000 lines; beyond that, only files that an input reaches.
    #[default]
    Fitting,
    All,
    Reached,
    None,
}

/// The page of a report. `read` reads a source file; None if that fails.
#[must_use]
pub fn page(report: &Report, shown: ShownFiles, read: impl Fn(&str) -> Option<String>) -> String {
    let title = match &report.campaigns[..] {
        [] => "report".to_owned(),
        [one] => one.target.clone(),
        [one, rest @ ..] => format!("{} and {} more", one.out, rest.len()),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { "ffuzz: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (summary(report))
                (over_time(report))
                (bugs(&report.bugs))
                (stuck(report))
                (source::section(report, shown, read))
                (domains(&report.domains))
                (work(report))
                (corpus(&report.corpus))
                (setup(report))
            }
        }
    };
    page.into_string()
}

fn summary(report: &Report) -> Markup {
    let Totals { runs, seconds, edges, lines, functions, bugs, hangs, stuck, chance, .. } =
        report.totals;
    let speed = runs.checked_div(seconds).unwrap_or(0);
    let of = |[part, whole]: [u64; 2]| format!("{} / {}", number(part), number(whole));
    let stability = report.campaigns.first().map(|it| it.stability).filter(|it| *it > 0.0);
    html! {
        p.verdict { (report.verdict) }
        @if !report.warnings.is_empty() {
            ul.warnings { @for warning in &report.warnings { li { (warning.text) } } }
        }
        .tiles {
            @if lines[1] > 0 {
                (tile(&format!("{:.1} %", percent(lines[0] as usize, lines[1] as usize)), &format!("lines {}", of(lines))))
                (tile(&of(functions), "functions entered"))
            }
            (tile(&of(edges), "edges"))
            (tile(&number(bugs), "bugs"))
            @if hangs > 0 { (tile(&number(hangs), "hangs")) }
            (tile(&number(report.corpus.files as u64), "inputs kept"))
            (tile(&number(stuck), "places with a way not taken"))
            (tile(&number(runs), &format!("runs, {}/s", number(speed))))
            (tile(&time(seconds), "time"))
            @if let Some(stability) = stability { (tile(&format!("{stability:.1} %"), "stability")) }
            @if let Some(chance) = chance {
                (tile(&format!("{:.0} %", 100.0 * chance), "chance that a million runs more find an edge (estimate)"))
            }
        }
        nav {
            @for (id, name) in SECTIONS {
                @if has_section(report, id) { a href={ "#" (id) } { (name) } " " }
            }
        }
    }
}

/// Ids and headings of the sections.
const SECTIONS: [(&str, &str); 8] = [
    ("time", "Over time"),
    ("bugs", "Bugs"),
    ("stuck", "Stuck"),
    ("source", "Source"),
    ("domains", "Domains"),
    ("work", "Work"),
    ("corpus", "Corpus"),
    ("setup", "Setup"),
];

/// Returns true if a section has content.
fn has_section(report: &Report, id: &str) -> bool {
    match id {
        "domains" => !report.domains.is_empty(),
        "work" => !report.stages.is_empty(),
        _ => true,
    }
}

fn heading(id: &str) -> Markup {
    let name = SECTIONS.iter().find(|(known, _)| *known == id).map_or(id, |(_, name)| name);
    html! { h2 id=(id) { (name) } }
}

fn tile(value: &str, what: &str) -> Markup {
    html! { div { b { (value) } span { (what) } } }
}

fn over_time(report: &Report) -> Markup {
    let name = |campaign: &Campaign| campaign.out.clone();
    let names: Vec<String> = report.campaigns.iter().map(name).collect();
    let end = report
        .campaigns
        .iter()
        .filter_map(|it| it.series.seconds.last().copied())
        .max()
        .unwrap_or(0);
    let marks: Vec<(u64, &str)> =
        report.bugs.iter().filter_map(|bug| Some((bug.seen?[0], bug.title.as_str()))).collect();
    let chart = |title, values: fn(&Campaign) -> &Vec<u64>, has_marks: bool| {
        let lines = report.campaigns.iter().zip(&names).map(|(campaign, name)| ChartLine {
            name,
            points: campaign
                .series
                .seconds
                .iter()
                .copied()
                .zip(values(campaign).iter().copied())
                .collect(),
        });
        let marks = if has_marks { marks.clone() } else { Vec::new() };
        Chart { title, lines: lines.collect(), end, marks }.draw()
    };
    let domains = report.campaigns.iter().flat_map(|campaign| &campaign.series.domains);
    html! {
        (heading("time"))
        input #log-time type="checkbox"; label for="log-time" { " logarithmic time" }
        div {
            (chart("Edges", |it| &it.series.edges, true))
            (chart("Inputs kept", |it| &it.series.corpus, false))
            (chart("Runs per second", |it| &it.series.speed, false))
            @for (name, moves) in domains {
                @let points = moves.iter().map(|(time, value)| (*time, u64::from(*value))).collect();
                @let lines = vec![ChartLine { name: "best value", points }];
                (Chart { title: &format!("Domain {name}"), lines, end, marks: Vec::new() }.draw())
            }
            @if report.campaigns.iter().all(|it| it.series.seconds.len() < 2) {
                p.soft { "There are too few rows in plot_data for a chart." }
            }
        }
    }
}

fn bugs(bugs: &[Bug]) -> Markup {
    html! {
        (heading("bugs"))
        @if bugs.is_empty() { p.soft { "No crash was found." } }
        @for bug in bugs {
            details {
                summary {
                    span.bad { (bug.title) }
                    @if let Some(place) = &bug.place { " " code { (place) } }
                    span.soft {
                        " · " (bug.files) @if bug.files == 1 { " file" } @else { " files" }
                        @if let Some([seconds, runs]) = bug.seen {
                            " · first after " (time(seconds)) ", " (number(runs)) " runs"
                        }
                    }
                }
                @for (name, stack) in [("Crash", &bug.stacks.crash), ("Allocation", &bug.stacks.allocation), ("Free", &bug.stacks.free)] {
                    @if !stack.is_empty() { h3 { (name) } (frames(stack)) }
                }
                @for stack in &bug.stacks.others { h3 { "Another stack" } (frames(stack)) }
                h3 { "Input" }
                p { code { (bug.input) } (download(bug.bytes.as_ref())) }
                @if let Some(part) = &bug.bytes { (dump(part, &[])) }
                @if let Some(script) = &bug.reproduce { p { "Run again: " code { (script) } } }
            }
        }
    }
}

fn frames(stack: &[String]) -> Markup {
    html! { pre { @for (number, frame) in stack.iter().enumerate() { "#" (number) " " (frame) "\n" } } }
}

/// A link to download the input, if the report has all of it.
fn download(part: Option<&InputPart>) -> Markup {
    let whole =
        part.filter(|part| part.from == 0 && part.hex.len() == 2 * part.size && part.size > 0);
    html! {
        @if let Some(part) = whole {
            @let escaped: String = bytes_of(part).iter().map(|byte| format!("%{byte:02x}")).collect();
            " " a download="input" href={ "data:application/octet-stream," (escaped) } { "save" }
        }
    }
}

fn bytes_of(part: &InputPart) -> Vec<u8> {
    let pairs = part.hex.as_bytes().as_chunks::<2>().0.iter();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.filter_map(byte).collect()
}

/// Rows of an input, with the parts in `marked` highlighted.
fn dump(part: &InputPart, marked: &[(usize, usize)]) -> Markup {
    let bytes = bytes_of(part);
    let is_marked = |at: usize| marked.iter().any(|(first, last)| (*first..=*last).contains(&at));
    let shown = part.from + bytes.len();
    html! {
        pre {
            @for (row, chunk) in bytes.chunks(ROW).enumerate() {
                @let start = part.from + row * ROW;
                (format!("{start:06x}  "))
                @for (at, byte) in (start..).zip(chunk) {
                    @if is_marked(at) { mark { (format!("{byte:02x}")) } " " } @else { (format!("{byte:02x} ")) }
                }
                (" ".repeat(3 * (ROW - chunk.len()) + 1))
                @for (at, byte) in (start..).zip(chunk) {
                    @let letter = if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
                    @if is_marked(at) { mark { (letter) } } @else { (letter) }
                }
                "\n"
            }
            @if part.from > 0 || shown < part.size {
                "bytes " (part.from) " to " (shown) " of " (part.size)
            }
        }
    }
}

fn stuck(report: &Report) -> Markup {
    html! {
        (heading("stuck"))
        @if report.stuck.is_empty() && report.never_entered.is_empty() {
            p.soft { "Nothing is known to be shut, or the target's control flow is not known." }
        } @else {
            p.soft {
                "Places that inputs reach and from which none goes on in some way, those first behind which most edges lie."
            }
        }
        @for one in &report.stuck { (stuck_place(one)) }
        @for reason in [Reason::Caller, Reason::Pointer, Reason::Harness] {
            @let own: Vec<_> = report.never_entered.iter().filter(|it| it.reason == reason).collect();
            @if !own.is_empty() { (functions(reason, &own)) }
        }
    }
}

fn stuck_place(one: &Stuck) -> Markup {
    let file = one.at.file.rsplit('/').next().unwrap_or_default();
    html! {
        details {
            summary {
                span.n { (number(one.behind.counters)) }
                b.m { (file) ":" (one.at.line) } " " (one.at.function)
                span.soft { " · " (one.outcome) }
                @if let Some(comparison) = &one.comparison { " · " code { (comparison.closest) } }
            }
            span id={ "stuck-" (one.id) } {}
            p {
                code { (one.at.file) ":" (one.at.line) }
                ", " (number(one.behind.counters)) " edges behind it"
                @if one.behind.lines > 0 { ", " (number(one.behind.lines)) " lines" }
                @if one.behind.functions > 0 { ", " (one.behind.functions) " functions" }
                @if one.copies > 1 { ", " (one.copies) " copies" }
                ". " (number(one.inputs)) " inputs come here"
                @if let Some(comparison) = &one.comparison {
                    "; " (comparison.kind) " was tried " (number(comparison.attempts)) " times"
                }
                "."
            }
            @if !one.excerpt.is_empty() {
                pre.src {
                    @for (line, text) in &one.excerpt {
                        @let class = if *line == one.at.line { "here" } else { "" };
                        span class=(class) { b { (line) } (text) } "\n"
                    }
                }
            }
            @if let Some(input) = &one.input {
                p { "Closest input: " code { (input) } }
                @if let Some(part) = &one.bytes {
                    (dump(part, one.comparison.as_ref().map_or(&[], |it| &it.bytes)))
                }
            }
        }
    }
}

fn functions(reason: Reason, all: &[&NeverEntered]) -> Markup {
    let edges: u32 = all.iter().map(|it| it.counters).sum();
    html! {
        details {
            summary {
                span.n { (number(edges.into())) }
                "Never entered, " (reason.words()) ": " (number(all.len() as u64)) " functions"
            }
            .wide { table {
                tr { th.n { "edges" } th { "function" } th { "where" } }
                @for one in all.iter().take(MOST_FUNCTIONS) {
                    tr {
                        td.n { (one.counters) }
                        td.m { (one.function) }
                        td.m { @if one.line > 0 { (one.file) ":" (one.line) } }
                    }
                }
            } }
        }
    }
}

fn domains(domains: &[Domain]) -> Markup {
    html! {
        @if !domains.is_empty() { (heading("domains")) }
        @for domain in domains {
            details open[domains.len() < 4] {
                summary { b { (domain.name) } " " span.soft { (domain.reducer) ", " (number(domain.count as u64)) " keys with a value" } }
                .wide { table {
                    tr { th.n { "key" } th.n { "value" } th { "where" } th { "input" } th.n { "found after" } }
                    @for key in &domain.keys {
                        tr {
                            td.n { (key.key) }
                            td.n { (number(key.value.into())) }
                            td.m { (key.place) }
                            td.m { (key.input.as_deref().unwrap_or_default()) }
                            td.n { (key.moved.map(time).unwrap_or_default()) }
                        }
                    }
                } }
            }
        }
    }
}

fn work(report: &Report) -> Markup {
    let all: u64 = report.stages.iter().map(|stage| stage.runs).sum();
    let row = |stage: &Stage| {
        let rate = 1e6 * stage.finds as f64 / stage.runs.max(1) as f64;
        html! {
            tr {
                td { (stage.name) }
                td.n { (number(stage.finds)) }
                td.n { (number(stage.runs)) }
                td.n { (format!("{:.1} %", percent(stage.runs as usize, all as usize))) }
                td.n { @if stage.runs > 0 { (number(rate as u64)) } }
            }
        }
    };
    html! {
        @if !report.stages.is_empty() {
            (heading("work"))
            .wide { table {
                tr { th { "stage or mutator" } th.n { "finds" } th.n { "runs" } th.n { "of all" } th.n { "finds per million runs" } }
                @for stage in &report.stages { (row(stage)) }
            } }
        }
    }
}

fn corpus(corpus: &Corpus) -> Markup {
    html! {
        (heading("corpus"))
        p {
            (number(corpus.files as u64)) " inputs, " (number(corpus.bytes)) " bytes: from "
            (number(corpus.smallest)) " to " (number(corpus.largest)) ", half of them up to "
            (number(corpus.median)) ". " (number(corpus.edges as u64)) " have a new edge, "
            (number(corpus.waypoints as u64)) " improve a domain, "
            (number(corpus.imported as u64)) " came from other fuzzers."
        }
    }
}

fn setup(report: &Report) -> Markup {
    html! {
        (heading("setup"))
        @for campaign in &report.campaigns {
            h3 { (campaign.out) }
            pre { @for pair in &campaign.environment { (pair) "\n" } (campaign.command) }
            p.soft {
                (campaign.fuzzer)
                @if !campaign.instances.is_empty() { ", instances: " (campaign.instances.join(", ")) }
            }
        }
        p.soft { "Made by " (report.tool) ", " (report.made) "." }
    }
}

/// Formats a number with non-breaking thin spaces between thousands.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::tests::report;

    fn shown(report: &Report) -> String {
        page(report, ShownFiles::All, |_| Some("one\n<two>\nthree\n".into()))
    }

    #[test]
    fn the_page_loads_nothing_and_runs_nothing() {
        let page = shown(&report());
        assert!(page.contains("default-src 'none'"));
        let others =
            ["<script", "http://", "https://", "src=", "url(", "@import", "<iframe", "onload"];
        for word in others {
            assert!(!page.contains(word), "{word}");
        }
        for (id, _) in SECTIONS {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }

    #[test]
    fn names_of_the_target_are_text() {
        let mut report = report();
        let bad = "\"><img src=x onerror=alert(1)>";
        report.bugs[0].title = bad.into();
        report.stuck[0].at.function = bad.into();
        report.stuck[0].id = bad.into();
        report.never_entered[0].function = bad.into();
        report.campaigns[0].out = bad.into();
        report.campaigns[0].target = bad.into();
        report.domains[0].name = bad.into();
        report.domains[0].keys[0].place = bad.into();
        report.source.as_mut().unwrap().files[0].path = bad.into();
        report.warnings[0].text = bad.into();
        report.stages[0].name = bad.into();
        let page = shown(&report);
        assert!(!page.contains("<img") && page.contains("&lt;img"), "{page}");
    }

    #[test]
    fn an_input_is_shown_with_what_decides() {
        let part = InputPart { from: 16, size: 40, hex: "3c612062".into() };
        let page = dump(&part, &[(17, 17)]).into_string();
        assert!(page.contains("000010  3c <mark>61</mark> 20 62 "), "{page}");
        assert!(
            page.contains("&lt;<mark>a</mark> b") && page.contains("bytes 16 to 20 of 40"),
            "{page}"
        );
        let whole = InputPart { from: 0, size: 2, hex: "3c0a".into() };
        assert!(download(Some(&whole)).into_string().contains("octet-stream,%3c%0a"));
        assert_eq!(download(Some(&part)).into_string(), "");
    }

    #[test]
    fn numbers_have_groups_of_three() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(number),
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
    }
}
