//! The chain of all foreign mutators of a campaign, in the user's order.
//!
//! All calls go through the chain, which counts and times them. A failure costs one input and is reported once; a hook
//! that fails every time is switched off. The chain has its own random numbers, so a mutator that changes nothing does
//! not affect the campaign.

use std::path::Path;
use std::time::Duration;

use rand_core::SeedableRng;

use super::pause::Pauses;
use super::states::{States, StoredStates};
use super::{DEFAULT_PROBABILITY, Hook, HookError, Hooks, Job, Made, Mutator, NAME_MAX, bit};
use ffuzz_config::options::RunMode;
use ffuzz_engine::corpus::SeedId;
use ffuzz_event::MutatorStatus;
use ffuzz_mutate::foreign::{ForeignMutators, Processed};
use ffuzz_mutate::messages::{self, HEAD};
use ffuzz_mutate::{MAX_INPUT, Rng, below};
use ffuzz_sys::clock::{TickLength, ticks};
use ffuzz_sys::underway::{Label, Underway};

/// Consecutive failures that switch a hook off.
const MOST_FAILURES: u32 = 100;
/// Maximum number of distinct complaints reported per mutator.
const MOST_COMPLAINTS: usize = 10;
/// Number of first havoc calls that are all timed.
const ALL_TIMED: u64 = 1024;
/// Later, one in this many havoc calls is timed.
const TIMED_HAVOC: u64 = 16;
/// Consecutive inputs that post-processing may drop before it is reported.
const MANY_SKIPPED: u64 = 10_000;

/// Loaded mutators and their counters.
#[derive(Default)]
pub struct Mutators {
    members: Vec<Member>,
    /// Union of the members' hooks.
    hooks: Hooks,
    rng: Option<Rng>,
    messages: Vec<String>,
    scratch: Vec<u8>,
    skipped_in_a_row: u64,
    /// Havoc's next step.
    step: u64,
    /// The next step with a call.
    next_call: u64,
    clock: Option<TickLength>,
    /// `AFL_DEBUG`.
    pub debug: bool,
    /// True if inputs are lists of messages; mutators then get one message at a time.
    pub by_message: bool,
    /// Buffer for one message and its mutation.
    message: Vec<u8>,
}

/// A mutator that hangs in its last call must not keep the process from exiting.
impl Drop for Mutators {
    fn drop(&mut self) {
        for member in self.members.drain(..) {
            let _underway = Underway::begin(Label::new(member.mutator.name(), "deinit"));
            drop(member);
        }
    }
}

struct Member {
    mutator: Box<dyn Mutator>,
    /// Leaked: names of finds and stages are static.
    name: &'static str,
    hooks: Hooks,
    labels: [&'static Label; Hook::COUNT],
    /// Distribution of havoc steps between two calls.
    pauses: Box<Pauses>,
    probability: u8,
    /// Havoc step of the next call.
    next_call: u64,
    /// Message for which the mutator planned its inputs.
    planned_for: Option<usize>,
    failures_in_a_row: [u32; Hook::COUNT],
    complaints: Vec<String>,
    calls: u64,
    failures: u64,
    finds: u64,
    /// Time in [`ticks`]; an estimate for havoc, see [`Member::calls_timed_as_one`].
    ticks: u64,
}

impl Member {
    fn new(mutator: Box<dyn Mutator>) -> Self {
        Self {
            name: short_name(mutator.name()),
            hooks: mutator.hooks(),
            labels: Hook::NAMES.map(|(_, hook)| Label::new(mutator.name(), hook)),
            mutator,
            pauses: Box::new(Pauses::new(DEFAULT_PROBABILITY)),
            probability: DEFAULT_PROBABILITY,
            next_call: u64::MAX,
            planned_for: None,
            failures_in_a_row: [0; Hook::COUNT],
            complaints: Vec::new(),
            calls: 0,
            failures: 0,
            finds: 0,
            ticks: 0,
        }
    }

    fn set_probability(&mut self, percent: u8) {
        if percent != self.probability {
            self.probability = percent;
            *self.pauses = Pauses::new(percent);
        }
    }

