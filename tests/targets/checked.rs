//! A harness with a debug assertion, and that prints its argument as those of `libfuzzer-sys` do.
#![no_main]

#[unsafe(no_mangle)]
pub extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    let data = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
    let Some(number) = data.first() else { return 0 };
    if let Some(file) = std::env::var_os("RUST_LIBFUZZER_DEBUG_PATH") {
        std::fs::write(file, format!("the number {number}")).unwrap();
        return 0;
    }
    assert!(cfg!(not(debug_assertions)) || *number != 255);
    0
}
