//! Orders on a fake target: when they are carried out and what they change.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Instant;

use super::super::orders::PendingOrders;
use super::*;
use crate::event::{InputOrigin, Reply};
use crate::fleet::control::{Command, Incoming, Order, Setting};
use crate::mutate::dictionary::Token;

/// A campaign with a fixed seed, and the sender of its orders.
fn commanded(dir: &Path, execs: u64) -> (Campaign, Recorder, SyncSender<Incoming>) {
    let (mut campaign, recorder) = campaign(options(dir, DomainMode::Off, execs), letters());
    let (sender, inbox) = sync_channel(64);
    campaign.orders = Some(PendingOrders::from(inbox));
    (campaign, recorder, sender)
}

fn order(id: u64, command: Command) -> Incoming {
    Order { client: 1, id: Some(id), command: Ok(command) }.into()
}

fn replies(recorder: &Recorder) -> Vec<Reply> {
    let reply = |event: &Event| match event {
        Event::Reply(reply) => Some(reply.clone()),
        _ => None,
    };
    recorder.0.borrow().iter().filter_map(reply).collect()
}

#[test]
fn an_input_waits_for_the_start_and_is_judged_like_an_import() {
    let dir = seed_folder(&[b"A"]);
    let (mut campaign, recorder, sender) = commanded(dir.path(), 200);
    for (id, input) in [(1, "FUZx"), (2, "FUZx"), (3, "FUZ!")] {
        sender.send(order(id, Command::Inject(input.into()))).unwrap();
    }
    let bad = Order { client: 1, id: Some(4), command: Err("no".into()) };
    sender.send(bad.into()).unwrap();
    campaign.fuzz().unwrap();
    let replies = replies(&recorder);
    // Orders that need no run do not wait.
    let ids: Vec<_> = replies.iter().map(|reply| reply.id.unwrap()).collect();
    assert_eq!(ids, [4, 1, 2, 3]);
    assert_eq!((replies[0].ok, replies[0].error.as_deref()), (false, Some("no")));
    let brought = |index: usize| {
        let outcome = replies[index].outcome.as_ref().unwrap();
        (outcome.kept, outcome.crash, outcome.path.is_some())
    };
    assert_eq!(
        [brought(1), brought(2), brought(3)],
        [(true, false, true), (false, false, false), (false, true, true),]
    );
    let events = recorder.0.borrow();
    let started = events.iter().position(|event| matches!(event, Event::Started)).unwrap();
    let saved = events
        .iter()
        .position(|event| matches!(event, Event::SeedSaved { source: InputOrigin::Inject, .. }));
    assert!(saved.unwrap() > started);
    assert_eq!(campaign.outside.statistics.imported, 1);
    assert_eq!(names(&dir.path().join("out/queue"))[1], "id:000001,sync:inject,src:000000,+cov");
}

#[test]
fn what_is_set_holds_from_then_on() {
    let dir = seed_folder(&[b"A"]);
    let (mut campaign, recorder, sender) = commanded(dir.path(), 100);
    let timeout = Duration::from_millis(77);
    let (schedule, token) = (Some(Schedule::Fast), Token::new(b"word"));
    let setting = Setting { timeout: Some(timeout), schedule, token: token.clone() };
    sender.send(order(1, Command::Set(setting))).unwrap();
    sender.send(order(2, Command::Stats)).unwrap();
    campaign.fuzz().unwrap();
    let replies = replies(&recorder);
    assert!(replies[0].ok);
    let stats = replies[1].stats.as_ref().unwrap();
    assert_eq!((stats.setup.schedule.as_str(), stats.search.dictionary_entries), ("fast", 1));
    assert_eq!(campaign.fuzzer.timeout(), timeout);
    assert!(campaign.fuzzer.scheduler.needs_path_counts());
    assert_eq!(campaign.fuzzer.dictionary.user, Vec::from_iter(token));
}

#[test]
fn a_pause_costs_no_time_and_ends_when_nobody_is_left_to_end_it() {
    let dir = seed_folder(&[b"A"]);
    let (mut campaign, _, sender) = commanded(dir.path(), 1000);
    let (first, second) = (order(1, Command::Pause), order(2, Command::Inject(b"F".into())));
    sender.send(first).unwrap();
    sender.send(second).unwrap();
    let start = Instant::now();
    let paused = std::thread::spawn(move || {
        let start = Instant::now();
        // A client that resumes after a while.
        std::thread::park_timeout(Duration::from_millis(300));
        drop(sender);
        start.elapsed()
    });
    campaign.fuzz().unwrap();
    let all = start.elapsed();
    assert!(all >= paused.join().unwrap().min(Duration::from_millis(300)));
    let counted = Duration::from_millis(campaign.outside.statistics.campaign_ms());
    assert!(counted + Duration::from_millis(200) < all, "{counted:?} of {all:?}");
    assert!(campaign.outside.statistics.execs(&campaign.fuzzer) >= 1000);
}

#[test]
fn a_pause_before_the_first_turn_holds_and_ends_with_a_limit() {
    for by_time in [false, true] {
        let dir = seed_folder(&[b"A"]);
        let (mut campaign, _, sender) = commanded(dir.path(), 40);
        sender.send(order(1, Command::Pause)).unwrap();
        if by_time {
            campaign.outside.limits.options.time = Some(Duration::from_millis(200));
        } else {
            (0..40).for_each(|n| sender.send(order(2, Command::Inject(vec![n]))).unwrap());
        }
        let reason = campaign.fuzz().unwrap();
        let (wanted, execs) =
            (campaign.stop_reason(), campaign.outside.statistics.execs(&campaign.fuzzer));
        assert_eq!(Some(reason), wanted);
        match by_time {
            // Nothing ran after the seed.
            true => assert!(reason == StopReason::TimeLimit && execs < 20, "{reason:?} {execs}"),
            false => assert!(reason == StopReason::ExecLimit && execs < 60, "{reason:?} {execs}"),
        }
        assert!(campaign.outside.statistics.control.paused);
        let counted = campaign.outside.statistics.campaign_ms();
        assert!(counted < 200, "{counted}");
        drop(sender);
    }
}

#[test]
fn who_still_waits_at_the_end_gets_an_answer() {
    let dir = seed_folder(&[b"A"]);
    // Ends with the starting seed.
    let (mut campaign, recorder, sender) = commanded(dir.path(), 1);
    sender.send(order(1, Command::Inject(b"F".into()))).unwrap();
    campaign.fuzz().unwrap();
    sender.send(order(2, Command::Stop)).unwrap();
    campaign.orders.as_mut().unwrap().answer_remaining(&mut campaign.outside);
    let replies = replies(&recorder);
    assert_eq!(replies.iter().map(|reply| reply.ok).collect::<Vec<_>>(), [false, true]);
    assert_eq!(replies[0].error.as_deref(), Some("the campaign has ended"));
}
