//! A folder, a target and a bounded run of `ffuzz` for every test.
//!
//! Every run has a deadline, and every finished run is looked at afterwards: it may leave no
//! process and no shared memory segment behind. Only processes started here are ever killed.

#![allow(dead_code, unreachable_pub, reason = "each test binary includes this and uses a part")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and talk")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// For anything that a healthy machine does within a second or two, loaded as it may be.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// Marks all processes that come from one run: their environment shows it in `/proc`.
const MARK: &str = "RUN_OF_A_TEST";

/// Waits until `done`, or fails and says what was waited for.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Says why a test, or a part of it, does nothing here. `scripts/run-tests.sh` counts what is said.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(list) = std::env::var_os("SKIPPED_TESTS") else { return };
    let name = thread::current().name().unwrap_or_default().to_owned();
    let file = fs::OpenOptions::new().create(true).append(true).open(list);
    file.unwrap().write_all(format!("{reason} ({name})\n").as_bytes()).unwrap();
}

/// Versions of the clangs on this machine that can have passes.
pub fn clangs() -> Vec<&'static str> {
    let there =
        |version: &&str| has(&format!("clang-{version}")) && has(&format!("llvm-config-{version}"));
    ["14", "15", "16", "19"].into_iter().filter(there).collect()
}

/// Whether a program is installed.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder of one test, with `in` for seeds and `out` for what ffuzz writes.
pub struct TestDir {
    folder: tempfile::TempDir,
}

impl TestDir {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        Self { folder }
    }

    /// With one seed.
    pub fn with_seed(seed: impl AsRef<[u8]>) -> Self {
        let dir = Self::new();
        dir.write("in/seed", seed);
        dir
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.read(name)).into_owned()
    }

    /// `ffuzz -i in -o out OPTIONS -- TARGET WORDS`, with a timeout that load does not reach.
    pub fn fuzz(&self, options: &str, target: &Path, words: &str) -> Job {
        self.fuzz_and_triage(options, target, words).env("FFUZZ_NO_TRIAGE", "1")
    }

    /// The same with triage during the campaign.
    pub fn fuzz_and_triage(&self, options: &str, target: &Path, words: &str) -> Job {
        let mut job = self.ffuzz_and_triage("-i in -o out");
        if !options.contains("-t ") {
            job = job.words("-t 3000");
        }
        job.words(options).arg("--").arg(target).words(words)
    }

    /// `ffuzz showdsf OPTIONS -- TARGET WORDS`
    pub fn showdsf(&self, options: &str, target: &Path, words: &str) -> Job {
        self.tool(&format!("showdsf {options}"), target, words)
    }

    /// `ffuzz COMMAND -- TARGET WORDS`, for commands that run a target.
    pub fn tool(&self, command: &str, target: &Path, words: &str) -> Job {
        self.ffuzz(command).arg("--").arg(target).words(words)
    }

    /// `ffuzz WORDS` in this folder, without triage during a campaign: gdb for each crash would be a fifth of the time of
    /// all tests.
    pub fn ffuzz(&self, words: &str) -> Job {
        self.ffuzz_and_triage(words).env("FFUZZ_NO_TRIAGE", "1")
    }

    /// The same with triage.
    pub fn ffuzz_and_triage(&self, words: &str) -> Job {
        self.program(env!("CARGO_BIN_EXE_ffuzz")).words(words)
    }

    /// Any program in this folder, with an environment that the machine does not influence.
    pub fn program(&self, program: &str) -> Job {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env_clear();
        for name in ["PATH", "HOME", "LLVM_CONFIG"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env(MARK, &mark).env("TMPDIR", self.folder.path()).env("XDG_CACHE_HOME", cache());
        command.env("AFL_NO_AFFINITY", "1");
        command.env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1");
        Job { command, mark, input: None }
    }

    /// Names of the queue, in order.
    pub fn queue(&self) -> Vec<String> {
        self.entries("out/default/queue")
    }

    pub fn crashes(&self) -> Vec<String> {
        self.entries("out/default/crashes")
    }

    pub fn hangs(&self) -> Vec<String> {
        self.entries("out/default/hangs")
    }

    /// All names in a folder, in order.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let listing = fs::read_dir(self.path(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
        let mut names: Vec<String> =
            listing.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Names in a folder that begin with `id:`, in order.
    pub fn entries(&self, folder: &str) -> Vec<String> {
        let mut names = self.names(folder);
        names.retain(|name| name.starts_with("id:"));
        names
    }

    /// `fuzzer_stats` by key.
    pub fn stats(&self) -> BTreeMap<String, String> {
        stats_of(&self.text("out/default/fuzzer_stats"))
    }

    pub fn stat(&self, key: &str) -> u64 {
        let stats = self.stats();
        let value = stats.get(key).unwrap_or_else(|| panic!("{key} is not in {stats:?}"));
        value.parse().unwrap_or_else(|_| panic!("{key} is {value}"))
    }

    /// All files below a folder with their content and time of change.
    pub fn snapshot(&self, folder: &str) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let data = fs::symlink_metadata(&path).unwrap();
                if data.is_dir() {
                    folders.push(path);
                } else {
                    let content = fs::read(&path).unwrap_or_default();
                    found.insert(path, (content, data.modified().unwrap()));
                }
            }
        }
        found
    }
}

