//! Groups equal crashes and names their bug. Both depend only on the crash's identity: a bug has one name in every
//! campaign, on every machine and with every compiler.

use std::path::Path;

use super::debugger::signal_name;
use super::frames::CodeAddress;
use super::hang;
use super::report::{TriagedBug, hex};
use super::seen::Seen;
use crate::crash::{Identity, SignatureOptions, beyond, is_machinery, is_of_system};

/// Version of the identity; changes when a crash would get another one.
pub const IDENTITY: u32 = 4;
/// Bits of an address that are equal in each process.
const IN_PAGE: u64 = 0xfff;
/// Longest folder name, without the hash.
const NAME: usize = 48;

/// Known bugs: name and hash of each.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: Vec<(String, u64)>,
}

impl Groups {
    /// Bugs of an earlier report.
    #[must_use]
    pub(super) fn of(bugs: &[TriagedBug]) -> Self {
        let hash = |bug: &TriagedBug| u64::from_str_radix(&bug.stack_hash, 16).unwrap_or_default();
        Self { known: bugs.iter().map(|bug| (bug.id.clone(), hash(bug))).collect() }
    }

    /// Bug of a crash, if known.
    #[must_use]
    pub(super) fn find(&self, seen: &Seen) -> Option<&str> {
        let hash = identity(seen).hash();
        self.known.iter().find(|(_, known)| *known == hash).map(|(id, _)| id.as_str())
    }

    /// New bug for a crash.
    pub(super) fn describe(&self, seen: &Seen) -> TriagedBug {
        let (info, identity) = (&seen.info, identity(seen));
        let signature = beyond::signature(info, SignatureOptions::default());
        let json = signature.as_ref().map(crate::crash::Signature::to_json);
        let mut stacks = stacks(seen);
        let class = class(seen);
        TriagedBug {
            id: self.name(&identity),
            title: title(seen, &class),
            class,
            kind: info.kind.name().to_owned(),
            signal: match seen.reported_signal() {
                0 => String::new(),
                signal => signal_name(signal),
            },
            place: place(seen),
            stack_hash: hex(identity.hash()),
            signature: json.and_then(|text| serde_json::from_str(&text).ok()),
            frames: stacks.remove(0),
            other_stacks: stacks,
            address: info.address.map(|address| format!("{address:#x}")),
            ..TriagedBug::default()
        }
    }

    /// Adds a bug, to which crashes can belong from now on.
    pub(super) fn add(&mut self, bug: &TriagedBug) {
        self.known.extend(Self::of(std::slice::from_ref(bug)).known);
    }

    fn name(&self, identity: &Identity) -> String {
        let mut name = String::new();
        let function = identity.functions().first();
        let words = [identity.cause(), function.map_or("", String::as_str)].join(" ");
        for letter in words.chars() {
            match letter {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(letter),
                _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
                _ => {}
            }
        }
        name.truncate(NAME);
        let name = format!("{}-{:08x}", name.trim_matches('-'), identity.hash() >> 32);
        let taken = |name: &String| self.known.iter().any(|(known, _)| known == name);
        let others = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        names.find(|name| !taken(name)).unwrap_or(name)
    }
}

/// Identity of a crash; unnamed functions are replaced by their places in the program's files.
fn identity(seen: &Seen) -> Identity {
    let ending = if seen.is_hang { hang::CLASS.to_owned() } else { signal_name(seen.signal()) };
    let identity = seen.info.identity(&ending);
    if seen.trace.is_none() || identity.functions().iter().any(|name| !is_machinery(name)) {
        return identity;
    }
    identity.at(own_places(seen))
}

/// Places of the program's own frames in its files.
fn own_places(seen: &Seen) -> impl Iterator<Item = String> {
    let places = seen.trace.iter().flat_map(|trace| &trace.frames);
    let places = places.filter_map(|frame| frame.place.as_ref());
    let own = places.filter(|(path, _)| !is_of_system(&path.to_string_lossy()));
    own.map(|(path, at)| in_file(path, *at))
}

