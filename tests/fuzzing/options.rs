//! Options and variables of AFL++ on real processes: what each changes.

use crate::common;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{TestDir, afl_target, plain, repository, skip, target};
use ffuzz::mutate::dictionary::Dictionary;

fn outcomes() -> PathBuf {
    target("outcomes.c", "")
}

/// A target that may find the letter "Q" quickly.
fn with_q(dir: &TestDir) {
    dir.write("words", "\"Q\"\n");
}

#[test]
fn a_statsd_server_receives_the_numbers() {
    let dir = TestDir::with_seed("A");
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(common::DEADLINE)).unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let job = dir.fuzz("-s 1 -E 2000 -T me", &outcomes(), "none").env("AFL_STATSD", "1");
    let job = job.env("AFL_STATSD_PORT", &port).env("AFL_STATSD_TAGS_FLAVOR", "dogstatsd");
    job.run().expect(0);
    let mut buffer = [0; 4096];
    let mut last = String::new();
    // The last datagram is that of the end.
    while !last.contains(&format!("execs_done:{}|", dir.stat("execs_done"))) {
        let length = server.recv(&mut buffer).unwrap();
        last = String::from_utf8(buffer[..length].to_vec()).unwrap();
        assert!(last.starts_with("fuzzing.cycle_done:"), "{last}");
        assert!(last.contains("|g|#banner:me,afl_version:ffuzz-"), "{last}");
    }
    let job = dir.fuzz("", &outcomes(), "none").env("AFL_STATSD", "1");
    let job = job.env("AFL_STATSD_HOST", "no-such-host.invalid");
    job.run().refused(1, "cannot reach the StatsD server", "AFL_STATSD_HOST");
}

#[test]
fn the_output_of_a_crash_is_saved() {
    let dir = TestDir::with_seed("A");
    with_q(&dir);
    let job = dir.fuzz("-s 1 -E 5000 -x words", &outcomes(), "sites @@");
    let job = job.env("AFL_CRASH_TRACES", "1").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    let crash = dir.crashes().pop().unwrap();
    let trace = dir.text(&format!("out/default/traces/{crash}.txt"));
    let input = dir.read(&format!("out/default/crashes/{crash}"));
    let expected = if input.get(1) == Some(&b'Q') { "" } else { "the other site\n" };
    assert_eq!(trace, expected);
}

