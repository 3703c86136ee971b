//! A list of names against a stack: `?` stands for at most one frame, `???` for any number, and
//! the rest of the stack after the list is free.

use super::strings::Text;

#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Named(Text),
    /// `?`
    AtMostOne,
    /// `???`
    Any,
}

impl Wanted {
    pub(super) fn new(text: Text) -> Self {
        match text.plain() {
            Some("?") => Self::AtMostOne,
            Some("???") => Self::Any,
            _ => Self::Named(text),
        }
    }
}

/// Walks the list once and keeps all depths of the stack at which it may be.
pub(super) fn matches<'a>(list: impl IntoIterator<Item = &'a Wanted>, stack: &[String]) -> bool {
    let mut depths = vec![false; stack.len() + 1];
    depths[0] = true;
    for wanted in list {
        match wanted {
            Wanted::Named(name) => {
                for depth in (0..stack.len()).rev() {
                    depths[depth + 1] = depths[depth] && name.matches(&stack[depth]);
                }
                depths[0] = false;
            }
            Wanted::AtMostOne => {
                for depth in (0..stack.len()).rev() {
                    depths[depth + 1] |= depths[depth];
                }
            }
            Wanted::Any => {
                for depth in 0..stack.len() {
                    depths[depth + 1] |= depths[depth];
                }
            }
        }
        if !depths.contains(&true) {
            return false;
        }
    }
    true
}
