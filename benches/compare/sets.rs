//! Targets in two sets: the search is tuned on one and judged on the other, which nobody looks into.

/// The names of `benches/compare/targets.sh --list`, and those of its judging set.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    pub(super) all: Vec<String>,
    pub(super) judging: Vec<String>,
}

pub(super) const TUNING: &str = "tuning";
pub(super) const JUDGING: &str = "judging";

/// Why a word names no targets.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NoTarget(pub(super) String);

impl Sets {
    /// One name a line.
    pub(super) fn parse(all: &str, judging: &str) -> Self {
        let [all, judging] = [all, judging].map(|text| text.lines().map(str::to_owned).collect());
        Self { all, judging }
    }

    /// The set of a row's target, which may end with the name of its seeds.
    pub(super) fn of(&self, target: &str) -> &'static str {
        let (name, _) = parts(target);
        if self.judging.iter().any(|own| own == name) { JUDGING } else { TUNING }
    }

    fn set(&self, set: &str) -> impl Iterator<Item = String> + '_ {
        let set = set.to_owned();
        self.all.iter().filter(move |name| self.of(name) == set).cloned()
    }

    /// Targets that these words name, each once; a set stands for its targets.
    pub(super) fn named(&self, words: &str) -> Result<Vec<String>, NoTarget> {
        let mut chosen: Vec<String> = vec![];
        for word in words.split_whitespace() {
            let names: Vec<String> = match word {
                TUNING | JUDGING => self.set(word).collect(),
                _ if self.all.iter().any(|name| name == word) => vec![word.to_owned()],
                _ => return Err(NoTarget(word.to_owned())),
            };
            for name in names {
                if !chosen.contains(&name) {
                    chosen.push(name);
                }
            }
        }
        Ok(chosen)
    }
}

/// A row's target and its seeds, nothing for the small ones.
pub(super) fn parts(target: &str) -> (&str, &str) {
    target.split_once('+').unwrap_or((target, ""))
}
