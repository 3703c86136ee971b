//! `--pastis` and the real broker from packages: two engines and what they exchange, a broker that is
//! killed, the stock AFL++ driver beside us, and the Python package in `integrations/pastis`.

use crate::common;
use crate::page;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use common::{Finished, Job, Running, TestDir, free_port, repository, skip, target, wait_until};
use ffuzz::fleet::pastis::engines::{ENGINES, VERSION};
use nix::sys::signal::Signal;

/// The stock broker, which listens on all addresses and has no option for that. Background jobs of a
/// shell ignore SIGINT, and so would what they start.
const STOCK: &str = "import signal, sys, runpy, libpastis.agent as agent
signal.signal(signal.SIGINT, signal.default_int_handler)
agent.NetworkAgent.bind.__defaults__ = (5555, '127.0.0.1')
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')";

/// A program of the broker's environment; None, with a word about it, if that could not be had.
fn installed(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pastis");
    let there = folder.join("complete").exists();
    if !there {
        skip("no PASTIS broker: scripts/setup.sh --servers installs it");
    }
    there.then(|| folder.join("venv/bin").join(name))
}

/// Python with the broker's packages and ours, and these words.
fn python(dir: &TestDir, words: &[&str]) -> Option<Job> {
    let program = installed("python")?;
    let sources = repository("integrations/pastis/src").display().to_string();
    let job = dir.program(program.to_str().unwrap()).env("PYTHONPATH", &sources);
    let job = job.env("PYTHONDONTWRITEBYTECODE", "1").env("LC_ALL", "C.UTF-8");
    Some(words.iter().fold(job, |job, word| job.arg(*word)))
}

/// The stock broker with its workspace in `ws` and targets from `bins`, listening.
fn broker(dir: &TestDir, port: u16, options: &str) -> Option<Running> {
    let program = installed("pastis-broker")?;
    let job = python(dir, &["-c", STOCK])?.arg(program).words("-b bins -w ws").words(options);
    let mut running = job.words("-p").arg(port.to_string()).start();
    running.wait_for("start broking");
    Some(running)
}

/// What it said; None if it did not come to its good end: it tells its clients to stop by one thread while
/// another sends, and libzmq does not stand that. Our launcher does.
fn end_of_stock(broker: Running) -> Option<Finished> {
    let ended = broker.finish();
    let aborted = ended.code() == 128 + 6 && ended.err.contains("!_current_out");
    (!aborted).then(|| ended.expect(0))
}

/// Our launcher of the broker, listening.
fn launcher(dir: &TestDir, port: u16, options: &str) -> Option<Running> {
    let job = python(dir, &["-m", "pastisffuzz.launcher"])?.words(options);
    let mut running = job.words("-b bins -p").arg(port.to_string()).start();
    running.wait_for("start broking");
    Some(running)
}

fn engine(dir: &TestDir, port: u16, name: &str) -> Running {
    let job = dir.ffuzz("--pastis").arg(format!("127.0.0.1:{port}"));
    job.words(&format!("-j 1 -t 1000 -o {name}")).env("AFL_HANG_TMOUT", "1000").start()
}

fn bins(dir: &TestDir, files: &[(&str, &Path)]) {
    fs::create_dir(dir.path("bins")).unwrap();
    for (name, program) in files {
        fs::copy(program, dir.path("bins").join(name)).unwrap();
    }
}

/// Contents of the files in a folder.
fn contents(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read(entry.path()).ok()).collect()
}

fn wait_for_file(what: &str, folder: &Path, wanted: impl Fn(&[u8]) -> bool) {
    wait_until(what, || contents(folder).iter().any(|bytes| wanted(bytes)));
}

/// The queue of the only target of an engine.
fn queue(dir: &TestDir, name: &str) -> PathBuf {
    let names = dir.names(name);
    dir.path(name).join(names.last().unwrap()).join("out/main/queue")
}

/// What the target does with such an input.
fn behind(bytes: &[u8]) -> Option<u8> {
    (bytes.starts_with(b"RLAY") && bytes.len() > 5).then(|| bytes[4])
}

