//! The pages of the full screen: heading, page names, the page itself, last line.
//!
//! A page is drawn from [`Facts`] and the [`View`] only. Every page but the overview is a list ([`List`]) with a text
//! per row. A wide screen shows the text beside the list; a narrow one replaces the list by it after Enter. The minimum
//! size is 80×24; from 30 rows on, the first panels of the overview stay above each page.

mod bugs;
mod domains;
mod fleet;
mod log;
mod overview;
mod queue;
mod source;
mod stages;
mod stuck;

use std::path::Path;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::format::{count, fit, rate, short_time};
use super::screen::facts::Facts;
use super::screen::view::{Cursor, Page, View};
use ffuzz_config::options::Colors;
use ffuzz_event::{Shares, Snapshot};
use ffuzz_sys::file;

pub(crate) use source::file_in_row;

const MIN_WIDTH: u16 = 80;
const MIN_HEIGHT: u16 = 24;
/// Minimum height for the first panels of the overview above another page.
const TALL: u16 = 30;
/// Minimum width for a list and a text side by side.
const WIDE: u16 = 120;
/// Width of a list with a text beside it, in percent.
const LIST_PERCENT: u16 = 55;

const HEAD: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().fg(Color::Gray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const NEW: Style = Style::new().fg(Color::LightGreen);
const WARN: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::LightRed);

/// The part of a row's text that is shown.
#[derive(Clone, Copy)]
struct TextPart {
    width: usize,
    height: usize,
    /// Number of lines above it.
    scroll: usize,
    /// True if the user opened the row, not only selected it.
    is_open: bool,
}

impl TextPart {
    /// Selects its lines of the whole text.
    fn of(self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        lines.into_iter().skip(self.scroll).take(self.height).collect()
    }
}

/// A list of rows, each with a text.
trait List {
    /// Names of the columns.
    fn header(&self) -> String;

    fn len(&self) -> usize;

    fn row(&self, index: usize, width: usize) -> Line<'static>;

    /// The lines of this part of a row's text.
    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>>;

    /// The reason why there are no rows.
    fn empty(&self) -> String;
}

/// Draws the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, facts: &Facts, view: &mut View, colors: Colors) {
    draw_all(frame, facts, view, colors);
    if colors == Colors::None {
        for cell in &mut frame.buffer_mut().content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

fn draw_all(frame: &mut Frame<'_>, facts: &Facts, view: &mut View, colors: Colors) {
    let (area, s) = (frame.area(), &facts.snapshot);
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        return frame.render_widget(Paragraph::new(overview::small(s)), area);
    }
    let above = match view.page {
        Page::Overview => 0,
        _ if area.height < TALL => 0,
        _ => overview::summary_height(s),
    };
    let [title, tabs, summary, main, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(above),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(s, title.width, view.page)), title);
    frame.render_widget(Paragraph::new(names(view.page)), tabs);
    if above > 0 {
        overview::summary(frame, summary, s);
    }
    let file = view.file.clone();
    let list: Box<dyn List + '_> = match view.page {
        Page::Overview => {
            overview::draw(frame, main, s);
            return finish(frame, bottom, facts, view, colors);
        }
        Page::Domains => Box::new(domains::Domains(facts)),
        Page::Stuck => Box::new(stuck::StuckPlaces::of(facts)),
        Page::Bugs => Box::new(bugs::Bugs::of(facts)),
        Page::Source => match &file {
            None => Box::new(source::FileList::of(facts)),
            Some(file) => Box::new(source::FunctionList::of(facts, file)),
        },
        Page::Queue => Box::new(queue::QueueFiles(facts)),
        Page::Stages => Box::new(stages::StagesPage::of(s)),
        Page::Log => Box::new(log::LogPage(facts)),
    };
    draw_list(frame, main, &*list, view);
    finish(frame, bottom, facts, view, colors);
}

