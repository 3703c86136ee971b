//! Programs without instrumentation: a breakpoint at the start of each basic block (`-Q`).
//!
//! The runtime of `ffuzz-cc` is preloaded into the program (`LD_PRELOAD`), with a table of the blocks of the chosen
//! files (`runtime/native/`). The program is then an ordinary target with fork server, channel and snapshots. A
//! breakpoint counts its block and removes itself; a process that is restored after each run keeps only the
//! breakpoints of unknown blocks, so a run that shows nothing new hits none.

mod entry;
mod error;
mod table;

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ffuzz_assets::NATIVE;
use ffuzz_config::options::{NativeDomain, NativeEngine, NativeOptions, TargetOptions};

use super::preload::{self, Preload};
use super::{TargetError, channel};
use entry::Entries;
pub use error::NativeError;
use ffuzz_engine::domain::Site;
use ffuzz_inspect::binary::{self, Kin, Traits};
use ffuzz_inspect::blocks::CodeSize;
use ffuzz_inspect::choice::{Choice, is_language};
use ffuzz_inspect::code::Code;
use ffuzz_inspect::compares::{self, CompareSite};
use ffuzz_inspect::counted;
use ffuzz_inspect::detours::Amount;
use ffuzz_inspect::lines::FileCounters;
use ffuzz_inspect::objects::Objects;

/// Descriptor of the table in the target, below that of the channel.
pub(super) const TABLE_FD: i32 = channel::TARGET_FD - 1;
/// Variable that announces the table (`runtime/native/table.h`).
pub(super) const TABLE_ENV: &str = "FFUZZ_BLOCKS";

/// Maximum number of files named to the user.
const MOST_NAMED: usize = 4;

/// Resources with which a program without instrumentation starts.
#[derive(Debug)]
pub(super) struct Native {
    preload: Preload,
    table: OwnedFd,
    /// Number of blocks in all files.
    blocks: usize,
    compared: Vec<Compared>,
    entries: Entries,
    /// Domains that the runtime counts.
    domains: Vec<NativeDomain>,
}

/// The comparisons of a file.
#[derive(Debug)]
struct Compared {
    path: PathBuf,
    version: Version,
    /// Number of its first comparison.
    first: u32,
}

/// Identifies the version of a file, to detect a change.
#[derive(Debug, Eq, PartialEq)]
struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
}

impl Version {
    fn of(data: &fs::Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            bytes: data.len(),
            written: (data.mtime(), data.mtime_nsec()),
        }
    }
}

impl Native {
    /// Finds the blocks of the chosen files.
    pub(super) fn prepare(
        options: &TargetOptions,
        native: &NativeOptions,
        program: &Path,
        kin: Kin,
    ) -> Result<Self, TargetError> {
        check(program, kin)?;
        let start_error = |source| TargetError::Start { path: program.into(), source };
        let objects = Objects::of(program, &options.extra_env).map_err(start_error)?;
        if !objects.missing.is_empty() {
            return Err(TargetError::NoLibrary { names: objects.missing });
        }
        let choice = native.modules.as_deref().map_or(Choice::Own, Choice::parse);
        let amount = Amount::of(&native.domains);
        let mut table = table::NativeTable::counting(amount);
        let entries = Entries::open(&options.places);
        let mut compared = Vec::new();
        let (mut is_empty, mut known) = (true, CodeSize::default());
        for path in objects.chosen(&choice, program) {
            is_empty = false;
            let unreadable = |source| NativeError::Unreadable { path: path.into(), source };
            compared
                .extend(add(&mut table, path, amount, &entries, &mut known).map_err(unreadable)?);
        }
        if is_empty {
            return Err(NativeError::NoSuchModule { names: objects.names() }.into());
        }
        // With `--native`, the campaign reports whether its seeds reach any block.
        let is_blind = native.engine == NativeEngine::Any && known.is_little();
        if table.blocks() == 0 || is_blind {
            return Err(NativeError::NoBlocks.into());
        }
        let preload = Preload::open(&options.places, NATIVE)?;
        let memory = |source| TargetError::Memory { bytes: table.bytes().len(), source };
        let blocks = table.blocks();
        let table = table.share().map_err(memory)?;
        Ok(Self { preload, table, blocks, compared, entries, domains: native.domains.clone() })
    }

