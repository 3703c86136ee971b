//! The panels of AFL's status screen.
//!
//! Names and positions are AFL's, which users know; the domain panel is new. A larger terminal shows more domains and
//! blocked comparisons.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::merge::MergeStrategy;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::{MIN_HEIGHT, MIN_WIDTH, fleet, stuck};
use crate::format::{count, fit, fit_end, long_time, percent, rate, short_time};
use crate::summary::domain_name;
use ffuzz_event::{
    BlockedComparison, Corpus, Coverage, Cycles, DomainStatus, Finds, MutatorStatus, Runs, Search,
    Snapshot, Times, Turn,
};

/// Minimum page height for a domain panel across the whole width.
const TALL: u16 = 27;
/// Maximum number of foreign mutators shown.
const MOST_MUTATORS: u16 = 3;
/// Width of one cell of the strategy yields.
const YIELD_CELL: u16 = 25;
/// Rows of the first panels, whose neighbours share a border.
const FIRST: u16 = 6;
const SECOND: u16 = 4;

/// Height of [`summary`] in rows.
pub(super) fn summary_height(s: &Snapshot) -> u16 {
    if s.workers.is_empty() { FIRST + SECOND - 1 } else { FIRST }
}

/// Draws the first panels, which stay above other pages.
pub(super) fn summary(frame: &mut Frame<'_>, area: Rect, s: &Snapshot) {
    let heights = [Constraint::Length(FIRST), Constraint::Length(SECOND)];
    let [first, second] = Layout::vertical(heights).spacing(-1).areas(area);
    first_row(frame, first, s);
    if s.workers.is_empty() {
        second_row(frame, second, s);
    }
}

pub(super) fn first_row(frame: &mut Frame<'_>, area: Rect, s: &Snapshot) {
    let [left, right] = columns(area, 66);
    panel(frame, left, "process timing", timing(&s.times, &s.finds));
    panel(frame, right, "overall results", results(&s.cycles, &s.corpus, &s.finds));
}

fn second_row(frame: &mut Frame<'_>, area: Rect, s: &Snapshot) {
    let [left, right] = columns(area, 50);
    panel(frame, left, "cycle progress", cycle(&s.turn, &s.corpus, &s.runs, &s.finds));
    panel(frame, right, "map coverage", coverage(&s.coverage));
}

/// Draws all panels.
pub(super) fn draw(frame: &mut Frame<'_>, main: Rect, s: &Snapshot) {
    if !s.workers.is_empty() {
        return fleet::draw(frame, main, s);
    }
    let is_high = main.height >= TALL;
    let (tall, stuck) = (is_high && !s.domains.is_empty(), is_high && !s.blockers.is_empty());
    let rows =
        |count: usize, others| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(others);
    let below = [
        tall.then(|| Constraint::Max(rows(s.domains.len(), 3))),
        stuck.then(|| Constraint::Max(rows(s.blockers.len(), 2))),
    ];
    let fourth = if tall || stuck { Constraint::Length(9) } else { Constraint::Fill(1) };
    let mut heights =
        vec![Constraint::Length(FIRST), Constraint::Length(SECOND), Constraint::Length(6), fourth];
    heights.extend(below.into_iter().flatten());
    // Neighbours share a border, so a panel's net height is one row less.
    let areas = Layout::vertical(heights).spacing(-1).split(main);
    let [first, second, third, fourth, ref below @ ..] = *areas else { return };
    first_row(frame, first, s);
    second_row(frame, second, s);
    let [left, right] = columns(third, 50);
    panel(frame, left, "stage progress", stage(&s.turn, &s.runs));
    panel(frame, right, "findings in depth", findings(&s.corpus, &s.coverage, &s.finds));
    let [left, right] = columns(fourth, 66);
    panel(frame, right, "item geometry", geometry(&s.corpus, &s.coverage, &s.runs));
    let inside = !tall && !s.domains.is_empty();
    let foreign = u16::try_from(s.mutators.len()).unwrap_or(u16::MAX).min(MOST_MUTATORS);
    let mut rows =
        vec![if inside { Constraint::Length(5 - foreign.min(2)) } else { Constraint::Fill(1) }];
    rows.extend((foreign > 0).then_some(Constraint::Length(foreign + 2)));
    rows.extend(inside.then_some(Constraint::Fill(1)));
    let rows = Layout::vertical(&rows).spacing(-1).split(left);
    strategies(frame, rows[0], &s.search);
    if foreign > 0 {
        mutator_panel(frame, rows[1], &s.mutators);
    }
    match below {
        [domains, ..] if tall => domain_panel(frame, *domains, &s.domains, s.times.now),
        _ if inside => domain_panel(frame, rows[rows.len() - 1], &s.domains, s.times.now),
        _ => {}
    }
    if let Some(area) = below.last().filter(|_| stuck) {
        blocker_panel(frame, *area, &s.blockers);
    }
}

