//! Every stage of a turn on a fake target: limits, a stop, a pause and orders take effect within one batch, ticks
//! continue, and a crash is on disk before the next run.

use std::sync::mpsc::sync_channel;

use super::super::orders::PendingOrders;
use super::super::reports::TICK;
use super::*;
use crate::comparisons::log::ComparisonKind;
use crate::engine::corpus::SeedId;
use crate::engine::coverage;
use crate::engine::stage::{StageEnd, Stages, Turn};
use crate::fleet::control::{Command, Order};
use crate::mutators::fake::{Calls, FakeMutator};
use crate::mutators::{Hook, Made, Mutator};

/// Effect of each run of the stage, counted from 1; returns the end of the run.
type Script = Box<dyn FnMut(u64) -> ExitKind>;

/// A fake target with the same path for every input of two bytes or more, and a script for its runs.
#[derive(Clone)]
struct Target {
    runs: Rc<Cell<u64>>,
    script: Rc<RefCell<Script>>,
}

impl Target {
    fn new() -> Self {
        let script: Script = Box::new(|_| ExitKind::Ok);
        Self { runs: Rc::default(), script: Rc::new(RefCell::new(script)) }
    }

    fn executor(&self) -> FakeExecutor {
        let target = self.clone();
        FakeExecutor::new(16, vec![], move |input, edges, _| {
            target.runs.set(target.runs.get() + 1);
            let exit = (target.script.borrow_mut())(target.runs.get());
            edges[0] = 1;
            edges[1] = u8::from(exit != ExitKind::Ok);
            edges[2..].fill(u8::from(input.len() > 1));
            exit
        })
        .logging(|input, log| {
            for site in 0..100 {
                log.add_integers(site, ComparisonKind::Equal, 1, input[0].into(), site.into());
            }
        })
    }

    /// Restarts the count of runs at 1, with this script.
    fn does(&self, script: impl FnMut(u64) -> ExitKind + 'static) {
        self.runs.set(0);
        *self.script.borrow_mut() = Box::new(script);
    }
}

/// A mutator that always has another input.
fn endless(late: bool) -> Box<dyn Mutator> {
    let mut mutator = FakeMutator::new(&[Hook::Fuzz], &Calls::default(), |input, out| {
        out.extend_from_slice(input);
        Ok(Made::Input)
    });
    mutator.late = late;
    Box::new(mutator)
}

/// A campaign with imported seeds, in which every stage has work.
fn begun(dir: &tempfile::TempDir, target: &Target) -> (Campaign, Recorder) {
    let mutators = Mutators::new(vec![endless(false), endless(true)], 1);
    let options = options(dir.path(), DomainMode::Off, u64::MAX);
    let (mut campaign, recorder) = campaign_with(options, target.executor(), mutators);
    campaign.import_seeds(&mut Stages::new()).unwrap();
    // Some stages require favored seeds, which are known afterwards.
    campaign.fuzzer.pick();
    (campaign, recorder)
}

fn seeds() -> tempfile::TempDir {
    seed_folder(&[&[b'a'; 5000], &[b'b'; 5000], &[b'c'; 5000]])
}

/// A single stage of a turn.
struct One {
    stages: Stages<Campaign>,
    index: usize,
}

impl One {
    fn all() -> impl Iterator<Item = Self> {
        let count = Stages::<Campaign>::new().parts().0.len();
        (0..count).map(|index| Self { stages: Stages::new(), index })
    }

    fn name(&mut self) -> &'static str {
        self.stages.parts().0[self.index].name()
    }

    /// Runs it on the first usable seed.
    fn run(&mut self, campaign: &mut Campaign) -> StageEnd {
        let id = campaign.fuzzer.corpus.iter().find(|seed| !seed.disabled).unwrap().id;
        let (list, shared) = self.stages.parts();
        list[self.index].run(&mut Turn { door: campaign.door(), id, shared }).unwrap()
    }
}

fn for_each_stage(test: impl Fn(&mut One, &Target, &mut Campaign, &Recorder, &Path)) {
    for mut stage in One::all() {
        let (dir, target) = (seeds(), Target::new());
        let (mut campaign, recorder) = begun(&dir, &target);
        test(&mut stage, &target, &mut campaign, &recorder, dir.path());
    }
}

#[test]
fn every_stage_runs_when_nothing_stops_it() {
    for_each_stage(|stage, target, campaign, _, _| {
        target.does(|_| ExitKind::Ok);
        assert_eq!(stage.run(campaign), StageEnd::Finished, "{}", stage.name());
        assert!(target.runs.get() > 10, "{}: {} runs", stage.name(), target.runs.get());
    });
}

