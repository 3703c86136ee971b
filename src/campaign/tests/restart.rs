//! Files of an earlier process are checked before use: whatever they contain, the campaign continues.

use std::fs;
use std::path::Path;

use rand_core::SeedableRng;
use serde_json::{Value, json};

use super::{Campaign, Recorder, campaign, options, seed_folder};
use crate::config::options::{DomainMode, Input, Options};
use crate::engine::domain::{Domain, Reducer};
use crate::engine::executor::ExitKind;
use crate::engine::fake::FakeExecutor;
use crate::engine::stage::Stages;
use crate::event::{Event, Snapshot, StopReason};
use crate::mutate::{Rng, below};

/// A target with edges by each of four bytes, a key by their sum, and one byte that crashes.
fn target() -> FakeExecutor {
    let name = "sum".to_owned();
    let domain = Domain { name, start: 0, size: 8, reducer: Reducer::Max, initial: 0 };
    FakeExecutor::new(64, vec![domain], |input, edges, values| {
        for (at, byte) in input.iter().take(4).enumerate() {
            edges[at * 8 + usize::from(byte >> 5)] = 1;
        }
        values[3] = input.iter().take(4).map(|byte| u32::from(*byte)).sum();
        if input.first() == Some(&0xEE) { ExitKind::Crash { signal: 6 } } else { ExitKind::Ok }
    })
}

fn begun() -> tempfile::TempDir {
    let dir = seed_folder(&[b"abcd", b"wxyz"]);
    let (mut first, _) = campaign(options(dir.path(), DomainMode::Guide, 20_000), target());
    first.fuzz().unwrap();
    dir
}

/// Resumes for a moment; returns the messages.
fn resumed(root: &Path) -> Vec<String> {
    let options = Options { input: Input::Resume, ..options(root, DomainMode::Guide, 60) };
    let (mut next, Recorder(events)) = campaign(options, target());
    assert_eq!(next.fuzz().unwrap(), StopReason::ExecLimit);
    let said = |event: &Event| match event {
        Event::Warning { message } | Event::Notice { message } => Some(message.clone()),
        _ => None,
    };
    let events = events.borrow();
    events.iter().filter_map(said).collect()
}

/// Number of leaves of a JSON value.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(leaves).sum::<usize>().max(1),
        Value::Object(values) => values.values().map(leaves).sum::<usize>().max(1),
        _ => 1,
    }
}

/// The leaf with this number.
fn leaf(value: &mut Value, number: usize) -> &mut Value {
    let mut left = number;
    let mut skipped = |value: &Value| {
        let count = leaves(value);
        let skips = left >= count;
        left -= if skips { count } else { 0 };
        !skips
    };
    let is_empty = leaves(value) == 1
        && !matches!(value, Value::Array(v) if !v.is_empty())
        && !matches!(value, Value::Object(v) if !v.is_empty());
    if is_empty {
        return value;
    }
    let next = match value {
        Value::Array(values) => values.iter_mut().find(|value| skipped(value)),
        Value::Object(values) => values.values_mut().find(|value| skipped(value)),
        _ => None,
    };
    leaf(next.unwrap(), left)
}

/// A state with one to three values replaced, without its hash, as in a file written by hand.
fn changed(state: &Value, rng: &mut Rng) -> Vec<u8> {
    let mut state = state.clone();
    for _ in 0..=below(rng, 2) {
        let hostile = [
            json!(u64::MAX),
            json!(1_u64 << 63),
            json!(u32::MAX),
            json!(u32::MAX - 1),
            json!(1 << 24),
            json!(64),
            json!(0),
            json!(-1),
            json!(1e300),
            json!(true),
            json!("\u{0}\u{1b}[2J"),
            json!([]),
            json!([4_294_967_295_u32]),
            json!([[4_294_967_295_u32, 0]]),
            json!({}),
            Value::Null,
        ];
        let place = below(rng, leaves(&state) as u32) as usize;
        *leaf(&mut state, place) = hostile[below(rng, hostile.len() as u32) as usize].clone();
    }
    serde_json::to_vec(&state).unwrap()
}

