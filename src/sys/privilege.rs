//! What the user of this process may do to the machine.

use std::fs;
use std::path::Path;

/// Files that container managers make in the containers of their users.
const MARKS: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];
/// The map of user ids of a process that is root of the machine (user_namespaces(7)).
const WHOLE_MAP: [&str; 3] = ["0", "0", "4294967295"];

/// True if this process is root, and neither a container nor a user namespace shows that it is root of that alone.
#[must_use]
pub fn is_root_of_the_machine() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    is_root_of(nix::unistd::geteuid().is_root(), &map, |mark| Path::new(mark).exists())
}

fn is_root_of(is_root: bool, map: &str, exists: impl Fn(&str) -> bool) -> bool {
    is_root && map.split_whitespace().eq(WHOLE_MAP) && !MARKS.into_iter().any(exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_container_or_a_namespace_is_not_root_of_the_machine() {
        let whole = "         0          0 4294967295\n";
        assert!(is_root_of(true, whole, |_| false));
        assert!(!is_root_of(false, whole, |_| false));
        assert!(!is_root_of(true, whole, |mark| mark == "/.dockerenv"));
        assert!(!is_root_of(true, "0 1000 1\n", |_| false));
    }
}