#[test]
fn limits_end_every_stage_within_one_batch() {
    let set: [fn(&mut Limits, u64); 3] = [
        |limits, execs| limits.execs = Some(execs + 4),
        |limits, _| limits.time = Some(Duration::from_nanos(1)),
        |limits, _| limits.until_crash = true,
    ];
    for (index, set) in set.into_iter().enumerate() {
        for_each_stage(|stage, target, campaign, _, _| {
            let execs = campaign.fuzzer.target().execs();
            set(&mut campaign.outside.limits.options, execs);
            campaign.outside.limits.arm(&campaign.outside.statistics);
            let crash = ExitKind::Crash { signal: 6 };
            let crashes = index == 2;
            target.does(move |run| if crashes && run == 4 { crash } else { ExitKind::Ok });
            assert_eq!(stage.run(campaign), StageEnd::TurnOver, "{} {index}", stage.name());
            assert!(target.runs.get() <= 5, "{} {index}: {}", stage.name(), target.runs.get());
            assert_eq!(
                campaign.outside.statistics.saved_crashes,
                u64::from(crashes),
                "{}",
                stage.name()
            );
        });
    }
}

/// At a thousandth of the usual speed: its stages must not delay other seeds.
#[test]
fn the_stages_of_a_slow_seed_are_short() {
    for index in 0..One::all().count() {
        let one = || One::all().nth(index).unwrap();
        let name = one().name();
        if name == "trim" {
            continue;
        }
        // Each in a separate campaign, because comparisons have a share of each campaign's time.
        let run = |exec_us| {
            let (dir, target) = (seeds(), Target::new());
            let clock = Rc::new(Cell::new(Duration::from_micros(100)));
            let mut options = options(dir.path(), DomainMode::Off, u64::MAX);
            options.rng_seed = None;
            let mutators = Mutators::new(vec![endless(false), endless(true)], 1);
            let executor = target.executor().timed_by(&clock);
            let (mut campaign, _) = campaign_with(options, executor, mutators);
            campaign.import_seeds(&mut Stages::new()).unwrap();
            campaign.fuzzer.pick();
            campaign.fuzzer.corpus.iter_mut().for_each(|seed| seed.exec_us = exec_us);
            clock.set(Duration::from_micros(exec_us));
            target.does(|_| ExitKind::Ok);
            assert_eq!(one().run(&mut campaign), StageEnd::Finished);
            target.runs.get()
        };
        let (slow, usual) = (run(100_000), run(100));
        // One run is the reference of the deterministic stage; splicing also runs a custom mutator; comparisons
        // pause.
        assert!((8..=33).contains(&slow), "{name}: {slow}");
        assert!(usual >= slow, "{name}: {usual}");
    }
}

#[test]
fn a_stop_ends_every_stage_within_one_batch() {
    for_each_stage(|stage, target, campaign, _, _| {
        let stop = campaign.outside.limits.stop.clone();
        target.does(move |run| {
            if run == 3 {
                stop.ask();
            }
            ExitKind::Ok
        });
        assert_eq!(stage.run(campaign), StageEnd::TurnOver, "{}", stage.name());
        assert!(target.runs.get() <= 4, "{}: {}", stage.name(), target.runs.get());
    });
}

#[test]
fn orders_and_a_pause_reach_every_stage_within_one_batch() {
    for_each_stage(|stage, target, campaign, recorder, _| {
        let (sender, inbox) = sync_channel(8);
        campaign.orders = Some(PendingOrders::from(inbox));
        let (recorder, name) = (recorder.clone(), stage.name());
        target.does(move |run| {
            let replies = |event: &&Event| matches!(event, Event::Reply(_));
            let answered = recorder.0.borrow().iter().filter(replies).count();
            if run == 3 {
                for (id, command) in
                    [Command::Pause, Command::Stats, Command::Resume].into_iter().enumerate()
                {
                    let order = Order { client: 1, id: Some(id as u64), command: Ok(command) };
                    sender.send(order.into()).unwrap();
                }
            }
            assert!(run <= 3 || answered == 3, "{name}: {answered} answers before run {run}");
            ExitKind::Ok
        });
        assert_eq!(stage.run(campaign), StageEnd::Finished, "{name}");
    });
}

/// Counts the ticks.
struct Ticks(Rc<Cell<u64>>);

impl EventSink for Ticks {
    fn handle(&mut self, event: &Event) {
        self.0.set(self.0.get() + u64::from(matches!(event, Event::Tick(_))));
    }
}

