//! Mutators in Python. What single results become is tested where they are read
//! (`src/mutators/python/tests.rs`).

#![cfg(feature = "python")]

use crate::common;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Finished, Job, TestDir, plain, repository, skip, target, wait_until};
use nix::sys::signal::Signal;
use object::read::elf::ElfFile64;
use object::{Endianness, elf};

/// A campaign with a module of this folder.
fn with(dir: &TestDir, options: &str, target: &Path, words: &str, module: &str) -> Job {
    let path = dir.path("").display().to_string();
    let job = dir.fuzz(options, target, words).env("AFL_PYTHON_MODULE", module);
    job.env("PYTHONPATH", &path)
}

/// The same with a source, and a target that only keeps a log.
fn run(source: &str, options: &str) -> (TestDir, Finished) {
    let dir = TestDir::with_seed("a seed");
    dir.write("mutator.py", source);
    let job = with(&dir, &format!("-n -d {options}"), &plain("append.c", ""), "log", "mutator");
    let done = job.env("AFL_DISABLE_TRIM", "1").run();
    (dir, done)
}

#[test]
fn a_file_name_in_place_of_a_module_is_refused() {
    let dir = TestDir::with_seed("A");
    dir.write("mu.py", "def fuzz(buf, add_buf, max_size):\n    return buf\n");
    let job = with(&dir, "-n", &plain("append.c", ""), "log", "mu.py");
    job.run().refused(1, "AFL_PYTHON_MODULE=mu.py is a file", "AFL_PYTHON_MODULE=mu");
}

/// Reads a log of calls from its beginning.
struct Calls<'a>(&'a [&'a str]);

impl<'a> Calls<'a> {
    /// The next call, which has to be this one.
    #[track_caller]
    fn one(&mut self, name: &str) -> &'a str {
        let (first, rest) = self.0.split_first().expect("a call");
        let next = &rest[..rest.len().min(5)];
        assert_eq!(first.split(' ').next(), Some(name), "{first}, then {next:?}");
        self.0 = rest;
        first
    }

    fn next_is(&self, name: &str) -> bool {
        self.0.first().is_some_and(|call| call.split(' ').next() == Some(name))
    }

    #[track_caller]
    fn run(&mut self) {
        self.one("post_process");
        self.one("post_run");
    }

    /// Number of runs that follow.
    #[track_caller]
    fn runs(&mut self) -> usize {
        let mut count = 0;
        while self.next_is("post_process") {
            self.run();
            count += 1;
        }
        count
    }
}

#[test]
fn hooks_are_called_in_the_order_of_afl() {
    let dir = TestDir::with_seed("a seed");
    dir.write("hooks.py", std::fs::read(repository("tests/mutators/hooks.py")).unwrap());
    // New coverage with the first input of the custom stage.
    let target = target("lengths.c", "");
    let calls = dir.path("calls").display().to_string();
    let job = with(&dir, "-z -E 60 -s 1", &target, "", "hooks").env("CALLS", &calls);
    job.run().expect(0);
    let text = dir.text("calls");
    let lines: Vec<&str> = text.lines().collect();
    let mut calls = Calls(&lines);
    calls.one("init");
    let seed = calls.one("queue_new_entry");
    assert_eq!(seed, "queue_new_entry id:000000,time:0,execs:0,orig:seed None");
    assert!(calls.runs() > 3, "calibration");
    assert_eq!(calls.one("queue_get"), "queue_get id:000000,time:0,execs:0,orig:seed");
    calls.one("init_trim");
    for _ in 0..2 {
        calls.one("trim");
        calls.run();
        calls.one("post_trim");
        // What the step has found.
        while calls.next_is("describe") || calls.next_is("queue_new_entry") {
            calls.0 = &calls.0[1..];
            calls.runs();
        }
    }
    calls.one("fuzz_count");
    let mut found = 0;
    for _ in 0..3 {
        assert_eq!(calls.one("fuzz"), "fuzz bytearray bytearray 1048576");
        calls.run();
        if calls.next_is("describe") {
            found += 1;
            assert_eq!(calls.one("describe"), "describe 204");
            let saved = calls.one("queue_new_entry");
            assert!(saved.contains(",described,by:python,+cov id:000000,"), "{saved}");
            assert!(calls.runs() > 3, "calibration");
        }
    }
    assert!(found > 0, "{text}");
    calls.one("havoc_mutation_probability");
    for _ in 0..3 {
        calls.one("havoc_mutation");
        while calls.next_is("havoc_mutation") {
            calls.one("havoc_mutation");
        }
        calls.run();
        if calls.next_is("queue_new_entry") {
            calls.one("queue_new_entry");
            calls.runs();
        }
    }
    assert_eq!(lines.last(), Some(&"deinit"));
}

