//! Killerbeez modules: one object per module and seed, whose state persists between the seed's turns.

mod parts;

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::rc::Rc;

use rand_core::{Rng as _, SeedableRng};

use super::states::{Reached, States, Work};
use super::{Hook, HookError, Hooks, Job, Made, Mutator};
use ffuzz_abi::killerbeez::{ForeignModule, GuardedBuffer, ModuleError, MutateResult, Object};
use ffuzz_config::options::{KillerbeezModule, KillerbeezOptions};
use ffuzz_engine::corpus::SeedId;
use ffuzz_mutate::messages::{HEAD, LONGEST, is_list, messages, push, replace};
use ffuzz_mutate::{Rng, below};

/// A module with its states.
#[derive(Debug)]
pub struct Killerbeez {
    /// Short name for messages and for `op:NAME` in file names.
    name: String,
    module: Rc<ForeignModule>,
    options: Option<CString>,
    ratio: f64,
    max_len: usize,
    /// Seed of libc's generator for every object (`-s`); None: a new one each time.
    fixed_seed: Option<u32>,
    rng: Rng,
    states: States,
    stage: Option<(Work, ModuleSession)>,
    /// True if inputs are lists of messages. A module of several parts gets all messages, any other module one at a
    /// time.
    by_message: bool,
    /// True to process messages in order (`--mutator-only`), false to draw them.
    in_order: bool,
    /// True once it was reported that states cannot be saved.
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
            by_message: false,
            in_order: common.only,
            reported: false,
        })
    }

    /// Sets whether inputs are lists of messages.
    #[must_use]
    pub fn by_message(mut self, by_message: bool) -> Self {
        self.by_message = by_message;
        self
    }

    /// The forms in which the module can get the input, each with its message number.
    fn forms(&mut self, input: &[u8]) -> Vec<(u32, Form)> {
        if !self.by_message || !is_list(input) {
            return vec![(0, Form::Input)];
        }
        if self.session(None, input, Form::Messages).is_some() {
            return vec![(0, Form::Messages)];
        }
        let numbered = (0..).zip(messages(input));
        let filled = numbered.filter(|(_, message)| !message.bytes.is_empty());
        filled.map(|(number, _)| (number, Form::Message(number))).collect()
    }

    /// Creates an object for an input and continues from `state`. None if the module refuses either.
    fn session(&mut self, state: Option<&CStr>, input: &[u8], form: Form) -> Option<ModuleSession> {
        let seed = self.fixed_seed.unwrap_or_else(|| self.rng.next_u32());
        let given = match form {
            Form::Input | Form::Array => Cow::Borrowed(input),
            Form::Messages => Cow::Owned(parts::array(messages(input))),
            Form::Message(number) => Cow::Borrowed(messages(input).nth(number as usize)?.bytes),
        };
        let object = self.module.create(self.options.as_deref(), state, &given, seed)?;
        let mut sizes = object.parts();
        let form = match form {
            Form::Messages if !are_of(&sizes, input) => return None,
            Form::Input if sizes.len() > 1 || sizes.len() == 1 && parts::is_in_parts(input) => {
                Form::Array
            }
            form => form,
        };
        if !form.has_parts() {
            sizes = vec![given.len()];
        }
        // Leave room for the message heads and the other messages.
        let (list, others) = match form {
            Form::Input | Form::Array => (Vec::new(), 0),
            Form::Messages => (input.to_vec(), HEAD * sizes.len()),
            Form::Message(_) => (input.to_vec(), input.len() - given.len()),
        };
        let most = self.max_len.saturating_sub(others).min(LONGEST);
        let buffer = |len: &usize| GuardedBuffer::new(room(*len, self.ratio, most));
        Some(ModuleSession { object, buffers: sizes.iter().map(buffer).collect(), form, list })
    }

    /// Begins with a seed, or with another of its messages. False if none is left.
    fn begin(&mut self, seed: SeedId, input: &[u8]) -> Result<bool, HookError> {
        let mut forms = self.forms(input);
        let is_over = |work| matches!(self.states.of(work), Some(reached) if reached.is_over());
        forms.retain(|(number, _)| !is_over((seed, *number)));
        let count = u32::try_from(forms.len()).unwrap_or(u32::MAX);
        let drawn = if self.in_order { 0 } else { below(&mut self.rng, count) };
        let Some((number, form)) = forms.get(drawn as usize).copied() else { return Ok(false) };
        let work = (seed, number);
        let state = match self.states.of(work) {
            Some(Reached::State(text)) => Some(text.clone()),
            _ => None,
        };
        let Some(session) = self.session(state.as_deref(), input, form) else {
            self.states.set_of(work, Some(Reached::Failed));
            return Err(HookError(
                "refuses a seed, or its own state; skipped for this seed".into(),
            ));
        };
        self.stage = Some((work, session));
        Ok(true)
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
        let Some((_, form)) = self.forms(input).first().copied() else { return Ok(()) };
        self.session(None, input, form).map(drop).ok_or(HookError(refused))
    }

    fn stage_begins(&mut self, seed: SeedId, input: &[u8]) -> Result<(), HookError> {
        self.begin(seed, input).map(|_| ())
    }

    fn fuzz(&mut self, _job: &mut Job<'_>, out: &mut Vec<u8>) -> Result<Made, HookError> {
        // A module that has made all inputs makes no more, so it is not called again.
        while let Some((work, session)) = &mut self.stage {
            out.clear();
            let reached = match session.next(out) {
                Ok(()) => return Ok(Made::Input),
                Err(SessionEnd::Exhausted) => Ok(Reached::Exhausted(session.object.state())),
                Err(end) => Err(HookError(format!("{end}; skipped for this seed"))),
            };
            let kept = reached.as_ref().unwrap_or(&Reached::Failed);
            self.states.set_of(*work, Some(kept.clone()));
            let (seed, list) = (work.0, std::mem::take(&mut session.list));
            self.stage = None;
            reached?;
            if !list.is_empty() {
                self.begin(seed, &list)?;
            }
        }
        Ok(Made::Over)
    }

    fn stage_ends(&mut self) -> Result<(), HookError> {
        let Some((work, session)) = self.stage.take() else { return Ok(()) };
        let state = session.object.state();
        let stateless = state.is_none();
        self.states.set_of(work, state.map(Reached::State));
        if stateless && !std::mem::replace(&mut self.reported, true) {
            return Err(HookError(
                "cannot save its state: each turn of a seed starts from the beginning".into(),
            ));
        }
        Ok(())
    }

    fn note_state(&mut self) {
        if let Some((work, session)) = &self.stage
            && let Some(state) = session.object.state()
        {
            self.states.set_of(*work, Some(Reached::State(state)));
        }
    }

    fn states(&self) -> Option<&States> {
        Some(&self.states)
    }

    fn states_mut(&mut self) -> Option<&mut States> {
        Some(&mut self.states)
    }
}

