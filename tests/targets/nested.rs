//! A harness with a feedback map of its own, by the crate `waypoints`: the deepest nesting of brackets.
#![no_main]

waypoints::map!(static DEPTH: Max = "depth", 2);

#[unsafe(no_mangle)]
pub extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    let data = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
    let mut depth = 0_usize;
    for byte in data {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => break,
        }
        DEPTH.max(0, depth);
    }
    // Larger than a value can be.
    DEPTH.max(1, u64::MAX);
    0
}
