//! Tests of the screen on a test terminal, and of plain lines.

use super::pages;
use super::screen::facts::{Facts, QueueEntry};
use super::screen::view::{Action, Page, View};
use super::*;
use ffuzz_engine::corpus::SeedId;
use ffuzz_event::{
    BlockedComparison, CampaignSetup, Corpus, Coverage, Cycles, DomainGain, DomainStatus, Event,
    Finds, InputOrigin, MutatorStatus, PartOfTime, Pointer, Resources, Runs, Search, Shares,
    Snapshot, StageYield, StopReason, Times, Turn, WorkerStatus,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::style::Color;
use serde_json::json;

fn sample(domains: usize) -> Snapshot {
    let names = ["cmp", "mem", "slow", "a-rather-long-name"];
    let places = ["demo.c:16", "", "", "some/folder/with-a-long-name.c:1234"];
    let stage = |name: &'static str, finds, execs| StageYield { name: name.into(), finds, execs };
    Snapshot {
        times: Times {
            started_at: 1_700_000_000,
            now: 1_700_003_723,
            run_time_ms: 3_723_000,
            ..Times::default()
        },
        cycles: Cycles { cycles_done: 3, ..Cycles::default() },
        runs: Runs {
            execs: 12_345_678,
            execs_per_sec: 3315.6,
            run_mode: "batch".into(),
            ..Runs::default()
        },
        resources: Resources {
            shares: Shares { target: 61.256, hand_over: Some(8.0), waiting: 0.0, fuzzer: 30.744 },
            ..Resources::default()
        },
        corpus: Corpus {
            corpus_count: 412,
            corpus_favored: 37,
            corpus_found: 409,
            max_depth: 9,
            pending_favored: 2,
            pending_total: 88,
            ..Corpus::default()
        },
        coverage: Coverage {
            stability: 99.5,
            edges_found: 731,
            map_size: 2048,
            bits_per_edge: 2.17,
            current_density: 12.5,
            ..Coverage::default()
        },
        finds: Finds {
            saved_crashes: 2,
            total_crashes: 57,
            total_timeouts: 11,
            last_find_at: 1_700_003_700,
            last_crash_at: 1_700_000_100,
            ..Finds::default()
        },
        turn: Turn {
            current: Some(SeedId(123)),
            stage: "havoc".into(),
            stage_done: 512,
            stage_total: 2048,
        },
        search: Search {
            stages: vec![
                stage("flip1/2/4", 12, 40_000),
                stage("arith", 3, 90_000),
                stage("interest", 1, 80_000),
                stage("dictionary", 0, 0),
                stage("havoc", 380, 9_000_000),
                stage("splice", 13, 3_000_000),
            ],
            trimmed_percent: 17.25,
            trim_execs: 5_000,
            parts: vec![
                PartOfTime { name: "comparisons".into(), used: 9.31, share: 10.0 },
                PartOfTime { name: "second_runs".into(), used: 0.0, share: 10.0 },
            ],
            ..Search::default()
        },
        setup: CampaignSetup {
            guided_by_domains: domains > 0,
            banner: "./demo".into(),
            instance: "default".into(),
            schedule: "explore".into(),
            ..CampaignSetup::default()
        },
        domains: (0..domains)
            .map(|i| DomainStatus {
                name: names.get(i).copied().unwrap_or_default().into(),
                reducer: "MAX".into(),
                keys: 40 + u32::try_from(i).expect("small"),
                best: (i != 2).then_some((0x103c5, 2_147_483_645)),
                best_place: places.get(i).copied().unwrap_or_default().into(),
                last_place: places.get(i).copied().unwrap_or_default().into(),
                last: (i != 2).then_some((0x103c5, 2_147_483_645, 1_700_003_720)),
                waypoints: 77,
                ..DomainStatus::default()
            })
            .collect(),
        ..Snapshot::default()
    }
}

fn screen(width: u16, height: u16, s: &Snapshot, message: &str) -> String {
    let mut facts = Facts { snapshot: s.clone(), knows_stuck: true, ..Facts::default() };
    if !message.is_empty() {
        facts.say(message);
    }
    drawn(width, height, &facts, &mut View::default())
}

fn drawn(width: u16, height: u16, facts: &Facts, view: &mut View) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("terminal");
    terminal.draw(|frame| pages::draw(frame, facts, view, Colors::All)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width));
    let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn screen_of_80x24() {
    insta::assert_snapshot!("80x24", screen(80, 24, &sample(2), "target restarted: out of memory"));
    insta::assert_snapshot!("80x24_no_domains", screen(80, 24, &sample(0), ""));
}

