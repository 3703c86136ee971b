//! Formatting of numbers and times.

use ffuzz_event::Finds;

/// Formats a count as `1234`, `12.3k` or `4.56M`: at most five characters up to 999G.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn count(n: u64) -> String {
    if n < 10_000 {
        return n.to_string();
    }
    let mut value = n as f64;
    let mut unit = "";
    for next in ["k", "M", "G", "T", "P", "E"] {
        // Not 1000: 999.96 would be printed as 1000.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    match value {
        v if v < 9.995 => format!("{v:.2}{unit}"),
        v if v < 99.95 => format!("{v:.1}{unit}"),
        v => format!("{v:.0}{unit}"),
    }
}

/// Formats a duration as AFL does: `0 days, 0 hrs, 3 min, 2 sec`.
pub(super) fn long_time(seconds: u64) -> String {
    let (minutes, sec) = (seconds / 60, seconds % 60);
    let (hours, min) = (minutes / 60, minutes % 60);
    format!("{} days, {} hrs, {min} min, {sec} sec", hours / 24, hours % 24)
}

/// Formats a duration as `2s`, `3m02s`, `5h06m` or `7d08h`.
pub(super) fn short_time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Formats a duration as `0:03:02`.
pub(super) fn clock(seconds: u64) -> String {
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `part` of `whole` in percent; 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Formats an execution speed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded for people")]
pub(super) fn rate(per_second: f64) -> String {
    if per_second < 100.0 {
        format!("{per_second:.2}/sec")
    } else {
        format!("{}/sec", count(per_second.round() as u64))
    }
}

/// Returns true if `c` is safe to print: no control character, no bidirectional control and no zero-width character.
fn is_shown(c: char) -> bool {
    let is_format = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !c.is_control() && !is_format
}

/// Removes characters that [`is_shown`] rejects and cuts the text to `width` characters; `~` marks a cut.
pub(super) fn fit(text: &str, width: usize) -> String {
    let mut out: String = text.chars().filter(|c| is_shown(*c)).take(width + 1).collect();
    if out.chars().count() > width {
        out = out.chars().take(width.saturating_sub(1)).collect();
        out.push('~');
    }
    out
}

/// As [`fit`], but cuts the start: the end of a path is the file name.
pub(super) fn fit_end(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().filter(|c| is_shown(*c)).collect();
    match letters.len().checked_sub(width) {
        Some(excess @ 1..) => {
            let end = letters.into_iter().skip(excess + 1);
            std::iter::once('~').chain(end).take(width).collect()
        }
        _ => letters.into_iter().collect(),
    }
}

/// Formats the number of crashes, with the number of bugs if known: `12 crashes (3 bugs)`.
pub(super) fn crashes(finds: &Finds) -> String {
    let bugs = match finds.bugs {
        None => String::new(),
        Some(1) => " (1 bug)".to_owned(),
        Some(bugs) => format!(" ({bugs} bugs)"),
    };
    let dependent = match finds.dependent_crashes {
        0 => String::new(),
        count => format!(", {count} did not repeat alone"),
    };
    let sanitizer = match finds.sanitizer_crashes {
        0 => String::new(),
        count => format!(", {count} only in a sanitizer build"),
    };
    format!("{} crashes{bugs}{dependent}{sanitizer}", finds.saved_crashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_short() {
        let table = [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0k"),
            (123_456, "123k"),
            (999_600, "1.00M"),
            (4_560_000, "4.56M"),
            (u64::MAX, "18.4E"),
        ];
        for (n, text) in table {
            assert_eq!(count(n), text);
        }
    }

    #[test]
    fn times_have_their_units() {
        assert_eq!(long_time(90_061), "1 days, 1 hrs, 1 min, 1 sec");
        assert_eq!(short_time(59), "59s");
        assert_eq!(short_time(182), "3m02s");
        assert_eq!(short_time(18_360), "5h06m");
        assert_eq!(clock(3_723), "1:02:03");
        assert_eq!(fit("a\u{1b}[31mbcdef", 6), "a[31m~");
        assert_eq!(fit_end("folder/demo.c:23", 10), "~demo.c:23");
        assert_eq!(fit_end("demo.c:23", 9), "demo.c:23");
    }
}