    /// Number of calls that the time of the next call stands for; 0 if that call is not timed. Reading the clock twice
    /// per havoc call would cost more than a small mutator, so only a sample of them is timed.
    #[inline]
    fn calls_timed_as_one(&self, hook: Hook) -> u64 {
        match hook {
            Hook::Havoc if self.calls < ALL_TIMED => 1,
            Hook::Havoc => u64::from(self.calls.is_multiple_of(TIMED_HAVOC)) * TIMED_HAVOC,
            _ => 1,
        }
    }
}

impl Mutators {
    #[must_use]
    pub fn new(mutators: Vec<Box<dyn Mutator>>, seed: u64) -> Self {
        let members = mutators.into_iter().map(Member::new).collect();
        let rng = Some(Rng::seed_from_u64(seed));
        let clock = Some(TickLength::from_now());
        let mut all = Self::default();
        (all.members, all.rng, all.clock) = (members, rng, clock);
        all.note_hooks();
        all
    }

    fn note_hooks(&mut self) {
        self.hooks = self.members.iter().fold(Hooks::default(), |all, m| all.union(m.hooks));
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns true if any mutator has `hook`.
    #[must_use]
    pub fn has(&self, hook: Hook) -> bool {
        self.hooks.has(hook)
    }

    /// Returns true if a hook changes inputs before a run, delivers them, or follows a run.
    #[must_use]
    pub fn touch_runs(&self) -> bool {
        self.hooks.has_any(&[Hook::PostProcess, Hook::FuzzSend, Hook::PostRun])
    }

    /// Returns true if replaying a stored input needs the mutators.
    #[must_use]
    pub fn are_needed_to_replay(&self, keep_original: bool) -> bool {
        self.has(Hook::FuzzSend) || (keep_original && self.has(Hook::PostProcess))
    }

    /// Fastest execution mode allowed: only AFL's pipes report when the process of a run exists, which `fuzz_send`
    /// needs.
    #[must_use]
    pub fn run_mode(&self) -> RunMode {
        if self.has(Hook::FuzzSend) { RunMode::Pipe } else { RunMode::default() }
    }

    /// Returns true if inputs must be made and run one by one: a mutator is called both before and after making or
    /// running an input, and batches would reorder its calls.
    #[must_use]
    pub fn need_single_runs(&self) -> bool {
        self.members.iter().any(|member| {
            let makes = member.hooks.has_any(&[Hook::Fuzz, Hook::Havoc]);
            member.hooks.has_any(&[Hook::FuzzSend, Hook::PostRun])
                || makes && member.hooks.has(Hook::PostProcess)
        })
    }

    /// Adds a mutator at the end of the chain.
    pub fn add(&mut self, mutator: Box<dyn Mutator>, seed: u64) {
        if self.members.is_empty() {
            let (debug, by_message) = (self.debug, self.by_message);
            *self = Self::new(vec![mutator], seed);
            (self.debug, self.by_message) = (debug, by_message);
            return;
        }
        self.members.push(Member::new(mutator));
        self.note_hooks();
    }

    /// Adds a message that is reported as the mutator's.
    pub(crate) fn add_message(&mut self, index: usize, text: &str) {
        self.messages.push(format!("mutator {}: {text}", self.members[index].name));
    }

    /// Indices of the mutators that have `hook`.
    #[must_use]
    pub(crate) fn with_hook(&self, hook: Hook) -> Vec<usize> {
        let numbered = self.members.iter().enumerate();
        numbered.filter(|(_, member)| member.hooks.has(hook)).map(|(index, _)| index).collect()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    #[must_use]
    pub fn name(&self, index: usize) -> &'static str {
        self.members[index].name
    }

    #[must_use]
    pub(crate) fn member_has(&self, index: usize, hook: Hook) -> bool {
        self.members[index].hooks.has(hook)
    }

    /// Returns true if the mutator's stage runs after all others.
    #[must_use]
    pub fn is_late(&self, index: usize) -> bool {
        self.members[index].mutator.is_late()
    }

    /// Checks that all mutators can work on a starting seed; returns the first complaint.
    pub fn check(&mut self, input: &[u8]) -> Result<(), String> {
        for member in &mut self.members {
            let _underway = Underway::begin(member.labels[Hook::Stage as usize]);
            let failed = |failure| format!("the mutator {} {failure}", member.name);
            member.mutator.check(input).map_err(failed)?;
        }
        Ok(())
    }

    /// The states of the mutators that keep some.
    pub fn states_mut(&mut self) -> impl Iterator<Item = &mut States> {
        self.members.iter_mut().filter_map(|member| member.mutator.states_mut())
    }

    /// All current states in stored form.
    pub fn stored(&mut self) -> Vec<StoredStates> {
        let stored = self.members.iter_mut().filter_map(|member| {
            let _underway = Underway::begin(member.labels[Hook::Stage as usize]);
            member.mutator.note_state();
            member.mutator.states().map(States::stored)
        });
        stored.collect()
    }

    /// Restores stored states.
    pub fn restore(&mut self, stored: &[StoredStates]) {
        self.states_mut().for_each(|states| states.restore(stored));
    }

    /// Takes the messages for the user; each is reported once.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    /// Begins a mutator's work on a seed. Returns false if the call failed.
    pub fn stage_begins(&mut self, index: usize, seed: SeedId, input: &[u8]) -> bool {
        !self.member_has(index, Hook::Stage)
            || self.call(index, Hook::Stage, |mutator| mutator.stage_begins(seed, input)).is_some()
    }

    pub fn stage_ends(&mut self, index: usize) {
        self.members[index].planned_for = None;
        self.call(index, Hook::Stage, |mutator| mutator.stage_ends());
    }

    /// The mutator's number of inputs for a seed; None if it has no such hook. In a list of messages, draws the message
    /// to change and passes only that one.
    pub fn fuzz_count(&mut self, index: usize, input: &[u8]) -> Option<u32> {
        if !self.member_has(index, Hook::FuzzCount) {
            return None;
        }
        let number = if self.by_message { self.draw_message(input) } else { None };
        self.members[index].planned_for = number;
        let message = number.and_then(|number| messages::messages(input).nth(number));
        let input = message.map_or(input, |message| message.bytes);
        self.call(index, Hook::FuzzCount, |mutator| mutator.fuzz_count(input))
    }

    /// Draws the number of a non-empty message: mutators may divide by the length.
    fn draw_message(&mut self, input: &[u8]) -> Option<usize> {
        let numbered = messages::messages(input).enumerate();
        let mut filled = numbered.filter(|(_, message)| !message.bytes.is_empty());
        let count = u32::try_from(filled.clone().count()).unwrap_or(u32::MAX);
        let drawn = below(self.rng.as_mut()?, count);
        filled.nth(drawn as usize).map(|(number, _)| number)
    }

    pub fn fuzz(&mut self, index: usize, job: &mut Job<'_>, out: &mut Vec<u8>) -> Made {
        // A mutator with stages of its own chooses the message.
        if !self.by_message || self.member_has(index, Hook::Stage) {
            return self.fuzz_input(index, job, out);
        }
        let drawn = self.members[index].planned_for.or_else(|| self.draw_message(job.input));
        let Some((number, message)) = drawn.and_then(|number| nth(job.input, number)) else {
            return Made::Nothing;
        };
        let other = job.other.and_then(|other| {
            let number = self.draw_message(other)?;
            nth(other, number).map(|(_, message)| message)
        });
        let max_len = room(job.input, message, job.max_len);
        let mut part = Job { input: message, other, max_len, havoc: &mut *job.havoc };
        let mut made = std::mem::take(&mut self.message);
        let result = self.fuzz_input(index, &mut part, &mut made);
        if result == Made::Input {
            messages::replace(job.input, number, &made, out);
        }
        self.message = made;
        result
    }

    fn fuzz_input(&mut self, index: usize, job: &mut Job<'_>, out: &mut Vec<u8>) -> Made {
        out.clear();
        let made = self.call(index, Hook::Fuzz, |mutator| mutator.fuzz(job, out));
        let switched_off = !self.members[index].hooks.has(Hook::Fuzz);
        let made = made.unwrap_or(if switched_off { Made::Over } else { Made::Nothing });
        self.checked(index, Hook::Fuzz, made, out, job.max_len)
    }

    pub fn describe(&mut self, index: usize, max_len: usize) -> Option<String> {
        let text = self.call(index, Hook::Describe, |mutator| mutator.describe(max_len))?;
        text.filter(|text| !text.is_empty())
    }

    /// Passes an input through all post-processors. The return value tells if the result is in `out`.
    pub fn post_process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Processed {
        let mut processed = Processed::AsGiven;
        for index in 0..self.members.len() {
            if !self.members[index].hooks.has(Hook::PostProcess) {
                continue;
            }
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.clear();
            let from = if processed == Processed::Changed { out.as_slice() } else { input };
            let made = match self.by_message {
                true => self.process_messages(index, from, &mut scratch),
                false => self.process(index, from, &mut scratch, MAX_INPUT),
            };
            std::mem::swap(out, &mut scratch);
            self.scratch = scratch;
            if made != Made::Input {
                self.note_skipped(index);
                return Processed::Skipped;
            }
            processed = Processed::Changed;
        }
        self.skipped_in_a_row = 0;
        processed
    }

    fn process(&mut self, index: usize, from: &[u8], out: &mut Vec<u8>, max_len: usize) -> Made {
        out.clear();
        let act = |mutator: &mut dyn Mutator| mutator.post_process(from, out);
        let made = self.call(index, Hook::PostProcess, act).unwrap_or(Made::Nothing);
        self.checked(index, Hook::PostProcess, made, out, max_len)
    }

    /// Passes each message through one post-processor. Empty messages, which mark an end of input, stay unchanged.
    fn process_messages(&mut self, index: usize, from: &[u8], out: &mut Vec<u8>) -> Made {
        if !messages::is_list(from) {
            let made = self.process(index, from, out, MAX_INPUT);
            if made == Made::Input && messages::is_list(out) {
                out.splice(0..0, messages::head(0, out.len()));
            }
            return made;
        }
        let mut processed = std::mem::take(&mut self.message);
        let (mut result, mut left) = (Made::Input, from.len());
        for message in messages::messages(from) {
            left = left.saturating_sub(HEAD + message.bytes.len());
            processed.clear();
            if !message.bytes.is_empty() {
                let others = out.len() + HEAD + left;
                let max_len = MAX_INPUT.saturating_sub(others).min(messages::LONGEST);
                result = self.process(index, message.bytes, &mut processed, max_len);
            }
            if result != Made::Input {
                break;
            }
            messages::push(out, message.connection, &processed);
        }
        self.message = processed;
        result
    }

    fn note_skipped(&mut self, index: usize) {
        self.skipped_in_a_row += 1;
        if self.skipped_in_a_row == MANY_SKIPPED {
            let text = format!("post_process dropped the last {MANY_SKIPPED} inputs");
            self.complain(index, text);
        }
    }

    /// Asks the mutators for their probabilities in the coming havoc stage.
    pub fn havoc_begins(&mut self) {
        for index in self.with_hook(Hook::Havoc) {
            let asked = self.call(index, Hook::Havoc, |mutator| mutator.havoc_probability());
            if let Some(percent) = asked {
                if percent > 100 {
                    let text =
                        format!("havoc_mutation_probability returned {percent}: 100 is used");
                    self.complain(index, text);
                }
                self.members[index].set_probability(percent);
            }
            self.draw_next_call(index, self.step);
        }
        self.note_next_call();
    }

    /// Number of havoc steps before the next step with a call.
    #[inline]
    #[must_use]
    pub fn havoc_pause(&self) -> u64 {
        self.next_call - self.step
    }

    /// Sets the number of steps left until the next call.
    #[inline]
    pub fn havoc_paused(&mut self, left: u64) {
        self.step = self.next_call - left;
    }

    /// Performs the havoc step after the pause. Returns a bit per mutator that changed the input.
    pub fn havoc(&mut self, bytes: &mut Vec<u8>, max_len: usize) -> u64 {
        self.step = self.next_call;
        let mut by = 0;
        for index in 0..self.members.len() {
            if self.members[index].next_call > self.step {
                continue;
            }
            self.draw_next_call(index, self.step + 1);
            let made = match self.by_message {
                true => self.havoc_message(index, bytes, max_len),
                false => self.havoc_input(index, bytes, max_len),
            };
            if made == Made::Input {
                by |= bit(index);
            }
        }
        self.step += 1;
        self.note_next_call();
        by
    }

    fn havoc_input(&mut self, index: usize, bytes: &mut Vec<u8>, max_len: usize) -> Made {
        let act = |mutator: &mut dyn Mutator| mutator.havoc_mutation(bytes, max_len);
        let made = self.call(index, Hook::Havoc, act).unwrap_or(Made::Nothing);
        self.checked(index, Hook::Havoc, made, bytes, max_len)
    }

    fn havoc_message(&mut self, index: usize, bytes: &mut Vec<u8>, max_len: usize) -> Made {
        let drawn = self.draw_message(bytes);
        let Some((number, message)) = drawn.and_then(|number| nth(bytes, number)) else {
            return Made::Nothing;
        };
        let max_len = room(bytes, message, max_len);
        let mut changed = std::mem::take(&mut self.message);
        changed.clear();
        changed.extend_from_slice(message);
        let made = self.havoc_input(index, &mut changed, max_len);
        if made == Made::Input {
            let mut scratch = std::mem::take(&mut self.scratch);
            messages::replace(bytes, number, &changed, &mut scratch);
            std::mem::swap(bytes, &mut scratch);
            self.scratch = scratch;
        }
        self.message = changed;
        made
    }

    /// Draws the number of steps from `step` to the next call. This takes one random number per call, not one per step.
    fn draw_next_call(&mut self, index: usize, step: u64) {
        let member = &mut self.members[index];
        let pause = self.rng.as_mut().map_or(0, |rng| member.pauses.draw(rng));
        member.next_call = step + pause;
    }

    fn note_next_call(&mut self) {
        let havoc = self.members.iter().filter(|member| member.hooks.has(Hook::Havoc));
        self.next_call = havoc.map(|member| member.next_call).min().unwrap_or(u64::MAX);
    }

    /// Returns true if all mutators agree to fuzz the seed in this file now.
    pub fn queue_get(&mut self, path: &Path) -> bool {
        let mut wanted = true;
        for index in 0..self.members.len() {
            let answer = self.call(index, Hook::QueueGet, |mutator| mutator.queue_get(path));
            wanted &= answer != Some(false);
        }
        wanted
    }

    /// Reports a new queue file to the mutators. Returns true if one of them changed it.
    pub fn queue_new_entry(&mut self, path: &Path, parent: Option<&Path>) -> bool {
        let mut changed = false;
        for index in 0..self.members.len() {
            let act = |mutator: &mut dyn Mutator| mutator.queue_new_entry(path, parent);
            changed |= self.call(index, Hook::QueueNewEntry, act) == Some(true);
        }
        changed
    }

    pub fn init_trim(&mut self, index: usize, input: &[u8]) -> Option<u32> {
        self.call(index, Hook::Trim, |mutator| mutator.init_trim(input))
    }

    pub fn trim(&mut self, index: usize, out: &mut Vec<u8>) -> Made {
        out.clear();
        let made = self.call(index, Hook::Trim, |mutator| mutator.trim(out)).unwrap_or(Made::Over);
        self.checked(index, Hook::Trim, made, out, MAX_INPUT)
    }

    pub fn post_trim(&mut self, index: usize, success: bool) -> Option<u32> {
        self.call(index, Hook::Trim, |mutator| mutator.post_trim(success))
    }

    /// Lets the mutators deliver the input to the target.
    pub fn fuzz_send(&mut self, input: &[u8]) {
        for index in 0..self.members.len() {
            self.call(index, Hook::FuzzSend, |mutator| mutator.fuzz_send(input));
        }
    }

    pub fn post_run(&mut self) {
        for index in 0..self.members.len() {
            self.call(index, Hook::PostRun, |mutator| mutator.post_run());
        }
    }

    /// Counts a find for the mutators in the set `by` (see [`bit`]).
    pub fn found(&mut self, by: u64) {
        for (index, member) in self.members.iter_mut().enumerate() {
            member.finds += u64::from(by & bit(index) != 0);
        }
    }

    /// Statistics of the mutators. `elapsed` is the base of the percentages.
    #[must_use]
    pub fn status(&self, elapsed: Duration) -> Vec<MutatorStatus> {
        let Some(clock) = self.clock else { return Vec::new() };
        let status = |member: &Member| {
            let time = clock.time_of(member.ticks);
            MutatorStatus {
                name: member.name.to_owned(),
                calls: member.calls,
                finds: member.finds,
                time_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
                time_percent: time.as_secs_f64() * 100.0 / elapsed.as_secs_f64().max(0.001),
                failures: member.failures,
                says: None,
            }
        };
        self.members.iter().map(status).collect()
    }

    /// The mutator's own status text.
    pub fn introspection(&mut self, index: usize) -> Option<String> {
        self.call(index, Hook::Introspection, |mutator| mutator.introspection())?
    }

    /// Cuts an overlong result and rejects an empty one.
    fn checked(
        &mut self,
        index: usize,
        hook: Hook,
        made: Made,
        out: &mut Vec<u8>,
        max_len: usize,
    ) -> Made {
        if made != Made::Input {
            return made;
        }
        if out.len() > max_len {
            let text = format!("{} returned more than {max_len} bytes: cut", hook.name());
            self.members[index].failures += 1;
            self.complain(index, text);
            out.truncate(max_len);
        }
        if out.is_empty() { Made::Nothing } else { Made::Input }
    }

    /// Calls foreign code; nothing else does. None if the hook is switched off or the call failed.
    fn call<T>(
        &mut self,
        index: usize,
        hook: Hook,
        act: impl FnOnce(&mut dyn Mutator) -> Result<T, HookError>,
    ) -> Option<T> {
        let member = &mut self.members[index];
        if !member.hooks.has(hook) {
            return None;
        }
        let stands_for = member.calls_timed_as_one(hook);
        let start = if stands_for > 0 { ticks() } else { 0 };
        let underway = Underway::begin(member.labels[hook as usize]);
        let result = act(&mut *member.mutator);
        drop(underway);
        if stands_for > 0 {
            member.ticks += ticks().saturating_sub(start) * stands_for;
        }
        member.calls += 1;
        match result {
            Ok(value) => {
                member.failures_in_a_row[hook as usize] = 0;
                Some(value)
            }
            Err(failure) => {
                self.failed(index, hook, &failure);
                None
            }
        }
    }

    fn failed(&mut self, index: usize, hook: Hook, failure: &HookError) {
        let member = &mut self.members[index];
        member.failures += 1;
        let in_a_row = &mut member.failures_in_a_row[hook as usize];
        *in_a_row += 1;
        let off = *in_a_row >= MOST_FAILURES;
        self.complain(index, format!("{}: {failure}", hook.name()));
        if off {
            let text = format!(
                "{} failed {MOST_FAILURES} times in a row and is switched off",
                hook.name()
            );
            self.members[index].hooks = self.members[index].hooks.without(hook);
            self.note_hooks();
            self.add_message(index, &text);
        }
    }

    /// Reports a complaint, once per distinct text.
    pub fn complain(&mut self, index: usize, text: String) {
        let member = &mut self.members[index];
        if member.complaints.len() < MOST_COMPLAINTS && !member.complaints.contains(&text) {
            member.complaints.push(text.clone());
            self.add_message(index, &text);
        }
    }
}

/// Message `number` of an input, with its number.
fn nth(input: &[u8], number: usize) -> Option<(usize, &[u8])> {
    messages::messages(input).nth(number).map(|message| (number, message.bytes))
}

/// Maximum length of the result for one message of an input.
fn room(input: &[u8], message: &[u8], max_len: usize) -> usize {
    max_len.saturating_sub(input.len() - message.len()).min(messages::LONGEST)
}

fn short_name(name: &str) -> &'static str {
    let mut end = name.len().min(NAME_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Box::leak(name[..end].into())
}

/// The interface for the engine's stages.
impl ForeignMutators for Mutators {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn name(&self, index: usize) -> &'static str {
        self.members[index].name
    }