    /// Introduces the files to the user in one line.
    pub(super) fn introduction(&self) -> String {
        let name = |file: &Compared| file.path.file_name().map(|name| name.display().to_string());
        let names: Vec<String> = self.compared.iter().filter_map(name).collect();
        let shown = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more files"),
        };
        let Self { blocks, .. } = self;
        format!(
            "no instrumentation: copied code and breakpoints show {blocks} blocks of {shown}{more}"
        )
    }

    /// The chosen files.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.compared.iter().map(|file| file.path.clone()).collect()
    }

    /// Refuses to restart the program if its files have changed: blocks are numbered by their place in the table, so
    /// those of a new file would be mistaken for others.
    pub(super) fn check_files(&self) -> Result<(), NativeError> {
        let is_same = |file: &&Compared| {
            fs::metadata(&file.path).is_ok_and(|data| Version::of(&data) == file.version)
        };
        let changed = self.compared.iter().find(|file| !is_same(file) && file.path.exists());
        changed.map_or(Ok(()), |file| Err(NativeError::Changed { path: file.path.clone() }))
    }

    pub(super) fn table(&self) -> BorrowedFd<'_> {
        self.table.as_fd()
    }

    /// Comparison sites: file and line, or `FILE+OFFSET` without debug information, and the function.
    pub(super) fn sites(&self) -> Vec<Site> {
        let of_file = |compared: &Compared| {
            if is_language(&compared.path) {
                return None;
            }
            let code = Code::decoded(&compared.path)?;
            let bytes = fs::read(&compared.path).ok()?;
            let sites = compares::sites(&object::File::parse(&*bytes).ok()?, code.blocks());
            let site = |(site, number): (&CompareSite, u32)| {
                code.site("log", number, site.at, &site.what())
            };
            Some(sites.iter().zip(compared.first..).map(site).collect::<Vec<_>>())
        };
        self.compared.iter().filter_map(of_file).flatten().collect()
    }

    /// Counters of a chosen file; None for another file.
    pub(super) fn counters(&self, path: &Path) -> Option<FileCounters> {
        let file = self.compared.iter().find(|file| file.path == path)?;
        let entry = self.entries.entry(path, &fs::read(path).ok()?, Amount::of(&self.domains))?;
        Some(entry.counters(file.first))
    }

    /// Returns true if domains need the executions of blocks.
    pub(super) fn counts_blocks(&self) -> bool {
        Amount::of(&self.domains) == Amount::Executions
    }

    /// Sites that domains count, in the same form.
    pub(super) fn counted_sites(&self) -> Vec<Site> {
        if self.domains.is_empty() {
            return Vec::new();
        }
        let files = self.compared.iter();
        let paths = files.map(|compared| &*compared.path);
        let calls = paths.clone().flat_map(|path| counted::sites(path, &self.domains));
        let mut sites: Vec<Site> = calls.collect();
        if self.domains.contains(&NativeDomain::Perf) {
            sites.extend(paths.flat_map(counted::block_sites));
        }
        sites
    }

    /// Variables to set for a target that gets the environment `env`.
    pub(super) fn variables(
        &self,
        env: &[(OsString, Option<OsString>)],
    ) -> Vec<(OsString, OsString)> {
        let table = (TABLE_ENV.into(), TABLE_FD.to_string().into());
        let mut variables = vec![self.preload.variable(env), table];
        if !self.domains.is_empty() {
            let names: Vec<&str> = self.domains.iter().map(|domain| domain.name()).collect();
            variables.push((counted::ENV.into(), names.join(",").into()));
        }
        variables
    }
}

/// Refuses programs on which our heap has no effect.
pub(super) fn check_guarded(program: &Path, traits: Traits) -> Result<(), NativeError> {
    match () {
        () if traits.sanitizer => Err(NativeError::HeapOfSanitizer),
        () => match binary::loader(program) {
            None => Err(NativeError::HeapOfStatic),
            Some(loader) => match binary::other_libc(&loader) {
                Some(name) => Err(NativeError::HeapOfOtherLibc(name)),
                None => Ok(()),
            },
        },
    }
}

/// Refuses programs that cannot preload a library or cannot have breakpoints.
fn check(program: &Path, kin: Kin) -> Result<(), NativeError> {
    if kin == Kin::Go {
        return Err(NativeError::Go);
    }
    if !cfg!(target_arch = "x86_64") || !binary::runs_here(program) {
        return Err(NativeError::Machine);
    }
    let loader = binary::loader(program).ok_or(NativeError::Static)?;
    if let Some(name) = binary::other_libc(&loader) {
        return Err(NativeError::OtherLibc(name));
    }
    if preload::changes_user(program) {
        return Err(NativeError::SetUser);
    }
    Ok(())
}

fn add(
    table: &mut table::NativeTable,
    path: &Path,
    amount: Amount,
    entries: &Entries,
    known: &mut CodeSize,
) -> io::Result<Option<Compared>> {
    let data = fs::metadata(path)?;
    let bytes = fs::read(path)?;
    let Some(entry) = entries.entry(path, &bytes, amount) else { return Ok(None) };
    *known += entry.known;
    let id =
        table::FileId { device: data.dev(), inode: data.ino(), identity: counted::identity(path) };
    let first = table.add(&entry, id);
    let version = Version::of(&data);
    Ok(Some(Compared { path: path.into(), version, first }))
}
