//! What the log of comparisons costs: the same programs with it and without it (`FFUZZ_NO_LOG=1`), on the same inputs.
//!
//! `off` are runs a second of a build that can log, relative to one that cannot. `on` is the time of a run that logs,
//! relative to one of the same build that does not; both are single runs, as the solvers make them. `cmp` is a build with
//! that domain, relative to the one without the log: runs a second on the same inputs, and executions a second of a
//! campaign with `-p`, which chooses other inputs than one without. Each figure is the median of pairs that were measured
//! one after the other, with the range. All processes share a core.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ffuzz::config::options::RunMode;
use ffuzz::engine::domain::Domain;
use ffuzz::engine::executor::{Executor as _, ExitKind};
use ffuzz::exec::ForkServer;
use ffuzz::mutate::Rng;
use ffuzz::sys::affinity;
use rand_core::SeedableRng as _;

use super::same::{inputs, queue_of};
use super::server::{self, candidates};
use super::speed::{OURS, is_wanted};
use super::{Bench, Campaign, median, setting};

/// Mutants that all builds run.
const MUTANTS: usize = 2048;
/// Time of one measurement.
const SLICE: Duration = Duration::from_millis(1500);
const TIMEOUT: Duration = Duration::from_secs(5);

const IN_PROCESS: &str = "-fsanitize=fuzzer";
/// Name, engine and arguments.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("cjson", IN_PROCESS, ""),
    ("zlib", IN_PROCESS, ""),
    ("libpng", IN_PROCESS, ""),
    ("xmllint", "", "@@"),
    ("sqlite3", "", ":memory:"),
];

impl Bench {
    pub(super) fn log(&self) {
        let last = affinity::allowed().last().copied().unwrap_or(0);
        let core = setting("FFUZZ_BENCH_CORE").unwrap_or(last);
        affinity::bind(core).unwrap_or_else(|error| panic!("core {core}: {error}"));
        println!(
            "| program | mode | runs/s without a log | off | on | a run that logs, µs | cmp: runs | -p |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for (harness, engine, arguments) in
            PROGRAMS.into_iter().filter(|(name, ..)| is_wanted(name))
        {
            let [logs, plain, cmp] = [("", ""), ("1", ""), ("", "cmp")]
                .map(|(no_log, waypoints)| self.variant(harness, engine, no_log, waypoints));
            let queue = queue_of(self, &plain, &[], arguments);
            let inputs = inputs(&queue, false, &mut Rng::seed_from_u64(1));
            let inputs = &inputs[..MUTANTS.min(inputs.len())];
            let start = |target: &Path| {
                let options = server::options(target, arguments, RunMode::Batch);
                server::start(&options, TIMEOUT, &self.dir.join("log-input"))
            };
            let campaigns = [self.of(&plain, &[], arguments), self.of(&cmp, &["-p"], arguments)];
            let [mut logs, mut plain, mut cmp] = [&*logs, &*plain, &*cmp].map(start);
            let good = good(&mut plain, inputs);
            let (mut rates, mut off, mut on) = (vec![], vec![], vec![]);
            let (mut of_cmp, mut of_campaigns) = (vec![], vec![]);
            let mut micros = Vec::new();
            for pair in 0..self.pairs {
                let rate = in_batches(&mut plain, &good);
                rates.push(rate);
                off.push(in_batches(&mut logs, &good) / rate);
                of_cmp.push(in_batches(&mut cmp, &good) / rate);
                let [without, with] =
                    [0, 1].map(|index: usize| self.rate(&*campaigns[index], pair as u32 + 1));
                of_campaigns.push(with / without);
                let [single, logged] = [false, true].map(|log| one_by_one(&mut logs, &good, log));
                on.push(logged / single);
                micros.push(logged * 1e6);
            }
            println!(
                "| {harness} | {} | {:.0} | {} | {} | {:.1} | {} | {} |",
                plain.info().run_mode().name(),
                median(&mut rates),
                spread(&mut off),
                spread(&mut on),
                median(&mut micros),
                spread(&mut of_cmp),
                spread(&mut of_campaigns)
            );
        }
    }

    /// A campaign on a program with arguments.
    fn of<'a>(
        &'a self,
        target: &'a Path,
        options: &'a [&'a str],
        arguments: &'a str,
    ) -> Box<Campaign<'a>> {
        Box::new(move |out, _| {
            let mut command = self.command(env!("CARGO_BIN_EXE_ffuzz"), options, target, out);
            command.args(arguments.split_whitespace());
            command
        })
    }

    fn variant(&self, harness: &str, engine: &str, no_log: &str, waypoints: &str) -> PathBuf {
        let folder = self.dir.join("log").join(format!("{harness}-{no_log}-{waypoints}"));
        let mut variables =
            vec![("ENGINE", engine), ("CFLAGS", "-O2 -g"), ("WAYPOINTS", waypoints)];
        if !no_log.is_empty() {
            variables.push(("FFUZZ_NO_LOG", no_log));
        }
        self.harness_by(OURS, &variables, harness, &folder)
    }
}

/// Inputs that end well: a crash needs a new process.
fn good(server: &mut ForkServer, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let ends_well =
        |input: &&Vec<u8>| server.observe(input).is_ok_and(|run| run.exit == ExitKind::Ok);
    inputs.iter().filter(ends_well).cloned().collect()
}

/// Runs a second that show nothing new.
fn in_batches(server: &mut ForkServer, inputs: &[Vec<u8>]) -> f64 {
    server.settings_mut().log_comparisons = false;
    server.learn_edges(&vec![0; server.info().map_size()]);
    let keys = server.info().domains().last().map_or(0, Domain::end);
    server.settings_mut().watch_domains = keys > 0;
    (0..keys).for_each(|key| server.learn_key(key, u32::MAX));
    let batch = candidates(inputs);
    let (mut runs, start) = (0, Instant::now());
    while start.elapsed() < SLICE {
        for part in batch.chunks(64) {
            let mut next = 0;
            while server.run(part, &mut next).expect("a run").is_some() {}
            runs += part.len();
        }
    }
    runs as f64 / start.elapsed().as_secs_f64()
}

/// Seconds of a single run.
fn one_by_one(server: &mut ForkServer, inputs: &[Vec<u8>], log: bool) -> f64 {
    server.settings_mut().log_comparisons = log;
    let (mut runs, start) = (0u32, Instant::now());
    while start.elapsed() < SLICE {
        for input in inputs {
            server.observe(input).expect("a run");
            runs += 1;
        }
    }
    start.elapsed().as_secs_f64() / f64::from(runs)
}

fn spread(ratios: &mut [f64]) -> String {
    let middle = median(ratios);
    format!("{middle:.2} ({:.2} to {:.2})", ratios[0], ratios[ratios.len() - 1])
}