#[test]
fn two_engines_exchange_what_they_find_whatever_the_broker_does() {
    let dir = TestDir::new();
    let (plain, guided) = (common::relay("", ""), common::relay("cmp,mem", ""));
    bins(&dir, &[("relay", &plain), ("relay-cmp-mem", &guided)]);
    let port = free_port();
    let Some(broker_one) = broker(&dir, port, "") else { return };
    // The first gets the engine with domains, which finds a word that no chance brings.
    let mut first = engine(&dir, port, "first");
    first.wait_for("fuzzing relay-cmp-mem in");
    let mut second = engine(&dir, port, "second");
    second.wait_for("fuzzing relay in");
    let queue = queue(&dir, "second");
    wait_until("an input of the first in the queue of the second", || {
        let names = fs::read_dir(&queue).into_iter().flatten().flatten();
        names.into_iter().any(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.contains(",sync:inject,") && behind(&fs::read(entry.path()).unwrap()).is_some()
        })
    });
    let workspace = dir.path("ws");
    wait_for_file("a crash", &workspace.join("crashes"), |bytes| behind(bytes) == Some(b'C'));
    wait_for_file("a hang", &workspace.join("hangs"), |bytes| behind(bytes) == Some(b'H'));
    broker_one.signal(Signal::SIGKILL);
    broker_one.finish().expect(128 + 9);
    first.wait_for("no connection to");
    second.wait_for("no connection to");
    let broker_two = broker(&dir, port, "").unwrap();
    first.wait_for("relay-cmp-mem is being fuzzed already: the campaign continues");
    second.wait_for("relay is being fuzzed already: the campaign continues");
    wait_until("numbers of both", || {
        let said = broker_two.said();
        let numbers =
            |name: &str| said.lines().any(|l| l.contains(name) && l.contains("tot_exec:"));
        numbers("-FF]") && numbers("-FFCM]")
    });
    broker_two.signal(Signal::SIGINT);
    let said = end_of_stock(broker_two);
    let is_good = said.is_some();
    if let Some(said) = said {
        said.does_not_say("Traceback").does_not_say("cannot unpack");
    }
    for mut engine in [first, second] {
        if is_good {
            engine.wait_for("ended (User)");
        }
        engine.signal(Signal::SIGTERM);
        engine.finish().expect(0);
    }
    look_at_the_workspace(&dir);
}

fn look_at_the_workspace(dir: &TestDir) {
    assert_eq!(dir.text("ws/STATUS"), "FINISHED");
    for (folder, kind) in [("corpus", None), ("crashes", Some(b'C')), ("hangs", Some(b'H'))] {
        for bytes in contents(&dir.path("ws").join(folder)) {
            assert!(!bytes.is_empty());
            let is_bad = behind(&bytes).filter(|byte| b"CH".contains(byte));
            assert_eq!(is_bad, kind, "{folder}: {bytes:?}");
        }
    }
    let rows = dir.text("ws/telemetry.csv");
    let mut clients: Vec<&str> =
        rows.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients.len(), 2, "{rows}");
    let stats: serde_json::Value =
        serde_json::from_slice(&dir.read("ws/clients-stats.json")).unwrap();
    let engines: Vec<&str> =
        stats.as_array().unwrap().iter().map(|client| client["engine"].as_str().unwrap()).collect();
    assert!(engines.contains(&"FFUZZ") && engines.contains(&"FFUZZ-CMP-MEM"), "{engines:?}");
    for name in dir.names("ws/logs") {
        assert!(name.ends_with("-FF.log") || name.ends_with("-FFCM.log"), "{name}");
    }
}

