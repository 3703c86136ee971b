//! Memory shared with a target: SysV segments (AFL's protocol) and memfds (the channel).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapOptions, MmapRaw};

/// Longer inputs are fetched in part.
const MOST_FETCHED: usize = 2048;
const CACHE_LINE: usize = 64;

/// Hints the processor to fetch bytes that will be read soon; a hint, which costs no waiting.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    for line in bytes[..bytes.len().min(MOST_FETCHED)].chunks(CACHE_LINE) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch changes nothing and faults nowhere; every x86-64 processor has it.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }
}

/// A mapping that another process may write at any time.
///
/// The other side is hostile: a value read here may change before the next read, so every length or
/// index is copied, checked and used from the copy. Slices handed out are only ever read as plain
/// bytes and words, for which every bit pattern is valid; the executor hands them out only between
/// runs.
#[derive(Debug)]
pub struct SharedMap {
    base: NonNull<u8>,
    len: usize,
    /// Of a file; a segment is detached by its address.
    file: Option<MmapRaw>,
}

// SAFETY: the mapping belongs to this value alone within this process; moving it to another thread
// moves the right to use it.
unsafe impl Send for SharedMap {}

impl SharedMap {
    /// Creates a SysV segment of `len` bytes and returns it with its id.
    ///
    /// The segment is marked for removal at once: Linux destroys it with the last mapping, however
    /// the processes end, and until then still lets a target attach by id.
    pub fn sysv(len: usize) -> io::Result<(Self, i32)> {
        // SAFETY: shmget only takes integers.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, len, libc::IPC_CREAT | 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a null address lets the kernel choose one; nothing existing is replaced.
        let base = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        let attached = io::Error::last_os_error();
        // SAFETY: IPC_RMID ignores the buffer.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().addr() != usize::MAX => {
                Ok((Self { base, len, file: None }, id))
            }
            _ => Err(attached),
        }
    }

    /// Maps the first `len` bytes of a file, shared and writable.
    pub fn file(fd: impl AsFd, len: usize) -> io::Result<Self> {
        let file = MmapOptions::new().len(len).map_raw(fd.as_fd().as_raw_fd())?;
        let base = NonNull::new(file.as_mut_ptr()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { base, len, file: Some(file) })
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes `offset..offset + len`. Panics outside of the mapping.
    #[must_use]
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        self.check(offset, len);
        // SAFETY: inside of the mapping (checked), which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset), len) }
    }

    /// The same, to be written.
    pub fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        self.check(offset, len);
        // SAFETY: as in `bytes`; `&mut self` makes it the only slice in this process.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(offset), len) }
    }

    /// `count` words from byte `offset`, which must be a multiple of 4.
    #[must_use]
    pub fn words(&self, offset: usize, count: usize) -> &[u32] {
        self.check(offset, count * 4);
        assert_eq!(offset % 4, 0, "words are aligned");
        // SAFETY: inside (checked) and aligned: the base is a page border.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// The same, to be written.
    pub fn words_mut(&mut self, offset: usize, count: usize) -> &mut [u32] {
        self.check(offset, count * 4);
        assert_eq!(offset % 4, 0, "words are aligned");
        // SAFETY: as in `words`; `&mut self` makes it the only slice in this process.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// One word, read exactly once.
    #[must_use]
    pub fn load(&self, offset: usize) -> u32 {
        self.check(offset, 4);
        assert_eq!(offset % 4, 0, "words are aligned");
        // SAFETY: inside and aligned (checked); volatile because the other side may write it.
        unsafe { self.base.as_ptr().add(offset).cast::<u32>().read_volatile() }
    }

    /// One word that both sides use to signal each other.
    #[must_use]
    pub fn atomic(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, 4);
        assert_eq!(offset % 4, 0, "words are aligned");
        // SAFETY: inside and aligned (checked), and alive as long as `self`. Any other writer writes the
        // word as a whole.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    fn check(&self, offset: usize, len: usize) {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "access inside of the mapping");
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        if self.file.is_none() {
            // SAFETY: base is that of the segment attached in the constructor, detached once.
            unsafe { libc::shmdt(self.base.as_ptr().cast()) };
        }
    }
}

/// Creates an anonymous file of `len` bytes that can grow but never shrink (a shrunken file would
/// kill its readers by SIGBUS). It is closed on exec.
pub fn memfd(name: &std::ffi::CStr, len: usize) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; the flags are valid.
    let fd =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor without another owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    resize(&fd, len)?;
    seal(&fd, libc::F_SEAL_SHRINK)?;
    Ok(fd)
}

/// Creates an anonymous file for the programs that this process starts: they inherit it, and read it by its path.
pub fn inherited(name: &std::ffi::CStr, content: &[u8]) -> io::Result<(std::fs::File, PathBuf)> {
    use std::io::Write;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor without another owner.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(content)?;
    Ok((file, format!("/proc/self/fd/{fd}").into()))
}

/// Forbids every further change of a memfd's size.
pub fn seal_size(fd: impl AsFd) -> io::Result<()> {
    seal(fd, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL)
}

fn seal(fd: impl AsFd, seals: i32) -> io::Result<()> {
    // SAFETY: F_ADD_SEALS takes an integer.
    let done = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_ADD_SEALS, seals) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the size of a file.
pub fn resize(fd: impl AsFd, len: usize) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: ftruncate takes a descriptor and an integer.
    let done = unsafe { libc::ftruncate(fd.as_fd().as_raw_fd(), len) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Size of a file in bytes.
pub fn size(fd: impl AsFd) -> io::Result<usize> {
    let stat = nix::sys::stat::fstat(fd.as_fd())?;
    usize::try_from(stat.st_size).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysv_segment_marked_for_removal_can_still_be_attached() {
        let (mut map, id) = SharedMap::sysv(4096).unwrap();
        map.bytes_mut(0, 1)[0] = 7;
        // SAFETY: a null address lets the kernel choose.
        let second = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        assert_ne!(second.addr(), usize::MAX, "{}", io::Error::last_os_error());
        // SAFETY: attached above, one page.
        assert_eq!(unsafe { *second.cast::<u8>() }, 7);
        // SAFETY: attached above.
        unsafe { libc::shmdt(second) };
        drop(map);
        // SAFETY: as above; it must fail now.
        assert_eq!(unsafe { libc::shmat(id, std::ptr::null(), 0) }.addr(), usize::MAX);
    }

    #[test]
    fn programs_read_an_inherited_file_from_its_start_each_time() {
        let (_file, path) = inherited(c"test", b"content").unwrap();
        for _ in 0..2 {
            let output = std::process::Command::new("cat").arg(&path).output().unwrap();
            assert_eq!(output.stdout, b"content");
        }
    }

    #[test]
    fn memfd_grows_but_never_shrinks() {
        let fd = memfd(c"test", 4096).unwrap();
        resize(&fd, 8192).unwrap();
        assert!(resize(&fd, 4096).is_err());
        seal_size(&fd).unwrap();
        assert!(resize(&fd, 16384).is_err());
        assert_eq!(size(&fd).unwrap(), 8192);
    }

    #[test]
    #[should_panic(expected = "inside of the mapping")]
    fn access_outside_of_the_mapping_panics() {
        let (map, _) = SharedMap::sysv(4096).unwrap();
        let _ = map.load(4096);
    }
}