/// Draws the last line and the boxes over the page.
fn finish(frame: &mut Frame<'_>, bottom: Rect, facts: &Facts, view: &View, colors: Colors) {
    last_line(frame, bottom, facts, view.only_watches, colors);
    if view.asks_end {
        let lines = vec![Line::raw("End the campaign?  y: yes   any other key: no")];
        over(frame, "end", lines);
    } else if view.shows_help {
        over(frame, "keys", help(view));
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, list: &dyn List, view: &mut View) {
    let is_wide = area.width >= WIDE;
    let parts = match is_wide {
        true => [Constraint::Percentage(LIST_PERCENT), Constraint::Fill(1)],
        false => [Constraint::Fill(1), Constraint::Length(0)],
    };
    let [left, right] = Layout::horizontal(parts).areas(area);
    let room = usize::from(left.height.saturating_sub(1));
    let cursor = view.fit(list.len(), room);
    if list.len() == 0 {
        let lines = list.empty();
        let lines: Vec<Line<'_>> =
            lines.lines().map(|line| Line::raw(format!(" {line}"))).collect();
        return frame.render_widget(Paragraph::new(lines), area);
    }
    if !is_wide && cursor.in_text {
        return draw_text(frame, left, list, view, cursor);
    }
    let width = usize::from(left.width);
    let mut lines = vec![Line::styled(fit(&list.header(), width), DIM)];
    for index in cursor.top..list.len().min(cursor.top + room) {
        let row = list.row(index, width);
        lines.push(match index == cursor.row {
            true => padded(row, width).style(Style::new().add_modifier(Modifier::REVERSED)),
            false => row,
        });
    }
    frame.render_widget(Paragraph::new(lines), left);
    if is_wide {
        let block = Block::new().borders(ratatui::widgets::Borders::LEFT).border_style(
            match cursor.in_text {
                true => WARN,
                false => Style::new().fg(Color::DarkGray),
            },
        );
        let inner = block.inner(right);
        frame.render_widget(block, right);
        draw_text(frame, inner, list, view, cursor);
    }
}

/// Pads a row to `width`, so that the selection mark spans the line.
fn padded(row: Line<'static>, width: usize) -> Line<'static> {
    let rest = width.saturating_sub(row.width());
    let mut row = row;
    row.spans.push(Span::raw(" ".repeat(rest)));
    row
}

fn draw_text(frame: &mut Frame<'_>, area: Rect, list: &dyn List, view: &mut View, cursor: Cursor) {
    let Cursor { scroll, in_text: is_open, .. } = cursor;
    let mut part =
        TextPart { width: area.width.into(), height: area.height.into(), scroll, is_open };
    let mut lines = list.text(cursor.row, part);
    // Clamps a scroll position beyond the end to the last line.
    while lines.is_empty() && part.scroll > 0 {
        part.scroll = part.scroll.min(MOST_SCROLL) / 2;
        lines = list.text(cursor.row, part);
    }
    view.cursor().scroll = part.scroll;
    frame.render_widget(Paragraph::new(lines), area);
}

/// Maximum number of lines of a text.
const MOST_SCROLL: usize = 1 << 20;

fn heading(s: &Snapshot, width: u16, page: Page) -> Line<'static> {
    let setup = &s.setup;
    let (instance, banner) = (fit(&setup.instance, 20), fit(&setup.banner, 30));
    let mut left = format!(" ffuzz {} {{{instance}}} ({banner})", env!("CARGO_PKG_VERSION"));
    if s.control.paused {
        left += " [paused]";
    }
    // The overview shows the numbers in its panels.
    let facts = match page {
        Page::Overview => {
            left += &format!(" [{}]", setup.schedule);
            left += if setup.guided_by_domains { " [domains]" } else { "" };
            Vec::new()
        }
        _ => {
            let bugs = match s.finds.bugs {
                Some(bugs) => format!("bugs {bugs}"),
                None => format!("crashes {}", count(s.finds.saved_crashes)),
            };
            let edges = format!("edges {}/{}", s.coverage.edges_found, s.coverage.map_size);
            let time = short_time(s.times.run_time_ms / 1000);
            let runs = format!("runs {}", count(s.runs.execs));
            vec![time, rate(s.runs.execs_per_sec), bugs, edges, runs]
        }
    };
    let mut right = String::new();
    for fact in facts {
        if left.chars().count() + right.len() + fact.len() + 3 > usize::from(width) {
            break;
        }
        right = right + "  " + &fact;
    }
    let gap = usize::from(width).saturating_sub(left.chars().count() + right.len() + 1);
    let gap = " ".repeat(if right.is_empty() { 0 } else { gap });
    Line::from(vec![Span::styled(left, HEAD), Span::raw(gap), Span::styled(right, DIM)])
}

fn names(page: Page) -> Line<'static> {
    let name = |(number, one): (usize, Page)| match one == page {
        true => Span::styled(format!("[{number} {}]", one.name()), STRONG),
        false => Span::styled(format!(" {number} {} ", one.name()), DIM),
    };
    Line::from_iter((1..).zip(Page::ALL).map(name))
}

/// Draws the last line: the message or the keys, the shares of the time, and a warning if cores are overcommitted.
fn last_line(frame: &mut Frame<'_>, area: Rect, facts: &Facts, only_watches: bool, colors: Colors) {
    let resources = &facts.snapshot.resources;
    let shares = shares(&resources.shares);
    let load = resources.load_percent.map_or_else(String::new, |load| format!(" [cpu:{load:.0}%]"));
    let width = u16::try_from(shares.len() + load.len()).unwrap_or(u16::MAX);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).spacing(1).areas(area);
    let hints = match only_watches {
        true => " Tab next  q close  ? help",
        false => " Tab next  p pause  q quit  ? help",
    };
    let hints = if hints.len() > usize::from(left.width) { " Tab  p  q  ?" } else { hints };
    let (text, style) = match facts.message() {
        Some(message) => (message, WARN),
        None => (hints, DIM),
    };
    let text = fit(text, usize::from(left.width));
    frame.render_widget(Paragraph::new(Line::styled(text, style)), left);
    let too_much = resources.is_overloaded() && colors != Colors::CalmLoad;
    let load_style = if too_much { BAD } else { DIM };
    let line = Line::from(vec![Span::styled(shares, DIM), Span::styled(load, load_style)]);
    frame.render_widget(Paragraph::new(line), right);
}

