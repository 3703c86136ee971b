//! Text format of a coverage state: JSON with the keys of Killerbeez's instrumentation `afl`, and additional ones that
//! Killerbeez ignores.
//!
//! | key | value |
//! |---|---|
//! | `format` | `ffuzz-coverage/1`; missing in Killerbeez's files |
//! | `map_size`, `modules`, `domains` | what the maps belong to, and domain values |
//! | `virgin_bits`, `virgin_tmout`, `virgin_crash` | one byte per edge as `::MEM::` and hexadecimal digits |
//! | `unnamed` | part of it came from a file that does not name its program; missing otherwise |
//! | `check` | a hash of the rest, in hexadecimal digits |
//!
//! `virgin_bits` has a bit for each hit-count class that no run has shown. The other two are as AFL
//! simplifies the maps of crashes and hangs: bit 7 is cleared for an edge that such a run has hit, bit 0
//! for one that such a run has left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use miette::Diagnostic;
use serde::{Deserialize, Serialize};

use ffuzz_engine::coverage::mix;
use ffuzz_engine::domain::{self, Domain, Reducer};
use ffuzz_engine::feedback::{Known, Part};

const FORMAT: &str = "ffuzz-coverage/1";
const MEM: &str = "::MEM::";
/// Maximum number of edges of a program, and of keys of its domains.
const MOST: u64 = 1 << 29;
const MOST_NAMES: usize = 4096;

const WHOLE_FILE: &str =
    "give a file of --save-coverage, of ffuzz-merge or of Killerbeez (-j), not cut";

/// Reason for rejecting a text.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum FormError {
    #[error("{0}")]
    #[diagnostic(help("{}", WHOLE_FILE))]
    Json(serde_json::Error),
    #[error("its format is {0}, and this version reads {FORMAT}")]
    #[diagnostic(help("use the version of ffuzz that wrote it"))]
    Version(String),
    #[error("it is a state of Killerbeez without edge maps (instrumentation return_code or ipt)")]
    #[diagnostic(help("dump the state with Killerbeez's instrumentation afl"))]
    NoMaps,
    #[error("{0}")]
    #[diagnostic(help("{}", WHOLE_FILE))]
    Impossible(&'static str),
    #[error("it was changed or is damaged")]
    #[diagnostic(help("{}", WHOLE_FILE))]
    Damaged,
}

#[derive(Serialize, Deserialize)]
struct Module {
    name: String,
    build: String,
    file: String,
    start: usize,
    end: usize,
}

#[derive(Serialize, Deserialize)]
struct Values {
    name: String,
    size: u32,
    reducer: String,
    initial: u32,
    /// Pairs of key within the domain and aggregate.
    values: Vec<(u32, u32)>,
}

#[derive(Serialize)]
struct Head<'a> {
    format: &'a str,
    map_size: usize,
    modules: Vec<Module>,
    domains: Vec<Values>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unnamed: bool,
}

#[derive(Deserialize)]
struct File<'a> {
    format: Option<String>,
    map_size: Option<usize>,
    #[serde(default)]
    modules: Option<serde_json::Value>,
    #[serde(default)]
    domains: Vec<Values>,
    #[serde(default)]
    unnamed: bool,
    #[serde(borrow)]
    virgin_bits: Option<&'a str>,
    #[serde(borrow)]
    virgin_tmout: Option<&'a str>,
    #[serde(borrow)]
    virgin_crash: Option<&'a str>,
    check: Option<String>,
}