fn with_mutators(domains: usize, count: usize) -> Snapshot {
    let mutator = |number: usize| MutatorStatus {
        name: format!("libnumber{number}.so"),
        calls: 1_234_567,
        finds: 12,
        time_ms: 100,
        time_percent: 3.1149,
        failures: number as u64,
        says: None,
    };
    Snapshot { mutators: (0..count).map(mutator).collect(), ..sample(domains) }
}

#[test]
fn foreign_mutators_have_a_panel() {
    insta::assert_snapshot!("80x24_mutators", screen(80, 24, &with_mutators(2, 2), ""));
    for (domains, width, height) in [(0, 80, 24), (4, 120, 40), (9, 80, 24)] {
        let text = screen(width, height, &with_mutators(domains, 3), "");
        for row in ["mutators: calls, finds, time, failures", "libnumber2", "3.1%"] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }
}

/// A snapshot of a fleet.
fn with_workers(domains: usize, count: usize) -> Snapshot {
    let worker = |number: usize| WorkerStatus {
        name: if number == 0 { "main".into() } else { format!("worker{number:02}") },
        state: if number == 1 { "waiting".into() } else { "fuzzing".into() },
        schedule: "exploit".into(),
        execs: 1_000_000,
        execs_per_sec: 12_345.0,
        corpus_count: 12_345,
        edges_found: 731,
        saved_crashes: 2,
        last_find_at: if number == 1 { 0 } else { 1_700_003_700 },
        restarts: u32::from(number == 1),
        ..WorkerStatus::default()
    };
    let workers: Vec<WorkerStatus> = (0..count).map(worker).collect();
    let mut all = Snapshot { workers, ..sample(domains) };
    all.setup.instance = format!("{count} workers");
    all
}

#[test]
fn workers_have_a_screen() {
    insta::assert_snapshot!("80x24_workers", screen(80, 24, &with_workers(2, 3), "worker01: was"));
    let many = screen(80, 24, &with_workers(0, 64), "");
    assert!(many.contains("main ") && many.contains("and 57 more"), "{many}");
    let large = screen(120, 50, &with_workers(40, 16), "");
    assert!(large.contains("worker15") && large.contains("and 3"), "{large}");
}

#[test]
fn screen_of_200x50() {
    insta::assert_snapshot!("200x50", screen(200, 50, &sample(6), ""));
}

#[test]
fn comparisons_that_are_never_passed_have_a_panel_if_there_is_room() {
    let blocker = |file: &str, line, outcome: &str, operands: &str| BlockedComparison {
        file: file.into(),
        line,
        function: "parse".into(),
        comparison: "i32 ==".into(),
        outcome: outcome.into(),
        seeds: 1234,
        attempts: 56,
        operands: operands.into(),
        behind: Some(259),
        ..BlockedComparison::default()
    };
    let mut s = sample(2);
    s.blockers = vec![
        blocker("/src/lib/png.c", 77, "never equal", "0x10223344 and 0x11223344 (constant)"),
        blocker("", 0, "always less", &"\"long\" and ".repeat(20)),
    ];
    insta::assert_snapshot!("blockers-100x36", screen(100, 36, &s, ""));
    s.domains.clear();
    assert!(screen(100, 36, &s, "").contains("png.c:77"));
    assert!(!screen(80, 24, &s, "").contains("png.c"));
}

