//! `cargo ffuzz init` and `add`: creates a package of harnesses in the layout of cargo-fuzz, or adds a harness.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::cannot_write;
use super::harnesses::{CargoPackage, Harnesses, no_cargo};
use crate::cmd::exit::Failure;
use crate::config::env::Environment;

/// Entries of `.gitignore`: files that builds and campaigns write.
const IGNORED: &str = "target\ncorpus\nartifacts\ncoverage\nffuzz-out\n";
const HARNESSES: &str = "fuzz_targets";

/// Creates a package with a first harness for the package around the current folder; returns the harness.
pub(super) fn init(
    package: &CargoPackage,
    harness: &str,
    environment: &Environment,
) -> Result<PathBuf, Failure> {
    is_name(harness)?;
    let (name, root) = library(environment)?;
    let folder = package.fuzz_dir.clone().unwrap_or_else(|| root.join("fuzz"));
    let manifest = folder.join("Cargo.toml");
    if manifest.exists() {
        let cause = format!("{} is there already", manifest.display());
        return Err(Failure::new(cause, "cargo ffuzz add NAME adds a harness"));
    }
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    let root = fs::canonicalize(&root).unwrap_or(root);
    let is_below = fs::canonicalize(&folder).is_ok_and(|folder| folder.parent() == Some(&root));
    let path = if is_below { "..".into() } else { root.display().to_string() };
    let text = format!(
        "[package]\nname = \"{name}-fuzz\"\nversion = \"0.0.0\"\npublish = false\nedition = \"2021\"\n\n\
         [package.metadata]\ncargo-fuzz = true\n\n\
         [dependencies]\nlibfuzzer-sys = \"0.4\"\n\n\
         [dependencies.{name}]\npath = {}\n\n\
         # A workspace above does not need to know this package.\n[workspace]\n",
        toml(&path)
    );
    write(&manifest, &text)?;
    write(&folder.join(".gitignore"), IGNORED)?;
    add_to(&folder, &manifest, harness)
}

/// Adds a harness to the package; returns its file.
pub(super) fn add(
    package: &CargoPackage,
    harness: &str,
    environment: &Environment,
) -> Result<PathBuf, Failure> {
    is_name(harness)?;
    let harnesses = Harnesses::find(package, environment)?;
    if harnesses.names.iter().any(|known| known == harness) {
        let cause = format!("{} has a harness {harness}", harnesses.folder.display());
        return Err(Failure::new(cause, "choose another name"));
    }
    add_to(&harnesses.folder, &harnesses.folder.join("Cargo.toml"), harness)
}

fn add_to(folder: &Path, manifest: &Path, harness: &str) -> Result<PathBuf, Failure> {
    let file = folder.join(HARNESSES).join(format!("{harness}.rs"));
    if file.exists() {
        let cause = format!("{} is there already", file.display());
        return Err(Failure::new(cause, "choose another name"));
    }
    let sources = folder.join(HARNESSES);
    fs::create_dir_all(&sources).map_err(|error| cannot_write(&sources, &error))?;
    write(
        &file,
        "#![no_main]\n\nuse libfuzzer_sys::fuzz_target;\n\n\
         fuzz_target!(|data: &[u8]| {\n    // Call what is to be fuzzed.\n    let _ = data;\n});\n",
    )?;
    let before = fs::read_to_string(manifest).map_err(|error| cannot_write(manifest, &error))?;
    let entry = format!(
        "\n[[bin]]\nname = \"{harness}\"\npath = \"{HARNESSES}/{harness}.rs\"\n\
         test = false\ndoc = false\nbench = false\n"
    );
    write(manifest, &(before.trim_end().to_owned() + "\n" + &entry))?;
    Ok(file)
}

/// Name and folder of the package around the current folder.
fn library(environment: &Environment) -> Result<(String, PathBuf), Failure> {
    let cargo = environment.get("CARGO").unwrap_or(OsStr::new("cargo"));
    let answer = Command::new(cargo).arg("read-manifest").output();
    let answer = answer.map_err(|error| no_cargo(cargo, &error))?;
    let _ = io::stderr().write_all(&answer.stderr);
    let data: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let (name, manifest) = (data["name"].as_str(), data["manifest_path"].as_str());
    let folder = manifest.and_then(|path| Path::new(path).parent());
    name.zip(folder).map(|(name, folder)| (name.to_owned(), folder.to_owned())).ok_or_else(|| {
        Failure::new("this folder is in no package of cargo", "cargo init makes one")
    })
}

/// Checks that cargo accepts a program name.
fn is_name(harness: &str) -> Result<(), Failure> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !harness.is_empty() && harness.bytes().all(is_part) {
        true => Ok(()),
        false => {
            let cause = format!("{harness:?} is no name of a harness");
            Err(Failure::usage(cause, "names have letters, digits, _ and -"))
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| cannot_write(file, &error))
}

/// Quotes a string for TOML.
fn toml(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