/// Formats a state.
#[must_use]
pub fn text(known: &Known) -> Vec<u8> {
    let module = |part: &Part| Module {
        name: part.name.clone(),
        build: part.build.clone(),
        file: part.file.clone(),
        start: part.counters.start,
        end: part.counters.end,
    };
    let values = |domain: &Domain| Values {
        name: domain.name.clone(),
        size: domain.size,
        reducer: domain.reducer.name().into(),
        initial: domain.initial,
        values: known
            .values
            .range(domain.start..domain.end())
            .map(|(key, value)| (key - domain.start, *value))
            .collect(),
    };
    let head = Head {
        format: FORMAT,
        map_size: known.map_size(),
        modules: known.parts.iter().map(module).collect(),
        domains: known.domains.iter().map(values).collect(),
        unnamed: is_marked(known),
    };
    let mut text = serde_json::to_vec(&head).unwrap_or_default();
    text.pop();
    text.reserve(known.map_size() * 6 + 256);
    let [crashes, hangs] = known.simplified();
    for (key, map) in
        [("virgin_bits", &known.edges), ("virgin_tmout", &hangs), ("virgin_crash", &crashes)]
    {
        text.extend_from_slice(format!(",\"{key}\":\"{MEM}").as_bytes());
        for byte in map {
            text.extend_from_slice(&DIGITS[usize::from(*byte)]);
        }
        text.push(b'"');
    }
    let check = check_of(known);
    text.extend_from_slice(format!(",\"check\":\"{check:016x}\"}}\n").as_bytes());
    text
}

/// Parses a file of this format or of Killerbeez.
pub fn parse(text: &[u8]) -> Result<Known, FormError> {
    let file: File<'_> = serde_json::from_slice(text).map_err(FormError::Json)?;
    match &file.format {
        Some(format) if format != FORMAT => return Err(FormError::Version(clean(format))),
        _ => {}
    }
    let own = file.format.is_some() || file.map_size.is_some() || file.check.is_some();
    let (Some(edges), Some(hangs), Some(crashes)) =
        (file.virgin_bits, file.virgin_tmout, file.virgin_crash)
    else {
        return Err(FormError::NoMaps);
    };
    let edges = bytes(edges)?;
    let [hangs, crashes] = [bytes(hangs)?, bytes(crashes)?];
    let size = edges.len();
    if size == 0 || size as u64 > MOST || hangs.len() != size || crashes.len() != size {
        return Err(FormError::Impossible("its maps differ in size, or are empty"));
    }
    let mut known = Known::from_maps([edges, crashes, hangs]);
    known.unnamed = true;
    if own {
        if file.map_size != Some(size) {
            return Err(FormError::Impossible("its maps are not as large as it says"));
        }
        known.parts = parts(file.modules, size)?;
        known.unnamed = file.unnamed || known.parts.is_empty();
        (known.domains, known.values) = domains(file.domains)?;
        let check = file.check.and_then(|digits| u64::from_str_radix(&digits, 16).ok());
        if file.format.is_none() || check != Some(check_of(&known)) {
            return Err(FormError::Damaged);
        }
    }
    Ok(known)
}

fn parts(modules: Option<serde_json::Value>, size: usize) -> Result<Vec<Part>, FormError> {
    let modules: Vec<Module> =
        modules.map_or(Ok(Vec::new()), serde_json::from_value).map_err(FormError::Json)?;
    let ordered = modules.is_sorted_by(|a, b| a.end <= b.start);
    let inside = modules.iter().all(|module| module.start <= module.end && module.end <= size);
    if !ordered || !inside || modules.len() > MOST_NAMES {
        return Err(FormError::Impossible("its modules do not fit into its map"));
    }
    let part = |module: Module| Part {
        name: clean(&module.name),
        build: clean(&module.build),
        file: module.file,
        counters: module.start..module.end,
    };
    Ok(modules.into_iter().map(part).collect())
}

fn domains(given: Vec<Values>) -> Result<(Vec<Domain>, BTreeMap<u32, u32>), FormError> {
    let impossible = || FormError::Impossible("its domains are impossible");
    let (mut domains, mut values, mut start) = (Vec::new(), BTreeMap::new(), 0u32);
    if given.len() > MOST_NAMES {
        return Err(impossible());
    }
    for one in given {
        let reducer = Reducer::from_name(&one.reducer).ok_or_else(impossible)?;
        let (name, size, initial) = (clean(&one.name), one.size, one.initial);
        let domain = Domain { name, start, size, reducer, initial };
        start = start.checked_add(size).ok_or_else(impossible)?;
        for (key, value) in one.values {
            // A value that no run can have would break the laws of joining.
            let is_aggregate = value != initial && reducer.join(initial, value) == value;
            if key >= size || !is_aggregate {
                return Err(impossible());
            }
            values.insert(domain.start + key, value);
        }
        domains.push(domain);
    }
    domain::check_records(&domains, MOST).map_err(|_| impossible())?;
    Ok((domains, values))
}

