//! One campaign: a fuzzer on one core until it and all its descendants have used the CPU time, orphans
//! included. What it has found is linked into a folder a point in time, to be counted afterwards.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Between two looks at the processes: their CPU time is the runner's, and not counted.
const PAUSE: Duration = Duration::from_millis(50);
/// For a fuzzer that was asked to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Points in time at which the corpus is looked at.
pub(super) const POINTS: usize = 10;
/// A fuzzer that ends by itself is started again; not if it ends this often.
const MOST_STARTS: u32 = 1000;
/// A campaign that sleeps ends after so many budgets of wall time, and this.
const SLOWEST: f64 = 4.0;
const GRACE: f64 = 30.0;

pub(super) struct Campaign {
    pub(super) command: Command,
    pub(super) core: usize,
    pub(super) budget: f64,
    /// Empty, and on one file system with `out`.
    pub(super) points: PathBuf,
    /// Where the fuzzer leaves `*/queue` and `*/crashes`.
    pub(super) out: PathBuf,
    pub(super) log: PathBuf,
    /// libFuzzer ends with the first crash.
    pub(super) restarts: bool,
}

pub(super) struct Outcome {
    pub(super) cpu: f64,
    pub(super) wall: f64,
    pub(super) starts: u32,
    /// CPU time of each point, and its folder.
    pub(super) points: Vec<(f64, PathBuf)>,
}

/// The runner adopts the orphans of what it starts.
pub(super) fn adopt_orphans() -> nix::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)
}

impl Campaign {
    /// None if the fuzzer ends by itself, which its log explains.
    pub(super) fn run(&self) -> Option<Outcome> {
        let (begin, before) = (Instant::now(), waited_for());
        let mut starts = 0;
        let mut known = BTreeSet::new();
        let mut points = vec![];
        let mut main = self.start(&mut starts);
        let cpu = loop {
            std::thread::sleep(PAUSE);
            let ended = reap().contains(&main);
            let cpu = waited_for() - before + alive().1;
            let due = self.budget * (points.len() + 1) as f64 / POINTS as f64;
            if cpu >= due && points.len() + 1 < POINTS {
                points.push((cpu, self.collect(points.len(), &mut known)));
            }
            if cpu >= self.budget || begin.elapsed().as_secs_f64() > self.budget * SLOWEST + GRACE {
                break cpu;
            }
            if ended {
                if !self.restarts || starts == MOST_STARTS {
                    end_all(None);
                    return None;
                }
                main = self.start(&mut starts);
            }
        };
        end_all(Some(main));
        points.push((cpu, self.collect(points.len(), &mut known)));
        let (cpu, wall) = (waited_for() - before, begin.elapsed().as_secs_f64());
        Some(Outcome { cpu, wall, starts, points })
    }

    #[expect(clippy::zombie_processes, reason = "it is waited for by number, as the orphans are")]
    fn start(&self, starts: &mut u32) -> Pid {
        *starts += 1;
        let log = File::options().create(true).append(true).open(&self.log).expect("log");
        // A compare that is ended leaves no campaign behind.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "taskset", "-c", &self.core.to_string()]);
        command.arg(self.command.get_program());
        command.args(self.command.get_args()).env_clear();
        for (name, value) in self.command.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("log")).stderr(log);
        let child = command.spawn().expect("setpriv of Debian's util-linux starts");
        Pid::from_raw(child.id().cast_signed())
    }

    /// Links what is new in the corpus, so that what the fuzzer deletes later is counted, too.
    fn collect(&self, point: usize, known: &mut BTreeSet<PathBuf>) -> PathBuf {
        let folder = self.points.join(format!("{point:02}"));
        fs::create_dir(&folder).expect("folder for a point in time");
        for file in found(&self.out, &["queue", "crashes"]) {
            if known.insert(file.clone()) {
                // It may be gone by now.
                let _ = fs::hard_link(&file, folder.join(known.len().to_string()));
            }
        }
        folder
    }
}

/// The inputs in these folders of each instance below `out`.
pub(super) fn found(out: &Path, folders: &[&str]) -> Vec<PathBuf> {
    let list = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let instances = list(out);
    let folders =
        instances.iter().flat_map(|instance| folders.iter().map(|name| instance.join(name)));
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| list(&folder)).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && name != "README.txt" && file.is_file()
    });
    files.sort();
    files
}

/// Processes that have ended, the orphans among them.
fn reap() -> Vec<Pid> {
    let next = || match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => Some(pid),
        _ => None,
    };
    std::iter::from_fn(next).collect()
}

/// CPU seconds of all that was waited for.
fn waited_for() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage");
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// The descendants of this process, and the CPU seconds of them and of what they have waited for.
fn alive() -> (Vec<Pid>, f64) {
    let all: Vec<Process> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Process::read(&entry.path()))
        .collect();
    let mut ours: BTreeSet<i32> = BTreeSet::from([std::process::id().cast_signed()]);
    let mut found = vec![];
    loop {
        let next: Vec<&Process> = all
            .iter()
            .filter(|process| ours.contains(&process.parent) && !ours.contains(&process.pid))
            .collect();
        if next.is_empty() {
            break;
        }
        ours.extend(next.iter().map(|process| process.pid));
        found.extend(next);
    }
    let ticks: u64 = found.iter().map(|process| process.ticks).sum();
    (found.iter().map(|process| Pid::from_raw(process.pid)).collect(), ticks as f64 / per_second())
}

fn per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64
}

struct Process {
    pid: i32,
    parent: i32,
    ticks: u64,
}

impl Process {
    fn read(folder: &Path) -> Option<Self> {
        let pid = folder.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read(folder.join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        // Fields 14 to 17 of proc(5): utime, stime, cutime and cstime; the state is the third.
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Self { pid, parent: fields.get(1)?.parse().ok()?, ticks })
    }
}

/// Asks the fuzzer to end, and ends what is left of its descendants.
fn end_all(main: Option<Pid>) {
    let deadline = Instant::now() + LAST_WORDS;
    if let Some(main) = main {
        let _ = kill(main, Signal::SIGINT);
        while Instant::now() < deadline && !reap().contains(&main) && alive().0.contains(&main) {
            std::thread::sleep(PAUSE);
        }
    }
    loop {
        reap();
        let (left, _) = alive();
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
