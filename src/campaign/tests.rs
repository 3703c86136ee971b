//! The whole loop on a fake target, with a fixed seed: no process, exact results.

mod mutators;
mod orders;
mod restart;
mod stages;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::start::assemble;
use super::{BadSeeds, Campaign, CampaignError};
use crate::config::options::*;
use crate::disk::output::OutputDir;
use crate::disk::sync::{Peers, SyncFolders};
use crate::engine::domain::{Domain, Reducer};
use crate::engine::executor::{Executor, ExitKind};
use crate::engine::fake::FakeExecutor;
use crate::engine::stage::Stages;
use crate::event::{Event, EventBus, EventSink, StopReason};
use crate::exec::Hooked;
use crate::mutate::dictionary::Dictionary;
use crate::mutators::Mutators;
use crate::sys::stop::Stop;

fn options(root: &Path, domains: DomainMode, execs: u64) -> Options {
    Options {
        input: Input::Directory(root.join("in")),
        output: OutputOptions {
            root: root.join("out"),
            instance: "default".into(),
            links: true,
            main_node: false,
            extension: None,
            tmpdir: None,
            stats_interval: Duration::from_secs(60),
            crash_readme: true,
            command_line: vec!["ffuzz".into()],
            resume: None,
            environment: Vec::new(),
            autoresume: false,
        },
        target: TargetOptions::for_command(vec!["target".into()]),
        schedule: Schedule::Explore,
        domains,
        triage: None,
        mutation: MutationOptions::default(),
        custom: CustomOptions::default(),
        sync: crate::config::options::SyncOptions::default(),
        limits: Limits { execs: Some(execs), ..Limits::default() },
        coverage: crate::config::options::CoverageOptions::default(),
        seeds: SeedPolicy::default(),
        calibration: CalibrationOptions::default(),
        sanitizers: crate::config::options::SanitizerOptions::default(),
        logger: crate::config::options::Logger::default(),
        findings: FindingOptions::default(),
        statsd: None,
        control: None,
        metrics: None,
        ui: UiMode::Quiet,
        colors: Colors::All,
        banner: String::new(),
        crash_command: None,
        rng_seed: Some(1),
    }
}

#[derive(Clone, Default)]
struct Recorder(Rc<RefCell<Vec<Event>>>);

impl EventSink for Recorder {
    fn handle(&mut self, event: &Event) {
        if !matches!(event, Event::Tick(_)) {
            self.0.borrow_mut().push(event.clone());
        }
    }
}

fn campaign(options: Options, executor: FakeExecutor) -> (Campaign, Recorder) {
    campaign_with(options, executor, Mutators::default())
}

fn campaign_with(
    options: Options,
    executor: FakeExecutor,
    mutators: Mutators,
) -> (Campaign, Recorder) {
    let resume = options.input == Input::Resume;
    let output = OutputDir::open(&options.output, resume).unwrap();
    let recorder = Recorder::default();
    let mut bus = EventBus::default();
    bus.add(Box::new(recorder.clone()));
    let target = Hooked::new(Box::new(executor), mutators);
    let campaign = assemble(options, target, output, bus, Dictionary::default(), Stop::default());
    (campaign, recorder)
}

fn seed_folder(seeds: &[&[u8]]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    for (index, seed) in seeds.iter().enumerate() {
        std::fs::write(dir.path().join(format!("in/{index}")), seed).unwrap();
    }
    dir
}

/// Number of runs in which a campaign with the fixed seed matches all letters.
const TO_THE_TOP: u64 = 400_000;

/// A target in which each matching letter of MAGIC is one more edge, and all of them crash.
fn letters() -> FakeExecutor {
    const MAGIC: &[u8] = b"FUZ!";
    FakeExecutor::new(16, vec![], |input, edges, _| {
        let steps = MAGIC.iter().zip(input).take_while(|(a, b)| a == b).count();
        edges[..=steps].fill(1);
        if steps == MAGIC.len() { ExitKind::Crash { signal: 6 } } else { ExitKind::Ok }
    })
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("id:"))
        .collect();
    names.sort();
    names
}

/// Names without the wall time.
fn timeless(names: &[String]) -> Vec<String> {
    let keep = |name: &String| {
        let fields: Vec<_> = name.split(',').filter(|field| !field.starts_with("time:")).collect();
        fields.join(",")
    };
    names.iter().map(keep).collect()
}

