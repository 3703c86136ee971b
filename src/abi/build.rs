//! Builds the Python host, which `python.rs` includes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Of the repository; cargo starts this in the folder of the crate.
const ROOT: &str = "../..";

fn main() {
    for name in ["python-host", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={ROOT}/{name}");
    }
    env::set_current_dir(ROOT).expect("the repository is there");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if env::var_os("CARGO_FEATURE_PYTHON").is_some() {
        python_host(&out);
    }
}

/// `python-host/` as a shared library: OUT_DIR/python-host.so. Cargo builds it in a folder of its own,
/// because the one that runs now has its folder locked; both share the jobs. It downloads nothing
/// that `cargo fetch` has not brought.
fn python_host(out: &Path) {
    let folder = out.join("python-host");
    let [target, profile] =
        ["TARGET", "PROFILE"].map(|name| env::var(name).expect("cargo sets it"));
    let named = if profile == "release" { "release" } else { "dev" };
    let mut command = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    command
        .args(["build", "--locked", "--quiet", "--package=ffuzz-python", "--profile", named])
        .args(["--target", &target, "--target-dir"])
        .arg(&folder)
        // Clippy and coverage tools stand between cargo and rustc; this is no code for them.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_BUILD_BUILD_DIR", &folder)
        .env("CARGO_INCREMENTAL", "0")
        // No Python is asked, and none is linked.
        .env("PYO3_NO_PYTHON", "1")
        .env("PYO3_BUILD_EXTENSION_MODULE", "1");
    for profile in ["DEV", "RELEASE"] {
        command.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "false");
        command.env(format!("CARGO_PROFILE_{profile}_STRIP"), "true");
    }
    let built = command.status().is_ok_and(|status| status.success());
    assert!(
        built,
        "cannot build python-host (see above): `cargo fetch` brings what it needs; with \
         --no-default-features ffuzz is built without Python"
    );
    let library = folder.join(target).join(profile).join("libffuzz_python.so");
    fs::copy(library, out.join("python-host.so")).expect("cargo has built it");
}
