//! Matches a list of names against a stack: `?` stands for at most one frame, `???` for any number, and the rest of the
//! stack after the list is ignored.

use super::strings::StringPattern;

#[derive(Clone, Debug)]
pub(super) enum FramePattern {
    Named(StringPattern),
    /// `?`
    AtMostOne,
    /// `???`
    Any,
}

impl FramePattern {
    pub(super) fn new(text: StringPattern) -> Self {
        match text.plain() {
            Some("?") => Self::AtMostOne,
            Some("???") => Self::Any,
            _ => Self::Named(text),
        }
    }
}

/// Walks the list once, with the set of stack depths that the part so far can match.
pub(super) fn matches<'a>(
    list: impl IntoIterator<Item = &'a FramePattern>,
    stack: &[String],
) -> bool {
    let mut depths = vec![false; stack.len() + 1];
    depths[0] = true;
    for wanted in list {
        match wanted {
            FramePattern::Named(name) => {
                for depth in (0..stack.len()).rev() {
                    depths[depth + 1] = depths[depth] && name.matches(&stack[depth]);
                }
                depths[0] = false;
            }
            FramePattern::AtMostOne => {
                for depth in (0..stack.len()).rev() {
                    depths[depth + 1] |= depths[depth];
                }
            }
            FramePattern::Any => {
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
