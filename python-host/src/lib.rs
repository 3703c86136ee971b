//! Modules in Python with the hooks of AFL++, in an interpreter inside `ffuzz`: the part that needs
//! libpython. `build.rs` builds it as a shared library and embeds that in `ffuzz`, which loads it
//! behind libpython when a module is asked for (`src/abi/python.rs`).
//!
//! It is built for Python's stable interface of 3.9, so one build serves every later version, and
//! building needs no Python. Here is the border; `module.rs` has the Python.

#![allow(unsafe_code, reason = "this is the border: raw pointers end here")]

mod abi;
mod module;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::{Arguments, Bytes, CallResult, Function, Host, Opened, Sink, Status};
use module::{CallArguments, Module};

/// What `ffuzz` looks up: [`abi::TABLE`].
#[allow(non_upper_case_globals, reason = "a symbol's name")]
#[unsafe(no_mangle)]
pub static ffuzz_python_host: Host = Host { open, call, close };

/// # Safety
/// The bytes are the caller's and live as long as what is returned is used.
unsafe fn slice<'a>(bytes: Bytes) -> Option<&'a [u8]> {
    if bytes.start.is_null() {
        return None;
    }
    // SAFETY: the caller's bytes, by the rules of the border.
    Some(unsafe { std::slice::from_raw_parts(bytes.start, bytes.len) })
}

fn put(sink: Sink, bytes: &[u8]) {
    // SAFETY: the caller's function with its own pointer, during its call.
    unsafe { (sink.put)(sink.to, Bytes::of(bytes)) };
}

/// A panic is a mistake of ours, and must not cross the border.
fn guarded<T>(sink: Sink, otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        put(sink, b"the Python host panicked");
        otherwise
    })
}

/// [`Host::open`].
unsafe extern "C" fn open(name: Bytes, environment: Bytes, sink: Sink) -> Opened {
    let none = Opened { module: std::ptr::null_mut(), functions: 0 };
    guarded(sink, none, || {
        // SAFETY: the caller's bytes, used during its call.
        let (name, environment) = unsafe { (slice(name), slice(environment)) };
        match Module::open(name.unwrap_or_default(), environment) {
            Ok((module, note)) => {
                put(sink, note.unwrap_or_default().as_bytes());
                let functions = module.functions();
                Opened { module: Box::into_raw(Box::new(module)).cast(), functions }
            }
            Err(reason) => {
                put(sink, reason.as_bytes());
                none
            }
        }
    })
}

/// [`Host::call`].
unsafe extern "C" fn call(
    module: *mut c_void,
    function: Function,
    arguments: &Arguments,
    sink: Sink,
) -> CallResult {
    let failed = CallResult { status: Status::Failed, number: 0 };
    guarded(sink, failed, || {
        // SAFETY: `open` made it, and the caller has not closed it and calls one at a time.
        let module = unsafe { &mut *module.cast::<Module>() };
        // SAFETY: the caller's bytes, used during its call.
        let (first, second) = unsafe { (slice(arguments.first), slice(arguments.second)) };
        let values =
            CallArguments { first: first.unwrap_or_default(), second, number: arguments.number };
        match module.call(function, &values, &mut |bytes| put(sink, bytes)) {
            Ok(number) => CallResult { status: Status::Done, number },
            Err(reason) => {
                put(sink, reason.as_bytes());
                failed
            }
        }
    })
}

/// [`Host::close`].
unsafe extern "C" fn close(module: *mut c_void) {
    // SAFETY: `open` made it, and the caller never uses it again.
    let module = unsafe { Box::from_raw(module.cast::<Module>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(module)));
}
