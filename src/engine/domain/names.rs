//! Names of keys, from the table that the passes leave in a program.
//!
//! A line of the table is `domain TAB key[+count] TAB file TAB line TAB column TAB function TAB what`; an empty field
//! repeats the previous line, and `-` for file and function means the whole program. The text comes from the target and
//! is not trusted: unreadable lines are skipped, and no name contains a control character.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Domain;

/// Longest line accepted, bytes; names of C++ templates have no limit of their own.
const MAX_LINE: usize = 1 << 14;
/// Maximum number of sites: more than the largest programs have, about 200 MB.
const MAX_SITES: usize = 1 << 21;
/// Length of a domain name kept by the runtime, bytes.
const NAME_KEPT: usize = 47;

/// One place in the program that updates `count` keys from `key` on.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Site {
    pub domain: Arc<str>,
    /// Key in the program, before reduction modulo the domain's size.
    pub key: u32,
    pub count: u32,
    /// Empty, like `function`, if the key concerns the whole program.
    pub file: Arc<str>,
    /// 0: the program has no debug information.
    pub line: u32,
    pub column: u32,
    /// As written in the source, in C++ with its parameters.
    pub function: Arc<str>,
    /// Measured operation, for example `i32 ==` or `malloc`.
    pub what: Arc<str>,
}

impl Site {
    /// Site of a single key without a place in the program.
    #[must_use]
    pub fn of_key(domain: &str, key: u32, what: &str) -> Self {
        let nowhere: Arc<str> = "".into();
        Self {
            domain: domain.into(),
            key,
            count: 1,
            file: nowhere.clone(),
            line: 0,
            column: 0,
            function: nowhere,
            what: what.into(),
        }
    }

    /// Parses a table.
    #[must_use]
    pub fn parse(table: &[u8]) -> Vec<Self> {
        let mut sites: Vec<Self> = Vec::new();
        let mut complete = false;
        let lines = table.split(|byte| *byte == b'\n' || *byte == 0);
        for line in lines.filter(|line| !line.is_empty()) {
            let before = sites.last().filter(|_| complete);
            let site = if line.len() > MAX_LINE { None } else { Self::parse_line(line, before) };
            // Fields repeated from an unreadable line are unknown.
            complete = site.is_some();
            sites.extend(site);
            if sites.len() == MAX_SITES {
                break;
            }
        }
        sites
    }

    fn parse_line(line: &[u8], before: Option<&Self>) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b'\t').map(String::from_utf8_lossy);
        let mut next = || fields.next();
        let text = |field: &str, same: Option<&Arc<str>>| match field {
            "" => same.cloned(),
            "-" => Some(Arc::from("")),
            new => Some(Arc::from(clean(new))),
        };
        let number = |field: &str, same: Option<u32>| match field {
            "" => same,
            new => new.parse().ok(),
        };
        let domain = text(&next()?, before.map(|site| &site.domain))?;
        let keys = next()?;
        let (key, count) = match keys.split_once('+') {
            Some((key, count)) => (key.parse().ok()?, count.parse().ok()?),
            None => (number(&keys, before.map(|site| site.key))?, 1),
        };
        Some(Self {
            domain,
            key,
            count,
            file: text(&next()?, before.map(|site| &site.file))?,
            line: number(&next()?, before.map(|site| site.line))?,
            column: number(&next()?, before.map(|site| site.column))?,
            function: text(&next()?, before.map(|site| &site.function))?,
            what: text(&next()?, before.map(|site| &site.what))?,
        })
    }

    /// Function without its C++ parameters: `Test()`.
    #[must_use]
    pub fn short_function(&self) -> String {
        let mut depth = 0;
        let end = self.function.rfind(')').unwrap_or(0);
        for (at, letter) in self.function[..end].char_indices().rev() {
            match letter {
                ')' => depth += 1,
                '(' if depth == 0 => return format!("{}()", &self.function[..at]),
                '(' => depth -= 1,
                _ => {}
            }
        }
        format!("{}()", self.function)
    }
}

fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Display name of a key, split into columns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyName {
    pub domain: String,
    /// `demo.c:16`, with as many folders as needed to distinguish files; the measured operation for a key of the whole
    /// program; `key 2` for a manually built map.
    pub place: String,
    /// `Test()`; empty without a file, like `what`.
    pub function: String,
    pub what: String,
}

