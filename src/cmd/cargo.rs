//! `cargo ffuzz`: builds and fuzzes harnesses of cargo-fuzz (`fuzz_target!` of the crate `libfuzzer-sys`), which need no
//! change. rustc adds the counters, `ffuzz-cc` links, and an empty archive replaces libFuzzer.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Parser, Subcommand};
use serde_json::Value;

use super::exit::Failure;
use crate::config::env::Environment;

/// As users call it.
pub(super) const NAME: &str = "cargo ffuzz";
/// Of rustc: counters, and what comparisons are made. Strings are compared by calls of `memcmp`, which stay calls.
const FLAGS: &[&str] = &[
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Ccodegen-units=1",
    "-Cpanic=abort",
    "-Cdebug-assertions",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-max-loads-per-memcmp=0",
    "-Clink-arg=-fsanitize=fuzzer",
];
/// So that finds have lines, also if the profile wants none: cargo strips them then.
const DEBUG_INFO: [&str; 2] = ["-Cdebuginfo=1", "-Cstrip=none"];
/// Between two flags.
const SEPARATOR: &str = "\u{1f}";
/// An archive without members.
const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";
/// Folders below that of the harnesses: cargo-fuzz's, and ours.
const CORPUS: &str = "corpus";
const OUTPUT: &str = "ffuzz-out";
/// What a search without a corpus begins with.
const FIRST_SEED: &[u8] = b"hello";

#[derive(Debug, Parser)]
#[command(
    name = "cargo-ffuzz",
    bin_name = NAME,
    about = "Build and fuzz harnesses of cargo-fuzz",
    after_help = "The harnesses are those of fuzz/ (cargo fuzz init makes that folder), or the programs of the \
                  package itself. Builds are in target/ffuzz.\n\nExamples:\n  \
                  cargo ffuzz run parse\n  \
                  cargo ffuzz run parse -j 8 -V 3600\n  \
                  cargo +nightly ffuzz run --sanitizer address parse"
)]
struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the harnesses
    List {
        #[command(flatten)]
        package: Package,
    },
    /// Build one harness, or all, and print the paths
    Build {
        #[command(flatten)]
        build: BuildOptions,
        /// Without it: all
        harness: Option<String>,
    },
    /// Build a harness and fuzz it, with the seeds of corpus/HARNESS, into ffuzz-out/HARNESS
    ///
    /// A campaign that is there already goes on.
    Run {
        #[command(flatten)]
        build: BuildOptions,
        /// Name of the harness
        harness: String,
        /// Options of ffuzz, for example -j 8; -i and -o replace these folders
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "OPTIONS OF ffuzz"
        )]
        options: Vec<OsString>,
    },
}