#[test]
fn a_find_is_no_older_than_the_run_time_and_trimming_has_one_cell() {
    let mut resumed = sample(0);
    resumed.finds.last_find_at = resumed.times.now - 86_400;
    let trim = StageYield { name: "trim".into(), finds: 0, execs: 5_000 };
    resumed.search.stages.push(trim);
    let screen = screen(120, 40, &resumed, "");
    let line = screen.lines().find(|line| line.contains("last new find")).expect("a panel");
    assert!(line.contains("1 hrs, 2 min, 3 sec") && line.contains("0 days"), "{line}");
    assert_eq!(screen.matches(" trim : ").count(), 1, "{screen}");
}

#[test]
fn no_line_of_a_screen_of_120x40_is_cut() {
    let mut s = sample(4);
    s.resources.load_percent = Some(340.0);
    s.resources.shares = Shares { target: 11.0, hand_over: Some(9.0), waiting: 70.0, fuzzer: 10.0 };
    let text = screen(120, 40, &s, "");
    for row in ["3s ago to 2147483645 ", "hand-over 9% waiting 70% fuzzer 10%] [cpu:340%]"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    // A number next to the border may be cut.
    let is_cut = |line: &str| line.trim_end_matches('│').ends_with(|c: char| c.is_ascii_digit());
    assert_eq!(text.lines().find(|line| is_cut(line) && line.contains("ago")), None, "{text}");
    insta::assert_snapshot!("120x40", text);
}

#[test]
fn without_colors_every_cell_has_that_of_the_terminal() {
    let colored = |colors| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("terminal");
        let mut s = sample(2);
        s.resources.load_percent = Some(150.0);
        let facts = Facts { snapshot: s, ..Facts::default() };
        let view = &mut View::default();
        terminal.draw(|frame| pages::draw(frame, &facts, view, colors)).expect("drawn");
        let cells = terminal.backend().buffer().content().iter();
        let with = |color| cells.clone().filter(|cell| cell.fg == color).count();
        (cells.len() - with(Color::Reset), with(Color::LightRed))
    };
    assert_eq!(colored(Colors::None), (0, 0));
    let (all, calm) = (colored(Colors::All), colored(Colors::CalmLoad));
    assert!(calm.1 > 0 && all.1 > calm.1, "{all:?} {calm:?}");
}

#[test]
fn any_size_is_drawn() {
    for (width, height) in [(1, 1), (79, 24), (80, 23), (81, 25), (100, 30), (300, 90)] {
        for domains in [0, 1, 3, 40] {
            let text = screen(width, height, &sample(domains), "a message");
            assert_eq!(text.lines().count(), usize::from(height));
        }
    }
    let many = screen(80, 24, &sample(40), "");
    assert!(many.contains("and 39 more"), "{many}");
    let empty = screen(80, 24, &Snapshot::default(), "");
    assert!(empty.contains("none seen yet"), "{empty}");
}

fn lines(events: &[Event]) -> String {
    let mut out = Vec::new();
    let mut sink = Plain::new(&mut out);
    for event in events {
        ffuzz_event::EventSink::handle(&mut sink, event);
    }
    String::from_utf8(out).expect("text")
}

