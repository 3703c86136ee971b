//! Custom mutators in a campaign: the order of their calls, and the use of their results.

use super::*;
use crate::mutators::fake::{Calls, FakeMutator};
use crate::mutators::{Hook, Hooks, Made};

const ALL: [Hook; 10] = [
    Hook::FuzzCount,
    Hook::Fuzz,
    Hook::Describe,
    Hook::PostProcess,
    Hook::Trim,
    Hook::Havoc,
    Hook::QueueGet,
    Hook::QueueNewEntry,
    Hook::FuzzSend,
    Hook::PostRun,
];

/// A mutator that returns its input, and trims to three letters.
fn echo(hooks: &[Hook], calls: &Calls) -> FakeMutator {
    FakeMutator::new(hooks, calls, |input, out| {
        out.extend_from_slice(if input.is_empty() { b"xxx" } else { input });
        Ok(Made::Input)
    })
}

fn with_one(
    options: Options,
    executor: FakeExecutor,
    mutator: FakeMutator,
) -> (Campaign, Recorder) {
    campaign_with(options, executor, Mutators::new(vec![Box::new(mutator)], 1))
}

/// The kinds of calls, without adjacent repetitions.
fn kinds(calls: &[String]) -> Vec<&str> {
    let mut kinds: Vec<_> =
        calls.iter().map(|call| call.split(' ').next().unwrap_or_default()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn hooks_are_called_in_afls_order() {
    let dir = seed_folder(&[b"xxxx"]);
    let calls = Calls::default();
    let mut options = options(dir.path(), DomainMode::Off, 1_000_000);
    options.mutation.deterministic = DeterministicStage::Skipped;
    options.limits.one_seed = true;
    let mut mutator = echo(&ALL, &calls);
    mutator.trim = (0, 1);
    let (mut campaign, _) = with_one(options, letters(), mutator);
    campaign.fuzz().unwrap();
    let calls = calls.take();
    // The calibration, whose first run is the judged one.
    let run = ["post_process", "fuzz_send", "post_run"];
    let mut expected = vec!["queue_new_entry"];
    (0..7).for_each(|_| expected.extend(run));
    expected.extend(["queue_get", "init_trim", "trim"]);
    expected.extend(run);
    expected.extend(["post_trim", "fuzz_count"]);
    (0..3).for_each(|_| {
        expected.push("fuzz");
        expected.extend(run);
    });
    expected.extend(["havoc_mutation_probability", "havoc_mutation"]);
    expected.extend(run);
    let kinds = kinds(&calls);
    assert_eq!(kinds[..expected.len()], expected, "{kinds:?}");
    // Havoc repeats this, and a stack may hold several custom steps.
    assert!(
        kinds[expected.len()..]
            .chunks(4)
            .all(|turn| { turn[0] == "havoc_mutation" && (turn.len() < 4 || turn[1..] == run) })
    );
}

#[test]
fn finds_of_a_mutator_carry_its_words_and_are_counted() {
    let dir = seed_folder(&[b"xxxx"]);
    let calls = Calls::default();
    let hooks = [Hook::Fuzz, Hook::FuzzCount, Hook::Describe, Hook::QueueNewEntry];
    let mutator = FakeMutator::new(&hooks, &calls, |_, out| {
        out.extend_from_slice(b"FUxx");
        Ok(Made::Input)
    });
    let mut options = options(dir.path(), DomainMode::Off, 1_000_000);
    options.custom.only = true;
    options.limits.one_seed = true;
    let (mut campaign, _) = with_one(options, letters(), mutator);
    campaign.fuzz().unwrap();
    let queue = names(&dir.path().join("out/queue"));
    assert_eq!(queue.len(), 2, "{queue:?}");
    assert!(queue[1].ends_with(",its_own_text,+cov"), "{queue:?}");
    let calls = calls.take();
    let about = &calls[calls.iter().position(|call| call == "describe").unwrap()..][..2];
    assert!(about[1].contains("queue/id:000001") && about[1].ends_with(" true"), "{about:?}");
    assert_eq!(campaign.fuzzer.progress.yield_of("fake").finds, 1);
    // Only the mutator's three inputs, and the calibration of both seeds.
    assert_eq!(campaign.fuzzer.target().execs(), 7 + campaign.fuzzer.progress.trim_execs + 3 + 7);
}

#[test]
fn a_find_is_saved_as_the_target_got_it_unless_the_original_is_wanted() {
    for keep_original in [false, true] {
        let dir = seed_folder(&[b"xxxx"]);
        let calls = Calls::default();
        // Post-processing corrects the first letter.
        let mutator = FakeMutator::new(&[Hook::PostProcess], &calls, |input, out| {
            out.extend_from_slice(input);
            out[0] = b'F';
            Ok(Made::Input)
        });
        let mut options = options(dir.path(), DomainMode::Off, TO_THE_TOP);
        options.custom.keep_original = keep_original;
        let (mut campaign, _) = with_one(options, letters(), mutator);
        campaign.fuzz().unwrap();
        let crashes = dir.path().join("out/crashes");
        let name = &names(&crashes)[0];
        let saved = std::fs::read(crashes.join(name)).unwrap();
        assert_eq!(&saved[1..4], b"UZ!");
        assert_eq!(saved[0] == b'F', !keep_original, "{saved:?}");
    }
}

#[test]
fn a_mutator_that_changes_nothing_changes_nothing() {
    let (first, second) = (seed_folder(&[b"xxxx"]), seed_folder(&[b"xxxx"]));
    let (_, queue, crashes) = climb(first.path());
    let calls = Calls::default();
    let mut mutator = echo(&[Hook::Havoc], &calls);
    mutator.probability = 6;
    let (mut campaign, _) =
        with_one(options(second.path(), DomainMode::Off, TO_THE_TOP), letters(), mutator);
    campaign.fuzz().unwrap();
    assert!(calls.take().iter().filter(|call| *call == "havoc_mutation").count() > 1000);
    assert_eq!(timeless(&names(&second.path().join("out/queue"))), timeless(&queue));
    assert_eq!(timeless(&names(&second.path().join("out/crashes"))), timeless(&crashes));
}

#[test]
fn seeds_that_a_mutator_does_not_want_are_passed_over() {
    let dir = seed_folder(&[b"xxxx"]);
    let calls = Calls::default();
    let mut mutator = echo(&[Hook::QueueGet], &calls);
    mutator.wanted = false;
    let (mut campaign, _) =
        with_one(options(dir.path(), DomainMode::Off, 1_000_000), letters(), mutator);
    assert!(matches!(campaign.fuzz(), Err(CampaignError::NothingRuns { .. })));
    assert!(kinds(&calls.take()).iter().all(|kind| *kind == "queue_get"));
    assert_eq!(campaign.fuzzer.target().execs(), 7);
}

#[test]
fn hooks_are_a_set() {
    let set: Hooks = [Hook::Fuzz, Hook::PostRun].into_iter().collect();
    assert!(set.has(Hook::Fuzz) && !set.has(Hook::Describe));
    assert!(!set.without(Hook::Fuzz).has_any(&[Hook::Fuzz, Hook::Trim]));
}