#[test]
fn the_inputs_before_a_crash_are_saved() {
    for steps in [target("steps.c", "-DSHARED"), target("steps.c", "-DPERSISTENT")] {
        let dir = TestDir::with_seed("QUIA");
        let job = dir.fuzz("-s 7 -E 400000 -c -", &steps, "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.env("AFL_PERSISTENT_RECORD", "5").run().expect(0);
        let crash = dir.crashes().pop().unwrap();
        let record = |number| format!("out/default/crashes/RECORD:000000,cnt:{number:06}");
        assert_eq!(
            dir.read(&record(4)),
            dir.read(&format!("out/default/crashes/{crash}")),
            "the last is the crash"
        );
        for number in 0..4 {
            assert!(!dir.read(&record(number)).starts_with(b"QUIZ"));
        }
        assert!(!dir.path(&record(5)).exists());
        // They are no crashes of their own.
        let limit = dir.stat("execs_done") + 100;
        let resume = dir.ffuzz(&format!("-i - -o out -t 3000 -E {limit} --")).arg(&steps);
        resume.run().expect(0);
        assert_eq!(dir.stat("saved_crashes"), 1);
    }
}

#[test]
fn timeouts_are_ignored_or_kept_as_the_user_says() {
    let start = |variable: &str| {
        let dir = TestDir::with_seed("A");
        with_q(&dir);
        let job = dir.fuzz("-s 1 -E 150 -t 60 -x words", &outcomes(), "hang");
        let running = job.env("AFL_HANG_TMOUT", "60").env(variable, "1").start();
        (dir, running)
    };
    let all = ["AFL_QUIET", "AFL_IGNORE_TIMEOUTS", "AFL_KEEP_TIMEOUTS"].map(start);
    let [dir, ignoring, keeping] = all.map(|(dir, running)| {
        running.finish().expect(0);
        dir
    });
    assert!(!dir.hangs().is_empty());
    assert!(!dir.queue().iter().any(|name| name.contains("+tout")));
    let dir = ignoring;
    assert_eq!(dir.hangs(), Vec::<String>::new());
    assert!(!dir.queue().iter().any(|name| name.contains("+tout")));
    let dir = keeping;
    let kept = dir.queue().into_iter().find(|name| name.contains(",+tout,+cov"));
    let kept = kept.unwrap_or_else(|| panic!("{:?}", dir.queue()));
    assert!(dir.read(&format!("out/default/queue/{kept}")).starts_with(b"Q"));
    assert!(!dir.hangs().is_empty());
}

#[test]
fn crash_exploration_starts_from_crashes_and_keeps_crashes() {
    let crashing = TestDir::with_seed("QUIZ");
    let done = crashing.fuzz("-C -s 1 -E 3000", &target("crashing.c", ""), "").run();
    done.expect(0);
    let mode = crashing.stats()["target_mode"].clone();
    assert_eq!(mode, "crash");
    // All that joins the queue crashes, too.
    let queue = crashing.queue();
    assert!(queue.len() > 1, "{queue:?}");
    for name in &queue {
        let input = crashing.read(&format!("out/default/queue/{name}"));
        assert!(input.starts_with(b"Q"), "{name}");
    }
    assert!(!crashing.crashes().is_empty());
    // Others are passed over, unless there is nothing else.
    let dir = TestDir::with_seed("QUIZ");
    dir.write("in/calm", "A");
    let done = dir.fuzz("-C -s 1 -E 300", &target("crashing.c", ""), "").run();
    done.expect(0).says("does not crash, as -C wants it");
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-C -s 1 -E 300", &target("crashing.c", ""), "").run();
    done.refused(1, "no seed crashes the target", "leave -C out");
}

#[test]
fn a_fork_server_without_coverage_is_used() {
    for program in [afl_target("steps.c", ""), target("steps.c", ""), plain("legacy.c", "")] {
        let dir = TestDir::with_seed("QUIA");
        let job = dir.fuzz("-n -s 1 -E 500", &program, "").env("AFL_DUMB_FORKSRV", "1");
        job.run().expect(0);
        let stats = dir.stats();
        assert_eq!((stats["run_mode"].as_str(), stats["total_edges"].as_str()), ("pipe", "0"));
        assert!(stats["target_mode"].starts_with("non_instrumented"), "{stats:?}");
        assert_eq!(dir.queue().len(), 1);
    }
}

#[test]
fn starting_seeds_run_once_if_asked() {
    let runs = |variable: &str| {
        let dir = TestDir::with_seed("A");
        let job = dir.fuzz("-s 1 -E 1", &outcomes(), "none").env(variable, "1");
        job.run().expect(0);
        dir.stat("execs_done")
    };
    let (usual, fast, once) =
        (runs("AFL_QUIET"), runs("AFL_CAL_FAST"), runs("AFL_NO_STARTUP_CALIBRATION"));
    assert_eq!((usual, fast, once), (7, 3, 2));
}

// --- what scripts and new users need

const TO_THE_CRASH: (&str, &str) = ("AFL_BENCH_UNTIL_CRASH", "1");

#[test]
fn the_exit_code_reports_a_bug_to_scripts() {
    let (name, value) = TO_THE_CRASH;
    for (options, how, code) in [
        ("", "segv", 0),
        ("--error-exitcode 99", "segv", 99),
        ("--error-exitcode=99", "none", 0),
        ("-j 2 --error-exitcode 99", "segv", 99),
        ("-j 2", "segv", 0),
    ] {
        let dir = TestDir::with_seed("A");
        with_q(&dir);
        let job = dir.fuzz(&format!("-s 1 -E 4000 -x words {options}"), &outcomes(), how);
        let done = job.env(name, value).run().expect(code);
        done.does_not_say("starts again");
        if options == "--error-exitcode 99" {
            let triage = |options: &str| dir.ffuzz(&format!("triage -o out {options}"));
            triage("").run().expect(0).says("1 bug in 1 crash file");
            triage("--error-exitcode 7").run().expect(7).says("1 bug in 1 crash file");
            triage("--error-exitcode 256").run().refused(2, "is not a number", "--help");
        }
    }
    let dir = TestDir::with_seed("A");
    dir.fuzz("--error-exitcode 0", &outcomes(), "none").run().refused(
        2,
        "--error-exitcode 0 is not a number from 1 to 255",
        "ffuzz --help",
    );
    let job = dir.ffuzz("-o out --pastis localhost:5 --error-exitcode 9");
    job.run().refused(2, "--pastis excludes --error-exitcode", "leave out");
}

#[test]
fn a_hang_is_a_bug_for_scripts_if_it_is_one_for_the_user() {
    let start = |option: &str| {
        let dir = TestDir::with_seed("A");
        with_q(&dir);
        let line = format!("-s 1 -t 1000 -E 60 -x words --error-exitcode 9 {option}");
        let running = dir.fuzz_and_triage(&line, &outcomes(), "hang").start();
        (dir, running)
    };
    let [(dir, saved), (_other, reported)] = ["", "--report-hangs"].map(start);
    saved.finish().expect(0);
    assert!(!dir.hangs().is_empty());
    reported.finish().expect(9);
}

#[test]
fn the_last_lines_name_the_next_steps() {
    let dir = TestDir::with_seed("A");
    with_q(&dir);
    let (name, value) = TO_THE_CRASH;
    let line = "-V 300 -x words -T it's";
    let job = dir.fuzz(line, &outcomes(), "segv");
    let done = job.env(name, value).run().expect(0);
    let at = |path: &str| dir.path(path).display().to_string();
    let target = outcomes().display().to_string();
    let resume = format!("ffuzz -i - -o out -t 3000 -x words -T 'it'\"'\"'s' -- {target} segv");
    let done = done
        .says(&format!("  crashes    : {}\n", at("out/default/crashes")))
        .says(&format!("  triage     : ffuzz-triage -o {}\n", at("out")))
        .says(&format!("  resume     : {resume}\n\nWe're done here."));
    // Both commands do what is promised.
    fs::create_dir(dir.path("bin")).unwrap();
    for name in ["ffuzz", "ffuzz-triage"] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ffuzz"), dir.path("bin").join(name))
            .unwrap();
    }
    let shell = |line: &str| {
        let line = format!("PATH={}:$PATH; {line}", dir.path("bin").display());
        dir.program("sh").arg("-c").arg(line)
    };
    let command = |what: &str| {
        let line = done.out.lines().find_map(|line| line.trim().strip_prefix(what)).unwrap();
        line.trim_start().trim_start_matches(": ").to_owned()
    };
    shell(&command("triage")).run().expect(0).says("1 bug in 1 crash file");
    let resumed = shell(&command("resume").replace("-T", "-V 1 -T")).run().expect(0);
    let bug = dir.names("out/triage").into_iter().find(|name| name.contains('-')).unwrap();
    resumed
        .says("  bug        : ")
        .says(&format!("  input      : {}/", at(&format!("out/triage/{bug}"))))
        .says(&format!("  see it     : {}/reproduce.sh\n", at(&format!("out/triage/{bug}"))))
        .does_not_say("  triage     :");
    let done = dir.ffuzz(&format!("-j 2 -i in -o all -E 50 -- {target} none")).run().expect(0);
    done.says(&format!("  resume     : ffuzz -i - -j 2 -o all -- {target} none\n"))
        .does_not_say("  crashes    :");
}

