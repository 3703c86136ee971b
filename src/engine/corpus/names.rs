//! AFL's file names: this is the only place that writes and reads them.
//!
//! Pure text, no I/O. Names are comma-separated fields, at most [`NAME_MAX`] bytes. Free text in them (a seed's old
//! name) is shortened to fit; numbers and marks never are. The marks come last, `,+cov` (a new edge) before `,+dsf` (a
//! waypoint).

use std::fmt::Write as _;

use super::{Origin, SeedId, Step};

/// Longest file name of Linux file systems, bytes.
pub const NAME_MAX: usize = 255;

/// Content of a find's name besides its number.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    pub origin: &'a Origin,
    /// A foreign mutator's description, instead of `op:…`.
    pub description: Option<String>,
    pub run_time_ms: u64,
    pub execs: u64,
    /// True if it exceeds the timeout.
    pub slow: bool,
    /// True if it crashes in a sanitizer build but not in the target.
    pub sanitizer: bool,
    pub extension: Option<&'a str>,
}

/// Name of an input found by mutation.
#[must_use]
pub fn queue_name(id: SeedId, found: &Found<'_>, new_edge: bool, waypoint: bool) -> String {
    let slow = if found.slow { ",+tout" } else { "" };
    let head = format!("id:{:06},{}{slow}", id.0, describe(found));
    finish(head, marks(new_edge, waypoint), found.extension)
}

/// Name of a crashing input; `signal` is 0 if an exit code marks the crash.
#[must_use]
pub fn crash_name(number: u64, signal: i32, found: &Found<'_>) -> String {
    let sanitizer = if found.sanitizer { ",+san" } else { "" };
    let head = format!("id:{number:06},sig:{signal:02},{}{sanitizer}", describe(found));
    finish(head, "", found.extension)
}

/// Name of an input that ran too long.
#[must_use]
pub fn hang_name(number: u64, found: &Found<'_>) -> String {
    finish(format!("id:{number:06},{}", describe(found)), "", found.extension)
}

/// Name of an input that ended the target's fork server; numbered with the hangs.
#[must_use]
pub fn lost_name(number: u64, found: &Found<'_>) -> String {
    finish(format!("id:{number:06},lost,{}", describe(found)), "", found.extension)
}

/// Name of one of the inputs that ran before a crash; the first is 0.
#[must_use]
pub fn record_name(crash: u64, number: usize) -> String {
    record_start(crash) + &record_end(number)
}

/// Folder for the inputs before crashes that did not reproduce alone.
pub const BEFORE_CRASHES: &str = "before_crashes";

/// Common prefix of the names of all inputs before a crash.
#[must_use]
pub fn record_start(crash: u64) -> String {
    format!("RECORD:{crash:06}")
}

/// Suffix of the name of one input before a crash.
#[must_use]
pub fn record_end(number: usize) -> String {
    format!(",cnt:{number:06}")
}

/// Peer name for inputs from the control socket.
const INJECTED: &str = "inject";
/// Longest peer name, bytes.
const PEER_MAX: usize = 100;

/// Longest description by a foreign mutator, bytes: the space left by the longest numbers and marks, as in AFL++.
pub const DESCRIPTION_MAX: usize = 204;

/// Name of a starting seed. A name that already has this number is kept (the queue is being resumed); of another
/// instance's name only the `orig:` part is kept.
#[must_use]
pub fn seed_name(id: SeedId, original: &str, execs: u64, extension: Option<&str>) -> String {
    if original.len() <= NAME_MAX && parse(original).is_some_and(|old| old.id == id.0) {
        return original.to_owned();
    }
    let old = original.rfind(",orig:").map_or(original, |at| &original[at + ",orig:".len()..]);
    let old = clean(old);
    // Avoids a doubled extension, now and at the next import of the same queue.
    let stem = match extension {
        Some(ext) => old.strip_suffix(ext).and_then(|s| s.strip_suffix('.')).unwrap_or(&old),
        None => &old,
    };
    let head = format!("id:{:06},time:0,execs:{execs},orig:{stem}", id.0);
    finish(head, "", extension)
}