fn climb(root: &Path) -> (StopReason, Vec<String>, Vec<String>) {
    let (mut campaign, _) = campaign(options(root, DomainMode::Off, TO_THE_TOP), letters());
    let reason = campaign.fuzz().unwrap();
    (reason, names(&root.join("out/queue")), names(&root.join("out/crashes")))
}

#[test]
fn coverage_leads_to_the_crash_and_a_fixed_seed_repeats_it() {
    let (first, second) = (seed_folder(&[b"xxxx"]), seed_folder(&[b"xxxx"]));
    let (reason, queue, crashes) = climb(first.path());
    assert_eq!(reason, StopReason::ExecLimit);
    assert_eq!(queue.len(), 4, "{queue:?}");
    assert!(queue[0].ends_with("orig:0") && queue[1..].iter().all(|name| name.ends_with("+cov")));
    assert_eq!(crashes.len(), 1);
    assert!(crashes[0].starts_with("id:000000,sig:06,src:00000"), "{crashes:?}");
    let content = std::fs::read(first.path().join("out/crashes").join(&crashes[0])).unwrap();
    assert!(content.starts_with(b"FUZ!"));
    let (_, queue_again, crashes_again) = climb(second.path());
    assert_eq!(timeless(&queue), timeless(&queue_again));
    assert_eq!(timeless(&crashes), timeless(&crashes_again));
}

/// A target with one key, the first byte's value, without any new edge.
fn first_byte() -> FakeExecutor {
    let name = "byte".to_owned();
    let domain = Domain { name, start: 0, size: 4, reducer: Reducer::Max, initial: 0 };
    FakeExecutor::new(8, vec![domain], |input, edges, values| {
        edges[0] = 1;
        values[2] = input.first().copied().unwrap_or(0).into();
        ExitKind::Ok
    })
}

#[test]
fn waypoints_are_kept_only_when_domains_guide() {
    let guided = seed_folder(&[b"\x10"]);
    let (mut with, _) = campaign(options(guided.path(), DomainMode::Guide, 2_000), first_byte());
    with.fuzz().unwrap();
    let queue = names(&guided.path().join("out/queue"));
    assert!(queue.len() > 1 && queue[1..].iter().all(|name| name.ends_with(",+dsf")), "{queue:?}");
    assert_eq!(with.fuzzer.judge().aggregates().values()[2], 0xff);
    let log = std::fs::read_to_string(guided.path().join("out/fuzzfactory.log")).unwrap();
    assert!(log.contains("DSF update at key=0x000002"), "{log}");

    let plain = seed_folder(&[b"\x10"]);
    let (mut without, _) = campaign(options(plain.path(), DomainMode::Off, 2_000), first_byte());
    without.fuzz().unwrap();
    assert_eq!(names(&plain.path().join("out/queue")).len(), 1);
}

#[test]
fn recorded_inputs_stay_out_of_the_queue() {
    let dir = seed_folder(&[b"\x10"]);
    let (mut recording, _) = campaign(options(dir.path(), DomainMode::Record, 2_000), first_byte());
    recording.fuzz().unwrap();
    assert_eq!(names(&dir.path().join("out/queue")).len(), 1);
    assert!(std::fs::read_dir(dir.path().join("out/default/perf_inputs")).unwrap().count() > 0);
}

#[test]
fn a_seed_owns_what_it_reaches_even_without_new_coverage() {
    let dir = seed_folder(&[b"\x10", b"\x80"]);
    let (mut campaign, _) = campaign(options(dir.path(), DomainMode::Guide, 20), first_byte());
    campaign.fuzz().unwrap();
    assert!(campaign.fuzzer.scheduler.is_owner(crate::engine::corpus::SeedId(1)));
    assert!(!campaign.fuzzer.scheduler.is_owner(crate::engine::corpus::SeedId(0)));
}

#[test]
fn a_resumed_campaign_keeps_names_and_values() {
    let dir = seed_folder(&[b"\x10"]);
    let (mut first, _) = campaign(options(dir.path(), DomainMode::Guide, 2_000), first_byte());
    first.fuzz().unwrap();
    let before = names(&dir.path().join("out/queue"));
    let best = first.fuzzer.judge().aggregates().values().to_vec();
    drop(first);
    let resumed = Options { input: Input::Resume, ..options(dir.path(), DomainMode::Guide, 1) };
    let (mut second, _) = campaign(resumed, first_byte());
    second.fuzz().unwrap();
    assert_eq!(names(&dir.path().join("out/queue")), before);
    assert_eq!(second.fuzzer.judge().aggregates().values(), best);
}

