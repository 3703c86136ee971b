//! Replaces Python modules where ffuzz is built without Python.

use ffuzz_config::options::PythonOptions;

/// There is only one.
#[derive(Debug, thiserror::Error)]
#[error("the Python module {module} cannot be loaded: this ffuzz was built without Python")]
pub struct PythonError {
    module: String,
}

impl PythonError {
    /// One line: what the user can do.
    #[must_use]
    pub fn remedy(&self) -> String {
        "build ffuzz with its default features, or unset AFL_PYTHON_MODULE".into()
    }
}

/// Never made.
#[derive(Debug)]
pub enum PythonMutator {}

impl PythonMutator {
    /// Fails.
    pub fn open(wanted: &PythonOptions, _: u32) -> Result<(Self, Vec<String>), PythonError> {
        Err(PythonError { module: wanted.module.clone() })
    }
}

impl super::Mutator for PythonMutator {
    fn name(&self) -> &str {
        match *self {}
    }

    fn hooks(&self) -> super::Hooks {
        match *self {}
    }
}
