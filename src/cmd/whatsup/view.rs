//! The lines of `ffuzz-whatsup`; scripts search them for the words of `afl-whatsup`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::disk::output::instances::{Instance, InstanceState};

/// Executions per second below which most targets have a problem, as in AFL.
const SLOW: f64 = 100.0;

/// Best value of a domain, as in `fuzzer_stats`.
struct DomainRow<'a> {
    name: &'a str,
    reducer: &'a str,
    keys: u64,
    best_key: u64,
    best: u64,
    place: &'a str,
    waypoints: u64,
}

impl DomainRow<'_> {
    fn place(&self) -> String {
        match self.place {
            "" => format!("key {}", self.best_key),
            place => place.to_owned(),
        }
    }

    fn is_better_than(&self, other: &DomainRow<'_>) -> bool {
        if self.reducer == "MIN" { self.best < other.best } else { self.best > other.best }
    }
}

fn domains(instance: &Instance) -> Vec<DomainRow<'_>> {
    let domain = |index| {
        let name = |part: &str| format!("dsf{index}_{part}");
        let (text, number) =
            (|part| instance.text(&name(part)), |part| instance.number(&name(part)));
        DomainRow {
            name: text("name"),
            reducer: text("reducer"),
            keys: number("keys"),
            best_key: number("best_key"),
            best: number("best"),
            place: text("best_place"),
            waypoints: number("waypoints"),
        }
    };
    // Only domains in the file, whatever number it claims.
    let named = |index: &u64| instance.stats.contains_key(&format!("dsf{index}_name"));
    (0..instance.number("dsf_domains")).take_while(named).map(domain).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Formats the two largest units: `3 seconds`, `5 minutes, 3 seconds`, `2 days, 4 hours`.
fn duration(seconds: u64) -> String {
    let units = [
        (seconds / 86_400, "days"),
        (seconds / 3600 % 24, "hours"),
        (seconds / 60 % 60, "minutes"),
        (seconds % 60, "seconds"),
    ];
    let first = units.iter().position(|(n, _)| *n > 0).unwrap_or(3);
    let shown = units[first..].iter().take(2).map(|(n, unit)| format!("{n} {unit}"));
    shown.collect::<Vec<_>>().join(", ")
}

/// Time since `time`.
fn since(time: u64) -> String {
    if time == 0 { "none seen yet".into() } else { duration(now().saturating_sub(time)) }
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100) / whole.max(1)
}

/// Executions per second in the last minute, or over the whole run if unknown.
fn rate(instance: &Instance) -> f64 {
    let last_minute = instance.fraction("execs_ps_last_min");
    if last_minute > 0.0 { last_minute } else { instance.fraction("execs_per_sec") }
}

pub(super) fn line(instance: &Instance) -> String {
    format!(
        "{} ({}): {} execs, {:.0}/sec, {} items, {} crashes, {} hangs, coverage {}\n",
        instance.name,
        instance.state.word(),
        instance.number("execs_done"),
        rate(instance),
        instance.number("corpus_count"),
        instance.number("saved_crashes"),
        instance.number("saved_hangs"),
        instance.text("bitmap_cvg"),
    )
}

pub(super) fn details(instance: &Instance, counted: bool) -> String {
    let run_time = instance.number("run_time");
    let mut out = format!(
        ">>> {} instance: {} ({} days, {} hrs) fuzzer PID: {} <<<\n\n",
        instance.text("afl_banner"),
        instance.name,
        run_time / 86_400,
        run_time / 3600 % 24,
        instance.number("fuzzer_pid"),
    );
    match instance.state {
        InstanceState::Alive => {}
        InstanceState::Starting => return out + "  Instance is still starting up, skipping.\n\n",
        InstanceState::Dead => out += "  Instance is dead or running remotely.\n\n",
    }
    if counted {
        numbers(&mut out, instance);
    }
    out
}

fn numbers(out: &mut String, i: &Instance) {
    let rate = rate(i);
    if rate < SLOW {
        let _ = writeln!(out, "  slow execution, {rate:.0} execs/sec");
    }
    for name in ["last_find", "last_crash", "last_hang"] {
        let _ = writeln!(out, "  {name:<16}: {}", since(i.number(name)));
    }
    let _ = writeln!(out, "  cycles_wo_finds : {}", i.number("cycles_wo_finds"));
    let (item, items) = (i.number("cur_item"), i.number("corpus_count"));
    let _ = writeln!(
        out,
        "  cycles {}, lifetime speed {:.0} execs/sec, items {item}/{items} ({}%)",
        i.number("cycles_done") + 1,
        i.fraction("execs_per_sec"),
        percent(item, items),
    );
    let crashes = match i.number("saved_crashes") {
        0 => "no crashes yet".into(),
        crashes => format!("crashes saved {crashes} (!)"),
    };
    let _ = writeln!(
        out,
        "  pending {}/{}, coverage {}, {crashes}",
        i.number("pending_favs"),
        i.number("pending_total"),
        i.text("bitmap_cvg"),
    );
    for d in domains(i) {
        let _ = writeln!(
            out,
            "  domain {} ({}): best {} at {}, {} keys, {} waypoints",
            d.name,
            d.reducer,
            d.best,
            d.place(),
            d.keys,
            d.waypoints,
        );
    }
    out.push('\n');
}

