//! Kinds: a fuzzer, how it is built, and its options. `ffuzz+dict` is ffuzz with the target's dictionary.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fuzzer {
    Ffuzz,
    /// Another revision of this project.
    Base,
    /// This project, for ordinary programs of its compiler.
    Ordinary,
    /// The same, for those of a plain compiler.
    Native,
    Afl,
    AflCmplog,
    /// With the dictionary that its compiler collects.
    AflDict2file,
    Libfuzzer,
}

pub(super) const FUZZERS: [(&str, Fuzzer); 8] = [
    ("ffuzz", Fuzzer::Ffuzz),
    ("base", Fuzzer::Base),
    ("ordinary", Fuzzer::Ordinary),
    ("native", Fuzzer::Native),
    ("afl", Fuzzer::Afl),
    ("afl-cmplog", Fuzzer::AflCmplog),
    ("afl-dict2file", Fuzzer::AflDict2file),
    ("libfuzzer", Fuzzer::Libfuzzer),
];

/// What all are compared with.
pub(super) const REFERENCE: &str = "ffuzz";
pub(super) const WITH_DICTIONARY: &str = "+dict";

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) fuzzer: Fuzzer,
    pub(super) dictionary: bool,
    pub(super) variables: Vec<(String, String)>,
    pub(super) options: Vec<String>,
}

/// Why a text is no kind.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NoKind(pub(super) String);

impl Kind {
    /// `FUZZER`, `FUZZER+dict`, `NAME=FUZZER`, `NAME=FUZZER:WORDS`; words of the form `NAME=VALUE` before
    /// the first option are variables.
    pub(super) fn parse(text: &str) -> Result<Self, NoKind> {
        let (fuzzer, words) = text.split_once(':').unwrap_or((text, ""));
        let (name, fuzzer) = match fuzzer.split_once('=') {
            Some((name, fuzzer)) => (name.trim(), fuzzer.trim()),
            None => (fuzzer.trim(), fuzzer.trim()),
        };
        let (plain, dictionary) = match fuzzer.strip_suffix(WITH_DICTIONARY) {
            Some(plain) => (plain, true),
            None => (fuzzer, false),
        };
        let known = FUZZERS.iter().find(|(known, _)| *known == plain);
        let (_, fuzzer) = *known.ok_or_else(|| NoKind(format!("{plain:?} is no fuzzer")))?;
        if name.is_empty() || (name == plain && !words.is_empty()) {
            return Err(NoKind(format!("{text:?} has no name of its own")));
        }
        // Its partner is the reference with a dictionary.
        let ending =
            if dictionary && !name.ends_with(WITH_DICTIONARY) { WITH_DICTIONARY } else { "" };
        let mut words = words.split_whitespace().map(str::to_owned).peekable();
        let mut variables = vec![];
        while let Some(word) = words.next_if(|word| is_assignment(word)) {
            variables.extend(word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())));
        }
        let name = format!("{name}{ending}");
        Ok(Self { name, fuzzer, dictionary, variables, options: words.collect() })
    }

    /// Variables and options as they were given.
    pub(super) fn words(&self) -> String {
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        variables.chain(self.options.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
}

fn is_assignment(word: &str) -> bool {
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(part))
}

/// The reference of a kind: that with a dictionary, if the kind has one.
pub(super) fn partner(kind: &str) -> String {
    let ending = if kind.ends_with(WITH_DICTIONARY) { WITH_DICTIONARY } else { "" };
    format!("{REFERENCE}{ending}")
}

/// The kinds to run. `chosen` are names, else all (`quick`: few; only the reference, if there is an own
/// kind or another revision); `own` are kinds of the command line, between semicolons.
pub(super) fn wanted(
    chosen: &str,
    own: &str,
    base: bool,
    quick: bool,
) -> Result<Vec<Kind>, NoKind> {
    let own: Vec<&str> = own.split(';').map(str::trim).filter(|text| !text.is_empty()).collect();
    let mut names: Vec<String> = chosen.split_whitespace().map(str::to_owned).collect();
    if names.is_empty() {
        names = defaults(base, quick, !own.is_empty());
    }
    names.extend(own.iter().map(|text| (*text).to_owned()));
    let mut kinds: Vec<Kind> =
        names.iter().map(|name| Kind::parse(name)).collect::<Result<_, _>>()?;
    // What a kind is compared with has to run.
    let partners: Vec<String> = kinds.iter().map(|kind| partner(&kind.name)).collect();
    for name in partners {
        if !kinds.iter().any(|kind| kind.name == name) {
            kinds.insert(0, Kind::parse(&name)?);
        }
    }
    Ok(kinds)
}

fn defaults(base: bool, quick: bool, own: bool) -> Vec<String> {
    let names: &[&str] = match quick {
        true if base || own => &["ffuzz"],
        true => &["ffuzz", "afl-cmplog", "libfuzzer"],
        false => &["ffuzz", "afl", "afl-cmplog", "afl-dict2file", "libfuzzer"],
    };
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    if base {
        names.push("base".into());
    }
    let both = |name: String| [name.clone(), name + WITH_DICTIONARY];
    if quick { names } else { names.into_iter().flat_map(both).collect() }
}
