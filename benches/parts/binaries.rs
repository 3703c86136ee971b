//! Programs as Debian installs them, with `-Q`: executions a second by snapshot beside those by fork, in the
//! emulator, and of the same version built by `ffuzz-cc`; then whether snapshots and forks show the same blocks.
//!
//! Settings, figures and table are those of [`super::speed`]; `FFUZZ_BENCH_CASE` chooses among the programs. A side
//! without `-Q` starts from the same seeds.

use super::same::Case as Same;
use super::speed::{Case, OURS, Side, Speed, is_wanted, ours};

struct Program {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Whether `benches/targets/build.sh` also builds it.
    has_source: bool,
    /// Whether the edges of 20 000 inputs are compared.
    compares_maps: bool,
}

impl Program {
    const fn new(name: &'static str, arguments: &'static [&'static str]) -> Self {
        Self { name, arguments, has_source: false, compares_maps: true }
    }

    const fn with_source(self) -> Self {
        Self { has_source: true, ..self }
    }

    const fn without_maps(self) -> Self {
        Self { compares_maps: false, ..self }
    }
}

const PROGRAMS: [Program; 7] = [
    Program::new("xmllint", &["@@"]).with_source(),
    Program::new("sqlite3", &["-safe", ":memory:"]).with_source().without_maps(),
    Program::new("pngfix", &["@@"]).with_source(),
    Program::new("tiffinfo", &["@@"]),
    Program::new("readelf", &["-a", "@@"]),
    Program::new("unzip", &["-t", "@@"]).without_maps(),
    Program::new("webpinfo", &["@@"]),
];

const NATIVE: &[&str] = &["-Q", "--native", "--run-mode", "snapshot"];

impl Speed<'_> {
    pub(super) fn run_binaries(&self) {
        self.print_head();
        let wanted = || PROGRAMS.iter().filter(|program| is_wanted(program.name));
        for program in wanted() {
            self.compare(&self.without_source(program));
        }
        super::same::print_head();
        for program in wanted().filter(|program| program.compares_maps) {
            let arguments = program.arguments.join(" ");
            let target = self.installed(program.name);
            self.bench.compare_runs(&Same::native(self.bench, program.name, target, &arguments));
        }
    }

    fn without_source(&self, program: &Program) -> Case<'_> {
        let Program { name, arguments, has_source, .. } = *program;
        let target = self.installed(name);
        let mut fork = ours(target.clone(), &["-Q", "--native", "--run-mode", "fork"]);
        (fork.name, fork.wanted) = ("by fork".into(), "≥ 8");
        let mut emulator = ours(target.clone(), &["-Q", "--qemu"]);
        (emulator.name, emulator.wanted) = ("the emulator".into(), "≥ 20");
        let mut others = vec![fork, emulator];
        if has_source {
            let built = ours(self.build(OURS, name, "", ""), &["--run-mode", "snapshot"]);
            others.push(Side { name: "built by ffuzz-cc".into(), wanted: "≥ 0.5", ..built });
        }
        Case { title: "-Q", harness: name, arguments, ours: ours(target, NATIVE), others }
    }

    fn installed(&self, name: &str) -> std::path::PathBuf {
        let folder = self.bench.dir.join("installed");
        self.bench.harness_by("installed", &[], name, &folder)
    }
}
