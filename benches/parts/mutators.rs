//! What foreign mutators cost: executions per second of CPU time with and without one that changes
//! nothing. The random numbers are the same, so both campaigns make the same runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, Campaign, children_cpu, median};

/// Runs of one campaign, about four seconds: of a target that does next to nothing, and of a parser.
const RUNS: [(&str, u32); 2] = [("tiny", 3_000_000), ("libpng", 600_000)];

/// Changes one byte, or adds one: little work, so that most of it is the way there and back.
const MODULE: &str = "\
import random

def init(seed):
    random.seed(seed)

def deinit():
    pass

def fuzz(buf, add_buf, max_size):
    if buf:
        buf[random.randrange(len(buf))] = random.randrange(256)
    if len(buf) < 64:
        buf.append(random.randrange(256))
    return buf
";

/// Functions in Python that change nothing: one is a step of havoc, the other is called before every run.
const ECHOES: [(&str, &str); 2] = [
    ("havoc_mutation", "def havoc_mutation(buf, max_size):\n    return buf\n"),
    ("post_process", "def post_process(buf):\n    return buf\n"),
];

impl Bench {
    pub(super) fn mutators(&self) {
        let library = self.c_mutator("echo");
        for (name, runs) in RUNS {
            let target = self.harness(name, "", &self.dir.join(name));
            let most = runs.to_string();
            let options = ["-E", &most];
            let plain = self.ffuzz(&options, &target);
            let with = with_library(&*plain, &library);
            let title = format!("batch, {name}, havoc_mutation in C at 6 % / no library");
            self.same_runs(&title, runs, &*with, &*plain);
            for (function, text) in ECHOES {
                let module = format!("bench_{function}");
                std::fs::write(self.dir.join(format!("{module}.py")), text).expect("the module");
                let with = with_python(&*plain, &self.dir, &module);
                let title = format!("batch, {name}, {function} in Python / no module");
                self.same_runs(&title, runs, &*with, &*plain);
            }
        }
        self.python();
    }

    /// Pairs of campaigns with one seed, the order changing: runs per CPU second, and their ratio.
    pub(super) fn same_runs(
        &self,
        title: &str,
        runs: u32,
        ours: &Campaign<'_>,
        theirs: &Campaign<'_>,
    ) {
        self.same_rates(
            title,
            runs,
            |seed| self.runs_per_cpu_second(ours, seed),
            |seed| self.runs_per_cpu_second(theirs, seed),
        );
    }

    /// The same for what is more than a command: runs per CPU second by seed.
    pub(super) fn same_rates(
        &self,
        title: &str,
        runs: u32,
        ours: impl Fn(u32) -> f64,
        theirs: impl Fn(u32) -> f64,
    ) {
        let (mut rates, mut others, mut ratios) = (vec![], vec![], vec![]);
        for pair in 0..self.pairs {
            let seed = u32::try_from(pair).expect("few pairs") + 1;
            let (a, b) = if pair % 2 == 0 {
                let a = ours(seed);
                (a, theirs(seed))
            } else {
                let b = theirs(seed);
                (ours(seed), b)
            };
            rates.push(a);
            others.push(b);
            ratios.push(a / b);
        }
        let ratio = median(&mut ratios);
        println!(
            "{title}: ratio {ratio:.3} ({:.3} to {:.3}, {} pairs of {runs} runs); {:.0} against {:.0} runs per CPU second",
            ratios[0],
            ratios[ratios.len() - 1],
            self.pairs,
            median(&mut rates),
            median(&mut others)
        );
    }

    pub(super) fn runs_per_cpu_second(&self, campaign: &Campaign<'_>, seed: u32) -> f64 {
        let out = self.dir.join("out");
        let _ = std::fs::remove_dir_all(&out);
        let before = children_cpu();
        let output = campaign(&out, seed).output().expect("the fuzzer starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let [single, fleet] = ["default", "main"].map(|name| out.join(name));
        let instance = if single.exists() { single } else { fleet };
        Self::runs_of(&instance) / (children_cpu() - before)
    }

    /// What an instance has run.
    pub(super) fn runs_of(instance: &Path) -> f64 {
        let stats = std::fs::read_to_string(instance.join("fuzzer_stats")).expect("statistics");
        let line = stats.lines().find(|line| line.starts_with("execs_done"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("execs_done")
    }

    /// A library of `benches/targets`.
    fn c_mutator(&self, name: &str) -> PathBuf {
        let library = self.dir.join(format!("{name}.so"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let status = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-I"])
            .arg(root.join("include"))
            .arg("-o")
            .arg(&library)
            .arg(root.join(format!("benches/targets/{name}.c")))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{name}.c does not compile");
        library
    }

    /// Every input comes from the same Python module, on both sides.
    fn python(&self) {
        std::fs::write(self.dir.join("bench_mutator.py"), MODULE).expect("the module");
        let cc = [env!("CARGO_BIN_EXE_ffuzz"), "cc"];
        let loops = self.harness("cjson", "", &self.dir.join("cjson-python"));
        for (name, target) in [
            (
                "a process a run, built by ffuzz-cc",
                self.build(&cc, "", "demo/demo.c", "demo-python"),
            ),
            (
                "a process a run, built by afl-clang-fast",
                self.build(&["afl-clang-fast", "-O2"], "", "demo/demo.c", "demo-python-afl"),
            ),
            ("a loop (cJSON), built by ffuzz-cc", loops),
        ] {
            let ours = self.with_module(env!("CARGO_BIN_EXE_ffuzz"), &target);
            let theirs = self.with_module("afl-fuzz", &target);
            let title = format!("Python mutator only, {name}, ffuzz / afl-fuzz");
            self.compare(&title, &*ours, &*theirs);
        }
    }

    fn with_module<'a>(&'a self, program: &'a str, target: &'a Path) -> Box<Campaign<'a>> {
        let plain = self.fuzzer(program, &[], target);
        Box::new(move |out, seed| {
            let mut command = with_python(&*plain, &self.dir, "bench_mutator")(out, seed);
            command.env("AFL_CUSTOM_MUTATOR_ONLY", "1");
            command
        })
    }
}

fn with_python<'a>(
    plain: &'a Campaign<'a>,
    folder: &'a Path,
    module: &'a str,
) -> Box<Campaign<'a>> {
    Box::new(move |out, seed| {
        let mut command = plain(out, seed);
        command.env("AFL_PYTHON_MODULE", module).env("PYTHONPATH", folder);
        command
    })
}

fn with_library<'a>(plain: &'a Campaign<'a>, library: &'a Path) -> Box<Campaign<'a>> {
    Box::new(move |out, seed| {
        let mut command = plain(out, seed);
        command.env("AFL_CUSTOM_MUTATOR_LIBRARY", library);
        command
    })
}
