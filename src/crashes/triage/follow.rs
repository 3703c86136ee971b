//! A triage that runs beside a campaign and processes each new crash. The campaign sends messages through standard
//! input; when it ends, so does the triage.

use std::collections::HashSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{FINISH, Records, TriageError, TriagePlan, TriageWork, lock};
use crate::collector::DeliveryStatus;
use ffuzz_disk::find;
use ffuzz_exec::Scratch;
use ffuzz_sys::file::Locked;
use ffuzz_sys::process::leave_background;
use ffuzz_sys::remedy::Remedy;
use ffuzz_sys::stdio;
use ffuzz_sys::watch::FolderWatch;

/// Interval of full listings: some file systems do not notify of changes.
const RELIST: Duration = Duration::from_secs(5);
/// Delay after a change, because crashes often come together.
const BURST: Duration = Duration::from_millis(100);
/// Interval of retries when a write fails or another triage holds the lock.
const RETRY: Duration = Duration::from_secs(2);
/// Interval of checks for the end of the work.
const LOOK: Duration = Duration::from_millis(10);

/// A message of the campaign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CampaignMessage {
    None,
    Finish(Duration),
    Gone,
}

/// Callbacks of a triage that follows a campaign.
#[derive(Clone, Copy)]
pub struct FollowCallbacks {
    /// Shows a line to the user.
    pub print: fn(&str),
    /// Ends the process, even during a run.
    pub exit: fn() -> !,
}

/// Waits for the lock of a folder, which a triage of another instance may hold. None: the campaign has ended.
pub fn wait_for_lock(folder: &Path) -> Result<Option<Locked>, TriageError> {
    loop {
        match lock(folder)? {
            Some(lock) => return Ok(Some(lock)),
            None if wait_for_message(None, RETRY) == CampaignMessage::None => {}
            None => return Ok(None),
        }
    }
}

/// Triages new files in the folders of `sources` until the campaign ends.
pub fn follow(
    plan: &TriagePlan,
    work: &TriageWork,
    sources: &[PathBuf],
    records: &mut Records,
    scratch: &Scratch,
    callbacks: FollowCallbacks,
) -> Result<(), TriageError> {
    let left = std::thread::scope(|scope| {
        let worker = scope.spawn(|| do_work(plan, work, scratch, callbacks.print));
        let mut scan = FolderScan::new(sources, plan.tools.hangs, callbacks.print);
        let message = follow_folders(&mut scan, work, records, || worker.is_finished());
        let deadline = match message {
            CampaignMessage::Finish(patience) => Instant::now() + patience,
            CampaignMessage::None | CampaignMessage::Gone => Instant::now(),
        };
        leave_background();
        work.hurry();
        while !worker.is_finished()
            && Instant::now() < deadline
            && wait_for_message(None, LOOK) != CampaignMessage::Gone
        {}
        if !worker.is_finished() {
            exit_early(work, scratch, callbacks);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        worker.join().unwrap_or(Ok(())).map(|()| left)
    })?;
    work.save()?;
    work.deliver_records(records)?;
    if let Some(trouble) = work.finish_delivery(left).as_ref().and_then(DeliveryStatus::trouble) {
        (callbacks.print)(&format!("[!] {trouble}"));
    }
    Ok(())
}

/// Exits without waiting for the current run, which ends with this process.
fn exit_early(work: &TriageWork, scratch: &Scratch, callbacks: FollowCallbacks) -> ! {
    let _ = work.save();
    if let Some(trouble) = work.delivery_trouble() {
        (callbacks.print)(&format!("[!] {trouble}"));
    }
    let _ = std::fs::remove_dir_all(&scratch.folder);
    (callbacks.exit)()
}

/// Works until nothing is left and no more can come.
fn do_work(
    plan: &TriagePlan,
    work: &TriageWork,
    scratch: &Scratch,
    print: fn(&str),
) -> Result<(), TriageError> {
    let mut rerun = plan.rerun(scratch)?;
    let mut reported = String::new();
    loop {
        let done = work.run(&mut rerun);
        for note in work.take_notes() {
            print(&format!("[!] {note}"));
        }
        if let Err(error) = done {
            // A full disk may have room again.
            let error = format!("{error}; trying again ({})", error.remedy());
            if reported != error {
                print(&format!("[!] {error}"));
                reported = error;
            }
            std::thread::park_timeout(RETRY);
            if !work.goes_on() {
                return Ok(());
            }
        } else if !work.wait() {
            return Ok(());
        }
    }
}

/// Lists the current folders and files; warns once about each problem.
struct FolderScan<'a> {
    sources: &'a [PathBuf],
    hangs: bool,
    print: fn(&str),
    reported: HashSet<String>,
}

