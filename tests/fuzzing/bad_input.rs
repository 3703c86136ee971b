//! What cannot be fuzzed: one line with the cause, one with the remedy, exit 1 (2 for wrong usage),
//! and nothing overwritten.

use crate::common;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::{TestDir, plain, target};

fn good() -> PathBuf {
    target("outcomes.c", "")
}

/// A copy of the good target with something wrong in it.
fn spoiled(dir: &TestDir, spoil: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read(good()).unwrap();
    spoil(&mut bytes);
    let path = dir.write("spoiled", bytes);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

// --- the target

#[test]
fn a_target_that_does_not_exist() {
    let dir = TestDir::with_seed("A");
    let missing = dir.path("missing");
    dir.fuzz("", &missing, "").run().refused(1, "cannot find the target", "path");
    let name = PathBuf::from("no-such-program-anywhere");
    dir.fuzz("", &name, "").run().refused(1, "cannot find the target", "./target");
}

#[test]
fn a_target_that_is_not_executable() {
    let dir = TestDir::with_seed("A");
    let path = spoiled(&dir, |_| ());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    dir.fuzz("", &path, "").run().refused(1, "not an executable file", "chmod +x");
}

#[test]
fn a_target_that_is_still_being_written() {
    let dir = TestDir::with_seed("A");
    let path = spoiled(&dir, |_| ());
    let _writer = fs::File::options().write(true).open(&path).unwrap();
    dir.fuzz("", &path, "none").run().refused(1, "Text file busy", "until its build is done");
}

#[test]
fn a_target_that_is_a_script() {
    let dir = TestDir::with_seed("A");
    let path = dir.write("script", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    dir.fuzz("", &path, "").run().refused(1, "is a script", "AFL_SKIP_BIN_CHECK");
}

#[test]
fn a_target_that_is_no_program() {
    let dir = TestDir::with_seed("A");
    let path = dir.write("text", "hello\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    dir.fuzz("", &path, "").run().refused(1, "not an ELF file, not a program", "Linux program");
    let folder = dir.path("in");
    dir.fuzz("", &folder, "").run().refused(1, "is a folder, not a program", "Linux program");
    let object = dir.path("outcomes.o");
    let source = common::repository("tests/targets/outcomes.c");
    dir.ffuzz("cc -c -o").arg(&object).arg(source).env("AFL_QUIET", "1").run().expect(0);
    fs::set_permissions(&object, fs::Permissions::from_mode(0o755)).unwrap();
    dir.fuzz("", &object, "").run().refused(1, "is an object file", "Linux program");
}

#[test]
fn a_target_that_is_no_program_without_source() {
    let dir = TestDir::with_seed("A");
    let script = dir.write("script", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    dir.fuzz("-Q", &script, "").run().refused(1, "is a script", "name the program");
    let job = dir.fuzz("-Q", &script, "").env("AFL_SKIP_BIN_CHECK", "1");
    job.run().refused(1, "cannot be read as an ELF program", "of a script, name the program");
    // The section headers are missing, the head is whole.
    let part = dir.write("part", &fs::read(plain("outcomes.c", "")).unwrap()[..1000]);
    fs::set_permissions(&part, fs::Permissions::from_mode(0o755)).unwrap();
    dir.fuzz("-Q", &part, "").run().refused(1, "cannot be read as an ELF", "a whole ELF file");
}

#[test]
fn a_target_for_another_machine() {
    let dir = TestDir::with_seed("A");
    // Byte 18 of an ELF file is its machine; 243 is RISC-V.
    let path = spoiled(&dir, |bytes| bytes[18] = 243);
    let cause = "is built for ELF machine 243 (64 bits)";
    dir.fuzz("", &path, "").run().refused(1, cause, "for this machine");
    // Byte 4 is the class: 1 for 32 bits, which nobody builds for the 64-bit machines.
    let path = spoiled(&dir, |bytes| bytes[4] = 1);
    dir.fuzz("", &path, "").run().refused(1, "(32 bits)", "for this machine");
}

#[test]
fn a_target_without_instrumentation() {
    let dir = TestDir::with_seed("A");
    let path = plain("outcomes.c", "");
    dir.fuzz("", &path, "abort").run().refused(1, "is not instrumented", "ffuzz-cc");
    let path = plain("outcomes.c", "");
    let job = dir.fuzz("", &path, "abort").env("AFL_SKIP_BIN_CHECK", "1");
    let job = job.env("AFL_FORKSRV_INIT_TMOUT", "500");
    job.run().refused(1, "ended before its fork server was up", "by hand");
}

#[test]
fn a_target_that_ends_before_its_fork_server_is_up() {
    let dir = TestDir::with_seed("A");
    let legacy = plain("legacy.c", "");
    for (how, cause) in [("exit", "exit code 3"), ("die", "killed by signal 11")] {
        dir.fuzz("", &legacy, how).run().refused(1, cause, "AFL_DEBUG_CHILD=1");
    }
    let done = dir.fuzz("-m 20", &target("outcomes.c", "-DBALLAST=99999999"), "none").run();
    done.refused(1, "ended before its fork server was up", "-m none");
}

/// Compiles a program that is written here.
fn built(dir: &TestDir, name: &str, source: &str) -> PathBuf {
    let (source, program) = (dir.write(&format!("{name}.c"), source), dir.path(name));
    let job = dir.ffuzz("cc -o").arg(&program).arg(source).env("AFL_QUIET", "1");
    job.run().expect(0);
    program
}

#[test]
fn the_last_line_of_a_target_that_ends_at_its_start_is_shown() {
    let dir = TestDir::with_seed("A");
    let source = r#"
        #include <stdio.h>
        int main(void) {
          fprintf(stderr, "loading\ncannot open the model\n");
          if (stderr) return 7;
          __AFL_INIT();
          return 0;
        }
    "#;
    let program = built(&dir, "model", source);
    let cause = "(exit code 7, after the line \"cannot open the model\")";
    dir.fuzz("-E 10", &program, "").run().refused(1, cause, "AFL_DEBUG_CHILD=1");
}

#[test]
fn a_harness_whose_program_has_a_main_of_its_own_is_named() {
    let dir = TestDir::with_seed("A");
    let source = "int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return n ? d[0] & 0 : 0; }\n\
                  int main(void) { return 0; }\n";
    let program = built(&dir, "two", source);
    let done = dir.fuzz("-s 1 -E 100", &program, "").run().expect(0);
    done.says("the target does not read its standard input")
        .says("leave that main out of the build");
}

/// Inputs never reach such a target: more time does not help.
#[test]
fn a_server_that_waits_on_a_socket_is_told_from_a_slow_target() {
    let dir = TestDir::with_seed("A");
    for (name, wait) in [
        ("accepts", "accept(server, 0, 0);"),
        ("polls", "struct pollfd fds = {server, POLLIN, 0}; poll(&fds, 1, -1);"),
    ] {
        let source = format!(
            "#include <poll.h>\n#include <sys/socket.h>\nint main(void) {{\n\
             int server = socket(AF_INET, SOCK_STREAM, 0); listen(server, 1); {wait}\n return 0; }}\n"
        );
        let server = built(&dir, name, &source);
        let done = dir.fuzz("-E 10 -t 100", &server, "").run();
        done.refused(
            1,
            "waits for connections or data on a socket",
            "over that socket: --net tcp:",
        );
        fs::remove_dir_all(dir.path("out")).unwrap();
    }
}

#[test]
fn a_target_without_a_handshake_is_refused() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("", &plain("legacy.c", ""), "silent");
    let job = job.env("AFL_FORKSRV_INIT_TMOUT", "300");
    job.run().refused(1, "did not answer within 300 ms", "AFL_FORKSRV_INIT_TMOUT");
}

#[test]
fn a_target_that_wants_input_before_its_fork_server_is_up() {
    let dir = TestDir::with_seed("A");
    nix::unistd::mkfifo(&dir.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pipe = dir.path("pipe").display().to_string();
    let job = dir.fuzz("", &plain("legacy.c", ""), &format!("reads {pipe}"));
    let job = job.env("AFL_FORKSRV_INIT_TMOUT", "500");
    job.run().refused(1, "waits for input before its fork server is up", "__AFL_INIT()");
    // One that does not wait finds nothing there, and mostly ends.
    let early = dir.write(
        "early.c",
        "#include <unistd.h>\nint main(void) { char c; if (read(0, &c, 1) < 1) return 5; \
         __AFL_INIT(); return 0; }\n",
    );
    let job = dir.ffuzz("cc -o").arg(dir.path("early")).arg(early).env("AFL_QUIET", "1");
    job.run().expect(0);
    let early = dir.path("early");
    dir.fuzz("", &early, "").run().refused(1, "(exit code 5)", "reach __AFL_INIT() without any");
}

#[test]
fn a_target_whose_library_or_loader_is_missing() {
    let dir = TestDir::with_seed("A");
    let source = dir.write("lib.c", "int of_the_library(void) { return 1; }\n");
    let library = dir.path("libgone.so");
    dir.program("cc").words("-shared -fPIC -o").arg(&library).arg(source).run().expect(0);
    let main = "extern int of_the_library(void);\nint main(void) { return of_the_library(); }\n";
    let main = dir.write("main.c", main);
    let job = dir.ffuzz("cc -o").arg(dir.path("needs-it")).arg(main).words("-L. -lgone");
    job.env("AFL_QUIET", "1").run().expect(0);
    fs::remove_file(&library).unwrap();
    let needs_it = dir.path("needs-it");
    let cause = "shared libraries that are not found: libgone.so";
    for options in ["", "-n"] {
        dir.fuzz(options, &needs_it, "").run().refused(1, cause, "LD_LIBRARY_PATH");
        fs::remove_dir_all(dir.path("out")).unwrap();
    }

    let loader = target("outcomes.c", "-Wl,--dynamic-linker=/lib64/ld-missing.so.9");
    dir.fuzz("", &loader, "none").run().refused(1, "/lib64/ld-missing.so.9", "install");
}

// --- seeds

#[test]
fn empty_seed_folders_are_refused() {
    let dir = TestDir::new();
    dir.fuzz("", &good(), "none").run().refused(1, "holds no seed", "small valid input");
    dir.write("in/empty", "");
    dir.write("in/README.txt", "words");
    dir.write("in/.hidden", "A");
    dir.fuzz("", &good(), "none").run().refused(1, "holds no seed", "small valid input");
    fs::remove_dir_all(dir.path("in")).unwrap();
    dir.fuzz("", &good(), "none").run().refused(1, "cannot read seed folder", "-i");
    dir.write("in", "a file");
    dir.fuzz("", &good(), "none").run().refused(1, "cannot read seed folder", "-i");
    for (archive, command) in [("seeds.zip", "unzip "), ("seeds.tar.gz", "tar xf ")] {
        let path = dir.write(archive, "PK").display().to_string();
        let job = dir.ffuzz("-o out -i").arg(&path).arg("--").arg(good()).words("none");
        job.run().refused(1, "cannot read seed folder", command);
    }
    assert!(!dir.path("out").exists());
}

#[test]
fn a_seed_that_cannot_be_read_is_named() {
    let dir = TestDir::with_seed("A");
    symlink("nowhere", dir.path("in/dangling")).unwrap();
    dir.fuzz("", &good(), "none").run().refused(1, "in/dangling", "take it out");
    fs::remove_file(dir.path("in/dangling")).unwrap();
    symlink("round", dir.path("in/round")).unwrap();
    dir.fuzz("", &good(), "none").run().refused(1, "in/round", "take it out");
}

#[test]
fn folders_with_circular_links_end() {
    let dir = TestDir::with_seed("A");
    symlink(".", dir.path("in/again")).unwrap();
    dir.fuzz("-s 1 -E 100", &good(), "none").run().expect(0);
    assert_eq!(dir.queue().iter().filter(|name| name.contains("orig:")).count(), 1);
}

/// By hand such a target neither crashes nor takes long.
#[test]
fn a_target_that_overwrites_shared_memory() {
    for byte in ["255", "65"] {
        let dir = TestDir::with_seed("seed");
        let done = dir.fuzz("-t 3000", &target("scribbling.c", ""), byte).run();
        let cause = "0 crash the target, 0 take longer than the timeout, 1 end its fork server";
        done.refused(1, cause, "writes out of bounds").says("may have overwritten shared memory");
    }
}

#[test]
fn seeds_that_crash_or_hang() {
    let dir = TestDir::with_seed("Q");
    dir.fuzz("", &good(), "abort").run().refused(1, "1 crash the target", "by hand");
    let dir = TestDir::with_seed("Q");
    let done = dir.fuzz("-t 100", &good(), "hang").run();
    done.refused(1, "1 take longer than the timeout", "a larger -t");
    let dir = TestDir::with_seed("A");
    dir.write("in/bad", "Q");
    let done = dir.fuzz("-s 1 -E 200", &good(), "abort").run();
    done.expect(0).says("crashes the target; it is used for splicing only");
    let dir = TestDir::with_seed("A");
    dir.write("in/bad", "Q");
    let job = dir.fuzz("", &good(), "abort").env("AFL_EXIT_ON_SEED_ISSUES", "1");
    job.run().refused(1, "crashes the target", "take it out");
}

#[test]
fn seeds_with_equal_coverage_give_a_warning() {
    // The word "file" is not the name of the input: the target waits for nothing and reads nothing.
    let dir = TestDir::with_seed("QUIZ");
    dir.write("in/other", "A");
    dir.write("file", "A");
    let done = dir.fuzz("-s 1 -E 100", &good(), "abort file").run().expect(0);
    done.says("the target does not read its standard input").says("abort @@");
    fs::remove_dir_all(dir.path("out")).unwrap();
    let done = dir.fuzz("-s 1 -E 100", &good(), "none @@").run().expect(0);
    done.does_not_say("the same path").does_not_say("does not read");
}

#[test]
fn files_that_are_no_seeds_are_skipped() {
    let dir = TestDir::with_seed("A");
    dir.write("elsewhere", "linked");
    symlink(dir.path("elsewhere"), dir.path("in/link")).unwrap();
    nix::unistd::mkfifo(&dir.path("in/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path("in/socket")).unwrap();
    dir.write("in/deeper/and/deeper", "nested");
    dir.fuzz("-s 1 -E 100", &good(), "none").run().expect(0);
    let mut imported: Vec<_> = dir.queue().into_iter().filter(|n| n.contains("orig:")).collect();
    imported.retain(|name| name.contains("time:0,"));
    let names: Vec<&str> =
        imported.iter().map(|name| name.split_once("orig:").unwrap().1).collect();
    assert_eq!(names, ["deeper", "link", "seed"]);
    assert_eq!(dir.read(&format!("out/default/queue/{}", imported[1])), b"linked");
}

#[test]
fn a_huge_seed_is_read_up_to_the_input_limit() {
    let dir = TestDir::with_seed("A");
    fs::File::create(dir.path("in/huge")).unwrap().set_len(1 << 30).unwrap();
    // Less memory than the file is long.
    let job = dir.program("prlimit").words("--as=900000000").arg(env!("CARGO_BIN_EXE_ffuzz"));
    let job = job.words("-i in -o out -t 3000 -s 1 -E 50 -d --").arg(good()).words("none");
    job.run().expect(0);
    let queue = dir.queue();
    let huge = queue.iter().find(|name| name.contains("orig:huge")).unwrap();
    assert_eq!(dir.read(&format!("out/default/queue/{huge}")).len(), 1 << 20);
}

// --- the output folder

#[test]
fn an_output_folder_with_finds_is_refused_and_unchanged() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -E 300", &good(), "abort").run().expect(0);
    assert!(!dir.crashes().is_empty());
    let before = dir.snapshot("out");
    dir.fuzz("-s 1 -E 300", &good(), "abort").run().refused(1, "already holds work", "-i -");
    assert!(dir.snapshot("out") == before, "something changed");
    // Also when only crashes are left of it.
    for name in dir.queue() {
        fs::remove_file(dir.path(&format!("out/default/queue/{name}"))).unwrap();
    }
    dir.fuzz("-s 1 -E 300", &good(), "abort").run().refused(1, "already holds work", "-i -");
}

#[test]
fn a_folder_in_use_is_refused() {
    let dir = TestDir::with_seed("A");
    let mut first = dir.fuzz("-s 1", &good(), "none").start();
    first.wait_for_campaign(&dir);
    let cause = "belongs to a fuzzer that is running";
    dir.fuzz("-s 1 -E 300", &good(), "none").run().refused(1, cause, "another -o");
    let resume = dir.ffuzz("-i - -o out -E 300 --").arg(good()).words("none");
    resume.run().refused(1, cause, "another -o");
    // The first goes on, its files are there.
    first.signal(nix::sys::signal::Signal::SIGINT);
    first.finish().expect(0);
    assert_eq!(dir.queue().len() as u64, dir.stat("corpus_count"));
}

#[test]
fn nothing_to_resume() {
    let dir = TestDir::with_seed("A");
    let resume = || dir.ffuzz("-i - -o out --").arg(good()).words("none").run();
    resume().refused(1, "nothing to resume", "-i SEEDS");
    assert!(!dir.path("out").exists());
    dir.write("out/default/queue/README", "");
    resume().refused(1, "nothing to resume", "-i SEEDS");
}

#[test]
fn a_file_in_the_place_of_a_folder_or_link() {
    let dir = TestDir::with_seed("A");
    dir.write("out/queue", "mine");
    dir.fuzz("-E 100", &good(), "none").run().refused(1, "out/queue", "move");
    assert_eq!(dir.text("out/queue"), "mine");
    fs::remove_dir_all(dir.path("out")).unwrap();
    dir.write("out", "mine");
    dir.fuzz("-E 100", &good(), "none").run().refused(1, "out", "-o");
    assert_eq!(dir.text("out"), "mine");
}

// --- usage

#[test]
fn wrong_usage_ends_with_2() {
    let dir = TestDir::with_seed("A");
    let good = good();
    let refused = |words: &str, cause: &str, remedy: &str| {
        dir.ffuzz(words).arg(&good).run().refused(2, cause, remedy);
    };
    dir.ffuzz("-i in -o out").run().refused(2, "no target given", "./target");
    refused("-o out", "no seed folder given", "-i SEEDS");
    refused("-i in", "no output folder given", "-o OUT");
    refused("-i in -o in", "same folder", "another -o");
    refused("-i in -o out -M a -S b", "exclude each other", "leave");
    refused("-i in -o out -E x", "-E", "");
    refused("-i in -o out -V 0", "-V", "");
    refused("-i in -o out -m 1x", "-m", "");
    refused("-i in -o out -t x", "-t", "");
    refused("-i in -o out -N 100", "-N takes no number", "-G 100");
    refused("-i in -o out -n 100", "-n takes no number", "-E 100");
    refused("-i in -o out -S ../x", "-S", "");
    refused("-i in -o out -g 10 -G 5", "larger than the largest", "-G");
    assert!(!dir.path("out").exists());
    let unknown = dir.ffuzz("-i in -o out --no-such-option").arg(&good).run().expect(2);
    assert!(unknown.err.contains("--no-such-option"), "{}", unknown.err);
}

#[test]
fn values_of_variables_are_checked() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("", &good(), "none").env("AFL_HANG_TMOUT", "soon");
    job.run().refused(1, "AFL_HANG_TMOUT=soon", "unset");
    let job = dir.fuzz("", &good(), "none").env("AFL_CRASH_EXITCODE", "0");
    job.run().refused(1, "AFL_CRASH_EXITCODE=0", "exit code");
    let job = dir.fuzz("", &good(), "none").env("AFL_TMPDIR", "missing");
    job.run().refused(1, "AFL_TMPDIR", "create it");
    for name in ["ASAN_OPTIONS", "MSAN_OPTIONS", "LSAN_OPTIONS"] {
        let job = dir.fuzz("", &good(), "none").env(name, "verbosity=1");
        job.run().refused(1, &format!("{name} does not contain"), "or unset it");
    }
    let job = dir.fuzz("-E 100", &good(), "none").env("AFL_NO_IU", "1");
    job.run().expect(0).says("did you mean AFL_NO_UI?");
}

#[test]
fn unreadable_files_are_named() {
    let dir = TestDir::with_seed("A");
    let close = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let ffuzz = |words: &str, target: &Path| {
        let ffuzz = env!("CARGO_BIN_EXE_ffuzz");
        let job = if nix::unistd::geteuid().is_root() {
            // Root may read everything unless it gives this right away.
            let without = "--bounding-set=-dac_override,-dac_read_search";
            dir.program("setpriv").words(without).arg(ffuzz)
        } else {
            dir.program(ffuzz)
        };
        job.words(words).arg("--").arg(target).run()
    };
    let target = spoiled(&dir, |_| ());
    close(&dir.path("in/seed"), 0);
    ffuzz("-i in -o out", &target).refused(1, "cannot read the seed", "check its permissions");
    ffuzz("tmin -i in/seed -o small", &target).refused(1, "in/seed", "");
    close(&target, 0o111);
    ffuzz("-i in -o out2", &target).refused(1, "cannot read the target", "its permissions");
}

#[test]
fn dictionaries_are_checked() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-x words", &good(), "none").run().refused(1, "words does not exist", "-x");
    // Neither blocks, and neither goes on for ever.
    nix::unistd::mkfifo(&dir.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    dir.fuzz("-x pipe", &good(), "none").run().refused(1, "it is a FIFO", "dictionary file");
    dir.fuzz("-x /dev/zero", &good(), "none").run().refused(1, "it is a device", "dictionary file");
    let source = common::repository("tests/targets/outcomes.c");
    let job = dir.ffuzz("cc -c").arg(source).env("WAYPOINTS", "@pipe");
    job.run().expect(1).says("it is a FIFO");
    dir.write("words", "good=\"a\"\nbad=a\n");
    let done = dir.fuzz("-E 100 -x words", &good(), "none").run().expect(0);
    done.says("line 2: no opening quote: not loaded (a line is name=");
}
