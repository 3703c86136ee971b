//! Records of domains: values that a campaign has reached and that are reported on request, although
//! nothing has crashed.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::hang::NON_CRASH;
use crate::disk::output::instances;
use crate::disk::output::state::State;

/// `DOMAIN=VALUE`: from this value on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wish {
    domain: String,
    value: u32,
}

impl Wish {
    /// None if it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, value) = text.split_once('=')?;
        let domain = Some(domain.to_owned()).filter(|name| !name.is_empty())?;
        Some(Self { domain, value: value.parse().ok()? })
    }
}

/// A record to report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct DomainRecord {
    /// The same for every value at the same place.
    pub(super) line: String,
    pub(super) domain: String,
    pub(super) place: String,
    pub(super) value: u32,
    pub(super) input: PathBuf,
    pub(super) data: Vec<u8>,
}

/// Reads the instances of a campaign at each call.
#[derive(Debug)]
pub struct Records {
    wishes: Vec<Wish>,
    /// Lines of those that were handed over.
    reported: HashSet<String>,
}

impl Records {
    #[must_use]
    pub fn new(wishes: Vec<Wish>) -> Self {
        Self { wishes, reported: HashSet::new() }
    }

    /// Records that were not delivered yet. What cannot be read now is read later.
    #[must_use]
    pub(super) fn look(&self, root: &Path) -> Vec<DomainRecord> {
        if self.wishes.is_empty() {
            return Vec::new();
        }
        let instances = instances::find(root).unwrap_or_default();
        instances.iter().flat_map(|instance| self.of_instance(instance)).collect()
    }

    pub(super) fn handed_over(&mut self, line: String) {
        self.reported.insert(line);
    }

    fn of_instance(&self, instance: &instances::Instance) -> Vec<DomainRecord> {
        let domains = (0..instance.number("dsf_domains")).map(|index| format!("dsf{index}"));
        let found = domains.filter_map(|domain| {
            let text = |name: &str| instance.text(&format!("{domain}_{name}"));
            let (value, key): (u32, u32) =
                (text("best").parse().ok()?, text("best_key").parse().ok()?);
            let smaller_is_better = text("reducer") == "MIN";
            let is_wanted = |wish: &&Wish| {
                let reached =
                    if smaller_is_better { value <= wish.value } else { value >= wish.value };
                wish.domain == text("name") && reached
            };
            let wish = self.wishes.iter().find(is_wanted)?;
            let place = match text("best_place") {
                "" => format!("key {key}"),
                place => place.to_owned(),
            };
            let line = format!("{NON_CRASH}{} reaches {} at {place}", wish.domain, wish.value);
            if self.reported.contains(&line) {
                return None;
            }
            let input = owner(&instance.folder, key)?;
            let data = fs::read(&input).ok()?;
            Some(DomainRecord { line, domain: wish.domain.clone(), place, value, input, data })
        });
        found.collect()
    }
}

/// The queue's entry that has the value of a key.
fn owner(instance: &Path, key: u32) -> Option<PathBuf> {
    let state = State::load(&instance.join(crate::disk::output::state::NAME)).ok()?;
    let owns = |keys: &[(u32, u32)]| keys.iter().any(|(owned, _)| *owned == key);
    let seed = state.seeds.iter().find(|seed| owns(&seed.keys))?;
    let name = Path::new(&seed.name).file_name()?;
    Some(instance.join("queue").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::output::state::KnownSeed;

    #[test]
    fn a_wish_is_a_name_and_a_value() {
        let wish = |domain: &str, value| Some(Wish { domain: domain.into(), value });
        assert_eq!(Wish::parse("mem=1000000"), wish("mem", 1_000_000));
        for text in ["mem", "=1", "mem=", "mem=x", "mem=-1", "mem=99999999999"] {
            assert_eq!(Wish::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_that_is_reached_is_told_once_with_its_input() {
        let dir = tempfile::tempdir().unwrap();
        let instance = dir.path().join("default");
        fs::create_dir_all(instance.join("queue")).unwrap();
        fs::write(instance.join("queue/id:000003,x"), "input").unwrap();
        let keys = vec![(7, 0)];
        let seed = KnownSeed { name: "id:000003,x".into(), keys, ..KnownSeed::default() };
        let state = State { seeds: vec![KnownSeed::default(), seed], ..State::default() };
        fs::write(instance.join("state.json"), serde_json::to_vec(&state).unwrap()).unwrap();
        let stats = |best: u32| {
            let text = format!(
                "dsf_domains : 1\ndsf0_name : mem\ndsf0_reducer : MAX\ndsf0_best_key : 7\n\
                 dsf0_best : {best}\ndsf0_best_place : a.c:16\n"
            );
            fs::write(instance.join("fuzzer_stats"), text).unwrap();
        };
        let mut records = Records::new(vec![Wish::parse("mem=1000").unwrap()]);
        stats(999);
        assert_eq!(records.look(dir.path()), []);
        stats(4000);
        let found = records.look(dir.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, "[Non-crash bug] mem reaches 1000 at a.c:16");
        assert_eq!((found[0].value, found[0].data.as_slice()), (4000, &b"input"[..]));
        records.handed_over(found[0].line.clone());
        stats(5000);
        assert_eq!(records.look(dir.path()), []);
        assert_eq!(Records::new(vec![Wish::parse("heap=1").unwrap()]).look(dir.path()), []);
    }
}