#[test]
fn domains_that_nothing_uses_are_named() {
    let maps = target("maps.c", "");
    let remedy = "do not guide the search: add -p";
    let dir = TestDir::with_seed("A");
    let message = "[!] the target has domains (most, least, seen, common), which ";
    let count = |text: &str| text.matches(remedy).count();
    let done = dir.fuzz("-E 200", &maps, "").run().expect(0).says(message);
    assert_eq!(count(&done.out), 1, "{}", done.out);
    for (options, instance) in [("-p", "p"), ("--dsf-record", "r"), ("-S one", "s")] {
        let line = format!("-i in -o {instance} -E 200 {options} --");
        dir.ffuzz(&line).arg(&maps).run().expect(0).does_not_say(remedy);
    }
    let done = dir.ffuzz("-j 2 -i in -o all -E 200 --").arg(&maps).run().expect(0);
    assert_eq!(count(&done.out), 1, "{}", done.out);
    let done = dir.ffuzz("-j 4 -p -i in -o guided -E 400 --").arg(&maps).run().expect(0);
    done.does_not_say(remedy);
    let dir = TestDir::with_seed("A");
    dir.fuzz("-E 200", &outcomes(), "none").run().expect(0).does_not_say(remedy);
}

/// Each of these reads its input; on the seed alone it does nothing with it.
#[test]
fn targets_that_read_in_unusual_ways_are_not_suspected() {
    let program = target("reading.c", "");
    let dir = TestDir::with_seed("A");
    for words in ["mmap", "pread", "open", "file @@", "file-mmap @@"] {
        for mode in ["", "-n", "--run-mode fork", "--run-mode pipe"] {
            let line = format!("-s 1 -E 60 {mode}");
            let done = dir.fuzz(&line, &program, words).run().expect(0);
            done.does_not_say("does not read");
            fs::remove_dir_all(dir.path("out")).unwrap();
        }
    }
    for (words, by) in [("nothing", "its standard input"), ("nothing @@", "the file given by @@")] {
        for mode in ["", "-n", "--run-mode fork", "--run-mode pipe"] {
            let line = format!("-s 1 -E 60 {mode}");
            let done = dir.fuzz(&line, &program, words).run().expect(0);
            done.says(&format!("the target does not read {by}"));
            fs::remove_dir_all(dir.path("out")).unwrap();
        }
    }
}

