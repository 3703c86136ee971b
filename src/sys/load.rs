//! How many threads share the cores, and what the scheduler has given to a process.

use std::fs;
use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Runnable threads of the whole machine, in percent of its cores, as AFL shows it.
#[must_use]
pub fn machine_percent() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    runnable(&text).map(|threads| threads * 100.0 / cores())
}

/// `0.20 0.18 0.12 1/80 11206`: the fourth word, before the slash.
fn runnable(loadavg: &str) -> Option<f64> {
    loadavg.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

fn cores() -> f64 {
    // SAFETY: the call takes a number and touches no memory of this process.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    cores.max(1) as f64
}

/// How long this thread has waited for a core that others used. None where the kernel does not
/// count it.
#[must_use]
pub fn run_delay() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').nth(1)?.trim().parse().ok()?))
}

/// Processor time of a process itself, and of its children that it has waited for.
#[must_use]
pub fn processor_times(pid: i32) -> Option<[Duration; 2]> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // SAFETY: as above.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    times(&text, u64::try_from(ticks).ok().filter(|ticks| *ticks > 0)?)
}

/// Processor time of a living process and all its threads, to the nanosecond.
#[must_use]
pub fn processor_clock(pid: i32) -> Option<Duration> {
    // The kernel takes some numbers below one for clocks of the caller.
    let pid = (pid > 0).then(|| Pid::from_raw(pid))?;
    let clock = clock_getcpuclockid(pid).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}

/// Processor time of this thread.
#[must_use]
pub fn thread_clock() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

/// utime, stime, cutime and cstime stand 12 words after the name, which may hold anything.
fn times(stat: &str, ticks: u64) -> Option<[Duration; 2]> {
    let (_, after) = stat.rsplit_once(") ")?;
    let mut words = after.split(' ').skip(11).map(|word| word.parse::<u64>().ok());
    let mut both = || Some(words.next()??.saturating_add(words.next()??));
    let time = |count: u64| Duration::from_millis(count.saturating_mul(1000) / ticks);
    Some([time(both()?), time(both()?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_read() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206\n"), Some(3.0));
        assert_eq!(runnable("0.20"), None);
        let line = "7 (a ) S b) S 1 7 7 0 -1 0 10 0 0 0 120 30 5 1 20 0 1 0 9";
        let ms = Duration::from_millis;
        assert_eq!(times(line, 100), Some([ms(1500), ms(60)]));
        assert_eq!(times("7 (a) S 1", 100), None);
        assert!(machine_percent().is_some_and(|load| load > 0.0));
        let own = std::process::id().cast_signed();
        assert!(processor_times(own).is_some());
        let before = processor_clock(own).unwrap();
        assert!(before > Duration::ZERO && processor_clock(own).unwrap() > before);
        assert_eq!(processor_clock(-1), None);
    }
}