#[test]
fn lines_show_start_finds_progress_and_end() {
    let load = |ms| (ms >= 5_000).then_some(240.4);
    let tick = |ms| {
        let mut state = sample(1);
        (state.times.run_time_ms, state.resources.load_percent) = (ms, load(ms));
        Event::Tick(Box::new(state))
    };
    let saved = |name: &str| Event::SeedSaved {
        id: SeedId(1),
        path: format!("out/default/queue/{name}").into(),
        new_edge: true,
        waypoint: false,
        source: InputOrigin::Own,
        gains: Vec::new(),
    };
    let text = lines(&[
        Event::SeedImported { id: SeedId(0), path: "in/a".into(), index: 1, total: 1 },
        Event::Started,
        tick(0),
        saved("id:000001"),
        saved("id:000002"),
        tick(200),
        saved("id:000003"),
        tick(2_000),
        tick(5_000),
        tick(9_000),
        Event::CrashSaved {
            number: 0,
            path: "out/default/crashes/id:000000,sig:11".into(),
            signal: 11,
            source: InputOrigin::Own,
        },
        Event::Warning { message: "no room left to write x".into() },
        Event::Stopped {
            reason: StopReason::User,
            next: vec![
                Pointer::new("crashes", "out/default/crashes"),
                Pointer::new("bug", "[@ f\u{1b}[2J]"),
                Pointer::new("resume", "ffuzz -i - -o out -- ./demo"),
            ],
            snapshot: Box::new(sample(1)),
        },
    ]);
    insta::assert_snapshot!("lines", text);
}

#[test]
fn workers_are_named_in_lines() {
    let mut out = Vec::new();
    let mut sink = Plain::new(&mut out);
    let seed = Event::SeedImported { id: SeedId(0), path: "in/a".into(), index: 1, total: 1 };
    let saved = |name: &str| Event::SeedSaved {
        id: SeedId(1),
        path: format!("out/x/queue/{name}").into(),
        new_edge: true,
        waypoint: false,
        source: InputOrigin::Own,
        gains: Vec::new(),
    };
    let warning = Event::Warning { message: "was killed by signal 9".into() };
    let path = "out/worker01/crashes/id:000000".into();
    let crash = Event::CrashSaved { number: 0, path, signal: 6, source: InputOrigin::Own };
    let state = || Box::new(with_workers(0, 2));
    for (worker, event) in [("main", &seed), ("worker01", &seed)] {
        sink.handle_of(worker, event);
    }
    sink.handle(&Event::Started);
    for (worker, event) in [
        ("main", &saved("id:000001")),
        ("worker01", &saved("id:000007")),
        ("worker01", &Event::Tick(state())),
        ("worker01", &crash),
        ("main", &warning),
    ] {
        sink.handle_of(worker, event);
    }
    sink.handle(&Event::Tick(state()));
    sink.handle(&Event::Stopped { reason: StopReason::User, next: vec![], snapshot: state() });
    insta::assert_snapshot!("lines_of_workers", String::from_utf8(out).expect("text"));
}

#[test]
fn a_large_queue_gives_few_lines() {
    let seeds: Vec<Event> = (1..=25_000)
        .map(|index| Event::SeedImported {
            id: SeedId(0),
            path: "queue/x".into(),
            index,
            total: 25_000,
        })
        .collect();
    assert_eq!(lines(&seeds).lines().count(), 10);
}

#[test]
fn last_lines_are_those_of_afl() {
    let text = |reason| summary(reason, &[], &sample(0));
    assert!(text(StopReason::User).contains("\n+++ Testing aborted by user +++\n"));
    let limit = text(StopReason::TimeLimit);
    assert!(limit.starts_with("[!] Time limit was reached\n"));
    assert!(limit.contains("+++ Testing aborted programmatically +++"));
    assert!(text(StopReason::ExecLimit).starts_with("[!] Execution limit was reached\n"));
    assert!(text(StopReason::Done).ends_with("We're done here. Have a nice day!\n\n"));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }
    let mut sink = Plain::new(Closed);
    ffuzz_event::EventSink::handle(&mut sink, &Event::Started);
}

#[test]
fn quiet_shows_nothing() {
    assert!(sink(UiMode::Quiet, Colors::All, || unreachable!()).is_none());
    assert!(sink(UiMode::Lines, Colors::All, || unreachable!()).is_some());
}

