//! What all.c is, in Rust: every hook, each noted in the file MUTATOR_LOG, a line a call.

#![allow(clippy::missing_safety_doc)]

use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::io::Write;

struct Mutator {
    calls: File,
    out: Vec<u8>,
    next: u8,
    trimmed: u8,
}

impl Mutator {
    fn note(&mut self, call: &str) {
        writeln!(self.calls, "{call}").unwrap();
    }

    fn note_file(&mut self, call: &str, name: *const c_char, from: *const c_char) {
        let path = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let from = if from.is_null() { "none" } else { "seed" };
        writeln!(self.calls, "{call} {:.9} {from}", name).unwrap();
    }

    fn give(&mut self, bytes: &[u8], out: *mut *mut u8) -> usize {
        self.out = bytes.to_vec();
        unsafe { *out = self.out.as_mut_ptr() };
        self.out.len()
    }
}

unsafe fn mutator<'a>(data: *mut c_void) -> &'a mut Mutator {
    unsafe { &mut *data.cast() }
}

unsafe fn bytes<'a>(buf: *const u8, size: usize) -> &'a [u8] {
    unsafe { std::slice::from_raw_parts(buf, size) }
}

#[unsafe(no_mangle)]
pub extern "C" fn afl_custom_init(_afl: *mut c_void, _seed: u32) -> *mut c_void {
    let path = std::env::var("MUTATOR_LOG").unwrap();
    let calls = File::options().append(true).create(true).open(path).unwrap();
    let mut mutator = Mutator { calls, out: Vec::new(), next: b'A', trimmed: 0 };
    mutator.note("init");
    Box::into_raw(Box::new(mutator)).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_deinit(data: *mut c_void) {
    let mut mutator = unsafe { Box::from_raw(data.cast::<Mutator>()) };
    mutator.note("deinit");
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_fuzz_count(data: *mut c_void, _: *const u8, _: usize) -> u32 {
    unsafe { mutator(data) }.note("fuzz_count");
    4
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_fuzz(
    data: *mut c_void,
    buf: *mut u8,
    size: usize,
    out: *mut *mut u8,
    _add: *mut u8,
    _add_size: usize,
    _max: usize,
) -> usize {
    let mutator = unsafe { mutator(data) };
    mutator.note("fuzz");
    let made = mutator.give(unsafe { bytes(buf, size) }, out);
    mutator.out[0] = mutator.next;
    mutator.next += 1;
    made
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_describe(data: *mut c_void, _max: usize) -> *const c_char {
    unsafe { mutator(data) }.note("describe");
    c"letter,of:all".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_post_process(
    data: *mut c_void,
    buf: *mut u8,
    size: usize,
    out: *mut *mut u8,
) -> usize {
    unsafe { mutator(data) }.note("post_process");
    unsafe { *out = buf };
    size
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_init_trim(data: *mut c_void, _: *mut u8, _: usize) -> i32 {
    let mutator = unsafe { mutator(data) };
    mutator.note("init_trim");
    mutator.trimmed = 0;
    2
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_trim(data: *mut c_void, out: *mut *mut u8) -> usize {
    let mutator = unsafe { mutator(data) };
    mutator.note("trim");
    let first = b'Z' - mutator.trimmed;
    mutator.give(&[first, b'x', b'x', b'x'], out)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_post_trim(data: *mut c_void, _success: u8) -> i32 {
    let mutator = unsafe { mutator(data) };
    mutator.note("post_trim");
    mutator.trimmed += 1;
    mutator.trimmed.into()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_havoc_mutation(
    data: *mut c_void,
    buf: *mut u8,
    size: usize,
    out: *mut *mut u8,
    _max: usize,
) -> usize {
    unsafe { mutator(data) }.note("havoc_mutation");
    unsafe { *out = buf };
    size
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_havoc_mutation_probability(data: *mut c_void) -> u8 {
    unsafe { mutator(data) }.note("havoc_mutation_probability");
    100
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_queue_get(data: *mut c_void, name: *const c_char) -> u8 {
    unsafe { mutator(data) }.note_file("queue_get", name, name);
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_queue_new_entry(
    data: *mut c_void,
    name: *const c_char,
    from: *const c_char,
) -> u8 {
    unsafe { mutator(data) }.note_file("queue_new_entry", name, from);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_post_run(data: *mut c_void) {
    unsafe { mutator(data) }.note("post_run");
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_introspection(data: *mut c_void) -> *const c_char {
    unsafe { mutator(data) }.note("introspection");
    c"all is well".as_ptr()
}
