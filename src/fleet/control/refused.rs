//! Errors of clients, for the fuzzer's log. They are rate-limited, because a client may send
//! nothing else.

use std::time::{Duration, Instant};

/// Minimum interval between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// Reports the first refusal immediately, and later ones with the number since the last line.
#[derive(Debug, Default)]
pub(super) struct Refused {
    last: Option<Instant>,
    unsaid: u64,
}

impl Refused {
    /// Line to log, if one is due.
    pub(super) fn note(&mut self, cause: &str, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            self.unsaid += 1;
            return None;
        }
        self.last = Some(now);
        let more = match std::mem::take(&mut self.unsaid) {
            0 => String::new(),
            unsaid => format!(" ({unsaid} more were refused before)"),
        };
        Some(format!("a client of the control socket was refused: {cause}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_nothing_else_is_reported_once_a_minute() {
        let (mut refused, start) = (Refused::default(), Instant::now());
        let mut said = Vec::new();
        for second in 0..150 {
            said.extend(refused.note("not JSON", start + Duration::from_secs(second)));
        }
        let line = "a client of the control socket was refused: not JSON";
        let more = format!("{line} (59 more were refused before)");
        assert_eq!(said, [line, &more, &more]);
    }
}
