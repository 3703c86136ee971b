//! Regular expressions of libc (POSIX, extended), for texts that a library in the target compiles with the same libc.

use std::ffi::CString;
use std::mem::MaybeUninit;

/// Why libc refuses an expression, in its words.
pub fn check(expression: &str) -> Result<(), String> {
    let text = CString::new(expression).map_err(|_| "it has a zero byte".to_owned())?;
    let mut compiled = MaybeUninit::<libc::regex_t>::uninit();
    // SAFETY: the text ends with a zero byte, and libc writes into memory of its type.
    let error = unsafe { libc::regcomp(compiled.as_mut_ptr(), text.as_ptr(), libc::REG_EXTENDED) };
    if error == 0 {
        // SAFETY: it was compiled.
        unsafe { libc::regfree(compiled.as_mut_ptr()) };
        return Ok(());
    }
    let mut words = [0_u8; 128];
    // SAFETY: libc writes at most as many bytes as the buffer has, with a zero byte at the end.
    let length =
        unsafe { libc::regerror(error, compiled.as_ptr(), words.as_mut_ptr().cast(), words.len()) };
    let words = &words[..length.clamp(1, words.len()) - 1];
    Err(String::from_utf8_lossy(words).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_libc_cannot_compile_has_its_reason() {
        assert_eq!(check("^HTTP/[0-9.]+ ([0-9]{3})"), Ok(()));
        assert!(check("([0-9]").unwrap_err().contains('('));
        assert!(check("a\0b").is_err());
    }
}
