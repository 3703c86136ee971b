//! A mutator without a library. Tests write its hooks as closures and read its calls.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use super::{Hook, HookError, Hooks, Job, Made, Mutator};

type Act = Box<dyn FnMut(&[u8], &mut Vec<u8>) -> Result<Made, HookError>>;

/// Calls of one or several mutators, in order.
#[derive(Clone, Default)]
pub struct Calls(Rc<RefCell<Vec<String>>>);

impl Calls {
    pub fn add(&self, call: impl Into<String>) {
        self.0.borrow_mut().push(call.into());
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.borrow_mut())
    }
}

/// Records every call. `act` makes the inputs; the other hooks return fixed answers.
pub struct FakeMutator {
    pub hooks: Hooks,
    pub calls: Calls,
    pub act: Act,
    pub count: u32,
    /// Answer of `queue_get`.
    pub wanted: bool,
    pub probability: u8,
    /// Trimming steps done and planned.
    pub trim: (u32, u32),
    /// True if its stage is the last of a turn.
    pub late: bool,
}

impl FakeMutator {
    pub fn new(
        hooks: &[Hook],
        calls: &Calls,
        act: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Made, HookError> + 'static,
    ) -> Self {
        Self {
            hooks: hooks.iter().copied().collect(),
            calls: calls.clone(),
            act: Box::new(act),
            count: 3,
            wanted: true,
            probability: 100,
            trim: (0, 0),
            late: false,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Mutator for FakeMutator {
    fn name(&self) -> &str {
        "fake"
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn is_late(&self) -> bool {
        self.late
    }

    fn fuzz_count(&mut self, input: &[u8]) -> Result<u32, HookError> {
        self.calls.add(format!("fuzz_count {}", text(input)));
        Ok(self.count)
    }

    fn fuzz(&mut self, job: &mut Job<'_>, out: &mut Vec<u8>) -> Result<Made, HookError> {
        self.calls.add(format!("fuzz {}", text(job.input)));
        (self.act)(job.input, out)
    }

    fn describe(&mut self, max_len: usize) -> Result<Option<String>, HookError> {
        self.calls.add("describe");
        assert!(max_len > 0, "there is room for a description");
        Ok(Some("its/own text".into()))
    }

    fn post_process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Made, HookError> {
        self.calls.add(format!("post_process {}", text(input)));
        (self.act)(input, out)
    }

    fn init_trim(&mut self, input: &[u8]) -> Result<u32, HookError> {
        self.calls.add(format!("init_trim {}", text(input)));
        self.trim.0 = 0;
        Ok(self.trim.1)
    }

    fn trim(&mut self, out: &mut Vec<u8>) -> Result<Made, HookError> {
        self.calls.add("trim");
        (self.act)(b"", out)
    }

    fn post_trim(&mut self, success: bool) -> Result<u32, HookError> {
        self.calls.add(format!("post_trim {success}"));
        self.trim.0 += 1;
        Ok(self.trim.0)
    }

    fn havoc_mutation(&mut self, bytes: &mut Vec<u8>, _max_len: usize) -> Result<Made, HookError> {
        self.calls.add("havoc_mutation");
        let mut out = Vec::new();
        let made = (self.act)(bytes, &mut out)?;
        if made == Made::Input {
            *bytes = out;
        }
        Ok(made)
    }

    fn havoc_probability(&mut self) -> Result<u8, HookError> {
        self.calls.add("havoc_mutation_probability");
        Ok(self.probability)
    }

    fn queue_get(&mut self, path: &Path) -> Result<bool, HookError> {
        self.calls.add(format!("queue_get {}", text(path.as_os_str().as_encoded_bytes())));
        Ok(self.wanted)
    }

    fn queue_new_entry(&mut self, path: &Path, parent: Option<&Path>) -> Result<bool, HookError> {
        self.calls.add(format!("queue_new_entry {} {}", path.display(), parent.is_some()));
        Ok(false)
    }

    fn fuzz_send(&mut self, input: &[u8]) -> Result<(), HookError> {
        self.calls.add(format!("fuzz_send {}", text(input)));
        Ok(())
    }

    fn post_run(&mut self) -> Result<(), HookError> {
        self.calls.add("post_run");
        Ok(())
    }
}
