//! Inputs of the screen besides events: answers to its questions, and a channel for its requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::config::options::UiMode;
use crate::fleet::control::{Command, CommandSource, Questions};
use crate::ui::{self, Surroundings, Wish};

/// Answers from a process that starts with the first question and ends when this is dropped.
pub(super) struct Analysis(Arc<Questions>);

impl Analysis {
    /// `root` is the folder of `-o`. Call this before the process is bound to a core.
    pub(super) fn of(root: &Path) -> Self {
        Self(Arc::new(Questions::new(root.to_owned())))
    }

    pub(super) fn questions(&self) -> Arc<Questions> {
        Arc::clone(&self.0)
    }

    /// The surroundings of a campaign's own screen; its requests go to `control`. `log` gets the output of foreign
    /// code.
    pub(super) fn surroundings(
        &self,
        mode: UiMode,
        root: &Path,
        log: Option<PathBuf>,
        control: &mut Vec<CommandSource>,
    ) -> Surroundings {
        let (sender, commands) = channel();
        if ui::is_screen(mode) {
            control.push(CommandSource::Inside(commands));
        }
        let wish = move |wish| {
            let command = match wish {
                Wish::Pause => Command::Pause,
                Wish::Resume => Command::Resume,
                Wish::End => Command::Stop,
            };
            // After the end there is no receiver.
            let _ = sender.send(command);
        };
        Surroundings { log, ..self.watching(root, Box::new(wish), false) }
    }

    /// The surroundings of a screen that only watches. `wish` only handles the end.
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
