//! `ffuzz oss-build`: builds an OSS-Fuzz or ClusterFuzzLite project with its own `build.sh`, without a container.
//!
//! Implements OSS-Fuzz's contract: variables, folders, and the contents of `$OUT`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Parser, ValueEnum};

use super::exit::{CANNOT, Failure};
use super::tool::say;
use crate::config::env::Environment;
use crate::harness::check;
use crate::harness::dockerfile::{Copies, Dockerfile};

const SCRIPT: &str = "build.sh";
const CLUSTERFUZZLITE: &str = ".clusterfuzzlite";
/// OSS-Fuzz's compiler flags for all sanitizers.
const FLAGS: &str = "-O1 -fno-omit-frame-pointer -gline-tables-only \
    -Wno-error=incompatible-function-pointer-types -Wno-error=int-conversion -Wno-error=deprecated-declarations \
    -Wno-error=implicit-function-declaration -Wno-error=implicit-int -Wno-error=unknown-warning-option \
    -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION";
const COVERAGE_FLAGS: &str = "-fsanitize=fuzzer-no-link";
const RUSTFLAGS: &str = "--cfg fuzzing -Cdebuginfo=1 -Cforce-frame-pointers";
/// Checks of UndefinedBehaviorSanitizer that end a run.
const UNDEFINED: &str = "array-bounds,bool,builtin,enum,function,integer-divide-by-zero,null,object-size,return,\
    returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound,vptr";

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-oss-build",
    about = "Build a project of OSS-Fuzz by its build.sh, without a container",
    after_help = "Sources are copied, so the project stays as it is. The harnesses are in OUTPUT/out afterwards, each \
                  with NAME_seed_corpus.zip, NAME.dict and NAME.options, which ffuzz finds there.\n\nExamples:\n  \
                  ffuzz-oss-build . && ffuzz -o findings -- ffuzz-oss/out/parse_fuzzer\n  \
                  ffuzz-oss-build --source expat=~/expat oss-fuzz/projects/expat\n  \
                  ffuzz-oss-build --clone --sanitizer undefined oss-fuzz/projects/cjson"
)]
pub(super) struct Args {
    /// A repository with .clusterfuzzlite/, or a folder of oss-fuzz/projects, with build.sh
    project: PathBuf,
    /// Folder for out/, work/ and src/
    #[arg(short, long, value_name = "FOLDER", default_value = "ffuzz-oss")]
    output: PathBuf,
    /// Sources that the Dockerfile clones into a folder of this name; can be repeated
    #[arg(long, value_name = "NAME=FOLDER")]
    source: Vec<String>,
    /// Clone what the Dockerfile clones, as far as --source does not name it
    #[arg(long)]
    clone: bool,
    /// Sanitizer of the build
    #[arg(short, long, value_enum, default_value_t = OssSanitizer::Address)]
    sanitizer: OssSanitizer,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OssSanitizer {
    Address,
    Undefined,
    Memory,
    Thread,
    None,
}

impl OssSanitizer {
    fn flags(self) -> String {
        match self {
            Self::Address => "-fsanitize=address -fsanitize-address-use-after-scope".into(),
            Self::Undefined => {
                format!(
                    "-fsanitize={UNDEFINED},unsigned-integer-overflow -fno-sanitize-recover={UNDEFINED}"
                )
            }
            Self::Memory => "-fsanitize=memory -fsanitize-memory-track-origins".into(),
            Self::Thread => "-fsanitize=thread".into(),
            Self::None => String::new(),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let project = Project::find(&args.project)?;
    let output =
        std::path::absolute(&args.output).map_err(|error| cannot_write(&args.output, &error))?;
    let [source, work, out, tools] = ["src", "work", "out", "tools"].map(|name| output.join(name));
    for folder in [&source, &work, &out, &tools] {
        clear(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let places = [("SRC", &*source), ("WORK", &*work), ("OUT", &*out)];
    let mut dockerfile = Dockerfile::parse(&project.dockerfile, &places);
    say(false, &format!("[*] Copying the sources to {}", source.display()));
    project.stage(&mut dockerfile, &source, &output)?;
    fetch(&dockerfile, &args, &source)?;
    link_tools(&tools).map_err(|error| cannot_write(&tools, &error))?;
    for other in &dockerfile.others {
        say(false, &format!("[!] Not run of the Dockerfile: {other}"));
    }
    let folder = &dockerfile.folder;
    if !folder.is_dir() {
        let cause = format!("the build begins in {}, which is not there", folder.display());
        return Err(Failure::new(
            cause,
            "see the Dockerfile, and name its sources: --source NAME=FOLDER",
        ));
    }
    say(false, &format!("[*] Running {SCRIPT} in {}", folder.display()));
    let mut build = Command::new("bash");
    build.arg("-eux").arg(source.join(SCRIPT)).current_dir(folder).stdin(Stdio::null());
    build
        .envs(variables(&args, &project, &places, &tools))
        .envs(dockerfile.variables.iter().cloned());
    let status = build.status().map_err(|error| {
        Failure::new(
            format!("cannot start bash: {error}"),
            "install it: build scripts are written for it",
        )
    })?;
    if !status.success() {
        let packages = dockerfile.packages.join(" ");
        let remedy = match packages.is_empty() {
            true => "see its last command above".to_owned(),
            false => format!("see its last command above; the Dockerfile installs: {packages}"),
        };
        return Err(Failure::new(format!("{SCRIPT} failed ({status})"), remedy));
    }
    report(&out)
}

/// Checks each harness. The exit code is 1 if one fails.
fn report(out: &Path) -> Result<ExitCode, Failure> {
    let harnesses = check::harnesses(out);
    if harnesses.is_empty() {
        let cause = format!("the build has left no harness in {}", out.display());
        return Err(Failure::new(
            cause,
            format!("{SCRIPT} has to copy them to $OUT, with LLVMFuzzerTestOneInput in them"),
        ));
    }
    let mut code = ExitCode::SUCCESS;
    for harness in harnesses {
        let shown = harness.display();
        match check::check(&harness) {
            Ok(line) => say(false, &format!("[+] {shown}: {line}")),
            Err(wrong) => {
                say(false, &format!("[-] {shown}: {wrong}"));
                code = ExitCode::from(CANNOT);
            }
        }
    }
    Ok(code)
}

/// Folders of a project's scripts and of the files that its Dockerfile may copy.
struct Project {
    name: String,
    scripts: PathBuf,
    context: PathBuf,
    dockerfile: String,
    language: String,
}

impl Project {
    fn find(folder: &Path) -> Result<Self, Failure> {
        let remedy = "name the folder of a project";
        let context = fs::canonicalize(folder).map_err(Failure::cannot_read(folder, remedy))?;
        let places = [context.join(CLUSTERFUZZLITE), context.clone()];
        let Some(scripts) = places.into_iter().find(|folder| folder.join(SCRIPT).is_file()) else {
            let cause =
                format!("{} has neither {SCRIPT} nor {CLUSTERFUZZLITE}/{SCRIPT}", folder.display());
            return Err(Failure::new(
                cause,
                "name a folder of oss-fuzz/projects, or a repository with .clusterfuzzlite/",
            ));
        };
        let text = |name: &str| fs::read_to_string(scripts.join(name)).unwrap_or_default();
        let settings = text("project.yaml");
        let language = settings.lines().find_map(|line| line.strip_prefix("language:"));
        let language = language.unwrap_or("c++").trim().trim_matches(['"', '\'']).to_owned();
        let name = context.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let dockerfile = text("Dockerfile");
        Ok(Self { name, scripts, context, dockerfile, language })
    }

    /// Copies the files that the Dockerfile copies into `source`, or the whole folder without a Dockerfile. Skips
    /// `except`.
    fn stage(
        &self,
        dockerfile: &mut Dockerfile,
        source: &Path,
        except: &Path,
    ) -> Result<(), Failure> {
        if self.dockerfile.is_empty() {
            dockerfile.folder = source.join(&self.name);
            dockerfile.copies.push(Copies {
                from: vec![".".into()],
                to: dockerfile.folder.clone(),
                into_folder: true,
            });
        }
        for Copies { from, to, into_folder } in &dockerfile.copies {
            if !to.starts_with(source) {
                say(false, &format!("[!] Not copied to {}: it is outside of $SRC", to.display()));
                continue;
            }
            for word in from {
                for path in matching(&self.context, word) {
                    let to = match path.file_name() {
                        // The content of a folder is copied, as in a container.
                        Some(name) if *into_folder && !path.is_dir() => to.join(name),
                        _ => to.clone(),
                    };
                    copy(&path, &to, except).map_err(|error| cannot_write(&to, &error))?;
                }
            }
        }
        let script = source.join(SCRIPT);
        copy(&self.scripts.join(SCRIPT), &script, except)
            .map_err(|error| cannot_write(&script, &error))
    }
}

/// Fetches the sources that the Dockerfile clones.
fn fetch(dockerfile: &Dockerfile, args: &Args, source: &Path) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for clone in &dockerfile.clones {
        if !clone.to.starts_with(source) {
            say(false, &format!("[!] Not cloned: {}: it is outside of $SRC", clone.line()));
            continue;
        }
        let name = clone.to.file_name().unwrap_or_default().to_string_lossy();
        let given = args.source.iter().filter_map(|word| word.split_once('='));
        let given = given.filter(|(given, _)| *given == name).map(|(_, folder)| folder).next_back();
        if let Some(folder) = given {
            copy(Path::new(folder), &clone.to, &args.output).map_err(|error| {
                Failure::new(
                    format!("cannot copy {folder}: {error}"),
                    format!("check --source {name}=FOLDER"),
                )
            })?;
        } else if args.clone {
            let mut git = Command::new("git");
            git.arg("clone").args(&clone.words).arg(&clone.to).stdin(Stdio::null());
            let status = git.status();
            if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
                let cause = format!("{} failed", clone.line());
                return Err(Failure::new(
                    cause,
                    format!("give the sources: --source {name}=FOLDER"),
                ));
            }
        } else if !clone.to.exists() {
            missing.push((name.into_owned(), clone.line()));
        }
    }
    match missing.first() {
        None => Ok(()),
        Some((name, line)) => {
            let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
            let cause =
                format!("sources that the Dockerfile clones are missing: {}", names.join(", "));
            Err(Failure::new(
                cause,
                format!("--clone clones them ({line}); --source {name}=FOLDER names what is there"),
            ))
        }
    }
}

/// Links the compilers, and `cargo fuzz` for scripts that build Rust.
fn link_tools(folder: &Path) -> io::Result<()> {
    let own = std::env::current_exe()?;
    for name in ["ffuzz", "ffuzz-cc", "ffuzz-c++", "cargo-ffuzz", "cargo-fuzz"] {
        symlink(&own, folder.join(name))?;
    }
    Ok(())
}

/// The variables of the contract.
fn variables(
    args: &Args,
    project: &Project,
    places: &[(&str, &Path)],
    tools: &Path,
) -> Vec<(&'static str, OsString)> {
    let mut all: Vec<(&'static str, OsString)> = Vec::new();
    for (name, folder) in places {
        let name = ["SRC", "WORK", "OUT"].into_iter().find(|known| known == name);
        all.extend(name.map(|name| (name, folder.as_os_str().to_owned())));
    }
    let flags = args.sanitizer.flags();
    let c = format!("{FLAGS} {flags} {COVERAGE_FLAGS}");
    let search = Environment::read().get("PATH").map_or_else(OsString::new, OsStr::to_owned);
    let mut path = tools.as_os_str().to_owned();
    path.push(":");
    path.push(search);
    let (cc, cxx) = (tools.join("ffuzz-cc"), tools.join("ffuzz-c++"));
    all.extend([
        ("PATH", path),
        ("CC", cc.into()),
        ("CXX", cxx.clone().into()),
        ("CCC", cxx.into()),
        ("CFLAGS", c.clone().into()),
        ("CXXFLAGS", c.into()),
        ("SANITIZER_FLAGS", flags.into()),
        ("COVERAGE_FLAGS", COVERAGE_FLAGS.into()),
        ("LIB_FUZZING_ENGINE", "-fsanitize=fuzzer".into()),
        ("LIB_FUZZING_ENGINE_DEPRECATED", "/usr/lib/libFuzzingEngine.a".into()),
        ("FUZZER_LDFLAGS", "".into()),
        ("FUZZING_ENGINE", "libfuzzer".into()),
        ("SANITIZER", args.sanitizer.name().into()),
        ("ARCHITECTURE", std::env::consts::ARCH.into()),
        ("FUZZING_LANGUAGE", project.language.clone().into()),
        ("PROJECT_NAME", project.name.clone().into()),
        ("RUSTFLAGS", RUSTFLAGS.into()),
        // A sanitizer must not end the build when configure runs programs.
        ("ASAN_OPTIONS", "detect_leaks=0".into()),
    ]);
    all
}

/// Paths below `context` that match a word of `COPY`; `*` is only allowed in the last component.
fn matching(context: &Path, word: &str) -> Vec<PathBuf> {
    let word = word.trim_start_matches('/');
    let (folder, pattern) = word.rsplit_once('/').unwrap_or(("", word));
    let Some((start, end)) = pattern.split_once('*') else { return vec![context.join(word)] };
    let entries = fs::read_dir(context.join(folder)).into_iter().flatten().flatten();
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
    found.sort();
    found
}

/// Copies a file or the content of a folder, with times and permissions. Links stay links.
fn copy(from: &Path, to: &Path, except: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(from)?;
    if std::path::absolute(from).is_ok_and(|from| from == except) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    if data.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if data.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()), except)?;
        }
        return Ok(());
    }
    if !data.is_file() {
        return Ok(());
    }
    fs::copy(from, to)?;
    // make compares times.
    let times = FileTimes::new().set_modified(data.modified()?);
    File::options().append(true).open(to).and_then(|file| file.set_times(times))
}

fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(folder),
    }
}

fn cannot_write(place: &Path, error: &io::Error) -> Failure {
    let cause = format!("cannot write to {}: {error}", place.display());
    Failure::new(
        cause,
        "check its permissions and the free space, or choose another folder with -o",
    )
}
