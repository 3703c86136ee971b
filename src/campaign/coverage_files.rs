//! `--load-coverage` and `--save-coverage`: coverage that is known from elsewhere, and coverage for
//! other campaigns to skip.

use std::ffi::OsString;

use super::CampaignError;
use super::outside::Outside;
use crate::config::options::{CoverageOptions, Options};
use crate::disk::coverage::{self, CoverageError};
use crate::engine::feedback::Part;
use crate::engine::fuzzer::Fuzzer;
use crate::inspect::binary;
use crate::inspect::parts::parts;
use crate::mutators::Mutators;
use crate::sys::remedy::Remedy;

/// The two files, and the program to whose edges they refer.
pub(super) struct CoverageFiles {
    files: CoverageOptions,
    program: OsString,
    search_path: Option<OsString>,
}

impl CoverageFiles {
    pub(super) fn new(options: &Options) -> Self {
        let target = &options.target;
        Self {
            files: options.coverage.clone(),
            program: target.command.first().cloned().unwrap_or_default(),
            search_path: target.search_path.clone(),
        }
    }

    /// Loads the known coverage; call it before the first run, and before anything is stored.
    pub(super) fn load(
        &self,
        fuzzer: &mut Fuzzer<Mutators>,
        outside: &mut Outside,
    ) -> Result<(), CampaignError> {
        if self.files.is_empty() {
            return Ok(());
        }
        if fuzzer.target().map_size() == 0 {
            return Err(CoverageError::NoEdges.into());
        }
        self.files.save.as_deref().map_or(Ok(()), coverage::check_place)?;
        let Some(path) = &self.files.load else { return Ok(()) };
        let known = coverage::read_for(path, &fuzzer.judge().known(self.parts(fuzzer)))?;
        fuzzer.know(&known);
        let ([edges, crashes, hangs, keys], path) = (known.counts(), path.display());
        if known.parts.is_empty() {
            let message = format!("{path} does not name its program: it is taken for this one");
            outside.warn(message);
        }
        outside.reports.note(format!(
            "known from {path}: {edges} edges, {crashes} crash edges, {hangs} hang edges, {keys} \
             keys; only what is beyond counts as new"
        ));
        Ok(())
    }

    /// Saves the coverage together with `state.json`.
    pub(super) fn save(&self, fuzzer: &Fuzzer<Mutators>, outside: &mut Outside) {
        let Some(path) = &self.files.save else { return };
        let known = fuzzer.judge().known(self.parts(fuzzer));
        if let Err(error) = coverage::write(path, &known) {
            outside.warn(format!("{error} ({})", error.remedy()));
        }
    }

    fn parts(&self, fuzzer: &Fuzzer<Mutators>) -> Vec<Part> {
        let program = binary::locate(&self.program, self.search_path.as_deref());
        parts(fuzzer.target(), &program.unwrap_or_default())
    }
}