    fn makes_inputs(&self, index: usize) -> bool {
        self.member_has(index, Hook::Fuzz)
    }

    fn declines_splicing(&self, index: usize) -> bool {
        self.member_has(index, Hook::SpliceOptout)
    }

    fn competes(&self, index: usize) -> bool {
        self.members[index].mutator.competes()
    }

    fn is_late(&self, index: usize) -> bool {
        Self::is_late(self, index)
    }

    fn describes(&self) -> bool {
        self.has(Hook::Fuzz) && self.has(Hook::Describe)
    }

    fn stage_begins(&mut self, index: usize, seed: SeedId, input: &[u8]) -> bool {
        Self::stage_begins(self, index, seed, input)
    }

    fn stage_ends(&mut self, index: usize) {
        Self::stage_ends(self, index);
    }

    fn fuzz_count(&mut self, index: usize, input: &[u8]) -> Option<u32> {
        Self::fuzz_count(self, index, input)
    }

    fn fuzz(&mut self, index: usize, job: &mut Job<'_>, out: &mut Vec<u8>) -> Made {
        Self::fuzz(self, index, job, out)
    }

    fn trims(&self, index: usize) -> bool {
        self.member_has(index, Hook::Trim)
    }

    fn trim_begins(&mut self, index: usize, input: &[u8]) -> Option<u32> {
        self.init_trim(index, input)
    }