#[test]
fn an_exception_skips_its_input_and_a_hundred_disable_the_hook() {
    let (dir, done) = run(
        "count = 0\n\
         def fuzz_count(buf): return 70\n\
         def fuzz(buf, add_buf, max_size):\n\
        \x20 global count\n  count += 1\n\
        \x20 if count == 50: return b'fifty'\n\
        \x20 if count % 2: return b'odd'[7]\n\
        \x20 raise ValueError(count)\n\
         def havoc_mutation(buf, max_size): return buf\n",
        "-E 1500",
    );
    let done = done.expect(0).says("IndexError: index out of range").says("ValueError: 2");
    let said = done.out.clone() + &done.err;
    assert_eq!(said.matches("ValueError").count(), 2, "text and source, of one traceback: {said}");
    assert_eq!(said.matches("fuzz failed 100 times in a row and is switched off").count(), 1);
    assert!(dir.text("log").lines().any(|line| line == "fifty"));
}

#[test]
fn results_of_the_wrong_type_are_reported_and_skipped() {
    let (dir, done) = run("def fuzz(buf, add_buf, max_size): return 'text'\n", "-E 100");
    done.expect(0).says("mutator mutator: fuzz: TypeError: memoryview: a bytes-like object");
    assert!(!dir.text("log").contains("text"));
}

#[test]
fn long_results_are_cut() {
    let source = "def fuzz(buf, add_buf, max_size): return b'L' * (max_size + 1)\n";
    let (dir, done) = run(source, "-E 100 -G 10");
    done.expect(0).says("more than 10 bytes");
    // In bytes: havoc's inputs are no text.
    let longest = dir.read("log").split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert_eq!(longest, Some(10));
}

#[test]
fn a_post_processor_that_drops_everything_ends_the_campaign() {
    let (_, done) = run("def post_process(buf): return b''\n", "-E 1000");
    done.expect(1).says("post_process dropped the last").says("the mutators drop all");
}

#[test]
fn what_is_sent_replaces_what_is_delivered() {
    let dir = TestDir::with_seed("a seed");
    let file = dir.path("sent").display().to_string();
    dir.write(
        "send.py",
        format!("def fuzz_send(buf):\n  with open({file:?}, 'wb') as f: f.write(b'sent ' + buf)\n"),
    );
    let job = with(&dir, "-n -d -E 30 -f sent", &plain("append.c", "-DFROM_FILE"), "log", "send");
    job.run().expect(0);
    assert!(dir.text("log").lines().filter(|line| line.starts_with("sent ")).count() > 10);
}

#[test]
fn two_libraries_and_a_module_are_chained_in_this_order() {
    let dir = TestDir::with_seed("a seed");
    for letter in ["A", "B"] {
        let flags = format!("-shared -fPIC -DLETTER='{letter}'");
        let built = plain("tests/mutators/letter.c", &flags);
        std::fs::copy(built, dir.path(&format!("{letter}.so"))).unwrap();
    }
    dir.write(
        "third.py",
        "def post_process(buf): return bytes(buf) + b'P'\n\
                           def fuzz(buf, add_buf, max_size): return b'made'\n",
    );
    let wanted = "-n -d -E 100 --mutator ./B.so";
    let job = with(&dir, wanted, &plain("append.c", ""), "log", "third");
    job.env("AFL_CUSTOM_MUTATOR_LIBRARY", "./A.so").run().expect(0);
    let log = dir.read("log");
    let made = log.split(|byte| *byte == b'\n').filter(|line| *line == b"madeABP").count();
    assert!(made > 10, "{made}");
    let text = String::from_utf8_lossy(&log);
    assert!(text.starts_with("a seedABP\n"), "{text}");
    let stats = dir.text("out/default/fuzzer_stats");
    let places: Vec<_> = ["A.so", "B.so", "third"].map(|name| stats.find(name)).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{stats}");
}

