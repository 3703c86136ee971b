//! The screen at a real terminal: tmux types keys and shows what is there.

use crate::common;
use std::path::Path;

use common::{Job, Running, TestDir, need, target, wait_until};

/// A terminal with a shell, in a server of its own that ends with it.
struct Terminal<'a> {
    dir: &'a TestDir,
    socket: String,
    _server: Running,
}

fn tmux(dir: &TestDir, socket: &str, words: &str) -> Job {
    let job = dir.program("tmux").arg("-S").arg(socket).words(words);
    job.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8")
}

impl<'a> Terminal<'a> {
    fn new(dir: &'a TestDir) -> Self {
        need("tmux");
        let socket = dir.path("tmux").display().to_string();
        let server = tmux(dir, &socket, "-f /dev/null -D").start();
        wait_until("the server of tmux", || dir.path("tmux").exists());
        let terminal = Self { dir, socket, _server: server };
        terminal.tmux("new-session -d -x 80 -y 24").arg("bash --norc").run().expect(0);
        terminal.type_line("PS1='ready>'; clear");
        terminal.wait_for("ready>");
        terminal
    }

    fn tmux(&self, words: &str) -> Job {
        tmux(self.dir, &self.socket, words)
    }

    fn type_line(&self, text: &str) {
        self.tmux("send-keys -l").arg(text).run().expect(0);
        self.key("Enter");
    }

    fn key(&self, key: &str) {
        self.tmux("send-keys").arg(key).run().expect(0);
    }

    fn screen(&self) -> String {
        self.tmux("capture-pane -p").run().expect(0).out
    }

    /// Waits for a text, and returns what is shown then.
    fn wait_for(&self, text: &str) -> String {
        let mut shown = String::new();
        wait_until(&format!("{text:?} on the screen"), || {
            shown = self.screen();
            shown.contains(text)
        });
        shown
    }

    fn resize(&self, width: u16, height: u16) {
        self.tmux(&format!("resize-window -x {width} -y {height}")).run().expect(0);
    }

    /// Starts a command of ffuzz.
    fn ffuzz(&self, words: &str) {
        self.type_line(&format!("{} {words}", env!("CARGO_BIN_EXE_ffuzz")));
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        drop(self.tmux("kill-server").run());
    }
}

fn campaign(target: &Path) -> String {
    format!("-i in -o out -t 3000 -- {}", target.display())
}

