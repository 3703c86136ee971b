//! Killerbeez modules: one object per (module, seed), whose state is kept between the seed's turns.

mod parts;

use std::ffi::{CStr, CString};
use std::rc::Rc;

use rand_core::{Rng as _, SeedableRng};

use super::states::{Reached, States};
use super::{Hook, HookError, Hooks, Job, Made, Mutator};
use ffuzz_abi::killerbeez::{Buffer, ForeignModule, ModuleError, MutateResult, Object};
use ffuzz_config::options::{KillerbeezModule, KillerbeezOptions};
use ffuzz_engine::corpus::SeedId;
use ffuzz_engine::mutate::Rng;

/// A module with what it has reached.
#[derive(Debug)]
pub struct Killerbeez {
    /// Short name, for messages and, as `op:NAME`, for files.
    name: String,
    module: Rc<ForeignModule>,
    options: Option<CString>,
    ratio: f64,
    max_len: usize,
    /// What libc's generator begins with for every object (`-s`); else something else each time.
    fixed_seed: Option<u32>,
    rng: Rng,
    states: States,
    stage: Option<(SeedId, Session)>,
    /// It was reported that no states can be saved.
    reported: bool,
}

impl Killerbeez {
    /// Loads a module; `seed` is for its randomness.
    pub fn open(
        wanted: &KillerbeezModule,
        common: &KillerbeezOptions,
        seed: u64,
    ) -> Result<Self, ModuleError> {
        Ok(Self {
            name: wanted.name.clone(),
            module: ForeignModule::open(&wanted.path)?,
            options: wanted.options.clone(),
            ratio: common.ratio,
            max_len: common.max_len,
            fixed_seed: common.fixed_seed.map(|seed| seed as u32),
            rng: Rng::seed_from_u64(seed),
            states: States::new(&wanted.name, wanted.options.as_deref()),
            stage: None,
            reported: false,
        })
    }

    /// Begins with an input, where `state` left it. None if the module refuses one of both.
    fn session(&mut self, state: Option<&CStr>, input: &[u8]) -> Option<Session> {
        let seed = self.fixed_seed.unwrap_or_else(|| self.rng.next_u32());
        let object = self.module.create(self.options.as_deref(), state, input, seed)?;
        let mut sizes = object.parts();
        let in_parts = sizes.len() > 1 || (sizes.len() == 1 && parts::is_in_parts(input));
        if !in_parts {
            sizes = vec![input.len()];
        }
        let buffer = |len: &usize| Buffer::new(room(*len, self.ratio, self.max_len));
        Some(Session { object, buffers: sizes.iter().map(buffer).collect(), in_parts })
    }
}

impl Mutator for Killerbeez {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::default().with(Hook::Stage).with(Hook::Fuzz)
    }

    fn is_late(&self) -> bool {
        true
    }

    fn check(&mut self, input: &[u8]) -> Result<(), HookError> {
        let refused = match &self.options {
            Some(options) => format!("refuses its options {}", options.to_string_lossy()),
            None => "refuses to start without options".into(),
        };
        self.session(None, input).map(drop).ok_or(HookError(refused))
    }

    fn stage_begins(&mut self, seed: SeedId, input: &[u8]) -> Result<(), HookError> {
        let state = match self.states.get(seed) {
            None => None,
            Some(Reached::State(text)) => Some(text.clone()),
            Some(_) => return Ok(()),
        };
        let Some(session) = self.session(state.as_deref(), input) else {
            self.states.set(seed, Some(Reached::Failed));
            return Err(HookError(
                "refuses a seed, or its own state; skipped for this seed".into(),
            ));
        };
        self.stage = Some((seed, session));
        Ok(())
    }

    fn fuzz(&mut self, _job: &mut Job<'_>, out: &mut Vec<u8>) -> Result<Made, HookError> {
        // A module that has reached its end stays there, so it is not called again.
        let Some((seed, session)) = &mut self.stage else { return Ok(Made::Over) };
        let reached = match session.next(out) {
            Ok(()) => return Ok(Made::Input),
            Err(SessionEnd::Exhausted) => Ok(Reached::Exhausted(session.object.state())),
            Err(end) => Err(HookError(format!("{end}; skipped for this seed"))),
        };
        let kept = reached.as_ref().unwrap_or(&Reached::Failed);
        self.states.set(*seed, Some(kept.clone()));
        self.stage = None;
        reached.map(|_| Made::Over)
    }

    fn stage_ends(&mut self) -> Result<(), HookError> {
        let Some((seed, session)) = self.stage.take() else { return Ok(()) };
        let state = session.object.state();
        let stateless = state.is_none();
        self.states.set(seed, state.map(Reached::State));
        if stateless && !std::mem::replace(&mut self.reported, true) {
            return Err(HookError(
                "cannot save its state: each turn of a seed starts from the beginning".into(),
            ));
        }
        Ok(())
    }

    fn note_state(&mut self) {
        if let Some((seed, session)) = &self.stage
            && let Some(state) = session.object.state()
        {
            self.states.set(*seed, Some(Reached::State(state)));
        }
    }

    fn states(&self) -> Option<&States> {
        Some(&self.states)
    }

    fn states_mut(&mut self) -> Option<&mut States> {
        Some(&mut self.states)
    }
}

/// Upstream's rule for buffers, and no less than the input has: some modules fail then.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "inputs are small, and the ratio is a positive number"
)]
fn room(len: usize, ratio: f64, max: usize) -> usize {
    ((len as f64 * ratio) as usize).min(max).max(len).max(1)
}

/// Why a session makes no more inputs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
enum SessionEnd {
    #[error("has made all its inputs")]
    Exhausted,
    #[error("reports an error")]
    Failed,
    #[error("writes past the end of its buffer")]
    Overran,
}

/// A module at work on one seed.
#[derive(Debug)]
struct Session {
    object: Object,
    /// One per part.
    buffers: Vec<Buffer>,
    in_parts: bool,
}

impl Session {
    /// Writes the next input into `out`.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<(), SessionEnd> {
        for (index, buffer) in self.buffers.iter_mut().enumerate() {
            let part = self.in_parts.then(|| u16::try_from(index).unwrap_or(u16::MAX));
            let len = match self.object.mutate(part, buffer) {
                MutateResult::Made(len) => len,
                MutateResult::Exhausted => return Err(SessionEnd::Exhausted),
                MutateResult::Failed => return Err(SessionEnd::Failed),
                MutateResult::Overran => return Err(SessionEnd::Overran),
            };
            let made = &buffer.bytes()[..len];
            if self.in_parts {
                parts::push(out, index, made);
            } else {
                out.extend_from_slice(made);
            }
        }
        if self.in_parts {
            parts::close(out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
