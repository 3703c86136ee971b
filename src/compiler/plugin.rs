//! Provides passes and runtime files of domains for this clang. Files built for its LLVM are used directly; others are
//! compiled on first use and cached under a name derived from all inputs.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::CompilerError;
use super::declared::{self, Declaration};
use super::domains::{DomainSource, Pair};
use super::env::Env;
use super::toolchain::Clang;
use ffuzz_assets::{Assets, AssetsError};
use ffuzz_sys::file::Locked;

const HEADERS: &[&str] = &["h", "hh", "hpp", "inc"];
/// File name extension of precompiled headers.
const PRECOMPILED: &str = "pch";

/// Mark that `ffuzz-domain.hpp` writes into every pass, before the version.
const BUILT_FOR: &[u8] = b"ffuzz pass for LLVM ";

/// A pass spends most of its time in LLVM's library; more than -O1 only slows the build.
const PASS_FLAGS: &str = "-std=c++17 -O1 -fPIC -fno-rtti -fno-exceptions -fvisibility=hidden";
const PASS_LINK_FLAGS: [&str; 2] = ["-shared", "-Wl,-s"];
/// Plain code that every linker accepts; the header is included automatically.
const RUNTIME_FLAGS: &str = "-O2 -fPIC -std=gnu11 -ffunction-sections -fno-lto -D__AFL_COMPILER=1 \
     -DFFUZZ_DOMAIN_RUNTIME -include waypoints.h";

/// The pass of all built-in domains. It has further tasks, see [`extras`].
pub(super) const BUILTIN: &str = "builtin";
/// Task of the pass: collect words for a dictionary.
const WORDS: &str = "words";
/// Task of the pass: add function versions that log comparisons.
const LOG: &str = "log";
/// Task of the pass: record which code is behind an edge.
const FLOW: &str = "flow";
const CONDITIONS: &str = "conditions";
const NEVER_ZERO: &str = "never-zero";
const DENY_EXEC: &str = "deny-exec";

/// Tasks of the built-in pass apart from domains.
pub(super) fn extras(env: &Env) -> Vec<&'static str> {
    let wanted = [
        (WORDS, env.words),
        (LOG, env.log && !env.no_coverage),
        (FLOW, !env.no_coverage),
        (CONDITIONS, !env.no_coverage),
        (NEVER_ZERO, env.never_zero && !env.no_coverage),
        (DENY_EXEC, env.deny_exec),
    ];
    wanted.into_iter().filter_map(|(name, wanted)| wanted.then_some(name)).collect()
}

/// Warning text: the features missing without the pass.
pub(super) fn without_pass(env: &Env) -> String {
    let lacks = |name: &&str| match *name {
        WORDS => "no words are collected for a dictionary",
        LOG => "comparisons are not logged",
        FLOW => "which code is behind an edge is known as far as machine code shows it",
        CONDITIONS => "`a && b` is one branch for coverage",
        NEVER_ZERO => "edges that are hit 256 times are missed",
        _ => "calls that start programs do not abort",
    };
    extras(env).iter().map(lacks).collect::<Vec<_>>().join(", and ")
}

/// Finds or builds the files of domains.
#[derive(Debug)]
pub struct Workshop<'a> {
    pub assets: &'a Assets,
    pub clang: &'a Clang,
}