#[test]
fn a_module_that_cannot_be_used_is_explained() {
    let dir = TestDir::with_seed("a seed");
    let target = plain("append.c", "");
    let refused = |source: &str, cause: &str, remedy: &str| {
        dir.write("broken.py", source);
        let job = with(&dir, "-n", &target, "log", "broken").run().expect(1);
        job.says(cause).says(remedy);
    };
    refused("import no_such_module", "No module named 'no_such_module'", "PYTHONPATH");
    refused("def fuzz(:", "SyntaxError", "PYTHONPATH");
    refused("x = 1", "has none of the hooks", "docs/mutators.md");
    refused(
        "def fuzz(a, b, c): return a\ndef init(seed): raise OSError('no key')",
        "no key",
        "init",
    );
    let job = with(&dir, "-n", &target, "log", "absent").run().expect(1);
    job.says("cannot import the Python module absent").says("python3 -c 'import absent'");
}

#[test]
fn packages_of_a_virtual_environment_are_seen() {
    let dir = TestDir::with_seed("a seed");
    dir.write("uses.py", "import only_there\ndef fuzz(a, b, c): return only_there.text\n");
    let job = |env: &str| {
        let venv = dir.path(env).display().to_string();
        with(&dir, "-n -d -E 60", &plain("append.c", ""), "log", "uses").env("VIRTUAL_ENV", &venv)
    };
    job("none").run().expect(1).says("No module named 'only_there'");
    let version = dir.program("/usr/bin/python3").arg("-c");
    let version = version.arg("import sys; print('python%d.%d' % sys.version_info[:2])");
    let version = version.run().expect(0).out.trim().to_owned();
    let packages = format!("venv/lib/{version}/site-packages");
    dir.write(&format!("{packages}/only_there.py"), "text = b'from the environment'\n");
    job("venv").run().expect(0);
    assert!(dir.text("log").lines().any(|line| line == "from the environment"));
}

#[test]
fn an_interrupt_ends_the_campaign_and_not_the_module() {
    let dir = TestDir::with_seed("a seed");
    let source = "import sys\n\
         def fuzz(buf, add_buf, max_size): return buf\n\
         def deinit(): sys.stdout.write('well ended')\n";
    dir.write("mutator.py", source);
    let mut job = with(&dir, "-n", &plain("append.c", ""), "log", "mutator").start();
    job.wait_for("fuzzing; Ctrl-C stops");
    wait_until("some runs", || dir.path("log").exists() && dir.text("log").lines().count() > 50);
    job.signal(Signal::SIGINT);
    job.finish().expect(0).says("well ended").does_not_say("KeyboardInterrupt");
}

/// Names of the libraries without which a program does not start.
fn needed(program: &Path) -> Vec<String> {
    let content = std::fs::read(program).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*content).unwrap();
    let table = file.elf_section_table().dynamic_table(file.endian(), &*content).unwrap();
    let wanted = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    let names = wanted.map(|entry| table.string(entry).unwrap());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn the_executable_needs_no_libpython() {
    let needed = needed(Path::new(env!("CARGO_BIN_EXE_ffuzz")));
    assert!(needed.iter().any(|name| name.starts_with("libc.so")), "{needed:?}");
    assert!(!needed.iter().any(|name| name.starts_with("libpython")), "{needed:?}");
}

/// `ffuzz` with no python3 in its path, and with files in place of libpython that are none.
fn without_python(dir: &TestDir, job: Job) -> Job {
    for minor in 9..30 {
        dir.write(&format!("broken/libpython3.{minor}.so.1.0"), "");
    }
    let broken = dir.path("broken").display().to_string();
    job.env("LD_LIBRARY_PATH", &broken).env("PATH", &broken)
}

