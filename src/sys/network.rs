//! TCP connections that find out when the other side is gone.

use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Seconds of silence before the other side is probed, between two probes, and how many go without
/// an answer.
const IDLE: i32 = 30;
const INTERVAL: i32 = 10;
const QUESTIONS: i32 = 3;

/// A host that was switched off sends nothing: the kernel probes it from time to time, and the
/// connection ends when there is no answer. What the kernel refuses makes it end later.
pub fn notice_death(stream: &TcpStream) {
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, IDLE),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, INTERVAL),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, QUESTIONS),
        // What was sent and is not acknowledged: milliseconds.
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, (IDLE + INTERVAL * QUESTIONS) * 1000),
    ];
    for (level, name, value) in options {
        let size = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the descriptor is open as long as the stream, the value is a local of this size.
        unsafe {
            libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), size)
        };
    }
}
