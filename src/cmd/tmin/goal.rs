//! The behavior that a smaller input must share with the given one.

use super::args::Args;
use crate::cmd::exit::Failure;
use crate::engine::coverage::{self, Classes};
use crate::engine::domain::Domain;
use crate::engine::executor::{ExitKind, Observation};

/// The behavior to keep.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Goal {
    /// A crash; with the same edges if there is a hash.
    Crash(Option<u64>),
    Hang,
    /// The same edges.
    Path(u64),
    /// Values of keys that may not get worse, and the exit kind.
    Values(Vec<(u32, u32)>, ExitKind),
}

/// Judges runs.
#[derive(Clone, Debug)]
pub(super) struct TminJudge {
    pub(super) goal: Goal,
    classes: Classes,
}

impl TminJudge {
    /// Takes the goal from the first run. `exact`: a crash must reach the same edges.
    pub(super) fn of(run: &Observation<'_>, args: &Args, exact: bool) -> Result<Self, Failure> {
        let classes = if args.edges_only { Classes::Binary } else { Classes::Counts };
        let hash = || coverage::map_hash(run.edges, classes);
        let is_hang = run.exit == ExitKind::Hang;
        let goal = match (&args.dsf, is_hang, args.hang) {
            (Some(name), _, _) => Goal::Values(values(run, name)?, run.exit),
            (None, true, true) => Goal::Hang,
            (None, true, false) => {
                let cause = "the target takes too long on this input";
                return Err(Failure::new(cause, "give a larger -t, or keep the hang with -H"));
            }
            (None, false, true) => {
                let cause = "the target does not take too long on this input";
                return Err(Failure::new(cause, "give a smaller -t, or leave out -H"));
            }
            (None, false, false) if run.exit == ExitKind::Ok => Goal::Path(hash()),
            (None, false, false) => Goal::Crash(exact.then(hash)),
        };
        if matches!(goal, Goal::Path(_)) && coverage::count(run.edges) == 0 {
            let cause = "the run reaches no instrumented code";
            return Err(Failure::new(cause, "build the target with ffuzz-cc"));
        }
        Ok(Self { goal, classes })
    }

    pub(super) fn accepts(&self, run: &Observation<'_>) -> bool {
        let hash = || coverage::map_hash(run.edges, self.classes);
        match &self.goal {
            Goal::Hang => run.exit == ExitKind::Hang,
            Goal::Path(wanted) => run.exit == ExitKind::Ok && hash() == *wanted,
            Goal::Crash(wanted) => {
                let crashes = matches!(run.exit, ExitKind::Crash { .. } | ExitKind::Oom);
                crashes && wanted.is_none_or(|wanted| hash() == wanted)
            }
            Goal::Values(wanted, exit) => {
                run.exit == *exit && wanted.iter().all(|(key, value)| is_reached(run, *key, *value))
            }
        }
    }

    /// Returns true if a run that ends normally never fulfils the goal.
    pub(super) fn wants_bad_ends(&self) -> bool {
        matches!(self.goal, Goal::Crash(_) | Goal::Hang)
    }

    /// Describes the kind of goal in AFL's terms.
    pub(super) fn describe(&self) -> String {
        match &self.goal {
            Goal::Crash(None) => "Program exits with a signal, minimizing in crash mode.".into(),
            Goal::Crash(_) => "Program exits with a signal, minimizing in EXACT crash mode.".into(),
            Goal::Hang => "Program hangs as expected, minimizing in hang mode.".into(),
            Goal::Path(_) => "Program terminates normally, minimizing in instrumented mode.".into(),
            Goal::Values(values, _) => {
                let count = values.len();
                format!("Keeping the values of {count} domain keys.")
            }
        }
    }
}

/// Returns true if the run's value is at least as good as `wanted`.
fn is_reached(run: &Observation<'_>, key: u32, wanted: u32) -> bool {
    let value = run.dsf.values[key as usize];
    let reducer = run.dsf.domain_of(key).map(|domain| domain.reducer);
    reducer.is_some_and(|reducer| reducer.apply(value, wanted) == value)
}

