//! The folder of signatures: the server's, and those created here since the last refresh.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use super::client::Client;
use super::error::CollectorError;
use super::files;
use super::spool::hex_sha1;
use crate::crash::{CollectedSignature, CrashFacts, Signature, SignatureError, Signatures};

/// Maximum unpacked size of a file in an archive.
const MAX_ENTRY: u64 = 16 << 20;
/// Maximum total unpacked size, all in memory at once; guards against zip bombs.
const MAX_SUM: u64 = 256 << 20;
/// Maximum number of files in an archive.
const MAX_ENTRIES: usize = 100_000;
/// Written by each refresh.
const REFRESHED: &str = ".refreshed";
/// Lock file held during a refresh.
const LOCK: &str = ".lock";
const SIGNATURE: &str = "signature";
const METADATA: &str = "metadata";

/// All signatures of a folder.
#[derive(Debug)]
pub struct Directory {
    folder: PathBuf,
    known: Signatures,
    /// Files that are no valid signatures, with the reason.
    pub refused: Vec<(String, SignatureError)>,
}

/// Result of a refresh.
#[derive(Debug)]
pub struct Refreshed {
    pub signatures: usize,
    /// Other files, left unchanged.
    pub others: Vec<String>,
}

impl Directory {
    pub fn open(folder: &Path) -> Result<Self, CollectorError> {
        let mut triples = vec![];
        for path in list(folder)?.into_iter().filter(|path| has_ending(path, SIGNATURE)) {
            let text = match fs::read(&path) {
                // Removed by a concurrent refresh.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text.map_err(|error| CollectorError::read(&path, error))?,
            };
            let text = String::from_utf8_lossy(&text).into_owned();
            triples.push((name_of(&path), text, metadata(&path)));
        }
        let (known, refused) = Signatures::new(triples);
        Ok(Self { folder: folder.to_owned(), known, refused })
    }

    /// The signature of a crash, if there is one.
    #[must_use]
    pub fn find(&self, crash: &CrashFacts<'_>) -> Option<&CollectedSignature> {
        self.known.find(crash)
    }

    /// Path of the signature `name`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{SIGNATURE}"))
    }

    /// Keeps a signature until the next refresh; by then the server should have it.
    pub fn add(&self, signature: &Signature) -> Result<PathBuf, CollectorError> {
        let text = signature.to_json();
        let path = self.path(&hex_sha1(text.as_bytes()));
        files::replace_quickly(&path, text.as_bytes())?;
        Ok(path)
    }
}

/// Replaces the folder's signatures by the server's. Changes nothing if the archive is incomplete or invalid.
pub fn refresh(folder: &Path, client: &Client) -> Result<Refreshed, CollectorError> {
    let old = list(folder)?;
    let mut archive = unnamed(folder)?;
    if !client.signatures(&mut archive)? {
        let url = client.server().url.clone();
        return Err(CollectorError::NoSignatures { url });
    }
    let entries = unpack(archive).map_err(|reason| {
        let url = format!("{}: the archive of signatures", client.server().url);
        CollectorError::Archive { url, reason }
    })?;
    let ours = |path: &&PathBuf| has_ending(path, SIGNATURE) || has_ending(path, METADATA);
    for path in old.iter().filter(ours).filter(|path| !entries.contains_key(&file_name(path))) {
        files::remove(path)?;
    }
    for (name, bytes) in &entries {
        files::replace_quickly(&folder.join(name), bytes)?;
    }
    files::replace_quickly(&folder.join(REFRESHED), b"")?;
    let signatures = entries.keys().filter(|name| name.ends_with(SIGNATURE)).count();
    let others = old.iter().filter(|path| !ours(path)).map(|path| file_name(path)).collect();
    Ok(Refreshed { signatures, others })
}

/// Refreshes unless another process did so within `age` or is doing so.
pub(super) fn refresh_if_older(
    folder: &Path,
    client: &Client,
    age: Duration,
    now: SystemTime,
) -> Result<(), CollectorError> {
    files::create_dir(folder)?;
    let Some(_lock) = files::lock(&folder.join(LOCK))? else { return Ok(()) };
    let is_young = |time| now.duration_since(time).is_ok_and(|its| its < age);
    if !refreshed(folder).is_some_and(is_young) {
        refresh(folder, client)?;
    }
    Ok(())
}

/// Time of the last refresh.
pub(super) fn refreshed(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder.join(REFRESHED)).and_then(|data| data.modified()).ok()
}

/// Creates a file without a name, deleted when closed.
fn unnamed(folder: &Path) -> Result<File, CollectorError> {
    let path = folder.join(format!(".archive-{}", std::process::id()));
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(true).open(&path);
    let file = file.and_then(|file| fs::remove_file(&path).map(|()| file));
    file.map_err(|error| CollectorError::write(&path, error))
}

/// Names and contents of the signatures and metadata in an archive.
fn unpack(archive: impl Read + Seek) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut archive = zip::ZipArchive::new(archive).map_err(|error| error.to_string())?;
    if archive.len() > MAX_ENTRIES {
        return Err(format!("it holds more than {MAX_ENTRIES} files"));
    }
    let (mut found, mut left) = (BTreeMap::new(), MAX_SUM);
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(|error| error.to_string())?;
        let Ok(name) = file.name().map(|name| name.into_owned()) else { continue };
        let path = Path::new(&name);
        let is_plain = path.file_name().is_some_and(|last| last == path.as_os_str());
        if !is_plain || !(has_ending(path, SIGNATURE) || has_ending(path, METADATA)) {
            continue;
        }
        let mut bytes = vec![];
        let most = MAX_ENTRY.min(left) + 1;
        file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > MAX_ENTRY {
            return Err(format!("{name:?} in it is larger than {} MiB", MAX_ENTRY >> 20));
        }
        let rest = left.checked_sub(bytes.len() as u64);
        left = rest.ok_or_else(|| format!("it unpacks to more than {} MiB", MAX_SUM >> 20))?;
        found.insert(name, bytes);
    }
    Ok(found)
}

/// Lists all files in the server's order.
fn list(folder: &Path) -> Result<Vec<PathBuf>, CollectorError> {
    let failed = |error| CollectorError::read(folder, error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|path| !file_name(path).starts_with('.'));
    // The server checks its newest bucket (largest number) first.
    paths.sort_by_cached_key(|path| {
        let name = name_of(path);
        (std::cmp::Reverse(name.parse::<u64>().ok()), name)
    });
    Ok(paths)
}

fn metadata(signature: &Path) -> Map<String, Value> {
    let bytes = fs::read(signature.with_extension(METADATA)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
