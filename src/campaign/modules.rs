//! Modules whose work on a seed goes on after a restart: their stage, their states on disk, and the
//! sequential mode, in which one of them does everything.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Campaign, CampaignError};
use crate::config::options::Input;
use crate::disk::output::replace_file;
use crate::disk::output::state::State;
use crate::engine::corpus::SeedId;
use crate::engine::schedule::Budget;
use crate::engine::stage::foreign::Foreign;
use crate::engine::stage::produce::Producer;
use crate::engine::stage::{StageEnd, run_producer};
use crate::event::{Event, StopReason};
use crate::mutators::states::{Reached, States};

/// The one seed of the sequential mode.
const ONLY: SeedId = SeedId(0);

impl Campaign {
    /// Before anything is stored: what a module refuses is found out here, with the first of
    /// `count` seeds, and work of an earlier process is taken up.
    pub(super) fn prepare_modules(
        &mut self,
        first: &[u8],
        count: usize,
        state: &State,
    ) -> Result<(), CampaignError> {
        let only = self.options.custom.killerbeez.only;
        if only && count != 1 && self.options.input != Input::Resume {
            return Err(CampaignError::OneSeed { count });
        }
        self.fuzzer.mutators.check(first).map_err(CampaignError::Mutator)?;
        self.fuzzer.mutators.restore(&state.mutators);
        if let Some(path) = self.options.custom.killerbeez.state.clone()
            && let Some(text) = read_state(&path)?
            && let Some(states) = self.only_states()
        {
            states.set(ONLY, Some(Reached::State(text)));
        }
        Ok(())
    }

    /// `--mutator-only`: everything that the module makes of the seed, in order.
    pub(super) fn sequence(&mut self) -> Result<StopReason, CampaignError> {
        let mut made = 0;
        loop {
            if let Some(reason) = self.stop_reason() {
                return Ok(reason);
            }
            let mut stage = Foreign::late(Budget::of_runs(u64::MAX));
            let end = run_producer(self, ONLY, &mut stage)?;
            made += stage.progress(Duration::ZERO).0;
            self.tick_if_due();
            let name = self.options.custom.killerbeez.modules[0].name.clone();
            match self.only_states().and_then(|states| states.get(ONLY).cloned()) {
                Some(Reached::Exhausted(_)) => {
                    let message = format!("mutator {name} exhausted after {made} inputs");
                    self.bus.send(&Event::Notice { message });
                    return Ok(StopReason::Done);
                }
                Some(Reached::State(_)) => {}
                // Without a state it would start over for ever.
                None if end == StageEnd::TurnOver => return Ok(StopReason::Done),
                _ => return Err(CampaignError::MutatorFailed { name, made }),
            }
        }
    }

    fn only_states(&mut self) -> Option<&mut States> {
        self.fuzzer.mutators.states_mut().next()
    }

    /// What an earlier process left. A damaged file costs time, not finds: the queue has them all.
    pub(super) fn load_state(&mut self) -> State {
        let (edges, keys) =
            (self.fuzzer.target().map_size(), self.fuzzer.judge().aggregates().values().len());
        let flaw = match self.output.load_state() {
            // Of another target only statistics are taken up.
            Ok(state) if state.target != self.fingerprint => return state,
            Ok(state) => match state.flaw_for(edges, keys) {
                None => return state,
                Some(flaw) => format!("cannot use state.json: {flaw}"),
            },
            Err(error) => error.to_string(),
        };
        self.warn(format!("{flaw}; every queue entry is run again, mutators start over"));
        State::default()
    }

    /// Called now and then, between two batches: what was made was run by then.
    pub(super) fn save_state_if_due(&mut self) {
        if self.last_saved.elapsed() >= self.options.output.stats_interval {
            self.save_state();
        }
    }

    /// The file for the next process, and the one that the user has named.
    pub(super) fn save_state(&mut self) {
        self.last_saved = Instant::now();
        self.save_coverage();
        // As long as seeds are missing, the file of the earlier process is the better one.
        if self.complete {
            if let Err(error) = self.restore_queue() {
                self.warn(error.to_string());
            }
            let state = self.state();
            if let Err(error) = self.output.save_state(&state) {
                self.warn(error.to_string());
            }
        }
        let Some(path) = self.options.custom.killerbeez.state.clone() else { return };
        let text = match self.only_states().and_then(|states| states.get(ONLY)) {
            Some(Reached::State(text) | Reached::Exhausted(Some(text))) => text.clone(),
            _ => return,
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        if let Err(error) = replace_file(folder, &path, text.as_bytes()) {
            self.warn(error.to_string());
        }
    }
}

/// A module's state; None if there is no file yet.
fn read_state(path: &Path) -> Result<Option<CString>, CampaignError> {
    let failed = |source| CampaignError::MutatorState { path: path.into(), source };
    match fs::read(path) {
        Ok(text) => {
            // Files that were written by hand end with a line feed, C strings with a zero.
            let text = text.strip_suffix(b"\0").unwrap_or(&text).to_vec();
            CString::new(text).map(Some).map_err(|error| failed(error.into()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
