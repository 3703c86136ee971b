//! Identifies the builds of the files that a map covers, so that results from one program are not used
//! for another.

use std::fs;
use std::path::Path;

use object::Object;
use sha1::{Digest, Sha1};

use ffuzz_engine::executor::{Module, TargetInfo};
use ffuzz_engine::feedback::Part;

/// The program and its libraries with their places in the map. A target that does not name them (one
/// of AFL's compilers) is a single part; without a map there are no parts.
#[must_use]
pub fn parts(target: &dyn TargetInfo, program: &Path) -> Vec<Part> {
    let mut modules = target.modules();
    if modules.is_empty() && target.map_size() > 0 {
        modules.push(Module { counters: 0..target.map_size(), file: program.to_owned() });
    }
    modules.into_iter().map(part).collect()
}

fn part(Module { counters, file }: Module) -> Part {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let build = build_of(&file).unwrap_or_default();
    Part { name, build, file: file.to_string_lossy().into_owned(), counters }
}

/// The linker's build-id, which a stripped copy keeps, or else a hash of the content.
#[must_use]
pub fn build_of(file: &Path) -> Option<String> {
    let content = fs::read(file).ok()?;
    let id =
        object::File::parse(&*content).ok().and_then(|file| Some(file.build_id().ok()??.to_vec()));
    Some(match id {
        Some(id) => format!("id:{}", hex(&id)),
        None => format!("sha1:{}", hex(&Sha1::digest(&content))),
    })
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_known_by_its_id_or_by_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert_eq!(build_of(&path), None);
        fs::write(&path, "abc").unwrap();
        let hash = "sha1:a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(build_of(&path).as_deref(), Some(hash));
        let own = std::env::current_exe().unwrap();
        let build = build_of(&own).unwrap();
        fs::copy(&own, &path).unwrap();
        assert_eq!(build_of(&path), Some(build));
    }
}