/// Facts that fill every page.
fn all_facts() -> Facts {
    let mut facts = Facts { snapshot: sample(4), ..Facts::default() };
    facts.snapshot.finds.bugs = Some(2);
    let found = |id: u32| Event::SeedSaved {
        id: SeedId(id),
        path: format!(
            "out/default/queue/id:{id:06},src:000003,time:{}000,execs:9,op:havoc",
            id * 61
        )
        .into(),
        new_edge: id.is_multiple_of(2),
        waypoint: false,
        source: InputOrigin::Own,
        gains: vec![DomainGain {
            domain: "mem".into(),
            value: 4096,
            place: "demo.c:16".into(),
            ..DomainGain::default()
        }],
    };
    facts.note(None, &Event::Started);
    (0..60).for_each(|id| facts.note(None, &found(id)));
    facts.note(None, &Event::TargetRestarted { reason: "out of memory".into() });
    facts.note(Some("main"), &Event::Warning { message: "no room left".into() });
    let crash = "out/default/crashes/id:000000,sig:06,src:000003,time:9000,execs:9,op:havoc".into();
    let source = InputOrigin::Own;
    facts.note(None, &Event::CrashSaved { number: 0, path: crash, signal: 6, source });
    facts.snapshot.times.now += 60;
    let entry = |id: u32| QueueEntry {
        path: format!("/none/default/queue/id:{id:06}").into(),
        instance: "default".into(),
        name: ffuzz_engine::corpus::names::parse(&format!(
            "id:{id:06},src:000003+000007,time:{}000,execs:{},op:splice,rep:2{}",
            id * 61,
            id * 12_345,
            if id.is_multiple_of(3) { ",+cov" } else { ",+dsf" }
        ))
        .unwrap(),
    };
    facts.queue.set((0..400).map(entry).collect());
    let mut set = |question: serde_json::Value, answer| facts.answers.set(&question, Ok(answer));
    let place = |line: u32| {
        json!({"id": "f:1", "file": "/src/lib/xmlparse.c", "line": line, "column": 5, "function": "doProlog",
               "to_line": line + 1, "outcome": "2 of 9 ways not taken", "behind": 259, "functions_behind": 3, "copies": 2,
               "input": "id:000653,src:000001", "comparison": {"kind": "i32 ==", "closest": "0xef and 0xed (constant)",
               "bytes": [[1, 1], [4, 7]], "attempts": 113}})
    };
    set(
        json!({"cmd": "stuck", "limit": 60}),
        json!({"entries": (0..40).map(|n| place(4700 + n)).collect::<Vec<_>>()}),
    );
    set(
        json!({"cmd": "never_entered", "limit": 100}),
        json!({"entries": [{"function": "XML_SetBase", "file": "/src/lib/xmlparse.c", "line": 9, "counters": 60,
                            "reason": "harness"}]}),
    );
    set(
        json!({"cmd": "bugs", "limit": 100}),
        json!({"warnings": [], "entries": [
            {"id": "b1", "title": "heap-buffer-overflow in parse at demo.c:16", "class": "read", "place": "demo.c:16",
             "files": 57, "seen": [100, 123_456], "input": "out/triage/b1/input"},
            {"id": "b2", "title": "abort in main \u{1b}[2J\u{202e}txt", "class": "abort", "place": null, "files": 1,
             "seen": null, "input": "out/triage/b2/input"}]}),
    );
    set(
        json!({"cmd": "bug", "bug": "b1"}),
        json!({"id": "b1", "reproduce": "out/triage/b1/reproduce.sh",
               "stacks": {"crash": ["parse demo.c:16", "main demo.c:40"], "allocation": ["malloc", "grow demo.c:7"],
                          "free": [], "others": []}}),
    );
    let file = |name: &str| json!({"file": name, "lines": [1254, 3850], "functions": [110, 286]});
    set(
        json!({"cmd": "coverage", "limit": 100}),
        json!({"entries": [file("/src/lib/xmlparse.c"), file("/src/lib/xmltok.c")], "lines": [1, 2]}),
    );
    let function = |name: &str, entered: bool| {
        json!({"function": name, "file": "/src/lib/xmlparse.c", "line": 4628, "entered": entered, "inputs": 812,
               "edges": [210, 729]})
    };
    set(
        json!({"cmd": "coverage", "file": "/src/lib/xmlparse.c", "limit": 100}),
        json!({"entries": [function("doProlog", true), function("XML_SetBase", false)]}),
    );
    set(
        json!({"cmd": "coverage", "file": "/src/lib/xmlparse.c", "lines": true, "after": 4624, "limit": 21}),
        json!({"lines": [[4625, null, "static int"], [4626, "812", "\tdoProlog(int a)"], [4627, "~812", "{"],
                         [4628, "0", "  return 0;"]]}),
    );
    set(
        json!({"cmd": "domains", "name": "mem", "limit": 100}),
        json!({"entries": [{"name": "mem", "reducer": "MAX", "count": 1, "keys": [
            {"key": 7, "value": 4096, "place": "/src/demo.c:16", "input": "id:000012,src:000001", "moved": 83}]}]}),
    );
    facts
}