#[test]
fn without_libpython_it_fuzzes_and_says_what_a_module_lacks() {
    let dir = TestDir::with_seed("a seed");
    let target = plain("append.c", "");
    without_python(&dir, dir.fuzz("-n -E 50", &target, "log")).run().expect(0);
    assert!(dir.read("log").split(|byte| *byte == b'\n').count() > 20);
    std::fs::remove_dir_all(dir.path("out")).unwrap();
    without_python(&dir, dir.ffuzz("--version")).run().expect(0);
    dir.write("mutator.py", "def fuzz(buf, add_buf, max_size): return buf\n");
    let done = without_python(&dir, with(&dir, "-n", &target, "log", "mutator")).run();
    let cause = "needs libpython, and none can be loaded (";
    let done = done.refused(1, cause, "apt-get install libpython3-dev");
    done.says("libpython3.29.so.1.0: file too short");
}

/// Asks a Python for one line.
fn ask(python: &Path, expression: &str) -> Option<String> {
    let script = format!("import sys, sysconfig; print({expression})");
    let output = Command::new(python).args(["-I", "-c", &script]).output().ok()?;
    let line = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

const VERSION: &str = "sys.version.replace('\\n', ' ')";

/// Those on this machine whose library can be loaded, each in a folder of its own.
fn pythons() -> Vec<PathBuf> {
    let names = ["python3".to_owned(), "/usr/bin/python3".to_owned()];
    let names = names.into_iter().chain((9..20).map(|minor| format!("python3.{minor}")));
    let mut found: Vec<PathBuf> = names
        .filter_map(|name| {
            let python = ask(Path::new(&name), "sys.executable")?;
            let python = std::fs::canonicalize(python).ok()?;
            let shared = "sysconfig.get_config_var('Py_ENABLE_SHARED') == 1 and \
                          sys.version_info >= (3, 9) and sys.abiflags == ''";
            let library = "sysconfig.get_config_var('LIBDIR') + '/' + \
                           sysconfig.get_config_var('INSTSONAME')";
            let there =
                ask(&python, shared)? == "True" && Path::new(&ask(&python, library)?).exists();
            there.then_some(python)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn a_module_runs_in_the_python_of_the_path_or_of_the_virtual_environment() {
    let dir = TestDir::with_seed("a seed");
    // C extensions look for the functions of libpython where all can see them.
    dir.write(
        "tells.py",
        format!(
            "import sys\n\
             try:\n  import _ctypes\nexcept ModuleNotFoundError: pass\n\
             open('version', 'w').write({VERSION})\n\
             def fuzz(buf, add_buf, max_size): return buf\n"
        ),
    );
    let pythons = pythons();
    for (number, python) in pythons.iter().enumerate() {
        let bin = format!("bin{number}");
        dir.write(&format!("{bin}/note"), "");
        std::os::unix::fs::symlink(python, dir.path(&format!("{bin}/python3"))).unwrap();
        let version = ask(python, VERSION).unwrap();
        let path = dir.path(&bin).display().to_string();
        let job = || with(&dir, "-n -E 20", &plain("append.c", ""), "log", "tells");
        job().env("PATH", &path).run().expect(0).does_not_say("it runs in Python");
        assert_eq!(dir.text("version"), version, "python3 of the path");
        std::fs::remove_dir_all(dir.path("out")).unwrap();
        // The folder of an environment names its Python.
        let job = job().env("VIRTUAL_ENV", &dir.path("venv").display().to_string());
        let _ = std::fs::remove_dir_all(dir.path("venv"));
        let venv = dir.program(python.to_str().unwrap()).words("-m venv --without-pip venv").run();
        if venv.code() == 0 {
            job.run().expect(0).does_not_say("has no packages");
            assert_eq!(dir.text("version"), version, "python3 of the environment");
            std::fs::remove_dir_all(dir.path("out")).unwrap();
        }
    }
    if pythons.is_empty() {
        skip("no Python has a shared library here");
    }
}
