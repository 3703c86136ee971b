//! A Python module with the hooks of AFL++, in an interpreter inside this process.
//!
//! Results may be anything that holds bytes; an exception costs one input. The environment
//! (`PYTHONPATH`) is the interpreter's own business, except for a virtual environment, which it
//! would not notice when it is embedded.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyTuple};

use super::{Failure, Hook, Hooks, Job, Made, Mutator, NAME_MAX};
use crate::config::options::PythonOptions;

/// Why a module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    #[error("cannot import the Python module {module}: {reason}")]
    Import { module: String, reason: String },
    #[error("the Python module {module}, init: {reason}")]
    Init { module: String, reason: String },
    #[error("the Python module {module} has none of the hooks")]
    NoHook { module: String },
}

impl PythonError {
    /// One line: what the user can do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Import { module, .. } => format!(
                "python3 -c 'import {module}' has to work with the same PYTHONPATH: name the \
                 folder of {module}.py there"
            ),
            Self::Init { .. } => "an init that fails ends everything: mend it".into(),
            Self::NoHook { .. } => "docs/mutators.md lists them: fuzz, post_process …".into(),
        }
    }
}

/// The functions of a module, looked up once.
#[derive(Debug, Default)]
struct Functions {
    fuzz_count: Option<Py<PyAny>>,
    fuzz: Option<Py<PyAny>>,
    describe: Option<Py<PyAny>>,
    post_process: Option<Py<PyAny>>,
    init_trim: Option<Py<PyAny>>,
    trim: Option<Py<PyAny>>,
    post_trim: Option<Py<PyAny>>,
    havoc_mutation: Option<Py<PyAny>>,
    havoc_mutation_probability: Option<Py<PyAny>>,
    queue_get: Option<Py<PyAny>>,
    queue_new_entry: Option<Py<PyAny>>,
    fuzz_send: Option<Py<PyAny>>,
    post_run: Option<Py<PyAny>>,
    introspection: Option<Py<PyAny>>,
    deinit: Option<Py<PyAny>>,
}

impl Functions {
    fn of(module: &Bound<'_, PyModule>) -> Self {
        let find = |name: &str| {
            let found = module.getattr(name).ok().filter(Bound::is_callable);
            found.map(Bound::unbind)
        };
        Self {
            fuzz_count: find("fuzz_count"),
            fuzz: find("fuzz").or_else(|| find("mutate")),
            describe: find("describe"),
            post_process: find("post_process"),
            init_trim: find("init_trim"),
            trim: find("trim"),
            post_trim: find("post_trim"),
            havoc_mutation: find("havoc_mutation"),
            havoc_mutation_probability: find("havoc_mutation_probability"),
            queue_get: find("queue_get"),
            queue_new_entry: find("queue_new_entry"),
            fuzz_send: find("fuzz_send"),
            post_run: find("post_run"),
            introspection: find("introspection"),
            deinit: find("deinit"),
        }
    }

    fn trim_hooks(&self) -> [bool; 3] {
        [self.init_trim.is_some(), self.trim.is_some(), self.post_trim.is_some()]
    }

    fn hooks(&self) -> Hooks {
        let found = [
            (Hook::FuzzCount, self.fuzz_count.is_some()),
            (Hook::Fuzz, self.fuzz.is_some()),
            (Hook::Describe, self.describe.is_some()),
            (Hook::PostProcess, self.post_process.is_some()),
            (Hook::Trim, self.trim_hooks() == [true; 3]),
            (Hook::Havoc, self.havoc_mutation.is_some()),
            (Hook::QueueGet, self.queue_get.is_some()),
            (Hook::QueueNewEntry, self.queue_new_entry.is_some()),
            (Hook::FuzzSend, self.fuzz_send.is_some()),
            (Hook::PostRun, self.post_run.is_some()),
            (Hook::Introspection, self.introspection.is_some()),
        ];
        found.into_iter().filter(|(_, there)| *there).map(|(hook, _)| hook).collect()
    }
}

/// A loaded module.
#[derive(Debug)]
pub struct PythonMutator {
    name: String,
    functions: Functions,
    hooks: Hooks,
    /// The first message of each kind of failure: what differs from call to call is not told again.
    told: BTreeMap<String, String>,
}

impl PythonMutator {
    /// Imports the module and calls its `init`. The second value is what the user should know.
    pub fn open(wanted: &PythonOptions, seed: u32) -> Result<(Self, Vec<String>), PythonError> {
        let module = &wanted.module;
        Python::attach(|py| {
            let mut notes = Vec::new();
            if let Some(folder) = &wanted.virtual_env {
                notes.extend(enter(py, folder).unwrap_or_else(|error| Some(report(py, &error))));
            }
            let found = py.import(module.as_str()).map_err(|error| PythonError::Import {
                module: module.clone(),
                reason: report(py, &error),
            })?;
            let functions = Functions::of(&found);
            let mut hooks = functions.hooks();
            if found.hasattr("splice_optout").unwrap_or(false) {
                hooks = hooks.with(Hook::SpliceOptout);
            }
            if hooks == Hooks::default() {
                return Err(PythonError::NoHook { module: module.clone() });
            }
            if functions.trim_hooks().contains(&true) && !hooks.has(Hook::Trim) {
                let note =
                    "it has some of init_trim, trim and post_trim, but not all: none is used";
                notes.push(note.to_owned());
            }
            if let Ok(init) = found.getattr("init") {
                let failed = |error| PythonError::Init {
                    module: module.clone(),
                    reason: report(py, &error),
                };
                init.call1((seed,)).map_err(failed)?;
            }
            let name = short(module);
            Ok((Self { name, functions, hooks, told: BTreeMap::new() }, notes))
        })
    }

