//! What `ffuzz` and its Python host say to each other. Both include this file and come from one
//! build, so there is no version to compare.
//!
//! Neither side keeps a pointer of the other beyond a call, except for the table and for modules,
//! which belong to the host. Nothing unwinds across the border.

#![allow(dead_code, unreachable_pub, reason = "each side uses its part")]

use std::ffi::c_void;

/// The table of the host: a [`Host`] under this name.
pub const TABLE: &std::ffi::CStr = c"ffuzz_python_host";

/// Bytes of the caller's. No address: there are none, which is not the same as an empty text.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bytes {
    pub start: *const u8,
    pub len: usize,
}

impl Bytes {
    pub const NONE: Self = Self { start: std::ptr::null(), len: 0 };

    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len() }
    }
}

/// Where the host puts bytes that it gives back: at most once per call. They are copied there.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sink {
    pub to: *mut c_void,
    pub put: unsafe extern "C" fn(*mut c_void, Bytes),
}

/// A function that a module may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Function {
    Init,
    FuzzCount,
    Fuzz,
    SpliceOptout,
    Describe,
    PostProcess,
    InitTrim,
    Trim,
    PostTrim,
    Havoc,
    Probability,
    QueueGet,
    QueueNewEntry,
    FuzzSend,
    PostRun,
    Introspection,
    Deinit,
}

impl Function {
    pub const COUNT: usize = Self::ALL.len();

    pub const ALL: [Self; 17] = [
        Self::Init,
        Self::FuzzCount,
        Self::Fuzz,
        Self::SpliceOptout,
        Self::Describe,
        Self::PostProcess,
        Self::InitTrim,
        Self::Trim,
        Self::PostTrim,
        Self::Havoc,
        Self::Probability,
        Self::QueueGet,
        Self::QueueNewEntry,
        Self::FuzzSend,
        Self::PostRun,
        Self::Introspection,
        Self::Deinit,
    ];

    /// Its place in a set of functions.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Arguments of a call; which of them mean something depends on the function.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Arguments {
    /// The input, or a path.
    pub first: Bytes,
    /// Another input, or the path of a parent.
    pub second: Bytes,
    /// A longest length, a seed, a truth.
    pub number: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub enum Status {
    /// It worked. Bytes, if any, are in the sink.
    Done,
    /// It did not: the sink has the exception and its traceback.
    Failed,
}

/// What a call brought.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallResult {
    pub status: Status,
    /// A number, or a truth; for bytes: whether there are any.
    pub number: u32,
}

/// An imported module, or why there is none.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Opened {
    /// Null: the sink has the reason. Else it may have a note for the user.
    pub module: *mut c_void,
    /// The functions that the module has, by [`Function::bit`].
    pub functions: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Host {
    /// Imports a module by name; the second argument is the folder of a virtual environment. Starts
    /// the interpreter if it does not run yet.
    pub open: unsafe extern "C" fn(Bytes, Bytes, Sink) -> Opened,
    pub call: unsafe extern "C" fn(*mut c_void, Function, &Arguments, Sink) -> CallResult,
    /// Calls the module's `deinit` and forgets the module.
    pub close: unsafe extern "C" fn(*mut c_void),
}