#[test]
fn crashing_seeds_are_donors_only_and_none_else_is_an_error() {
    let dir = seed_folder(&[b"FUZ!", b"x"]);
    let (mut good, recorder) = campaign(options(dir.path(), DomainMode::Off, 100), letters());
    good.fuzz().unwrap();
    assert!(good.fuzzer.corpus.iter().next().unwrap().disabled);
    let warned =
        recorder.0.borrow().iter().any(
            |event| matches!(event, Event::Warning { message } if message.contains("crashes")),
        );
    assert!(warned);

    let dir = seed_folder(&[b"FUZ!"]);
    let (mut bad, _) = campaign(options(dir.path(), DomainMode::Off, 100), letters());
    let expected = BadSeeds { crash: 1, ..BadSeeds::default() };
    assert!(matches!(bad.fuzz(), Err(CampaignError::NoUsableSeed(bad)) if bad == expected));
}

/// The first run of a seed may end well, and those of its calibration not.
#[test]
fn a_seed_that_fails_in_its_calibration_is_counted() {
    for (exit, expected) in [
        (ExitKind::Hang, BadSeeds { slow: 1, ..BadSeeds::default() }),
        (ExitKind::Crash { signal: 11 }, BadSeeds { crash: 1, ..BadSeeds::default() }),
    ] {
        let dir = seed_folder(&[b"x"]);
        let mut runs = 0;
        let executor = FakeExecutor::new(8, vec![], move |_, edges, _| {
            edges[0] = 1;
            runs += 1;
            if runs > 3 { exit } else { ExitKind::Ok }
        });
        let (mut bad, _) = campaign(options(dir.path(), DomainMode::Off, 100), executor);
        assert!(matches!(bad.fuzz(), Err(CampaignError::NoUsableSeed(bad)) if bad == expected));
    }
}

#[test]
fn a_slow_input_gets_a_second_chance_before_it_is_a_hang() {
    let dir = seed_folder(&[b"x"]);
    let mut runs_of_h = 0;
    let executor = FakeExecutor::new(8, vec![], move |input, edges, _| {
        edges[0] = 1;
        if input.first() != Some(&b'h') {
            return ExitKind::Ok;
        }
        edges[1] = 1;
        runs_of_h += 1;
        // The first run times out, and the patient one crashes.
        if runs_of_h == 1 { ExitKind::Hang } else { ExitKind::Crash { signal: 11 } }
    });
    let (mut campaign, _) = campaign(options(dir.path(), DomainMode::Off, 5_000), executor);
    campaign.fuzz().unwrap();
    assert_eq!(names(&dir.path().join("out/hangs")).len(), 0);
    assert_eq!(names(&dir.path().join("out/crashes")).len(), 1);
}

/// New coverage requires an 'h'. The first run of such an input takes too long, the second one
/// takes `then`.
fn found_behind_a_hang(then: Duration) -> usize {
    let dir = seed_folder(&[b"x"]);
    let (quick, mut runs_of_h) = (Duration::from_micros(100), 0);
    let clock = Rc::new(Cell::new(quick));
    let time = clock.clone();
    let executor = FakeExecutor::new(8, vec![], move |input, edges, _| {
        edges[0] = 1;
        time.set(quick);
        if input.first() != Some(&b'h') {
            return ExitKind::Ok;
        }
        edges[1] = 1;
        runs_of_h += 1;
        if runs_of_h == 2 {
            time.set(then);
        }
        if runs_of_h == 1 { ExitKind::Hang } else { ExitKind::Ok }
    });
    let executor = executor.timed_by(&clock);
    let (mut campaign, _) = campaign(options(dir.path(), DomainMode::Off, 20_000), executor);
    campaign.fuzz().unwrap();
    assert_eq!(names(&dir.path().join("out/hangs")).len(), 0);
    names(&dir.path().join("out/queue")).len()
}

#[test]
fn what_a_dropped_timeout_has_shown_stays_new() {
    // The machine was slow.
    assert_eq!(found_behind_a_hang(Duration::from_millis(1)), 2);
    // Too slow for a seed; the next input with this coverage is not.
    assert_eq!(found_behind_a_hang(Duration::from_millis(500)), 2);
}

