//! A harness whose comparisons `rustc` reports: integers, strings of any length, a number in text.
#![no_main]

#[unsafe(no_mangle)]
pub extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    let data = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
    check(data);
    0
}

#[inline(never)]
fn check(data: &[u8]) -> Option<()> {
    let (head, rest) = data.split_at_checked(4)?;
    if u32::from_le_bytes(head.try_into().ok()?) != 0xfeed_beef {
        return None;
    }
    let rest = rest.strip_prefix(b"a keyword that is longer than registers:")?;
    let mut words = std::str::from_utf8(rest).ok()?.split(' ');
    match words.next()? {
        "transaction" => {}
        _ => return None,
    }
    let number: u32 = words.next()?.parse().ok()?;
    assert_ne!(number, 123_456_789);
    Some(())
}
