//! How the fuzzer shares cores with what it starts: bound to one, since a hand-over between two
//! processes on one core costs a quarter of one that wakes another core.

use std::collections::BTreeSet;
use std::{fs, io};

/// Binds this process to `core`.
pub fn bind(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a zeroed cpu_set_t is a valid empty set, and the index is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Lets a child that wakes this process continue instead of preempting it: what the
/// fuzzer waits for mostly comes with the next word. Children are not concerned.
pub fn wait_patiently() {
    let policy = libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter is a local, all zero as the policy requires. Where the kernel refuses,
    // everything works as before.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, policy, &raw const parameter);
    }
}

/// The cores this process may use.
#[must_use]
pub fn allowed() -> Vec<usize> {
    // SAFETY: the kernel fills the local set; CPU_ISSET checks the index.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) < 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// A core that this process may use and no other process is bound to.
#[must_use]
pub fn free_core() -> Option<usize> {
    free_cores().first().copied()
}

/// All of them; none where there is no choice, and no more than the control group has left.
#[must_use]
pub fn free_cores() -> Vec<usize> {
    let granted = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    choose(&allowed(), &bound_cores(), granted)
}

/// A core to which another process is bound alone.
#[derive(Clone, Copy, Debug)]
struct Bound {
    core: usize,
    /// The process is in the same control group, and shares its quota.
    in_group: bool,
}

/// Free ones of the allowed cores. `granted`: how many the control group's quota pays for.
fn choose(allowed: &[usize], bound: &[Bound], granted: usize) -> Vec<usize> {
    if allowed.len() < 2 {
        return Vec::new();
    }
    let paid: BTreeSet<usize> =
        bound.iter().filter(|bound| bound.in_group).map(|bound| bound.core).collect();
    let left =
        if granted < allowed.len() { granted.saturating_sub(paid.len()) } else { usize::MAX };
    let is_free = |core: &&usize| bound.iter().all(|bound| bound.core != **core);
    allowed.iter().filter(is_free).take(left).copied().collect()
}

/// Cores to which some other process is bound alone (kernel threads, which use no memory, do not
/// count), as in AFL.
fn bound_cores() -> Vec<Bound> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id().to_string();
    let group = fs::read("/proc/self/cgroup").unwrap_or_default();
    let processes = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.bytes().all(|b| b.is_ascii_digit()) && name != own
    });
    processes
        .filter_map(|process| {
            let status = fs::read_to_string(process.path().join("status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            let core = line.trim().parse().ok().filter(|_| status.contains("VmSize:"))?;
            let in_group = fs::read(process.path().join("cgroup")).is_ok_and(|its| its == group);
            Some(Bound { core, in_group })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_core_is_allowed() {
        assert!(!allowed().is_empty());
        assert!(bind(1 << 16).is_err() && bind(1023).is_err());
    }

    #[test]
    fn no_more_cores_are_taken_than_the_control_group_pays_for() {
        let bound = |core, in_group| Bound { core, in_group };
        let all = [0, 1, 2, 3];
        assert_eq!(choose(&all, &[bound(0, true)], 4), [1, 2, 3]);
        assert_eq!(choose(&all, &[bound(0, true), bound(0, true)], 2), [1]);
        assert_eq!(choose(&all, &[bound(0, true), bound(1, true)], 2), [0usize; 0]);
        assert_eq!(choose(&all, &[bound(0, false)], 2), [1, 2]);
        assert_eq!(choose(&[3], &[], 1), [0usize; 0], "there is no choice");
    }
}