/// Names of a target's keys.
#[derive(Clone, Debug, Default)]
pub struct KeyNames {
    domains: Vec<Domain>,
    sites: Vec<Site>,
    /// Shortest unambiguous name of each file.
    files: HashMap<Arc<str>, String>,
    /// Global key and index of a site, sorted. Several sites may share a key.
    keys: Vec<(u32, u32)>,
}

impl KeyNames {
    #[must_use]
    pub fn new(domains: &[Domain], mut sites: Vec<Site>) -> Self {
        // Inline functions occur in every object that uses them.
        sites.sort_unstable();
        sites.dedup();
        let files = shorten(sites.iter().map(|site| Arc::clone(&site.file)).collect());
        let starts: HashMap<&str, &Domain> =
            domains.iter().map(|domain| (domain.name.as_str(), domain)).collect();
        let mut keys = Vec::new();
        for (index, site) in (0..).zip(&sites) {
            let name = site.domain.get(..NAME_KEPT).unwrap_or(&site.domain);
            let Some(domain) = starts.get(name) else { continue };
            for offset in 0..site.count.min(domain.size) {
                if keys.len() < MAX_SITES {
                    keys.push((domain.start + site.key.wrapping_add(offset) % domain.size, index));
                }
            }
        }
        keys.sort_unstable();
        Self { domains: domains.to_vec(), sites, files, keys }
    }

    /// True if the target names no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Sites that update a key (global index); none for a manually built map.
    pub fn sites(&self, key: u32) -> impl Iterator<Item = &Site> {
        let from = self.keys.partition_point(|(other, _)| *other < key);
        let found = self.keys[from..].iter().take_while(move |(other, _)| *other == key);
        found.map(|(_, site)| &self.sites[*site as usize])
    }

    /// All names of a key, at least one.
    #[must_use]
    pub fn names(&self, key: u32) -> Vec<KeyName> {
        let named: Vec<KeyName> = self.sites(key).map(|site| self.name_of(site)).collect();
        if named.is_empty() { vec![self.by_number(key)] } else { named }
    }

    /// Short place of a key, `demo.c:16`; None without a site.
    #[must_use]
    pub fn place(&self, key: u32) -> Option<String> {
        let mut sites = self.sites(key);
        let place = self.place_of(sites.next()?);
        let others = sites.count();
        Some(if others > 0 { format!("{place} +{others}") } else { place })
    }