/// The lines for a terminal too small for panels.
pub(super) fn small(s: &Snapshot) -> Vec<Line<'static>> {
    let mut lines = vec![
        Line::raw(format!("ffuzz: terminal smaller than {MIN_WIDTH}x{MIN_HEIGHT}")),
        pair("run time", short_time(s.times.run_time_ms / 1000)),
        pair("executions", format!("{} ({})", count(s.runs.execs), rate(s.runs.execs_per_sec))),
        pair("corpus", s.corpus.corpus_count.to_string()),
        pair("crashes", s.finds.saved_crashes.to_string()),
        pair("hangs", s.finds.saved_hangs.to_string()),
    ];
    lines.extend(s.domains.iter().enumerate().map(|(i, d)| pair(&domain_name(i, d), best(d))));
    lines
}

/// Splits `area` into two columns that share a border; the left one gets `percent` of the width.
pub(super) fn columns(area: Rect, percent: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Percentage(percent), Constraint::Fill(1)])
        .spacing(-1)
        .areas(area)
}

fn block(title: &str) -> Block<'static> {
    Block::bordered()
        .merge_borders(MergeStrategy::Exact)
        .border_style(Style::new().fg(Color::DarkGray))
        .title(Span::styled(format!(" {title} "), Style::new().fg(Color::Cyan)))
}

pub(super) fn panel(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines).block(block(title)), area);
}

/// A `name : value` line; names are right-aligned as in AFL.
pub(super) fn pair(name: &str, value: impl Into<String>) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("{name:>16} : "), Style::new().fg(Color::Gray)),
        Span::styled(value.into(), Style::new().add_modifier(Modifier::BOLD)),
    ])
}

/// As [`pair`], in red if `on`.
fn alarm(name: &str, value: String, on: bool) -> Line<'static> {
    let line = pair(name, value);
    if on { line.patch_style(Style::new().fg(Color::LightRed)) } else { line }
}

fn timing(times: &Times, finds: &Finds) -> Vec<Line<'static>> {
    // Campaign time excludes the time between runs.
    let run_time = times.run_time_ms / 1000;
    let since = |at: u64, never: &str| match at {
        0 => never.to_owned(),
        at => long_time(times.now.saturating_sub(at).min(run_time)),
    };
    vec![
        pair("run time", long_time(run_time)),
        pair("last new find", since(finds.last_find_at, "none yet")),
        pair("last saved crash", since(finds.last_crash_at, "none seen yet")),
        pair("last saved hang", since(finds.last_hang_at, "none seen yet")),
    ]
}

fn results(cycles: &Cycles, corpus: &Corpus, finds: &Finds) -> Vec<Line<'static>> {
    let crashes = count(finds.saved_crashes);
    vec![
        pair("cycles done", count(cycles.cycles_done)),
        pair("corpus count", count(corpus.corpus_count)),
        match finds.bugs {
            None => alarm("saved crashes", crashes, finds.saved_crashes > 0),
            Some(bugs) => alarm("bugs (crashes)", format!("{bugs} ({crashes})"), true),
        },
        pair("saved hangs", count(finds.saved_hangs)),
    ]
}

fn cycle(turn: &Turn, corpus: &Corpus, runs: &Runs, finds: &Finds) -> Vec<Line<'static>> {
    let now = match turn.current {
        Some(id) => format!("{} ({:.1}%)", id.0, percent(id.0.into(), corpus.corpus_count)),
        None => "-".to_owned(),
    };
    let timeouts = percent(finds.total_timeouts, runs.execs);
    vec![
        pair("now processing", now),
        pair("runs timed out", format!("{} ({timeouts:.2}%)", count(finds.total_timeouts))),
    ]
}

