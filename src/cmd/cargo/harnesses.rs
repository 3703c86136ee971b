//! A package of harnesses, and how cargo builds it: rustc adds the counters, `ffuzz-cc` links, and an empty archive
//! replaces libFuzzer.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::cmd::exit::Failure;
use crate::cmd::tool::say;
use crate::config::env::Environment;

/// rustc's flags for counters.
const FLAGS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cpanic=abort",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Clink-arg=-fsanitize=fuzzer",
];
/// rustc's flags to trace comparisons. Strings are compared by calls of `memcmp`, which stay calls.
const COMPARISONS: [&str; 2] =
    ["-Cllvm-args=-sanitizer-coverage-trace-compares", "-Cllvm-args=-max-loads-per-memcmp=0"];
/// A single codegen unit, so that functions can be inlined: the pass prevents imports from other units.
const UNITS: &str = "-Ccodegen-units=1";
const DIVISIONS: &str = "-Cllvm-args=-sanitizer-coverage-trace-divs";
const BRANCHES: &str = "-Cllvm-args=-simplifycfg-branch-fold-threshold=0";
const DEAD_CODE: &str = "-Clink-dead-code";
const CAREFUL: [&str; 3] = ["-Zextra-const-ub-checks", "-Zstrict-init-checks", "--cfg=careful"];
const CFG_FUZZING: &str = "--cfg=fuzzing";
const DEBUG_ASSERTIONS: &str = "-Cdebug-assertions";
/// Gives finds line numbers even if the profile disables debug info, in which case cargo strips it.
const DEBUG_INFO: [&str; 2] = ["-Cdebuginfo=1", "-Cstrip=none"];
/// Separator between two flags.
const SEPARATOR: &str = "\u{1f}";
/// An archive without members.
const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";

#[derive(Debug, Default, clap::Args)]
pub(super) struct CargoPackage {
    /// The package of the harnesses [default: fuzz/ of the package here, or else that package]
    #[arg(long, value_name = "FOLDER")]
    pub(super) fuzz_dir: Option<PathBuf>,
}

#[derive(Debug, Default, clap::Args)]
pub(super) struct BuildOptions {
    #[command(flatten)]
    pub(super) package: CargoPackage,
    /// Without optimization
    #[arg(short = 'D', long, conflicts_with = "release")]
    dev: bool,
    /// Optimized as by default, and without debug assertions
    #[arg(short = 'O', long)]
    release: bool,
    /// Debug assertions, also with --release
    #[arg(short = 'a', long)]
    debug_assertions: bool,
    /// Show what cargo calls
    #[arg(short, long)]
    verbose: bool,
    /// Features of the package
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
    /// All features of the package
    #[arg(long)]
    all_features: bool,
    /// Not the default features of the package
    #[arg(long)]
    no_default_features: bool,
    /// More checks: debug assertions in the standard library too, and stricter ones (needs a nightly toolchain)
    #[arg(short, long)]
    careful: bool,
    /// A sanitizer of rustc (needs its nightly version), for example address [default: none]
    #[arg(short, long, value_name = "NAME")]
    sanitizer: Option<String>,
    /// The standard library is built with the same options (needs a nightly toolchain)
    #[arg(long)]
    build_std: bool,
    /// An unstable option of cargo (needs a nightly toolchain)
    #[arg(short = 'Z', value_name = "FLAG")]
    unstable: Vec<String>,
    /// Without --cfg fuzzing
    #[arg(long)]
    no_cfg_fuzzing: bool,
    /// Comparisons are not logged, so that runs are faster
    #[arg(long)]
    no_trace_compares: bool,
    /// Divisors are compared with 0
    #[arg(long)]
    trace_div: bool,
    /// No effect: array indices are not used
    #[arg(long)]
    trace_gep: bool,
    /// Number of units that a crate is compiled in [default: 1]
    #[arg(long, value_name = "N")]
    codegen_units: Option<u32>,
    /// Remove code that is never called, or keep it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "true",
          default_missing_value = "true")]
    strip_dead_code: Option<bool>,
    /// Keep a branch for each condition of a test
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    disable_branch_folding: Option<bool>,
    /// The platform to build for [default: this machine]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Where to build [default: ffuzz/ in the target folder of the package]
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,
}