/// The driver goes first, so that it has something to give (empty files among it, which are its
/// fault); domains make sure that we have.
#[test]
fn an_engine_works_beside_the_driver_of_afl() {
    let dir = TestDir::new();
    let (plain, guided) = (common::relay("", ""), common::relay("cmp,mem", ""));
    bins(&dir, &[("relay", &plain), ("relay-cmp-mem", &guided)]);
    dir.write("seeds/near", "RLAYxxxx");
    let port = free_port();
    let Some(mut broker) = broker(&dir, port, "-s seeds") else { return };
    let driver = installed("pastis-aflpp").unwrap();
    let job = dir.program(driver.to_str().unwrap()).words("online -h 127.0.0.1 -tf 5 -p");
    let afl = folder_of_afl(&dir);
    let workspace = dir.path("afl").display().to_string();
    let job = job.arg(port.to_string()).env("AFLPP_PATH", &afl).env("AFLPP_WS", &workspace);
    let theirs = job.env("LC_ALL", "C.UTF-8").env("PYTHONDONTWRITEBYTECODE", "1").start();
    broker.wait_for("-AFLPP][");
    let mut ours = engine(&dir, port, "ours");
    ours.wait_for("fuzzing relay-cmp-mem in");
    // Besides the broker's own seed it gets what is ours.
    let given = dir.path("afl/inputs/dynamic");
    wait_until("our finds at theirs", || contents(&given).len() > 1);
    broker.signal(Signal::SIGINT);
    if let Some(ended) = end_of_stock(broker) {
        ended.says("-FFCM][").does_not_say("Traceback");
        ours.wait_for("ended (User)");
    }
    ours.signal(Signal::SIGTERM);
    let said = ours.finish().expect(0).err;
    let run = said.split("inputs of the broker: ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(run.unwrap().parse::<u32>().unwrap() > 0, "{said}");
    // It ends its fuzzer, and itself, in its own time.
    drop(theirs);
}

#[test]
fn alerts_of_a_report_are_ticked_off() {
    let dir = TestDir::new();
    bins(&dir, &[("relay", &common::relay("", "-DALERTS"))]);
    dir.write("seeds/near", "RLAYxxxx");
    dir.write("report.json", r#"[{"id":1,"type":"a"},{"id":2,"type":"b"},{"id":3,"type":"c"}]"#);
    let port = free_port();
    let options = "-w ws -s seeds -r report.json -c ALERT_ONLY";
    let Some(broker) = launcher(&dir, port, options) else { return };
    let mut engine = engine(&dir, port, "out");
    let results = dir.path("ws/results.csv");
    wait_until("two alerts", || {
        let text = fs::read_to_string(&results).unwrap_or_default();
        text.contains("1,a,True,") && text.contains("2,b,True,True")
    });
    assert!(dir.text("ws/results.csv").contains("3,c,False,False"));
    broker.signal(Signal::SIGINT);
    broker.finish().expect(0).does_not_say("Traceback");
    engine.wait_for("ended (User)");
    engine.signal(Signal::SIGTERM);
    engine.finish().expect(0);
}

/// Seeds go down from the root, a crash goes up, and the root's end is the end of all.
#[test]
fn a_tree_of_brokers_exchanges_seeds_both_ways() {
    let dir = TestDir::new();
    bins(&dir, &[("relay", &common::relay("", ""))]);
    dir.write("seeds/near", "RLAYxxxx");
    let (above, below) = (free_port(), free_port());
    let Some(root) = launcher(&dir, above, "-w root -s seeds") else { return };
    let options = format!("--proxy 127.0.0.1:{above} -w branch");
    let branch = launcher(&dir, below, &options).unwrap();
    let mut leaf = engine(&dir, below, "leaf");
    leaf.wait_for("fuzzing relay in");
    let is_seed = |bytes: &[u8]| bytes == b"RLAYxxxx";
    wait_for_file("the root's seed in the branch", &dir.path("branch/corpus"), is_seed);
    let crash = |bytes: &[u8]| behind(bytes) == Some(b'C');
    wait_for_file("the leaf's crash at the root", &dir.path("root/crashes"), crash);
    let mut top = engine(&dir, above, "top");
    top.wait_for("fuzzing relay in");
    let crashes = queue(&dir, "top").with_file_name("crashes");
    wait_for_file("the leaf's crash at an engine of the root", &crashes, crash);
    root.signal(Signal::SIGINT);
    root.finish().expect(0).does_not_say("Traceback");
    branch.finish().expect(0).does_not_say("Traceback");
    assert_eq!(dir.text("branch/STATUS"), "FINISHED");
    for mut engine in [leaf, top] {
        engine.wait_for("ended (User)");
        engine.signal(Signal::SIGTERM);
        engine.finish().expect(0);
    }
}

#[test]
fn a_pool_of_ten_thousand_inputs_is_run() {
    let dir = TestDir::new();
    bins(&dir, &[("relay", &common::relay("", ""))]);
    for number in 0..10_000 {
        dir.write(&format!("seeds/{number}"), format!("{number:01024}"));
    }
    let port = free_port();
    let Some(broker) = launcher(&dir, port, "-w ws -s seeds") else { return };
    let mut engine = engine(&dir, port, "out");
    engine.wait_for("fuzzing relay in");
    let begun = Instant::now();
    let all_run = |text: &[u8]| {
        String::from_utf8_lossy(text).contains(" 10000 inputs of the broker were run, 0 dropped")
    };
    wait_for_file("a line about all inputs", &dir.path("ws/logs"), all_run);
    // 30 s are the aim, for a build with optimisations on an idle machine.
    eprintln!("a pool of 10000 inputs of 1 KiB: {:?}", begun.elapsed());
    broker.signal(Signal::SIGINT);
    broker.finish().expect(0);
    engine.wait_for("inputs of the broker: 10000 run, 0 dropped, 0 not run");
    engine.signal(Signal::SIGTERM);
    engine.finish().expect(0);
}

/// The folder of afl-fuzz.
fn folder_of_afl(dir: &TestDir) -> String {
    common::need("afl-fuzz");
    let path = dir.program("sh").arg("-c").arg("command -v afl-fuzz").run().out;
    Path::new(path.trim()).parent().unwrap().display().to_string()
}

#[test]
fn the_package_describes_the_engines_of_this_program() {
    let dir = TestDir::new();
    let script = "import sys
from pastisbroker.utils import load_engine_descriptor
for module in sys.argv[1:]:
    engine = load_engine_descriptor(module)
    print(engine.NAME, engine.VERSION, engine.SHORT_NAME)";
    let modules = ENGINES.iter().map(|(_, module)| *module);
    let words: Vec<&str> = ["-c", script].into_iter().chain(modules).collect();
    let Some(job) = python(&dir, &words) else { return };
    let said = job.run().expect(0).out;
    assert_eq!(said.lines().count(), ENGINES.len());
    let mut short: Vec<&str> = Vec::new();
    for ((name, _), line) in ENGINES.iter().zip(said.lines()) {
        assert!(line.starts_with(&format!("{name} {VERSION} ")), "{line}");
        short.push(line.rsplit(' ').next().unwrap());
    }
    short.sort_unstable();
    short.dedup();
    assert!(short.len() == ENGINES.len() && short.iter().all(|name| !name.contains('_')));
}

/// Each engine takes the build that is meant for it, stripped or not.
#[test]
fn descriptors_find_their_targets() {
    let dir = TestDir::new();
    let accepted = |script: &str| python(&dir, &["-c", script]).map(|job| job.run().expect(0).out);
    bins(
        &dir,
        &[
            ("a-cmp-mem", &common::relay("cmp,mem", "")),
            ("b-plain", &common::relay("", "")),
            ("c-cmp", &common::relay("cmp", "")),
            ("d-persistent", &target("persistent.c", "")),
            ("e-other", &common::plain("relay.c", "")),
            ("e-other-heap", &common::plain("relay.c", "")),
        ],
    );
    let script = format!(
        "from pathlib import Path
from pastisbroker.utils import load_engine_descriptor
for module in {:?}:
    engine = load_engine_descriptor(module)
    for path in sorted(Path('bins').iterdir()):
        yes, mode, fuzz = engine.accept_file(path)
        if yes: print(engine.NAME, path.name, mode.name, fuzz.name)",
        ENGINES.iter().map(|(_, module)| *module).collect::<Vec<_>>()
    );
    let expected = "FFUZZ d-persistent PERSISTENT INSTRUMENTED\n\
                    FFUZZ-CMP c-cmp SINGLE_EXEC INSTRUMENTED\n\
                    FFUZZ-CMP-MEM a-cmp-mem SINGLE_EXEC INSTRUMENTED\n\
                    FFUZZ-HEAP e-other-heap SINGLE_EXEC BINARY_ONLY\n";
    let Some(said) = accepted(&script) else { return };
    assert_eq!(said, expected);
    dir.program("sh").arg("-c").arg("strip bins/*").run().expect(0);
    assert_eq!(accepted(&script).unwrap(), expected);
    fs::remove_file(dir.path("bins/b-plain")).unwrap();
    fs::remove_file(dir.path("bins/d-persistent")).unwrap();
    assert!(accepted(&script).unwrap().starts_with("FFUZZ a-cmp-mem "));
    // Without any build, the program without instrumentation.
    for name in ["a-cmp-mem", "c-cmp"] {
        fs::remove_file(dir.path(&format!("bins/{name}"))).unwrap();
    }
    let plain = "FFUZZ e-other SINGLE_EXEC BINARY_ONLY\n\
                 FFUZZ-HEAP e-other-heap SINGLE_EXEC BINARY_ONLY\n";
    assert_eq!(accepted(&script).unwrap(), plain);
}

#[test]
fn the_package_passes_its_own_tests() {
    let dir = TestDir::new();
    let tests = repository("integrations/pastis/tests").display().to_string();
    let Some(job) = python(&dir, &["-m", "unittest", "discover", "-v", "-s", &tests]) else {
        return;
    };
    job.run().expect(0).says("OK");
}

#[test]
fn the_package_can_be_installed() {
    let dir = TestDir::new();
    // Building leaves traces beside the sources, of which git says nothing.
    fs::create_dir_all(dir.path("tree/integrations")).unwrap();
    let copy = dir.path("tree/integrations/pastis");
    for (file, to) in [("integrations/pastis", &copy), (".gitignore", &dir.path("tree/.gitignore"))]
    {
        dir.program("cp").arg("-r").arg(repository(file)).arg(to).run().expect(0);
    }
    let git = |words: &str| dir.program("git").words("-C tree").words(words).run().expect(0).out;
    git("init -q");
    git("add .");
    let options = "-m pip install -q --no-index --no-deps --no-build-isolation \
                   --disable-pip-version-check --prefix installed";
    let words: Vec<&str> = options.split_whitespace().collect();
    let Some(job) = python(&dir, &words) else { return };
    job.arg(&copy).run().expect(0);
    let status = git("status --porcelain");
    let news: Vec<&str> = status.lines().filter(|line| !line.starts_with("A  ")).collect();
    assert!(news.is_empty(), "{news:?}");
    assert!(copy.join("build").exists(), "pip builds elsewhere: this test looks at nothing");
    let command = dir.path("installed/bin/pastis-ffuzz-broker");
    let said = python(&dir, &[]).unwrap().arg(command).arg("--help").run().expect(0).out;
    assert!(said.starts_with("usage: pastis-ffuzz-broker [--listen ADDRESS]"), "{said}");
}

/// `docs/fleet.md`, with the packages that are installed already.
#[test]
fn the_page_about_fleets_is_right() {
    let dir = TestDir::new();
    let Some(python) = installed("python") else { return };
    let sources = repository("integrations/pastis/src");
    let script = format!(
        "#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 PYTHONPATH={} exec {} -m pastisffuzz.launcher \"$@\"\n",
        sources.display(),
        python.display()
    );
    let command = dir.write("venv/bin/pastis-ffuzz-broker", script);
    fs::set_permissions(command, fs::Permissions::from_mode(0o755)).unwrap();
    let mut blocks = page::blocks("fleet.md");
    let before = blocks.len();
    blocks.retain(|block| !block.text.contains("pip install"));
    assert_eq!(blocks.len(), before - 1);
    // Another test run may have the port of the page.
    let port = free_port().to_string();
    blocks.iter_mut().for_each(|block| block.text = block.text.replace("5555", &port));
    page::follow(&dir, &blocks, "19");
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let dir = TestDir::new();
    if dir.program("sh").arg("-c").arg("command -v systemd-analyze").run().code() != 0 {
        skip("systemd-analyze is not installed");
        return;
    }
    let unit = fs::read_to_string(repository("integrations/systemd/ffuzz-pastis.service")).unwrap();
    // It has to be there.
    let unit = unit.replace("/usr/local/bin/ffuzz", "/bin/true");
    dir.write("ffuzz-pastis.service", unit);
    let done = dir.program("systemd-analyze").words("verify ./ffuzz-pastis.service").run();
    let done = done.expect(0);
    assert!(!done.err.contains("ffuzz-pastis.service"), "{}", done.err);
}

#[test]
fn the_manifest_is_one_for_kubernetes() {
    let dir = TestDir::new();
    let file = repository("integrations/kubernetes/fleet.yaml").display().to_string();
    let script = "import sys, yaml
for part in yaml.safe_load_all(open(sys.argv[1])):
    spec = part['spec']
    if part['kind'] == 'StatefulSet':
        assert spec['template']['metadata']['labels'] == spec['selector']['matchLabels']
    print(part['apiVersion'], part['kind'], part['metadata']['name'])";
    let Some(job) = python(&dir, &["-c", script, &file]) else { return };
    let expected = "v1 Service pastis-broker\napps/v1 StatefulSet pastis-broker\n\
                    apps/v1 StatefulSet ffuzz\n";
    assert_eq!(job.run().expect(0).out, expected);
}