/// Parsed file name. A missing field is None; older AFL versions have fewer fields.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ParsedName {
    pub id: u32,
    pub signal: Option<i32>,
    /// Milliseconds of campaign time.
    pub time: Option<u64>,
    pub execs: Option<u64>,
    /// Parent, or the number at the peer if there is a `peer`.
    pub src: Option<u32>,
    /// Second parent of a splice.
    pub other: Option<u32>,
    pub peer: Option<String>,
    pub op: Option<String>,
    pub pos: Option<u32>,
    /// Value of a deterministic step and whether it was written big-endian.
    pub value: Option<(i32, bool)>,
    pub rep: Option<u32>,
    /// Name of the starting seed, extension included.
    pub orig: Option<String>,
    pub new_edge: bool,
    pub waypoint: bool,
}

/// Parses a file name. None if it does not begin with `id:` and at least six digits. Skips unknown fields (the
/// description of a custom mutator).
#[must_use]
pub fn parse(name: &str) -> Option<ParsedName> {
    let digits = name.strip_prefix("id:")?;
    let (number, mut rest) = split_number(digits);
    if number.len() < 6 || !matches!(rest.bytes().next(), None | Some(b',' | b'.')) {
        return None;
    }
    let mut parsed = ParsedName { id: number.parse().ok()?, ..ParsedName::default() };
    while let Some((_, fields)) = rest.split_once(',') {
        if let Some(orig) = fields.strip_prefix("orig:") {
            // The seed's own name may contain anything, even commas: it is always the last field.
            parsed.orig = Some(orig.to_owned());
            break;
        }
        let end = fields.find(',').unwrap_or(fields.len());
        parsed.field(&fields[..end]);
        rest = &fields[end..];
    }
    Some(parsed)
}

impl ParsedName {
    /// Parses one field. The last one may carry an extension after its number.
    fn field(&mut self, field: &str) {
        if let Some(mark) = field.strip_prefix('+') {
            match mark.split('.').next() {
                Some("cov") => self.new_edge = true,
                Some("dsf") => self.waypoint = true,
                _ => {}
            }
            return;
        }
        let Some((key, value)) = field.split_once(':') else { return };
        match key {
            "sig" => self.signal = self.signal.or(number(value)),
            "time" => self.time = self.time.or(number(value)),
            "execs" => self.execs = self.execs.or(number(value)),
            // A foreign mutator's description may repeat the key.
            "src" if self.src.is_none() => {
                self.src = number(value);
                self.other = value.split_once('+').and_then(|(_, other)| number(other));
            }
            "sync" => self.peer = Some(value.to_owned()),
            "op" => self.op = Some(value.to_owned()),
            "pos" => self.pos = number(value),
            "val" => self.value = signed(value),
            "rep" => self.rep = number(value),
            _ => {}
        }
    }
}

fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    split_number(text).0.parse().ok()
}

/// `[be:]+4` or `[be:]-4`.
fn signed(text: &str) -> Option<(i32, bool)> {
    let (text, big_endian) = match text.strip_prefix("be:") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let sign_len = usize::from(text.starts_with(['+', '-']));
    let end = sign_len + split_number(&text[sign_len..]).0.len();
    Some((text[..end].parse().ok()?, big_endian))
}

