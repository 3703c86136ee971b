//! Which crashes are the same: by signature, and by the innermost functions.

use std::hash::{Hash, Hasher};

use super::debugger::signal_name;
use super::hang;
use super::report::{Bug, hex};
use super::seen::Seen;
use crate::crash::{Crash, Program, Signature, StableHasher, Wanted};

/// Functions that count, behind those of libraries that only say how the program ended.
const FRAMES: usize = 4;
/// Beginnings of the names of such functions,
const INTERNAL: &[&str] = &[
    "__",
    "_IO_",
    "_int_",
    "operator new",
    "operator delete",
    "std::",
    "core::",
    "alloc::",
    "rust_begin_unwind",
    "rust_panic",
    "??",
];
/// and their names: a program may have a `free_all` or a `stream` of its own.
const C_LIBRARY: &str = " abort raise gsignal pthread_kill free cfree malloc calloc realloc reallocarray \
    aligned_alloc posix_memalign memalign valloc malloc_printerr malloc_consolidate sysmalloc unlink_chunk \
    memcpy memmove memset memcmp memchr memrchr memmem mempcpy memccpy bcopy bzero bcmp strlen strnlen \
    strcpy strncpy strlcpy stpcpy stpncpy strcat strncat strlcat strcmp strncmp strcasecmp strncasecmp \
    strchr strrchr strchrnul strstr strcasestr strspn strcspn strpbrk strsep strtok strtok_r strdup strndup \
    strtol strtoul strtoll strtoull strtod strtof strtold strerror strcoll strxfrm atoi atol atoll atof \
    wcslen wcscpy wcsncpy wcscat wcscmp wmemcpy wmemset printf fprintf sprintf snprintf asprintf vprintf \
    vfprintf vsprintf vsnprintf vasprintf puts fputs fwrite fread fgets gets scanf fscanf sscanf vsscanf \
    qsort bsearch read write ";
/// Longest name of a folder, without the hash.
const NAME: usize = 48;

/// The bugs known so far, as far as they are needed to tell whether a crash is one of them.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: Vec<(String, Option<Signature>, u64)>,
}

impl Groups {
    /// Those of an earlier report.
    #[must_use]
    pub(super) fn of(bugs: &[Bug]) -> Self {
        let known = bugs.iter().map(|bug| {
            let signature = bug.signature.as_ref();
            let signature = signature.and_then(|value| Signature::parse(&value.to_string()).ok());
            let hash = u64::from_str_radix(&bug.stack_hash, 16).unwrap_or_default();
            (bug.id.clone(), signature, hash)
        });
        Self { known: known.collect() }
    }

    /// The bug that a crash belongs to.
    #[must_use]
    pub(super) fn find(&self, seen: &Seen, program: &Program) -> Option<&str> {
        let hash = stack_hash(seen);
        let crash = Crash { info: &seen.info, output: &seen.output, program, testcase: None };
        let same = self.known.iter().find(|(_, _, known)| *known == hash);
        let matching = || {
            self.known.iter().find(|(_, signature, _)| {
                signature.as_ref().is_some_and(|signature| signature.matches(&crash))
            })
        };
        same.or_else(matching).map(|(id, ..)| id.as_str())
    }

    /// The bug of a crash that belongs to none.
    pub(super) fn describe(&self, seen: &Seen) -> Bug {
        let (info, hash) = (&seen.info, stack_hash(seen));
        let wanted = Wanted { force_address: true, ..Wanted::default() };
        let signature = Signature::create(info, wanted);
        let json = signature.as_ref().map(Signature::to_json);
        let class = class(seen);
        let id = self.name(&class, seen, hash);
        Bug {
            id,
            title: title(seen, &class),
            class,
            kind: info.kind.name().to_owned(),
            signal: match seen.reported_signal() {
                0 => String::new(),
                signal => signal_name(signal),
            },
            place: place(seen),
            stack_hash: hex(hash),
            signature: json.and_then(|text| serde_json::from_str(&text).ok()),
            frames: info.backtrace.clone(),
            address: info.address.map(|address| format!("{address:#x}")),
            ..Bug::default()
        }
    }

    /// From now on crashes may belong to it.
    pub(super) fn add(&mut self, bug: &Bug) {
        self.known.extend(Self::of(std::slice::from_ref(bug)).known);
    }

    fn name(&self, class: &str, seen: &Seen, hash: u64) -> String {
        let mut name = String::new();
        let function = seen.info.backtrace.iter().find(|name| !is_library(name));
        let words = [class, function.map_or("", String::as_str)].join(" ");
        for letter in words.chars() {
            match letter {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(letter),
                _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
                _ => {}
            }
        }
        name.truncate(NAME);
        let name = format!("{}-{:08x}", name.trim_matches('-'), hash >> 32);
        let taken = |name: &String| self.known.iter().any(|(known, ..)| known == name);
        let others = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        names.find(|name| !taken(name)).unwrap_or(name)
    }
}

fn is_library(name: &str) -> bool {
    // Compilers put `.constprop.0` and the like behind a name.
    let word = name.split('.').next().unwrap_or_default();
    INTERNAL.iter().any(|start| name.starts_with(start))
        || name.contains("+0x")
        || C_LIBRARY.contains(&format!(" {word} "))
}

/// Of the functions that make the crash what it is; of its words if there are none.
fn stack_hash(seen: &Seen) -> u64 {
    let frames = &seen.info.backtrace;
    let named = |name: &&String| name.as_str() != "??" && !name.contains("+0x");
    let skipped = frames.iter().take_while(|name| is_library(name)).count();
    if frames.iter().skip(skipped).any(|name| named(&name)) {
        return seen.info.stack_hash(skipped + FRAMES);
    }
    let mut hasher = StableHasher::default();
    (seen.signal(), seen.info.short_text(), seen.info.message.as_ref().map(|m| &m.lines))
        .hash(&mut hasher);
    frames.hash(&mut hasher);
    if frames.iter().all(|name| name == "??") {
        // Without names the addresses are all there is.
        seen.key().hash(&mut hasher);
    }
    hasher.finish()
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
    let short = without_address(&seen.info.short_text());
    match short.as_str() {
        "" | "No crash detected" => class.to_owned(),
        frame if frame.starts_with("[@ ") => format!("{class} {frame}"),
        _ => short,
    }
}

/// ASan says of some signals where in memory they came from, which differs with each run.
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
        let name = number(line).and_then(|number| seen.info.backtrace.get(number));
        name.is_some_and(|name| !is_library(name))
    });
    frames
        .filter_map(source)
        .find(|place| !["/usr/", "/build/", "/rustc/"].iter().any(|start| place.starts_with(start)))
}

/// The last word of a frame, if it is a place in a source: `FILE:LINE`, or `FILE:LINE:COLUMN`.
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
    fn a_function_is_the_library_s_by_its_whole_name() {
        for name in ["free", "__asan_memcpy", "unlink_chunk.constprop.0", "operator new[]", "a+0x1"]
        {
            assert!(is_library(name), "{name}");
        }
        for name in
            ["free_again", "stream", "mem_pool", "printf_all", "operator==", "rust_eval", "k"]
        {
            assert!(!is_library(name), "{name}");
        }
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