fn sum(counted: &[&Instance], name: &str) -> u64 {
    counted.iter().map(|instance| instance.number(name)).fold(0, u64::saturating_add)
}

/// Sum of runs per second; an empty `sum` would be -0.
fn cumulative_speed(counted: &[&Instance]) -> f64 {
    counted.iter().map(|instance| instance.fraction("execs_per_sec")).fold(0.0, |sum, it| sum + it)
}

pub(super) fn summary(found: &[Instance], counted: &[&Instance], with_dead: bool) -> String {
    let of = |state| found.iter().filter(|instance| instance.state == state).count();
    let (alive, dead, starting) =
        (of(InstanceState::Alive), of(InstanceState::Dead), of(InstanceState::Starting));
    let mut out = String::from("Summary stats\n=============\n\n");
    let mut add = |name: &str, value: String| {
        let _ = writeln!(out, "{name:>20} : {value}");
    };
    add("Fuzzers alive", alive.to_string());
    if dead > 0 {
        let how = if with_dead { "included in" } else { "excluded from" };
        add("Dead or remote", format!("{dead} ({how} stats)"));
    }
    if starting > 0 {
        add("Starting up", format!("{starting} (excluded from stats)"));
    }
    add("Total run time", duration(sum(counted, "run_time")));
    let execs = sum(counted, "execs_done");
    add(
        "Total execs",
        match execs / 1_000_000 {
            0 => format!("{} thousands", execs / 1000),
            millions => format!("{millions} millions, {} thousands", execs / 1000 % 1000),
        },
    );
    let speed = cumulative_speed(counted);
    add("Cumulative speed", format!("{speed:.0} execs/sec"));
    let (favored, total) = (sum(counted, "pending_favs"), sum(counted, "pending_total"));
    let fuzzers = counted.len() as u64;
    if let Some(number) = u32::try_from(fuzzers).ok().filter(|number| *number > 0) {
        add("Average speed", format!("{:.0} execs/sec", speed / f64::from(number)));
    }
    add("Pending items", format!("{favored} faves, {total} total"));
    if fuzzers > 1 {
        let each = format!("{} faves, {} total (on average)", favored / fuzzers, total / fuzzers);
        add("Pending per fuzzer", each);
    }
    // As in AFL, ended instances count, too.
    let coverage = found.iter().map(|instance| instance.fraction("bitmap_cvg"));
    add("Coverage reached", format!("{:.2}%", coverage.fold(0.0, f64::max)));
    add("Crashes saved", sum(counted, "saved_crashes").to_string());
    add("Hangs saved", sum(counted, "saved_hangs").to_string());
    let cycles: Vec<String> =
        counted.iter().map(|i| i.number("cycles_wo_finds").to_string()).collect();
    let cycles = if cycles.is_empty() { "not available".into() } else { cycles.join("/") };
    add("Cycles without finds", cycles);
    let last_find = counted.iter().map(|i| i.number("last_find")).max().unwrap_or(0);
    add("Time without finds", since(last_find));
    for (name, (domain, instance)) in best_domains(counted) {
        add(
            &format!("Best of {name}"),
            format!("{} at {} ({instance})", domain.best, domain.place()),
        );
    }
    out.push('\n');
    out
}

/// Best value per domain, and its instance.
fn best_domains<'a>(counted: &[&'a Instance]) -> BTreeMap<&'a str, (DomainRow<'a>, &'a str)> {
    let mut best: BTreeMap<&str, (DomainRow<'_>, &str)> = BTreeMap::new();
    for instance in counted {
        for domain in domains(instance) {
            match best.get(domain.name) {
                Some((known, _)) if !domain.is_better_than(known) => {}
                _ => {
                    best.insert(domain.name, (domain, &instance.name));
                }
            }
        }
    }
    best
}

pub(super) fn json(found: &[Instance], counted: &[&Instance]) -> String {
    let sums = ["run_time", "execs_done", "corpus_count", "saved_crashes", "saved_hangs"];
    let mut summary: Map<String, Value> =
        sums.iter().map(|name| ((*name).to_owned(), sum(counted, name).into())).collect();
    // As in a fleet: instances import each other's finds, so the best one stands for all.
    let edges = counted.iter().map(|instance| instance.number("edges_found")).max();
    summary.insert("edges_found".into(), edges.unwrap_or(0).into());
    let alive = found.iter().filter(|instance| instance.state == InstanceState::Alive).count();
    summary.insert("alive".into(), alive.into());
    let speed = cumulative_speed(counted);
    summary.insert("execs_per_sec".into(), speed.into());
    let instances: Vec<Value> = found.iter().map(instance).collect();
    let value = json!({"instances": instances, "summary": summary});
    format!("{value:#}\n")
}