/// The `src:…,op:…` part.
fn describe(found: &Found<'_>) -> String {
    let Found { origin, run_time_ms, execs, .. } = found;
    let foreign = match origin.step {
        Step::Synced { peer, number } => Some((peer, number)),
        Step::Injected { number } => Some((INJECTED, number)),
        Step::At { .. } | Step::Stacked { .. } | Step::Custom { .. } => None,
    };
    if let Some((peer, number)) = foreign {
        return format!("sync:{},src:{number:06}", shorten(&clean(peer), PEER_MAX));
    }
    let mut text = format!("src:{:06}", origin.parent.0);
    if let Some(other) = origin.other {
        let _ = write!(text, "+{:06}", other.0);
    }
    let _ = write!(text, ",time:{run_time_ms},execs:{execs}");
    if let Some(description) = &found.description {
        text.push(',');
        text.push_str(&harmless(description));
        return text;
    }
    match origin.step {
        Step::At { op, pos, value, big_endian } => {
            let _ = write!(text, ",op:{op},pos:{pos}");
            if let Some(value) = value {
                let _ = write!(text, ",val:{}{value:+}", if big_endian { "be:" } else { "" });
            }
        }
        Step::Stacked { op, count } => {
            let _ = write!(text, ",op:{op},rep:{count}");
        }
        Step::Custom { op, .. } => {
            let _ = write!(text, ",op:{}", clean(op));
        }
        Step::Synced { .. } | Step::Injected { .. } => {}
    }
    text
}

/// Alters descriptions so that they do not look like marks or like the name of a seed.
fn harmless(description: &str) -> String {
    let text = clean(shorten(description, DESCRIPTION_MAX));
    let fields = text.split(',').map(|field| match field.strip_prefix('+') {
        Some(rest) => format!("_{rest}"),
        None => field.replace("orig:", "orig_"),
    });
    fields.collect::<Vec<_>>().join(",")
}

fn marks(new_edge: bool, waypoint: bool) -> &'static str {
    match (new_edge, waypoint) {
        (false, false) => "",
        (true, false) => ",+cov",
        (false, true) => ",+dsf",
        (true, true) => ",+cov,+dsf",
    }
}

/// Appends marks and extension; shortens `head` if the name would be too long.
fn finish(mut head: String, marks: &str, extension: Option<&str>) -> String {
    let tail = match extension {
        Some(ext) => format!("{marks}.{ext}"),
        None => marks.to_owned(),
    };
    let keep = shorten(&head, NAME_MAX.saturating_sub(tail.len())).len();
    head.truncate(keep);
    head + &tail
}

