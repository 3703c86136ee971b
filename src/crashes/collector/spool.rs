//! Spool of reports on disk: waiting ones, marks of those sent or left out, and refused ones.
//!
//! Many processes may add reports, one at a time delivers them ([`Spool::claim`]). A report stays in `waiting/` until
//! its mark in `sent/` is on disk; the mark remains, so that the same bug is not reported again.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use super::error::CollectorError;
use super::files;
use super::report::CrashReport;
use ffuzz_sys::file::Locked;

/// Empty file whose modification time is the creation time of the spool.
const BEGAN: &str = "began";

/// A folder of reports.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Added {
    New,
    /// Already waiting, sent, left out or refused.
    Known,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct SpoolCounts {
    pub waiting: usize,
    pub sent: usize,
    /// Left out because the server has enough examples of the bug.
    pub known: usize,
    pub refused: usize,
}

/// A report with a unique id for finding it at the server.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SpoolItem {
    pub(super) id: String,
    pub(super) report: CrashReport,
}

impl SpoolItem {
    #[must_use]
    pub(super) fn new(report: CrashReport) -> Self {
        let client = nix::unistd::gethostname().unwrap_or_default();
        let parts = format!("{} {client:?} {} {}", report.key, std::process::id(), nanoseconds());
        Self { id: hex_sha1(parts.as_bytes()), report }
    }
}

/// Delivery attempts of a waiting report.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tries {
    /// Number of requests begun; some may not have reached the server.
    pub(super) count: u32,
    /// Number of server failures caused by the report.
    pub(super) failed: u32,
    /// Unix time before which it is not tried again.
    pub(super) not_before: f64,
    /// Unix time until which the server may still store a request.
    #[serde(default)]
    pub(super) open_until: f64,
    pub(super) error: String,
}

/// Mark of a report that was sent or left out.
#[derive(Debug, Deserialize, Serialize)]
struct SpoolMark {
    key: String,
    id: String,
    /// Its number at the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    crash: Option<u64>,
    /// Name of the matching signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Spool {
    pub fn open(folder: &Path) -> Result<Self, CollectorError> {
        let spool = Self { folder: folder.to_owned() };
        for part in ["waiting", "sent", "known", "refused"] {
            files::create_dir(&folder.join(part))?;
            files::sweep(&folder.join(part));
        }
        files::create(&folder.join(BEGAN), b"")?;
        Ok(spool)
    }

    /// Number of waiting reports in the spool at `folder`, which need not be a spool yet.
    pub(crate) fn waiting_in(folder: &Path) -> Result<usize, CollectorError> {
        Ok(names(&folder.join("waiting"), ".json")?.len())
    }