#[test]
fn a_crash_of_the_confirming_run_is_kept() {
    let dir = seed_folder(&[b"\x10"]);
    let (mut first, mut best) = (first_byte(), 0x10);
    let domains = first.info().domains().to_vec();
    let executor = FakeExecutor::new(8, domains, move |input, edges, values| {
        let run = first.observe(input).unwrap();
        edges.copy_from_slice(run.edges);
        values.copy_from_slice(run.dsf.values);
        // It crashes the second time.
        let again = values[2] > 0x10 && values[2] == best;
        best = values[2];
        if again { ExitKind::Crash { signal: 11 } } else { ExitKind::Ok }
    });
    let (mut campaign, _) = campaign(options(dir.path(), DomainMode::Guide, 2_000), executor);
    campaign.fuzz().unwrap();
    assert_eq!(names(&dir.path().join("out/crashes")).len(), 1);
}

/// Resumes for a few runs; returns the number of known edges.
fn resume(root: &Path, executor: FakeExecutor) -> (u64, Recorder) {
    let resumed = Options { input: Input::Resume, ..options(root, DomainMode::Off, 1) };
    let (mut campaign, recorder) = campaign(resumed, executor);
    campaign.fuzz().unwrap();
    (crate::engine::coverage::found(campaign.fuzzer.judge().virgin()).0, recorder)
}

#[test]
fn what_a_repaired_target_does_with_old_crashes_stays_new() {
    let dir = seed_folder(&[b"xxxx"]);
    climb(dir.path());
    assert_eq!(names(&dir.path().join("out/crashes")).len(), 1);
    std::fs::remove_file(dir.path().join("out/default/state.json")).unwrap();
    let repaired = FakeExecutor::new(16, vec![], |input, edges, _| {
        let steps = b"FUZ!".iter().zip(input).take_while(|(a, b)| a == b).count();
        edges[..=steps].fill(1);
        ExitKind::Ok
    });
    assert_eq!(resume(dir.path(), repaired).0, 4);
}

#[test]
fn what_was_learned_from_a_lost_entry_is_forgotten() {
    let dir = seed_folder(&[b"xxxx"]);
    climb(dir.path());
    let queue = dir.path().join("out/queue");
    let last = names(&queue).pop().unwrap();
    for empty in [true, false] {
        let saved = std::fs::read(queue.join(&last)).unwrap();
        match empty {
            true => std::fs::write(queue.join(&last), b"").unwrap(),
            false => std::fs::remove_file(queue.join(&last)).unwrap(),
        }
        let (edges, recorder) = resume(dir.path(), letters());
        assert_eq!(edges, 3, "empty: {empty}");
        let reported = recorder.0.borrow().iter().any(
            |event| matches!(event, Event::Warning { message } if message.contains("1 queue entries are gone or empty")),
        );
        assert!(reported, "empty: {empty}");
        std::fs::write(queue.join(&last), saved).unwrap();
        assert_eq!(resume(dir.path(), letters()).0, 4);
    }
}

#[test]
fn entries_with_a_number_that_is_taken_get_one_of_their_own_once() {
    let dir = seed_folder(&[b"xxxx"]);
    climb(dir.path());
    let queue = dir.path().join("out/queue");
    let own = names(&queue);
    for (index, name) in own.iter().enumerate() {
        std::fs::copy(queue.join(name), queue.join(format!("id:{index:06},orig:other"))).unwrap();
    }
    std::fs::write(queue.join("id:4000000000,orig:far"), b"far").unwrap();
    resume(dir.path(), letters());
    let all = names(&queue);
    assert_eq!(all.len(), 2 * own.len() + 1, "{all:?}");
    let numbers: Vec<&str> = all.iter().map(|name| &name[..9]).collect();
    let wanted: Vec<String> = (0..all.len()).map(|number| format!("id:{number:06}")).collect();
    assert_eq!(numbers, wanted);
    resume(dir.path(), letters());
    assert_eq!(names(&queue), all);
}

#[test]
fn all_events_of_a_short_campaign_come_in_order() {
    let dir = seed_folder(&[b"xxxx"]);
    let (mut campaign, recorder) =
        campaign(options(dir.path(), DomainMode::Off, TO_THE_TOP), letters());
    campaign.fuzz().unwrap();
    let events = recorder.0.borrow();
    assert!(matches!(events[0], Event::Notice { .. }));
    assert!(matches!(events[1], Event::SeedImported { index: 1, total: 1, .. }));
    assert!(matches!(events[2], Event::Started));
    assert!(matches!(events.last(), Some(Event::Stopped { reason: StopReason::ExecLimit, .. })));
    let crashes = events.iter().filter(|event| matches!(event, Event::CrashSaved { .. }));
    assert_eq!(crashes.count(), 1);
}

