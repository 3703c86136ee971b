//! Sessions of servers by snapshot beside a fork a session, both by the stand-in of `--net`, and beside a new server on a
//! real socket of the loopback for each: sessions per second of processor time, fuzzer and client included. Then sessions
//! by snapshot and by fork, which have to show the same.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::common::stats_of;
use crate::same;
use crate::{Bench, setting};

/// Targets of `benches/targets/servers.sh`, and how many times as fast as a fork a snapshot should be.
const SERVERS: [(&str, f64); 6] = [
    ("mosquitto", 10.0),
    ("dnsmasq-udp", 10.0),
    ("dnsmasq-tcp", 10.0),
    ("lighttpd", 10.0),
    ("redis", 10.0),
    ("curl", 10.0),
];
/// The same, if the folder has them.
const OTHERS: [(&str, f64); 3] = [("mbedtls", 1.0), ("exim", 5.0), ("cares", 10.0)];
const SECONDS: u32 = 8;
const PAIRS: usize = 3;
/// Sessions over real sockets of one measurement.
const REAL: usize = 40;
/// How long an answer is waited for: most come at once, and some messages have none.
const ANSWER: Duration = Duration::from_millis(20);

struct Server {
    folder: PathBuf,
    net: String,
    command: Vec<String>,
}

impl Bench {
    pub(crate) fn net(&self) {
        let folder = std::env::var_os("FFUZZ_BENCH_SERVERS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| self.build_servers());
        println!(
            "| server | real socket, sessions per CPU s | fork | snapshot | snapshot to fork | wanted |"
        );
        println!("|---|---|---|---|---|---|");
        let case: Option<String> = setting("FFUZZ_BENCH_CASE");
        let mut servers = SERVERS.to_vec();
        servers.extend(OTHERS.into_iter().filter(|(name, _)| folder.join(name).exists()));
        servers.retain(|(name, _)| case.as_deref().is_none_or(|case| case == *name));
        for (name, factor) in &servers {
            self.sessions(&Server::open(&folder, name), *factor);
        }
        same::print_head();
        for (name, _) in &servers {
            let server = Server::open(&folder, name);
            self.campaign(&server, "snapshot");
            let queue = self.dir.join("net-out/default/queue");
            std::env::set_current_dir(&server.folder).expect("its folder");
            self.compare_runs(&same::Case::server(name, &server.command, &server.net, &queue));
        }
    }

    fn build_servers(&self) -> PathBuf {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/targets/servers.sh");
        let folder = self.dir.join("servers");
        let compiler = Path::new(env!("CARGO_BIN_EXE_ffuzz")).with_file_name("ffuzz-cc");
        let status = Command::new(script)
            .arg(&folder)
            .args(["mosquitto", "dnsmasq", "lighttpd", "redis", "curl"])
            .env("CC", compiler)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "servers.sh builds them");
        folder
    }

