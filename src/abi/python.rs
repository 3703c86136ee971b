//! The Python host (`python-host/`): a shared library inside this executable, which is loaded after
//! libpython for the first module in Python. So `ffuzz` itself needs no Python to start.
//!
//! The library is loaded out of memory: no file has to be unpacked, so none can be stale, damaged or
//! on a file system that forbids execution.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW, Symbol};

use super::library::reason;
use ffuzz_sys::memory;

#[path = "../../python-host/src/abi.rs"]
mod abi;

pub use abi::Function;
use abi::{Arguments, Bytes, CallResult, Host, Sink, Status};

/// Built by `build.rs` of this crate.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python-host.so"));

/// The table of the loaded host: loaded once, and for ever.
static HOST: OnceLock<Host> = OnceLock::new();

/// Makes a libpython visible to everything that is loaded from now on: extension modules in C find
/// its functions there, and so does the host. The error is the loader's message.
pub fn load_libpython(path: &Path) -> Result<(), String> {
    // SAFETY: constructors of the library run here: the user has requested Python.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
        .map_err(|error| reason(&error))?;
    // An interpreter cannot be unloaded.
    std::mem::forget(library);
    Ok(())
}

/// Loads the host, after a libpython. The error is the loader's or the kernel's message.
pub fn load_host() -> Result<(), String> {
    if HOST.get().is_some() {
        return Ok(());
    }
    let file = in_memory(LIBRARY).map_err(|error| error.to_string())?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: our own library, without constructors.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| reason(&error))?;
    // SAFETY: the library exports a table of this type; both come from one build.
    let table: Symbol<*const Host> =
        unsafe { library.get(abi::TABLE) }.map_err(|error| reason(&error))?;
    // SAFETY: as above; the table is never written.
    let _ = HOST.set(unsafe { **table });
    // The loader distinguishes libraries by name: no other may get this descriptor's.
    std::mem::forget((library, file));
    Ok(())
}

fn in_memory(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memory::memfd(c"ffuzz-python", 0)?);
    file.write_all(content)?;
    Ok(file)
}

/// An imported module.
#[derive(Debug)]
pub struct PythonModule {
    host: &'static Host,
    /// The host's; closed when dropped.
    raw: *mut c_void,
    functions: u32,
}

/// Arguments of a call; which of them mean something depends on the function.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallValues<'a> {
    /// The input, or a path.
    pub first: &'a [u8],
    /// Another input, or the path of a parent.
    pub second: Option<&'a [u8]>,
    /// A longest length, a seed, a truth.
    pub number: usize,
}

impl PythonModule {
    /// Imports a module. The second value is a note for the user, empty if there is none; the error
    /// is the reason, with a traceback.
    pub fn open(name: &str, environment: Option<&Path>) -> Result<(Self, String), String> {
        let host = HOST.get().ok_or("the Python host is not loaded")?;
        let mut text = Vec::new();
        let environment = environment.map(|folder| folder.as_os_str().as_bytes());
        // SAFETY: names and sink live as long as the call.
        let opened = unsafe {
            (host.open)(Bytes::of(name.as_bytes()), optional(environment), sink(&mut text))
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        if opened.module.is_null() {
            return Err(text);
        }
        Ok((Self { host, raw: opened.module, functions: opened.functions }, text))
    }

    #[must_use]
    pub fn has(&self, function: Function) -> bool {
        self.functions & function.bit() != 0
    }

    /// Calls a function. `out` gets its bytes; the result is a number or a truth, for bytes whether
    /// there are any. The error is the exception with its traceback.
    pub fn call(
        &mut self,
        function: Function,
        values: &CallValues<'_>,
        out: &mut Vec<u8>,
    ) -> Result<u32, String> {
        let arguments = Arguments {
            first: Bytes::of(values.first),
            second: optional(values.second),
            number: values.number,
        };
        out.clear();
        // SAFETY: the module is open, arguments and sink live as long as the call.
        let returned: CallResult =
            unsafe { (self.host.call)(self.raw, function, &arguments, sink(out)) };
        match returned.status {
            Status::Done => Ok(returned.number),
            Status::Failed => Err(String::from_utf8_lossy(out).into_owned()),
        }
    }
}

impl Drop for PythonModule {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is not used again.
        unsafe { (self.host.close)(self.raw) };
    }
}

fn optional(bytes: Option<&[u8]>) -> Bytes {
    bytes.map_or(Bytes::NONE, Bytes::of)
}

fn sink(out: &mut Vec<u8>) -> Sink {
    Sink { to: std::ptr::from_mut(out).cast(), put }
}

/// Copies what the host gives.
unsafe extern "C" fn put(to: *mut c_void, bytes: Bytes) {
    // SAFETY: `sink` made the pointer for the length of the call, in which nothing else uses the
    // buffer; the bytes are the host's until this function returns.
    let (out, bytes) =
        unsafe { (&mut *to.cast::<Vec<u8>>(), std::slice::from_raw_parts(bytes.start, bytes.len)) };
    out.clear();
    out.extend_from_slice(bytes);
}
