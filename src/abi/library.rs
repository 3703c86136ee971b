//! A mutator library of AFL++'s C interface: symbols, calls, and copies at the border.
//!
//! Symbols are looked up once and kept together with their library. The result of a call
//! is copied immediately; an impossible length is an error, not a read.

use std::ffi::{CStr, CString, OsStr, c_char, c_uint, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

type Init = unsafe extern "C" fn(*mut c_void, c_uint) -> *mut c_void;
type Nothing = unsafe extern "C" fn(*mut c_void);
type Fuzz =
    unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut *mut u8, *mut u8, usize, usize) -> usize;
type CountFn = unsafe extern "C" fn(*mut c_void, *const u8, usize) -> u32;
type DescribeFn = unsafe extern "C" fn(*mut c_void, usize) -> *const c_char;
type PostProcess = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut *mut u8) -> usize;
type InitTrim = unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> i32;
type TrimFn = unsafe extern "C" fn(*mut c_void, *mut *mut u8) -> usize;
type PostTrim = unsafe extern "C" fn(*mut c_void, u8) -> i32;
type HavocFn = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut *mut u8, usize) -> usize;
type Percent = unsafe extern "C" fn(*mut c_void) -> u8;
type QueueGet = unsafe extern "C" fn(*mut c_void, *const c_char) -> u8;
type QueueNew = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> u8;
type Send = unsafe extern "C" fn(*mut c_void, *const u8, usize);
type Text = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// 64-bit words at the pointer that a library's init gets: AFL++'s own is its whole state, which
/// has 1.3 MB in 4.21c and differs in every release. A library that accesses it reads zeros,
/// and may write, as code of AFL++'s headers does with its random numbers. Pages that nobody touches
/// are never made.
const OPAQUE_WORDS: usize = 2 << 20;

/// The library's functions; None: it does not have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Functions {
    deinit: Option<Nothing>,
    fuzz: Option<Fuzz>,
    fuzz_count: Option<CountFn>,
    splice_optout: bool,
    describe: Option<DescribeFn>,
    post_process: Option<PostProcess>,
    init_trim: Option<InitTrim>,
    trim: Option<TrimFn>,
    post_trim: Option<PostTrim>,
    havoc: Option<HavocFn>,
    probability: Option<Percent>,
    queue_get: Option<QueueGet>,
    queue_new_entry: Option<QueueNew>,
    fuzz_send: Option<Send>,
    post_run: Option<Nothing>,
    introspection: Option<Text>,
}

/// A loaded and initialised library.
#[derive(Debug)]
pub struct Library {
    functions: Functions,
    data: *mut c_void,
    /// Copy of an input, which the library may change.
    buffer: Vec<u8>,
    /// What the library's init got; it may have kept the pointer.
    _opaque: Box<[u64]>,
    /// Last: the functions are in it.
    _handle: Handle,
}

/// Why a library cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// The loader's message.
    Load(String),
    NoInit,
    /// Its init returned NULL.
    Refused,
}

/// What a hook returned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Returned {
    /// The bytes are in the caller's buffer, at most one more than allowed.
    Bytes,
    /// A buffer without a byte in it.
    Empty,
    /// No buffer.
    Null,
    /// An invalid result; the text describes it.
    Wild(&'static str),
}