    /// Creation time of the spool: earlier deliveries were made by another process.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        let written = fs::metadata(self.folder.join(BEGAN)).and_then(|data| data.modified());
        written.unwrap_or(UNIX_EPOCH)
    }

    /// Adds a report, unless one with its key is known.
    pub fn add(&self, report: &CrashReport) -> Result<Added, CollectorError> {
        let name = name_of(&report.key);
        if self.is_done(&name) {
            return Ok(Added::Known);
        }
        let item = SpoolItem::new(report.clone());
        let created = files::create(&self.waiting(&name), &json(&item))?;
        // Delivered meanwhile: the mark was written before the report was removed.
        if created && self.is_done(&name) {
            files::remove(&self.waiting(&name))?;
            return Ok(Added::Known);
        }
        Ok(if created { Added::New } else { Added::Known })
    }

    /// Replaces the waiting report with the same key, if there was no try to send it.
    pub fn improve(&self, report: &CrashReport) -> Result<(), CollectorError> {
        let name = name_of(&report.key);
        let path = self.waiting(&name);
        if self.is_done(&name) || self.tries(&name).exists() {
            return Ok(());
        }
        // If it is being sent right now, its mark shows that to readers of the file.
        match read::<SpoolItem>(&path)? {
            Some(known) => {
                files::replace(&path, &json(&SpoolItem { id: known.id, report: report.clone() }))
            }
            None => Ok(()),
        }
    }

    /// Claims the right to deliver, until it is dropped. None while another process has it.
    pub fn claim(&self) -> Result<Option<SpoolClaim>, CollectorError> {
        let lock = files::lock(&self.folder.join("lock"))?;
        Ok(lock.map(|lock| SpoolClaim { spool: self.clone(), _lock: lock }))
    }

    pub fn counts(&self) -> Result<SpoolCounts, CollectorError> {
        let count = |part, ending| Ok(names(&self.folder.join(part), ending)?.len());
        Ok(SpoolCounts {
            waiting: count("waiting", ".json")?,
            sent: count("sent", ".json")?,
            known: count("known", ".json")?,
            refused: count("refused", ".json")?,
        })
    }

    fn is_done(&self, name: &str) -> bool {
        [self.sent(name), self.known(name), self.refused(name)].iter().any(|mark| mark.exists())
    }

    fn waiting(&self, name: &str) -> PathBuf {
        self.folder.join("waiting").join(format!("{name}.json"))
    }

    fn tries(&self, name: &str) -> PathBuf {
        self.folder.join("waiting").join(format!("{name}.tries"))
    }

    fn sent(&self, name: &str) -> PathBuf {
        self.folder.join("sent").join(format!("{name}.json"))
    }

    fn known(&self, name: &str) -> PathBuf {
        self.folder.join("known").join(format!("{name}.json"))
    }

    fn refused(&self, name: &str) -> PathBuf {
        self.folder.join("refused").join(format!("{name}.json"))
    }
}

/// The exclusive right to deliver the reports of a spool.
#[derive(Debug)]
pub struct SpoolClaim {
    spool: Spool,
    _lock: Locked,
}

impl SpoolClaim {
    /// Names of the waiting reports, the oldest first.
    pub(super) fn waiting(&self) -> Result<Vec<String>, CollectorError> {
        let folder = self.spool.folder.join("waiting");
        let mut found = names(&folder, ".json")?;
        found.sort_by_cached_key(|name| {
            let data = fs::metadata(self.spool.waiting(name));
            data.and_then(|data| data.modified()).unwrap_or(UNIX_EPOCH)
        });
        Ok(found)
    }

    /// Reads a report; None if it is already delivered (left by a killed process) or damaged.
    pub(super) fn take(&self, name: &str) -> Result<Option<SpoolItem>, CollectorError> {
        if self.spool.sent(name).exists() || self.spool.known(name).exists() {
            self.forget(name)?;
            return Ok(None);
        }
        match read(&self.spool.waiting(name)) {
            Err(CollectorError::Damaged { reason, .. }) => {
                self.refuse(name, &reason)?;
                Ok(None)
            }
            item => item,
        }
    }

    pub(super) fn tries(&self, name: &str) -> Result<Tries, CollectorError> {
        match read(&self.spool.tries(name)) {
            Ok(tries) => Ok(tries.unwrap_or_default()),
            // The file exists, so there was a try.
            Err(CollectorError::Damaged { .. }) => Ok(Tries { count: 1, ..Tries::default() }),
            Err(error) => Err(error),
        }
    }

    pub(super) fn note(&self, name: &str, tries: &Tries) -> Result<(), CollectorError> {
        files::replace(&self.spool.tries(name), &json(tries))
    }

    /// Marks a report as sent. `crash`: its number at the server; `signature`: the matching one.
    pub(super) fn done(
        &self,
        name: &str,
        item: &SpoolItem,
        crash: u64,
        signature: Option<String>,
    ) -> Result<(), CollectorError> {
        self.mark(&self.spool.sent(name), item, Some(crash), signature)?;
        self.forget(name)
    }

    /// Marks a report as left out: the server has enough examples for `signature`.
    pub(super) fn leave_out(
        &self,
        name: &str,
        item: &SpoolItem,
        signature: String,
    ) -> Result<(), CollectorError> {
        self.mark(&self.spool.known(name), item, None, Some(signature))?;
        self.forget(name)
    }

