//! What the screen has beside events: answers to its questions, and a way for its wishes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::config::options::UiMode;
use crate::fleet::control::{Command, Control, Questions};
use crate::ui::{self, Surroundings, Wish};

/// The answers of a process that is started with the first question, and ends with this.
pub(super) struct Analysis(Arc<Questions>);

impl Analysis {
    /// `root`: the folder of `-o`. To be called before this process is bound to a core.
    pub(super) fn of(root: &Path) -> Self {
        Self(Arc::new(Questions::new(root.to_owned())))
    }

    pub(super) fn questions(&self) -> Arc<Questions> {
        Arc::clone(&self.0)
    }

    /// The surroundings of a campaign's own screen; its wishes are added to `control`. `log` gets the output of foreign
    /// code.
    pub(super) fn surroundings(
        &self,
        mode: UiMode,
        root: &Path,
        log: Option<PathBuf>,
        control: &mut Vec<Control>,
    ) -> Surroundings {
        let (sender, commands) = channel();
        if ui::is_screen(mode) {
            control.push(Control::Inside(commands));
        }
        let wish = move |wish| {
            let command = match wish {
                Wish::Pause => Command::Pause,
                Wish::Resume => Command::Resume,
                Wish::End => Command::Stop,
            };
            // Nobody receives it after the end.
            let _ = sender.send(command);
        };
        Surroundings { log, ..self.watching(root, Box::new(wish), false) }
    }

    /// Those of a screen that only watches. `wish` is for the end alone.
    pub(super) fn watching(
        &self,
        root: &Path,
        wish: Box<dyn Fn(Wish) + Send>,
        only_watches: bool,
    ) -> Surroundings {
        let questions = self.questions();
        let ask = move |question: &serde_json::Value| questions.ask_inside(question);
        Surroundings { root: root.to_owned(), log: None, ask: Arc::new(ask), wish, only_watches }
    }
}

impl Drop for Analysis {
    fn drop(&mut self) {
        self.0.stop();
    }
}