fn coverage(coverage: &Coverage) -> Vec<Line<'static>> {
    let density = format!("{:.2}% / {:.2}%", coverage.current_density, coverage.map_percent());
    vec![
        pair("map density", density),
        pair("count coverage", format!("{:.2} bits/tuple", coverage.bits_per_edge)),
    ]
}

fn stage(turn: &Turn, runs: &Runs) -> Vec<Line<'static>> {
    let done = count(turn.stage_done);
    let execs = match turn.stage_total {
        0 => done,
        total => {
            format!("{done}/{} ({:.2}%)", count(total), percent(turn.stage_done, total))
        }
    };
    vec![
        pair("now trying", fit(&turn.stage, 20)),
        pair("stage execs", execs),
        pair("total execs", count(runs.execs)),
        exec_speed(runs),
    ]
}

pub(super) fn exec_speed(runs: &Runs) -> Line<'static> {
    alarm("exec speed", speed(runs), runs.execs_per_sec < 100.0 && runs.execs > 0)
}

fn speed(runs: &Runs) -> String {
    let word = match runs.execs_per_sec {
        v if v < 20.0 => " (zzzz...)",
        v if v < 100.0 => " (slow!)",
        _ => "",
    };
    let forks =
        runs.snapshot_runs.as_ref().map_or(0.0, |snapshot_runs| snapshot_runs.by_fork_percent);
    let forks = match runs.run_mode.as_ref() {
        "snapshot" if forks >= 0.1 => format!(", {forks:.1}% by fork"),
        _ => String::new(),
    };
    let behind = runs.snapshot_runs.as_ref().filter(|runs| runs.behind_percent >= 0.1);
    let behind = behind.map_or(String::new(), |runs| {
        format!(", {:.0}% behind {:.1} messages", runs.behind_percent, runs.behind_messages)
    });
    format!("{}{word} {}{forks}{behind}", rate(runs.execs_per_sec), runs.run_mode)
}

pub(super) fn findings(corpus: &Corpus, coverage: &Coverage, finds: &Finds) -> Vec<Line<'static>> {
    let favored = percent(corpus.corpus_favored, corpus.corpus_count);
    let Finds { saved_crashes, total_crashes, saved_hangs, total_timeouts, .. } = finds;
    vec![
        pair("favored items", format!("{} ({favored:.2}%)", count(corpus.corpus_favored))),
        pair("edges found", format!("{} of {}", coverage.edges_found, coverage.map_size)),
        alarm(
            "total crashes",
            format!("{} ({saved_crashes} saved)", count(*total_crashes)),
            *total_crashes > 0,
        ),
        pair("total tmouts", format!("{} ({saved_hangs} saved)", count(*total_timeouts))),
    ]
}

fn geometry(corpus: &Corpus, coverage: &Coverage, runs: &Runs) -> Vec<Line<'static>> {
    let stability = coverage.stability;
    vec![
        pair("levels", corpus.max_depth.to_string()),
        pair("pending", count(corpus.pending_total)),
        pair("pend fav", count(corpus.pending_favored)),
        pair("own finds", count(corpus.corpus_found)),
        pair("imported", count(corpus.corpus_imported)),
        alarm("stability", format!("{stability:.2}%"), stability < 90.0 && runs.execs > 0),
    ]
}

