//! The passes: embedded for one version of LLVM, compiled on first use for any other.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

use super::CompilerError;
use super::assets::{self, Assets, PLUGIN_LLVM};
use super::toolchain::Clang;

/// The names, if all are known.
pub fn check_domains(names: &[String], assets: &Assets) -> Result<Vec<String>, CompilerError> {
    if names.is_empty() {
        return Ok(vec![]);
    }
    let known = assets.domains();
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => {
            Err(CompilerError::UnknownDomain { name: name.clone(), known: known.join(", ") })
        }
        None => Ok(names.to_vec()),
    }
}

/// The pass of each domain, for this clang.
pub fn plugins(
    domains: &[String],
    assets: &Assets,
    clang: &Clang,
) -> Result<Vec<PathBuf>, CompilerError> {
    domains.iter().map(|domain| plugin(domain, assets, clang)).collect()
}

fn plugin(domain: &str, assets: &Assets, clang: &Clang) -> Result<PathBuf, CompilerError> {
    let name = format!("waypoints-{domain}-pass.so");
    let ready = assets.directory.join(&name);
    let source = assets.directory.join(format!("src/waypoints-{domain}-pass.cc"));
    if (PLUGIN_LLVM == Some(clang.major) || !source.exists()) && ready.exists() {
        return Ok(ready);
    }
    let folder = assets.directory.join(format!("llvm-{}", clang.major));
    let built = folder.join(&name);
    if built.exists() {
        return Ok(built);
    }
    let failed = |source| CompilerError::Unpack { path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let lock = File::create(folder.join(format!("{name}.lock"))).map_err(failed)?;
    // A parallel build waits here and then finds the file. Held until the end of this function.
    let _lock = Flock::lock(lock, FlockArg::LockExclusive)
        .map_err(|(_, error)| failed(std::io::Error::from(error)))?;
    if !built.exists() {
        build(domain, &source, &built, clang)?;
    }
    Ok(built)
}

fn build(domain: &str, source: &Path, built: &Path, clang: &Clang) -> Result<(), CompilerError> {
    let major = clang.major;
    let config = format!("llvm-config-{major}");
    let missing =
        || CompilerError::NoLlvm { domain: domain.to_owned(), major, program: config.clone() };
    let ask = |what| {
        let output = Command::new(&config).arg(what).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let bindir = ask("--bindir").ok_or_else(missing)?;
    let cxxflags = ask("--cxxflags").ok_or_else(missing)?;
    let temporary = built.with_extension(format!("{}.tmp", std::process::id()));
    let flags = "-std=c++17 -O2 -fPIC -shared -fno-rtti -fno-exceptions -fvisibility=hidden -Wl,-s";
    let output = Command::new(Path::new(&bindir).join("clang++"))
        .args(cxxflags.split_whitespace())
        .args(flags.split(' '))
        .arg(source)
        .arg("-o")
        .arg(&temporary)
        .output()
        .map_err(|_| missing())?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(CompilerError::PassBuild { domain: domain.to_owned(), major, output });
    }
    fs::rename(&temporary, built)
        .map_err(|source| CompilerError::Unpack { path: built.to_owned(), source })
}

/// For [`super::lists`]: a generated file in the private folder, named by its content.
pub(super) fn keep_text(assets: &Assets, text: &str) -> Result<PathBuf, CompilerError> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let path = assets.directory.join(format!("list-{:016x}.txt", hasher.finish()));
    if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(path);
    }
    match assets::write(&path, text.as_bytes()) {
        Ok(()) => Ok(path),
        Err(source) => Err(CompilerError::Unpack { path, source }),
    }
}
