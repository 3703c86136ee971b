//! The panels of a fleet (`-j`): the joined numbers and a row per worker.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;

use super::overview::{columns, domain_panel, exec_speed, findings, first_row, pair, panel};
use crate::format::{count, fit, rate, short_time};
use ffuzz_event::{Corpus, Runs, Snapshot, WorkerStatus};

/// Maximum number of rows that domains take from the workers' panel.
const MOST_DOMAINS: u16 = 6;
const HEADER: &str =
    " worker     state    schedule      speed corpus  edges crashes  found restarts";

/// Draws the fleet's panels, which replace those of the current seed and stage.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, s: &Snapshot) {
    let domains = u16::try_from(s.domains.len()).unwrap_or(u16::MAX).min(MOST_DOMAINS);
    let below = if domains == 0 { 0 } else { domains + 3 };
    let [first, second, workers, last] = Layout::vertical([
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Fill(1),
        Constraint::Length(below),
    ])
    .spacing(-1)
    .areas(area);
    first_row(frame, first, s);
    let [left, right] = columns(second, 50);
    panel(frame, left, "all workers", together(&s.workers, &s.runs, &s.corpus));
    panel(frame, right, "findings in depth", findings(&s.corpus, &s.coverage, &s.finds));
    worker_panel(frame, workers, &s.workers, s.times.now);
    if below > 0 {
        domain_panel(frame, last, &s.domains, s.times.now);
    }
}

fn together(workers: &[WorkerStatus], runs: &Runs, corpus: &Corpus) -> Vec<Line<'static>> {
    let busy = workers.iter().filter(|worker| worker.state == "fuzzing").count();
    vec![
        pair("fuzzing", format!("{busy} of {}", workers.len())),
        pair("total execs", count(runs.execs)),
        exec_speed(runs),
        pair(
            "own / imported",
            format!("{} / {}", count(corpus.corpus_found), count(corpus.corpus_imported)),
        ),
    ]
}

/// Draws the workers' panel. The last row counts the workers that do not fit.
fn worker_panel(frame: &mut Frame<'_>, area: Rect, workers: &[WorkerStatus], now: u64) {
    let room = usize::from(area.height.saturating_sub(3));
    let shown = if workers.len() > room { room.saturating_sub(1) } else { workers.len() };
    let mut lines = vec![Line::styled(HEADER, Style::new().fg(Color::Gray))];
    lines.extend(workers.iter().take(shown).map(|worker| row(worker, now)));
    if shown < workers.len() {
        lines.push(Line::raw(format!(" and {} more", workers.len() - shown)));
    }
    panel(frame, area, "workers", lines);
}

fn row(w: &WorkerStatus, now: u64) -> Line<'static> {
    let last = match w.last_find_at {
        0 => "-".to_owned(),
        at => short_time(now.saturating_sub(at)),
    };
    let text = format!(
        " {:<10} {:<8} {:<8} {:>10} {:>6} {:>6} {:>7} {last:>6} {:>8}",
        fit(&w.name, 10),
        w.state,
        fit(&w.schedule, 8),
        rate(w.execs_per_sec),
        count(w.corpus_count),
        count(w.edges_found),
        count(w.saved_crashes),
        w.restarts,
    );
    let color = match w.state.as_ref() {
        "fuzzing" if w.restarts == 0 => Color::Reset,
        "fuzzing" | "starting" => Color::Yellow,
        _ => Color::LightRed,
    };
    Line::styled(text, Style::new().fg(color))
}