    fn trim(&mut self, index: usize, out: &mut Vec<u8>) -> Made {
        Self::trim(self, index, out)
    }

    fn trimmed(
        &mut self,
        index: usize,
        step: (u32, u32),
        lengths: (usize, usize),
        same: bool,
    ) -> Option<u32> {
        let next = self.post_trim(index, same);
        if self.debug {
            let ((step, planned), (before, proposed)) = (step, lengths);
            let result = if same { "taken" } else { "not taken" };
            let text =
                format!("trim step {step} of {planned}: {before} to {proposed} bytes, {result}");
            self.add_message(index, &text);
        }
        next
    }

    fn complain(&mut self, index: usize, text: String) {
        Self::complain(self, index, text);
    }

    fn joins_havoc(&self) -> bool {
        self.has(Hook::Havoc)
    }

    fn havoc_begins(&mut self) {
        Self::havoc_begins(self);
    }

    fn havoc_pause(&self) -> u64 {
        Self::havoc_pause(self)
    }

    fn havoc_paused(&mut self, left: u64) {
        Self::havoc_paused(self, left);
    }

    fn havoc(&mut self, bytes: &mut Vec<u8>, max_len: usize) -> u64 {
        Self::havoc(self, bytes, max_len)
    }

    fn found(&mut self, by: u64) {
        Self::found(self, by);
    }