#[test]
fn after_a_request_to_stop_the_last_look_at_others_misses_nothing() {
    let dir = seed_folder(&[b"x"]);
    std::fs::create_dir(dir.path().join("theirs")).unwrap();
    let places = SyncFolders { folders: vec![dir.path().join("theirs")], ..SyncFolders::default() };
    let (mut campaign, _) = campaign(options(dir.path(), DomainMode::Off, 1000), letters());
    campaign.import_seeds(&mut Stages::new()).unwrap();
    campaign.imports = Some(super::imports::Imports::new(Peers::new(places)));
    for (name, input) in [("a", "F"), ("b", "FU"), ("c", "FUZ")] {
        std::fs::write(dir.path().join("theirs").join(name), input).unwrap();
    }
    campaign.outside.limits.stop.ask();
    campaign.import_all().unwrap();
    assert_eq!(campaign.fuzzer.corpus.len(), 4);
}

/// Every input is a timeout of a new kind.
#[test]
fn timeouts_take_a_share_of_the_time() {
    let dir = seed_folder(&[b"a"]);
    let mut kinds = 0;
    let clock = Rc::new(Cell::new(Duration::from_millis(1)));
    let now = Rc::clone(&clock);
    let executor = FakeExecutor::new(4096, vec![], move |input, edges, _| {
        let good = input == b"a";
        now.set(Duration::from_millis(if good { 1 } else { 1000 }));
        // Each kind is seen twice: by its first run, and when it is run again.
        kinds += u32::from(!good);
        edges[if good { 0 } else { kinds as usize / 2 % 4096 }] = 1;
        if good { ExitKind::Ok } else { ExitKind::Hang }
    });
    let options = options(dir.path(), DomainMode::Off, 200);
    let (mut campaign, recorder) =
        campaign_with(options, executor.timed_by(&clock), Mutators::default());
    campaign.fuzzer.set_timeout(Duration::from_millis(100));
    campaign.fuzz().unwrap();
    let saved = campaign.outside.statistics.saved_hangs;
    assert!((3..=5).contains(&saved), "{saved}: three seconds and a tenth of next to nothing");
    let warned = |event: &Event| matches!(event, Event::Warning { message } if message.contains("AFL_HANG_TMOUT"));
    assert!(recorder.0.borrow().iter().any(warned));
    // With more time they are run again.
    campaign.outside.limits.options.execs = None;
    campaign.outside.statistics.started -= Duration::from_secs(60);
    campaign.door().look_around().unwrap();
    let later = campaign.outside.statistics.saved_hangs;
    assert!((saved + 5..=saved + 8).contains(&later), "{later}");
}

/// Every input is cut in a new way, and hangs when repeated.
#[test]
fn cut_runs_are_no_timeouts_and_are_run_again_within_the_share() {
    let dir = seed_folder(&[b"a"]);
    let mut seen = HashMap::new();
    let clock = Rc::new(Cell::new(Duration::from_millis(1)));
    let now = Rc::clone(&clock);
    let executor = FakeExecutor::new(4096, vec![], move |input, edges, _| {
        let good = input == b"a";
        let again = seen.contains_key(input);
        let number = seen.len() + 1;
        let kind = *seen.entry(input.to_vec()).or_insert(number);
        // Each run takes as long as the clock said before it.
        now.set(Duration::from_millis(if good { 1 } else { 1000 }));
        edges[if good { 0 } else { kind % 4096 }] = 1;
        match (good, again) {
            (true, _) => ExitKind::Ok,
            (false, false) => ExitKind::Cut,
            (false, true) => ExitKind::Hang,
        }
    });
    let options = options(dir.path(), DomainMode::Off, 200);
    let (mut campaign, recorder) =
        campaign_with(options, executor.timed_by(&clock), Mutators::default());
    campaign.fuzzer.set_timeout(Duration::from_millis(100));
    campaign.fuzz().unwrap();
    let statistics = &campaign.outside.statistics;
    assert!(statistics.cut_runs > 50, "{}", statistics.cut_runs);
    // The share grows with the time of a busy machine.
    assert!(statistics.saved_hangs < 25, "{}", statistics.saved_hangs);
    let warned = |event: &Event| matches!(event, Event::Warning { message } if message.contains("AFL_HANG_TMOUT"));
    assert!(!recorder.0.borrow().iter().any(warned), "a cut run is no timeout");
    let before = statistics.saved_hangs;
    campaign.outside.limits.options.execs = None;
    campaign.outside.statistics.started -= Duration::from_secs(600);
    campaign.door().look_around().unwrap();
    let later = campaign.outside.statistics.saved_hangs - before;
    assert!((30..=60).contains(&later), "{later}: a tenth of 600 s, less the time of waiting");
}
