//! Reports of the heap of `--guard-heap` (`runtime/heap/heap.c`).

const START: &str = "==ffuzz== ERROR: ";

/// Kinds of misuse; the sanitizers' classes.
const KINDS: [&str; 5] = [
    "heap-buffer-overflow",
    "heap-buffer-underflow",
    "heap-use-after-free",
    "double-free",
    "bad-free",
];

pub(super) struct HeapReport<'a> {
    pub(super) class: &'static str,
    /// Kind and description.
    pub(super) line: &'a str,
}

/// The last report; a program may handle the signal of an earlier one.
pub(super) fn report(stderr: &str) -> Option<HeapReport<'_>> {
    let line = stderr.lines().filter_map(|line| line.strip_prefix(START)).next_back()?;
    let kind = line.split(':').next()?;
    let class = KINDS.into_iter().find(|known| *known == kind)?;
    Some(HeapReport { class, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_heap_has_a_kind_that_is_known() {
        let said = "x\n==ffuzz== ERROR: double-free: a block was freed twice\n";
        assert_eq!(report(said).unwrap().class, "double-free");
        assert!(report("==ffuzz== ERROR: other: x\n").is_none() && report("").is_none());
    }
}
