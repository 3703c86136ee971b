//! Tests of the output folder on real file systems.

use super::*;
use ffuzz_sys::remedy::Remedy;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn options(root: &Path) -> OutputOptions {
    OutputOptions {
        root: root.join("out"),
        instance: "default".into(),
        links: true,
        main_node: false,
        extension: None,
        tmpdir: None,
        stats_interval: Duration::from_secs(60),
        crash_readme: true,
        command_line: vec!["ffuzz".into(), "./t".into()],
        resume: None,
        environment: vec![],
        autoresume: false,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("metadata").permissions().mode() & 0o777
}

#[test]
fn folder_has_the_layout_of_afl() {
    let tmp = tempfile::tempdir().expect("folder");
    let opts = OutputOptions { main_node: true, ..options(tmp.path()) };
    let mut out = OutputDir::open(&opts, false).expect("new folder");
    let seed = out.save_seed("id:000000,time:0,execs:0,orig:a", b"x").expect("saved");
    assert_eq!((mode(&seed), mode(seed.parent().expect("queue"))), (0o600, 0o700));
    assert_eq!(
        fs::read(opts.root.join("queue/id:000000,time:0,execs:0,orig:a")).expect("link"),
        b"x"
    );
    out.write_target_command(&["./t".into()]).expect("cmdline");
    out.save_crash("id:000000,sig:11", b"c").expect("crash");
    out.save_hang("id:000000,src:000000", b"h").expect("hang");
    out.mark_det_done("id:000000,time:0,execs:0,orig:a").expect("mark");
    assert!(out.det_done("id:000000,time:0,execs:0,orig:a") && !out.det_done("id:000001"));
    let dir = opts.root.join("default");
    for name in ["crashes/README.txt", "cmdline", "fuzzer_setup", "is_main_node", "hangs"] {
        assert!(dir.join(name).exists(), "{name}");
    }
    fs::write(out.input_path(), b"i").expect("input");
    let input = out.input_path().to_owned();
    drop(out);
    assert!(!input.exists() && !dir.join("is_main_node").exists());
}

#[test]
fn numbers_are_not_reused_and_trimming_replaces() {
    let tmp = tempfile::tempdir().expect("folder");
    let mut out = OutputDir::open(&options(tmp.path()), false).expect("new folder");
    let path = out.save_seed("id:000000,orig:a", b"long").expect("saved");
    let again = out.save_seed("id:000000,orig:a", b"other").expect_err("exists");
    assert!(matches!(again, OutputError::Write { .. }), "{again}");
    out.replace_seed("id:000000,orig:a", b"s").expect("trimmed");
    assert_eq!(fs::read(path).expect("file"), b"s");
}

#[test]
fn a_living_fuzzer_and_old_work_are_left_alone() {
    let tmp = tempfile::tempdir().expect("folder");
    let opts = options(tmp.path());
    let mut out = OutputDir::open(&opts, false).expect("new folder");
    out.save_seed("id:000000,orig:a", b"x").expect("saved");
    let busy = OutputDir::open(&opts, true).expect_err("locked");
    assert!(matches!(busy, OutputError::Busy { .. }), "{busy}");
    drop(out);
    let old = OutputDir::open(&opts, false).expect_err("work");
    assert!(old.to_string().contains("already holds work"), "{old}");
    assert!(old.remedy().contains("-i -") && old.remedy().contains("AFL_AUTORESUME=1"));
    let out = OutputDir::open(&opts, true).expect("resumed");
    let names: Vec<_> = out.queue_files().expect("queue").into_iter().map(|f| f.0).collect();
    assert_eq!(names, ["id:000000,orig:a"]);
}

#[test]
fn a_folder_without_work_is_taken_but_not_resumed() {
    let tmp = tempfile::tempdir().expect("folder");
    let opts = options(tmp.path());
    let missing = OutputDir::open(&opts, true).expect_err("no folder");
    assert!(matches!(missing, OutputError::NothingToResume { .. }));
    assert!(!opts.root.exists(), "a refused start leaves nothing behind");
    drop(OutputDir::open(&opts, false).expect("new"));
    assert!(matches!(OutputDir::open(&opts, true), Err(OutputError::NothingToResume { .. })));
    drop(OutputDir::open(&opts, false).expect("still empty"));
}

#[test]
fn queue_is_read_by_number() {
    let tmp = tempfile::tempdir().expect("folder");
    let out = OutputDir::open(&options(tmp.path()), false).expect("new folder");
    let queue = out.instance_dir().join("queue");
    for name in ["id:1000000,orig:z", "id:000002,orig:a", "id:000010,orig:a", "README.txt", ".x"] {
        fs::write(queue.join(name), b"x").expect("file");
    }
    let names: Vec<_> = out.queue_files().expect("queue").into_iter().map(|f| f.0).collect();
    assert_eq!(names, ["id:000002,orig:a", "id:000010,orig:a", "id:1000000,orig:z"]);
}

#[test]
fn a_shared_tmpdir_is_claimed() {
    let tmp = tempfile::tempdir().expect("folder");
    let mut opts = options(tmp.path());
    opts.tmpdir = Some(tmp.path().to_owned());
    opts.extension = Some("png".into());
    let out = OutputDir::open(&opts, false).expect("new folder");
    assert_eq!(out.input_path(), tmp.path().join(".cur_input.png"));
    let other = OutputOptions { instance: "b".into(), links: false, ..opts.clone() };
    let taken = OutputDir::open(&other, false).expect_err("taken");
    assert!(matches!(taken, OutputError::InputTaken { .. }));
    assert!(out.input_path().exists());
    drop(out);
    OutputDir::open(&other, false).expect("free again");
}

#[test]
fn foreign_files_in_out_are_not_replaced_by_links() {
    let tmp = tempfile::tempdir().expect("folder");
    let opts = options(tmp.path());
    fs::create_dir_all(opts.root.join("queue")).expect("classic layout");
    let error = OutputDir::open(&opts, false).expect_err("in the way");
    assert!(matches!(error, OutputError::InTheWay { .. }), "{error}");
    assert!(opts.root.join("queue").is_dir());
}

#[test]
fn a_full_disk_is_distinguished_and_leaves_no_half_file() {
    let tmp = tempfile::tempdir().expect("folder");
    let mut out = OutputDir::open(&options(tmp.path()), false).expect("new folder");
    let path = Path::new("id:000000,orig:a");
    let full = OutputError::write(path, io::Error::from_raw_os_error(libc::ENOSPC));
    assert!(matches!(&full, OutputError::Full { path: named } if named == path));
    // Nothing can be written: a folder is in the place of the temporary file.
    let temporary = out.instance_dir().join(".new_file");
    fs::create_dir(&temporary).expect("folder");
    out.save_seed("id:000000,orig:a", b"x").expect_err("in the way");
    assert!(out.queue_files().expect("queue").is_empty());
    fs::remove_dir(&temporary).expect("removed");
    out.save_seed("id:000000,orig:a", b"x").expect("room again");
}

#[test]
fn the_temporary_file_is_neither_followed_nor_waited_for() {
    let tmp = tempfile::tempdir().expect("folder");
    let mut out = OutputDir::open(&options(tmp.path()), false).expect("new folder");
    let temporary = out.instance_dir().join(".new_file");
    let mine = tmp.path().join("mine");
    fs::write(&mine, b"mine").expect("file");
    std::os::unix::fs::symlink(&mine, &temporary).expect("link");
    out.save_seed("id:000000,orig:a", b"x").expect("written");
    nix::unistd::mkfifo(&temporary, nix::sys::stat::Mode::S_IRWXU).expect("FIFO");
    out.save_seed("id:000001,orig:b", b"y").expect("written");
    assert_eq!(fs::read(&mine).expect("file"), b"mine");
}

#[test]
fn a_users_file_gets_a_second_name_and_stays_as_it_is() {
    let tmp = tempfile::tempdir().expect("folder");
    let (file, link) = (tmp.path().join("seed"), tmp.path().join("link"));
    fs::write(&file, b"user's").expect("file");
    std::os::unix::fs::symlink(&file, &link).expect("link");
    let mut out = OutputDir::open(&options(tmp.path()), false).expect("new folder");
    let first = out.link_seed("id:000000,orig:seed", &file, b"user's").expect("linked");
    let second = out.link_seed("id:000001,orig:link", &link, b"user's").expect("linked");
    assert!(second.symlink_metadata().expect("entry").is_file(), "a link would be another's file");
    out.replace_seed("id:000000,orig:seed", b"u").expect("trimmed");
    let content = |path: &Path| fs::read(path).expect("file");
    assert_eq!((content(&file), content(&first)), (b"user's".to_vec(), b"u".to_vec()));
    let gone = tmp.path().join("gone");
    let copied = out.link_seed("id:000002,orig:gone", &gone, b"copy").expect("copied");
    assert_eq!(content(&copied), b"copy");
}

#[test]
fn a_queue_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let tmp = tempfile::tempdir().expect("folder");
    let opts = options(tmp.path());
    let mut out = OutputDir::open(&opts, false).expect("new folder");
    out.save_crash("id:000000,sig:11", b"c").expect("crash");
    out.replace("fuzzer_stats", b"kept").expect("statistics");
    let (crashes, stats) =
        (out.instance_dir().join("crashes"), out.instance_dir().join("fuzzer_stats"));
    drop(out);
    fs::remove_dir_all(&crashes).expect("removed");
    // Root may read everything, but this never ends.
    std::os::unix::fs::symlink("crashes", &crashes).expect("link");
    for resume in [false, true] {
        let error = OutputDir::open(&opts, resume).expect_err("unreadable");
        assert!(matches!(&error, OutputError::Read { path, .. } if *path == crashes), "{error}");
    }
    assert_eq!(fs::read(stats).expect("statistics"), b"kept");
    assert!(holds_work(&opts.root, &opts.instance));
}
