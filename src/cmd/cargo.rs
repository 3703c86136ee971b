//! `cargo ffuzz`: builds, runs, fuzzes and minimizes harnesses of cargo-fuzz (`fuzz_target!` of the crate
//! `libfuzzer-sys`) without changes to them.

mod artifacts;
mod coverage;
mod harnesses;
mod minimize;
mod new;
mod words;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

use super::exit::Failure;
use crate::config::env::Environment;
use harnesses::{BuildOptions, CargoPackage, Harnesses};
use words::CargoWords;

/// The command as users call it.
pub(super) const NAME: &str = "cargo ffuzz";
/// Program name for scripts that call `cargo fuzz`: it builds in cargo-fuzz's folder.
pub(super) const FUZZ: &str = "cargo-fuzz";
/// cargo-fuzz's folder of seeds, below the folder of the harnesses.
const CORPUS: &str = "corpus";
/// Our output folder, below the folder of the harnesses.
const OUTPUT: &str = "ffuzz-out";
/// cargo-fuzz's folder of failing inputs, below the folder of the harnesses.
const ARTIFACTS: &str = "artifacts";
/// The first seed if there is no corpus.
const FIRST_SEED: &[u8] = b"hello";

#[derive(Debug, Parser)]
#[command(
    name = "cargo-ffuzz",
    bin_name = NAME,
    about = "Build, fuzz and run harnesses of cargo-fuzz",
    after_help = "The harnesses are those of fuzz/ (cargo ffuzz init makes that folder), or the programs of the \
                  package itself. Builds are in target/ffuzz.\n\nExamples:\n  \
                  cargo ffuzz run parse\n  \
                  cargo ffuzz run parse -j 8 -V 3600\n  \
                  cargo ffuzz run parse -- -max_total_time=3600 -max_len=4096\n  \
                  cargo ffuzz run parse fuzz/ffuzz-out/parse/default/crashes/id:000000*\n  \
                  cargo +nightly ffuzz run --sanitizer address parse\n  \
                  cargo ffuzz cmin parse"
)]
pub(super) struct Args {
    #[command(subcommand)]
    action: CargoAction,
}

#[derive(Debug, Subcommand)]
enum CargoAction {
    /// Make a package of harnesses, fuzz/, with a first one
    Init {
        #[command(flatten)]
        package: CargoPackage,
        /// Name of the harness
        #[arg(short, long, value_name = "NAME", default_value = "fuzz_target_1")]
        target: String,
    },
    /// Add a harness
    Add {
        #[command(flatten)]
        package: CargoPackage,
        /// Its name
        harness: String,
    },
    /// List the harnesses
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        package: CargoPackage,
    },
    /// Build one harness, or all, and print the paths
    #[command(visible_alias = "b")]
    Build {
        #[command(flatten)]
        build: BuildOptions,
        /// Without it: all
        harness: Option<String>,
    },
    /// Check that one harness, or all, compile
    #[command(visible_alias = "c")]
    Check {
        #[command(flatten)]
        build: BuildOptions,
        /// Without it: all
        harness: Option<String>,
    },
    /// Print what a harness makes of an input: its argument, as Debug shows it
    Fmt {
        #[command(flatten)]
        build: BuildOptions,
        /// Name of the harness
        harness: String,
        /// The file
        input: PathBuf,
    },
    /// Build a harness and fuzz it, with the seeds of corpus/HARNESS, into ffuzz-out/HARNESS; or run it with files
    ///
    /// A campaign that is there already goes on. With files, or with -runs=0, the harness runs them, or the corpus,
    /// and nothing is fuzzed.
    #[command(visible_alias = "r")]
    Run {
        #[command(flatten)]
        build: BuildOptions,
        /// Number of campaigns side by side
        #[arg(short, long, value_name = "N")]
        jobs: Option<u32>,
        /// Name of the harness
        harness: String,
        /// A folder of seeds, or files to run; then options of ffuzz (-i and -o replace these folders), or those
        /// of libFuzzer, with which the first crash ends the run, and is in artifacts/HARNESS
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "INPUT|OPTION")]
        words: Vec<OsString>,
    },
    /// Minimize corpus/HARNESS together with what campaigns have found, or another folder, in place
    ///
    /// What crashes is in artifacts/HARNESS afterwards, and the corpus as it was in ffuzz-out/corpus-before.
    Cmin {
        #[command(flatten)]
        build: BuildOptions,
        /// Name of the harness
        harness: String,
        /// A folder to minimize instead; then options of ffuzz-cmin, or of libFuzzer
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FOLDER|OPTION")]
        words: Vec<OsString>,
    },
    /// Minimize an input, for example one that crashes, and print where the result is (in artifacts/HARNESS)
    Tmin {
        #[command(flatten)]
        build: BuildOptions,
        /// Name of the harness
        harness: String,
        /// Number of runs, as libFuzzer's -runs [default: until nothing can be removed]
        #[arg(short, long, value_name = "N")]
        runs: Option<u32>,
        /// The file
        input: PathBuf,
        /// Options of ffuzz-tmin, or of libFuzzer
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<OsString>,
    },
    /// Write which source lines the corpus and what campaigns have found reach to coverage/HARNESS/lcov.info
    #[command(visible_alias = "cov")]
    Coverage {
        #[command(flatten)]
        build: BuildOptions,
        /// Name of the harness
        harness: String,
        /// Folders of inputs instead
        #[arg(value_name = "FOLDER")]
        folders: Vec<PathBuf>,
    },
}