#[test]
fn keys_show_pages_pause_and_end_the_campaign() {
    let dir = TestDir::with_seed("QUAAAA");
    let steps = target("steps.c", "-g");
    let terminal = Terminal::new(&dir);
    terminal.ffuzz(&campaign(&steps));
    terminal.wait_for("[1 overview]");
    for (key, text) in [
        ("Tab", "[2 domains]"),
        ("3", " behind  at "),
        ("6", "seed seed"),
        ("7", "finds per million runs"),
        ("8", "fuzzing begins"),
        ("BTab", "[7 stages]"),
        ("?", "draw everything again"),
        ("x", "[7 stages]"),
        ("6", "[6 queue]"),
        ("Enter", "  0  "),
        ("Escape", " input      found "),
    ] {
        terminal.key(key);
        terminal.wait_for(text);
    }
    // From a process that runs the queue.
    terminal.key("5");
    terminal.wait_for("steps.c");
    terminal.key("Enter");
    terminal.wait_for("  main");
    terminal.key("Enter");
    terminal.wait_for("int main(");
    terminal.key("p");
    terminal.wait_for("[paused]");
    terminal.key("p");
    wait_until("the campaign", || !terminal.screen().contains("[paused]"));
    terminal.resize(200, 50);
    terminal.key("6");
    let wide = terminal.wait_for("│ in          ");
    assert!(wide.contains("process timing"), "{wide}");
    terminal.resize(40, 10);
    terminal.wait_for("terminal smaller than 80x24");
    terminal.resize(80, 24);
    terminal.wait_for("[6 queue]");
    terminal.key("q");
    terminal.wait_for("End the campaign?");
    terminal.key("n");
    wait_until("the page", || !terminal.screen().contains("End the campaign?"));
    terminal.key("q");
    terminal.wait_for("End the campaign?");
    terminal.key("y");
    let ended = terminal.wait_for("Have a nice day!");
    assert!(ended.contains("Testing aborted by user") && !ended.contains("[6 queue]"), "{ended}");
    // The shell has its terminal again.
    terminal.type_line("echo a''b");
    terminal.wait_for("\nab\n");
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_shows_the_same_page() {
    let dir = TestDir::with_seed("QUAAAA");
    let terminal = Terminal::new(&dir);
    terminal.ffuzz(&campaign(&target("steps.c", "-g")));
    terminal.wait_for("[1 overview]");
    terminal.key("8");
    terminal.wait_for("[8 log]");
    terminal.key("C-z");
    let stopped = terminal.wait_for("Stopped");
    assert!(!stopped.contains("[8 log]"), "{stopped}");
    terminal.type_line("echo a''b");
    terminal.wait_for("\nab\n");
    // In the background it reads no keys of the shell.
    terminal.type_line("bg");
    terminal.type_line("echo c''d");
    terminal.wait_for("\ncd\n");
    terminal.type_line("fg");
    terminal.wait_for("[8 log]");
    terminal.key("C-c");
    terminal.wait_for("Testing aborted by user");
}

#[test]
fn another_process_watches_a_campaign_and_its_end() {
    let dir = TestDir::with_seed("QUAAAA");
    let steps = target("steps.c", "-g");
    let running = dir.fuzz("-M one", &steps, "").start();
    wait_until("statistics", || dir.path("out/one/fuzzer_stats").exists());
    let terminal = Terminal::new(&dir);
    terminal.ffuzz("watch out");
    terminal.wait_for("[running]");
    terminal.key("p");
    terminal.wait_for("this screen only watches");
    terminal.key("3");
    terminal.wait_for(" behind  at ");
    terminal.key("1");
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.finish().expect(0);
    terminal.wait_for("[ended]");
    terminal.key("8");
    terminal.wait_for("found id:");
    terminal.key("q");
    terminal.wait_for("ready>");
    // Without a terminal.
    let lines = dir.ffuzz("watch out").run().expect(0);
    assert!(lines.out.contains(" execs, ") && lines.out.contains("found id:"), "{}", lines.out);
    let events = dir.ffuzz("watch --json out").run().expect(0).out;
    let kinds = events.lines().map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["event"].as_str().unwrap().to_owned()
    });
    let kinds: Vec<String> = kinds.collect();
    assert!(kinds.iter().any(|kind| kind == "seed_saved"), "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("tick"));
    dir.ffuzz("watch none").run().refused(1, "cannot read the folder none", "fuzzer's -o");
    dir.ffuzz("watch in").run().refused(1, "no fuzzer has used it", "fuzzer's -o");
}

#[test]
fn campaigns_of_afl_fuzz_are_watched_too() {
    need("afl-fuzz");
    let dir = TestDir::with_seed("QUAAA");
    let job = dir.program("afl-fuzz").words("-i in -o out -t 2000 -s 7 -V 2 -M one --");
    let job = job.arg(target("steps.c", "-g")).env("AFL_SKIP_CPUFREQ", "1").env("AFL_NO_UI", "1");
    job.run().expect(0);
    let terminal = Terminal::new(&dir);
    terminal.ffuzz("watch out");
    let shown = terminal.wait_for("[ended]");
    assert!(shown.contains("{one} (") && shown.contains("corpus count : "), "{shown}");
    terminal.key("6");
    terminal.wait_for("seed seed");
    terminal.key("5");
    terminal.wait_for("steps.c");
    terminal.key("7");
    terminal.wait_for("does not tell what stages");
}