    /// Calls a function and hands its result to `read`; says what went wrong, with the traceback.
    fn call<'p, T>(
        &mut self,
        py: Python<'p>,
        function: fn(&Functions) -> &Option<Py<PyAny>>,
        args: PyResult<Bound<'p, PyTuple>>,
        read: impl FnOnce(Bound<'p, PyAny>) -> PyResult<T>,
    ) -> Result<T, Failure> {
        let result = match function(&self.functions) {
            Some(function) => args.and_then(|args| function.bind(py).call1(args)).and_then(read),
            None => return Err(Failure("is not there".into())),
        };
        result.map_err(|error| self.failure(py, &error))
    }

    fn failure(&mut self, py: Python<'_>, error: &PyErr) -> Failure {
        let told = self.told.entry(kind(py, error)).or_insert_with(|| report(py, error));
        Failure(told.clone())
    }
}

/// Exception and line: failures that are alike in both are one kind.
fn kind(py: Python<'_>, error: &PyErr) -> String {
    let line = || {
        let mut last = error.traceback(py)?;
        while let Ok(next) = last.getattr("tb_next").ok()?.cast_into() {
            last = next;
        }
        last.getattr("tb_lineno").ok()?.extract::<u64>().ok()
    };
    format!("{} {:?}", error.get_type(py), line())
}

/// The exception, and below it where it came from.
fn report(py: Python<'_>, error: &PyErr) -> String {
    let trace = error.traceback(py).and_then(|trace| trace.format().ok()).unwrap_or_default();
    format!("{error}\n{trace}").trim_end().to_owned()
}

/// The last part of a dotted name, as long as names may be.
fn short(module: &str) -> String {
    let last = module.rsplit('.').next().unwrap_or(module);
    last.chars().take(NAME_MAX).collect()
}

/// Makes the packages of a virtual environment visible, in front of those of the system. Returns
/// what the user should know.
fn enter(py: Python<'_>, folder: &Path) -> PyResult<Option<String>> {
    let version = py.version_info();
    let python = format!("python{}.{}", version.major, version.minor);
    let packages = folder.join("lib").join(&python).join("site-packages");
    if !packages.is_dir() {
        let folder = folder.display();
        return Ok(Some(format!(
            "VIRTUAL_ENV={folder} has no packages for {python}, which this ffuzz was built with"
        )));
    }
    let path = py.import("sys")?.getattr("path")?;
    let before: Vec<String> = path.extract()?;
    py.import("site")?.call_method1("addsitedir", (packages.as_os_str(),))?;
    let all: Vec<String> = path.extract()?;
    let of_system =
        |entry: &String| entry.ends_with("/site-packages") || entry.ends_with("/dist-packages");
    let place = before.iter().position(of_system).unwrap_or(before.len());
    let mut wanted = before.clone();
    wanted.splice(place..place, all.into_iter().filter(|entry| !before.contains(entry)));
    let slice = pyo3::types::PySlice::full(py);
    path.set_item(slice, wanted)?;
    py.import("sys")?.setattr("prefix", folder.as_os_str())?;
    Ok(None)
}

/// Anything that holds bytes; None is no bytes.
fn bytes(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<Made> {
    out.clear();
    if value.is_none() {
        return Ok(Made::Nothing);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        out.extend_from_slice(bytes.as_bytes());
    } else if let Ok(buffer) = PyBuffer::<u8>::get(value) {
        out.resize(buffer.len_bytes(), 0);
        buffer.copy_to_slice(value.py(), out)?;
    } else {
        // Arrays of something else than bytes; and the error for what is no buffer.
        let copy = PyMemoryView::from(value)?.call_method0("tobytes")?;
        out.extend_from_slice(copy.cast::<PyBytes>()?.as_bytes());
    }
    Ok(if out.is_empty() { Made::Nothing } else { Made::Input })
}

/// A text, or bytes that are one; None is none.
fn text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(text.to_string_lossy().into_owned()));
    }
    let mut out = Vec::new();
    let made = bytes(value, &mut out)?;
    Ok((made == Made::Input).then(|| String::from_utf8_lossy(&out).into_owned()))
}

fn path_text<'p>(py: Python<'p>, path: &Path) -> PyResult<Bound<'p, PyString>> {
    let path: &OsStr = path.as_os_str();
    Ok(path.into_pyobject(py)?)
}

