//! How long 1 000 crash files of ten bugs take, and what a campaign loses to a crash server that gets
//! the report of a bug at its start.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::{Bench, Campaign};

const FILES: usize = 1000;
const BUGS: usize = 10;
/// Each function stays on the stack.
const TWO_WAYS: &str = "-fno-optimize-sibling-calls";
/// Runs of a campaign, some ten seconds.
const RUNS: u32 = 10_000_000;

impl Bench {
    pub(super) fn triage(&self) {
        self.thousand_files();
        self.beside_a_server();
    }

    fn thousand_files(&self) {
        let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc", "-O1", "-g", "-fsanitize=address", TWO_WAYS];
        let target = self.build(&cc, "", "benches/targets/ten.c", "ten");
        let crashes = self.dir.join("ten-crashes");
        let _ = std::fs::remove_dir_all(&crashes);
        std::fs::create_dir_all(&crashes).expect("folder for crashes");
        for number in 0..FILES {
            // The second byte chooses the way and the offset; what follows makes the files different.
            let (bug, other) = (number % BUGS, number / BUGS);
            let input = format!("{bug}{}{}", other % 8, "more ".repeat(other % 40));
            std::fs::write(crashes.join(format!("id:{number:06}")), input).expect("a crash");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
        command.arg("triage").arg("-o").arg(self.dir.join("ten-out")).arg(&crashes).arg("--");
        let start = Instant::now();
        let output = command.arg(&target).output().expect("ffuzz starts");
        let seconds = start.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stdout);
        let expected = format!("{BUGS} bugs in {FILES} crash files");
        assert!(said.starts_with(&expected), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        println!("triage, {expected}, 3 runs each and minimized: {seconds:.1} s on {cores} cores");
    }

    /// CPU time of everything: fuzzer, target, triage and delivery, against triage without a server; and
    /// runs a second of wall time, against a campaign that does not even triage.
    fn beside_a_server(&self) {
        let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc", "-O2", "-g", "-fsanitize=fuzzer", "-DCRASH"];
        let target = self.build(&cc, "", "benches/targets/tiny.c", "tiny-crash");
        let seeds = self.dir.join("tiny-crash-seeds");
        std::fs::create_dir_all(&seeds).expect("folder for seeds");
        for (name, seed) in [("crash", "Some words 12 CRASH-IT"), ("words", "Some words 12")] {
            std::fs::write(seeds.join(name), seed).expect("a seed");
        }
        let server = Stub::start();
        let config = self.dir.join("fuzzmanagerconf");
        std::fs::write(&config, server.config()).expect("the configuration");
        let most = RUNS.to_string();
        let (alone, with) = (["-E", &most], ["-E", &most, "--collector"]);
        let campaign = |options| with_a_crash(self.ffuzz(options, &target), &config);
        let (ours, theirs) = (campaign(&with), campaign(&alone));
        let title = "batch, tiny, a bug at the start, --collector / triage alone, CPU";
        self.same_runs(title, RUNS, &*ours, &*theirs);
        let reports = server.reports.load(Ordering::Relaxed);
        assert_eq!(reports, self.pairs, "each campaign reports its bug once");
        let without = |out: &Path, seed| {
            let mut command = campaign(&[])(out, seed);
            command.env("FFUZZ_NO_TRIAGE", "1");
            command
        };
        let title = "batch, tiny, a bug at the start, --collector / FFUZZ_NO_TRIAGE=1";
        self.compare(title, &*campaign(&["--collector"]), &without);
    }
}

/// A seed that crashes is a find.
fn with_a_crash<'a>(campaign: Box<Campaign<'a>>, config: &'a Path) -> Box<Campaign<'a>> {
    Box::new(move |out, seed| {
        let mut command = campaign(out, seed);
        command.env("AFL_CRASHING_SEEDS_AS_NEW_CRASH", "1").env("FM_CONFIG_PATH", config);
        command.stdin(Stdio::null());
        command
    })
}

/// Answers as a FuzzManager server without signatures does.
struct Stub {
    port: u16,
    reports: Arc<AtomicUsize>,
}

impl Stub {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let reports = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reports);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away is not waited for.
                let _ = answer(stream, &counted);
            }
        });
        Self { port, reports }
    }

    fn config(&self) -> String {
        format!(
            "[Main]\nserverhost = 127.0.0.1\nserverport = {}\nserverproto = http\n\
             serverauthtoken = x\ntool = ffuzz\n",
            self.port
        )
    }
}

fn answer(mut stream: TcpStream, reports: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        let lower = line.to_ascii_lowercase();
        let value = lower.strip_prefix("content-length:");
        length = value.and_then(|value| value.trim().parse().ok()).unwrap_or(length);
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let is_report = first.starts_with("POST ");
    reports.fetch_add(usize::from(is_report), Ordering::Relaxed);
    let (status, body) =
        if is_report { ("201 Created", "{\"id\":1}") } else { ("404 Not Found", "") };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
