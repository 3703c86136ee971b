//! Files that the user names for results: devices and pipes stay what they are, links are followed.

use crate::common;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use common::{TestDir, skip, target};
use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

/// Commands that write to the file OUT.
const COMMANDS: &[&str] = &[
    "showmap -q -o OUT -H in/a",
    "showmap -q -C -i in -o OUT",
    "showmap -q --json -o OUT -H in/a",
    "showmap -q -o map --save-coverage OUT -H in/a",
    "showdsf -q -i in -o OUT",
    "showdsf -q --json -i in -o OUT",
    "showdsf -q -i in --save-coverage OUT",
    "tmin -i in/a -o OUT",
    "cmin -i in -o kept --save-coverage OUT",
];

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("in/a", "\x01\x01\x05");
    dir
}

fn run(dir: &TestDir, command: &str, output: &str) -> common::Finished {
    let _ = fs::remove_dir_all(dir.path("kept"));
    let command = command.replace("OUT", output);
    dir.tool(&command, &target("counts.c", "-O0 -DKEYS"), "").run()
}

/// A device like /dev/null.
fn device(path: &Path) -> bool {
    let made = mknod(path, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 3));
    match made {
        Ok(()) => true,
        Err(Errno::EPERM | Errno::EACCES) => {
            skip("this user may not make devices");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn assert_device(path: &Path) {
    let data = fs::symlink_metadata(path).unwrap();
    assert!(data.file_type().is_char_device(), "{data:?}");
    assert_eq!(data.rdev(), makedev(1, 3));
}

#[test]
fn devices_are_written_into() {
    let dir = dir();
    if !device(&dir.path("null")) {
        return;
    }
    symlink("null", dir.path("link")).unwrap();
    let before = dir.entries(".");
    for command in COMMANDS {
        for output in ["null", "link"] {
            let done = run(&dir, command, output);
            // A device may be closed to this user all the same (nodev).
            if done.err.contains("Permission denied") {
                return skip("devices cannot be opened here");
            }
            done.expect(0);
            assert_device(&dir.path("null"));
            assert!(dir.path("link").is_symlink());
        }
    }
    let after = dir.entries(".");
    let new: Vec<_> = after.iter().filter(|name| !before.contains(name)).collect();
    assert!(new.iter().all(|name| ["kept", "map"].contains(&name.as_str())), "{new:?}");
}

#[test]
fn the_page_of_a_campaign_and_merged_states_go_to_devices_as_well() {
    let dir = dir();
    run(&dir, "showmap -q -o map --save-coverage OUT -H in/a", "a.state").expect(0);
    fs::create_dir(dir.path("page")).unwrap();
    if !device(&dir.path("page/index.html")) {
        return;
    }
    dir.ffuzz("merge -o page/index.html a.state a.state").run().expect(0);
    assert_device(&dir.path("page/index.html"));
    let counts = target("counts.c", "-O0 -DKEYS");
    dir.fuzz("-E 3000 -s 1", &counts, "").run().expect(0);
    let row = dir.text("out/default/plot_data");
    let last = row.lines().last().unwrap().to_owned();
    dir.write("out/default/plot_data", format!("{row}\n{last}\n{last}\n"));
    dir.ffuzz("plot out/default page").run().expect(0);
    assert_device(&dir.path("page/index.html"));
}

#[test]
fn pipes_are_written_into_and_links_are_followed() {
    let dir = dir();
    nix::unistd::mkfifo(&dir.path("pipe"), Mode::S_IRWXU).unwrap();
    run(&dir, COMMANDS[0], "pipe").refused(1, "no program reads this pipe", "check");
    for command in COMMANDS {
        let mut options = fs::OpenOptions::new();
        let reader = options.read(true).write(true).open(dir.path("pipe")).unwrap();
        run(&dir, command, "pipe").expect(0);
        drop(reader);
        assert!(fs::symlink_metadata(dir.path("pipe")).unwrap().file_type().is_fifo());
        // The goal is replaced and keeps its permissions.
        fs::create_dir_all(dir.path("far")).unwrap();
        dir.write("far/goal", "before, and longer than the result".repeat(1000));
        fs::set_permissions(dir.path("far/goal"), fs::Permissions::from_mode(0o640)).unwrap();
        let _ = fs::remove_file(dir.path("second"));
        symlink("far/goal", dir.path("first")).unwrap();
        symlink("first", dir.path("second")).unwrap();
        run(&dir, command, "second").expect(0);
        assert!(dir.path("first").is_symlink() && dir.path("second").is_symlink());
        assert!(!dir.text("far/goal").contains("before"), "{command}");
        assert_eq!(fs::metadata(dir.path("far/goal")).unwrap().mode() & 0o777, 0o640);
        // A link to a file that is not there yet.
        fs::remove_file(dir.path("far/goal")).unwrap();
        run(&dir, command, "second").expect(0);
        assert_eq!(dir.names("far"), ["goal"]);
        fs::remove_file(dir.path("first")).unwrap();
        fs::create_dir_all(dir.path("folder")).unwrap();
        run(&dir, command, "folder").refused(1, "folder", "a file");
        // Standard output is not replaced if it is a file.
        run(&dir, command, "/dev/stdout").expect(0);
    }
}
