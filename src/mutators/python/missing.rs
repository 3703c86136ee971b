//! Replaces Python modules where ffuzz is built without Python.

use miette::Diagnostic;

use ffuzz_config::options::PythonOptions;

/// There is only one.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the Python module {module} cannot be loaded: this ffuzz was built without Python")]
#[diagnostic(help("build ffuzz with its default features, or unset AFL_PYTHON_MODULE"))]
pub struct PythonError {
    module: String,
}

/// Never made.
#[derive(Debug)]
pub(crate) enum PythonMutator {}

impl PythonMutator {
    /// Fails.
    pub(crate) fn open(wanted: &PythonOptions, _: u32) -> Result<(Self, Vec<String>), PythonError> {
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