#[test]
fn whatever_the_state_holds_the_campaign_goes_on() {
    let dir = begun();
    let path = dir.path().join("out/default/state.json");
    let written = fs::read(&path).unwrap();
    let mut state: Value = serde_json::from_slice(&written).unwrap();
    state.as_object_mut().unwrap().remove("check").unwrap();
    let mut rng = Rng::seed_from_u64(7);
    let mut dropped = 0;
    for round in 0..240 {
        let text = match round % 3 {
            0 => {
                let mut bytes = written.clone();
                let place = below(&mut rng, bytes.len() as u32) as usize;
                bytes[place] ^= 1 << below(&mut rng, 8);
                bytes
            }
            _ => changed(&state, &mut rng),
        };
        fs::write(&path, &text).unwrap();
        let said = resumed(dir.path());
        let warned = said.iter().filter(|line| line.contains("state.json")).count();
        assert!(warned <= 1, "{said:?}");
        dropped += warned;
    }
    assert!(dropped > 120, "{dropped}");
}

#[test]
fn values_that_once_ended_the_process_are_named() {
    let dir = begun();
    let path = dir.path().join("out/default/state.json");
    let state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let spoiled = |change: &dyn Fn(&mut Value)| {
        let mut state = state.clone();
        state.as_object_mut().unwrap().remove("check");
        change(&mut state);
        fs::write(&path, serde_json::to_vec(&state).unwrap()).unwrap();
        resumed(dir.path()).join("\n")
    };
    for edge in [u32::MAX, 70_000] {
        let said = spoiled(&|state| state["seeds"][0]["trace"] = json!([edge]));
        assert!(said.contains("an entry has edges that do not exist"), "{said}");
    }
    let said = spoiled(&|state| state["judge"]["map_size"] = json!(1_u64 << 63));
    assert!(said.contains("its map is not that of the target"), "{said}");
    let said = spoiled(&|state| state["counters"]["total_crashes"] = json!(u64::MAX));
    assert!(said.contains("its counters are impossible"), "{said}");
}

#[test]
fn the_other_files_are_checked_as_well() {
    let dir = begun();
    let instance = dir.path().join("out/default");
    let numbers: String = ["run_time", "execs_done", "cycles_done", "corpus_found", "last_find"]
        .map(|name| format!("{name:<18}: {}\n", u64::MAX))
        .concat();
    fs::write(instance.join("fuzzer_stats"), numbers).unwrap();
    fs::write(instance.join("plot_data"), "# relative_time\n1, 2,").unwrap();
    for name in ["id:4294967295,src:4294967295", "id:000001,src:999999,op:x", "id:9,orig:"] {
        fs::write(instance.join("queue").join(name), name).unwrap();
    }
    for name in ["id:4294967295,sig:99", "id:000900,sig:06"] {
        fs::write(instance.join("crashes").join(name), name).unwrap();
    }
    let said = resumed(dir.path());
    assert!(said.iter().any(|line| line.contains("fuzzer_stats holds numbers")), "{said:?}");
    // Names that no campaign assigns do not use up numbers.
    let limit = Options { input: Input::Resume, ..options(dir.path(), DomainMode::Guide, 1) };
    let (mut next, _) = campaign(limit, target());
    next.fuzz().unwrap();
    assert_eq!(next.outside.statistics.saved_crashes, 901);
}

#[test]
fn nothing_that_is_published_runs_backwards_while_a_queue_is_read() {
    let dir = begun();
    let instance = dir.path().join("out/default");
    fs::write(instance.join("crashes/id:000012,sig:06"), "\u{EE}").unwrap();
    fs::remove_file(instance.join("state.json")).unwrap();
    let entries = super::names(&instance.join("queue")).len() as u64;
    let numbers = format!("corpus_count : {entries}\nsaved_crashes : 13\nedges_found : 9\n");
    fs::write(instance.join("fuzzer_stats"), numbers).unwrap();
    let resumed = Options { input: Input::Resume, ..options(dir.path(), DomainMode::Guide, 1) };
    let (mut next, _) = campaign(resumed, target());
    let shown = |next: &mut Campaign| {
        let Snapshot { corpus, finds, coverage, .. } = next.outside.snapshot(&next.fuzzer);
        assert_eq!((corpus.corpus_count, finds.saved_crashes), (entries, 13));
        assert!(coverage.edges_found >= 9, "{}", coverage.edges_found);
    };
    shown(&mut next);
    // Ended before the first entry was imported.
    next.outside.limits.stop.ask();
    next.import_seeds(&mut Stages::new()).unwrap();
    assert_eq!(next.fuzzer.corpus.len(), 0);
    shown(&mut next);
    drop(next);
    let resumed = Options { input: Input::Resume, ..options(dir.path(), DomainMode::Guide, 1) };
    let (mut next, _) = campaign(resumed, target());
    next.import_seeds(&mut Stages::new()).unwrap();
    shown(&mut next);
}