impl Library {
    /// Loads a library and initializes it. `around` runs its init, and can record its name.
    pub fn open(
        path: &Path,
        seed: u32,
        around: impl FnOnce(&mut dyn FnMut()),
    ) -> Result<Self, OpenError> {
        // SAFETY: constructors of the library run here: the user asked for its code to be run.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| OpenError::Load(reason(&error)))?;
        let init: Init = symbol(&handle, "afl_custom_init").ok_or(OpenError::NoInit)?;
        let mut opaque = vec![0u64; OPAQUE_WORDS].into_boxed_slice();
        let mut data = std::ptr::null_mut();
        around(&mut || {
            // SAFETY: the interface's prototype; the opaque block lives as long as the library.
            data = unsafe { init(opaque.as_mut_ptr().cast(), seed) };
        });
        if data.is_null() {
            return Err(OpenError::Refused);
        }
        let functions = Functions::of(&handle);
        Ok(Self { functions, data, buffer: Vec::new(), _opaque: opaque, _handle: handle })
    }

    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Fills the buffer that the library gets.
    fn lend(&mut self, input: &[u8]) -> (*mut u8, usize) {
        self.buffer.clear();
        self.buffer.extend_from_slice(input);
        (self.buffer.as_mut_ptr(), self.buffer.len())
    }

    pub fn fuzz_count(&mut self, input: &[u8]) -> u32 {
        let Some(count) = self.functions.fuzz_count else { return 0 };
        // SAFETY: the interface's prototype; the slice outlives the call.
        unsafe { count(self.data, input.as_ptr(), input.len()) }
    }

    pub fn fuzz(
        &mut self,
        input: &[u8],
        other: Option<&[u8]>,
        max_len: usize,
        out: &mut Vec<u8>,
    ) -> Returned {
        let Some(fuzz) = self.functions.fuzz else { return Returned::Null };
        let (buf, len) = self.lend(input);
        let mut other = other.map(<[u8]>::to_vec).unwrap_or_default();
        let add = if other.is_empty() { std::ptr::null_mut() } else { other.as_mut_ptr() };
        let mut result = std::ptr::null_mut();
        // SAFETY: the interface's prototype; both buffers are ours and outlive the call.
        let made = unsafe { fuzz(self.data, buf, len, &raw mut result, add, other.len(), max_len) };
        take(self.buffer.as_ptr_range(), result, made, max_len, out)
    }

    pub fn post_process(&mut self, input: &[u8], max_len: usize, out: &mut Vec<u8>) -> Returned {
        let Some(post_process) = self.functions.post_process else { return Returned::Null };
        let (buf, len) = self.lend(input);
        let mut result = std::ptr::null_mut();
        // SAFETY: the interface's prototype; the buffer is ours and outlives the call.
        let made = unsafe { post_process(self.data, buf, len, &raw mut result) };
        take(self.buffer.as_ptr_range(), result, made, max_len, out)
    }

    pub fn havoc(&mut self, bytes: &mut Vec<u8>, max_len: usize) -> Returned {
        let Some(havoc) = self.functions.havoc else { return Returned::Null };
        // The input itself: what a failing call leaves in it is one more random change.
        let (buf, len) = (bytes.as_mut_ptr(), bytes.len());
        let mut result = std::ptr::null_mut();
        // SAFETY: the interface's prototype; the buffer is ours and outlives the call.
        let made = unsafe { havoc(self.data, buf, len, &raw mut result, max_len) };
        if result == buf && (1..=len).contains(&made) {
            bytes.truncate(made);
            return Returned::Bytes;
        }
        let returned = take(bytes.as_ptr_range(), result, made, max_len, &mut self.buffer);
        if returned == Returned::Bytes {
            std::mem::swap(bytes, &mut self.buffer);
        }
        returned
    }

    /// None: the library does not say.
    pub fn havoc_probability(&mut self) -> Option<u8> {
        // SAFETY: the interface's prototype.
        self.functions.probability.map(|percent| unsafe { percent(self.data) })
    }

    pub fn describe(&mut self, max_len: usize) -> Option<String> {
        let describe = self.functions.describe?;
        // SAFETY: the interface's prototype.
        let text = unsafe { describe(self.data, max_len) };
        text_at(text)
    }

    pub fn introspection(&mut self) -> Option<String> {
        let introspection = self.functions.introspection?;
        // SAFETY: the interface's prototype.
        let text = unsafe { introspection(self.data) };
        text_at(text)
    }

