//! A tool's target: every run goes through the hooks of the custom mutators.

use ffuzz_engine::executor::{Executor, Observation, RunError, TargetInfo};
use ffuzz_engine::runner::Runner;
use ffuzz_mutate::Candidate;
use ffuzz_mutators::Mutators;

/// A runner and the mutators.
pub struct Hooked {
    pub runner: Runner,
    pub mutators: Mutators,
}

impl Hooked {
    #[must_use]
    pub fn new(executor: Box<dyn Executor>, mutators: Mutators) -> Self {
        Self { runner: Runner::new(executor), mutators }
    }

    #[must_use]
    pub fn info(&self) -> &dyn TargetInfo {
        self.runner.info()
    }

    /// Runs one input, see [`Runner::observe`].
    pub fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        self.runner.observe(&mut self.mutators, input)
    }

    /// Runs one input and logs what the target compares, see [`Runner::observe_logged`].
    pub fn observe_logged(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        self.runner.observe_logged(&mut self.mutators, input)
    }

    /// Runs a batch, see [`Runner::run`].
    pub fn run(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, RunError> {
        self.runner.run(&mut self.mutators, batch, next)
    }

    /// Largest useful batch at present.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.runner.batch_size(&self.mutators)
    }

    /// Notes for the user about mutators and target that were not reported yet, one line each.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = self.mutators.take_messages();
        notes.extend(self.runner.executor_mut().take_notes());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::executor::ExitKind;
    use ffuzz_engine::fake::FakeExecutor;
    use ffuzz_mutators::fake::{Calls, FakeMutator};
    use ffuzz_mutators::{Hook, HookError, Made, Mutator};

    /// Records its runs together with the calls of the mutators.
    fn executor(calls: &Calls) -> Box<dyn Executor> {
        let calls = calls.clone();
        Box::new(FakeExecutor::new(8, vec![], move |input, edges, _| {
            edges[0] = 1;
            calls.add(format!("run {}", String::from_utf8_lossy(input)));
            ExitKind::Ok
        }))
    }

    /// A fake whose post_process doubles the input and drops those with an x.
    fn doubler(hooks: &[Hook], calls: &Calls) -> Box<dyn Mutator> {
        Box::new(FakeMutator::new(hooks, calls, |input, out| {
            out.extend_from_slice(input);
            out.extend_from_slice(input);
            Ok(if input.contains(&b'x') { Made::Nothing } else { Made::Input })
        }))
    }

    fn batch(inputs: &[&str]) -> Vec<Candidate> {
        let candidate =
            |text: &&str| Candidate { bytes: text.as_bytes().to_vec(), ..Candidate::default() };
        inputs.iter().map(candidate).collect()
    }

    fn run_all(hooked: &mut Hooked, inputs: &[&str]) -> Vec<(usize, Option<Vec<u8>>)> {
        let (batch, mut next, mut seen) = (batch(inputs), 0, Vec::new());
        while let Some(run) = hooked.run(&batch, &mut next).unwrap() {
            let index = run.index;
            seen.push((index, hooked.runner.delivered().map(<[u8]>::to_vec)));
        }
        assert_eq!(next, batch.len());
        seen
    }

    #[test]
    fn without_hooks_nothing_is_between() {
        let calls = Calls::default();
        let mut hooked = Hooked::new(executor(&calls), Mutators::default());
        assert_eq!(run_all(&mut hooked, &["a", "b"]), [(0, None), (1, None)]);
        assert_eq!(calls.take(), ["run a", "run b"]);
    }

    #[test]
    fn a_batch_is_processed_and_dropped_inputs_are_not_run() {
        let calls = Calls::default();
        let mutators = Mutators::new(vec![doubler(&[Hook::PostProcess], &calls)], 1);
        let mut hooked = Hooked::new(executor(&calls), mutators);
        let seen = run_all(&mut hooked, &["a", "x", "b"]);
        assert_eq!(seen, [(0, Some(b"aa".to_vec())), (2, Some(b"bb".to_vec()))]);
        let before = ["post_process a", "post_process x", "post_process b", "run aa", "run bb"];
        assert_eq!(calls.take(), before);
        assert!(run_all(&mut hooked, &["x", "x"]).is_empty());
        // An input that must be observed runs even if a mutator drops it.
        hooked.observe(b"x").unwrap();
        assert_eq!(hooked.runner.delivered(), None);
        assert_eq!(calls.take().last().unwrap(), "run x");
    }

    #[test]
    fn two_mutators_are_chained_and_every_run_is_framed() {
        let calls = Calls::default();
        let hooks = [Hook::PostProcess, Hook::PostRun];
        let mutators = vec![doubler(&hooks, &calls), doubler(&[Hook::PostProcess], &calls)];
        let mut hooked = Hooked::new(executor(&calls), Mutators::new(mutators, 1));
        assert_eq!(hooked.batch_size(), 1);
        run_all(&mut hooked, &["a", "b"]);
        let one = ["post_process a", "post_process aa", "run aaaa", "post_run"];
        let two = ["post_process b", "post_process bb", "run bbbb", "post_run"];
        assert_eq!(calls.take(), [one, two].concat());
    }

    #[test]
    fn a_sender_replaces_the_delivery() {
        let calls = Calls::default();
        let hooks = [Hook::PostProcess, Hook::FuzzSend, Hook::PostRun];
        let mutators = Mutators::new(vec![doubler(&hooks, &calls)], 1);
        let mut hooked = Hooked::new(executor(&calls), mutators);
        run_all(&mut hooked, &["a"]);
        assert_eq!(calls.take(), ["post_process a", "fuzz_send aa", "run ", "post_run"]);
    }

    #[test]
    fn a_hook_that_only_fails_is_switched_off_and_named() {
        let calls = Calls::default();
        let failing =
            FakeMutator::new(&[Hook::PostProcess], &calls, |_, _| Err(HookError("no idea".into())));
        let mut hooked = Hooked::new(executor(&calls), Mutators::new(vec![Box::new(failing)], 1));
        let inputs = ["a"; 150];
        assert_eq!(run_all(&mut hooked, &inputs).len(), 50);
        assert_eq!(
            hooked.mutators.take_messages(),
            [
                "mutator fake: post_process: no idea",
                "mutator fake: post_process failed 100 times in a row and is switched off"
            ]
        );
    }
}