    fn sessions(&self, server: &Server, wanted: f64) {
        let (mut by_fork, mut by_snapshot, mut real) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setting("FFUZZ_BENCH_PAIRS").unwrap_or(PAIRS) {
            by_fork.push(self.campaign(server, "fork"));
            by_snapshot.push(self.campaign(server, "snapshot"));
            real.extend(server.real_sessions());
        }
        let mut ratios: Vec<f64> =
            by_snapshot.iter().zip(&by_fork).map(|(snapshot, fork)| snapshot / fork).collect();
        ratios.sort_by(f64::total_cmp);
        let median = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.1} ({:.1} to {:.1}) | ≥ {wanted} |",
            server.folder.file_name().unwrap_or_default().display(),
            median(&mut real),
            median(&mut by_fork),
            median(&mut by_snapshot),
            ratios[ratios.len() / 2],
            ratios[0],
            ratios[ratios.len() - 1],
        );
    }

    fn campaign(&self, server: &Server, mode: &str) -> f64 {
        let out = self.dir.join("net-out");
        let _ = std::fs::remove_dir_all(&out);
        let seconds = setting("FFUZZ_BENCH_SECONDS").unwrap_or(SECONDS).to_string();
        let before = processor_time(UsageWho::RUSAGE_CHILDREN);
        let status = Command::new(env!("CARGO_BIN_EXE_ffuzz"))
            .args(["-V", &seconds, "--run-mode", mode, "--net", &server.net, "-i", "seeds"])
            .arg("-o")
            .arg(&out)
            .arg("--")
            .args(&server.command)
            .current_dir(&server.folder)
            .envs([("AFL_NO_UI", "1"), ("FFUZZ_NO_TRIAGE", "1"), ("AFL_NO_AFFINITY", "1")])
            .stdout(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "the campaign runs");
        let used = processor_time(UsageWho::RUSAGE_CHILDREN) - before;
        let text = std::fs::read_to_string(out.join("default/fuzzer_stats")).unwrap_or_default();
        let stats = stats_of(&text);
        if stats["run_mode"] != mode {
            println!("<!-- {}: {} -->", stats["run_mode"], stats["snapshot_why"]);
        }
        stats["execs_done"].parse::<f64>().unwrap_or_default() / used.as_secs_f64()
    }
}

fn processor_time(who: UsageWho) -> Duration {
    let usage = getrusage(who).expect("it is told");
    let seconds = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
    };
    seconds(usage.user_time()) + seconds(usage.system_time())
}

impl Server {
    fn open(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        let read = |file: &str| {
            let text = std::fs::read_to_string(folder.join(file));
            text.unwrap_or_else(|error| panic!("{name}/{file}: {error}")).trim().to_owned()
        };
        let command = read("command").split_whitespace().map(str::to_owned).collect();
        Self { net: read("net"), command, folder: folder.clone() }
    }

    /// Sessions per second of processor time, with a new server for each; None for a client.
    fn real_sessions(&self) -> Option<f64> {
        let (kind, port) = self.net.split_once(':')?;
        let port: u16 = port.parse().ok()?;
        let mut seeds: Vec<PathBuf> = std::fs::read_dir(self.folder.join("seeds"))
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        seeds.sort();
        let input = std::fs::read(seeds.first()?).ok()?;
        let messages: Vec<Vec<u8>> = ffuzz::mutate::messages::messages(&input)
            .map(|message| message.bytes.to_vec())
            .collect();
        let spent =
            || processor_time(UsageWho::RUSAGE_CHILDREN) + processor_time(UsageWho::RUSAGE_SELF);
        let before = spent();
        for _ in 0..REAL {
            let mut child = self.start()?;
            match kind {
                "tcp" => by_tcp(port, &messages),
                _ => by_udp(port, &messages),
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        Some(REAL as f64 / (spent() - before).as_secs_f64())
    }

    fn start(&self) -> Option<Child> {
        Command::new(self.folder.join(&self.command[0]))
            .args(&self.command[1..])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    }
}

/// Waits for the server, with a pause that costs no processor time.
fn until<T>(mut ready: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        if let Some(found) = ready() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

fn by_tcp(port: u16, messages: &[Vec<u8>]) {
    let Some(mut stream) = until(|| TcpStream::connect(("127.0.0.1", port)).ok()) else { return };
    let _ = stream.set_read_timeout(Some(ANSWER));
    let mut answer = [0; 4096];
    for message in messages {
        if stream.write_all(message).is_err() || matches!(stream.read(&mut answer), Ok(0)) {
            return;
        }
    }
}

fn by_udp(port: u16, messages: &[Vec<u8>]) {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else { return };
    let _ = socket.set_read_timeout(Some(ANSWER));
    let _ = socket.connect(("127.0.0.1", port));
    let mut answer = [0; 4096];
    for (number, message) in messages.iter().enumerate() {
        let mut talk = || {
            socket.send(message).ok()?;
            socket.recv(&mut answer).ok()
        };
        // The first answer tells that the server is there.
        if number == 0 {
            until(talk)
        } else {
            talk()
        };
    }
}