#[derive(Debug, clap::Args)]
struct Package {
    /// The package of the harnesses [default: fuzz/ of the package here, or else that package]
    #[arg(long, value_name = "FOLDER")]
    fuzz_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct BuildOptions {
    #[command(flatten)]
    package: Package,
    /// Without optimization
    #[arg(short = 'D', long)]
    dev: bool,
    /// Features of the package
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
    /// All features of the package
    #[arg(long)]
    all_features: bool,
    /// Not the default features of the package
    #[arg(long)]
    no_default_features: bool,
    /// A sanitizer of rustc (needs its nightly version), for example address
    #[arg(short, long, value_name = "NAME")]
    sanitizer: Option<String>,
}

pub(super) fn run(program: &str, mut words: Vec<OsString>) -> Result<ExitCode, Failure> {
    // cargo's first word is the name of the subcommand.
    if words.first().is_some_and(|word| word == "ffuzz") {
        words.remove(0);
    }
    let Some(args) = super::parse::<Args>(program, words)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let environment = Environment::read();
    match args.action {
        Action::List { package } => {
            let harnesses = Harnesses::find(&package, &environment)?;
            super::print(&lines(harnesses.names.iter()))
        }
        Action::Build { build, harness } => {
            let harnesses = Harnesses::find(&build.package, &environment)?;
            let built = harnesses.build(&build, harness.as_deref(), &environment)?;
            super::print(&lines(built.iter().map(|path| path.display())))
        }
        Action::Run { build, harness, options } => {
            let harnesses = Harnesses::find(&build.package, &environment)?;
            let built = harnesses.build(&build, Some(&harness), &environment)?;
            let Some(program) = built.first() else { return Err(harnesses.unknown(&harness)) };
            harnesses.fuzz(&harness, program, &options)
        }
    }
}

fn lines(all: impl Iterator<Item = impl std::fmt::Display>) -> String {
    all.map(|line| format!("{line}\n")).collect()
}

/// A package whose programs are harnesses.
struct Harnesses {
    cargo: OsString,
    folder: PathBuf,
    manifest: PathBuf,
    /// Where cargo builds.
    target: PathBuf,
    names: Vec<String>,
}

impl Harnesses {
    fn find(package: &Package, environment: &Environment) -> Result<Self, Failure> {
        let cargo = environment.get("CARGO").unwrap_or(OsStr::new("cargo")).to_owned();
        let folder = match &package.fuzz_dir {
            Some(folder) => folder.clone(),
            None => default_folder().map_err(|error| Failure::new(error, "check the folder"))?,
        };
        let manifest = folder.join("Cargo.toml");
        let manifest = fs::canonicalize(&manifest).map_err(|error| {
            Failure::new(
                format!("cannot read {}: {error}", manifest.display()),
                "cargo fuzz init makes a folder of harnesses; --fuzz-dir names it",
            )
        })?;
        let mut ask = Command::new(&cargo);
        ask.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
        let answer = ask.arg(&manifest).output();
        let answer = answer.map_err(|error| no_cargo(&cargo, &error))?;
        let _ = io::stderr().write_all(&answer.stderr);
        let data: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        let target = data["target_directory"].as_str();
        let Some(target) = target.filter(|_| answer.status.success()) else {
            let cause = format!("cargo cannot read {}", manifest.display());
            return Err(Failure::new(cause, "see its message above"));
        };
        let is_ours = |package: &&Value| {
            package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest)
        };
        let packages = data["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let targets = packages.iter().find(is_ours).and_then(|ours| ours["targets"].as_array());
        let is_program = |target: &&Value| {
            target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"bin".into()))
        };
        let programs = targets.into_iter().flatten().filter(is_program);
        let names = programs.filter_map(|target| target["name"].as_str().map(str::to_owned));
        let folder = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        let names = names.collect();
        Ok(Self { cargo, folder, manifest, target: Path::new(target).join("ffuzz"), names })
    }

    fn unknown(&self, harness: &str) -> Failure {
        let known = match &*self.names {
            [] => "the package has no programs".to_owned(),
            names => format!("it has: {}", names.join(", ")),
        };
        let cause = format!("{} has no harness {harness}", self.folder.display());
        Failure::new(cause, known)
    }

    /// The programs that cargo has built.
    fn build(
        &self,
        build: &BuildOptions,
        harness: Option<&str>,
        environment: &Environment,
    ) -> Result<Vec<PathBuf>, Failure> {
        if let Some(harness) = harness.filter(|name| !self.names.iter().any(|known| known == name))
        {
            return Err(self.unknown(harness));
        }
        let tools = self.tools().map_err(|error| {
            let cause = format!("cannot write to {}: {error}", self.target.display());
            Failure::new(cause, "check the permissions and the free space of the target folder")
        })?;
        let mut command = Command::new(&self.cargo);
        command.args(["build", "--message-format", "json-render-diagnostics", "--target"]);
        command.arg(self.host()?).arg("--target-dir").arg(&self.target);
        command.arg("--manifest-path").arg(&self.manifest);
        match harness {
            Some(harness) => command.args(["--bin", harness]),
            None => command.arg("--bins"),
        };
        command.args((!build.dev).then_some("--release"));
        command.args(build.all_features.then_some("--all-features"));
        command.args(build.no_default_features.then_some("--no-default-features"));
        command.args(build.features.iter().flat_map(|list| ["--features", list]));
        command.env("CARGO_ENCODED_RUSTFLAGS", flags(&tools.linker, build, environment));
        command.env("CUSTOM_LIBFUZZER_PATH", tools.archive);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| no_cargo(&self.cargo, &error))?;
        let output = child.stdout.take().map(BufReader::new);
        let messages = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let built = messages.filter_map(|line| executable(&line)).collect();
        match child.wait() {
            Ok(status) if status.success() => Ok(built),
            _ => Err(Failure::new("cargo cannot build the harness", remedy(build))),
        }
    }

    /// The linker under the name by which it is known, and what is linked instead of libFuzzer.
    fn tools(&self) -> io::Result<Tools> {
        let folder = self.target.join("tools");
        fs::create_dir_all(&folder)?;
        let tools = Tools { linker: folder.join("ffuzz-cc"), archive: folder.join("libempty.a") };
        let own = std::env::current_exe()?;
        if fs::read_link(&tools.linker).ok().as_ref() != Some(&own) {
            let _ = fs::remove_file(&tools.linker);
            std::os::unix::fs::symlink(&own, &tools.linker)?;
        }
        // A new time would have cargo build everything again.
        if fs::read(&tools.archive).ok().as_deref() != Some(EMPTY_ARCHIVE) {
            fs::write(&tools.archive, EMPTY_ARCHIVE)?;
        }
        Ok(tools)
    }

    /// The machine that cargo runs on. A build for it by name keeps the flags away from build scripts.
    fn host(&self) -> Result<String, Failure> {
        let answer = Command::new(&self.cargo).arg("-vV").output();
        let answer = answer.map_err(|error| no_cargo(&self.cargo, &error))?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let host = text.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned));
        let none = || Failure::new("cargo -vV names no host", "check the toolchain: rustup show");
        host.ok_or_else(none)
    }

    /// Becomes ffuzz.
    fn fuzz(
        &self,
        harness: &str,
        program: &Path,
        options: &[OsString],
    ) -> Result<ExitCode, Failure> {
        let is_given = |option: &str| options.iter().any(|word| word == option);
        let own = std::env::current_exe()
            .map_err(|error| Failure::new(error, "start ffuzz by its whole path"))?;
        let mut command = Command::new(own);
        command.arg("fuzz");
        if !is_given("-i") {
            let corpus = self.folder.join(CORPUS).join(harness);
            first_seed(&corpus).map_err(|error| {
                let cause = format!("cannot write to {}: {error}", corpus.display());
                Failure::new(cause, "check its permissions, or give another folder with -i")
            })?;
            command.arg("-i").arg(corpus);
        }
        if !is_given("-o") {
            command.arg("-o").arg(self.folder.join(OUTPUT).join(harness));
            command.env("AFL_AUTORESUME", "1");
        }
        let error = command.args(options).arg("--").arg(program).exec();
        Err(Failure::new(format!("cannot start ffuzz: {error}"), "start it by its whole path"))
    }
}