    fn touch_runs(&self) -> bool {
        Self::touch_runs(self)
    }

    fn need_single_runs(&self) -> bool {
        Self::need_single_runs(self)
    }

    fn post_process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Processed {
        Self::post_process(self, input, out)
    }

    fn sends(&self) -> bool {
        self.has(Hook::FuzzSend)
    }

    fn send(&mut self, input: &[u8]) {
        self.fuzz_send(input);
    }

    fn post_run(&mut self) {
        Self::post_run(self);
    }
}

impl std::fmt::Debug for Mutators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.members.iter().map(|member| member.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Calls, FakeMutator};

    #[test]
    fn havoc_is_called_with_its_probability() {
        for percent in [0u8, 6, 50, 100, 200] {
            let calls = Calls::default();
            let mut mutator = FakeMutator::new(&[Hook::Havoc], &calls, |_, _| Ok(Made::Nothing));
            mutator.probability = percent;
            let mut mutators = Mutators::new(vec![Box::new(mutator)], 1);
            let steps = 20_000;
            for step in 0..steps {
                // Stages are short; a repeated query must not change the probabilities.
                if step % 50 == 0 {
                    mutators.havoc_begins();
                }
                match mutators.havoc_pause() {
                    0 => assert_eq!(mutators.havoc(&mut b"x".to_vec(), 10), 0),
                    pause => mutators.havoc_paused(pause - 1),
                }
            }
            let made = calls.take().iter().filter(|call| *call == "havoc_mutation").count() as u32;
            let wanted = steps * u32::from(percent.min(100)) / 100;
            assert!(made.abs_diff(wanted) <= wanted / 10, "{made} calls at {percent} %");
            assert_eq!(mutators.take_messages().len(), usize::from(percent > 100));
        }
    }