    fn mark(
        &self,
        path: &Path,
        item: &SpoolItem,
        crash: Option<u64>,
        signature: Option<String>,
    ) -> Result<(), CollectorError> {
        let mark =
            SpoolMark { key: item.report.key.clone(), id: item.id.clone(), crash, signature };
        files::replace(path, &json(&mark))
    }

    /// Number of reports sent since `time`, by matching signature.
    pub(super) fn sent_since(
        &self,
        time: SystemTime,
    ) -> Result<HashMap<String, u32>, CollectorError> {
        let mut counts = HashMap::new();
        for name in names(&self.spool.folder.join("sent"), ".json")? {
            let path = self.spool.sent(&name);
            let written = fs::metadata(&path).and_then(|data| data.modified());
            if written.is_ok_and(|written| written >= time)
                && let Ok(Some(SpoolMark { signature: Some(signature), .. })) = read(&path)
            {
                *counts.entry(signature).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Moves a report to `refused/`, with the reason in a file beside it.
    pub(super) fn refuse(&self, name: &str, reason: &str) -> Result<(), CollectorError> {
        let refused = self.spool.refused(name);
        files::replace(&refused.with_extension("txt"), format!("{reason}\n").as_bytes())?;
        files::relocate(&self.spool.waiting(name), &refused)?;
        files::remove(&self.spool.tries(name))
    }

    /// Queues the refused reports again. Returns their number.
    pub(crate) fn retry_refused(&self) -> Result<usize, CollectorError> {
        let found = names(&self.spool.folder.join("refused"), ".json")?;
        for name in &found {
            let refused = self.spool.refused(name);
            files::replace(
                &self.spool.tries(name),
                &json(&Tries { count: 1, ..Tries::default() }),
            )?;
            files::relocate(&refused, &self.spool.waiting(name))?;
            files::remove(&refused.with_extension("txt"))?;
        }
        Ok(found.len())
    }

    #[must_use]
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    fn forget(&self, name: &str) -> Result<(), CollectorError> {
        files::remove(&self.spool.waiting(name))?;
        files::remove(&self.spool.tries(name))
    }
}

fn name_of(key: &str) -> String {
    hex_sha1(key.as_bytes())
}

pub(super) fn hex_sha1(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Cannot fail: maps have text keys, and JSON can represent all values.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// None if there is no such file.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, CollectorError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            CollectorError::Damaged { path: path.to_owned(), reason: error.to_string() }
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CollectorError::read(path, error)),
    }
}

/// Names in a folder with this ending, without the ending.
fn names(folder: &Path, ending: &str) -> Result<Vec<String>, CollectorError> {
    let entries = fs::read_dir(folder).map_err(|error| CollectorError::read(folder, error))?;
    let name = |entry: io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(ending).map(str::to_owned)
    };
    Ok(entries.filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(key: &str) -> CrashReport {
        CrashReport { key: key.to_owned(), ..CrashReport::default() }
    }

    fn counts(waiting: usize, sent: usize, refused: usize) -> SpoolCounts {
        SpoolCounts { waiting, sent, known: 0, refused }
    }

    #[test]
    fn a_key_is_added_once_whatever_became_of_it() {
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(folder.path()).expect("spool");
        for key in ["a", "b"] {
            assert_eq!(spool.add(&report(key)).expect("room"), Added::New);
            assert_eq!(spool.add(&report(key)).expect("room"), Added::Known);
        }
        let claim = spool.claim().expect("lock").expect("free");
        let item = claim.take(&name_of("a")).expect("file").expect("waits");
        claim.done(&name_of("a"), &item, 7, None).expect("room");
        claim.refuse(&name_of("b"), "no").expect("room");
        assert_eq!(spool.counts().expect("folder"), counts(0, 1, 1));
        for key in ["a", "b"] {
            assert_eq!(spool.add(&report(key)).expect("room"), Added::Known);
        }
        assert_eq!(claim.retry_refused().expect("room"), 1);
        assert_eq!(spool.counts().expect("folder"), counts(1, 1, 0));
        // It may have arrived when it was refused, so the server is searched first.
        assert_eq!(claim.tries(&name_of("b")).expect("file").count, 1);
    }

    #[test]
    fn a_report_that_was_not_tried_yet_can_be_improved() {
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(folder.path()).expect("spool");
        let better = CrashReport { args: vec!["x".into()], ..report("a") };
        spool.improve(&better).expect("nothing to do");
        assert_eq!(spool.counts().expect("folder"), counts(0, 0, 0));
        spool.add(&report("a")).expect("room");
        let claim = spool.claim().expect("lock").expect("free");
        let take = || claim.take(&name_of("a")).expect("file").expect("waits");
        let first = take();
        spool.improve(&better).expect("room");
        assert_eq!((take().id, take().report.args), (first.id, better.args.clone()));
        claim.note(&name_of("a"), &Tries { count: 1, ..Tries::default() }).expect("room");
        spool.improve(&report("a")).expect("nothing to do");
        assert_eq!(take().report.args, better.args);
    }

    #[test]
    fn one_delivers_at_a_time() {
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(folder.path()).expect("spool");
        let claim = spool.claim().expect("lock").expect("free");
        assert!(spool.claim().expect("lock").is_none());
        drop(claim);
        assert!(spool.claim().expect("lock").is_some());
    }

    #[test]
    fn what_was_marked_before_a_kill_is_not_taken_again() {
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(folder.path()).expect("spool");
        spool.add(&report("a")).expect("room");
        let name = name_of("a");
        let waiting = fs::read(spool.waiting(&name)).expect("file");
        let claim = spool.claim().expect("lock").expect("free");
        let item = claim.take(&name).expect("file").expect("waits");
        claim.done(&name, &item, 1, None).expect("room");
        fs::write(spool.waiting(&name), waiting).expect("file");
        assert!(claim.take(&name).expect("file").is_none());
        assert_eq!(spool.counts().expect("folder"), counts(0, 1, 0));
    }

    #[test]
    fn sent_ones_are_counted_by_their_signature() {
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(folder.path()).expect("spool");
        let claim = spool.claim().expect("lock").expect("free");
        for (key, signature) in [("a", Some("7")), ("b", None), ("c", Some("7")), ("d", Some("8"))]
        {
            spool.add(&report(key)).expect("room");
            let item = claim.take(&name_of(key)).expect("file").expect("waits");
            claim.done(&name_of(key), &item, 1, signature.map(Into::into)).expect("room");
        }
        spool.add(&report("e")).expect("room");
        let item = claim.take(&name_of("e")).expect("file").expect("waits");
        claim.leave_out(&name_of("e"), &item, "7".into()).expect("room");
        assert_eq!(spool.add(&report("e")).expect("room"), Added::Known);
        assert_eq!(spool.counts().expect("folder").known, 1);
        let counts = claim.sent_since(UNIX_EPOCH).expect("folder");
        assert_eq!(counts, [("7".to_owned(), 2), ("8".to_owned(), 1)].into());
        let later = SystemTime::now() + std::time::Duration::from_secs(9);
        assert!(claim.sent_since(later).expect("folder").is_empty());
    }

    #[test]
    fn a_damaged_file_is_put_aside() {
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(folder.path()).expect("spool");
        fs::write(spool.waiting("x"), "{").expect("file");
        let claim = spool.claim().expect("lock").expect("free");
        assert!(claim.take("x").expect("file").is_none());
        assert_eq!(spool.counts().expect("folder"), counts(0, 0, 1));
    }

    #[test]
    fn reports_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("folder");
        let spool = Spool::open(&folder.path().join("spool")).expect("spool");
        spool.add(&report("a")).expect("room");
        let mode = |path: &Path| fs::metadata(path).expect("file").permissions().mode() & 0o777;
        assert_eq!(mode(&spool.waiting(&name_of("a"))), 0o600);
        assert_eq!(mode(&spool.folder), 0o700);
    }
}