    pub fn init_trim(&mut self, input: &[u8]) -> i32 {
        let Some(init_trim) = self.functions.init_trim else { return 0 };
        let (buf, len) = self.lend(input);
        // SAFETY: the interface's prototype; the buffer is ours and stays as it is until the next
        // call, because libraries keep the pointer for their trim.
        unsafe { init_trim(self.data, buf, len) }
    }

    pub fn trim(&mut self, max_len: usize, out: &mut Vec<u8>) -> Returned {
        let Some(trim) = self.functions.trim else { return Returned::Null };
        let mut result = std::ptr::null_mut();
        // SAFETY: the interface's prototype.
        let made = unsafe { trim(self.data, &raw mut result) };
        take(self.buffer.as_ptr_range(), result, made, max_len, out)
    }

    pub fn post_trim(&mut self, success: bool) -> i32 {
        let Some(post_trim) = self.functions.post_trim else { return 0 };
        // SAFETY: the interface's prototype.
        unsafe { post_trim(self.data, success.into()) }
    }

    pub fn queue_get(&mut self, path: &Path) -> bool {
        let Some(queue_get) = self.functions.queue_get else { return true };
        let path = c_path(path);
        // SAFETY: the interface's prototype; the string outlives the call.
        unsafe { queue_get(self.data, path.as_ptr()) != 0 }
    }

    pub fn queue_new_entry(&mut self, path: &Path, parent: Option<&Path>) -> bool {
        let Some(queue_new_entry) = self.functions.queue_new_entry else { return false };
        let (path, parent) = (c_path(path), parent.map(c_path));
        let parent = parent.as_ref().map_or(std::ptr::null(), |parent| parent.as_ptr());
        // SAFETY: the interface's prototype; both strings outlive the call.
        unsafe { queue_new_entry(self.data, path.as_ptr(), parent) != 0 }
    }

    pub fn fuzz_send(&mut self, input: &[u8]) {
        if let Some(send) = self.functions.fuzz_send {
            // SAFETY: the interface's prototype; the slice outlives the call.
            unsafe { send(self.data, input.as_ptr(), input.len()) }
        }
    }

    pub fn post_run(&mut self) {
        if let Some(post_run) = self.functions.post_run {
            // SAFETY: the interface's prototype.
            unsafe { post_run(self.data) }
        }
    }
}

/// Copies what a hook returned; one byte more than `max_len`, if there are more, tells the caller.
/// `lent` is the buffer that the hook got.
fn take(
    lent: Range<*const u8>,
    result: *mut u8,
    len: usize,
    max_len: usize,
    out: &mut Vec<u8>,
) -> Returned {
    let start = result.cast_const();
    if start.is_null() {
        return Returned::Null;
    }
    if len == 0 {
        return Returned::Empty;
    }
    if lent.contains(&start) && len > lent.end.addr() - start.addr() {
        return Returned::Wild("returned more bytes of its input than there are");
    }
    let wanted = len.min(max_len.saturating_add(1));
    out.clear();
    if len <= max_len {
        // SAFETY: the library says that this number of bytes is there, within what it was allowed; they
        // are read before its next call, and nothing else writes them meanwhile.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(start, wanted) });
    } else if isize::try_from(len).is_err() || !read_own_memory(start, wanted, out) {
        // No object is as large as the first; the second cannot be read to its end.
        return Returned::Wild("returned an impossible length");
    }
    Returned::Bytes
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(deinit) = self.functions.deinit {
            // SAFETY: the interface's prototype; the last call.
            unsafe { deinit(self.data) }
        }
    }
}