/// Draws finds and executions per stage, several to a row. Stages that never ran are omitted first if space is short.
fn strategies(frame: &mut Frame<'_>, area: Rect, search: &Search) {
    let per_row = usize::from((area.width.saturating_sub(2) / YIELD_CELL).max(1));
    let room = per_row * usize::from(area.height.saturating_sub(2));
    let mut cells = vec![("trim".to_owned(), trim(search))];
    let all = search.stages.len() < room;
    let ran = search.stages.iter().filter(|stage| stage.name != "trim" && (all || stage.execs > 0));
    cells.splice(
        0..0,
        ran.map(|stage| {
            (stage.name.to_string(), format!("{}/{}", count(stage.finds), count(stage.execs)))
        }),
    );
    let lines = cells.chunks(per_row).map(|row| {
        Line::from_iter(row.iter().flat_map(|(name, value)| {
            [
                Span::styled(format!("{:>11} : ", fit(name, 11)), Style::new().fg(Color::Gray)),
                Span::styled(format!("{value:<11}"), Style::new().add_modifier(Modifier::BOLD)),
            ]
        }))
    });
    let mut lines: Vec<Line<'_>> = lines.collect();
    if lines.len() < usize::from(area.height.saturating_sub(2)) && !search.parts.is_empty() {
        lines.push(parts(search, area.width.saturating_sub(2).into()));
    }
    panel(frame, area, "fuzzing strategy yields", lines);
}

/// The share of time used by each part of the search, as many as fit into `width`.
fn parts(search: &Search, width: usize) -> Line<'static> {
    let (head, mut text) = (format!("{:>11} : ", "time"), String::new());
    for part in &search.parts {
        let comma = if text.is_empty() { "" } else { ", " };
        let name = part.name.replace('_', " ");
        let next = format!("{comma}{name} {:.1}/{:.0}%", part.used, part.share);
        if head.len() + text.len() + next.len() <= width {
            text += &next;
        }
    }
    Line::from(vec![
        Span::styled(head, Style::new().fg(Color::Gray)),
        Span::styled(text, Style::new().add_modifier(Modifier::BOLD)),
    ])
}

fn trim(search: &Search) -> String {
    match search.trim_execs {
        0 => "n/a".to_owned(),
        execs => format!("{:.1}%/{}", search.trimmed_percent, count(execs)),
    }
}

/// Draws one row per foreign mutator.
fn mutator_panel(frame: &mut Frame<'_>, area: Rect, mutators: &[MutatorStatus]) {
    let lines = mutators.iter().map(|m| {
        let text = format!(
            " {:<12} {:>6} {:>5} {:>5.1}% {:>5}",
            fit(&m.name, 12),
            count(m.calls),
            count(m.finds),
            m.time_percent,
            count(m.failures)
        );
        let color = if m.failures > 0 { Color::LightRed } else { Color::Reset };
        Line::styled(text, Style::new().fg(color))
    });
    panel(frame, area, "mutators: calls, finds, time, failures", lines.collect());
}

/// Draws one row per domain: name, keys, best value with its place, last improvement. The last row counts the domains
/// that do not fit.
pub(super) fn domain_panel(frame: &mut Frame<'_>, area: Rect, domains: &[DomainStatus], now: u64) {
    let rows = usize::from(area.height.saturating_sub(2));
    let wide = area.width >= WIDE;
    let header = usize::from(wide && rows > 1);
    let room = rows - header;
    let hidden = domains.len().saturating_sub(room);
    let shown = if hidden > 0 { room.saturating_sub(1) } else { room };
    let mut lines = Vec::new();
    if header > 0 {
        lines.push(Line::styled(WIDE_HEADER, Style::new().fg(Color::Gray)));
    }
    let shown_ones = domains.iter().enumerate().take(shown);
    lines.extend(shown_ones.map(|(i, d)| {
        let text = match wide {
            true => wide_row(i, d, now, usize::from(area.width.saturating_sub(2))),
            false => narrow_row(i, d, now),
        };
        let moved = d.last.is_some_and(|(_, _, at)| now.saturating_sub(at) < 10);
        let color = if moved { Color::LightGreen } else { Color::Reset };
        Line::styled(text, Style::new().fg(color))
    }));
    if hidden > 0 {
        lines.push(Line::raw(format!(" and {} more", domains.len() - shown)));
    }
    panel(frame, area, "domains: keys, best value, last moved", lines);
}

/// Draws one row per comparison: place, edges behind it, the outcome that never varied, the closest operands.
/// `ffuzz-showmap --blockers` prints all comparisons and the bytes that decide them.
fn blocker_panel(frame: &mut Frame<'_>, area: Rect, blockers: &[BlockedComparison]) {
    let width = usize::from(area.width.saturating_sub(2));
    let lines = blockers.iter().map(|one| {
        let row = format!(
            " {:<24} {:>6} {:<14} {:>5} {:>5}  {}: {}",
            fit_end(&stuck::place(one), 24),
            one.behind.map_or_else(String::new, count),
            one.outcome,
            count(one.seeds),
            count(one.attempts),
            one.comparison,
            one.operands
        );
        Line::raw(fit(&row, width))
    });
    let title = "comparisons never passed: place, edges behind, result, seeds, attempts, operands";
    panel(frame, area, title, lines.collect());
}