/// Cleans a name for display on terminals.
fn clean(text: &str) -> String {
    text.chars().take(256).map(|letter| if letter.is_control() { '_' } else { letter }).collect()
}

/// A file without modules needs no mark.
fn is_marked(known: &Known) -> bool {
    known.unnamed && !known.parts.is_empty()
}

/// Hash of a state. Ignores the paths of module files, which may be elsewhere.
fn check_of(known: &Known) -> u64 {
    let mut hash = mix(known.map_size() as u64);
    let mut add = |value: u64| hash = mix(hash ^ value);
    if is_marked(known) {
        add(1);
    }
    let [crashes, hangs] = &known.simplified;
    for map in [&known.edges, &known.crashes, &known.hangs, crashes, hangs] {
        let (words, rest) = map.as_chunks::<8>();
        words.iter().for_each(|word| add(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| add(u64::from(*byte)));
    }
    let mut names = String::new();
    for part in &known.parts {
        let _ = write!(names, "{}\n{}\n{:?}\n", part.name, part.build, part.counters);
    }
    for domain in &known.domains {
        let _ = writeln!(names, "{domain:?}");
    }
    names.bytes().for_each(|byte| add(u64::from(byte)));
    known.values.iter().for_each(|(key, value)| add(u64::from(*key) << 32 | u64::from(*value)));
    hash
}

const DIGITS: [[u8; 2]; 256] = digits();

const fn digits() -> [[u8; 2]; 256] {
    let (mut table, hex, mut byte) = ([[0; 2]; 256], b"0123456789ABCDEF", 0);
    while byte < 256 {
        table[byte] = [hex[byte >> 4], hex[byte & 15]];
        byte += 1;
    }
    table
}

/// Value of each hexadecimal digit; above 15 for other bytes.
const NIBBLES: [u8; 256] = nibbles();

const fn nibbles() -> [u8; 256] {
    let (mut table, mut byte) = ([0xff; 256], 0);
    while byte < 256 {
        table[byte] = match byte as u8 {
            digit @ b'0'..=b'9' => digit - b'0',
            letter @ b'A'..=b'F' => letter - b'A' + 10,
            letter @ b'a'..=b'f' => letter - b'a' + 10,
            _ => 0xff,
        };
        byte += 1;
    }
    table
}

fn bytes(text: &str) -> Result<Vec<u8>, FormError> {
    let wrong = FormError::Impossible("a map is not ::MEM:: and pairs of hexadecimal digits");
    let Some((pairs, [])) = text.strip_prefix(MEM).map(|text| text.as_bytes().as_chunks::<2>())
    else {
        return Err(wrong);
    };
    let mut all = 0;
    let byte = |pair: &[u8; 2]| {
        let [high, low] = pair.map(|digit| NIBBLES[usize::from(digit)]);
        all |= high | low;
        high << 4 | low & 15
    };
    let bytes: Vec<u8> = pairs.iter().map(byte).collect();
    if all > 15 { Err(wrong) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known() -> Known {
        let part = |name: &str, counters| Part {
            name: name.into(),
            build: "id:00".into(),
            file: format!("/x/{name}"),
            counters,
        };
        let domain =
            |start, reducer, initial| Domain { name: "m".into(), start, size: 4, reducer, initial };
        let mut known = Known::new(
            vec![part("a", 0..20), part("b.so", 32..40)],
            40,
            &[domain(0, Reducer::Max, 0), domain(4, Reducer::Min, u32::MAX)],
        );
        (known.edges[3], known.crashes[4], known.hangs[5]) = (0xf0, 0xfe, 0xfe);
        known.values.extend([(1, 7), (6, 9)]);
        known
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        assert_eq!(parse(&text(&known())).unwrap(), known());
        let nothing = Known::new(Vec::new(), 8, &[]);
        assert_eq!(parse(&text(&nothing)).unwrap(), nothing);
    }

    #[test]
    fn a_state_of_killerbeez_is_read() {
        let map = |first: &str| format!("\"::MEM::{first}{}\"", "FF".repeat(65535));
        let (bits, hangs, crashes) = (map("fe"), map("7F"), map("FE"));
        let file = format!(
            "{{\"virgin_bits\": {bits}, \"virgin_tmout\": {hangs}, \"virgin_crash\": {crashes}}}"
        );
        let known = parse(file.as_bytes()).unwrap();
        assert_eq!(known.counts(), [1, 0, 1, 0]);
        assert_eq!((known.map_size(), known.parts.len()), (65536, 0));
    }

    #[test]
    fn maps_of_crashes_are_joined_as_killerbeez_does() {
        let file = |bits: &str, crashes: &str| {
            let map = format!(
                "{{\"virgin_bits\": \"::MEM::{bits}\", \"virgin_tmout\": \"::MEM::FFFFFF\", \
                 \"virgin_crash\": \"::MEM::{crashes}\"}}"
            );
            parse(map.as_bytes()).unwrap()
        };
        // Hit by all crashes, by some and by none.
        let (a, b) = (file("FEFFFF", "7F7FFE"), file("FFFEFF", "7FFEFE"));
        let mut both = a.clone();
        both.join(&b).unwrap();
        let written = String::from_utf8(text(&both)).unwrap();
        assert!(written.contains("\"virgin_crash\":\"::MEM::7F7EFE\""), "{written}");
        assert!(written.contains("\"virgin_tmout\":\"::MEM::FFFFFF\""), "{written}");
        assert_eq!(parse(written.as_bytes()).unwrap(), both);
        assert!(parse(written.replace("7F7EFE", "7E7EFE").as_bytes()).is_err());
        let mut other_way = b.clone();
        other_way.join(&a).unwrap();
        assert_eq!(other_way, both);
    }

    #[test]
    fn a_state_without_a_program_marks_what_it_is_joined_with() {
        let mut named = known();
        let foreign = Known::new(Vec::new(), 40, &[]);
        named.join(&foreign).unwrap();
        let written = text(&named);
        assert!(parse(&written).unwrap().unnamed);
        let hidden = String::from_utf8(written).unwrap().replace(",\"unnamed\":true", "");
        assert!(parse(hidden.as_bytes()).is_err());
        assert!(!parse(&text(&known())).unwrap().unnamed);
    }

    #[test]
    fn other_texts_are_refused() {
        let refused = |text: &[u8]| parse(text).unwrap_err().to_string();
        assert!(refused(b"").contains("line 1 column 0"));
        assert!(refused(b"{\"last_status\": 0}").contains("return_code"));
        assert!(refused(b"{\"format\":\"ffuzz-coverage/9\"}").contains("ffuzz-coverage/9"));
        let good = String::from_utf8(text(&known())).unwrap();
        let with = |from: &str, to: &str| refused(good.replacen(from, to, 1).as_bytes());
        assert!(with("::MEM::FFFF", "::MEM::FEFF").contains("damaged"));
        assert!(with("::MEM::FFFF", "::MEM::FF").contains("differ in size"));
        assert!(with("::MEM::FF", "::MEM::FG").contains("hexadecimal"));
        assert!(with("\"end\":40", "\"end\":41").contains("modules"));
        assert!(with("\"map_size\":40", "\"map_size\":41").contains("as large"));
        assert!(with("\"size\":4", "\"size\":4294967295").contains("domains"));
        assert!(with("[1,7]", "[4,7]").contains("domains"));
        assert!(with("[1,7]", "[1,8]").contains("damaged"));
        assert!(with("MAX", "SUM").contains("domains"));
    }

    proptest! {
        #[test]
        fn no_cut_and_no_changed_byte_is_accepted_as_another_state(at in 0usize..4000, byte: u8) {
            let good = text(&known());
            let at = at % good.len();
            // The last byte is a line feed.
            if at < good.len() - 1 {
                prop_assert!(parse(&good[..at]).is_err());
            }
            let mut changed = good.clone();
            changed[at] = byte;
            if let Ok(read) = parse(&changed) {
                let mut expected = known();
                expected.parts.iter_mut().zip(&read.parts).for_each(|(own, read)| own.file.clone_from(&read.file));
                prop_assert_eq!(read, expected);
            }
        }
    }
}
