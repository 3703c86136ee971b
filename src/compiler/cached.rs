//! Makes settings visible to object caches such as ccache: the settings of ffuzz-cc that change an object but appear
//! neither in the source nor on the command line.
//!
//! A cache that starts ffuzz-cc hashes the preprocessed source; there the settings are the name of an included file. A
//! cache that ffuzz-cc starts hashes clang's arguments.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::CompilerError;
use super::args::Invocation;
use super::env::Env;
use super::plugin::keep_text;
use super::rewrite::{self, Additions};
use super::toolchain::Clang;
use ffuzz_assets::Assets;

/// Warning for ccache's depend mode, which uses neither.
pub(super) const DEPEND_MODE: &str = "warning: with CCACHE_DEPEND ccache takes objects of other settings \
    (WAYPOINTS, AFL_USE_ASAN …): unset it";

/// Hash of everything that ffuzz-cc adds to a compilation.
pub(super) fn settings(
    invocation: &Invocation,
    env: &Env,
    additions: &Additions,
    clang: &Clang,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut without_words = invocation.clone();
    without_words.arguments.clear();
    without_words.words.clear();
    rewrite::rewrite(&without_words, env, additions).hash(&mut hasher);
    (&additions.builtin, &additions.declared, &env.diff).hash(&mut hasher);
    let files = additions.passes.iter().chain(&env.diff).chain([&clang.path]);
    files.for_each(|path| version(path).hash(&mut hasher));
    hasher.finish()
}

fn version(path: &Path) -> Option<(PathBuf, u64, i64, i64)> {
    let data = fs::metadata(path).ok()?;
    Some((path.to_owned(), data.size(), data.mtime(), data.mtime_nsec()))
}

/// An empty header with the settings in its name. ccache's direct mode compares the headers of an earlier compilation
/// and would miss changed settings; a header that is a device disables that mode.
pub(super) fn header(assets: &Assets, settings: u64) -> Result<PathBuf, CompilerError> {
    let text = format!("/* settings {settings:016x} */\n# 1 \"/dev/null\" 1\n");
    keep_text(assets, &text, "h")
}

/// An option that clang accepts and ignores.
pub(super) fn option(settings: u64) -> OsString {
    format!("-frandom-seed=ffuzz-{settings:016x}").into()
}

/// True if clang generates code and a launcher is set.
pub(super) fn is_launched_compilation(invocation: &Invocation, env: &Env) -> bool {
    env.launcher.is_some() && invocation.compiles()
}