    #[test]
    fn a_result_that_is_too_long_is_cut_and_reported_once() {
        let calls = Calls::default();
        let mutator = FakeMutator::new(&[Hook::Fuzz], &calls, |_, out| {
            out.extend_from_slice(b"longer");
            Ok(Made::Input)
        });
        let mut mutators = Mutators::new(vec![Box::new(mutator)], 1);
        let mut out = Vec::new();
        for _ in 0..2 {
            let mut job = Job { input: b"x", other: None, max_len: 4, havoc: &mut |_, _| () };
            assert_eq!(mutators.fuzz(0, &mut job, &mut out), Made::Input);
            assert_eq!(out, b"long");
        }
        let messages = mutators.take_messages();
        assert_eq!(messages, ["mutator fake: fuzz returned more than 4 bytes: cut"]);
        assert_eq!(mutators.status(Duration::from_secs(1))[0].failures, 2);
    }

    const LIST: &[u8] = b"\x02\0\0\0ab\0\0\0\x01\x03\0\0\0cde";

    /// A mutator that puts its input in brackets, and its calls.
    fn brackets(hooks: &[Hook]) -> (Mutators, Calls) {
        let calls = Calls::default();
        let mutator = FakeMutator::new(hooks, &calls, |input, out| {
            out.extend([b"<", input, b">"].concat());
            Ok(Made::Input)
        });
        let mut mutators = Mutators::new(vec![Box::new(mutator)], 1);
        mutators.by_message = true;
        (mutators, calls)
    }