impl BuildOptions {
    /// The sanitizer; None for `none`.
    fn sanitizer(&self) -> Option<&str> {
        self.sanitizer.as_deref().filter(|name| *name != "none")
    }

    /// rustc's flags without a value.
    fn flags(&self) -> Vec<&'static str> {
        let asserts = !self.release || self.debug_assertions || self.careful;
        let mut flags = Vec::new();
        let mut add = |is_wanted: bool, more: &[&'static str]| {
            flags.extend_from_slice(if is_wanted { more } else { &[] });
        };
        add(!self.no_cfg_fuzzing, &[CFG_FUZZING]);
        add(true, &FLAGS);
        add(self.codegen_units.is_none(), &[UNITS]);
        add(asserts, &[DEBUG_ASSERTIONS]);
        add(!self.no_trace_compares, &COMPARISONS);
        add(self.trace_div, &[DIVISIONS]);
        add(self.disable_branch_folding == Some(true), &[BRANCHES]);
        add(self.strip_dead_code == Some(false), &[DEAD_CODE]);
        add(self.careful, &CAREFUL);
        add(true, &DEBUG_INFO);
        flags
    }

    /// Returns true if the standard library is built, too.
    fn builds_std(&self) -> bool {
        self.build_std || self.careful || self.sanitizer() == Some("memory")
    }
}

/// A package whose programs are harnesses.
pub(super) struct Harnesses {
    environment: Environment,
    cargo: OsString,
    pub(super) folder: PathBuf,
    manifest: PathBuf,
    /// cargo's target folder.
    target: PathBuf,
    pub(super) names: Vec<String>,
}

impl Harnesses {
    pub(super) fn find(package: &CargoPackage, environment: &Environment) -> Result<Self, Failure> {
        let cargo = environment.get("CARGO").unwrap_or(OsStr::new("cargo")).to_owned();
        let folder = match &package.fuzz_dir {
            Some(folder) => folder.clone(),
            None => default_folder().map_err(|error| Failure::new(error, "check the folder"))?,
        };
        let manifest = folder.join("Cargo.toml");
        let remedy = "cargo ffuzz init makes a package of harnesses; --fuzz-dir names it";
        let manifest =
            fs::canonicalize(&manifest).map_err(Failure::cannot_read(&manifest, remedy))?;
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
        let (environment, target) = (environment.clone(), Path::new(target).join("ffuzz"));
        Ok(Self { environment, cargo, folder, manifest, target, names })
    }

    /// Selects the target folder in which scripts for cargo-fuzz expect the programs.
    pub(super) fn built_as_by_cargo_fuzz(mut self) -> Self {
        self.target.pop();
        self
    }

    fn unknown(&self, harness: &str) -> Failure {
        let known = match &*self.names {
            [] => "the package has no programs".to_owned(),
            names => format!("it has: {}", names.join(", ")),
        };
        let cause = format!("{} has no harness {harness}", self.folder.display());
        Failure::new(cause, known)
    }

