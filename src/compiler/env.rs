//! Environment variables of the compiler wrapper.

use std::env::{var, var_os};
use std::path::PathBuf;

use super::CompilerError;
use ffuzz_config::env::{self, AssetPlaces, VariableStatus};

/// A sanitizer requested by a variable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sanitizer {
    Address,
    Undefined,
    Memory,
    Thread,
    Leak,
    Cfi,
}

/// The environment variables that the wrapper uses.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `FFUZZ_CC`: path or version number of clang.
    pub clang: Option<String>,
    /// `AFL_CC`.
    pub afl_cc: Option<PathBuf>,
    /// `AFL_CXX`.
    pub afl_cxx: Option<PathBuf>,
    /// Folders for the embedded files.
    pub places: AssetPlaces,
    /// `FFUZZ_DOMAIN_PATH`: folders with the user's domains.
    pub domain_path: Vec<PathBuf>,
    /// `PATH`, to search for clang and ld.
    pub path: Vec<PathBuf>,
    /// `AFL_USE_*SAN`.
    pub sanitizers: Vec<Sanitizer>,
    /// `AFL_HARDEN`.
    pub harden: bool,
    /// `AFL_DONT_OPTIMIZE`.
    pub dont_optimize: bool,
    /// `AFL_OPT_LEVEL`: optimization level if the command line has none; 3 by default.
    pub level: Option<String>,
    /// `AFL_NO_BUILTIN`.
    pub no_builtin: bool,
    pub quiet: bool,
    /// `AFL_LLVM_ALLOWLIST` and its older names.
    pub allow_list: Option<PathBuf>,
    /// `AFL_LLVM_DENYLIST` and its older names.
    pub deny_list: Option<PathBuf>,
    /// `WAYPOINTS`, or `DOMAINS` without it.
    pub domains: Vec<String>,
    /// `WAYPOINTS_DISABLE_COVERAGE`.
    pub no_coverage: bool,
    /// Collect words for a dictionary: `FFUZZ_NO_WORDS` is not set.
    pub words: bool,
    /// Add function versions that log comparisons: `FFUZZ_NO_LOG` is not set.
    pub log: bool,
    /// `AFL_LLVM_IJON`: include `ijon.h` in every source.
    pub ijon: bool,
    /// Counters skip zero: `AFL_LLVM_NOT_ZERO` is set and `AFL_LLVM_SKIP_NEVERZERO` is not. Off by default: it slows a
    /// run of libpng by a tenth.
    pub never_zero: bool,
    /// `AFL_LLVM_DENY_EXEC`: calls that start a program abort.
    pub deny_exec: bool,
    /// `AFL_NOOPT`, `AFL_LLVM_DISABLE_INSTRUMENTATION`: pass the call to clang unchanged.
    pub plain: bool,
    /// `AFL_COMPILER_LAUNCHER`: a program such as ccache that calls clang.
    pub launcher: Option<PathBuf>,
    /// True if an object cache such as ccache started this process.
    pub cached: bool,
    /// `CCACHE_DEPEND`: ccache checks the dependencies only, not the preprocessed source.
    pub depend_mode: bool,
    /// `FFUZZ_DIFF`: input of the `diff` domain at compile time.
    pub diff: Option<PathBuf>,
    /// One line per variable that is set but has no effect.
    pub unsupported: Vec<String>,
    /// One line per name that is probably misspelt.
    pub misspelt: Vec<String>,
}