impl Mutator for PythonMutator {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn fuzz_count(&mut self, input: &[u8]) -> Result<u32, Failure> {
        Python::attach(|py| {
            let args = (PyByteArray::new(py, input),).into_pyobject(py);
            self.call(py, |f| &f.fuzz_count, args, |count| count.extract())
        })
    }

    fn fuzz(&mut self, job: &Job<'_>, out: &mut Vec<u8>) -> Result<Made, Failure> {
        Python::attach(|py| {
            let input = PyByteArray::new(py, job.input);
            let other = PyByteArray::new(py, job.other.unwrap_or_default());
            let args = (input, other, job.max_len).into_pyobject(py);
            self.call(py, |f| &f.fuzz, args, |made| bytes(&made, out))
        })
    }

    fn describe(&mut self, max_len: usize) -> Result<Option<String>, Failure> {
        Python::attach(|py| {
            let args = (max_len,).into_pyobject(py);
            self.call(py, |f| &f.describe, args, |described| text(&described))
        })
    }

    fn post_process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Made, Failure> {
        Python::attach(|py| {
            let args = (PyByteArray::new(py, input),).into_pyobject(py);
            self.call(py, |f| &f.post_process, args, |made| bytes(&made, out))
        })
    }

    fn init_trim(&mut self, input: &[u8]) -> Result<u32, Failure> {
        Python::attach(|py| {
            let args = (PyByteArray::new(py, input),).into_pyobject(py);
            self.call(py, |f| &f.init_trim, args, |steps| steps.extract())
        })
    }

    fn trim(&mut self, out: &mut Vec<u8>) -> Result<Made, Failure> {
        Python::attach(|py| {
            let none = Ok(PyTuple::empty(py));
            self.call(py, |f| &f.trim, none, |made| bytes(&made, out))
        })
    }

    fn post_trim(&mut self, success: bool) -> Result<u32, Failure> {
        Python::attach(|py| {
            let args = (success,).into_pyobject(py);
            self.call(py, |f| &f.post_trim, args, |step| step.extract())
        })
    }

    fn havoc_mutation(&mut self, input: &mut Vec<u8>, max_len: usize) -> Result<Made, Failure> {
        Python::attach(|py| {
            let args = (PyByteArray::new(py, input), max_len).into_pyobject(py);
            let mut out = Vec::new();
            let made = self.call(py, |f| &f.havoc_mutation, args, |made| bytes(&made, &mut out))?;
            if made == Made::Input {
                *input = out;
            }
            Ok(made)
        })
    }

    fn havoc_probability(&mut self) -> Result<u8, Failure> {
        if self.functions.havoc_mutation_probability.is_none() {
            return Ok(super::DEFAULT_PROBABILITY);
        }
        Python::attach(|py| {
            let none = Ok(PyTuple::empty(py));
            self.call(py, |f| &f.havoc_mutation_probability, none, |percent| percent.extract())
        })
    }

    fn queue_get(&mut self, path: &Path) -> Result<bool, Failure> {
        Python::attach(|py| {
            let args = path_text(py, path).and_then(|path| (path,).into_pyobject(py));
            self.call(py, |f| &f.queue_get, args, |wanted| wanted.is_truthy())
        })
    }

    fn queue_new_entry(&mut self, path: &Path, parent: Option<&Path>) -> Result<bool, Failure> {
        Python::attach(|py| {
            let parent = parent.map(|parent| path_text(py, parent)).transpose();
            let args = path_text(py, path).and_then(|path| (path, parent?).into_pyobject(py));
            self.call(py, |f| &f.queue_new_entry, args, |changed| changed.is_truthy())
        })
    }

    fn fuzz_send(&mut self, input: &[u8]) -> Result<(), Failure> {
        Python::attach(|py| {
            let args = (PyByteArray::new(py, input),).into_pyobject(py);
            self.call(py, |f| &f.fuzz_send, args, |_| Ok(()))
        })
    }

    fn post_run(&mut self) -> Result<(), Failure> {
        Python::attach(|py| self.call(py, |f| &f.post_run, Ok(PyTuple::empty(py)), |_| Ok(())))
    }

    fn introspection(&mut self) -> Result<Option<String>, Failure> {
        Python::attach(|py| {
            let none = Ok(PyTuple::empty(py));
            self.call(py, |f| &f.introspection, none, |line| text(&line))
        })
    }
}

impl Drop for PythonMutator {
    /// The interpreter stays; what was printed must not stay in it.
    fn drop(&mut self) {
        Python::attach(|py| {
            if let Some(deinit) = &self.functions.deinit
                && let Err(error) = deinit.call0(py)
            {
                error.print(py);
            }
            for stream in ["stdout", "stderr"] {
                let sys = py.import("sys").and_then(|sys| sys.getattr(stream));
                let _ = sys.and_then(|stream| stream.call_method0("flush"));
            }
        });
    }
}

#[cfg(test)]
mod tests;
