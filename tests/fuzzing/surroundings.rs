//! What surrounds a campaign is not the target's: its folder, the descriptors and tokens of the job that has started it,
//! devices.

use crate::common;

use common::{TestDir, target, wait_until};
use nix::sys::signal::Signal;

#[test]
fn an_output_folder_that_is_removed_is_made_again_with_all_that_is_in_memory() {
    for (options, queues) in [("", &["default"][..]), ("-j 2", &["main", "worker01"])] {
        let dir = TestDir::with_seed("A");
        let running = dir.fuzz(&format!("-V 600 {options}"), &target("gates.c", ""), "").start();
        let has_find = |name: &&str| {
            let entries = std::fs::read_dir(dir.path(&format!("out/{name}/queue")));
            let mut names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
            names.any(|name| name.to_string_lossy().contains("+cov"))
        };
        let finds = || queues.iter().all(has_find);
        wait_until("a find of each", finds);
        // It may write while it is removed.
        wait_until("an empty place", || std::fs::rename(dir.path("out"), dir.path("gone")).is_ok());
        std::fs::remove_dir_all(dir.path("gone")).unwrap();
        wait_until("the queues again", finds);
        running.signal(Signal::SIGINT);
        let done = running.finish().expect(0);
        let said = format!("{}{}", done.out, done.err);
        for name in queues {
            let words = format!("out/{name} was removed while the campaign ran: it is made again");
            assert!(said.contains(&words), "{said}");
            let resumable = ["cmdline", "fuzzer_setup", "fuzzer_stats", "state.json", "crashes"];
            assert!(resumable.iter().all(|file| dir.path(&format!("out/{name}/{file}")).exists()));
        }
    }
}

#[test]
fn a_target_gets_neither_inherited_descriptors_nor_tokens() {
    let dir = TestDir::with_seed("A");
    let words = format!(
        "exec 9</dev/null; exec {} -E 300 -i in -o out -- {}",
        env!("CARGO_BIN_EXE_ffuzz"),
        target("inherits.c", "").display()
    );
    let job = dir.program("sh").arg("-c").arg(words).env("FFUZZ_NO_TRIAGE", "1");
    job.env("GITHUB_TOKEN", "secret").run().expect(0);
    assert_eq!(dir.crashes(), Vec::<String>::new());
}

#[test]
fn devices_are_written_into_and_never_replaced() {
    let dir = TestDir::with_seed("A");
    std::os::unix::fs::symlink("/dev/null", dir.path("null")).unwrap();
    let options = "-E 300 --save-coverage null";
    dir.fuzz(options, &target("gates.c", ""), "").run().expect(0);
    assert!(dir.path("null").is_symlink());
    // A pipe without a reader would keep the campaign from its end.
    nix::unistd::mkfifo(&dir.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let options = "-E 300 --save-coverage pipe";
    let done = dir.ffuzz(&format!("-i in -o piped {options}")).arg("--").arg(target("gates.c", ""));
    done.run().expect(0).says("pipe");
    for options in ["-f /dev/null", "-f /dev"] {
        let done = dir.ffuzz(&format!("-i in -o other {options} -- ./t")).run();
        done.refused(2, "is no regular file", "name a file that may be replaced");
    }
}