/// Minimum width of a place; less is unreadable.
const LEAST_PLACE: usize = 8;
/// Minimum width for a row with all columns.
const WIDE: u16 = 112;
const WIDE_HEADER: &str = " domain       reducer              keys  waypoints        best  at                        \
                           last moved";

fn wide_row(index: usize, d: &DomainStatus, now: u64, width: usize) -> String {
    let best = d.best.map_or_else(|| "-".to_owned(), |(_, value)| value.to_string());
    let row = format!(
        " {:<12} {:<20} {:>4} {:>10} {best:>11}  {:<24}  ",
        fit(&domain_name(index, d), 12),
        d.reducer,
        count(d.keys.into()),
        count(d.waypoints),
        fit_end(&best_place(d), 24),
    );
    let room = width.saturating_sub(row.chars().count());
    row + &last_moved(d, now, room)
}

/// Time, value and place of the last improvement. Omits parts that do not fit whole: half a number would be wrong.
fn last_moved(d: &DomainStatus, now: u64, room: usize) -> String {
    let Some((key, value, at)) = d.last else { return "never".to_owned() };
    let ago = short_time(now.saturating_sub(at));
    let to = format!("{ago} ago to {value}");
    match room.saturating_sub(to.len() + " at ".len()) {
        left if left >= LEAST_PLACE => {
            format!("{to} at {}", fit_end(&place(key, &d.last_place), left))
        }
        _ if to.len() <= room => to,
        _ => format!("{ago} ago"),
    }
}

fn narrow_row(index: usize, d: &DomainStatus, now: u64) -> String {
    let last = match (d.last, d.best) {
        (Some((_, _, at)), _) => short_time(now.saturating_sub(at)),
        // A folder holds no time of the last move.
        (None, Some(_)) => "-".to_owned(),
        (None, None) => "never".to_owned(),
    };
    let best = d.best.map_or_else(|| "-".to_owned(), |(_, value)| value.to_string());
    format!(
        " {:<9} {:>5} {best:>10} {:<15} {last:>6}",
        fit(&domain_name(index, d), 9),
        count(d.keys.into()),
        fit_end(&best_place(d), 15),
    )
}

/// Formats the best value as `2147483645 @demo.c:23`.
fn best(d: &DomainStatus) -> String {
    d.best.map_or_else(|| "-".to_owned(), |(_, value)| format!("{value} @{}", best_place(d)))
}

fn best_place(d: &DomainStatus) -> String {
    d.best.map_or_else(String::new, |(key, _)| place(key, &d.best_place))
}

/// File and line of a key, or its number if it has none.
pub(super) fn place(key: u32, place: &str) -> String {
    if place.is_empty() { format!("key {key:06x}") } else { place.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::SnapshotUse;

    #[test]
    fn runs_that_needed_a_fork_are_shown_after_the_mode() {
        let with = |percent| {
            let snapshot_runs =
                Some(SnapshotUse { by_fork_percent: percent, ..SnapshotUse::default() });
            let run_mode = "snapshot".into();
            speed(&Runs { snapshot_runs, run_mode, execs_per_sec: 2000.0, ..Runs::default() })
        };
        assert!(with(0.05).ends_with(" snapshot"), "{}", with(0.05));
        assert!(with(2.5).ends_with(" snapshot, 2.5% by fork"), "{}", with(2.5));
        let snapshot_runs =
            SnapshotUse { behind_percent: 61.2, behind_messages: 2.25, ..SnapshotUse::default() };
        let runs = Runs {
            snapshot_runs: Some(snapshot_runs),
            run_mode: "snapshot".into(),
            ..Runs::default()
        };
        assert!(speed(&runs).ends_with(" snapshot, 61% behind 2.2 messages"), "{}", speed(&runs));
    }
}
