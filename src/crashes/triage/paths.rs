//! Paths in the report: JSON is UTF-8, file names need not be.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Encodes a path: an invalid byte becomes `\xNN`, a backslash is doubled.
pub(super) fn to_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Decodes a path.
pub(super) fn from_text(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let number = after.strip_prefix('x').and_then(|digits| digits.get(..2));
        match number.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(b'\\');
                rest = after.strip_prefix('\\').unwrap_or(after);
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back() {
        let text = |bytes: &[u8]| to_text(&PathBuf::from(OsString::from_vec(bytes.to_vec())));
        assert_eq!(text(b"crashes/id:000000,sig:06"), "crashes/id:000000,sig:06");
        assert_eq!(text(b"\xffcaf\xc3\xa9\xe9\\x41"), "\\xffcaf\u{e9}\\xe9\\\\x41");
        for bytes in
            [&b"a/b"[..], b"", b"\\", b"\\x", b"\\x4", b"\\x41", b"\\\\", b"\xff\\\xfe\xc3"]
        {
            assert_eq!(from_text(&text(bytes)).as_os_str().as_bytes(), bytes);
        }
    }

    #[test]
    fn a_text_of_somebody_else_is_a_path_too() {
        for text in ["\\", "\\x", "\\x4", "\\xzz", "\\y"] {
            assert_eq!(from_text(text).as_os_str().as_bytes(), text.as_bytes());
        }
    }
}
