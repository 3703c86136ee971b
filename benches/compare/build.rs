//! Builds each target for each kind, once: under target/compare/builds in a folder a compiler.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use ffuzz::config::env;

use super::kinds::{Fuzzer, Kind};
use super::peers::Afl;
use super::{Failure, fail};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const CLANG: &str = "clang-19";
const GCC: &str = "gcc";

/// What runs a kind, and where its targets are.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) fuzzer: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) commit: String,
    pub(super) id: String,
    compiler: String,
    flags: &'static str,
    variables: Vec<(String, String)>,
    engine: String,
}

pub(super) struct Builder {
    pub(super) folder: PathBuf,
    /// The revision that `base` is.
    pub(super) base: Option<String>,
}

impl Builder {
    /// Without the targets.
    pub(super) fn of(&self, kind: &Kind) -> Result<Built, Failure> {
        match kind.fuzzer {
            Fuzzer::Ffuzz => {
                let commit = git(Path::new(ROOT), &["describe", "--always", "--dirty"])?;
                self.ffuzz(Path::new(env!("CARGO_BIN_EXE_ffuzz")), commit, kind)
            }
            Fuzzer::Base => {
                let (program, commit) = self.base()?;
                self.ffuzz(&program, commit, kind)
            }
            Fuzzer::Ordinary => self.ordinary(kind),
            Fuzzer::Native => self.native(kind),
            Fuzzer::Libfuzzer => Ok(self.libfuzzer()),
            Fuzzer::Afl | Fuzzer::AflCmplog | Fuzzer::AflDict2file => self.afl(kind.fuzzer),
        }
    }

    fn blank(&self, name: &str) -> Built {
        Built {
            fuzzer: PathBuf::new(),
            folder: self.folder.join("builds").join(name),
            commit: CLANG.into(),
            id: name.into(),
            compiler: CLANG.into(),
            flags: "-O2 -g",
            variables: vec![],
            engine: "-fsanitize=fuzzer".into(),
        }
    }

    /// Programs with an ordinary `main`, which reads standard input.
    fn ordinary(&self, kind: &Kind) -> Result<Built, Failure> {
        let ours = self.of(&Kind { fuzzer: Fuzzer::Ffuzz, ..kind.clone() })?;
        let id = format!("ordinary-{}", ours.id);
        Ok(Built { folder: self.blank(&id).folder, id, engine: self.once()?, ..ours })
    }

    /// The same as a distribution has them, without symbols.
    fn native(&self, kind: &Kind) -> Result<Built, Failure> {
        let ours = self.of(&Kind { fuzzer: Fuzzer::Ffuzz, ..kind.clone() })?;
        Ok(Built {
            fuzzer: ours.fuzzer,
            commit: ours.commit,
            id: format!("native-{}", ours.id),
            compiler: GCC.into(),
            flags: "-O2",
            engine: format!("{} -s", self.once()?),
            ..self.blank("native")
        })
    }

    /// Their `main`, compiled.
    fn once(&self) -> Result<String, Failure> {
        let folder = self.blank("native").folder;
        fs::create_dir_all(&folder).expect("folder for a build");
        let object = folder.join("once.o");
        let mut command = Command::new(GCC);
        command.args(["-O2", "-c"]).arg(Path::new(ROOT).join("benches/targets/once.c"));
        command.arg("-o").arg(&object);
        run(&mut command, &folder.join("once.log"), "once.c does not compile")?;
        Ok(object.display().to_string())
    }

    /// A copy of the executable, so that the next edit does not change what runs. Kinds that differ by nothing that
    /// its compiler reads share their targets.
    fn ffuzz(&self, program: &Path, commit: String, kind: &Kind) -> Result<Built, Failure> {
        let bytes = fs::read(program).map_err(|error| {
            fail(format!("{}: {error}", program.display()), "run: make compare")
        })?;
        let of_compiler = kind.variables.iter().filter(|(name, _)| is_of_compiler(name));
        let variables: Vec<_> = of_compiler.cloned().collect();
        let id = format!("ffuzz-{}", hash(&(&bytes, &variables)));
        let mut built = Built { commit, variables, ..self.blank(&id) };
        built.fuzzer = built.folder.join("ffuzz");
        if !built.fuzzer.exists() {
            fs::create_dir_all(&built.folder).expect("folder for a build");
            let copy = built.folder.join("ffuzz.new");
            fs::copy(program, &copy).expect("copy of the executable");
            fs::rename(copy, &built.fuzzer).expect("copy of the executable");
        }
        built.compiler = format!("{} cc", built.fuzzer.display());
        Ok(built)
    }

