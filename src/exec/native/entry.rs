//! The entry of a file in the table. Entries are cached between starts, because decoding a large program takes
//! seconds and each worker and tool needs it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ffuzz_assets::Assets;
use ffuzz_config::env::AssetPlaces;
use sha1::{Digest, Sha1};

use super::table::byte_at;
use ffuzz_inspect::blocks::{Blocks, CodeSize};
use ffuzz_inspect::choice::is_language;
use ffuzz_inspect::compares::{self, CompareSite};
use ffuzz_inspect::detours::{self, Amount, CountedBy, Detours};
use ffuzz_inspect::lines::FileCounters;
use ffuzz_inspect::parts::hex;

/// Number of header words: numbers of blocks, sites and edges, bytes of code, numbers of jumps and fields.
const HEAD: usize = 6;
/// Size of the data before the body of a cached entry: checksum, head, and two words of [`CodeSize`].
const BEFORE: usize = 20 + 4 * HEAD + 16;
/// Minimum size of a cached file: decoding a smaller one is as quick as a lookup.
const LEAST_KEPT: usize = 64 << 10;
/// Maximum total size of the cached entries in bytes.
const MOST_KEPT: u64 = 512 << 20;

/// Entry of one file in the form of `runtime/native/table.h`, without the file's identity.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct NativeEntry {
    pub(super) head: [u32; HEAD],
    pub(super) body: Vec<u8>,
    pub(super) known: CodeSize,
}

impl NativeEntry {
    pub(super) fn of(
        file: &object::File<'_>,
        blocks: &Blocks,
        sites: &[CompareSite],
        detours: &Detours,
    ) -> Self {
        let known = CodeSize::of(file, blocks);
        let byte = |start: &u64| Some((u32::try_from(*start).ok()?, byte_at(file, *start)?));
        let (at, bytes): (Vec<u32>, Vec<u8>) = blocks.starts.iter().filter_map(byte).unzip();
        let Some(count) = u32::try_from(at.len()).ok().filter(|count| *count > 0) else {
            return Self { known, ..Self::default() };
        };
        let none = Detours::default();
        let detours = if at.len() == detours.counted_by.len() { detours } else { &none };
        let head = [
            count,
            sites.len() as u32,
            detours.edges,
            detours.code.len() as u32,
            detours.jumps.len() as u32,
            detours.fields.len() as u32,
        ];
        let jumps = detours.jumps.iter().flat_map(|(at, to)| [*at, *to]);
        let words = at.iter().copied().chain(jumps).chain(detours.fields.iter().copied());
        let mut body: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        body.extend(bytes);
        let counts = detours.counted_by.iter().map(|by| *by as u8);
        body.extend(counts.chain(std::iter::repeat(0)).take(at.len()));
        body.extend(&detours.code);
        body.resize(body.len().next_multiple_of(8), 0);
        for site in sites {
            site.write(byte_at(file, site.at).unwrap_or_default(), &mut body);
        }
        Self { head, body, known }
    }

    /// The blocks with counters of their own, and the comparisons, numbered from `first`.
    pub(super) fn counters(&self, first: u32) -> FileCounters {
        let [count, sites, _, _, jumps, fields] = self.head.map(|number| number as usize);
        let address =
            |bytes: &[u8]| u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let at = self.body.chunks_exact(4).take(count).map(address);
        let counts = self.body.get(4 * (count + 2 * jumps + fields) + count..).unwrap_or_default();
        let has_own = |by: &u8| *by != CountedBy::Others as u8;
        let own = at.zip(counts).enumerate().filter(|(_, (_, by))| has_own(by));
        let start = self.body.len().saturating_sub(sites * CompareSite::BYTES);
        let compared = self.body[start..].chunks_exact(CompareSite::BYTES).map(address);
        let mut compared: Vec<(u64, u32)> = compared.zip(first..).collect();
        compared.sort_unstable();
        FileCounters { counters: own.map(|(number, (at, _))| (at, number)).collect(), compared }
    }