impl<'a> FolderScan<'a> {
    fn new(sources: &'a [PathBuf], hangs: bool, print: fn(&str)) -> Self {
        Self { sources, hangs, print, reported: HashSet::new() }
    }

    fn folders(&mut self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for source in self.sources {
            found.extend(self.seen(source, find::folders(source)));
            if self.hangs {
                found.extend(self.seen(source, find::hangs(source)));
            }
        }
        found
    }

    fn files(&mut self, folders: &[PathBuf]) -> Vec<PathBuf> {
        folders.iter().flat_map(|folder| self.seen(folder, find::files(folder))).collect()
    }

    /// Warns about an unreadable folder and returns no entries for it, so that others are still read.
    fn seen(&mut self, folder: &Path, found: io::Result<Vec<PathBuf>>) -> Vec<PathBuf> {
        found.unwrap_or_else(|error| {
            let cause = format!("cannot read the folder {}: {error}", folder.display());
            self.warn_once(format!("{cause}; other folders are read (check its permissions)"));
            Vec::new()
        })
    }

    /// Prints a warning once.
    fn warn_once(&mut self, text: String) {
        if !self.reported.contains(&text) {
            (self.print)(&format!("[!] {text}"));
            self.reported.insert(text);
        }
    }
}

/// Queues new files until the campaign sends a message or the work ends.
fn follow_folders(
    scan: &mut FolderScan<'_>,
    work: &TriageWork,
    records: &mut Records,
    is_done: impl Fn() -> bool,
) -> CampaignMessage {
    let watch = FolderWatch::new();
    let mut watched: Vec<PathBuf> = Vec::new();
    loop {
        // Watches before listing, so that nothing is missed in between.
        let found = scan.folders();
        for folder in scan.sources.iter().chain(&found) {
            if !watched.contains(folder)
                && let Some(watch) = &watch
                && watch.add(folder).is_some()
            {
                watched.push(folder.clone());
            }
        }
        work.add(scan.files(&found));
        if let Err(error) = work.deliver_records(records) {
            // A full disk may have room again.
            scan.warn_once(format!("{error}; trying again ({})", error.remedy()));
        }
        if let Some(trouble) = work.delivery_trouble() {
            scan.warn_once(trouble);
        }
        let message = match wait_for_message(watch.as_ref().map(FolderWatch::fd), RELIST) {
            CampaignMessage::None => wait_for_message(None, BURST),
            message => message,
        };
        if let Some(watch) = &watch {
            watch.news();
        }
        if message != CampaignMessage::None {
            let found = scan.folders();
            work.add(scan.files(&found));
            return message;
        }
        if is_done() {
            return CampaignMessage::None;
        }
    }
}

/// Waits for a message of the campaign or a change of a folder, at most `most`.
fn wait_for_message(changes: Option<BorrowedFd<'_>>, most: Duration) -> CampaignMessage {
    let Ok(mut stdin) = stdio::input() else { return CampaignMessage::Gone };
    let mut fds = vec![PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    fds.extend(changes.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
    let ready = poll(&mut fds, timeout).unwrap_or(0) > 0;
    if !ready || !fds[0].any().unwrap_or(false) {
        return CampaignMessage::None;
    }
    let mut bytes = [0; 64];
    drop(fds);
    match stdin.read(&mut bytes) {
        Ok(count @ 1..) => parse_message(&String::from_utf8_lossy(&bytes[..count])),
        _ => CampaignMessage::Gone,
    }
}

fn parse_message(line: &str) -> CampaignMessage {
    let ms = line.trim_end().strip_prefix(FINISH).and_then(|ms| ms.parse().ok());
    ms.map_or(CampaignMessage::None, |ms| CampaignMessage::Finish(Duration::from_millis(ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_read_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (bad, good) = (dir.path().join("bad"), dir.path().join("good"));
        std::fs::create_dir(&good).unwrap();
        std::fs::write(&bad, "").unwrap();
        std::fs::write(good.join("id:0"), "x").unwrap();
        let sources = [bad.clone(), good.clone()];
        let mut scan = FolderScan::new(&sources, false, |_| ());
        for _ in 0..2 {
            assert_eq!(scan.folders(), [good.canonicalize().unwrap()]);
            assert_eq!(scan.files(&[bad.clone(), good.clone()]), [good.join("id:0")]);
        }
        assert_eq!(scan.reported.len(), 1);
    }

    #[test]
    fn the_campaign_sends_how_long_it_waits() {
        assert_eq!(
            parse_message("finish 250\n"),
            CampaignMessage::Finish(Duration::from_millis(250))
        );
        assert_eq!(parse_message("hello\n"), CampaignMessage::None);
    }
}