impl Workshop<'_> {
    /// The passes of the domains; built-in and declared domains share one.
    pub fn passes(&self, domains: &[DomainSource]) -> Result<Vec<PathBuf>, CompilerError> {
        let folder = self.assets.directory.clone();
        let builtin = Pair { name: BUILTIN.into(), folder };
        let mut passes: Vec<PathBuf> = vec![];
        for domain in domains {
            let pass = match domain {
                DomainSource::Pair(pair) if !self.is_builtin(pair) => self.pass(pair)?,
                DomainSource::Pair(_) | DomainSource::Declared(_) => self.pass(&builtin)?,
            };
            if !passes.contains(&pass) {
                passes.push(pass);
            }
        }
        Ok(passes)
    }

    /// The built-in pass, which also collects words and changes counters.
    pub(crate) fn builtin_pass(&self) -> Result<PathBuf, CompilerError> {
        self.pass(&Pair { name: BUILTIN.into(), folder: self.assets.directory.clone() })
    }

    /// Names of the domains that the shared pass must add.
    #[must_use]
    pub fn builtin(&self, domains: &[DomainSource]) -> Vec<String> {
        let name = |domain: &DomainSource| match domain {
            DomainSource::Pair(pair) if self.is_builtin(pair) => Some(pair.name.clone()),
            DomainSource::Pair(_) | DomainSource::Declared(_) => None,
        };
        domains.iter().filter_map(name).collect()
    }

    fn is_builtin(&self, pair: &Pair) -> bool {
        pair.folder == self.assets.directory
    }

    /// Runtime objects of the domains, in order.
    pub fn runtimes(&self, domains: &[DomainSource]) -> Result<Vec<PathBuf>, CompilerError> {
        let object = |domain: &DomainSource| match domain {
            DomainSource::Pair(pair) => self.runtime(pair),
            DomainSource::Declared(declared) => self.declared_runtime(declared),
        };
        domains.iter().map(object).collect()
    }

    /// Input file of the pass for declared domains, if there are any.
    pub(crate) fn declarations(
        &self,
        domains: &[DomainSource],
    ) -> Result<Option<PathBuf>, CompilerError> {
        let declared = domains.iter().filter_map(|domain| match domain {
            DomainSource::Declared(declared) => Some(declared),
            DomainSource::Pair(_) => None,
        });
        let text = declared::text(declared);
        if text.is_empty() {
            return Ok(None);
        }
        keep_text(self.assets, &text, "txt").map(Some)
    }

    /// The pass of a pair. A source next to the runtime file is compiled. A pass built for another LLVM is compiled
    /// from its bundled source, if it has one.
    fn pass(&self, pair: &Pair) -> Result<PathBuf, CompilerError> {
        if let Some(source) = pair.file("pass.cc") {
            return self.build_pass(&pair.name, &source);
        }
        let built = pair.file("pass.so");
        let version = built.as_ref().and_then(|path| llvm_of(&fs::read(path).ok()?));
        if version == Some(self.clang.major)
            && let Some(built) = built
        {
            return Ok(built);
        }
        let embedded = Pair { folder: pair.folder.join("src"), name: pair.name.clone() };
        match (embedded.file("pass.cc"), built) {
            (Some(source), _) => self.build_pass(&pair.name, &source),
            (None, Some(pass)) => {
                Err(CompilerError::OtherLlvm { pass, version, major: self.clang.major })
            }
            (None, None) => {
                let missing = pair.folder.join(format!("src/waypoints-{}-pass.cc", pair.name));
                Err(CompilerError::HalfADomain { name: pair.name.clone(), missing })
            }
        }
    }

    fn build_pass(&self, name: &str, source: &Path) -> Result<PathBuf, CompilerError> {
        let headers = self.assets.directory.join("src");
        let made =
            self.made(&format!("waypoints-{name}-pass"), "so", source, &headers, PASS_FLAGS)?;
        self.once(&made, |output| {
            let major = self.clang.major;
            let llvm = llvm_config(self.clang).ok_or_else(|| CompilerError::NoLlvm {
                domain: name.to_owned(),
                major,
                program: format!("llvm-config-{major}"),
            })?;
            let compile = |precompiled: Option<&Path>| {
                let mut command = pass_compiler(&llvm, &headers);
                command.args(PASS_LINK_FLAGS);
                command.args(
                    precompiled.iter().flat_map(|path| ["-include-pch".as_ref(), path.as_os_str()]),
                );
                self.prefer(&headers.join("fuzzfactory.hpp"), source, &mut command)?;
                self.compile(command, source, output)
            };
            let Some(precompiled) = self.precompiled(&llvm, &headers) else { return compile(None) };
            compile(Some(&precompiled)).or_else(|_| {
                // LLVM's headers may have changed since. An error in the source appears again.
                compile(None)?;
                let _ = fs::remove_file(&precompiled);
                Ok(())
            })
        })
    }

    /// The precompiled LLVM headers, which save most of a pass's compile time. They take 60 MB per LLVM version; None
    /// if they cannot be stored.
    fn precompiled(&self, llvm: &LlvmConfig, headers: &Path) -> Option<PathBuf> {
        let source = headers.join("ffuzz-domain.hpp");
        let flags = format!("{} {PASS_FLAGS}", llvm.flags);
        let made = self.made("ffuzz-domain", PRECOMPILED, &source, headers, &flags).ok()?;
        let build = |output: &Path| {
            self.forget_precompiled();
            let mut command = pass_compiler(llvm, headers);
            command.args(["-x", "c++-header", "-fpch-instantiate-templates"]);
            self.compile(command, &source, output)
        };
        self.once(&made, build).ok()
    }

    /// Removes the precompiled headers of all ffuzz versions for this LLVM.
    fn forget_precompiled(&self) {
        for version in fs::read_dir(&self.assets.root).into_iter().flatten().flatten() {
            let folder = version.path().join(format!("llvm-{}", self.clang.major));
            for path in sources_in(&folder, &[PRECOMPILED]) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn runtime(&self, pair: &Pair) -> Result<PathBuf, CompilerError> {
        match (pair.file("rt.c"), pair.file("rt.o")) {
            (Some(source), _) => self.build_runtime(&pair.name, &source),
            (None, Some(object)) => Ok(object),
            (None, None) => {
                let missing = pair.folder.join(format!("waypoints-{}-rt.c", pair.name));
                Err(CompilerError::HalfADomain { name: pair.name.clone(), missing })
            }
        }
    }

    fn declared_runtime(&self, declared: &Declaration) -> Result<PathBuf, CompilerError> {
        let source = keep_text(self.assets, &declared::runtime_source(declared), "c")?;
        self.build_runtime(&declared.name, &source)
    }

    fn build_runtime(&self, name: &str, source: &Path) -> Result<PathBuf, CompilerError> {
        let headers = self.assets.directory.join("include");
        let stem = format!("waypoints-{name}-rt");
        let made = self.made(&stem, "o", source, &headers, RUNTIME_FLAGS)?;
        self.once(&made, |output| {
            let mut command = Command::new(&self.clang.path);
            command.args(["-x", "c", "-c", "-I"]).arg(&headers).args(RUNTIME_FLAGS.split(' '));
            self.prefer(&headers.join("waypoints.h"), source, &mut command)?;
            self.compile(command, source, output)
        })
    }

    /// Makes a pass include `header` instead of one next to its source: a compiler searches there first, and
    /// FuzzFactory's folder has headers for its own LLVM.
    fn prefer(
        &self,
        header: &Path,
        source: &Path,
        command: &mut Command,
    ) -> Result<(), CompilerError> {
        let beside = source.with_file_name(header.file_name().unwrap_or_default());
        if beside == *header || !beside.exists() {
            return Ok(());
        }
        let root =
            serde_json::json!({ "name": beside, "type": "file", "external-contents": header });
        let overlay = serde_json::json!({ "version": 0, "roots": [root] }).to_string();
        command.arg("-ivfsoverlay").arg(keep_text(self.assets, &overlay, "yaml")?);
        Ok(())
    }

    /// Path of a cached result. The name depends on the source, on the headers in our folder and its own, on the flags
    /// and on the LLVM version.
    fn made(
        &self,
        stem: &str,
        extension: &str,
        source: &Path,
        headers: &Path,
        flags: &str,
    ) -> Result<PathBuf, CompilerError> {
        let mut hasher = DefaultHasher::new();
        let beside = source.parent().unwrap_or(Path::new(""));
        let mut inputs = vec![source.to_owned()];
        let own = sources_in(headers, &[HEADERS, &["cc"]].concat());
        inputs.extend(own.into_iter().chain(sources_in(beside, HEADERS)));
        for path in inputs {
            let content =
                fs::read(&path).map_err(|source| CompilerError::Source { path, source })?;
            content.hash(&mut hasher);
        }
        flags.hash(&mut hasher);
        let folder = self.assets.made.join(format!("llvm-{}", self.clang.major));
        Ok(folder.join(format!("{stem}-{:016x}.{extension}", hasher.finish())))
    }

    /// Builds the file unless it exists. A parallel build waits for it.
    fn once(
        &self,
        made: &Path,
        make: impl FnOnce(&Path) -> Result<(), CompilerError>,
    ) -> Result<PathBuf, CompilerError> {
        if made.exists() {
            return Ok(made.to_owned());
        }
        let failed = |source| AssetsError::Unpack { path: made.to_owned(), source };
        ffuzz_assets::private_folder(made.parent().unwrap_or(made))?;
        let lock = File::create(made.with_extension("lock")).map_err(failed)?;
        // Held until the end of this function.
        let _lock = Locked::new(lock, true).map_err(failed)?;
        if !made.exists() {
            let temporary = made.with_extension(format!("{}.tmp", std::process::id()));
            make(&temporary)?;
            fs::rename(&temporary, made).map_err(failed)?;
        }
        Ok(made.to_owned())
    }

    fn compile(
        &self,
        mut command: Command,
        source: &Path,
        output: &Path,
    ) -> Result<(), CompilerError> {
        let program = PathBuf::from(command.get_program());
        let done = command.arg(source).arg("-o").arg(output).output();
        let done = done.map_err(|source| CompilerError::Run { program, source })?;
        if done.status.success() {
            return Ok(());
        }
        Err(CompilerError::DoesNotCompile {
            source_file: source.to_owned(),
            ours: source.starts_with(&self.assets.directory),
            major: self.clang.major,
            output: String::from_utf8_lossy(&done.stderr).trim_end().to_owned(),
        })
    }
}

/// Output of `llvm-config`.
struct LlvmConfig {
    /// Flags to compile a pass.
    flags: String,
    /// Folder of LLVM's programs.
    programs: PathBuf,
}

/// The compiler of a pass, with its flags.
fn pass_compiler(llvm: &LlvmConfig, headers: &Path) -> Command {
    let mut command = Command::new(llvm.programs.join("clang++"));
    command.args(llvm.flags.split_whitespace()).args(PASS_FLAGS.split(' ')).arg("-I").arg(headers);
    command
}

/// Queries the `llvm-config` next to clang, or the one in PATH.
fn llvm_config(clang: &Clang) -> Option<LlvmConfig> {
    let beside = clang.path.canonicalize().ok()?.with_file_name("llvm-config");
    let in_path = PathBuf::from(format!("llvm-config-{}", clang.major));
    [beside, in_path].iter().find_map(|program| {
        let ask = |what| {
            let output = Command::new(program).arg(what).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(text)
        };
        Some(LlvmConfig { flags: ask("--cxxflags")?, programs: ask("--bindir")?.into() })
    })
}

/// Files in a folder with one of these endings, sorted. A change in one of them changes the domain.
fn sources_in(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_source =
        |path: &PathBuf| path.extension().is_some_and(|end| ends.iter().any(|known| end == *known));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_source).collect();
    found.sort();
    found
}

/// LLVM version in a pass's mark.
fn llvm_of(pass: &[u8]) -> Option<u32> {
    let at = pass.windows(BUILT_FOR.len()).position(|window| window == BUILT_FOR)?;
    let digits = pass[at + BUILT_FOR.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
}

/// Stores a generated file in the private folder, named by its content.
pub(super) fn keep_text(
    assets: &Assets,
    text: &str,
    extension: &str,
) -> Result<PathBuf, CompilerError> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    ffuzz_assets::private_folder(&assets.made)?;
    let path = assets.made.join(format!("text-{:016x}.{extension}", hasher.finish()));
    if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(path);
    }
    match ffuzz_assets::write(&path, text.as_bytes()) {
        Ok(()) => Ok(path),
        Err(source) => Err(AssetsError::Unpack { path, source }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_says_for_which_llvm_it_is() {
        assert_eq!(llvm_of(b"\x7fELF..ffuzz pass for LLVM 19\0.."), Some(19));
        assert_eq!(llvm_of(b"\x7fELF....."), None);
    }
}