    /// All names in one line: `mem demo.c:16 Test() malloc`.
    #[must_use]
    pub fn line(&self, key: u32) -> String {
        let words = |name: KeyName| {
            let words = [name.domain, name.place, name.function, name.what];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        self.names(key).into_iter().map(words).collect::<Vec<_>>().join(" or ")
    }

    fn by_number(&self, key: u32) -> KeyName {
        let index = self.domains.partition_point(|domain| domain.end() <= key);
        let (domain, start) = match self.domains.get(index) {
            Some(domain) => (domain.label(index), domain.start),
            None => (String::new(), 0),
        };
        let place = format!("key {}", key - start);
        KeyName { domain, place, function: String::new(), what: String::new() }
    }

    fn name_of(&self, site: &Site) -> KeyName {
        let (domain, place) = (site.domain.to_string(), self.place_of(site));
        if site.file.is_empty() {
            return KeyName { domain, place, function: String::new(), what: String::new() };
        }
        KeyName { domain, place, function: site.short_function(), what: site.what.to_string() }
    }

    fn place_of(&self, site: &Site) -> String {
        if site.file.is_empty() {
            return site.what.to_string();
        }
        let file = &self.files[&site.file];
        if site.line == 0 { file.clone() } else { format!("{file}:{}", site.line) }
    }
}

/// Maps every path to its shortest unambiguous suffix.
fn shorten(files: BTreeSet<Arc<str>>) -> HashMap<Arc<str>, String> {
    let mut short = HashMap::new();
    let mut open: Vec<Arc<str>> = files.into_iter().collect();
    for parts in 1.. {
        let mut groups: BTreeMap<&str, Vec<&Arc<str>>> = BTreeMap::new();
        for file in &open {
            groups.entry(tail(file, parts)).or_default().push(file);
        }
        let mut equal = Vec::new();
        for (name, group) in groups {
            match group[..] {
                [file] => drop(short.insert(Arc::clone(file), name.to_owned())),
                _ => equal.extend(group.into_iter().cloned()),
            }
        }
        if equal.is_empty() {
            break;
        }
        open = equal;
    }
    short
}

/// The last `parts` parts of a path.
fn tail(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Reducer;

    const TABLE: &[u8] = b"mem\t1030\t/a/demo.c\t23\t10\tcascade\tmalloc\n\
        cmp\t7\t/a/demo.c\t12\t13\tcascade\ti32 ==\n\
        \t8\t\t16\t9\t\t\n\
        \t20+3\t/b/util.cc\t0\t0\tns::V<int>::f(void (*)(int)) const\tswitch i8\n\
        mem\t0\t-\t0\t0\t-\tall bytes\n";

    fn domains() -> Vec<Domain> {
        let domain = |name: &str, start, size| {
            let (name, reducer) = (name.to_owned(), Reducer::Max);
            Domain { name, start, size, reducer, initial: 0 }
        };
        vec![domain("cmp", 0, 65536), domain("mem", 65536, 1024), domain("mine", 66560, 4)]
    }

    fn names(table: &[u8]) -> KeyNames {
        KeyNames::new(&domains(), Site::parse(table))
    }

    #[test]
    fn keys_have_the_names_of_their_sites() {
        let names = names(TABLE);
        assert_eq!(names.line(65536 + 6), "mem demo.c:23 cascade() malloc");
        assert_eq!(names.line(7), "cmp demo.c:12 cascade() i32 ==");
        assert_eq!(names.line(8), "cmp demo.c:16 cascade() i32 ==");
        assert_eq!(names.place(8).as_deref(), Some("demo.c:16"));
        for key in 20..23 {
            assert_eq!(names.line(key), "cmp util.cc ns::V<int>::f() switch i8");
        }
        assert_eq!((names.line(23).as_str(), names.place(23)), ("cmp key 23", None));
        assert_eq!(names.line(66562), "mine key 2");
        assert_eq!(names.line(65536), "mem all bytes");
        assert_eq!(names.place(65536).as_deref(), Some("all bytes"));
    }

    #[test]
    fn sites_that_share_a_key_are_all_named() {
        let names = names(
            b"mem\t5\t/x/a/util.c\t1\t1\tf\tmalloc\n\
              mem\t1029\t/x/b/util.c\t2\t1\tg\tcalloc\n\
              mem\t5\t/x/a/util.c\t1\t1\tf\tmalloc\n",
        );
        let line = "mem a/util.c:1 f() malloc or mem b/util.c:2 g() calloc";
        assert_eq!(names.line(65541), line);
        assert_eq!(names.place(65541).as_deref(), Some("a/util.c:1 +1"));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let broken: &[u8] = b"\tx\n\n\t\t\t\t\t\t\ncmp\t-1\tf\t1\t1\tf\tw\n\t5\t\t\t\t\t\n\
            cmp\t99999999999\tf\t1\t1\tf\tw\ncmp\t1\tf\t1\ncmp\t2+x\tf\t1\t1\tf\tw\n\0\0\
            cmp\t3\t\x1b[31mf\xff\t1\t1\tf\tw\nother\t4\tf\t1\t1\tf\tw\n";
        let sites = Site::parse(broken);
        assert_eq!(sites.iter().map(|site| site.key).collect::<Vec<_>>(), [3, 4]);
        let names = KeyNames::new(&domains(), sites);
        assert_eq!(names.line(3), "cmp ?[31mf\u{fffd}:1 f() w");
        assert_eq!(names.line(4), "cmp key 4");
        let long = [b"cmp\t1\t".as_slice(), &[b'x'; MAX_LINE], b"\t1\t1\tf\tw\n"].concat();
        assert!(Site::parse(&long).is_empty());
        // A count without end, a key at the end of all numbers, a key after all domains.
        let many =
            KeyNames::new(&domains(), Site::parse(b"mine\t4294967295+4294967295\tf\t1\t1\tf\tw\n"));
        assert!((66560..66564).all(|key| many.sites(key).count() == 1));
        assert_eq!(many.line(u32::MAX), "key 4294967295");
    }

    #[test]
    fn functions_lose_their_parameters_only() {
        let short = |function: &str| {
            let mut site = Site::parse(b"d\t1\tf\t1\t1\tx\tw\n").remove(0);
            site.function = function.into();
            site.short_function()
        };
        assert_eq!(short("main"), "main()");
        assert_eq!(short("(anonymous namespace)::f(int)"), "(anonymous namespace)::f()");
        assert_eq!(short("A::operator()(int (*)(long)) const"), "A::operator()()");
        assert_eq!(short(")"), ")()");
    }
}
