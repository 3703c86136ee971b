//! A target's fork server, driven as the fuzzer does it, and all that its runs show.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, unreachable_pub, reason = "no file of tests needs all of it")]

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ffuzz::config::options::{RunMode, TargetOptions};
use ffuzz::engine::executor::Executor;
use ffuzz::exec::{ForkServer, RunResult, Setup};
use ffuzz::mutate::Candidate;

/// Up to this execution mode, and snapshots are among them.
pub fn options(target: &Path, words: &str, mode: RunMode) -> TargetOptions {
    let mut command = vec![OsString::from(target)];
    command.extend(words.split_whitespace().map(OsString::from));
    let mut options = TargetOptions::for_command(command);
    options.run_mode = mode;
    options.snapshots = true;
    options.extra_env = vec![("ASAN_OPTIONS".into(), "abort_on_error=1:detect_leaks=0".into())];
    options
}

/// `input`: the file that is put in the place of `@@`.
pub fn start(options: &TargetOptions, timeout: Duration, input: &Path) -> ForkServer {
    let setup = Setup::new(options, input, None).unwrap();
    ForkServer::start(setup, timeout).unwrap()
}

pub fn candidates(inputs: &[Vec<u8>]) -> Vec<Candidate> {
    let candidate = |bytes: &Vec<u8>| Candidate { bytes: bytes.clone(), ..Candidate::default() };
    inputs.iter().map(candidate).collect()
}

/// Every run as the execution mode shows it: nothing is new, so nothing is run again by fork but now and then.
pub fn shown(server: &mut ForkServer, inputs: &[Vec<u8>]) -> Vec<RunResult> {
    server.settings_mut().show_every_run = true;
    server.learn_edges(&vec![0; server.info().map_size()]);
    let (batch, mut next, mut all) = (candidates(inputs), 0, vec![]);
    while let Some(run) = server.run(&batch, &mut next).unwrap() {
        assert_eq!(run.index, all.len());
        all.push(RunResult::of(&run));
    }
    all
}

/// The fork server of this thread that runs the target.
pub fn fork_server(target: &Path) -> i32 {
    let runs = |pid: &i32| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        // Another test may have built it again meanwhile.
        let program = program.unwrap_or_default().to_string_lossy().replace(" (deleted)", "");
        Path::new(&program) == target.canonicalize().unwrap()
    };
    children("thread-self").into_iter().find(runs).unwrap()
}

/// Children of a thread, as `/proc` names it.
pub fn children(of: &str) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{of}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The fork server of this thread that runs the target, and its child.
pub fn processes(target: &Path) -> (i32, i32) {
    let server = fork_server(target);
    (server, children(&format!("{server}/task/{server}"))[0])
}

/// Memory in kB and descriptors of the process that is put back.
pub fn memory_and_descriptors(target: &Path) -> (u64, usize) {
    let (_, child) = processes(target);
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
    (field(&status, "RssAnon:"), std::fs::read_dir(format!("/proc/{child}/fd")).unwrap().count())
}

/// A value in kB.
pub fn field(text: &str, name: &str) -> u64 {
    let field = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    field.trim().trim_end_matches(" kB").parse().unwrap()
}

pub fn kill(pid: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}
