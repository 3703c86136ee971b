//! What `fuzz!` of the crate `afl` makes of a program: a `main` that reads inputs in a persistent loop.

use std::io::Read;

unsafe extern "C" {
    fn __afl_persistent_loop(counter: usize) -> isize;
    fn __afl_manual_init();
}

fn main() {
    unsafe { __afl_manual_init() };
    let mut input = Vec::new();
    while unsafe { __afl_persistent_loop(1000) } != 0 {
        input.clear();
        std::io::stdin().read_to_end(&mut input).unwrap();
        if input.starts_with(b"BUG") {
            std::process::abort();
        }
    }
}
