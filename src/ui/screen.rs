//! The full-screen sink: plain lines until fuzzing begins, then panels, then plain lines again.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::panels;
use super::plain::Plain;
use super::terminal::TerminalGuard;
use ffuzz_config::options::Colors;
use ffuzz_event::{Event, EventSink, Snapshot};
use ffuzz_sys::{stdio, terminal};

/// Number of warnings that are printed again after the screen is closed.
const WARNINGS_KEPT: usize = 20;
/// Size if the terminal reports none (`AFL_FORCE_UI` without a terminal).
const DEFAULT_SIZE: Rect = Rect { x: 0, y: 0, width: 80, height: 24 };

/// Draws on stdout. Everything that has to stay on the terminal goes through `lines`.
#[derive(Debug)]
pub struct Screen<W: Write> {
    // Dropped before `lines` is used: the guard restores the terminal.
    shown: Option<OpenScreen>,
    /// Fuzzing has begun: the screen is shown while this process is in the foreground.
    wanted: bool,
    lines: Plain<W>,
    colors: Colors,
    /// Gets the output of foreign code while the screen is shown.
    log: Option<PathBuf>,
    warnings: Vec<String>,
    message: String,
}

#[derive(Debug)]
struct OpenScreen {
    terminal: Terminal<CrosstermBackend<File>>,
    _guard: TerminalGuard,
}

impl<W: Write> Screen<W> {
    pub fn new(lines: Plain<W>, colors: Colors, log: Option<PathBuf>) -> Self {
        Self {
            shown: None,
            wanted: false,
            lines,
            colors,
            log,
            warnings: Vec::new(),
            message: String::new(),
        }
    }

    /// Opens the screen, unless it is open or this process is in the background.
    fn show(&mut self) {
        if self.shown.is_some() || !terminal::is_foreground() {
            return;
        }
        let guard = TerminalGuard::enter(self.log.as_deref());
        let backend = || stdio::output().map(CrosstermBackend::new);
        let fixed = TerminalOptions { viewport: Viewport::Fixed(DEFAULT_SIZE) };
        let terminal = backend()
            .and_then(Terminal::new)
            .or_else(|_| Terminal::with_options(backend()?, fixed));
        // Without a screen, plain lines continue; the guard is dropped here in that case.
        self.shown = terminal.ok().map(|terminal| OpenScreen { terminal, _guard: guard });
    }

    /// Redraws everything after Ctrl-Z or any other stop: another process used the terminal.
    fn draw(&mut self, snapshot: &Snapshot) -> bool {
        if self.shown.is_some() && !terminal::is_intact() {
            self.shown = None;
        }
        if self.wanted {
            self.show();
        }
        let Some(shown) = &mut self.shown else { return false };
        let (message, colors) = (&self.message, self.colors);
        let _ = shown.terminal.draw(|frame| panels::draw(frame, snapshot, message, colors));
        true
    }

    fn warn(&mut self, text: String) {
        if self.warnings.len() < WARNINGS_KEPT && !self.warnings.contains(&text) {
            self.warnings.push(text.clone());
        }
        self.message = text;
    }

    /// Returns to plain lines, and prints the messages of the meantime.
    fn hide(&mut self) {
        self.shown = None;
        self.wanted = false;
        for warning in std::mem::take(&mut self.warnings) {
            self.lines.line(&format!("[!] {warning}"));
        }
    }
}

impl<W: Write> EventSink for Screen<W> {
    fn shows_blockers(&self) -> bool {
        true
    }

    fn handle(&mut self, event: &Event) {
        match event {
            Event::Started => {
                self.wanted = true;
                self.show();
            }
            Event::Stopped { .. } => {
                self.hide();
                self.lines.handle(event);
            }
            Event::Tick(snapshot) if self.draw(snapshot) => {}
            Event::Warning { message } | Event::Notice { message } if self.shown.is_some() => {
                self.warn(message.clone());
            }
            Event::TargetRestarted { reason } if self.shown.is_some() => {
                self.warn(format!("target restarted: {reason}"));
            }
            _ if self.shown.is_some() => {}
            _ => self.lines.handle(event),
        }
    }

    fn handle_of(&mut self, worker: &str, event: &Event) {
        match event {
            _ if self.shown.is_none() => self.lines.handle_of(worker, event),
            Event::Warning { message } | Event::Notice { message } => {
                self.warn(format!("{worker}: {message}"));
            }
            Event::TargetRestarted { reason } => {
                self.warn(format!("{worker}: target restarted: {reason}"));
            }
            _ => {}
        }
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // A campaign that ends with an error sends no `Stopped`; its warnings explain it.
        self.hide();
    }
}
