//! The user's choices: the page, the row, the text of a row. Only keys change them.

use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// A page of the screen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Page {
    #[default]
    Overview,
    Domains,
    Stuck,
    Bugs,
    Source,
    Queue,
    Stages,
    Log,
}

/// Names of the pages, in their order.
const NAMES: [&str; Page::ALL.len()] =
    ["overview", "domains", "stuck", "bugs", "source", "queue", "stages", "log"];

impl Page {
    /// All pages, in the order of their digits.
    pub(crate) const ALL: [Self; 8] = [
        Self::Overview,
        Self::Domains,
        Self::Stuck,
        Self::Bugs,
        Self::Source,
        Self::Queue,
        Self::Stages,
        Self::Log,
    ];

    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    fn after(self, steps: usize) -> Self {
        Self::ALL[(self as usize + steps) % Self::ALL.len()]
    }
}

/// A request of a key to the campaign or the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    /// Pause or resume.
    Pause,
    End,
    /// List the functions of the file in this row.
    Open(usize),
    Redraw,
}

/// A position in the list of a page.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cursor {
    pub(crate) row: usize,
    /// First visible row.
    pub(crate) top: usize,
    /// True if keys scroll the row's text.
    pub(crate) in_text: bool,
    /// Number of text lines above the screen.
    pub(crate) scroll: usize,
}

#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) page: Page,
    pub(crate) cursors: [Cursor; Page::ALL.len()],
    /// The file whose functions the source page lists; None: it lists the files.
    pub(crate) file: Option<String>,
    pub(crate) shows_help: bool,
    pub(crate) asks_end: bool,
    /// The campaign takes no commands from here; closing the screen ends nothing else.
    pub(crate) only_watches: bool,
    /// Number of rows in the list.
    pub(crate) rows: usize,
    /// Number of rows that fitted in the last frame.
    pub(crate) room: usize,
}

impl View {
    pub(crate) fn cursor(&mut self) -> &mut Cursor {
        &mut self.cursors[self.page as usize]
    }

    /// Stores the list's length and room, and scrolls to keep the selected row visible.
    pub(crate) fn fit(&mut self, rows: usize, room: usize) -> Cursor {
        (self.rows, self.room) = (rows, room);
        let cursor = self.cursor();
        cursor.row = cursor.row.min(rows.saturating_sub(1));
        let lowest = (cursor.row + 1).saturating_sub(room.max(1));
        cursor.top = cursor.top.clamp(lowest, cursor.row.max(lowest));
        *cursor
    }

    /// Handles a key. None: only the view changed.
    pub(crate) fn key(&mut self, key: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        if std::mem::take(&mut self.asks_end) {
            return matches!(key, KeyCode::Char('y' | 'Y')).then_some(Action::End);
        }
        if std::mem::take(&mut self.shows_help) {
            return None;
        }
        match key {
            KeyCode::Char('l') if modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(Action::Redraw);
            }
            KeyCode::Tab => self.page = self.page.after(1),
            KeyCode::BackTab => self.page = self.page.after(Page::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='8') => {
                self.page = Page::ALL[digit as usize - '1' as usize];
            }
            KeyCode::Char('p') => return Some(Action::Pause),
            KeyCode::Char('q') if self.only_watches => return Some(Action::End),
            KeyCode::Char('q') => self.asks_end = true,
            KeyCode::Char('?') => self.shows_help = true,
            KeyCode::Enter | KeyCode::Right if self.rows > 0 => return self.enter(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.leave(),
            _ => self.go(key),
        }
        None
    }

    fn enter(&mut self) -> Option<Action> {
        let opens = self.page == Page::Source && self.file.is_none();
        let cursor = self.cursor();
        if opens {
            return Some(Action::Open(cursor.row));
        }
        (cursor.in_text, cursor.scroll) = (true, 0);
        None
    }

    fn leave(&mut self) {
        let cursor = self.cursor();
        if std::mem::take(&mut cursor.in_text) {
            return;
        }
        if self.page == Page::Source && self.file.take().is_some() {
            *self.cursor() = Cursor::default();
        }
    }

    /// Shows the functions of a file.
    pub(crate) fn open(&mut self, file: String) {
        self.file = Some(file);
        *self.cursor() = Cursor::default();
    }

    fn go(&mut self, key: KeyCode) {
        let (last, room) = (self.rows.saturating_sub(1), self.room.max(1));
        let cursor = self.cursor();
        let (at, last) = match cursor.in_text {
            // The text's length is only known when drawn.
            true => (&mut cursor.scroll, usize::MAX / 2),
            false => (&mut cursor.row, last),
        };
        *at = match key {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (*at + 1).min(last),
            KeyCode::PageUp => at.saturating_sub(room),
            KeyCode::PageDown => (*at + room).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return,
        };
        if !cursor.in_text {
            cursor.scroll = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &[KeyCode]) -> Option<Action> {
        keys.iter().fold(None, |_, key| view.key(*key, KeyModifiers::NONE))
    }

    #[test]
    fn digits_and_tab_choose_the_page_and_each_keeps_its_row() {
        let mut view = View::default();
        press(&mut view, &[KeyCode::Char('3')]);
        assert_eq!(view.page, Page::Stuck);
        view.fit(50, 10);
        press(&mut view, &[KeyCode::PageDown, KeyCode::Down, KeyCode::Down]);
        assert_eq!(view.fit(50, 10), Cursor { row: 12, top: 3, ..Cursor::default() });
        press(&mut view, &[KeyCode::BackTab, KeyCode::BackTab, KeyCode::BackTab]);
        assert_eq!((view.page, view.fit(4, 10).row), (Page::Log, 0));
        press(&mut view, &[KeyCode::Tab]);
        assert_eq!(view.page, Page::Overview);
        press(&mut view, &[KeyCode::Char('3')]);
        view.fit(50, 10);
        press(&mut view, &[KeyCode::End]);
        // A list that has become shorter clamps the row.
        assert_eq!((view.fit(5, 10).row, view.fit(0, 10).row), (4, 0));
    }

    #[test]
    fn an_end_is_asked_for_unless_the_screen_only_watches() {
        let mut view = View::default();
        assert_eq!(press(&mut view, &[KeyCode::Char('q'), KeyCode::Char('n')]), None);
        assert_eq!(press(&mut view, &[KeyCode::Char('y')]), None);
        assert_eq!(press(&mut view, &[KeyCode::Char('q'), KeyCode::Char('y')]), Some(Action::End));
        assert_eq!(press(&mut view, &[KeyCode::Char('?'), KeyCode::Char('q')]), None);
        assert!(!view.asks_end && !view.shows_help);
        view.only_watches = true;
        assert_eq!(press(&mut view, &[KeyCode::Char('q')]), Some(Action::End));
    }

    #[test]
    fn a_file_is_opened_before_a_function_and_left_after_it() {
        let mut view = View::default();
        press(&mut view, &[KeyCode::Char('5')]);
        assert_eq!(press(&mut view, &[KeyCode::Enter]), None, "nothing is listed yet");
        view.fit(3, 10);
        let open = press(&mut view, &[KeyCode::Down, KeyCode::Enter]);
        assert_eq!(open, Some(Action::Open(1)));
        view.open("a.c".into());
        view.fit(3, 10);
        press(&mut view, &[KeyCode::Enter, KeyCode::Down]);
        assert_eq!((view.cursor().in_text, view.cursor().scroll), (true, 1));
        press(&mut view, &[KeyCode::Esc]);
        assert_eq!(view.file.as_deref(), Some("a.c"));
        press(&mut view, &[KeyCode::Esc]);
        assert_eq!(view.file, None);
    }
}