/// Values of a domain's keys, or of one key.
fn values(run: &Observation<'_>, name: &str) -> Result<Vec<(u32, u32)>, Failure> {
    let domains = run.dsf.domains;
    let labels = domains.iter().enumerate().map(|(index, domain)| domain.label(index));
    let labels: Vec<String> = labels.collect();
    let number: Option<u32> = name.parse().ok();
    let fits = |domain: &Domain, key: u32| match number {
        Some(number) => key == number,
        None => domains.iter().zip(&labels).any(|(known, label)| known == domain && label == name),
    };
    let mut found = Vec::new();
    run.dsf.for_each_changed(|domain, key, value| {
        if fits(domain, key) {
            found.push((key, value));
        }
    });
    found.sort_unstable();
    found.dedup();
    if !found.is_empty() {
        return Ok(found);
    }
    if domains.is_empty() {
        let remedy = "build it with WAYPOINTS=NAMES ffuzz-cc";
        return Err(Failure::new("the target registers no domain", remedy));
    }
    let known = number.is_some() || labels.iter().any(|label| label == name);
    let cause = if known { "reaches no value of" } else { "does not have the domain" };
    let who = if known { "the input" } else { "the target" };
    let remedy = format!("its domains: {}; showdsf prints the keys reached", labels.join(", "));
    Err(Failure::new(format!("{who} {cause} {name}"), remedy))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::domain::{DsfView, Reducer};

    fn domains() -> Vec<Domain> {
        let domain = |name: &str, start, reducer, initial| Domain {
            name: name.into(),
            start,
            size: 2,
            reducer,
            initial,
        };
        vec![
            domain("most", 0, Reducer::Max, 0),
            domain("least", 2, Reducer::Min, u32::MAX),
            domain("bits", 4, Reducer::BitUnion, 0),
        ]
    }

    fn judge(values: &[u32], name: &str) -> Result<Vec<(u32, u32)>, Failure> {
        let domains = domains();
        super::values(&run(&domains, values), name)
    }

    fn run<'a>(domains: &'a [Domain], values: &'a [u32]) -> Observation<'a> {
        let dsf = DsfView { domains, values, touched: None };
        let (exit, duration) = (ExitKind::Ok, Duration::ZERO);
        Observation { index: 0, exit, duration, edges: &[1], dsf, comparisons: Default::default() }
    }

    const VALUES: [u32; 6] = [5, 0, u32::MAX, 9, 0b110, 0];

    #[test]
    fn values_are_those_of_a_domain_or_a_key() {
        assert_eq!(judge(&VALUES, "most").unwrap(), [(0, 5)]);
        assert_eq!(judge(&VALUES, "3").unwrap(), [(3, 9)]);
        assert!(judge(&VALUES, "1").unwrap_err().cause.contains("reaches no value"));
        assert!(judge(&VALUES, "heap").unwrap_err().cause.contains("does not have"));
        assert!(judge(&VALUES, "heap").unwrap_err().remedy.contains("most, least, bits"));
    }

    #[test]
    fn a_value_may_get_better_but_not_worse() {
        let domains = domains();
        let judge = TminJudge {
            goal: Goal::Values(vec![(0, 5), (3, 9), (4, 0b110)], ExitKind::Ok),
            classes: Classes::Counts,
        };
        let accepts = |values: [u32; 6]| judge.accepts(&run(&domains, &values));
        assert!(accepts(VALUES) && accepts([6, 0, u32::MAX, 8, 0b111, 0]));
        assert!(!accepts([4, 0, u32::MAX, 9, 0b110, 0]));
        assert!(!accepts([5, 0, u32::MAX, 10, 0b110, 0]));
        assert!(!accepts([5, 0, u32::MAX, 9, 0b011, 0]));
    }
}
