//! What the control socket costs while nobody says anything, and how long an injected input waits.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{Bench, median};

/// Runs of one campaign, some seconds: of a target that does next to nothing, and of a parser.
const RUNS: [(&str, u32); 2] = [("tiny", 3_000_000), ("libpng", 600_000)];
/// Inputs of a measurement.
const INPUTS: usize = 150;
/// Between two of them the fuzzer is busy with its own work.
const PAUSE: Duration = Duration::from_millis(10);

impl Bench {
    pub(super) fn control(&self) {
        let socket = self.dir.join("control");
        let path = socket.display().to_string();
        for (name, runs) in RUNS {
            let target = self.harness(name, "", &self.dir.join(name));
            let most = runs.to_string();
            let options = ["-E", &most, "--control", &path];
            let plain = self.ffuzz(&options[..2], &target);
            let with = self.ffuzz(&options, &target);
            let title = format!("batch, {name}, --control with an idle client / without");
            beside_a_client(&socket, || self.same_runs(&title, runs, &*with, &*plain));
        }
        for mode in ["batch", "fork", "pipe"] {
            self.injection(mode, &socket);
        }
    }

    fn injection(&self, mode: &str, socket: &Path) {
        let target = self.harness("libpng", "", &self.dir.join("libpng"));
        let (out, path) = (self.dir.join("out"), socket.display().to_string());
        let _ = std::fs::remove_dir_all(&out);
        let options = ["--run-mode", mode, "--control", &path];
        let campaign = self.ffuzz(&options, &target);
        let mut command = campaign(&out, 1);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().expect("ffuzz starts");
        let mut client = Client::connect(socket);
        client.wait_for("\"event\":\"started\"");
        let mut times: Vec<f64> = (0..INPUTS).map(|number| client.inject(number)).collect();
        client.send("{\"cmd\":\"stop\"}");
        child.wait().expect("child");
        let middle = median(&mut times);
        println!(
            "{mode}, libpng, injection to answer, {INPUTS} inputs: median {middle:.2} ms, 95 % {:.2} ms, \
             longest {:.2} ms",
            times[INPUTS * 95 / 100],
            times[INPUTS - 1]
        );
    }
}

/// While `run` runs, somebody is connected whenever there is a socket, and reads.
fn beside_a_client(socket: &Path, run: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                match UnixStream::connect(socket) {
                    Ok(stream) => BufReader::new(stream).lines().for_each(drop),
                    Err(_) => thread::park_timeout(Duration::from_millis(20)),
                }
            }
        });
        run();
        over.store(true, Ordering::Relaxed);
    });
}

struct Client {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        loop {
            if let Ok(stream) = UnixStream::connect(socket) {
                let lines = BufReader::new(stream.try_clone().expect("a descriptor"));
                return Self { stream, lines };
            }
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).expect("the fuzzer listens");
    }

    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let length = self.lines.read_line(&mut line).expect("the fuzzer talks");
            assert!(length > 0, "the end before {text}");
        }
    }

    /// Milliseconds until an input is judged.
    fn inject(&mut self, number: usize) -> f64 {
        thread::sleep(PAUSE);
        let data = BASE64_STANDARD.encode(number.to_be_bytes());
        let start = Instant::now();
        self.send(&format!("{{\"cmd\":\"inject\",\"id\":{number},\"data\":\"{data}\"}}"));
        self.wait_for(&format!("\"event\":\"reply\",\"id\":{number},"));
        start.elapsed().as_secs_f64() * 1000.0
    }
}