pub fn stats_of(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Number behind `id:`.
pub fn id_of(name: &str) -> u32 {
    name[3..9].parse().unwrap()
}

/// A process that is about to be started.
pub struct Job {
    command: Command,
    mark: String,
    input: Option<Vec<u8>>,
}

impl Job {
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.command.arg(word.into());
        self
    }

    pub fn words(mut self, words: &str) -> Self {
        self.command.args(words.split_whitespace());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Bytes for its standard input.
    pub fn input(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.input = Some(bytes.as_ref().to_vec());
        self
    }

    pub fn start(self) -> Running {
        self.start_with(Stdio::piped())
    }

    /// Its standard output is a pipe that nobody reads.
    pub fn run_unread(self) -> Finished {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        drop(reader);
        self.start_with(Stdio::from(writer)).finish()
    }

    fn start_with(mut self, stdout: Stdio) -> Running {
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let shown = format!("{:?}", self.command);
        let since = SystemTime::now();
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), self.input) {
            // One that ends without reading is no fault of the test.
            let _ = pipe.write_all(&bytes);
        }
        let out = Stream::read(child.stdout.take());
        let err = Stream::read(child.stderr.take());
        Running { child, since, mark: self.mark, shown, out, err, ended: false }
    }

    pub fn run(self) -> Finished {
        self.start().finish()
    }
}

