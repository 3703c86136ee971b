//! What it costs to be an engine of a broker that has nothing to exchange.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::broker::{Broker, start_for};
use super::{Bench, children_cpu};

/// Runs of one campaign at most: of a target that does next to nothing, and of a parser. The start of
/// an engine counts as well, some tenths of a second, so for a hundredth a campaign has to be long:
/// `FFUZZ_BENCH_SECONDS=60`.
const RUNS: [(&str, u32); 2] = [("tiny", 60_000_000), ("libpng", 20_000_000)];
/// The level of the line that tells the end.
const INFO: i32 = 20;

impl Bench {
    pub(super) fn pastis(&self) {
        for (name, runs) in RUNS {
            let target = self.harness(name, "", &self.dir.join(name));
            let most = runs.to_string();
            let options = ["-j", "1", "-E", &most];
            let plain = self.ffuzz(&options, &target);
            self.same_rates(
                &format!("batch, {name}, -j 1, --pastis with an idle broker / without"),
                runs,
                |seed| self.engine(&target, &options, seed),
                |seed| self.runs_per_cpu_second(&*plain, seed),
            );
        }
    }

    /// Runs per CPU second of all processes of a client.
    fn engine(&self, target: &Path, options: &[&str], seed: u32) -> f64 {
        let out = self.dir.join("out");
        let _ = std::fs::remove_dir_all(&out);
        let (broker, before) = (Broker::start(), children_cpu());
        let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
        let (address, seed, seconds) =
            (broker.address(), seed.to_string(), self.seconds.to_string());
        command.args(["--pastis", &address, "-s", &seed, "-V", &seconds]).args(options);
        command.arg("-i").arg(self.seeds(target)).arg("-o").arg(&out);
        command.env("AFL_SKIP_CPUFREQ", "1").env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1");
        let mut child = command.stderr(Stdio::null()).spawn().expect("ffuzz starts");
        let mut client = broker.client();
        client.start(start_for(target));
        client.wait_for_log(INFO, " ended (");
        let pid = i32::try_from(child.id()).expect("a process id");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("the client runs");
        assert!(child.wait().expect("child").success());
        let mut sessions = std::fs::read_dir(&out).expect("the client's folder");
        let session = sessions.next().expect("a session").expect("a folder").path();
        Self::runs_of(&session.join("out/main")) / (children_cpu() - before)
    }
}