impl Functions {
    fn of(handle: &Handle) -> Self {
        Self {
            deinit: symbol(handle, "afl_custom_deinit"),
            fuzz: symbol(handle, "afl_custom_fuzz")
                .or_else(|| symbol(handle, "afl_custom_mutator")),
            fuzz_count: symbol(handle, "afl_custom_fuzz_count"),
            splice_optout: symbol::<Nothing>(handle, "afl_custom_splice_optout").is_some(),
            describe: symbol(handle, "afl_custom_describe"),
            post_process: symbol(handle, "afl_custom_post_process"),
            init_trim: symbol(handle, "afl_custom_init_trim"),
            trim: symbol(handle, "afl_custom_trim"),
            post_trim: symbol(handle, "afl_custom_post_trim"),
            havoc: symbol(handle, "afl_custom_havoc_mutation"),
            probability: symbol(handle, "afl_custom_havoc_mutation_probability"),
            queue_get: symbol(handle, "afl_custom_queue_get"),
            queue_new_entry: symbol(handle, "afl_custom_queue_new_entry"),
            fuzz_send: symbol(handle, "afl_custom_fuzz_send"),
            post_run: symbol(handle, "afl_custom_post_run"),
            introspection: symbol(handle, "afl_custom_introspection"),
        }
    }

    #[must_use]
    pub fn fuzz(&self) -> bool {
        self.fuzz.is_some()
    }

    #[must_use]
    pub fn fuzz_count(&self) -> bool {
        self.fuzz_count.is_some()
    }

    #[must_use]
    pub fn splice_optout(&self) -> bool {
        self.splice_optout
    }

    #[must_use]
    pub fn describe(&self) -> bool {
        self.describe.is_some()
    }

    #[must_use]
    pub fn post_process(&self) -> bool {
        self.post_process.is_some()
    }

    /// How many of the three functions of trimming there are.
    #[must_use]
    pub fn trim(&self) -> usize {
        let there = [self.init_trim.is_some(), self.trim.is_some(), self.post_trim.is_some()];
        there.into_iter().filter(|there| *there).count()
    }

    #[must_use]
    pub fn havoc(&self) -> bool {
        self.havoc.is_some()
    }

    #[must_use]
    pub fn queue_get(&self) -> bool {
        self.queue_get.is_some()
    }

    #[must_use]
    pub fn queue_new_entry(&self) -> bool {
        self.queue_new_entry.is_some()
    }

    #[must_use]
    pub fn fuzz_send(&self) -> bool {
        self.fuzz_send.is_some()
    }

    #[must_use]
    pub fn post_run(&self) -> bool {
        self.post_run.is_some()
    }

    #[must_use]
    pub fn introspection(&self) -> bool {
        self.introspection.is_some()
    }
}

/// The loader's own message is the source of the wrapper's error.
pub(super) fn reason(error: &libloading::Error) -> String {
    let inner = std::error::Error::source(error).map(ToString::to_string);
    inner.unwrap_or_else(|| error.to_string())
}

/// A function of the library. `T` is its prototype.
fn symbol<T: Copy>(handle: &Handle, name: &str) -> Option<T> {
    // SAFETY: every caller names the prototype that the interface gives this symbol; the pointer is
    // kept together with the library only.
    let found = unsafe { handle.get::<Option<T>>(name.as_bytes()) };
    found.ok().and_then(|symbol| *symbol)
}

/// Copies memory that may not be mapped: the kernel checks it. False if it is not.
fn read_own_memory(start: *const u8, len: usize, out: &mut Vec<u8>) -> bool {
    out.resize(len, 0);
    let to = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: len };
    let from = libc::iovec { iov_base: start.cast_mut().cast(), iov_len: len };
    // SAFETY: writes `len` bytes into a buffer that has them; the kernel checks the other side.
    let read =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    usize::try_from(read) == Ok(len)
}

fn text_at(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not NULL, and the interface says that it ends with a zero; copied at once.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Paths of files hold no zero.
fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// Sets a variable of this process, for libraries to read. To be called while there is one thread.
pub fn set_variable(name: &str, value: &OsStr) {
    // SAFETY: the caller keeps to the rule above: nothing reads the environment at the same time.
    unsafe { std::env::set_var(name, value) };
}
