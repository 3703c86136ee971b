//! An obstacle to a faster execution mode is reported in one line, and runs go on in a slower one.

use crate::common;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use common::*;
use ffuzz::config::options::TargetOptions;
use ffuzz::engine::executor::{Executor, ExitKind};
use ffuzz::exec::{ForkServer, Setup};

fn start(target: &Path, env: &[(&str, &Path)], dir: &TestDir) -> ForkServer {
    let mut options = TargetOptions::for_command(vec![OsString::from(target)]);
    // AFL's segment, the last resort, is as small as it can be.
    options.map_size = Some(1 << 16);
    let variable = |(name, path): &(&str, &Path)| ((*name).into(), path.as_os_str().into());
    options.extra_env = env.iter().map(variable).collect();
    let setup = Setup::new(&options, &dir.path(".input"), None).unwrap();
    ForkServer::start(setup, Duration::from_secs(5)).unwrap()
}

/// Runs inputs of two kinds, and says what is seen of them and what is reported to the user.
fn runs(server: &mut ForkServer) -> (Vec<Vec<u8>>, Vec<String>) {
    let mut run = |input: &[u8]| {
        let run = server.observe(input).unwrap();
        assert_eq!(run.exit, ExitKind::Ok);
        run.edges.to_vec()
    };
    // The first run of a process has not come from the end of the loop.
    let [_, seen @ ..] = [b"c", b"a", b"b", b"a", b"b"].map(|input| run(input));
    let is_same = seen[0] == seen[2] && seen[1] == seen[3];
    let hit = seen
        .each_ref()
        .map(|edges| (edges.len(), edges.iter().filter(|count| **count > 0).count()));
    assert!(is_same && seen[0] != seen[1], "{hit:?}");
    let notes = server.take_notes();
    assert!(server.take_notes().is_empty(), "said twice");
    (seen.to_vec(), notes)
}

fn one_note(notes: &[String], cause: &str, remedy: &str) {
    assert!(
        notes.len() == 1 && notes[0].contains(cause) && notes[0].contains(remedy),
        "{notes:?}: no {cause:?} with {remedy:?}"
    );
}

#[test]
fn a_target_without_obstacles_gives_no_message() {
    let dir = TestDir::new();
    let mut server = start(&target("obstacles.c", ""), &[], &dir);
    assert_eq!(runs(&mut server).1, Vec::<String>::new());
    assert_eq!(server.info().run_mode().name(), "batch");
}

#[test]
fn a_system_call_filter_costs_a_process_per_batch() {
    let dir = TestDir::new();
    let mut server = start(&target("obstacles.c", "-DSTRICT"), &[], &dir);
    let (_, notes) = runs(&mut server);
    one_note(&notes, "exits between two runs (killed by signal", "futex");
}

#[test]
fn a_library_that_is_loaded_late_is_named() {
    let dir = TestDir::new();
    let source = dir.write("late.c", "int late(int n) { return n > 3 ? n : -n; }\n");
    let library = dir.path("libtoolate.so");
    let words = format!("cc -shared -fPIC -O1 {} -o {}", source.display(), library.display());
    dir.ffuzz(&words).run().expect(0);
    let late = target("obstacles.c", "-DLATE");
    let mut server = start(&late, &[("LATE", &library)], &dir);
    let (_, notes) = runs(&mut server);
    one_note(&notes, "libtoolate.so\" only when it runs", "AFL_PRELOAD=");
    // The remedy helps.
    let more = server.info().map_size();
    let env = [("LATE", &*library), ("LD_PRELOAD", &*library)];
    let mut server = start(&late, &env, &dir);
    assert_eq!(runs(&mut server).1, Vec::<String>::new());
    assert!(server.info().map_size() > more);
}

#[test]
fn with_a_memory_limit_pipes_are_used() {
    let dir = TestDir::new();
    let mut server = start(&target("obstacles.c", "-DLIMIT"), &[], &dir);
    let (_, notes) = runs(&mut server);
    one_note(&notes, "cannot map ffuzz's shared memory (Cannot allocate memory", "-m");
    assert_eq!(server.info().run_mode().name(), "pipe");
}

#[test]
fn a_map_that_changes_between_starts_is_followed() {
    let dir = TestDir::new();
    let starts = dir.path("starts");
    let mut server = start(&target("obstacles.c", "-DMOVING"), &[("STARTS", &starts)], &dir);
    let (before, _) = runs(&mut server);
    server.observe(b"k").unwrap();
    // The child may finish this run before it is ended with its fork server; otherwise the input runs once
    // more, and ends the next one as well.
    wait_until("new start", || {
        server.observe(b"c").unwrap();
        server.take_restart().is_some()
    });
    // The new server may be ended by the same input: two runs of one process are alike.
    wait_until("a process that lasts", || {
        let [first, again] =
            [b"c", b"c"].map(|input| server.observe(input).unwrap().edges.to_vec());
        server.take_restart().is_none() && first == again
    });
    let (after, notes) = runs(&mut server);
    let sizes = [before[0].len(), after[0].len()];
    one_note(&notes, &format!("had {} edges and has ", sizes[0]), "the same libraries");
    assert!(sizes[0] < sizes[1], "{sizes:?}");
    let other = TestDir::with_seed("c");
    let job = other.fuzz("-s 1 -E 1000", &target("obstacles.c", "-DMOVING"), "");
    job.env("STARTS", starts.to_str().unwrap()).run().expect(0).says("edges and has");
    assert!(!other.queue().is_empty());
}

#[test]
fn a_runtime_of_another_version_is_run_by_pipes() {
    for version in ["", " -DOTHER_VERSION"] {
        let dir = TestDir::with_seed("QUIX");
        let flags = format!("-I{}{version}", repository("runtime").display());
        let older = plain("older.c", &flags);
        let done = dir.fuzz("-s 1 -E 3000", &older, "").run().expect(0);
        done.says("the target's runtime is of another version of ffuzz").says("rebuild it");
        assert_eq!(dir.stats()["run_mode"], "pipe");
        assert_eq!(dir.crashes().len(), 1);
    }
}