impl Env {
    #[must_use]
    pub fn read() -> Self {
        let path = |name: &str| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let paths = |name: &str| -> Vec<PathBuf> {
            let list = var_os(name).map(|list| std::env::split_paths(&list).collect());
            let list: Vec<PathBuf> = list.unwrap_or_default();
            list.into_iter().filter(|path| !path.as_os_str().is_empty()).collect()
        };
        let set = |name: &str| var_os(name).is_some();
        let first = |names: &[&str]| names.iter().find_map(|name| path(name));
        let asked = |(name, sanitizer)| set(name).then_some(sanitizer);
        Self {
            clang: var("FFUZZ_CC").ok().filter(|value| !value.is_empty()),
            afl_cc: path("AFL_CC"),
            afl_cxx: path("AFL_CXX"),
            places: AssetPlaces::read(),
            domain_path: paths("FFUZZ_DOMAIN_PATH"),
            path: paths("PATH"),
            sanitizers: SANITIZERS.iter().copied().filter_map(asked).collect(),
            harden: set("AFL_HARDEN"),
            dont_optimize: set("AFL_DONT_OPTIMIZE"),
            level: var("AFL_OPT_LEVEL").ok().filter(|value| !value.is_empty()),
            no_builtin: set("AFL_NO_BUILTIN"),
            quiet: set("AFL_QUIET"),
            allow_list: first(&[
                "AFL_LLVM_ALLOWLIST",
                "AFL_LLVM_INSTRUMENT_FILE",
                "AFL_LLVM_WHITELIST",
            ]),
            deny_list: first(&["AFL_LLVM_DENYLIST", "AFL_LLVM_BLOCKLIST"]),
            domains: names(var("WAYPOINTS").or_else(|_| var("DOMAINS")).unwrap_or_default()),
            no_coverage: set("WAYPOINTS_DISABLE_COVERAGE") || set("AFL_LLVM_ONLY_FSRV"),
            words: !set("FFUZZ_NO_WORDS"),
            log: !set("FFUZZ_NO_LOG"),
            ijon: set("AFL_LLVM_IJON"),
            never_zero: set("AFL_LLVM_NOT_ZERO") && !set("AFL_LLVM_SKIP_NEVERZERO"),
            deny_exec: set("AFL_LLVM_DENY_EXEC"),
            plain: set("AFL_NOOPT") || set("AFL_LLVM_DISABLE_INSTRUMENTATION"),
            launcher: path("AFL_COMPILER_LAUNCHER"),
            cached: CACHE_MARKS.iter().any(|name| set(name)) || is_child_of_cache(),
            depend_mode: set("CCACHE_DEPEND"),
            diff: path("FFUZZ_DIFF"),
            unsupported: unsupported()
                .filter(|(name, _)| set(name))
                .map(|(name, why)| format!("warning: {name} has no effect: {why}"))
                .chain(other_coverage(&var("AFL_LLVM_INSTRUMENT").unwrap_or_default()))
                .collect(),
            misspelt: match set("AFL_IGNORE_UNKNOWN_ENVS") {
                true => Vec::new(),
                false => {
                    misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
                }
            },
        }
    }

    /// Rejects invalid values and combinations.
    pub fn check(&self) -> Result<(), CompilerError> {
        let exclusive = [
            (Sanitizer::Address, Sanitizer::Memory, "AFL_USE_ASAN", "AFL_USE_MSAN"),
            (Sanitizer::Address, Sanitizer::Thread, "AFL_USE_ASAN", "AFL_USE_TSAN"),
            (Sanitizer::Memory, Sanitizer::Thread, "AFL_USE_MSAN", "AFL_USE_TSAN"),
        ];
        if let Some(level) = self.level.as_ref().filter(|level| !LEVELS.contains(&level.as_str())) {
            return Err(CompilerError::NoLevel(level.clone()));
        }
        let has = |wanted: Sanitizer| self.sanitizers.contains(&wanted);
        for (a, b, first, second) in exclusive {
            if has(a) && has(b) {
                return Err(CompilerError::Exclusive(first, second));
            }
        }
        if self.harden && has(Sanitizer::Address) {
            return Err(CompilerError::Exclusive("AFL_HARDEN", "AFL_USE_ASAN"));
        }
        if self.harden && has(Sanitizer::Memory) {
            return Err(CompilerError::Exclusive("AFL_HARDEN", "AFL_USE_MSAN"));
        }
        Ok(())
    }
}

/// Variables that ccache sets for the compiler.
const CACHE_MARKS: &[&str] = &["UNCACHED_ERR_FD", "CCACHE_DISABLE"];

/// True if the parent is ccache, under any name, or sccache.
fn is_child_of_cache() -> bool {
    let parent = format!("/proc/{}/exe", std::os::unix::process::parent_id());
    let program = std::fs::read_link(parent).unwrap_or_default();
    program.file_name().is_some_and(|name| name.to_string_lossy().contains("ccache"))
}

/// Values of clang's `-O`.
const LEVELS: &[&str] = &["0", "1", "2", "3", "s", "z", "g", "fast"];

/// Variable with the names of the built-in domains that the shared pass must add.
pub const BUILTIN: &str = "FFUZZ_BUILTIN_DOMAINS";
/// Variable with the path of the declared domains' normalized text, for the same pass.
pub(crate) const DECLARED: &str = "FFUZZ_DECLARED_DOMAINS";

