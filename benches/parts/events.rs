//! What events cost inside the target: nanoseconds each, and the time of libpng's harness in a
//! plain loop, without any fuzzer.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, children_cpu, median};

/// Passes over the seeds in one measurement of libpng, about a second.
const RUNS: &str = "-runs=8000";

impl Bench {
    pub(super) fn events(&self) {
        self.cost_of_an_event();
        let targets = self.dir.join("libpng");
        let plain = self.harness("libpng", "", &targets.join("plain"));
        for domain in ["cmp", "perf", "slow", "slack"] {
            let with = self.harness("libpng", domain, &targets.join(domain));
            self.compare_loops(domain, &with, &plain);
        }
    }

    fn cost_of_an_event(&self) {
        let source = "benches/targets/events.c";
        let variants = [("", ""), ("perf", ""), ("", "-DCALLS")];
        let [none, inlined, called] = variants.map(|(waypoints, flag)| {
            let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc", "-O2", flag];
            let words: Vec<&str> = cc.into_iter().filter(|word| !word.is_empty()).collect();
            let target = self.build(&words, waypoints, source, &format!("events{waypoints}{flag}"));
            move || three_numbers(&target)
        });
        for (name, with) in [("inlined", inlined), ("as a call", called)] {
            let (mut first, mut later) = (vec![], vec![]);
            for _ in 0..self.pairs {
                let ([a, b, _], [c, d, events]) = (none(), with());
                first.push((c - a) / events);
                later.push((d - b) / events);
            }
            let (first_median, later_median) = (median(&mut first), median(&mut later));
            println!(
                "event {name}: first {first_median:.2} ns ({:.2} to {:.2}), later {later_median:.2} ns \
                 ({:.2} to {:.2})",
                first[0],
                first[first.len() - 1],
                later[0],
                later[later.len() - 1]
            );
        }
    }

    /// A program of `benches/targets`, its seeds beside it.
    pub(super) fn harness(&self, name: &str, waypoints: &str, folder: &Path) -> PathBuf {
        self.harness_with(name, waypoints, folder, "-fsanitize=fuzzer")
    }

    pub(super) fn harness_with(
        &self,
        name: &str,
        waypoints: &str,
        folder: &Path,
        engine: &str,
    ) -> PathBuf {
        let compiler = concat!(env!("CARGO_BIN_EXE_ffuzz"), " cc");
        self.harness_by(compiler, &[("ENGINE", engine), ("WAYPOINTS", waypoints)], name, folder)
    }

    /// With any compiler; the variables are those of `build.sh`, and the compiler's.
    pub(super) fn harness_by(
        &self,
        compiler: &str,
        variables: &[(&str, &str)],
        name: &str,
        folder: &Path,
    ) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(root.join("benches/targets/build.sh"))
            .arg(folder)
            .arg(name)
            .env("CC", compiler)
            .env("AFL_QUIET", "1")
            .envs(variables.iter().copied())
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} does not build: {said}");
        folder.join(name)
    }

    fn compare_loops(&self, domain: &str, with: &Path, plain: &Path) {
        let mut ratios: Vec<f64> = (0..self.pairs)
            .map(|pair| {
                // The order changes, so that what slows down either half of the time is even.
                if pair % 2 == 0 {
                    let a = loop_time(with);
                    a / loop_time(plain)
                } else {
                    let b = loop_time(plain);
                    loop_time(with) / b
                }
            })
            .collect();
        let ratio = median(&mut ratios);
        println!(
            "libpng in a plain loop, {domain} / coverage alone: time {ratio:.3} ({:.3} to {:.3}, {} pairs)",
            ratios[0],
            ratios[ratios.len() - 1],
            self.pairs
        );
    }
}

fn three_numbers(program: &Path) -> [f64; 3] {
    let output = Command::new(program).output().expect("the benchmark starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    numbers.try_into().expect("three numbers")
}

/// CPU seconds of the harness over all of its seeds.
fn loop_time(target: &Path) -> f64 {
    let mut seeds = target.as_os_str().to_owned();
    seeds.push("-seeds");
    let before = children_cpu();
    let status = Command::new(target).arg(RUNS).arg(seeds).status().expect("the harness starts");
    assert!(status.success(), "{} fails on its seeds", target.display());
    children_cpu() - before
}
