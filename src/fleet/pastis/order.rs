//! Converts a broker's Start to everything needed to fuzz its target.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use super::alerts::AlertReport;
use super::engines::{self, ENGINES, VERSION};
use super::error::{Refusal, shortened};
use super::messages::{ExecMode, FuzzMode, Level, SeedLocation, StartMessage};
use super::package::{self, Package};
use ffuzz_config::options::NativeDomain;

/// A valid Start with its unpacked target.
#[derive(Clone, Debug)]
pub struct StartOrder {
    /// Name of the target and its arguments; equal Starts have equal names.
    pub name: String,
    /// Folder of the package, the seeds and the fuzzer's output.
    pub folder: PathBuf,
    /// Engine of [`ENGINES`] that the broker chose.
    pub engine: String,
    pub program: PathBuf,
    /// Arguments, with `@@` if the target reads a file.
    pub argv: Vec<OsString>,
    pub dictionary: Option<PathBuf>,
    /// Domains that guide the fuzzer.
    pub domains: Vec<String>,
    /// True if the target has no instrumentation.
    pub native: bool,
    /// True if each run needs a new process.
    pub single: bool,
    /// Options of ffuzz, as text.
    pub engine_args: String,
    /// Environment of the target, as `NAME=VALUE`.
    pub environment: Vec<String>,
    pub report: Option<AlertReport>,
    /// Log messages for the broker.
    pub notes: Vec<(Level, String)>,
}

impl StartOrder {
    /// Unpacks the target below `root`; None if its name is `at_work`, that of the current target.
    pub fn read(start: &StartMessage, root: &Path, at_work: &str) -> Result<Option<Self>, Refusal> {
        let engine = start.engine.clone().unwrap_or_default();
        if !ENGINES.iter().any(|(name, _)| *name == engine.name) {
            return Err(Refusal::Engine(shortened(&engine.name)));
        }
        if engine.version != VERSION {
            return Err(Refusal::Version { theirs: shortened(&engine.version), ours: VERSION });
        }
        let words = start.argv.iter().chain(&start.environment).chain([&start.engine_args]);
        if let Some(word) = words.into_iter().find(|word| word.contains('\0')) {
            let word = shortened(word);
            return Err(Refusal::Arguments(format!("{word:?} has a zero byte")));
        }
        let domains = engines::domains(&engine.name);
        let needs_build = start.fuzz_mode == FuzzMode::Instrumented as i32
            || domains.iter().any(|name| NativeDomain::named(name).is_none());
        let Some((folder, name, package)) = unpack(start, root, at_work, needs_build)? else {
            return Ok(None);
        };
        let mut notes = Vec::new();
        let mut argv: Vec<OsString> = start.argv.iter().map(OsString::from).collect();
        let file = start.argv.iter().any(|word| word.contains("@@"));
        match start.seed_location() {
            SeedLocation::Argv if !file => {
                notes.push((Level::Warning, "no @@ in the target's arguments: adding it".into()));
                argv.push("@@".into());
            }
            SeedLocation::Stdin if file => {
                let text = "@@ in the target's arguments: seeds come as a file, not on stdin";
                notes.push((Level::Warning, text.into()));
            }
            _ => {}
        }
        let report =
            AlertReport::read(&start.report).map_err(|text| notes.push((Level::Error, text)));
        Ok(Some(Self {
            name,
            folder,
            program: package.program,
            argv,
            dictionary: package.dictionary,
            domains,
            native: !package.instrumented,
            engine: engine.name,
            single: start.exec_mode == ExecMode::SingleExec as i32,
            engine_args: start.engine_args.clone(),
            environment: start.environment.clone(),
            report: report.unwrap_or_default(),
            notes,
        }))
    }

    /// Output folder of the fuzzer (`-o`).
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.join("out")
    }
}

/// Unpacks the target into a folder whose name stays the same after a restart. Leaves the folder of
/// the current target (`at_work`) unchanged.
fn unpack(
    start: &StartMessage,
    root: &Path,
    at_work: &str,
    needs_build: bool,
) -> Result<Option<(PathBuf, String, Package)>, Refusal> {
    let fresh = root.join(format!(".package-{}", std::process::id()));
    let _ = fs::remove_dir_all(&fresh);
    let unpacked = package::unpack(&start.file_name, &start.package, &fresh).and_then(|package| {
        if needs_build && !package.instrumented {
            return Err(Refusal::BinaryOnly);
        }
        let name = format!("{}-{}", start.file_name, fingerprint(start, &package));
        let place = (name != at_work).then(|| place(root, name, &fresh, package));
        place.transpose()
    });
    let _ = fs::remove_dir_all(&fresh);
    unpacked
}

fn place(
    root: &Path,
    name: String,
    fresh: &Path,
    package: Package,
) -> Result<(PathBuf, String, Package), Refusal> {
    let folder = root.join(&name);
    let last = folder.join("package");
    let _ = fs::remove_dir_all(&last);
    let moved = fs::create_dir_all(&folder).and_then(|()| fs::rename(fresh, &last));
    moved.map_err(|source| Refusal::Write { path: last.clone(), source })?;
    let moved = |path: &Path| path.file_name().map(|name| last.join(name)).unwrap_or_default();
    let program = moved(&package.program);
    let dictionary = package.dictionary.as_deref().map(moved);
    Ok((folder, name, Package { program, dictionary, ..package }))
}

