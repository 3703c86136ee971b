//! The program and the libraries that the loader maps with it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::binary;
use crate::choice::Choice;

/// Variable that makes the loader list what it would load, without starting the program (ld.so(8)).
const LIST: &str = "LD_TRACE_LOADED_OBJECTS";
/// Name prefix of our own libraries.
const OURS: &str = "libffuzz-";
const NOT_FOUND: &[u8] = b" => not found";

/// The loader's report on a program.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Objects {
    /// The program, its libraries and its loader, by their real paths, in the loader's order.
    pub files: Vec<PathBuf>,
    /// Names of missing libraries.
    pub missing: Vec<String>,
}

impl Objects {
    /// Runs the program's loader; the result for a program without one is the program alone. `env` is added to our
    /// environment.
    pub fn of(program: &Path, env: &[(OsString, OsString)]) -> io::Result<Self> {
        if binary::loader(program).is_none() {
            return Ok(Self { files: vec![fs::canonicalize(program)?], missing: Vec::new() });
        }
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command.env(LIST, "1").envs(env.iter().map(|(name, value)| (name, value)));
        let mut objects = Self::parse(&command.output()?.stdout);
        objects.files.insert(0, program.to_owned());
        for file in &mut objects.files {
            *file = fs::canonicalize(&*file).unwrap_or_else(|_| file.clone());
        }
        Ok(objects)
    }

    /// Files that `choice` includes; the program also matches by the name under which it was given.
    pub fn chosen(&self, choice: &Choice, program: &Path) -> impl Iterator<Item = &Path> {
        let given = choice.takes(&name(program));
        self.files
            .iter()
            .enumerate()
            .filter(|(_, path)| !name(path).starts_with(OURS))
            .filter(move |(index, path)| (*index == 0 && given) || choice.takes(&name(path)))
            .map(|(_, path)| path.as_path())
    }

    /// Names of all files.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let names = self.files.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    /// Parses lines of the form `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)`, `NAME (ADDRESS)` or `NAME => not found`.
    /// A path may be relative to the folder in which the loader was started: a library was linked as `./NAME`, or
    /// found in `.`.
    fn parse(listed: &[u8]) -> Self {
        let mut objects = Self::default();
        for line in listed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            if let Some(name) = line.strip_suffix(NOT_FOUND) {
                objects.missing.push(String::from_utf8_lossy(name).into_owned());
                continue;
            }
            let arrow = line.windows(4).position(|at| at == b" => ").map_or(0, |at| at + 4);
            let path = &line[arrow..];
            let end = path.windows(4).rposition(|at| at == b" (0x");
            if let Some(path) = end.map(|end| &path[..end]).filter(|path| path.contains(&b'/')) {
                objects.files.push(OsStr::from_bytes(path).into());
            }
        }
        objects
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let listed = b"\tlinux-vdso.so.1 (0x00007ffd5)\n\tliba.so.1 => /lib/a b/liba.so.1 (0x1)\n\
                       \tlibz.so => not found\n\t./libb.so (0x3)\n\tlibc.so => plugins/libc.so (0x4)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x2)\n\n";
        let objects = Objects::parse(listed);
        assert_eq!(objects.missing, ["libz.so"]);
        let files =
            ["/lib/a b/liba.so.1", "./libb.so", "plugins/libc.so", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(objects.files, files.map(PathBuf::from));
    }
}