/// Upstream's buffer size, but at least the size of the input: some modules fail with less.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "inputs are small, and the ratio is a positive number"
)]
fn room(len: usize, ratio: f64, max: usize) -> usize {
    ((len as f64 * ratio) as usize).min(max).max(len).max(1)
}

/// The reason why a session makes no more inputs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
enum SessionEnd {
    #[error("has made all its inputs")]
    Exhausted,
    #[error("reports an error")]
    Failed,
    #[error("writes past the end of its buffer")]
    Overran,
}

/// Form of the module's input and results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Input,
    /// An input that is an array of parts.
    Array,
    /// All messages of a list, as an array of parts.
    Messages,
    /// One message of a list.
    Message(u32),
}

impl Form {
    fn has_parts(self) -> bool {
        matches!(self, Self::Array | Self::Messages)
    }
}

/// Returns true if the sizes of a module's parts match the messages. A module of one part treats the array as its
/// input.
fn are_of(sizes: &[usize], list: &[u8]) -> bool {
    let mut messages = messages(list);
    match sizes {
        [one] => messages.next().is_some_and(|message| message.bytes.len() == *one),
        _ => sizes.len() == messages.count(),
    }
}

/// A module's work on one seed.
#[derive(Debug)]
struct ModuleSession {
    object: Object,
    /// One buffer per part.
    buffers: Vec<GuardedBuffer>,
    form: Form,
    /// The seed as a list of messages; empty for other forms.
    list: Vec<u8>,
}

impl ModuleSession {
    /// Writes the next input into `out`.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<(), SessionEnd> {
        let mut all = messages(&self.list);
        for (index, buffer) in self.buffers.iter_mut().enumerate() {
            let part = self.form.has_parts().then(|| u16::try_from(index).unwrap_or(u16::MAX));
            let len = match self.object.mutate(part, buffer) {
                MutateResult::Made(len) => len,
                MutateResult::Exhausted => return Err(SessionEnd::Exhausted),
                MutateResult::Failed => return Err(SessionEnd::Failed),
                MutateResult::Overran => return Err(SessionEnd::Overran),
            };
            let made = &buffer.bytes()[..len];
            match self.form {
                Form::Input => out.extend_from_slice(made),
                Form::Array => parts::push(out, index, made),
                Form::Messages => {
                    push(out, all.next().map_or(0, |message| message.connection), made);
                }
                Form::Message(number) => replace(&self.list, number as usize, made, out),
            }
        }
        if self.form == Form::Array {
            parts::close(out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