    /// Builds harnesses; returns the programs.
    pub(super) fn build(
        &self,
        build: &BuildOptions,
        harness: Option<&str>,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut command = self.cargo("build", harness, build)?;
        command.args(["--message-format", "json-render-diagnostics"]);
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

    /// Checks that the harnesses compile.
    pub(super) fn check(
        &self,
        build: &BuildOptions,
        harness: Option<&str>,
    ) -> Result<ExitStatus, Failure> {
        let mut command = self.cargo("check", harness, build)?;
        command.stdin(Stdio::null()).status().map_err(|error| no_cargo(&self.cargo, &error))
    }

    /// A cargo command for one or all harnesses, with options and rustc's flags.
    fn cargo(
        &self,
        action: &str,
        harness: Option<&str>,
        build: &BuildOptions,
    ) -> Result<Command, Failure> {
        if let Some(unknown) = harness.filter(|name| !self.names.iter().any(|known| known == name))
        {
            return Err(self.unknown(unknown));
        }
        if build.trace_gep {
            say(false, "[!] --trace-gep has no effect: ffuzz does not use array indices");
        }
        let target = build.target_dir.as_ref().unwrap_or(&self.target);
        let tools = std::path::absolute(target).and_then(|target| tools(&target));
        let tools = tools.map_err(|error| super::cannot_write(target, &error))?;
        let platform = build.target.clone().map_or_else(|| self.host(), Ok)?;
        let mut command = Command::new(&self.cargo);
        command.arg(action).args(["--target", &platform]).arg("--target-dir").arg(target);
        command.arg("--manifest-path").arg(&self.manifest);
        match harness {
            Some(harness) => command.args(["--bin", harness]),
            None => command.arg("--bins"),
        };
        command.args((!build.dev).then_some("--release"));
        command.args(build.verbose.then_some("--verbose"));
        command.args(build.all_features.then_some("--all-features"));
        command.args(build.no_default_features.then_some("--no-default-features"));
        command.args(build.features.iter().flat_map(|list| ["--features", list]));
        command.args(build.builds_std().then_some("-Zbuild-std"));
        command.args(build.unstable.iter().flat_map(|flag| ["-Z", flag]));
        command.env("CARGO_ENCODED_RUSTFLAGS", flags(&tools.linker, build, &self.environment));
        command.env("CUSTOM_LIBFUZZER_PATH", tools.archive);
        // Build scripts check these variables.
        command.env("CARGO_FUZZ", "1").env("CARGO_FUZZ_MANIFEST", &self.manifest);
        Ok(command)
    }

    /// Builds one harness; returns its program.
    pub(super) fn build_one(
        &self,
        build: &BuildOptions,
        harness: &str,
    ) -> Result<PathBuf, Failure> {
        let built = self.build(build, Some(harness))?;
        built.into_iter().next().ok_or_else(|| self.unknown(harness))
    }

    /// The host triple. Naming it as the target keeps the flags away from build scripts.
    fn host(&self) -> Result<String, Failure> {
        let answer = Command::new(&self.cargo).arg("-vV").output();
        let answer = answer.map_err(|error| no_cargo(&self.cargo, &error))?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let host = text.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned));
        let none = || Failure::new("cargo -vV names no host", "check the toolchain: rustup show");
        host.ok_or_else(none)
    }
}

struct CargoTools {
    linker: PathBuf,
    archive: PathBuf,
}

/// The linker under its known name, and the replacement of libFuzzer. Another runtime changes the folder, so cargo
/// links the harnesses again.
fn tools(target: &Path) -> io::Result<CargoTools> {
    let folder = target.join("tools").join(ffuzz_assets::HASH);
    fs::create_dir_all(&folder)?;
    let tools = CargoTools { linker: folder.join("ffuzz-cc"), archive: folder.join("libempty.a") };
    let own = std::env::current_exe()?;
    if fs::read_link(&tools.linker).ok().as_ref() != Some(&own) {
        let _ = fs::remove_file(&tools.linker);
        std::os::unix::fs::symlink(&own, &tools.linker)?;
    }
    // A new modification time would make cargo rebuild everything.
    if fs::read(&tools.archive).ok().as_deref() != Some(EMPTY_ARCHIVE) {
        fs::write(&tools.archive, EMPTY_ARCHIVE)?;
    }
    Ok(tools)
}

/// The folder `fuzz` of the package around the current folder, or that package itself.
fn default_folder() -> io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let is_package = |folder: &&Path| folder.join("Cargo.toml").is_file();
    let package = here.ancestors().find(is_package).unwrap_or(&here);
    let harnesses = package.join("fuzz");
    Ok(if is_package(&&*harnesses) { harnesses } else { package.to_owned() })
}

/// Value of `CARGO_ENCODED_RUSTFLAGS`: the user's flags, then ours.
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
    build.flags().into_iter().for_each(|flag| add(flag.as_ref()));
    if let Some(units) = build.codegen_units {
        add(format!("-Ccodegen-units={units}").as_ref());
    }
    let mut link = OsString::from("-Clinker=");
    link.push(linker);
    add(&link);
    if let Some(sanitizer) = build.sanitizer() {
        add(format!("-Zsanitizer={sanitizer}").as_ref());
        if sanitizer == "memory" {
            add("-Zsanitizer-memory-track-origins".as_ref());
        }
    }
    all
}