const SANITIZERS: &[(&str, Sanitizer)] = &[
    ("AFL_USE_ASAN", Sanitizer::Address),
    ("AFL_USE_UBSAN", Sanitizer::Undefined),
    ("AFL_USE_MSAN", Sanitizer::Memory),
    ("AFL_USE_TSAN", Sanitizer::Thread),
    ("AFL_USE_LSAN", Sanitizer::Leak),
    ("AFL_USE_CFISAN", Sanitizer::Cfi),
];

/// Variables of AFL++ that ffuzz ignores although the build lacks a feature without them, each with the alternative.
fn unsupported() -> impl Iterator<Item = (&'static str, &'static str)> {
    let ignored = env::TABLE.iter().filter(|row| row.status == VariableStatus::Ignored);
    let rows = ignored.filter(|row| row.is_for_compiler());
    rows.map(|row| (row.name, row.meaning)).chain([("AFL_USE_QASAN", "it is for QEMU")])
}

/// The unsupported kinds of coverage in `AFL_LLVM_INSTRUMENT`.
fn other_coverage(list: &str) -> Option<String> {
    let is_other = |word: &&str| {
        let word = word.trim().to_ascii_uppercase();
        ["CTX", "NGRAM", "CALLER"].iter().any(|kind| word.starts_with(kind))
    };
    let word = list.split([',', ';', ' ']).find(is_other)?;
    let why = env::find("AFL_LLVM_CTX")?.meaning;
    Some(format!("warning: AFL_LLVM_INSTRUMENT={} has no effect: {why}", word.trim()))
}

/// Variable without a distinctive prefix; its misspellings are detected by similarity.
const WATCHED: &str = "WAYPOINTS";
/// Maximum number of differing letters.
const SLIPS: usize = 2;

/// Finds misspelt names: with a mistyped AFL_USE_ASAN the target would lack the sanitizer.
fn misspelt(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_ours = |name: &str| {
        name.starts_with("AFL_")
            || name.starts_with("FFUZZ_")
            || env::edit_distance(name, WATCHED) <= SLIPS
    };
    let mut wrong: Vec<String> =
        names.filter(|name| is_ours(name) && env::find(name).is_none()).collect();
    wrong.sort();
    let line = |name: String| {
        let all = env::TABLE.iter().map(|variable| variable.name);
        let similar = env::similar(&name, all.filter(|known| !known.ends_with('*')));
        let hint = similar.map_or(String::new(), |known| format!("; did you mean {known}?"));
        format!("warning: unknown environment variable {name}{hint}")
    };
    wrong.into_iter().map(line).collect()
}

fn names(list: String) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_names_keep_their_order_and_come_once() {
        assert_eq!(names("mem, cmp,,mem".into()), ["mem", "cmp"]);
    }

    #[test]
    fn a_misspelt_name_is_reported_and_no_documented_one_is() {
        let warnings = |names: &[&str]| misspelt(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(
            warnings(&["AFL_USE_ASN", "WAYPOINT", "AFL_QUIET", "HOME", "DOMAIN", "AFL_USE_QASAN"]),
            [
                "warning: unknown environment variable AFL_USE_ASN; did you mean AFL_USE_ASAN?",
                "warning: unknown environment variable WAYPOINT; did you mean WAYPOINTS?",
            ]
        );
        let rows: Vec<&str> = unsupported().map(|(name, _)| name).collect();
        assert!(rows.len() > 20, "{rows:?}");
        assert_eq!(warnings(&rows), [""; 0]);
    }

    #[test]
    fn kinds_of_coverage_with_context_are_named() {
        for none in ["", "PCGUARD", "classic", "LTO,NATIVE"] {
            assert_eq!(other_coverage(none), None, "{none}");
        }
        for (list, named) in
            [("CTX", "=CTX "), ("CLASSIC,NGRAM-4", "=NGRAM-4 "), ("caller", "=caller ")]
        {
            let warning = other_coverage(list).unwrap();
            assert!(warning.contains(named), "{warning}");
        }
    }

    #[test]
    fn asan_and_msan_exclude_each_other() {
        let sanitizers = vec![Sanitizer::Address, Sanitizer::Memory];
        let env = Env { sanitizers, ..Env::default() };
        assert!(env.check().is_err());
    }
}