#[test]
fn ticks_go_on_in_every_stage() {
    for_each_stage(|stage, target, campaign, _, _| {
        let ticks = Rc::<Cell<u64>>::default();
        campaign.outside.reports.bus.add(Box::new(Ticks(Rc::clone(&ticks))));
        let (seen, name) = (Rc::clone(&ticks), stage.name());
        target.does(move |run| {
            assert!(run <= 3 || seen.get() > 0, "{name}: no tick before run {run}");
            if run == 3 {
                // A slow run, after which the next tick is due.
                std::thread::sleep(TICK);
            }
            ExitKind::Ok
        });
        stage.run(campaign);
        assert!(target.runs.get() > 3, "{name}");
    });
}

#[test]
fn a_crash_is_kept_before_the_next_run_of_every_stage() {
    for_each_stage(|stage, target, campaign, _, dir| {
        let (crashes, name) = (dir.join("out/default/crashes"), stage.name());
        // An input that crashes with a log runs once more to show its edges.
        let last = if name == "comparisons" { 4 } else { 3 };
        target.does(move |run| {
            let is_kept = names(&crashes).len() == 1;
            assert!(run <= last || is_kept, "{name}: not kept before run {run}");
            if run == 3 { ExitKind::Crash { signal: 6 } } else { ExitKind::Ok }
        });
        stage.run(campaign);
        assert!(target.runs.get() > 3, "{name}");
        assert_eq!(campaign.outside.statistics.saved_crashes, 1, "{name}");
    });
}

/// Counts `x` and crashes without any `!`.
fn counting() -> FakeExecutor {
    FakeExecutor::new(64, vec![], |input, edges, _| {
        edges[0] = u8::try_from(input.iter().filter(|b| **b == b'x').count()).unwrap();
        edges[1] = 1;
        match input.contains(&b'!') {
            true => ExitKind::Ok,
            false => ExitKind::Crash { signal: 6 },
        }
    })
}

/// Result of trimming a seed.
fn trimmed(seed: &[u8], mutators: Mutators, min_len: usize) -> (Vec<u8>, Campaign) {
    let dir = seed_folder(&[seed]);
    let mut options = options(dir.path(), DomainMode::Off, u64::MAX);
    options.mutation.min_len = min_len;
    let (mut campaign, _) = campaign_with(options, counting(), mutators);
    campaign.import_seeds(&mut Stages::new()).unwrap();
    let mut trimming = One::all().next().unwrap();
    assert_eq!(trimming.name(), "trim");
    trimming.run(&mut campaign);
    (campaign.fuzzer.corpus[SeedId(0)].data.to_vec(), campaign)
}

#[test]
fn what_changes_nothing_is_removed_and_finds_are_kept() {
    let seed = b"aaaaaaaaaaaaaaaaaaaaaaaa!xxaaaaaaaaaaaaaaaaaaaaaa";
    let (left, campaign) = trimmed(seed, Mutators::default(), 1);
    assert!(left.len() < 20, "{}", left.len());
    assert!(left.contains(&b'!') && left.iter().filter(|b| **b == b'x').count() == 2);
    assert!(campaign.outside.statistics.total_crashes > 0);
    let hash = coverage::path_hash(&{
        let mut edges = [0; 64];
        (edges[0], edges[1]) = (2, 1);
        edges
    });
    assert_eq!(campaign.fuzzer.corpus[SeedId(0)].path_hash, hash);
}

/// Trims "abc!xx" by proposals of a mutator with three steps; returns the result and the calls.
fn trimmed_by(proposals: [&'static str; 3], end: Made) -> (Vec<u8>, Vec<String>) {
    let calls = Calls::default();
    let mut next = proposals.into_iter();
    let mut mutator = FakeMutator::new(&[Hook::Trim], &calls, move |_, out| {
        let Some(proposal) = next.next() else { return Ok(end) };
        out.extend_from_slice(proposal.as_bytes());
        Ok(Made::Input)
    });
    mutator.trim = (0, 4);
    let (left, _) = trimmed(b"abc!xx", Mutators::new(vec![Box::new(mutator)], 1), 2);
    (left, calls.take())
}

#[test]
fn a_foreign_mutator_trims_in_its_own_steps() {
    // Fewer x are another behaviour; the last proposal is below the minimum length.
    let (left, calls) = trimmed_by(["ab!xx", "!x", ""], Made::Nothing);
    assert_eq!(left, b"ab!xx");
    let step = |taken: bool| ["trim".to_owned(), format!("post_trim {taken}")];
    let steps = [step(true), step(false), step(false), step(false)].concat();
    assert_eq!(calls, [vec!["init_trim abc!xx".to_owned()], steps].concat());
    // A longer result is allowed, and the mutator may end early.
    let (left, calls) = trimmed_by(["abcdefgh!xx", "!xx", "x"], Made::Over);
    assert_eq!((left, calls.len()), (b"!xx".to_vec(), 1 + 4 * 2));
}