    /// Another revision, built in a work tree of its own that is removed again.
    fn base(&self) -> Result<(PathBuf, String), Failure> {
        let revision = self.base.as_deref().ok_or_else(|| {
            fail("the kind base is another revision".into(), "name it: make compare BASE=REV")
        })?;
        let commit =
            git(Path::new(ROOT), &["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
        let name = git(Path::new(ROOT), &["describe", "--always", &commit])?;
        let kept = self.folder.join(format!("base-{commit}"));
        if !kept.exists() {
            let tree = self.folder.join("base-tree");
            let tree_name = tree.display().to_string();
            // One that was left behind.
            let _ = git(Path::new(ROOT), &["worktree", "remove", "--force", &tree_name]);
            git(Path::new(ROOT), &["worktree", "add", "--detach", &tree_name, &commit])?;
            let target = self.folder.join("base-target");
            let built = self.cargo(&tree, &target);
            let _ = git(Path::new(ROOT), &["worktree", "remove", "--force", &tree_name]);
            built?;
            fs::copy(target.join("lab/ffuzz"), &kept).expect("copy of the executable");
        }
        Ok((kept, name))
    }

    fn cargo(&self, tree: &Path, target: &Path) -> Result<(), Failure> {
        let log = self.folder.join("base.log");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["build", "--profile", "lab", "--locked", "--bin", "ffuzz"]).current_dir(tree);
        command.env("CARGO_TARGET_DIR", target);
        run(&mut command, &log, "the other revision does not build")
    }

    fn afl(&self, fuzzer: Fuzzer) -> Result<Built, Failure> {
        let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench-peers");
        let afl = Afl::built(&tree.join("aflplusplus-4.40c"));
        let afl = afl.map_err(|missing| fail(missing.cause, missing.remedy))?;
        let name = if fuzzer == Fuzzer::AflDict2file { "afl-dict2file" } else { "afl" };
        let mut built = self.blank(name);
        built.fuzzer = afl.fuzzer;
        built.compiler = afl.compiler.display().to_string();
        built.commit = afl.name;
        Ok(built)
    }

    /// Beside the targets of AFL++.
    pub(super) fn cmplog(&self) -> Result<Built, Failure> {
        let afl = self.afl(Fuzzer::Afl)?;
        let variables = vec![("AFL_LLVM_CMPLOG".into(), "1".into())];
        Ok(Built { variables, ..Built { folder: self.blank("afl-cmplog").folder, ..afl } })
    }

    fn libfuzzer(&self) -> Built {
        Built { flags: "-O2 -g -fsanitize=fuzzer-no-link", ..self.blank("libfuzzer") }
    }

    /// What counts the edges, with options that no fuzzer here uses, and without a changing address.
    pub(super) fn neutral(&self) -> Result<Built, Failure> {
        let mut built = self.blank("neutral");
        built.flags = "-O1 -g -fno-pie -no-pie -Wno-unused-command-line-argument \
             -fsanitize-coverage=trace-pc-guard,no-prune,pc-table";
        fs::create_dir_all(&built.folder).expect("folder for a build");
        let object = built.folder.join("neutral.o");
        let source = Path::new(ROOT).join("benches/targets/neutral.c");
        let mut command = Command::new(CLANG);
        command.args(["-O2", "-fno-pie", "-c"]).arg(source).arg("-o").arg(&object);
        run(&mut command, &built.folder.join("neutral.log"), "neutral.c does not compile")?;
        built.engine = object.display().to_string();
        Ok(built)
    }

    /// Builds what is missing, as many at a time as there are cores.
    pub(super) fn targets(&self, builds: &[Built], targets: &[String]) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder).expect("folder for builds");
        let recipe = recipe();
        let mut jobs: Vec<(&Built, &String)> = builds
            .iter()
            .flat_map(|built| targets.iter().map(move |target| (built, target)))
            .filter(|(built, target)| {
                fs::read_to_string(built.stamp(target)).unwrap_or_default() != recipe
            })
            .collect();
        jobs.reverse();
        let (left, failures) = (Mutex::new(jobs), Mutex::new(vec![]));
        let next = || left.lock().expect("jobs").pop();
        let work = || {
            while let Some((built, target)) = next() {
                if let Err(failure) = built.build(target, &recipe) {
                    failures.lock().expect("failures").push(failure);
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        failures.into_inner().expect("failures").into_iter().next().map_or(Ok(()), Err)
    }
}

impl Built {
    pub(super) fn program(&self, target: &str) -> PathBuf {
        self.folder.join(target)
    }

    fn stamp(&self, target: &str) -> PathBuf {
        self.folder.join(format!("{target}.stamp"))
    }

    /// What AFL++'s compiler has collected.
    pub(super) fn collected(&self, target: &str) -> PathBuf {
        self.folder.join(format!("{target}.words"))
    }

    fn build(&self, target: &str, recipe: &str) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder).expect("folder for a build");
        let mut command = Command::new(Path::new(ROOT).join("benches/compare/targets.sh"));
        command.arg(&self.folder).arg(target);
        command.env("CC", &self.compiler).env("CFLAGS", self.flags).env("ENGINE", &self.engine);
        command.env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target"),
        );
        command.env("AFL_QUIET", "1").envs(self.variables.iter().cloned());
        if self.folder.ends_with("afl-dict2file") {
            let _ = fs::remove_file(self.collected(target));
            command.env("AFL_LLVM_DICT2FILE", self.collected(target));
        }
        let log = self.folder.join(format!("{target}.log"));
        run(&mut command, &log, &format!("{target} does not build by {}", self.id))?;
        fs::write(self.stamp(target), recipe).expect("stamp of a build");
        Ok(())
    }
}

