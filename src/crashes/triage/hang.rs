//! Location of a hang: the innermost function common to several samples of the stack.
//!
//! Its callees differ between samples and its callers do not, so it contains the loop. Its name identifies the hang.
//!
//! A hang costs one run: the process runs untraced until the timeout, then is inspected (`sys::traced`).

use super::frames::{CodeAddress, StackTrace};
use super::symbols::Symbolizer;
use crate::crash::canonical;

/// Prefix used by FuzzManager and its clients for bugs without a crash.
pub(super) const NON_CRASH: &str = "[Non-crash bug] ";
/// Class of the bug.
pub(super) const CLASS: &str = "hang";

/// Line for the server, equal for equal hangs.
pub(super) fn line(looks: &[StackTrace], symbolizer: Option<&Symbolizer>) -> String {
    match function(looks, symbolizer) {
        Some(name) => format!("{NON_CRASH}{CLASS} in {name}"),
        None => format!("{NON_CRASH}{CLASS}"),
    }
}

fn function(looks: &[StackTrace], symbolizer: Option<&Symbolizer>) -> Option<String> {
    let frames: Vec<CodeAddress> =
        looks.iter().flat_map(|look| look.frames.iter().cloned()).collect();
    let mut symbols = symbolizer?.symbols(&frames).into_iter();
    let stack = |look: &StackTrace| {
        let own = symbols.by_ref().take(look.frames.len()).zip(&look.frames);
        let names =
            own.flat_map(|(all, frame)| all.into_iter().map(move |it| (it.function, frame)));
        names.map(|(name, frame)| name.filter(|_| !is_c_library(frame))).collect()
    };
    let stacks: Vec<Vec<Option<String>>> = looks.iter().map(stack).collect();
    // Independent of the spelling.
    innermost_of_all(&stacks).map(|name| canonical(&name))
}

/// True inside the C library, where system calls wait: the caller matters.
fn is_c_library(frame: &CodeAddress) -> bool {
    let Some((path, _)) = &frame.place else { return false };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["libc.", "libc-", "libpthread", "ld-"].iter().any(|start| name.starts_with(start))
}

/// Innermost named function in the common part of the stacks, which list it first.
fn innermost_of_all(stacks: &[Vec<Option<String>>]) -> Option<String> {
    let (first, others) = stacks.split_first()?;
    let is_common = |depth: &usize| {
        let at = |stack: &Vec<Option<String>>| stack.iter().rev().nth(*depth).cloned();
        others.iter().all(|other| at(other) == at(first))
    };
    let common = (0..first.len()).take_while(is_common);
    let names = common.filter_map(|depth| first[first.len() - 1 - depth].clone());
    names.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stacks: &[&[&str]]) -> Option<String> {
        let name = |name: &&str| Some((*name).to_owned()).filter(|name| name != "?");
        let stacks: Vec<Vec<_>> =
            stacks.iter().map(|stack| stack.iter().map(name).collect()).collect();
        innermost_of_all(&stacks)
    }

    #[test]
    fn the_function_with_the_loop_is_in_all_stacks() {
        let stacks: &[&[&str]] =
            &[&["next", "parse", "main"], &["parse", "main"], &["memcpy", "copy", "parse", "main"]];
        assert_eq!(of(stacks).as_deref(), Some("parse"));
        assert_eq!(of(&[&["f", "main"], &["f", "main"]]).as_deref(), Some("f"));
        assert_eq!(of(&[&["?", "f", "?"], &["?", "f", "?"]]).as_deref(), Some("f"));
        assert_eq!((of(&[&["f"], &["g"]]), of(&[&[], &["g"]]), of(&[])), (None, None, None));
    }

    #[test]
    fn the_c_library_is_not_where_a_program_hangs() {
        let of =
            |path: &str| is_c_library(&CodeAddress { address: 0, place: Some((path.into(), 0)) });
        assert!(of("/lib/x86_64-linux-gnu/libc.so.6") && of("/usr/lib/libc-2.28.so"));
        assert!(!of("/opt/libcurl.so") && !of("/opt/parser"));
    }

    #[test]
    fn without_names_a_hang_is_a_hang() {
        assert_eq!(line(&[StackTrace::default()], None), "[Non-crash bug] hang");
    }
}
