//! Builds small targets with `ffuzz cc` and runs them under `targets/client.c`.

#![allow(dead_code, reason = "no file of tests needs all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::common::cache;
pub(crate) use super::common::{clangs, has, repository};

/// A folder for one test.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// `ffuzz cc` (or `c++`) in this folder, with a clean environment.
    pub(crate) fn compiler(&self, language: &str, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
        command.current_dir(self.folder.path()).arg(language).args(line.split_whitespace());
        for name in ["WAYPOINTS", "DOMAINS", "AFL_CC", "AFL_CXX", "AFL_PATH", "FFUZZ_LIB_DIR"] {
            command.env_remove(name);
        }
        command.env_remove("FFUZZ_CC").env("XDG_CACHE_HOME", cache()).env("AFL_QUIET", "1");
        command
    }

    /// Compiles with variables set; the build has to succeed, and in silence.
    pub(crate) fn build(&self, variables: &[(&str, &str)], line: &str) -> Output {
        let output = self.compiler("cc", line).envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ffuzz cc {line}: {said}");
        assert_eq!(said, "", "ffuzz cc {line}");
        output
    }

    /// What the client saw: target and inputs are names in this folder.
    pub(crate) fn client(&self, options: &str, target: &str, inputs: &[&str]) -> String {
        self.client_with(&[], options, target, inputs)
    }

    pub(crate) fn client_with(
        &self,
        variables: &[(&str, &str)],
        options: &str,
        target: &str,
        inputs: &[&str],
    ) -> String {
        self.client_command(options, target, inputs, variables).0
    }

    /// Standard output of the client, and what the target has written to standard error.
    pub(crate) fn client_says(
        &self,
        options: &str,
        target: &str,
        inputs: &[&str],
    ) -> (String, String) {
        self.client_command(options, target, inputs, &[])
    }

    fn client_command(
        &self,
        options: &str,
        target: &str,
        inputs: &[&str],
        variables: &[(&str, &str)],
    ) -> (String, String) {
        let output = Command::new(client())
            .args(options.split_whitespace())
            .arg(self.path(target))
            .args(inputs.iter().map(|name| self.path(name)))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }

    /// Signal or exit code of a run with this standard input, as a shell counts them.
    pub(crate) fn status(&self, target: &str, input: &[u8]) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let stdin = std::fs::File::open(self.write("stdin", input)).unwrap();
        let output = Command::new(self.path(target)).stdin(stdin).output().unwrap();
        output.status.signal().map_or_else(|| output.status.code().unwrap(), |n| 128 + n)
    }
}

fn client() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Tests may be processes of their own: each builds under its own name, then renames.
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("channel-client");
        let own = path.with_extension(std::process::id().to_string());
        let status = Command::new("cc")
            .args(["-O1", "-I"])
            .arg(repository("runtime"))
            .arg(repository("tests/targets/client.c"))
            .arg("-o")
            .arg(&own)
            .status();
        assert!(status.unwrap().success());
        std::fs::rename(&own, &path).unwrap();
        path
    })
}

/// Only the `dsf[…] = …` lines.
pub(crate) fn values(seen: &str) -> Vec<&str> {
    seen.lines().filter(|line| line.starts_with("dsf[")).collect()
}

/// Only what stands behind the keys, sorted: key numbers of static sites depend on paths.
pub(crate) fn sorted_values(seen: &str) -> Vec<u32> {
    let mut found: Vec<u32> = values(seen)
        .iter()
        .map(|line| line.split(" = ").nth(1).unwrap().parse().unwrap())
        .collect();
    found.sort_unstable();
    found
}