    /// Decodes a file. Returns None if it is no ELF file.
    fn decoded(path: &Path, content: &[u8], amount: Amount) -> Option<Self> {
        let file = object::File::parse(content).ok()?;
        let blocks = Blocks::decoded(&file);
        let (sites, detours) = if is_language(path) {
            Default::default()
        } else {
            (compares::sites(&file, &blocks), detours::of(&file, &blocks, amount))
        };
        Some(Self::of(&file, &blocks, &sites, &detours))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 20];
        bytes.extend(self.head.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(self.known.words().iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(&self.body);
        let sum = Sha1::digest(&bytes[20..]);
        bytes[..20].copy_from_slice(&sum);
        bytes
    }

    /// Parses a cached entry; None if it is damaged.
    fn from_bytes(mut bytes: Vec<u8>) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<20>()?;
        if Sha1::digest(rest)[..] != sum[..] {
            return None;
        }
        let (head, rest) = rest.split_first_chunk::<{ 4 * HEAD }>()?;
        let (known, _) = rest.split_first_chunk::<16>()?;
        let word = |index: usize| head[4 * index..][..4].try_into().map(u32::from_le_bytes).ok();
        let mut words = [0; HEAD];
        for (index, to) in words.iter_mut().enumerate() {
            *to = word(index)?;
        }
        let long = |at: usize| known[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let known = CodeSize::from_words([long(0)?, long(8)?]);
        bytes.drain(..BEFORE);
        Some(Self { head: words, body: bytes, known })
    }
}

/// The folder of cached entries. Without one, each start decodes all files.
#[derive(Debug)]
pub(super) struct Entries {
    folder: Option<PathBuf>,
    /// Identifies this executable: other versions must not read its entries.
    version: String,
}

impl Entries {
    pub(super) fn open(places: &AssetPlaces) -> Self {
        let folder = Assets::open(places).ok().map(|assets| assets.kept_blocks());
        let folder = folder.filter(|folder| ffuzz_assets::private_folder(folder).is_ok());
        let version = own_version();
        Self { folder: folder.filter(|_| version.is_some()), version: version.unwrap_or_default() }
    }

    /// Returns the entry of a file with this content. None if it is no ELF file.
    pub(super) fn entry(&self, path: &Path, content: &[u8], amount: Amount) -> Option<NativeEntry> {
        let Some(folder) = self.folder.as_ref().filter(|_| content.len() >= LEAST_KEPT) else {
            return NativeEntry::decoded(path, content, amount);
        };
        let mut name = Sha1::new();
        name.update(&self.version);
        name.update([amount as u8, u8::from(is_language(path))]);
        name.update(content);
        let kept = folder.join(hex(&name.finalize()));
        if let Some(entry) = fs::read(&kept).ok().and_then(NativeEntry::from_bytes) {
            // `make_room` removes entries by their time of last use.
            let _ = File::open(&kept).and_then(|file| file.set_modified(SystemTime::now()));
            return Some(entry);
        }
        let entry = NativeEntry::decoded(path, content, amount)?;
        let bytes = entry.to_bytes();
        // If this fails, the next start decodes again.
        let _ = make_room(folder, bytes.len() as u64)
            .and_then(|()| ffuzz_assets::write(&kept, &bytes))
            .inspect_err(|_| drop(fs::remove_file(&kept)));
        Some(entry)
    }
}

/// Size and modification time of the executable.
fn own_version() -> Option<String> {
    let own = fs::metadata("/proc/self/exe").ok()?;
    let changed = own.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{} {} ", own.len(), changed.as_nanos()))
}

/// Removes the least recently used entries until `bytes` more fit in.
fn make_room(folder: &Path, bytes: u64) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        kept.push((data.modified()?, data.len(), entry.path()));
    }
    kept.sort_unstable();
    let mut total = bytes + kept.iter().map(|(_, length, _)| length).sum::<u64>();
    for (_, length, path) in kept {
        if total <= MOST_KEPT {
            break;
        }
        fs::remove_file(path)?;
        total -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Entries {
        Entries { folder: Some(folder.into()), version: "1".into() }
    }

    #[test]
    fn a_part_is_found_again_and_a_damaged_one_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::current_exe().unwrap();
        let content = fs::read(&path).unwrap();
        let made = entries(folder.path()).entry(&path, &content, Amount::Hits).unwrap();
        assert!(made.head[0] > 1_000 && !made.body.is_empty());
        let kept: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        let kept = kept[0].path();
        let found = || NativeEntry::from_bytes(fs::read(&kept).unwrap());
        assert_eq!(found().unwrap(), made);
        let again = entries(folder.path()).entry(&path, &content, Amount::Hits).unwrap();
        assert_eq!(again, made);
        let whole = fs::read(&kept).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..3], b""] {
            fs::write(&kept, damaged).unwrap();
            assert_eq!(found(), None);
            let again = entries(folder.path()).entry(&path, &content, Amount::Hits).unwrap();
            assert_eq!((again, found().as_ref()), (found().unwrap(), Some(&made)));
        }
        // Another way to count, or another version of the program, makes another entry.
        entries(folder.path()).entry(&path, &content, Amount::Executions).unwrap();
        let other = Entries { version: "2".into(), ..entries(folder.path()) };
        other.entry(&path, &content, Amount::Hits).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn room_is_made_by_removing_what_was_not_used_for_longest() {
        let folder = tempfile::tempdir().unwrap();
        for (name, age) in [("old", 3), ("older", 9), ("new", 1)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_len(MOST_KEPT / 4).unwrap();
            let time = SystemTime::now() - std::time::Duration::from_secs(age);
            file.set_modified(time).unwrap();
        }
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        make_room(folder.path(), MOST_KEPT / 4).unwrap();
        assert_eq!(names(), ["new", "old", "older"]);
        make_room(folder.path(), MOST_KEPT / 2).unwrap();
        assert_eq!(names(), ["new", "old"]);
    }
}