/// What a process writes, read as it comes.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let copy = |mut pipe: Box<dyn Read + Send>| {
            move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                    sink.lock().unwrap().extend_from_slice(&buffer[..n]);
                }
            }
        };
        let reader = pipe.map(|pipe| thread::spawn(copy(Box::new(pipe))));
        Self { bytes, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn is_closed(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// A process that runs; killed when dropped.
pub struct Running {
    child: Child,
    since: SystemTime,
    mark: String,
    shown: String,
    out: Stream,
    err: Stream,
    ended: bool,
}

impl Running {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Everything it has said.
    pub fn said(&self) -> String {
        self.out.so_far() + &self.err.so_far()
    }

    /// Waits until it has said `text`.
    pub fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        while !self.said().contains(text) {
            let gone = self.child.try_wait().unwrap().is_some() && self.out.is_closed();
            let late = start.elapsed() > DEADLINE;
            let found = self.said().contains(text);
            assert!(found || !(gone || late), "no {text:?} in: {}\n{}", self.said(), self.shown);
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits until the campaign in `dir` runs and has written its statistics.
    pub fn wait_for_campaign(&mut self, dir: &TestDir) {
        self.wait_for("fuzzing; Ctrl-C stops");
        wait_until("fuzzer_stats", || dir.path("out/default/fuzzer_stats").exists());
    }

    /// Processes of this run, itself included.
    pub fn processes(&self) -> Vec<i32> {
        processes(&self.mark)
    }

    /// Ends it and its guards at once, as the kernel does when memory runs out.
    pub fn kill_with_guards(&mut self) {
        for pid in self.processes() {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if words.split(|byte| *byte == 0).any(|word| word == b"ffuzz-guard") {
                kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
            }
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SysV segments that this run created. Process ids come round again: one from before its
    /// start is somebody else's.
    pub fn segments(&self) -> Vec<String> {
        segments(self.pid(), self.since)
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.ended = true;
                return status;
            }
            let late = start.elapsed() > DEADLINE;
            assert!(!late, "still runs after {DEADLINE:?}: {}\n{}", self.shown, self.said());
            thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Waits for its end, and until nothing of it is left.
    pub fn finish(mut self) -> Finished {
        let status = self.wait();
        let pid = self.pid();
        wait_until(&format!("an end of the processes of {}", self.shown), || {
            processes(&self.mark).is_empty()
        });
        wait_until(&format!("no segment of {}", self.shown), || self.segments().is_empty());
        wait_until(&format!("closed outputs of {}", self.shown), || {
            self.out.is_closed() && self.err.is_closed()
        });
        Finished {
            status,
            pid,
            out: self.out.so_far(),
            err: self.err.so_far(),
            shown: self.shown.clone(),
        }
    }
}

/// A process that a test needs beside it, ended when dropped.
pub struct Helper(pub std::process::Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
            for pid in processes(&self.mark) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            // A killed afl-fuzz leaves some; the kernel keeps them until it is asked to remove them.
            for segment in self.segments() {
                let id = segment.split_whitespace().nth(1).unwrap();
                let _ = Command::new("ipcrm").args(["-m", id]).status();
            }
        }
    }
}

/// What is left of a process: its words and its exit status.
pub struct Finished {
    pub status: ExitStatus,
    pub pid: i32,
    pub out: String,
    pub err: String,
    shown: String,
}

impl Finished {
    /// Exit code, or 128 + signal.
    pub fn code(&self) -> i32 {
        self.status.signal().map_or_else(|| self.status.code().unwrap(), |signal| 128 + signal)
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}\n{}\n{}", self.shown, self.out, self.err);
        self
    }

    /// Fails unless it ended with this code and said one line with the cause and one with the
    /// remedy, holding these words.
    #[track_caller]
    pub fn refused(self, code: i32, cause: &str, remedy: &str) -> Self {
        let lines: Vec<&str> =
            self.err.lines().filter(|line| !line.contains(": warning: ")).collect();
        let context = format!("{}\n{}\n{}", self.shown, self.out, self.err);
        assert_eq!(self.code(), code, "{context}");
        assert_eq!(lines.len(), 2, "{context}");
        assert!(lines[0].starts_with("ffuzz") && lines[0].contains(cause), "{context}");
        assert!(lines[1].contains(": hint: ") && lines[1].contains(remedy), "{context}");
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let said = format!("{}{}", self.out, self.err);
        assert!(said.contains(text), "no {text:?} in:\n{said}\n{}", self.shown);
        self
    }

    #[track_caller]
    pub fn does_not_say(self, text: &str) -> Self {
        let said = format!("{}{}", self.out, self.err);
        assert!(!said.contains(text), "{text:?} in:\n{said}\n{}", self.shown);
        self
    }

    /// The `dsf[…] = …` lines of its standard output.
    pub fn values(&self) -> Vec<&str> {
        self.out.lines().filter(|line| line.starts_with("dsf[")).collect()
    }

    /// Only what stands behind the keys, sorted: keys of static sites are arbitrary.
    pub fn sorted_values(&self) -> Vec<u32> {
        let number = |line: &str| line.split(" = ").nth(1).unwrap().parse().unwrap();
        let mut numbers: Vec<u32> = self.values().into_iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    pub fn keys(&self) -> Vec<u32> {
        let number = |line: &str| line[4..line.find(']').unwrap()].parse().unwrap();
        self.values().into_iter().map(number).collect()
    }
}

/// A file system of its own, unmounted when dropped.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// A tmpfs; None, with a word about it, for somebody who may not mount.
    pub fn mount(at: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mounted =
            Self::call(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]), &at);
        if !mounted {
            skip("mounting a small file system needs root");
        }
        mounted.then_some(Self(at))
    }

    pub fn make_read_only(&self) {
        assert!(Self::call(Command::new("mount").args(["-o", "remount,ro"]), &self.0));
    }

    fn call(command: &mut Command, at: &Path) -> bool {
        command.arg(at).output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Living processes with this mark in their environment.
fn processes(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|v| v == wanted.as_bytes()).then_some(pid)
    });
    numbers.collect()
}

/// Lines of the kernel's table of SysV segments that this process created since then.
fn segments(creator: i32, since: SystemTime) -> Vec<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let since = since.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let of_creator = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let created: u64 = fields[13].parse().unwrap();
        fields[4] == creator.to_string() && created >= since
    };
    table.lines().skip(1).filter(of_creator).map(str::to_owned).collect()
}

/// Passes compiled for other versions of LLVM are kept from one test run to the next.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cc-cache")
}

