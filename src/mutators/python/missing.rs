//! Replaces Python modules in builds without Python.

use miette::Diagnostic;

use ffuzz_config::options::PythonOptions;

/// The only error: no Python support.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the Python module {module} cannot be loaded: this ffuzz was built without Python")]
#[diagnostic(help("build ffuzz with its default features, or unset AFL_PYTHON_MODULE"))]
pub struct PythonError {
    module: String,
}

/// Never constructed.
#[derive(Debug)]
pub(crate) enum PythonMutator {}

impl PythonMutator {
    /// Always fails.
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