#[test]
fn seeds_that_crash_count_for_scripts() {
    let dir = TestDir::with_seed("Q");
    dir.write("in/good", "A");
    for options in ["", "-j 2", "-C"] {
        let line = format!("-s 1 -E 200 --error-exitcode 9 {options}");
        dir.fuzz(&line, &outcomes(), "segv").run().expect(9);
        fs::remove_dir_all(dir.path("out")).unwrap();
    }
    // Also where there is no other.
    fs::remove_file(dir.path("in/good")).unwrap();
    dir.fuzz("--error-exitcode 9", &outcomes(), "segv").run().refused(9, "no seed is usable", "");
}

#[test]
fn a_target_that_does_not_read_its_input_is_noticed_with_one_seed() {
    let reader = target("reader.c", "");
    let shown = reader.display();
    let not_read = "the target does not read its standard input";
    let fixed = TestDir::with_seed("A");
    fixed.write("fixed.txt", "B");
    for (words, expected) in [
        (
            "",
            format!(
                "{not_read}: it finds nothing this way; if it reads a file, @@ stands for the name\n"
            ),
        ),
        ("@", format!("ffuzz … -- {shown} @@\n")),
        ("-q fixed.txt", format!("ffuzz … -- {shown} -q @@\n")),
    ] {
        fixed
            .ffuzz("-i in -o out -t 3000 -E 100 --")
            .arg(&reader)
            .words(words)
            .run()
            .expect(0)
            .says(&expected);
        fs::remove_dir_all(fixed.path("out")).unwrap();
    }
    // Without a fork server, and without snapshots.
    for (option, name) in [("-n", "FFUZZ_NO_SNAPSHOT"), ("--run-mode pipe", "FFUZZ_NO_SNAPSHOT")] {
        let job = fixed.ffuzz("-i in -o out -t 3000 -E 100").words(option).arg("--").arg(&reader);
        job.env(name, "1").run().expect(0).says(not_read);
        fs::remove_dir_all(fixed.path("out")).unwrap();
    }
    let silent = |dir: &TestDir, target: &PathBuf, words: &str| {
        let job = dir.ffuzz("-i in -o out -t 3000 -E 100 --").arg(target).words(words);
        job.run().expect(0).does_not_say("the target does not read").does_not_say("same path");
        fs::remove_dir_all(dir.path("out")).unwrap();
    };
    silent(&fixed, &reader, "@@");
    silent(&fixed, &outcomes(), "none");
    silent(&fixed, &plain_reader_of_stdin(), "");
    // Two seeds of which the target makes the same are no reason to doubt its standard input.
    fixed.write("in/other", "C");
    let done = fixed.fuzz("-E 100", &outcomes(), "none").run().expect(0);
    done.says(
        "all 2 seeds take the same path through the target: are they inputs that it accepts?",
    );
}

