//! What foreign mutators cost: executions a second with and without one that changes nothing, on the
//! same random numbers, so that both campaigns do the same runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, Campaign};

impl Bench {
    pub(super) fn mutators(&self) {
        let library = self.c_mutator("echo");
        let tiny = self.harness("tiny", "", &self.dir.join("tiny"));
        let plain = self.ffuzz(&[], &tiny);
        let with = with_library(&*plain, &library);
        self.compare("batch, havoc_mutation in C at 6 % / no library", &*with, &*plain);
    }

    /// A library of `benches/targets`.
    fn c_mutator(&self, name: &str) -> PathBuf {
        let library = self.dir.join(format!("{name}.so"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let status = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-I"])
            .arg(root.join("include"))
            .arg("-o")
            .arg(&library)
            .arg(root.join(format!("benches/targets/{name}.c")))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{name}.c does not compile");
        library
    }
}

fn with_library<'a>(plain: &'a Campaign<'a>, library: &'a Path) -> Box<Campaign<'a>> {
    Box::new(move |out, seed| {
        let mut command = plain(out, seed);
        command.env("AFL_CUSTOM_MUTATOR_LIBRARY", library);
        command
    })
}
