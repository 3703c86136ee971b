//! What foreign mutators cost: executions a second with and without one that changes nothing, on the
//! same random numbers, so that both campaigns do the same runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, Campaign};

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

impl Bench {
    pub(super) fn mutators(&self) {
        let library = self.c_mutator("echo");
        let tiny = self.harness("tiny", "", &self.dir.join("tiny"));
        let plain = self.ffuzz(&[], &tiny);
        let with = with_library(&*plain, &library);
        self.compare("batch, havoc_mutation in C at 6 % / no library", &*with, &*plain);
        self.python();
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
            let mut command = plain(out, seed);
            command
                .env("AFL_PYTHON_MODULE", "bench_mutator")
                .env("AFL_CUSTOM_MUTATOR_ONLY", "1")
                .env("PYTHONPATH", &self.dir);
            command
        })
    }
}

fn with_library<'a>(plain: &'a Campaign<'a>, library: &'a Path) -> Box<Campaign<'a>> {
    Box::new(move |out, seed| {
        let mut command = plain(out, seed);
        command.env("AFL_CUSTOM_MUTATOR_LIBRARY", library);
        command
    })
}
