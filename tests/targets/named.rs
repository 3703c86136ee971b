//! A table of names that a hash leads to: nothing compares the input with them.
#![no_main]

use std::collections::HashMap;

static UNITS: [&str; 3] = ["kilogram", "fortnight", "furlong"];

#[no_mangle]
pub extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    let data = unsafe { std::slice::from_raw_parts(data, size) };
    let Ok(text) = std::str::from_utf8(data) else { return 0 };
    let colors = HashMap::from([("vermilion", 1), ("turquoise", 2), ("chartreuse", 3)]);
    let units: HashMap<&str, usize> = UNITS.iter().copied().zip(1..).collect();
    let mut words = text.split(' ');
    if colors.contains_key(words.next().unwrap_or_default())
        && units.contains_key(words.next().unwrap_or_default())
    {
        panic!("no such thing");
    }
    0
}
