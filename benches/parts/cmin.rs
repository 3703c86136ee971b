//! Minimizing a folder of 20 000 files of 1 KiB: ours beside Debian's `afl-cmin`, on targets of both
//! compilers, with a process a run and with a loop.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Bench, median};

const FILES: u32 = 20_000;
const BYTES: usize = 1024;
/// afl-cmin takes a minute or more.
const PAIRS: usize = 3;

impl Bench {
    pub(super) fn cmin(&self) {
        let inputs = self.dir.join("many");
        write_inputs(&inputs);
        let once = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/targets/once.c");
        let ours = concat!(env!("CARGO_BIN_EXE_ffuzz"), " cc");
        for (compiler, by) in [(ours, "ffuzz-cc"), ("afl-clang-fast", "afl-clang-fast")] {
            for (engine, kind) in [(once, "a process a run"), ("-fsanitize=fuzzer", "a loop")] {
                let folder = self.dir.join("cmin").join(by).join(kind.replace(' ', "-"));
                let target = self.harness_by(compiler, &[("ENGINE", engine)], "cjson", &folder);
                self.compare_cmin(&format!("cJSON of {by}, {kind}"), &inputs, &target);
            }
        }
    }

    fn compare_cmin(&self, title: &str, inputs: &Path, target: &Path) {
        let (mut ours, mut theirs, mut ratios) = (vec![], vec![], vec![]);
        let mut kept = (0, 0);
        for _ in 0..self.pairs.min(PAIRS) {
            let our = self.minimized(&[env!("CARGO_BIN_EXE_ffuzz"), "cmin"], inputs, target);
            let their = self.minimized(&["afl-cmin"], inputs, target);
            kept = (our.1, their.1);
            ratios.push(their.0 / our.0);
            ours.push(our.0);
            theirs.push(their.0);
        }
        println!(
            "{title}: ffuzz-cmin {:.2} s, keeps {}; afl-cmin {:.1} s, keeps {}; ratio {:.1} \
             ({:.1} to {:.1})",
            median(&mut ours),
            kept.0,
            median(&mut theirs),
            kept.1,
            median(&mut ratios),
            ratios[0],
            ratios[ratios.len() - 1]
        );
    }

    /// Seconds, and files kept.
    fn minimized(&self, tool: &[&str], inputs: &Path, target: &Path) -> (f64, usize) {
        let out = self.dir.join("minimized");
        let _ = std::fs::remove_dir_all(&out);
        let start = Instant::now();
        let status = Command::new(tool[0])
            .args(&tool[1..])
            .arg("-i")
            .arg(inputs)
            .arg("-o")
            .arg(&out)
            .arg("--")
            .arg(target)
            .env("AFL_ALLOW_TMP", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let time = start.elapsed().as_secs_f64();
        assert!(status.expect("the tool starts").success(), "{tool:?} on {}", target.display());
        (time, std::fs::read_dir(&out).expect("its folder").count())
    }
}

/// Texts that begin as JSON and have a mistake in every second file, the same in every run.
fn write_inputs(folder: &PathBuf) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).expect("folder of inputs");
    let parts = [
        "{\"a\":1}",
        "[1,2,3]",
        "\"text\"",
        "-12.5e3",
        "true",
        "null",
        "[]",
        "{}",
        "\"\\u00e9\\n\"",
        "[[[[0]]]]",
        "{\"k\":{\"l\":[false]}}",
        " \t",
        "\"\\\\\"",
        "1e9",
        "[\"\",{}]",
        "0",
    ];
    let mut state = 1u64;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for number in 0..FILES {
        let mut text = String::from("[");
        while text.len() < BYTES - 40 {
            text += parts[next(parts.len())];
            text.push(',');
        }
        text += "0]";
        let mut bytes = text.into_bytes();
        bytes.resize(BYTES, b' ');
        if number % 2 == 1 {
            bytes[next(BYTES)] = b"\"{}[],:x\0\xff"[next(10)];
        }
        std::fs::write(folder.join(format!("id:{number:06}")), bytes).expect("input");
    }
}
