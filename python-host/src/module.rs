//! A module: its functions, their arguments and results.
//!
//! Results may be anything that holds bytes; an exception costs one input. The environment
//! (`PYTHONPATH`) is the interpreter's own business, except for a virtual environment, which it
//! would not notice when it is embedded.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyTuple};

use crate::abi::Function;

/// Arguments of a call; which of them mean something depends on the function.
pub(crate) struct CallArguments<'a> {
    /// The input, or a path.
    pub(crate) first: &'a [u8],
    /// Another input, or the path of a parent.
    pub(crate) second: Option<&'a [u8]>,
    pub(crate) number: usize,
}

/// Takes what a function has returned; called at most once.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&[u8]);

/// An imported module.
pub(crate) struct Module {
    /// Looked up once, by [`Function`].
    functions: [Option<Py<PyAny>>; Function::COUNT],
    /// The first message of each kind of failure: what differs from call to call is not reported again.
    reported: BTreeMap<String, String>,
}

impl Module {
    /// Imports a module. The second value is what the user should know, the error is why not.
    pub(crate) fn open(
        name: &[u8],
        environment: Option<&[u8]>,
    ) -> Result<(Self, Option<String>), String> {
        Python::initialize();
        Python::attach(|py| {
            let folder = environment.map(|folder| Path::new(OsStr::from_bytes(folder)));
            let note = folder.and_then(|folder| {
                enter(py, folder).unwrap_or_else(|error| Some(report(py, &error)))
            });
            let found = py.import(String::from_utf8_lossy(name).as_ref());
            let found = found.map_err(|error| report(py, &error))?;
            let functions = Function::ALL.map(|function| find(&found, function));
            Ok((Self { functions, reported: BTreeMap::new() }, note))
        })
    }

    /// Those that the module has, by [`Function::bit`].
    pub(crate) fn functions(&self) -> u32 {
        let there = Function::ALL.iter().filter(|function| self.has(**function));
        there.fold(0, |all, function| all | function.bit())
    }

    fn has(&self, function: Function) -> bool {
        self.functions[function as usize].is_some()
    }

    /// Calls a function: a number, a truth, or for bytes whether there are any. The error is what
    /// went wrong, with the traceback.
    pub(crate) fn call(
        &mut self,
        function: Function,
        values: &CallArguments<'_>,
        take: Take<'_>,
    ) -> Result<u32, String> {
        Python::attach(|py| {
            let Some(callee) = &self.functions[function as usize] else {
                return Err("is not there".into());
            };
            let result = arguments(py, function, values)
                .and_then(|arguments| callee.bind(py).call1(arguments))
                .and_then(|result| read(function, &result, take));
            result.map_err(|error| self.failure(py, &error))
        })
    }

    fn failure(&mut self, py: Python<'_>, error: &PyErr) -> String {
        self.reported.entry(kind(py, error)).or_insert_with(|| report(py, error)).clone()
    }
}