pub(super) fn run(program: &str, mut words: Vec<OsString>) -> Result<ExitCode, Failure> {
    // cargo passes the name of the subcommand as the first word.
    if words.first().is_some_and(|word| word == "ffuzz" || (word == "fuzz" && program == FUZZ)) {
        words.remove(0);
    }
    let Some(args) = super::parse::<Args>(program, words)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let builder = Builder { environment: Environment::read(), by_cargo_fuzz: program == FUZZ };
    builder.act(args.action)
}

/// A harness and the program that was built of it.
struct BuiltHarness {
    harnesses: Harnesses,
    name: String,
    program: PathBuf,
}

/// Finds and builds harnesses.
struct Builder {
    environment: Environment,
    /// As cargo-fuzz does.
    by_cargo_fuzz: bool,
}

impl Builder {
    fn find(&self, package: &CargoPackage) -> Result<Harnesses, Failure> {
        let harnesses = Harnesses::find(package, &self.environment)?;
        Ok(if self.by_cargo_fuzz { harnesses.built_as_by_cargo_fuzz() } else { harnesses })
    }

    fn build(&self, build: &BuildOptions, name: String) -> Result<BuiltHarness, Failure> {
        let harnesses = self.find(&build.package)?;
        let program = harnesses.build_one(build, &name)?;
        Ok(BuiltHarness { harnesses, name, program })
    }

    fn act(&self, action: CargoAction) -> Result<ExitCode, Failure> {
        match action {
            CargoAction::Init { package, target } => {
                let file = new::init(&package, &target, &self.environment)?;
                super::print(&format!("{}\n", file.display()))
            }
            CargoAction::Add { package, harness } => {
                let file = new::add(&package, &harness, &self.environment)?;
                super::print(&format!("{}\n", file.display()))
            }
            CargoAction::Check { build, harness } => {
                let harnesses = self.find(&build.package)?;
                match harnesses.check(&build, harness.as_deref())?.success() {
                    true => Ok(ExitCode::SUCCESS),
                    false => {
                        Err(Failure::new("the harnesses do not compile", "see the messages above"))
                    }
                }
            }
            CargoAction::Fmt { build, harness, input } => {
                let BuiltHarness { program, .. } = self.build(&build, harness)?;
                super::print(&argument_of(&program, &input)?)
            }
            CargoAction::List { package } => {
                let harnesses = self.find(&package)?;
                super::print(&lines(harnesses.names.iter()))
            }
            CargoAction::Build { build, harness } => {
                let harnesses = self.find(&build.package)?;
                let built = harnesses.build(&build, harness.as_deref())?;
                super::print(&lines(built.iter().map(|path| path.display())))
            }
            CargoAction::Run { build, jobs, harness, words } => {
                let words = CargoWords::split(words);
                let task = Task::of(&words, jobs)?;
                let built = self.build(&build, harness)?;
                task.exec(&built)
            }
            CargoAction::Cmin { build, harness, words } => {
                let built = self.build(&build, harness)?;
                minimize::corpus(&built, &CargoWords::split(words))
            }
            CargoAction::Coverage { build, harness, folders } => {
                let built = self.build(&build, harness)?;
                coverage::run(&built, &folders)
            }
            CargoAction::Tmin { build, harness, runs, input, options } => {
                let words = CargoWords::split(options);
                if let Some(other) = words.inputs.first() {
                    let cause = format!("{} is one file too many", other.display());
                    return Err(Failure::usage(cause, "minimize one input at a time"));
                }
                let is_libfuzzers = words.are_libfuzzers()?;
                let built = self.build(&build, harness)?;
                let options = &words.options;
                match runs.is_some() || is_libfuzzers {
                    true => artifacts::minimize(&built, &input, runs, options),
                    false => minimize::input(&built, &input, options),
                }
            }
        }
    }
}

