//! The variables that the compiler wrapper obeys, read in one place.

use std::env::{var, var_os};
use std::path::PathBuf;

use super::CompilerError;

/// A sanitizer that a variable asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sanitizer {
    Address,
    Undefined,
    Memory,
    Thread,
    Leak,
    Cfi,
}

/// The environment as the wrapper sees it.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `FFUZZ_CC`: path or version number of clang.
    pub clang: Option<String>,
    /// `AFL_CC`, `AFL_CXX`.
    pub afl_cc: Option<PathBuf>,
    pub afl_cxx: Option<PathBuf>,
    /// `FFUZZ_LIB_DIR`.
    pub lib_dir: Option<PathBuf>,
    /// `FFUZZ_DOMAIN_PATH`: folders with domains of the user's.
    pub domain_path: Vec<PathBuf>,
    /// `AFL_PATH`; used only if our files are there.
    pub afl_path: Option<PathBuf>,
    /// `XDG_CACHE_HOME`, `HOME`, `TMPDIR`: where the runtime is unpacked.
    pub cache_home: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub tmpdir: Option<PathBuf>,
    /// `PATH`, for the search of clang and ld.
    pub path: Vec<PathBuf>,
    /// `AFL_USE_*SAN`.
    pub sanitizers: Vec<Sanitizer>,
    /// `AFL_HARDEN`, `AFL_DONT_OPTIMIZE`, `AFL_NO_BUILTIN`, `AFL_QUIET`.
    pub harden: bool,
    pub dont_optimize: bool,
    pub no_builtin: bool,
    pub quiet: bool,
    /// `AFL_LLVM_ALLOWLIST`, `AFL_LLVM_DENYLIST` and their older names.
    pub allow_list: Option<PathBuf>,
    pub deny_list: Option<PathBuf>,
    /// `WAYPOINTS`, else `DOMAINS`.
    pub domains: Vec<String>,
    /// `WAYPOINTS_DISABLE_COVERAGE`.
    pub no_coverage: bool,
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
            lib_dir: path("FFUZZ_LIB_DIR"),
            afl_path: path("AFL_PATH"),
            cache_home: path("XDG_CACHE_HOME"),
            home: path("HOME"),
            tmpdir: path("TMPDIR"),
            domain_path: paths("FFUZZ_DOMAIN_PATH"),
            path: paths("PATH"),
            sanitizers: SANITIZERS.iter().copied().filter_map(asked).collect(),
            harden: set("AFL_HARDEN"),
            dont_optimize: set("AFL_DONT_OPTIMIZE"),
            no_builtin: set("AFL_NO_BUILTIN"),
            quiet: set("AFL_QUIET"),
            allow_list: first(&["AFL_LLVM_ALLOWLIST", "AFL_LLVM_INSTRUMENT_FILE"]),
            deny_list: first(&["AFL_LLVM_DENYLIST", "AFL_LLVM_BLOCKLIST"]),
            domains: names(var("WAYPOINTS").or_else(|_| var("DOMAINS")).unwrap_or_default()),
            no_coverage: set("WAYPOINTS_DISABLE_COVERAGE"),
        }
    }

    /// Combinations that cannot work.
    pub fn check(&self) -> Result<(), CompilerError> {
        let exclusive = [
            (Sanitizer::Address, Sanitizer::Memory, "AFL_USE_ASAN", "AFL_USE_MSAN"),
            (Sanitizer::Address, Sanitizer::Thread, "AFL_USE_ASAN", "AFL_USE_TSAN"),
            (Sanitizer::Memory, Sanitizer::Thread, "AFL_USE_MSAN", "AFL_USE_TSAN"),
        ];
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

/// How the shared pass learns which built-in domains to add: their names.
pub const BUILTIN: &str = "FFUZZ_BUILTIN_DOMAINS";
/// How the declared domains reach it: the file with their normalized text.
pub const DECLARED: &str = "FFUZZ_DECLARED_DOMAINS";

const SANITIZERS: &[(&str, Sanitizer)] = &[
    ("AFL_USE_ASAN", Sanitizer::Address),
    ("AFL_USE_UBSAN", Sanitizer::Undefined),
    ("AFL_USE_MSAN", Sanitizer::Memory),
    ("AFL_USE_TSAN", Sanitizer::Thread),
    ("AFL_USE_LSAN", Sanitizer::Leak),
    ("AFL_USE_CFISAN", Sanitizer::Cfi),
];

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
    fn asan_and_msan_exclude_each_other() {
        let sanitizers = vec![Sanitizer::Address, Sanitizer::Memory];
        let env = Env { sanitizers, ..Env::default() };
        assert!(env.check().is_err());
    }
}