#[test]
fn the_first_pass_is_no_finished_cycle_and_runs_of_trimming_count() {
    let dir = seed_folder(&[b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"]);
    let (mut first, _) = campaign(options(dir.path(), DomainMode::Off, 1), target());
    first.import_seeds(&mut Stages::new()).unwrap();
    let id = first.fuzzer.scheduler.pick(&first.fuzzer.corpus, &mut first.fuzzer.rng).unwrap();
    assert_eq!(first.fuzzer.scheduler.cycles(), 0);
    first.turn(id, &mut Stages::new()).unwrap();
    let trim = first.fuzzer.progress.yield_of("trim").execs;
    assert!(trim > 0 && trim == first.fuzzer.progress.trim_execs, "{trim}");
    first.fuzzer.scheduler.pick(&first.fuzzer.corpus, &mut first.fuzzer.rng).unwrap();
    assert_eq!(first.fuzzer.scheduler.cycles(), u64::from(first.fuzzer.corpus.len() == 1));
}

#[test]
fn entries_that_are_deleted_meanwhile_are_written_again() {
    let dir = begun();
    let queue = dir.path().join("out/default/queue");
    let before = super::names(&queue);
    let resumed = Options { input: Input::Resume, ..options(dir.path(), DomainMode::Guide, 1) };
    let (mut next, Recorder(events)) = campaign(resumed, target());
    next.import_seeds(&mut Stages::new()).unwrap();
    let content = fs::read(queue.join(&before[1])).unwrap();
    fs::remove_dir_all(&queue).unwrap();
    next.state.save(&mut next.fuzzer, &mut next.outside);
    assert_eq!(super::names(&queue), before);
    assert_eq!(fs::read(queue.join(&before[1])).unwrap(), content);
    let said = |text: &str| {
        let says =
            |event: &Event| matches!(event, Event::Warning { message } if message.contains(text));
        events.borrow().iter().filter(|event| says(event)).count()
    };
    assert_eq!(said("are gone: they are written again"), 1);
    next.state.save(&mut next.fuzzer, &mut next.outside);
    assert_eq!(said("are gone: they are written again"), 1);
    // Another campaign's folder is left alone.
    let instance = dir.path().join("out/default");
    fs::rename(&instance, dir.path().join("moved")).unwrap();
    fs::create_dir(&instance).unwrap();
    let error = next.outside.restore_queue(&next.fuzzer).unwrap_err();
    assert!(error.to_string().contains("was removed or replaced"), "{error}");
    assert_eq!(fs::read_dir(&instance).unwrap().count(), 0);
}

#[test]
fn seeds_that_a_killed_start_had_not_taken_in_come_with_the_next() {
    let dir = seed_folder(&[b"abcd", b"wxyz", b"ABCD"]);
    let (mut first, _) = campaign(options(dir.path(), DomainMode::Guide, 1), target());
    // Killed when one of three was in the queue.
    first.outside.output.note_source(Some(&dir.path().join("in"))).unwrap();
    first.outside.output.save_seed("id:000000,time:0,execs:0,orig:0", b"abcd").unwrap();
    drop(first);
    let said = resumed(dir.path());
    assert!(said.iter().any(|line| line.contains("2 more seeds")), "{said:?}");
    let queue = super::names(&dir.path().join("out/queue"));
    let seeds = queue.iter().filter(|name| name.contains("orig:")).count();
    assert_eq!(seeds, 3, "{queue:?}");
    assert_eq!(fs::read_dir(dir.path().join("in")).unwrap().count(), 3);
    assert!(!resumed(dir.path()).iter().any(|line| line.contains("more seeds")));
}
