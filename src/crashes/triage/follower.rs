//! Process beside a campaign that triages its crashes: started with the first one, at the lowest priority, and ended
//! with the campaign.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use super::deliver;
use super::report::{self, number_of_bugs};
use ffuzz_config::options::TriageOptions;
use ffuzz_event::Undelivered;
use ffuzz_sys::subprocess::Restarts;
use ffuzz_sys::{affinity, process};

/// Interval between two reads of the report.
const LOOK: Duration = Duration::from_secs(1);
/// Interval between two checks of a process that is about to end.
const WAIT: Duration = Duration::from_millis(5);
/// Time limit for a process that must end immediately.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Remedy for the user.
const REMEDY: &str = "the fuzzer tries again; by hand: `ffuzz-triage -o OUT`";
/// Log file of its output, in the folder of the report.
const LOG: &str = "log";
/// Message on its standard input that requests its end, followed by a number of milliseconds; the end of the input
/// means that its parent has ended.
pub const FINISH: &str = "finish ";

/// Owns the process.
#[derive(Debug)]
pub struct Follower {
    options: TriageOptions,
    /// Cores of the campaign before it was bound to one.
    cores: Vec<usize>,
    child: Option<Child>,
    started: bool,
    /// Time of the last start.
    since: Instant,
    /// Ends soon after a start.
    restarts: Restarts,
    /// Time of the next start.
    due: Option<Instant>,
    /// Position in the log where this run begins.
    log_start: u64,
    looked: Option<Instant>,
    /// Modification time of the report read last.
    written: Option<SystemTime>,
    bugs: Option<u64>,
    /// Undelivered reports, once it has ended.
    undelivered: Option<Undelivered>,
    /// Lines already reported.
    reported: Vec<String>,
    notes: Vec<String>,
}

impl Follower {
    /// Starts no process yet. Call it before this process is bound to a core.
    #[must_use]
    pub fn new(options: TriageOptions) -> Self {
        Self {
            options,
            cores: affinity::allowed(),
            child: None,
            started: false,
            since: Instant::now(),
            restarts: Restarts::default(),
            due: None,
            log_start: 0,
            looked: None,
            written: None,
            bugs: None,
            undelivered: None,
            reported: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Starts the process at the first call; restarted if it ends.
    pub fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.start_now();
        }
    }

    fn start_now(&mut self) {
        (self.since, self.due) = (Instant::now(), None);
        match self.spawn() {
            Ok(child) => self.child = Some(child),
            // A full disk may have room again.
            Err(error) => self.start_later(format!("crashes are not triaged: {error}; {REMEDY}")),
        }
    }

    /// Schedules a restart and reports the cause once.
    fn start_later(&mut self, cause: String) {
        if self.since.elapsed() >= Restarts::A_WHILE {
            self.restarts.reset();
        }
        self.restarts.note_early_end();
        self.due = Some(Instant::now() + self.restarts.pause());
        if !self.reported.contains(&cause) {
            self.notes.push(cause.clone());
            self.reported.push(cause);
        }
    }

    fn start_if_due(&mut self) {
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.start_now();
        }
    }

    /// Starts the process if there are crashes, or hangs that are triaged, including those of an earlier campaign, or
    /// if records are to be delivered. Call it at the beginning as well.
    pub fn start_for(&mut self, crashes: u64, hangs: u64) {
        if crashes > 0 || (self.options.hangs && hangs > 0) || self.options.records {
            self.start();
        }
    }

    fn spawn(&mut self) -> io::Result<Child> {
        super::create(&self.options.folder).map_err(io::Error::other)?;
        // The process of another instance may append to it as well.
        let log = File::options().append(true).create(true).open(self.options.folder.join(LOG))?;
        self.log_start = log.metadata()?.len();
        let mut command = Command::new(&self.options.argv[0]);
        command.args(&self.options.argv[1..]);
        command.envs(self.options.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        process::in_background(&mut command, &self.cores);
        command.spawn()
    }

    /// Number of bugs; None before the first report.
    pub fn bugs(&mut self) -> Option<u64> {
        if self.started && self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            self.look();
            self.start_if_due();
        }
        self.bugs
    }

    fn look(&mut self) {
        let written = fs::metadata(self.options.folder.join(report::NAME));
        let written = written.and_then(|data| data.modified()).ok();
        if written.is_some() && written != self.written {
            self.written = written;
            self.bugs = number_of_bugs(&self.options.folder);
        }
        let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        let log = self.options.folder.join(LOG);
        self.listen(&log);
        if ended.is_some() {
            self.child = None;
            self.start_later(format!("triage has ended: see {}; {REMEDY}", log.display()));
        }
    }

    /// Forwards new lines of its log to the user.
    fn listen(&mut self, log: &Path) {
        let said = read_from(log, self.log_start).unwrap_or_default();
        // The last line may be incomplete.
        let end = said.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        for line in String::from_utf8_lossy(&said[..end]).lines() {
            if !self.reported.iter().any(|other| other == line) {
                self.reported.push(line.to_owned());
                let text = line.strip_prefix("[!] ").unwrap_or(line);
                self.notes.push(format!("triage: {text}"));
            }
        }
    }

    /// Messages for the user, each once.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Lets it finish the waiting work within `patience`, then ends it.
    pub fn finish(&mut self, patience: Duration) {
        if let Some(mut child) = self.child.take() {
            let sent = child.stdin.as_mut().map(|line| {
                line.write_all(format!("{FINISH}{}\n", patience.as_millis()).as_bytes())
            });
            if matches!(sent, Some(Ok(()))) {
                wait(&mut child, patience);
            }
            end(child);
        }
        if self.started {
            self.look();
            self.undelivered = self.left_over();
        }
    }

    /// Reports that were not delivered, once the process has ended; None if there are none or no server is set.
    #[must_use]
    pub fn undelivered(&self) -> Option<Undelivered> {
        self.undelivered.clone()
    }

    fn left_over(&self) -> Option<Undelivered> {
        let words = self.options.argv.iter().map(|word| word.to_string_lossy());
        let mut own = words.take_while(|word| word != "--");
        let collector = own.find(|word| word.starts_with("--collector"))?;
        let folder = &self.options.folder;
        let (waiting, unreported) = (deliver::waiting(folder), report::unreported_bugs(folder));
        let command = match unreported {
            0 => format!("ffuzz-collector --deliver {}", deliver::spool(folder).display()),
            _ => format!("ffuzz-triage {collector} -o {}", folder.parent()?.display()),
        };
        let reports = waiting + unreported;
        (reports > 0).then_some(Undelivered { reports, command })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            end(child);
        }
    }
}