/// `prog+0x1410`
fn in_file(path: &Path, at: u64) -> String {
    format!("{}+{at:#x}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Stacks for display, the crash's own first; a frame without a name is shown by its place.
pub(super) fn stacks(seen: &Seen) -> Vec<Vec<String>> {
    let names = frames(seen);
    seen.info.stacks().into_iter().map(|range| names[range].to_vec()).collect()
}

fn frames(seen: &Seen) -> Vec<String> {
    let mut names = seen.info.backtrace.clone();
    let Some(trace) = &seen.trace else { return names };
    let mut frames = trace.frames.iter();
    for (number, address) in seen.output.crash_data.lines().filter_map(unnamed) {
        // A debugger's run has other addresses except for the offset in a page.
        let is_same = |frame: &&CodeAddress| frame.address & IN_PAGE == address & IN_PAGE;
        let frame = frames.clone().find(is_same);
        if frame.is_some() {
            frames.by_ref().find(is_same);
        }
        if let (Some(name), Some((path, at))) =
            (names.get_mut(number), frame.and_then(|frame| frame.place.as_ref()))
            && name == "??"
        {
            *name = in_file(path, *at);
        }
    }
    names
}

/// Number and address of a frame without a name, `#6  0x000055d0386a in ?? ()`.
fn unnamed(line: &str) -> Option<(usize, u64)> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.strip_prefix('#')?.parse().ok()?;
    let address = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    (words.next() == Some("in") && words.next() == Some("??")).then_some((number, address))
}

fn class(seen: &Seen) -> String {
    match (seen.info.class(), seen.signal()) {
        _ if seen.is_hang => hang::CLASS.to_owned(),
        (class, _) if !class.is_empty() => class.to_owned(),
        (_, 0) => "exit code".to_owned(),
        (_, signal) => signal_name(signal),
    }
}

fn title(seen: &Seen, class: &str) -> String {
    let short = at_own_function(without_address(&seen.info.short_text()), seen);
    match short.as_str() {
        "" | "No crash detected" => class.to_owned(),
        frame if frame.starts_with("[@ ") => format!("{class} {frame}"),
        _ => short,
    }
}

/// Replaces a function of the C library or of a runtime, which says nothing about the bug, by the program's own.
fn at_own_function(text: String, seen: &Seen) -> String {
    let info = &seen.info;
    let own = info.own_function().map(str::to_owned).or_else(|| own_places(seen).next());
    match (info.backtrace.first(), own) {
        (Some(first), Some(own)) => {
            text.replacen(&format!("[@ {first}]"), &format!("[@ {own}]"), 1)
        }
        _ => text,
    }
}

/// Removes the address that ASan reports for some signals, which differs in each run.
fn without_address(text: &str) -> String {
    const WORDS: &str = " on unknown address 0x";
    let Some((head, rest)) = text.split_once(WORDS) else { return text.to_owned() };
    format!("{head}{}", rest.trim_start_matches(|letter: char| letter.is_ascii_hexdigit()))
}

/// `FILE:LINE` of the first frame that is in no library.
fn place(seen: &Seen) -> Option<String> {
    let output = &seen.output;
    let text = if output.crash_data.is_empty() { &output.stderr } else { &output.crash_data };
    let number = |line: &str| {
        let digits = line.strip_prefix('#')?.split_whitespace().next()?;
        digits.parse::<usize>().ok()
    };
    let frames = text.lines().map(str::trim).filter(|line| {
        let number = number(line).filter(|number| Some(*number) >= seen.info.first_own());
        let name = number.and_then(|number| seen.info.backtrace.get(number));
        name.is_some_and(|name| !is_machinery(name))
    });
    frames
        .filter_map(source)
        .find(|place| !["/usr/", "/build/", "/rustc/"].iter().any(|start| place.starts_with(start)))
}

/// Source place at the end of a frame: `FILE:LINE`, or `FILE:LINE:COLUMN`.
fn source(line: &str) -> Option<String> {
    let line = line.split(" (BuildId:").next()?;
    let word = line.rsplit(' ').next()?;
    let mut parts = word.split(':');
    let (file, number) = (parts.next()?, parts.next()?);
    let is_place = !file.is_empty() && number.parse::<u32>().is_ok();
    is_place.then(|| format!("{file}:{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_same_in_each_run() {
        let of = without_address;
        assert_eq!(
            of("AddressSanitizer: ABRT on unknown address 0x03e8 [@ f]"),
            "AddressSanitizer: ABRT [@ f]"
        );
        assert_eq!(of("[@ f]"), "[@ f]");
    }

    #[test]
    fn a_frame_without_a_name_has_an_address() {
        let of = unnamed;
        assert_eq!(of("#6  0x0000000000001234 in ?? () from /t"), Some((6, 0x1234)));
        assert_eq!(of("#6  0x0000000000001234 in main () at a.c:1"), None);
        assert_eq!(of("#6  main ()"), None);
    }

    #[test]
    fn places_are_read_from_both_kinds_of_frames() {
        let of = |line| source(line);
        assert_eq!(of("#1 0x55 in b0 /a/ten.c:5:3").as_deref(), Some("/a/ten.c:5"));
        assert_eq!(of("#1 0x55 in b0 /a/t.c:5:3 (BuildId: 12)").as_deref(), Some("/a/t.c:5"));
        assert_eq!(of("#0  b5 () at ten.c:10").as_deref(), Some("ten.c:10"));
        assert_eq!(of("#2 0x7f (/lib/libc.so.6+0x2)"), None);
        assert_eq!(of("#3  0x00 in main ()"), None);
    }
}