    #[test]
    fn a_message_of_a_list_is_changed_and_the_others_stay() {
        let (mut mutators, calls) = brackets(&[Hook::Fuzz, Hook::Havoc]);
        let of_list = [
            &b"\x04\0\0\0<ab>\0\0\0\x01\x03\0\0\0cde"[..],
            b"\x02\0\0\0ab\0\0\0\x01\x05\0\0\0<cde>",
        ];
        mutators.havoc_begins();
        let mut seen = [false; 2];
        for _ in 0..40 {
            let mut job = Job { input: LIST, other: None, max_len: 19, havoc: &mut |_, _| () };
            let (mut out, mut bytes) = (Vec::new(), LIST.to_vec());
            assert_eq!(mutators.fuzz(0, &mut job, &mut out), Made::Input);
            assert_eq!(mutators.havoc(&mut bytes, 19), 1);
            for made in [out, bytes] {
                seen[of_list.iter().position(|wanted| *wanted == made).unwrap()] = true;
            }
        }
        assert_eq!(seen, [true; 2]);
        assert!(calls.take().contains(&"fuzz cde".into()));
        // One byte less than the result needs.
        let mut job = Job { input: LIST, other: None, max_len: 18, havoc: &mut |_, _| () };
        let mut out = Vec::new();
        mutators.fuzz(0, &mut job, &mut out);
        assert_eq!((out.len(), messages::list(messages::messages(&out)) == out), (18, true));
        // Messages without bytes cannot be changed.
        let mut job = Job { input: b"\0\0\0\0", other: None, max_len: 18, havoc: &mut |_, _| () };
        assert_eq!(mutators.fuzz(0, &mut job, &mut out), Made::Nothing);
        // An input that is no list counts as one message.
        let mut job = Job { input: b"HELO", other: None, max_len: 18, havoc: &mut |_, _| () };
        mutators.fuzz(0, &mut job, &mut out);
        assert_eq!(out, b"<HELO>");
    }

