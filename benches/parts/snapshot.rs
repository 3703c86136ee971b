//! Ordinary programs by snapshot beside a process a run, ours and AFL++'s: the same settings, figures
//! and table as in [`super::speed`].

use super::speed::{Case, Fuzzer, ONCE, OURS, Side, Speed, ours};

/// A program, and how many times as fast it should be.
pub(super) struct Program {
    pub(super) title: &'static str,
    pub(super) harness: &'static str,
    pub(super) engine: &'static str,
    pub(super) flags: &'static str,
    pub(super) arguments: &'static [&'static str],
    wanted: &'static str,
}

pub(super) const PROGRAMS: [Program; 5] = [
    Program {
        title: "stdin",
        harness: "cjson",
        engine: ONCE,
        flags: "",
        arguments: &[],
        wanted: "≥ 8",
    },
    Program {
        title: "file argument",
        harness: "libpng",
        engine: ONCE,
        flags: "",
        arguments: &["@@"],
        wanted: "≥ 5",
    },
    Program {
        title: "file argument",
        harness: "xmllint",
        engine: "",
        flags: "",
        arguments: &["@@"],
        wanted: "≥ 5",
    },
    Program {
        title: "memory database, stdin",
        harness: "sqlite3",
        engine: "",
        flags: "",
        arguments: &[":memory:"],
        wanted: "≥ 4",
    },
    Program {
        title: "ASan, stdin",
        harness: "cjson",
        engine: ONCE,
        flags: "-fsanitize=address",
        arguments: &[],
        wanted: "≥ 8",
    },
];

impl Speed<'_> {
    pub(super) fn run_snapshots(&self) {
        self.print_head();
        for program in &PROGRAMS {
            self.compare(&self.by_snapshot(program));
        }
    }

    fn by_snapshot<'b>(&self, program: &'b Program) -> Case<'b> {
        let Program { title, harness, engine, flags, arguments, wanted } = *program;
        let target = self.build(OURS, harness, engine, flags);
        let mut fork = ours(target.clone(), &["--run-mode", "fork"]);
        fork.name = "ffuzz by fork".into();
        fork.wanted = wanted;
        let afl = &self.peers.new;
        let new = Side {
            name: afl.name.clone(),
            fuzzer: Fuzzer::afl(&afl.fuzzer, false),
            target: self.build(&afl.compiler.to_string_lossy(), harness, engine, flags),
            wanted,
        };
        Case {
            title,
            harness,
            arguments,
            ours: ours(target, &["--run-mode", "snapshot"]),
            others: vec![fork, new],
        }
    }
}