/// The text that the crate `libfuzzer-sys` writes to the file in this variable.
fn argument_of(program: &Path, input: &Path) -> Result<String, Failure> {
    let mut command = Command::new(program);
    let run = command.arg(input).env("RUST_LIBFUZZER_DEBUG_PATH", "/dev/stdout").output();
    let run = run.map_err(|error| cannot_start(&error))?;
    if run.stdout.is_empty() {
        let said = String::from_utf8_lossy(&run.stderr);
        let cause = format!("the harness prints nothing of {}: {}", input.display(), said.trim());
        return Err(Failure::new(cause, "fuzz_target! of libfuzzer-sys 0.4 or newer is needed"));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

fn lines(all: impl Iterator<Item = impl std::fmt::Display>) -> String {
    all.map(|line| format!("{line}\n")).collect()
}

/// Action of `run`.
enum Task<'a> {
    /// The harness runs inputs or fuzzes by itself, with libFuzzer's options.
    Run {
        words: &'a CargoWords,
        jobs: Option<u32>,
    },
    Fuzz {
        seeds: Option<&'a Path>,
        options: Vec<OsString>,
    },
}

impl<'a> Task<'a> {
    fn of(words: &'a CargoWords, jobs: Option<u32>) -> Result<Self, Failure> {
        for input in &words.inputs {
            let remedy = "seeds and inputs come before options, and are files or one folder";
            fs::metadata(input).map_err(Failure::cannot_read(input, remedy))?;
        }
        let options = || {
            let jobs = jobs.iter().flat_map(|jobs| ["-j".into(), jobs.to_string().into()]);
            jobs.chain(words.options.iter().cloned()).collect()
        };
        let is_file = |input: &PathBuf| !input.is_dir();
        let has_files = !words.inputs.is_empty() && words.inputs.iter().all(is_file);
        match &*words.inputs {
            _ if words.only_runs() || has_files => match jobs {
                None => Ok(Self::Run { words, jobs: None }),
                Some(_) => {
                    let cause = "--jobs cannot be used when running inputs";
                    Err(Failure::usage(cause, "leave it out"))
                }
            },
            _ if words.are_libfuzzers()? => Ok(Self::Run { words, jobs }),
            [] => Ok(Self::Fuzz { seeds: None, options: options() }),
            [seeds] => Ok(Self::Fuzz { seeds: Some(seeds), options: options() }),
            [_, other, ..] => {
                let cause = format!("{} is one folder of seeds too many", other.display());
                Err(Failure::usage(cause, "copy the seeds into one folder"))
            }
        }
    }

    /// Runs the harness, or replaces this process by ffuzz.
    fn exec(self, built: &BuiltHarness) -> Result<ExitCode, Failure> {
        match self {
            Self::Run { words, jobs } => artifacts::run(built, words, jobs),
            Self::Fuzz { seeds, options } => {
                let mut command = fuzz(built, seeds, &options)?;
                Err(cannot_start(&command.exec()))
            }
        }
    }
}

fn fuzz(
    built: &BuiltHarness,
    seeds: Option<&Path>,
    options: &[OsString],
) -> Result<Command, Failure> {
    let is_given = |option: &str| options.iter().any(|word| word == option);
    let mut command = Command::new(own_program()?);
    command.arg("fuzz");
    if let Some(seeds) = seeds {
        command.arg("-i").arg(seeds);
    } else if !is_given("-i") {
        let corpus = built.corpus();
        first_seed(&corpus).map_err(|error| cannot_write(&corpus, &error))?;
        command.arg("-i").arg(corpus);
    }
    if !is_given("-o") {
        command.arg("-o").arg(built.output());
        command.env("AFL_AUTORESUME", "1");
    }
    command.args(options).arg("--").arg(&built.program);
    Ok(command)
}

impl BuiltHarness {
    /// Folder with its seeds.
    fn corpus(&self) -> PathBuf {
        self.harnesses.folder.join(CORPUS).join(&self.name)
    }

    /// Output folder of its campaigns.
    fn output(&self) -> PathBuf {
        self.harnesses.folder.join(OUTPUT).join(&self.name)
    }

    /// Folder with the inputs that fail.
    fn artifacts(&self) -> PathBuf {
        self.harnesses.folder.join(ARTIFACTS).join(&self.name)
    }
}

/// Creates a first seed if the folder has none.
fn first_seed(corpus: &Path) -> io::Result<()> {
    fs::create_dir_all(corpus)?;
    if fs::read_dir(corpus)?.next().is_none() {
        fs::write(corpus.join("seed"), FIRST_SEED)?;
    }
    Ok(())
}

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::new(error, "start ffuzz by its whole path"))
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::new(format!("cannot start: {error}"), "start cargo ffuzz by its whole path")
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    let cause = format!("cannot write to {}: {error}", folder.display());
    Failure::new(cause, "check its permissions and the free space")
}