/// A target from `tests/targets` (or `demo/`), built once by `ffuzz cc`.
pub fn target(source: &str, flags: &str) -> PathBuf {
    build(&[env!("CARGO_BIN_EXE_ffuzz"), "cc"], &[("AFL_QUIET", "1")], source, flags)
}

/// The same with domains.
pub fn target_with(waypoints: &str, source: &str, flags: &str) -> PathBuf {
    target_by(&[("AFL_QUIET", "1"), ("WAYPOINTS", waypoints)], source, flags)
}

/// The same, built with these variables.
pub fn target_by(variables: &[(&str, &str)], source: &str, flags: &str) -> PathBuf {
    build(&[env!("CARGO_BIN_EXE_ffuzz"), "cc"], variables, source, flags)
}

/// `relay.c` without the comparison log, which would find its word, and with these domains.
pub fn relay(waypoints: &str, flags: &str) -> PathBuf {
    let variables = [("AFL_QUIET", "1"), ("FFUZZ_NO_LOG", "1"), ("WAYPOINTS", waypoints)];
    target_by(&variables, "relay.c", flags)
}

/// A program of an ordinary compiler: it has no instrumentation, or its own.
pub fn plain(source: &str, flags: &str) -> PathBuf {
    build(&["cc"], &[], source, flags)
}

/// A program of this compiler.
pub fn compiled(compiler: &str, source: &str, flags: &str) -> PathBuf {
    build(&[compiler], &[], source, flags)
}

/// The same, built with these variables.
pub fn compiled_by(
    compiler: &str,
    variables: &[(&str, &str)],
    source: &str,
    flags: &str,
) -> PathBuf {
    build(&[compiler], variables, source, flags)
}

/// A target of Debian's AFL++.
pub fn afl_target(source: &str, flags: &str) -> PathBuf {
    need("afl-clang-fast");
    build(&["afl-clang-fast"], &[("AFL_QUIET", "1")], source, flags)
}

/// Fails with the way out if a program is missing that `make test` installs.
pub fn need(program: &str) {
    let there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = there.is_ok_and(|output| output.status.success());
    assert!(there, "{program} is not installed: `make test` installs it");
}

/// Fails with the way out if no terminal can be opened, as in a folder that is entered by chroot.
pub fn need_terminal() {
    need("script");
    let opened = Command::new("script").args(["-qec", "true", "/dev/null"]).output();
    assert!(opened.is_ok_and(|output| output.status.success()), "no terminal: mount /dev/pts");
}

/// The name is the same in every run and every test process; the first one that needs it builds it.
fn build(compiler: &[&str], variables: &[(&str, &str)], source: &str, flags: &str) -> PathBuf {
    let key = format!("{} {variables:?} {source} {flags}", compiler.join(" "));
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets").join(env!("CARGO_CRATE_NAME"));
    fs::create_dir_all(&folder).unwrap();
    let stem = Path::new(source).file_stem().unwrap().to_str().unwrap();
    let path = folder.join(format!("{stem}-{:016x}", hash(key.as_bytes())));
    let lock = fs::File::create(path.with_extension("lock")).unwrap();
    let _lock = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
    let file = if source.contains('/') {
        repository(source)
    } else {
        repository("tests/targets").join(source)
    };
    if is_newer_than(&path, &[Path::new(compiler[0]), file.parent().unwrap()]) {
        return path;
    }
    let fresh = path.with_extension("new");
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-O1", "-g", "-o"])
        .arg(&fresh)
        .arg(file)
        .args(flags.split_whitespace())
        .env_remove("WAYPOINTS")
        .env_remove("FFUZZ_CC")
        .env("XDG_CACHE_HOME", cache())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{key}: {said}");
    fs::rename(&fresh, &path).unwrap();
    path
}

/// Whether it was written after all of these, files in a folder included. A program found by its name
/// counts as old.
fn is_newer_than(path: &Path, others: &[&Path]) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let Some(built) = changed(path) else { return false };
    let files = others.iter().filter_map(|other| fs::read_dir(other).ok());
    let files = files.flatten().filter_map(|entry| changed(&entry.ok()?.path()));
    files.chain(others.iter().filter_map(|other| changed(other))).all(|other| other < built)
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Asserts that a path's last part begins so; for readable messages.
pub fn name_of(path: &Path) -> String {
    String::from_utf8_lossy(path.file_name().unwrap().as_bytes()).into_owned()
}
