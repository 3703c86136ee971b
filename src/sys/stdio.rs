//! The standard descriptors while foreign code shares the process: it prints where it wants to, and
//! the screen has to survive; and it reads descriptor 0, which then is not the user's input.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Descriptors for messages to the user: 1 and 2, unless they are redirected.
static OUT: AtomicI32 = AtomicI32::new(1);
static ERR: AtomicI32 = AtomicI32::new(2);
/// The user's standard input: 0, unless foreign code has random bytes there.
static INPUT: AtomicI32 = AtomicI32::new(0);

/// Standard output and error lead elsewhere as long as this lives.
#[derive(Debug)]
pub struct Redirected {
    /// Open until they are restored.
    _out: OwnedFd,
    _err: OwnedFd,
}

impl Redirected {
    /// Sends what is printed from now on to `out` and `err`.
    pub fn to(out: BorrowedFd<'_>, err: BorrowedFd<'_>) -> io::Result<Self> {
        let (saved_out, saved_err) = (copy_of(1)?, copy_of(2)?);
        // What was printed before stays where it belongs.
        flush_c();
        OUT.store(saved_out.as_raw_fd(), Ordering::SeqCst);
        ERR.store(saved_err.as_raw_fd(), Ordering::SeqCst);
        // The copies are there: an error here would be that of a bad number.
        replace(1, out.as_raw_fd());
        replace(2, err.as_raw_fd());
        Ok(Self { _out: saved_out, _err: saved_err })
    }
}

impl Drop for Redirected {
    fn drop(&mut self) {
        undo();
    }
}

/// Everything as it was before a redirection.
pub fn undo() {
    let (out, err) = (OUT.swap(1, Ordering::SeqCst), ERR.swap(2, Ordering::SeqCst));
    if out != 1 {
        flush_c();
        replace(1, out);
        replace(2, err);
    }
}

/// The user's standard output, whatever descriptor 1 is.
pub fn output() -> io::Result<File> {
    copy_of(out()).map(File::from)
}

/// The user's standard input, whatever descriptor 0 is. No other code opens it.
pub fn input() -> io::Result<File> {
    copy_of(INPUT.load(Ordering::SeqCst)).map(File::from)
}

/// Makes descriptor 0 an endless source of what `next` returns, for code that takes it for a source of
/// random bytes. The user's input moves away, for good: the code may keep a copy of the number.
pub fn feed_zero(mut next: impl FnMut() -> u64 + Send + 'static) -> io::Result<()> {
    if INPUT.load(Ordering::SeqCst) != 0 {
        return Ok(());
    }
    let (reader, mut writer) = io::pipe()?;
    let feed = move || {
        let mut bytes = [0; 512];
        loop {
            bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&next().to_ne_bytes()));
            // A full pipe holds it here, until the end of the process.
            if writer.write_all(&bytes).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("random".into()).spawn(feed)?;
    let input = copy_of(0)?;
    replace(0, reader.as_raw_fd());
    INPUT.store(input.into_raw_fd(), Ordering::SeqCst);
    Ok(())
}

fn copy_of(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the descriptors used here are open: the standard ones, or copies that are kept.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

fn replace(fd: RawFd, by: RawFd) {
    // SAFETY: both are open; what `fd` was before has a copy.
    unsafe { libc::dup2(by, fd) };
}

/// Foreign code prints through the C library's buffers.
fn flush_c() {
    // SAFETY: NULL means all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// The descriptor of the user's standard output.
pub(super) fn out() -> RawFd {
    OUT.load(Ordering::SeqCst)
}

/// For a signal handler: writes to the user's standard output without any buffer.
pub(super) fn write_out(text: &str) {
    write(out(), text);
}

/// For a signal handler: writes to the user's standard error without any buffer.
pub fn write_error(parts: &[&str]) {
    for part in parts {
        write(ERR.load(Ordering::SeqCst), part);
    }
}

/// For a forked child: the user's standard error becomes descriptors 1 and 2.
pub(super) fn keep_error_only() {
    let words = ERR.swap(2, Ordering::SeqCst);
    OUT.store(1, Ordering::SeqCst);
    replace(2, words);
    replace(1, 2);
}

fn write(fd: RawFd, text: &str) {
    // SAFETY: the bytes are there for the length of the call. A failure cannot be reported any more.
    unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
}