fn after(facts: &Facts, keys: &str, width: u16, height: u16) -> String {
    let mut view = View::default();
    let mut shown = drawn(width, height, facts, &mut view);
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            'v' => KeyCode::Down,
            letter => KeyCode::Char(letter),
        };
        if let Some(Action::Open(row)) = view.key(code, KeyModifiers::NONE) {
            view.open(pages::file_in_row(facts, row).expect("a file"));
        }
        shown = drawn(width, height, facts, &mut view);
    }
    shown
}

#[test]
fn each_page_is_drawn_in_two_sizes() {
    let facts = all_facts();
    for (digit, page) in (1..).zip(Page::ALL) {
        for (width, height) in [(80, 24), (200, 50)] {
            let name = format!("{}-{width}x{height}", page.name());
            insta::assert_snapshot!(name, after(&facts, &digit.to_string(), width, height));
        }
    }
}

#[test]
fn a_row_has_a_text_in_its_place_or_beside_it() {
    let facts = all_facts();
    for (name, keys) in [
        ("text-domains", "2v\n"),
        ("text-stuck", "3v\n"),
        ("text-bugs", "4\n"),
        ("text-functions", "5\n"),
        ("text-lines", "5\n\n"),
        ("text-queue", "6\n"),
        ("text-help", "3?"),
        ("text-end", "1q"),
    ] {
        insta::assert_snapshot!(name, after(&facts, keys, 80, 24));
    }
    let never = after(&facts, "3G\n", 80, 24);
    assert!(never.contains("   60  nobody     XML_SetBase  xmlparse.c:9"), "{never}");
    let wide = after(&facts, "3v", 200, 50);
    assert!(wide.contains("xmlparse.c:4701") && wide.contains("i32 =="), "{wide}");
}

#[test]
fn a_page_says_why_it_is_empty() {
    let mut facts = Facts { snapshot: sample(0), ..Facts::default() };
    facts.snapshot.search.stages.clear();
    facts.snapshot.finds = Finds::default();
    let failed = || Err("the target does not start\u{1b}[2J".to_owned());
    facts.answers.set(&json!({"cmd": "coverage", "limit": 100}), failed());
    for (key, text) in [
        ('2', "WAYPOINTS="),
        ('3', "the queue is run in a process of its own"),
        ('4', "No crash so far."),
        ('5', "not known: the target does not start[2J"),
        ('6', "no input yet"),
        ('7', "does not tell what stages"),
        ('8', "Nothing has happened"),
    ] {
        let shown = after(&facts, &key.to_string(), 80, 24);
        assert!(shown.contains(text), "{key}: {shown}");
    }
}

/// Text from the target cannot emit escape sequences.
#[test]
fn no_text_of_the_target_moves_the_cursor() {
    let facts = all_facts();
    let shown = after(&facts, "4", 200, 50);
    assert!(shown.contains("abort in main [2Jtxt"), "{shown}");
}