/// Hash of everything that distinguishes Starts, in hexadecimal.
fn fingerprint(start: &StartMessage, package: &Package) -> String {
    let rest = StartMessage { package: Vec::new(), ..start.clone() };
    let mut digest = Sha1::new();
    digest.update(package.fingerprint);
    digest.update(prost::Message::encode_to_vec(&rest));
    let digest: [u8; 20] = digest.finalize().into();
    digest[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pastis::messages::EngineMessage;

    fn start() -> StartMessage {
        let engine =
            EngineMessage { name: "FFUZZ".into(), version: VERSION.into(), module: String::new() };
        let own = fs::read("/proc/self/exe").unwrap();
        let package = [&own[..64], b"__AFL_SHM_ID\0"].concat();
        StartMessage {
            file_name: "t".into(),
            package,
            engine: Some(engine),
            ..StartMessage::default()
        }
    }

    fn read(change: impl FnOnce(&mut StartMessage)) -> Result<StartOrder, Refusal> {
        let dir = tempfile::tempdir().unwrap();
        let mut start = start();
        change(&mut start);
        let order = StartOrder::read(&start, dir.path(), "other");
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, usize::from(order.is_ok()));
        order.map(Option::unwrap)
    }

    #[test]
    fn the_same_target_has_the_same_name() {
        let one = read(|_| {}).unwrap();
        assert_eq!(one.name, read(|_| {}).unwrap().name);
        assert!(one.name.starts_with("t-") && one.name.len() == 14, "{}", one.name);
        assert_ne!(one.name, read(|start| start.argv.push("-x".into())).unwrap().name);
        assert_ne!(one.name, read(|start| start.package.push(0)).unwrap().name);
        assert!(one.program.ends_with("package/t") && one.domains.is_empty() && !one.single);
    }

    #[test]
    fn the_target_at_work_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let first = StartOrder::read(&start(), dir.path(), "").unwrap().unwrap();
        fs::write(first.folder.join("package/mine"), "x").unwrap();
        assert!(StartOrder::read(&start(), dir.path(), &first.name).unwrap().is_none());
        assert!(first.folder.join("package/mine").exists());
        StartOrder::read(&start(), dir.path(), "").unwrap().unwrap();
        assert!(!first.folder.join("package/mine").exists());
    }

    #[test]
    fn strangers_and_other_versions_are_refused() {
        let refusal = |change: fn(&mut StartMessage)| read(change).unwrap_err().to_string();
        let engine =
            |start: &mut StartMessage| start.engine.as_mut().unwrap().name = "AFLPP".into();
        assert!(refusal(engine).contains("\"AFLPP\" is not one of ffuzz"));
        let version =
            |start: &mut StartMessage| start.engine.as_mut().unwrap().version = "9".into();
        assert!(refusal(version).contains("version \"9\""));
        assert!(refusal(|start| start.engine = None).contains("is not one of ffuzz"));
        assert!(refusal(|start| start.package.truncate(10)).contains("no"));
        assert!(
            refusal(|start| start.argv.push("a\0".into())).contains("\"a\\0\" has a zero byte")
        );
        assert!(refusal(|start| start.environment.push("A=\0".into())).contains("a zero byte"));
    }

    #[test]
    fn programs_without_instrumentation_are_for_some_engines() {
        let plain = |start: &mut StartMessage| start.package.truncate(64);
        let order = read(plain).unwrap();
        assert!(order.native && !read(|_| {}).unwrap().native);
        assert!(!read(|start| start.fuzz_mode = FuzzMode::BinaryOnly as i32).unwrap().native);
        let refused = |change: fn(&mut StartMessage)| {
            let both = |start: &mut StartMessage| (plain(start), change(start)).1;
            read(both).unwrap_err().to_string()
        };
        let built = refused(|start| start.fuzz_mode = FuzzMode::Instrumented as i32);
        assert!(built.contains("binary only"), "{built}");
        for engine in ["FFUZZ-CMP", "FFUZZ-CMP-MEM"] {
            let both = |start: &mut StartMessage| {
                plain(start);
                start.engine.as_mut().unwrap().name = engine.into();
            };
            let guided = read(both).unwrap_err().to_string();
            assert!(guided.contains("binary only"), "{guided}");
        }
        let heap = |start: &mut StartMessage| {
            plain(start);
            start.engine.as_mut().unwrap().name = "FFUZZ-HEAP".into();
        };
        let order = read(heap).unwrap();
        assert!(order.native && order.domains == ["heap"]);
    }

    #[test]
    fn where_seeds_go_is_settled() {
        let file = read(|start| start.seed_location = 1).unwrap();
        assert_eq!((file.argv, file.notes.len()), (vec!["@@".into()], 1));
        let stdin = read(|start| start.argv.push("@@".into())).unwrap();
        assert_eq!((stdin.argv.len(), stdin.notes.len()), (1, 1));
        let guided = read(|start| start.engine.as_mut().unwrap().name = "FFUZZ-CMP-MEM".into());
        assert_eq!(guided.unwrap().domains, ["cmp", "mem"]);
    }
}