/// The program that one of cargo's messages reports as built.
fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}

fn remedy(build: &BuildOptions) -> &'static str {
    match () {
        () if build.builds_std() => {
            "see its messages above; the standard library needs a nightly toolchain and its sources: rustup component \
             add rust-src --toolchain nightly"
        }
        () if build.sanitizer().is_some() => {
            "see its messages above; sanitizers need a nightly toolchain: cargo +nightly ffuzz"
        }
        () => "see its messages above",
    }
}

pub(super) fn no_cargo(cargo: &OsStr, error: &io::Error) -> Failure {
    let cause = format!("cannot start {}: {error}", cargo.display());
    Failure::new(cause, "install Rust: https://rustup.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_flags() {
        let page = include_str!("../../../docs/building-targets.md").replace("-C ", "-C");
        for flag in FLAGS.iter().chain(&COMPARISONS).chain([&DEBUG_ASSERTIONS, &UNITS]) {
            assert!(page.contains(flag), "{flag}");
        }
    }

    #[test]
    fn flags_of_the_user_come_first() {
        let build = BuildOptions { sanitizer: Some("address".into()), ..BuildOptions::default() };
        let all = |pairs: &[(&str, &str)]| {
            let environment = Environment::from_pairs(pairs);
            let all = flags(Path::new("/a b/ffuzz-cc"), &build, &environment);
            all.into_string().unwrap().split(SEPARATOR).map(str::to_owned).collect::<Vec<_>>()
        };
        let plain = all(&[("RUSTFLAGS", " -Ctarget-cpu=native  -g")]);
        assert_eq!(plain[..3], ["-Ctarget-cpu=native", "-g", CFG_FUZZING]);
        assert_eq!(plain[plain.len() - 2..], ["-Clinker=/a b/ffuzz-cc", "-Zsanitizer=address"]);
        let encoded = all(&[("RUSTFLAGS", "-g"), ("CARGO_ENCODED_RUSTFLAGS", "-O")]);
        assert_eq!(encoded[..2], ["-O", CFG_FUZZING]);
    }

    #[test]
    fn options_of_cargo_fuzz_leave_flags_out() {
        let with = |build: BuildOptions| {
            let all = flags(Path::new("cc"), &build, &Environment::from_pairs(&[]));
            let all = all.into_string().unwrap();
            ["--cfg=fuzzing", "debug-assertions", "trace-compares", "per-memcmp", "-Zsanitizer"]
                .map(|flag| all.contains(flag))
        };
        let default = BuildOptions::default;
        assert_eq!(with(default()), [true, true, true, true, false]);
        let none = BuildOptions { sanitizer: Some("none".into()), release: true, ..default() };
        assert_eq!(with(none), [true, false, true, true, false]);
        let bare = BuildOptions {
            release: true,
            debug_assertions: true,
            no_cfg_fuzzing: true,
            no_trace_compares: true,
            ..default()
        };
        assert_eq!(with(bare), [false, true, false, false, false]);
        let other = BuildOptions {
            codegen_units: Some(4),
            strip_dead_code: Some(false),
            disable_branch_folding: Some(true),
            trace_div: true,
            ..default()
        };
        let all = flags(Path::new("cc"), &other, &Environment::from_pairs(&[])).into_string();
        let all = all.unwrap();
        assert!(!all.contains(UNITS) && all.contains("-Ccodegen-units=4"), "{all}");
        assert!([DEAD_CODE, BRANCHES, DIVISIONS].iter().all(|flag| all.contains(flag)), "{all}");
    }

    #[test]
    fn programs_are_read_from_messages_of_cargo() {
        assert_eq!(executable(r#"{"executable":"/a/parse"}"#), Some("/a/parse".into()));
        assert_eq!((executable(r#"{"executable":null}"#), executable("x")), (None, None));
    }
}