    #[test]
    fn a_turn_has_the_message_for_which_it_was_planned() {
        let (mut mutators, calls) = brackets(&[Hook::Fuzz, Hook::FuzzCount]);
        for _ in 0..20 {
            mutators.fuzz_count(0, LIST);
            for _ in 0..3 {
                let mut job = Job { input: LIST, other: None, max_len: 30, havoc: &mut |_, _| () };
                mutators.fuzz(0, &mut job, &mut Vec::new());
            }
            mutators.stage_ends(0);
            let calls = calls.take();
            let planned = calls[0].strip_prefix("fuzz_count ").unwrap();
            assert!(calls[1..].iter().all(|call| *call == format!("fuzz {planned}")), "{calls:?}");
        }
    }

    #[test]
    fn each_message_is_processed_in_turn() {
        let (mut mutators, calls) = brackets(&[Hook::PostProcess]);
        let mut out = Vec::new();
        assert_eq!(mutators.post_process(LIST, &mut out), Processed::Changed);
        assert_eq!(out, b"\x04\0\0\0<ab>\0\0\0\x01\x05\0\0\0<cde>");
        assert_eq!(calls.take(), ["post_process ab", "post_process cde"]);
        mutators.post_process(b"HELO", &mut out);
        assert_eq!(out, b"<HELO>");
        mutators.by_message = false;
        mutators.post_process(LIST, &mut out);
        assert_eq!(out, [b"<", LIST, b">"].concat());
    }
}