fn shares(shares: &Shares) -> String {
    let Shares { target, hand_over, waiting, fuzzer } = shares;
    // A share that rounds to 0 is omitted.
    let waiting = match waiting {
        share if *share < 0.5 => String::new(),
        share => format!(" waiting {share:.0}%"),
    };
    match hand_over {
        Some(share) => {
            format!("[target {target:.0}% hand-over {share:.0}%{waiting} fuzzer {fuzzer:.0}%]")
        }
        None => format!("[target and hand-over {target:.0}%{waiting} fuzzer {fuzzer:.0}%]"),
    }
}

/// Draws a box in the middle of the screen.
fn over(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>) {
    let area = frame.area();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) + 4;
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let (x, y) = ((area.width - width) / 2, (area.height - height) / 2);
    let place = Rect { x, y, width, height };
    let block = Block::bordered().title(format!(" {title} "));
    let block = block.padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

fn help(view: &View) -> Vec<Line<'static>> {
    let (quit, pause) = match view.only_watches {
        true => ("close this screen; the campaign goes on", "no effect: this screen only watches"),
        false => ("end the campaign (Ctrl-C: at once)", "pause the campaign, or go on"),
    };
    let keys = [
        ("Tab, Shift-Tab, 1 to 8", "next page, page before, this page"),
        ("Up Down PgUp PgDn Home End", "move in the list or the text (also k j g G)"),
        ("Enter, Right", "show the text of the row, open the file"),
        ("Esc, Left", "back to the list"),
        ("p", pause),
        ("q", quit),
        ("Ctrl-Z", "stop the process; fg goes on"),
        ("Ctrl-L", "draw everything again"),
    ];
    let line = |(key, what): &(&str, &str)| {
        Line::from(vec![Span::styled(format!("{key:<28}"), STRONG), Span::raw((*what).to_owned())])
    };
    let mut lines: Vec<Line<'_>> = keys.iter().map(line).collect();
    lines.push(Line::default());
    let page = match view.page {
        Page::Overview => "The panels are those of AFL.",
        Page::Domains => "Values that the target reports; Enter: the best keys and their inputs.",
        Page::Stuck => "Places that inputs reach and where none goes on; Enter: the source.",
        Page::Bugs => "Crashes, grouped into bugs by the triage; Enter: the stacks.",
        Page::Source => "Files with most unreached lines first; Enter: functions, then lines.",
        Page::Queue => "Inputs that were kept, the newest first; Enter: their bytes.",
        Page::Stages => "What each stage of the search has found, for how many runs.",
        Page::Log => "What happened, the newest first.",
    };
    lines.push(Line::raw(page));
    lines
}

/// Source lines around `line`, numbered, with `line` marked.
fn excerpt(source: &str, line: u32, part: TextPart) -> Vec<Line<'static>> {
    let height = u32::try_from(part.height).unwrap_or(u32::MAX);
    let first = line.saturating_sub(height / 2).max(1);
    let lines = file::lines(Path::new(source), first, part.height);
    let shown = lines.into_iter().map(|(number, text)| {
        let mark = if number == line { '>' } else { ' ' };
        let text = fit(&format!("{mark}{number:>6} {}", untabbed(&text)), part.width);
        Line::styled(text, if number == line { STRONG } else { Style::new() })
    });
    shown.collect()
}

/// Replaces tabs by spaces: a terminal cell cannot hold a tab.
fn untabbed(text: &str) -> String {
    text.replace('\t', "    ")
}

/// A `name: value` line of a text.
fn fact(name: &str, value: &str, width: usize) -> Line<'static> {
    let text = fit(value, width.saturating_sub(13));
    Line::from(vec![Span::styled(format!(" {name:<11} "), DIM), Span::raw(text)])
}

/// The answer to a question, or the text shown while it is pending or after it failed.
fn answer(facts: &Facts, question: Value) -> Result<&Value, String> {
    match facts.answers.get(question) {
        None => Err("… the queue is run in a process of its own".into()),
        Some(answer) => answer.map_err(|error| format!("not known: {error}")),
    }
}

/// The well-formed entries of an answer.
fn entries<T: DeserializeOwned>(answer: &Value) -> Vec<T> {
    let entries = answer["entries"].as_array().into_iter().flatten();
    entries.filter_map(|one| T::deserialize(one).ok()).collect()
}
