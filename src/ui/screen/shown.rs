//! The thread of the screen: owns the terminal, the shown data and the user's choices.

use std::io::{self, Stdout, Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::asking::Answers;
use super::facts::{Facts, Queue};
use super::inbox::{Batch, Inbox};
use super::keys::Keys;
use super::terminal::TerminalGuard;
use super::view::{Action, Page, View};
use super::{Surroundings, Wish};
use crate::pages;
use crate::plain::Plain;
use ffuzz_config::options::Colors;
use ffuzz_event::{Event, EventSink, Snapshot};
use ffuzz_sys::{stdio, terminal};

/// Number of warnings that are printed again after the screen closes.
const WARNINGS_KEPT: usize = 20;
/// Size if the terminal reports none (`AFL_FORCE_UI` without a terminal).
const DEFAULT_SIZE: Rect = Rect { x: 0, y: 0, width: 80, height: 24 };
/// Maximum wait for keys or events.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two frames without a key.
const FRAME: Duration = Duration::from_millis(500);
/// A page asks questions only after this time: the user may be passing through.
const GLANCE: Duration = Duration::from_millis(300);

pub(super) struct Shown {
    // Declared before `lines`: the guard restores the terminal first.
    screen: Option<OpenScreen>,
    inbox: Arc<Inbox>,
    /// True once fuzzing has begun or another process fuzzes. The screen is then shown while this process is in the
    /// foreground.
    is_wanted: bool,
    lines: Plain<Stdout>,
    colors: Colors,
    log: Option<PathBuf>,
    wish: Box<dyn Fn(Wish) + Send>,
    facts: Facts,
    view: View,
    warnings: Vec<String>,
    /// The page of the last frame and the time it was first shown.
    page: (Page, Instant),
    last_frame: Instant,
    has_news: bool,
}

struct OpenScreen {
    terminal: Terminal<CrosstermBackend<Output>>,
    /// None without a readable terminal.
    keys: Option<Keys>,
    size: Option<Size>,
    _guard: TerminalGuard,
}

impl Shown {
    pub(super) fn new(inbox: Arc<Inbox>, colors: Colors, around: Surroundings) -> Self {
        let Surroundings { root, log, ask, wish, only_watches } = around;
        let facts = Facts {
            queue: Queue::of(root),
            // Without the thread, pages that need answers stay empty.
            answers: Answers::from(ask).unwrap_or_default(),
            ..Facts::default()
        };
        let now = Instant::now();
        Self {
            screen: None,
            inbox,
            is_wanted: only_watches,
            lines: Plain::new(stdout()),
            colors,
            log,
            wish,
            facts,
            view: View { only_watches, ..View::default() },
            warnings: Vec::new(),
            page: (Page::default(), now),
            last_frame: now,
            has_news: false,
        }
    }

    /// Runs until the inbox is closed.
    pub(super) fn run(mut self) {
        // Signal handlers run in the main thread; a read in the background then fails instead of stopping the process.
        terminal::block_signals();
        loop {
            self.show_or_hide();
            let reads_keys = self.screen.as_ref().is_some_and(|screen| screen.keys.is_some());
            let Batch { events, tick, is_last } =
                self.inbox.take(if reads_keys { Duration::ZERO } else { LOOK });
            for (worker, event) in events {
                self.take(worker.as_deref(), event);
            }
            if let Some(tick) = tick {
                self.tick(*tick);
            }
            if is_last {
                return self.hide();
            }
            if self.screen.is_some() {
                self.has_news |= self.facts.answers.receive();
                self.read_keys();
                self.draw_if_due();
            }
        }
    }

    fn take(&mut self, worker: Option<&str>, event: Event) {
        self.facts.note(worker, &event);
        self.has_news = true;
        match &event {
            Event::Started if worker.is_none() => self.is_wanted = true,
            Event::Stopped { .. } if worker.is_none() => {
                self.hide();
                self.lines.handle(&event);
            }
            Event::Warning { message } | Event::Notice { message } if self.screen.is_some() => {
                self.keep(worker, message);
            }
            Event::TargetRestarted { reason } if self.screen.is_some() => {
                self.keep(worker, &format!("target restarted: {reason}"));
            }
            _ if self.screen.is_some() => {}
            _ => match worker {
                None => self.lines.handle(&event),
                Some(worker) => self.lines.handle_of(worker, &event),
            },
        }
    }

    fn keep(&mut self, worker: Option<&str>, text: &str) {
        let text = worker.map_or_else(|| text.to_owned(), |worker| format!("{worker}: {text}"));
        if self.warnings.len() < WARNINGS_KEPT && !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    fn tick(&mut self, snapshot: Snapshot) {
        self.has_news = true;
        self.facts.knows_stuck = !self.view.only_watches && snapshot.workers.is_empty();
        self.facts.snapshot = snapshot;
        if self.screen.is_none() {
            let snapshot = Box::new(self.facts.snapshot.clone());
            self.lines.handle(&Event::Tick(snapshot));
        }
    }

    /// Opens the screen unless it is open or this process is in the background. After Ctrl-Z or another stop the screen
    /// is opened again: another process has used the terminal.
    fn show_or_hide(&mut self) {
        if self.screen.is_some() && !terminal::is_intact() {
            self.screen = None;
        }
        if !self.is_wanted || self.screen.is_some() || !terminal::may_enter() {
            return;
        }
        let guard = TerminalGuard::enter(self.log.as_deref());
        let backend = || Output::new().map(CrosstermBackend::new);
        let fixed = TerminalOptions { viewport: Viewport::Fixed(DEFAULT_SIZE) };
        let terminal = backend()
            .and_then(Terminal::new)
            .or_else(|_| Terminal::with_options(backend()?, fixed));
        // Dropping the guard returns to plain lines if the screen could not be opened.
        self.screen = terminal.ok().map(|terminal| OpenScreen {
            terminal,
            keys: Keys::open().ok(),
            size: None,
            _guard: guard,
        });
        self.draw();
    }

    /// Waits a moment for keys; also detects a new terminal size.
    fn read_keys(&mut self) {
        let Some(screen) = &mut self.screen else { return };
        if let Some(keys) = &mut screen.keys {
            match keys.read(LOOK) {
                Ok(typed) => {
                    typed.into_iter().for_each(|(code, modifiers)| self.typed(code, modifiers))
                }
                // No keys arrive in the background; after `fg` the screen is opened again.
                Err(_) => screen.keys = None,
            }
        }
        let Some(screen) = &mut self.screen else { return };
        let size = screen.terminal.size().ok();
        if screen.size != size {
            screen.size = size;
            self.draw();
        }
    }

    fn typed(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        match self.view.key(code, modifiers) {
            Some(Action::End) => (self.wish)(Wish::End),
            Some(Action::Pause) if self.view.only_watches => {
                self.facts.say("this screen only watches: pause the campaign at its own");
            }
            Some(Action::Pause) if self.facts.snapshot.control.paused => {
                (self.wish)(Wish::Resume);
                self.facts.say("goes on");
            }
            Some(Action::Pause) => {
                (self.wish)(Wish::Pause);
                self.facts.say("pauses; p goes on");
            }
            Some(Action::Open(row)) => {
                let file = pages::file_in_row(&self.facts, row);
                file.into_iter().for_each(|file| self.view.open(file));
            }
            Some(Action::Redraw) => {
                self.screen.iter_mut().for_each(|screen| drop(screen.terminal.clear()));
            }
            None => {}
        }
        self.draw();
    }

    fn draw_if_due(&mut self) {
        if self.has_news && self.last_frame.elapsed() >= FRAME {
            self.draw();
        }
    }

    fn draw(&mut self) {
        if self.view.page != self.page.0 {
            self.page = (self.view.page, Instant::now());
        }
        if self.view.page == Page::Queue {
            self.facts.queue.refresh();
        }
        let Some(screen) = &mut self.screen else { return };
        let Self { facts, view, colors, .. } = self;
        let drawn = screen.terminal.draw(|frame| pages::draw(frame, facts, view, *colors));
        // The terminal is gone; plain lines are lost as well.
        if drawn.is_err() {
            self.screen = None;
        }
        let may_ask = self.page.1.elapsed() >= GLANCE;
        self.facts.answers.ask(may_ask);
        // A page that may not ask yet needs another frame.
        self.has_news = !may_ask;
        self.last_frame = Instant::now();
    }

    /// Returns to plain lines and prints the messages kept meanwhile.
    fn hide(&mut self) {
        self.screen = None;
        self.is_wanted = false;
        for warning in std::mem::take(&mut self.warnings) {
            self.lines.line(&format!("[!] {warning}"));
        }
    }
}

/// The user's terminal. A frame is written as a whole, and dropped after the screen was left: a signal may arrive at
/// any time.
struct Output {
    to: std::fs::File,
    frame: Vec<u8>,
}

impl Output {
    fn new() -> io::Result<Self> {
        Ok(Self { to: stdio::output()?, frame: Vec::new() })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        match terminal::is_shown() {
            true => self.to.write_all(&frame),
            false => Ok(()),
        }
    }
}