/// A loop in batches: it has its inputs from shared memory.
fn plain_reader_of_stdin() -> PathBuf {
    target("steps.c", "-DSHARED")
}

#[test]
fn a_seed_above_the_limit_is_named() {
    let dir = TestDir::new();
    dir.write("in/large", vec![b'A'; (1 << 20) + 7]);
    let large = dir.path("in/large").display().to_string();
    let done = dir.fuzz("-E 30 -d", &outcomes(), "none").run().expect(0);
    done.says(&format!(
        "the seed {large} of 1048583 bytes is cut to 1048576: inputs have no more\n"
    ));
    let dir = TestDir::with_seed("0123456789");
    dir.write("in/a", "0123456789x");
    let first = dir.path("in/a").display().to_string();
    let done = dir.fuzz("-E 30 -G 8", &outcomes(), "none").run().expect(0);
    done.says(&format!(
        "the seed {first} of 11 bytes is cut to 8: -G sets the limit; and so are 1 more"
    ));
}

#[test]
fn typos_are_answered_with_the_nearest_option() {
    let dir = TestDir::with_seed("A");
    let run = |words: &str| dir.ffuzz(words).run();
    run("cmim -i in -o out -- ./t").refused(
        2,
        "'cmim' is not a command of ffuzz",
        "did you mean: ffuzz cmin",
    );
    run("traige -o out").refused(2, "'traige' is not a command", "did you mean: ffuzz triage");
    run("target -i in -o out").refused(
        2,
        "'target' is not a command",
        "ffuzz -i SEEDS -o OUT ./target",
    );
    run("-i in -o out --metric 80 ./t").refused(2, "'--metric'", "did you mean --metrics?");
    run("-i in -o out --pasti h:1 ./t").refused(2, "'--pasti'", "did you mean --pastis?");
    run("triage --minimise 3 -o out").refused(1, "'--minimise'", "did you mean --minimize?");
    run("-i in -o out --metrics 70000 ./t").refused(2, "--metrics 70000 is not", "ffuzz --help");
    run("whatsup").refused(1, "missing: <OUT>", "ffuzz-whatsup --help");
    run("addseeds in").refused(1, "missing: -o <OUT>", "ffuzz-addseeds --help");
    run("cmin -i in").expect(1).says("-o <");
    let version = run("version").expect(0).out;
    assert_eq!(version, run("--version").expect(0).out);
    assert_eq!(run("help").expect(0).out, run("--help").expect(0).out);
    assert_eq!(run("help cmin").expect(0).out, run("cmin --help").expect(0).out);
    run("help cmim").refused(2, "'cmim' is not a command of ffuzz", "ffuzz cmin");
}

#[test]
fn programs_of_others_get_their_own_remedy() {
    let dir = TestDir::with_seed("A");
    let program = plain("outcomes.c", "");
    let with = |name: &str, text: &[u8]| {
        let path = dir.write(name, [fs::read(&program).unwrap().as_slice(), text].concat());
        fs::set_permissions(&path, fs::metadata(&program).unwrap().permissions()).unwrap();
        dir.fuzz("-E 10", &path, "none").run()
    };
    let cause = "is not instrumented";
    with("harness", b"LLVMFuzzerTestOneInput\0").refused(1, cause, "ffuzz-c++ -fsanitize=fuzzer");
    with("python3.11", b"").refused(1, cause, "AFL_SKIP_BIN_CHECK=1");
    with("golang", b"\xff Go buildinf:").refused(1, cause, "-gcflags=all=-d=libfuzzer");
    with("other", b"").refused(1, cause, "-Q fuzzes it as it is");
}

#[test]
fn colors_are_left_out_on_request() {
    // Anything but bold, and what ends it.
    let colored = |text: &str| {
        let codes = text.split("\u{1b}[").skip(1).filter_map(|code| code.split_once('m'));
        let numbers =
            codes.filter(|(code, _)| code.bytes().all(|b| b.is_ascii_digit() || b == b';'));
        numbers.flat_map(|(code, _)| code.split(';')).any(|code| {
            code.parse::<u32>()
                .is_ok_and(|code| (30..=38).contains(&code) || (90..=97).contains(&code))
        })
    };
    for (name, expected) in [("AFL_NO_COLOR", false), ("NO_COLOR", false), ("AFL_QUIETER", true)] {
        let dir = TestDir::with_seed("A");
        let job = dir.fuzz("-E 300", &outcomes(), "none").env("AFL_FORCE_UI", "1");
        let done = job.env(name, "1").run().expect(0).says("timing");
        assert_eq!(colored(&done.out), expected, "{name}");
    }
}

