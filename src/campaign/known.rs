//! `--load-coverage` and `--save-coverage`: what is not new although this campaign has not seen it, and
//! what others need not look for.

use super::{Campaign, CampaignError};
use crate::disk::coverage::{self, CoverageError};
use crate::engine::feedback::Part;
use crate::event::Event;
use crate::exec::{self, binary};

impl Campaign {
    /// Before the first run, and before anything is stored.
    pub(super) fn load_coverage(&mut self) -> Result<(), CampaignError> {
        let asked = &self.options.coverage;
        if asked.is_empty() {
            return Ok(());
        }
        if self.fuzzer.target().map_size() == 0 {
            return Err(CoverageError::NoEdges.into());
        }
        asked.save.as_deref().map_or(Ok(()), coverage::check_place)?;
        let Some(path) = asked.load.clone() else { return Ok(()) };
        let known = coverage::read_for(&path, &self.fuzzer.judge().known(self.parts()))?;
        self.fuzzer.know(&known);
        let ([edges, crashes, hangs, keys], path) = (known.counts(), path.display());
        if known.parts.is_empty() {
            let message = format!("{path} does not name its program: it is taken for this one");
            self.warn(message);
        }
        let message = format!(
            "known from {path}: {edges} edges, {crashes} crash edges, {hangs} hang edges, {keys} \
             keys; only what is beyond counts as new"
        );
        self.bus.send(&Event::Notice { message });
        Ok(())
    }

    /// Together with `state.json`.
    pub(super) fn save_coverage(&mut self) {
        let Some(path) = self.options.coverage.save.clone() else { return };
        let known = self.fuzzer.judge().known(self.parts());
        if let Err(error) = coverage::write(&path, &known) {
            self.warn(format!("{error} ({})", error.remedy()));
        }
    }

    fn parts(&self) -> Vec<Part> {
        let target = &self.options.target;
        let program = target.command.first().cloned().unwrap_or_default();
        let program = binary::locate(&program, target.search_path.as_deref());
        exec::parts(self.fuzzer.target(), &program.unwrap_or_default())
    }
}