/// What decides how targets are built; they are built again when it changes.
fn recipe() -> String {
    let list =
        |folder: &str| fs::read_dir(Path::new(ROOT).join(folder)).expect("sources").flatten();
    let mut files: Vec<PathBuf> = list("benches/targets")
        .chain(list("benches/compare/harness"))
        .map(|entry| entry.path())
        .chain([Path::new(ROOT).join("benches/compare/targets.sh")])
        .collect();
    files.sort();
    hash(&files.iter().map(|file| fs::read(file).unwrap_or_default()).collect::<Vec<_>>())
}

/// Whether a variable may change what the compiler makes: only those that other commands read, and those whose names say
/// that they switch an experiment of the fuzzer, do not.
fn is_of_compiler(name: &str) -> bool {
    let is_cc = |command: &str| command == "cc";
    let is_of_fuzzer = env::find(name).is_some_and(|row| !row.command.split(", ").any(is_cc));
    !is_of_fuzzer && !name.starts_with("FFUZZ_TRY_")
}

fn hash(value: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git").args(arguments).current_dir(folder).output();
    let said = output.map_err(|error| fail(format!("git: {error}"), "run: make setup-test"))?;
    if said.status.success() {
        return Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned());
    }
    let error = String::from_utf8_lossy(&said.stderr);
    let cause = format!("git {}: {}", arguments[0], error.lines().next().unwrap_or_default());
    Err(fail(cause, "run it in a clone of the project, with a revision it has"))
}

fn run(command: &mut Command, log: &Path, cause: &str) -> Result<(), Failure> {
    let file = fs::File::create(log).expect("log of a build");
    command.stdin(Stdio::null()).stdout(file.try_clone().expect("log")).stderr(file);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(fail(cause.into(), &format!("read {}", log.display()))),
        Err(error) => Err(fail(format!("{cause}: {error}"), "run: make setup-test")),
    }
}