struct Tools {
    linker: PathBuf,
    archive: PathBuf,
}

/// `fuzz` of the package that this folder is in, or else the package itself.
fn default_folder() -> io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let is_package = |folder: &&Path| folder.join("Cargo.toml").is_file();
    let package = here.ancestors().find(is_package).unwrap_or(&here);
    let harnesses = package.join("fuzz");
    Ok(if is_package(&&*harnesses) { harnesses } else { package.to_owned() })
}

/// An input to begin with, if the folder has none.
fn first_seed(corpus: &Path) -> io::Result<()> {
    fs::create_dir_all(corpus)?;
    if fs::read_dir(corpus)?.next().is_none() {
        fs::write(corpus.join("seed"), FIRST_SEED)?;
    }
    Ok(())
}

/// For `CARGO_ENCODED_RUSTFLAGS`: the user's, and then ours.
fn flags(linker: &Path, build: &BuildOptions, environment: &Environment) -> OsString {
    let mut all = OsString::new();
    let mut add = |flag: &OsStr| {
        if !all.is_empty() {
            all.push(SEPARATOR);
        }
        all.push(flag);
    };
    if let Some(encoded) = environment.get("CARGO_ENCODED_RUSTFLAGS") {
        add(encoded);
    } else if let Some(plain) = environment.get("RUSTFLAGS").and_then(OsStr::to_str) {
        plain.split_ascii_whitespace().for_each(|flag| add(flag.as_ref()));
    }
    FLAGS.iter().chain(&DEBUG_INFO).for_each(|flag| add(flag.as_ref()));
    let mut link = OsString::from("-Clinker=");
    link.push(linker);
    add(&link);
    if let Some(sanitizer) = &build.sanitizer {
        add(format!("-Zsanitizer={sanitizer}").as_ref());
    }
    all
}

/// Of a message of cargo: the program that it has built.
fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}

fn remedy(build: &BuildOptions) -> &'static str {
    match build.sanitizer {
        Some(_) => {
            "see its messages above; sanitizers need a nightly toolchain: cargo +nightly ffuzz"
        }
        None => "see its messages above",
    }
}

fn no_cargo(cargo: &OsStr, error: &io::Error) -> Failure {
    let cause = format!("cannot start {}: {error}", cargo.display());
    Failure::new(cause, "install Rust: https://rustup.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_flags() {
        let page = include_str!("../../docs/building-targets.md").replace("-C ", "-C");
        for flag in FLAGS.iter().filter(|flag| !["--cfg", "fuzzing"].contains(flag)) {
            assert!(page.contains(flag), "{flag}");
        }
    }

    #[test]
    fn flags_of_the_user_come_first() {
        let build = BuildOptions {
            package: Package { fuzz_dir: None },
            dev: false,
            features: None,
            all_features: false,
            no_default_features: false,
            sanitizer: Some("address".into()),
        };
        let all = |pairs: &[(&str, &str)]| {
            let environment = Environment::from_pairs(pairs);
            let all = flags(Path::new("/a b/ffuzz-cc"), &build, &environment);
            all.into_string().unwrap().split(SEPARATOR).map(str::to_owned).collect::<Vec<_>>()
        };
        let plain = all(&[("RUSTFLAGS", " -Ctarget-cpu=native  -g")]);
        assert_eq!(plain[..3], ["-Ctarget-cpu=native", "-g", "--cfg"]);
        assert_eq!(plain[plain.len() - 2..], ["-Clinker=/a b/ffuzz-cc", "-Zsanitizer=address"]);
        let encoded = all(&[("RUSTFLAGS", "-g"), ("CARGO_ENCODED_RUSTFLAGS", "-O")]);
        assert_eq!(encoded[..2], ["-O", "--cfg"]);
    }

    #[test]
    fn programs_are_read_from_messages_of_cargo() {
        assert_eq!(executable(r#"{"executable":"/a/parse"}"#), Some("/a/parse".into()));
        assert_eq!((executable(r#"{"executable":null}"#), executable("x")), (None, None));
    }
}