impl Drop for Module {
    /// The interpreter stays; what was printed must not stay in it.
    fn drop(&mut self) {
        Python::attach(|py| {
            if let Some(deinit) = &self.functions[Function::Deinit as usize]
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

/// Names under which a module may have it, the better one first.
fn names(function: Function) -> &'static [&'static str] {
    match function {
        Function::Init => &["init"],
        Function::FuzzCount => &["fuzz_count"],
        Function::Fuzz => &["fuzz", "mutate"],
        Function::SpliceOptout => &["splice_optout"],
        Function::Describe => &["describe"],
        Function::PostProcess => &["post_process"],
        Function::InitTrim => &["init_trim"],
        Function::Trim => &["trim"],
        Function::PostTrim => &["post_trim"],
        Function::Havoc => &["havoc_mutation"],
        Function::Probability => &["havoc_mutation_probability"],
        Function::QueueGet => &["queue_get"],
        Function::QueueNewEntry => &["queue_new_entry"],
        Function::FuzzSend => &["fuzz_send"],
        Function::PostRun => &["post_run"],
        Function::Introspection => &["introspection"],
        Function::Deinit => &["deinit"],
    }
}

/// What is never called may be anything: its presence counts. So may `init`: calling it says why not.
fn find(module: &Bound<'_, PyModule>, function: Function) -> Option<Py<PyAny>> {
    let any = matches!(function, Function::SpliceOptout | Function::Init);
    let wanted = |found: &Bound<'_, PyAny>| any || found.is_callable();
    let mut found = names(function).iter().filter_map(|name| module.getattr(*name).ok());
    found.find(wanted).map(Bound::unbind)
}

fn arguments<'p>(
    py: Python<'p>,
    function: Function,
    values: &CallArguments<'_>,
) -> PyResult<Bound<'p, PyTuple>> {
    let bytes = |bytes| PyByteArray::new(py, bytes);
    match function {
        Function::Init | Function::Describe => (values.number,).into_pyobject(py),
        Function::FuzzCount | Function::PostProcess | Function::InitTrim | Function::FuzzSend => {
            (bytes(values.first),).into_pyobject(py)
        }
        Function::Fuzz => {
            let other = bytes(values.second.unwrap_or_default());
            (bytes(values.first), other, values.number).into_pyobject(py)
        }
        Function::PostTrim => (values.number != 0,).into_pyobject(py),
        Function::Havoc => (bytes(values.first), values.number).into_pyobject(py),
        Function::QueueGet => (path(py, values.first)?,).into_pyobject(py),
        Function::QueueNewEntry => {
            let parent = values.second.map(|parent| path(py, parent)).transpose()?;
            (path(py, values.first)?, parent).into_pyobject(py)
        }
        Function::SpliceOptout
        | Function::Trim
        | Function::Probability
        | Function::PostRun
        | Function::Introspection
        | Function::Deinit => Ok(PyTuple::empty(py)),
    }
}

fn path<'p>(py: Python<'p>, path: &[u8]) -> PyResult<Bound<'p, PyString>> {
    Ok(OsStr::from_bytes(path).into_pyobject(py)?)
}

fn read(function: Function, result: &Bound<'_, PyAny>, take: Take<'_>) -> PyResult<u32> {
    match function {
        Function::FuzzCount | Function::InitTrim | Function::PostTrim => result.extract(),
        Function::Probability => result.extract::<u8>().map(u32::from),
        Function::QueueGet | Function::QueueNewEntry => result.is_truthy().map(u32::from),
        Function::Fuzz | Function::PostProcess | Function::Trim | Function::Havoc => {
            bytes(result, take)
        }
        Function::Describe | Function::Introspection => text(result, take),
        Function::Init
        | Function::SpliceOptout
        | Function::FuzzSend
        | Function::PostRun
        | Function::Deinit => Ok(0),
    }
}

/// Anything that holds bytes; None is no bytes. Whether there were any.
fn bytes(value: &Bound<'_, PyAny>, take: Take<'_>) -> PyResult<u32> {
    let mut hand_over = |bytes: &[u8]| {
        take(bytes);
        u32::from(!bytes.is_empty())
    };
    if value.is_none() {
        return Ok(0);
    }
    if let Ok(array) = value.cast::<PyByteArray>() {
        // SAFETY: the interpreter is ours until the copy is made: nobody can change the array.
        return Ok(hand_over(unsafe { array.as_bytes() }));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(hand_over(bytes.as_bytes()));
    }
    // Views and arrays, also of something else than bytes; and the error for what is no buffer.
    let copy = PyMemoryView::from(value)?.call_method0("tobytes")?;
    Ok(hand_over(copy.cast::<PyBytes>()?.as_bytes()))
}

/// A text, or bytes that are one; None is none.
fn text(value: &Bound<'_, PyAny>, take: Take<'_>) -> PyResult<u32> {
    if let Ok(text) = value.cast::<PyString>() {
        take(text.to_string_lossy().as_bytes());
        return Ok(1);
    }
    bytes(value, take)
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

/// Makes the packages of a virtual environment visible, in front of those of the system. Returns
/// what the user should know.
fn enter(py: Python<'_>, folder: &Path) -> PyResult<Option<String>> {
    let version = py.version_info();
    let python = format!("python{}.{}", version.major, version.minor);
    let packages = folder.join("lib").join(&python).join("site-packages");
    if !packages.is_dir() {
        let folder = folder.display();
        return Ok(Some(format!(
            "VIRTUAL_ENV={folder} has no packages for {python}, whose library was found"
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