/// Prefix of at most `max` bytes of `text`, whole characters only.
fn shorten(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Replaces characters that break shell scripts and tables: blanks, slashes, controls.
fn clean(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_whitespace() || c.is_control() || c == '/' { '_' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn havoc(parent: u32, other: Option<u32>, count: u32) -> Origin {
        Origin {
            parent: SeedId(parent),
            other: other.map(SeedId),
            step: Step::Stacked { op: "havoc", count },
            by: 0,
        }
    }

    fn found<'a>(
        origin: &'a Origin,
        time: u64,
        execs: u64,
        extension: Option<&'a str>,
    ) -> Found<'a> {
        Found {
            origin,
            description: None,
            run_time_ms: time,
            execs,
            slow: false,
            sanitizer: false,
            extension,
        }
    }

    #[test]
    fn names_are_those_of_afl() {
        let flip = Origin {
            parent: SeedId(12),
            other: None,
            step: Step::At { op: "flip1", pos: 7, value: None, big_endian: false },
            by: 0,
        };
        assert_eq!(
            queue_name(SeedId(14), &found(&flip, 1200, 4321, None), true, true),
            "id:000014,src:000012,time:1200,execs:4321,op:flip1,pos:7,+cov,+dsf"
        );
        let arith = Origin {
            step: Step::At { op: "arith16", pos: 3, value: Some(-4), big_endian: true },
            ..flip
        };
        assert_eq!(
            hang_name(2, &found(&arith, 1, 2, Some("txt"))),
            "id:000002,src:000012,time:1,execs:2,op:arith16,pos:3,val:be:-4.txt"
        );
        assert_eq!(
            crash_name(0, 6, &found(&havoc(1, Some(6), 8), 9, 10, None)),
            "id:000000,sig:06,src:000001+000006,time:9,execs:10,op:havoc,rep:8"
        );
        assert_eq!(
            queue_name(
                SeedId(3),
                &found(&Origin::synced("main", 17), 9, 9, Some("png")),
                true,
                false
            ),
            "id:000003,sync:main,src:000017,+cov.png"
        );
    }

    #[test]
    fn foreign_words_are_made_safe() {
        let origin =
            Origin { step: Step::Custom { op: "gram mar", mutator: 1 }, ..Origin::default() };
        let plain = found(&origin, 1, 20, None);
        let name = queue_name(SeedId(1), &plain, false, false);
        assert_eq!(name, "id:000001,src:000000,time:1,execs:20,op:gram_mar");
        let description = Some("desc,a/b,+dsf,orig:x,src:9\n".to_owned());
        let name = queue_name(SeedId(1), &Found { description, ..plain }, true, false);
        assert_eq!(name, "id:000001,src:000000,time:1,execs:20,desc,a_b,_dsf,orig_x,src:9_,+cov");
    }

    #[test]
    fn a_seed_keeps_its_name_on_resume_and_its_origin_on_import() {
        let old = "id:000003,time:0,execs:9,orig:a,b.txt";
        assert_eq!(seed_name(SeedId(3), old, 99, None), old);
        assert_eq!(seed_name(SeedId(4), old, 99, None), "id:000004,time:0,execs:99,orig:a,b.txt");
        assert_eq!(
            seed_name(SeedId(0), "my seed.txt", 0, Some("txt")),
            "id:000000,time:0,execs:0,orig:my_seed.txt"
        );
        assert_eq!(
            seed_name(SeedId(1), "id:000007,src:000001,op:havoc,rep:2", 0, None),
            "id:000001,time:0,execs:0,orig:id:000007,src:000001,op:havoc,rep:2"
        );
    }

    #[test]
    fn names_of_older_versions_are_read() {
        let classic = parse("id:000003,src:000000+000002,op:splice,rep:128,+cov").expect("classic");
        assert_eq!((classic.src, classic.other, classic.rep), (Some(0), Some(2), Some(128)));
        assert!(classic.new_edge && classic.time.is_none());
        let synced = parse("id:000009,sync:a-b,src:000076,+dsf").expect("synced");
        assert_eq!(synced.peer.as_deref(), Some("a-b"));
        assert!(synced.waypoint && !synced.new_edge);
        assert_eq!(parse("id:00003,src:000000"), None);
        assert_eq!(parse("README.txt"), None);
        assert_eq!(parse("id:99999999999999,orig:x"), None);
        assert_eq!(parse("id:1000000").map(|p| p.id), Some(1_000_000));
    }

    #[test]
    fn an_injected_input_has_no_parent_here() {
        let origin = Origin::injected(3);
        let name = queue_name(SeedId(9), &found(&origin, 1, 1, None), true, false);
        assert_eq!(name, "id:000009,sync:inject,src:000003,+cov");
        assert_eq!((origin.parent(), origin.step.op()), (None, "sync"));
    }

    #[test]
    fn a_long_name_is_cut_in_front_of_the_marks() {
        let name = seed_name(SeedId(1), &"ä".repeat(300), 0, Some("xml"));
        assert!(name.len() <= NAME_MAX && name.len() >= NAME_MAX - 1);
        assert!(name.ends_with(".xml"));
        let peer: &str = "p".repeat(300).leak();
        let name = queue_name(SeedId(1), &found(&Origin::synced(peer, 2), 1, 1, None), true, true);
        assert!(name.contains(",src:000002,+cov,+dsf"), "{name}");
    }

    fn step() -> impl Strategy<Value = Step> {
        let ops = prop_oneof![Just("havoc"), Just("splice"), Just("flip1"), Just("ext_UO")];
        let value = proptest::option::of(any::<i32>());
        (ops, any::<bool>(), any::<u32>(), value, any::<bool>()).prop_map(
            |(op, stacked, n, value, big)| {
                if stacked {
                    Step::Stacked { op, count: n }
                } else {
                    let big_endian = big && value.is_some();
                    Step::At { op, pos: n, value, big_endian }
                }
            },
        )
    }

    fn extension() -> impl Strategy<Value = Option<String>> {
        proptest::option::of("[a-z]{1,5}")
    }

    proptest! {
        #[test]
        fn queue_names_round_trip(
            id in 0..u32::MAX, parent in any::<u32>(), other in proptest::option::of(any::<u32>()),
            step in step(), time in any::<u64>(), execs in any::<u64>(),
            cov in any::<bool>(), dsf in any::<bool>(), ext in extension(),
        ) {
            let (parent_id, other_id) = (SeedId(parent), other.map(SeedId));
            let origin = Origin { parent: parent_id, other: other_id, step, by: 0 };
            let about = found(&origin, time, execs, ext.as_deref());
            let name = queue_name(SeedId(id), &about, cov, dsf);
            prop_assert!(name.len() <= NAME_MAX);
            let parsed = parse(&name).expect("own name");
            prop_assert_eq!(parsed.id, id);
            prop_assert_eq!((parsed.src, parsed.other), (Some(parent), other));
            prop_assert_eq!((parsed.time, parsed.execs), (Some(time), Some(execs)));
            prop_assert_eq!((parsed.new_edge, parsed.waypoint), (cov, dsf));
            match step {
                Step::At { op, pos, value, big_endian } => {
                    prop_assert_eq!(parsed.op.as_deref(), Some(op));
                    prop_assert_eq!(parsed.pos, Some(pos));
                    prop_assert_eq!(parsed.value, value.map(|v| (v, big_endian)));
                }
                Step::Stacked { op, count } => {
                    prop_assert_eq!(parsed.op.as_deref(), Some(op));
                    prop_assert_eq!(parsed.rep, Some(count));
                }
                Step::Custom { op, .. } => prop_assert_eq!(parsed.op.as_deref(), Some(op)),
                Step::Synced { .. } | Step::Injected { .. } => unreachable!("not made here"),
            }
        }

        #[test]
        fn foreign_words_change_nothing_that_is_read(text in ".{0,300}") {
            let origin = Origin { step: Step::Custom { op: "m", mutator: 0 }, ..havoc(7, None, 0) };
            let description = Some(text);
            let about = Found { description, ..found(&origin, 3, 4, Some("xml")) };
            let name = queue_name(SeedId(1), &about, true, false);
            prop_assert!(name.len() <= NAME_MAX && name.ends_with(",+cov.xml"));
            prop_assert!(!name.contains(['/', '\0', '\n']));
            let parsed = parse(&name).expect("own name");
            prop_assert_eq!((parsed.src, parsed.time, parsed.execs), (Some(7), Some(3), Some(4)));
            prop_assert!(parsed.new_edge && !parsed.waypoint && parsed.orig.is_none());
        }

        #[test]
        fn crash_names_round_trip(number in 0..u32::MAX, signal in 0..65, ext in extension()) {
            let origin = havoc(1, None, 2);
            let name = crash_name(number.into(), signal, &found(&origin, 3, 4, ext.as_deref()));
            let parsed = parse(&name).expect("own name");
            prop_assert_eq!((parsed.id, parsed.signal), (number, Some(signal)));
            prop_assert_eq!(parsed.rep, Some(2));
        }

        #[test]
        fn seed_names_are_stable(id in 0..2_000_000u32, old in ".{0,300}", ext in extension()) {
            let name = seed_name(SeedId(id), &old, 5, ext.as_deref());
            prop_assert!(name.len() <= NAME_MAX);
            prop_assert!(!name.contains(['/', '\0', '\n']) || name == old);
            prop_assert_eq!(&seed_name(SeedId(id), &name, 77, ext.as_deref()), &name);
        }

        #[test]
        fn any_text_is_read_without_panic(text in "(id:[0-9]{6})?.{0,60}") {
            let _ = parse(&text);
        }
    }
}