#[test]
fn a_line_of_a_dictionary_that_is_no_token_is_a_warning() {
    let dir = TestDir::with_seed("A");
    dir.write("words", "# of HTML\n\"<b>\"\n\"<i>\n<u>\n");
    let done = dir.fuzz("-s 1 -E 100 -x words", &outcomes(), "none").run().expect(0);
    let done = done.says("words, line 3: no closing quote: not loaded");
    let done = done.says("words, line 4: no opening quote: not loaded");
    assert!(!done.out.contains("more like these"), "{}", done.out);
    // What is no dictionary at all does not fill the screen.
    let dir = TestDir::with_seed("A");
    dir.write("text", "a line\n".repeat(30));
    let done = dir.fuzz("-s 1 -E 100 -x text", &outcomes(), "none").run().expect(0);
    done.says("text, line 10: no opening quote").says("text: 20 more like these");
    // A folder has a token in each file.
    dir.write("folder/a", "<b>");
    dir.write("folder/b", [b'x'; 129]);
    dir.write("folder/c", "");
    let _ = fs::remove_dir_all(dir.path("out"));
    let done = dir.fuzz("-s 1 -E 100 -x folder", &outcomes(), "none").run().expect(0);
    let done = done.says("folder/b is not loaded: it is no token of 1 to 128 bytes");
    done.says("folder/c is not loaded");
}

/// Of Debian's afl++-doc, and of a tree of AFL++ where one was built for the benchmarks.
#[test]
fn every_dictionary_of_afl_is_loaded() {
    let folders = [
        PathBuf::from("/usr/share/doc/afl++-doc/afl/dictionaries"),
        repository("target/bench-peers/aflplusplus-4.40c/dictionaries"),
    ];
    let dir = TestDir::with_seed("A");
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    let is = |path: &Path, end: &str| path.extension().is_some_and(|known| known == end);
    let unpacked = |path: PathBuf| {
        if !is(&path, "gz") {
            return path;
        }
        // Debian packs the larger ones.
        let text = Command::new("gzip").arg("-dc").arg(&path).output().unwrap().stdout;
        dir.write(path.file_stem().unwrap().to_str().unwrap(), text)
    };
    let files = files.map(|entry| unpacked(entry.unwrap().path()));
    let files: Vec<PathBuf> = files.filter(|path| is(path, "dict")).collect();
    if files.len() < 60 {
        return skip("afl++-doc is not installed");
    }
    for file in &files {
        let (tokens, malformed) = Dictionary::parse(&fs::read(file).unwrap(), 0);
        let name = file.file_name().unwrap().to_str().unwrap();
        // One has no quotes at all.
        let ok = if name == "ruby.dict" { tokens.is_empty() } else { malformed.len() <= 1 };
        assert!(ok, "{name}: {} tokens, {malformed:?}", tokens.len());
    }
    for name in ["atom.dict", "csv.dict", "regexp.dict", "rst.dict", "svg.dict"] {
        let file = files.iter().find(|file| file.ends_with(name)).unwrap();
        let dir = TestDir::with_seed("A");
        let words = format!("-s 1 -E 2 -x {}", file.display());
        dir.fuzz(&words, &outcomes(), "none").run().expect(0);
    }
}

#[test]
fn deterministic_steps_come_always_or_never() {
    let dir = TestDir::with_seed("a seed of some bytes");
    for (options, is_done) in [("-D", true), ("-z", false)] {
        dir.fuzz(&format!("{options} -s 1 -E 30000"), &outcomes(), "none").run().expect(0);
        let done = dir.names("out/default/queue/.state/deterministic_done");
        assert_eq!(!done.is_empty(), is_done, "{options}: {done:?}");
        fs::remove_dir_all(dir.path("out")).unwrap();
    }
}
