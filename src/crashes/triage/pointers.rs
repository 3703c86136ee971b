//! Next steps for the user after a campaign: folders, the bugs with their results, and
//! the command that resumes it.

use std::ffi::OsString;
use std::path::Path;

use super::report::{TriageReport, TriagedBug};
use super::{FOLDER, write};
use ffuzz_disk::output::setup::shell_line;
use ffuzz_event::{Finds, Pointer};

/// Maximum number of bugs shown; the report has all.
const MOST_BUGS: usize = 3;

/// Builds the list. `root` is the output folder, `instance` its folder for this campaign; None: there are several.
#[must_use]
pub fn pointers(
    root: &Path,
    instance: Option<&str>,
    state: &Finds,
    resume: Option<&str>,
) -> Vec<Pointer> {
    let mut found = Vec::new();
    let place = |what: &str| {
        let folder = root.join(instance.unwrap_or("*")).join(what);
        Pointer::new(what, folder.display().to_string())
    };
    if state.saved_crashes > 0 {
        found.push(place("crashes"));
    }
    if state.saved_hangs > 0 {
        found.push(place("hangs"));
    }
    let folder = root.join(FOLDER);
    let known = state.bugs.is_some().then(|| TriageReport::load(&folder)).flatten();
    let mut bugs = known.map_or_else(Vec::new, |report| report.bugs);
    bugs.sort_by_key(|bug| (std::cmp::Reverse(bug.files), bug.id.clone()));
    for bug in bugs.iter().take(MOST_BUGS) {
        found.extend(of_bug(&folder.join(&bug.id), bug));
    }
    if bugs.len() > MOST_BUGS {
        let more = format!("{} more in {}", bugs.len() - MOST_BUGS, folder.display());
        found.push(Pointer::new("bugs", more));
    }
    if bugs.is_empty() && state.saved_crashes > 0 {
        let words = ["ffuzz-triage".into(), "-o".into(), root.as_os_str().to_owned()];
        found.push(Pointer::new("triage", shell_line(&words.map(OsString::from))));
    }
    found.extend(resume.map(|line| Pointer::new("resume", line)));
    found
}

fn of_bug(folder: &Path, bug: &TriagedBug) -> [Pointer; 3] {
    let small = bug.minimized_size.filter(|_| folder.join(write::MINIMIZED).exists());
    let (name, size) = match small {
        Some(size) if size < bug.input_size => {
            (write::MINIMIZED, format!("{size} bytes, of {}", bug.input_size))
        }
        Some(size) => (write::MINIMIZED, format!("{size} bytes")),
        None => (write::INPUT, format!("{} bytes", bug.input_size)),
    };
    let path = |name: &str| folder.join(name).display().to_string();
    [
        Pointer::new("bug", bug.title.clone()),
        Pointer::new("input", format!("{} ({size})", path(name))),
        Pointer::new("see it", path(write::SCRIPT)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::report::VERSION;
    use super::*;

    fn texts(all: &[Pointer]) -> Vec<String> {
        all.iter().map(|pointer| format!("{}: {}", pointer.what, pointer.text)).collect()
    }

    #[test]
    fn what_was_found_is_named_with_what_was_made_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (root, folder) = (dir.path(), dir.path().join(FOLDER));
        let bug = |number: u32| TriagedBug {
            id: format!("f-{number}"),
            title: format!("[@ f{number}]"),
            input: format!("crash{number}"),
            input_size: 9,
            minimized_size: (number == 0).then_some(4),
            ..TriagedBug::default()
        };
        let bugs = (0..5).map(bug).collect();
        let report = TriageReport { version: VERSION, bugs, ..TriageReport::default() };
        std::fs::create_dir_all(folder.join("f-0")).unwrap();
        std::fs::write(folder.join("f-0/minimized"), "1234").unwrap();
        std::fs::write(folder.join("report.json"), serde_json::to_vec(&report).unwrap()).unwrap();
        assert_eq!(texts(&pointers(root, None, &Finds::default(), None)), [""; 0]);
        let state = Finds { saved_crashes: 7, saved_hangs: 1, ..Finds::default() };
        let at = |text: &str| text.replace("ROOT", &root.display().to_string());
        let untriaged = texts(&pointers(root, None, &state, Some("ffuzz -i -")));
        let expected = [
            "crashes: ROOT/*/crashes",
            "hangs: ROOT/*/hangs",
            "triage: ffuzz-triage -o ROOT",
            "resume: ffuzz -i -",
        ];
        assert_eq!(untriaged, expected.map(at));
        let state = Finds { bugs: Some(5), ..state };
        let triaged = texts(&pointers(root, Some("default"), &state, None));
        let expected = [
            "crashes: ROOT/default/crashes",
            "hangs: ROOT/default/hangs",
            "bug: [@ f0]",
            "input: ROOT/triage/f-0/minimized (4 bytes, of 9)",
            "see it: ROOT/triage/f-0/reproduce.sh",
            "bug: [@ f1]",
            "input: ROOT/triage/f-1/input (9 bytes)",
            "see it: ROOT/triage/f-1/reproduce.sh",
        ];
        assert_eq!(triaged[..8], expected.map(at));
        assert_eq!(triaged[11], at("bugs: 2 more in ROOT/triage"));
    }
}