fn instance(instance: &Instance) -> Value {
    let of_domain = |name: &str| name.starts_with("dsf");
    let stats = instance.stats.iter().filter(|(name, _)| !of_domain(name));
    let stats: Map<String, Value> =
        stats.map(|(name, value)| (name.clone(), typed(value))).collect();
    let domains: Vec<Value> = domains(instance)
        .iter()
        .map(|d| {
            json!({
                "name": d.name, "reducer": d.reducer, "keys": d.keys, "best_key": d.best_key,
                "best": d.best, "best_place": d.place, "waypoints": d.waypoints
            })
        })
        .collect();
    json!({
        "name": instance.name,
        "folder": instance.folder.to_string_lossy(),
        "state": instance.state.word(),
        "stats": stats,
        "domains": domains,
    })
}

/// Converts numbers and percentages to JSON numbers.
fn typed(value: &str) -> Value {
    let digits = value.strip_suffix('%').unwrap_or(value);
    if let Ok(number) = digits.parse::<i64>() {
        return number.into();
    }
    // Excludes `nan` and similar.
    match digits.parse::<f64>() {
        Ok(number) if digits.starts_with(|c: char| c.is_ascii_digit()) => number.into(),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::output::stats;

    fn sample(name: &str, state: InstanceState, text: &str) -> Instance {
        Instance { name: name.into(), folder: name.into(), state, stats: stats::parse(text) }
    }

    fn two() -> [Instance; 3] {
        let first = "run_time : 90061\nedges_found : 7\nexecs_done : 2500000\nexecs_per_sec : 27.75\ncorpus_count : 8\n\
            cur_item : 2\npending_favs : 1\npending_total : 3\nsaved_crashes : 2\nbitmap_cvg : 12.50%\n\
            fuzzer_pid : 7\nafl_banner : ./t\nexecs_ps_last_min : 30.00\ncycles_wo_finds : 4\n\
            dsf_domains : 9\ndsf0_name : mem\ndsf0_reducer : MAX\ndsf0_keys : 2\ndsf0_best_key : 3\n\
            dsf0_best : 99\ndsf0_best_place : demo.c:16\ndsf0_waypoints : 5\n";
        let second = "run_time : 10\nedges_found : 9\nexecs_done : 5000\nexecs_per_sec : 500\nbitmap_cvg : 20.00%\n\
            dsf_domains : 1\ndsf0_name : mem\ndsf0_reducer : MAX\ndsf0_best : 7\n";
        [
            sample("a", InstanceState::Alive, first),
            sample("b", InstanceState::Alive, second),
            sample("c", InstanceState::Dead, "run_time : 5\n"),
        ]
    }

    #[test]
    fn an_instance_in_words() {
        insta::assert_snapshot!("details", details(&two()[0], true).replace(&since(0), "-"));
        assert!(details(&two()[2], false).ends_with("  Instance is dead or running remotely.\n\n"));
        let line = line(&two()[0]);
        assert_eq!(
            line,
            "a (alive): 2500000 execs, 30/sec, 8 items, 2 crashes, 0 hangs, coverage 12.50%\n"
        );
    }

    #[test]
    fn all_instances_together() {
        let all = two();
        let alive: Vec<&Instance> = all[..2].iter().collect();
        insta::assert_snapshot!("summary", summary(&all, &alive, false));
        let nobody = summary(&[], &[], false);
        assert!(nobody.contains("Cycles without finds : not available"), "{nobody}");
    }

    #[test]
    fn json_has_types() {
        let all = two();
        let alive: Vec<&Instance> = all[..2].iter().collect();
        let value: Value = serde_json::from_str(&json(&all, &alive)).unwrap();
        assert_eq!(value["summary"]["execs_done"], 2_505_000);
        assert_eq!(
            (&value["summary"]["edges_found"], &value["summary"]["alive"]),
            (&json!(9), &json!(2))
        );
        assert_eq!(value["instances"][0]["stats"]["bitmap_cvg"], 12.5);
        assert_eq!(value["instances"][0]["domains"][0]["best_place"], "demo.c:16");
        assert_eq!(value["instances"][0]["domains"].as_array().unwrap().len(), 1);
        assert_eq!(value["instances"][2]["state"], "dead");
        assert_eq!((typed("nan"), typed("++4.04c")), ("nan".into(), "++4.04c".into()));
    }

    #[test]
    fn durations_have_two_units() {
        let shown = [0, 3, 63, 7200, 90_061].map(duration);
        let expected = [
            "0 seconds",
            "3 seconds",
            "1 minutes, 3 seconds",
            "2 hours, 0 minutes",
            "1 days, 1 hours",
        ];
        assert_eq!(shown, expected);
    }
}