fn read_from(path: &Path, start: u64) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn wait(child: &mut Child, most: Duration) -> bool {
    let deadline = Instant::now() + most;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(WAIT);
    }
    false
}

/// Ends the process by closing its input, and kills it after a grace time.
fn end(mut child: Child) {
    drop(child.stdin.take());
    if !wait(&mut child, STOP_GRACE) {
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follower(folder: &Path, script: &str) -> Follower {
        let argv = ["/bin/sh", "-c", script].map(Into::into).into();
        Follower::new(TriageOptions {
            argv,
            env: Vec::new(),
            folder: folder.join("triage"),
            hangs: false,
            records: false,
        })
    }

    const REPORT: &str = "echo '{\"bugs\": [{}, {}]}' > \"$0\"/triage/report.json";

    #[test]
    fn it_gets_the_request_to_end_and_its_last_report_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let script =
            format!("read -r a b; {}", REPORT.replace("$0", &dir.path().to_string_lossy()));
        let mut follower = follower(dir.path(), &script);
        follower.finish(Duration::ZERO);
        assert_eq!(follower.bugs(), None);
        follower.start();
        follower.finish(Duration::from_secs(60));
        assert_eq!(follower.bugs, Some(2));
    }

    #[test]
    fn without_a_word_it_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut follower = follower(dir.path(), "exec cat");
        follower.start();
        let pid = follower.child.as_ref().unwrap().id();
        drop(follower);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn its_messages_and_an_early_end_are_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let script = "echo '[!] no room' >&2; echo '[!] no room' >&2; printf half >&2; exit 1";
        let mut follower = follower(dir.path(), script);
        follower.start();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut notes = Vec::new();
        while notes.len() < 2 {
            follower.look();
            notes.extend(follower.take_notes());
            assert!(Instant::now() < deadline, "{notes:?}");
            std::thread::yield_now();
        }
        assert_eq!(notes[0], "triage: no room");
        assert!(notes[1].starts_with("triage has ended: see "), "{notes:?}");
        assert!(notes[1].ends_with("by hand: `ffuzz-triage -o OUT`"), "{notes:?}");
        // Also when it ends once more.
        follower.due = Some(Instant::now());
        follower.start_if_due();
        until(&mut follower, |follower| follower.due.is_some());
        assert_eq!((follower.take_notes(), follower.restarts.pause().as_secs()), (vec![], 2));
    }

    fn until(follower: &mut Follower, is_so: impl Fn(&Follower) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so(follower) {
            assert!(Instant::now() < deadline, "{follower:?}");
            follower.look();
            follower.start_if_due();
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_that_cannot_be_started_or_ends_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let in_the_way = dir.path().join("triage");
        fs::write(&in_the_way, "").unwrap();
        let script = "[ -e here ] || { echo > here; exit 1; }; exec cat";
        let mut follower = follower(dir.path(), &format!("cd {}; {script}", dir.path().display()));
        follower.start();
        let notes = follower.take_notes();
        assert!(notes[0].starts_with("crashes are not triaged: "), "{notes:?}");
        assert!(notes[0].ends_with("by hand: `ffuzz-triage -o OUT`"), "{notes:?}");
        fs::remove_file(in_the_way).unwrap();
        until(&mut follower, |follower| follower.restarts.pause().as_secs() == 2);
        until(&mut follower, |follower| follower.child.is_some());
    }

    #[test]
    fn messages_of_another_one_stay_and_are_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("triage")).unwrap();
        let log = dir.path().join("triage/log");
        fs::write(&log, "[!] earlier\n").unwrap();
        let mut follower = follower(dir.path(), "echo '[!] now' >&2; exec cat");
        follower.start();
        let deadline = Instant::now() + Duration::from_secs(60);
        while follower.notes.is_empty() && Instant::now() < deadline {
            follower.look();
            std::thread::yield_now();
        }
        assert_eq!(follower.take_notes(), ["triage: now"]);
        assert_eq!(fs::read_to_string(log).unwrap(), "[!] earlier\n[!] now\n");
    }
}
