//! Rules about who may do what, which neither the compiler nor clippy knows. Each test lists every
//! place that breaks its rule; `docs/architecture.md` says why the rules are there.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules of one crate, in the order of `docs/architecture.md`: a module imports only from groups
/// before its own. Between crates the manifests say it.
const GROUPS: &[&[&str]] = &[
    &["engine::coverage", "engine::options"],
    &["engine::domain", "engine::corpus"],
    &["engine::minimize"],
    &["engine::executor"],
    &["engine::feedback", "engine::fake", "engine::schedule", "engine::runner"],
    &["engine::calibrate"],
    &["engine::fuzzer"],
    &["engine::stage"],
    &["crashes::crash"],
    &["crashes::collector"],
    &["crashes::triage"],
    &["crashes::forms"],
    &["fleet::control"],
    &["fleet::workers", "fleet::jobs", "fleet::ci"],
    &["fleet::pastis"],
    &["cmin"],
    &["campaign"],
    &["cmd"],
];
/// Importer, imported: what the rule allows all the same.
const IMPORT_EXCEPTIONS: &[(&str, &str)] = &[];
/// Files of the runtime from low to high: each includes its own header and those of lines before its
/// own. Domains include `waypoints.h` only.
const RUNTIME_LAYERS: &[&[&str]] = &[
    &["channel"],
    &["base", "preload/list"],
    &["machine", "process", "modules", "breakpoints"],
    &["pipes"],
    &["memory"],
    &["domains", "copies", "novelty", "log"],
    &["maps"],
    &["edge-map"],
    &["runs"],
    &["connect"],
    &["counters", "registration", "replay", "testcase"],
    &["forkserver"],
    &["comparisons"],
    &["snapshot/state"],
    &["snapshot/mappings", "snapshot/made"],
    &["snapshot/server"],
    &["snapshot/pages", "snapshot/changes"],
    &["snapshot/cycle"],
    &["snapshot/calls"],
    &["snapshot/filter"],
    &["snapshot/take"],
    &["snapshot/prologue"],
    &["snapshot/snapshot"],
    &[
        "persistent",
        "manual",
        "start",
        "guards",
        "callbacks",
        "wrapped",
        "hooks",
        "exit-hook",
        "selective",
        "stub",
        "where",
    ],
    &["preload/start"],
    &["native/table", "native/copying"],
    &["native/compares", "native/callers", "native/detours"],
    &["native/allocations", "native/writes"],
    &["native/blocks"],
    &["native/executions"],
    &["native/domains"],
    &["native/signals"],
    &["native/start"],
    &["heap/heap"],
    &["net/options", "net/kernel", "net/message"],
    &["net/transcript"],
    &["net/chance", "net/answers", "net/files"],
    &["net/counter", "net/alarms"],
    &["net/record"],
    &["net/input"],
    &["net/session", "net/netlink"],
    &["net/sockets"],
    &[
        "net/descriptors",
        "net/waiting",
        "net/pipes",
        "net/process",
        "net/streams",
        "net/threads",
        "net/transfer",
        "net/start",
    ],
    &["qemu/api"],
    &["qemu/modules", "qemu/calls"],
    &["qemu/warm", "qemu/trail"],
    &["qemu/server"],
    &["qemu/plugin"],
    &["driver/options", "driver/mutations"],
    &["driver/engine"],
    &["driver/report"],
    &["driver/crash"],
    &["driver/input"],
    &["driver/limits"],
    &["driver/corpus"],
    &["driver/files"],
    &["driver/driver"],
    &["driver/main"],
];
/// What compiled code, the linker or libc asks for by name: nobody includes a header of it.
const RUNTIME_ENTRIES: &[&str] = &[
    "start",
    "guards",
    "callbacks",
    "wrapped",
    "hooks",
    "exit-hook",
    "stub",
    "where",
    "driver/main",
    "qemu/plugin",
    "native/start",
    "native/copying",
    "preload/start",
    "heap/heap",
    "net/descriptors",
    "net/waiting",
    "net/pipes",
    "net/process",
    "net/streams",
    "net/threads",
    "net/transfer",
    "net/start",
];
/// They decide, and neither read a file nor a clock.
const PURE: &[&str] = &["engine", "crashes/crash"];
/// Readers of the environment: the fuzzer's table, and the compiler wrapper's, which has to be
/// quick because it runs for every source file of a build.
const ENVIRONMENT: &[&str] = &["src/config/env.rs", "src/compiler/env.rs"];
const MAX_FILE: u64 = 1 << 20;
/// Columns of the pages, outside tables and blocks of code.
const MAX_COLUMNS: usize = 120;
/// Pages that may have longer lines.
const WIDE_PAGES: &[&str] = &["CHANGELOG.md", "CONTRIBUTING.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder of the repository, or the file itself; build results left out.
fn files(start: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut open = vec![root().join(start)];
    while let Some(path) = open.pop() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_top = path.parent() == Some(root());
        if name == ".git" || (is_top && name == "target") || path.ends_with("demo/build") {
            continue;
        }
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// A Rust file, with and without its tests.
struct Source {
    /// Relative to the repository.
    name: String,
    text: String,
}

impl Source {
    /// Lines of code outside tests: number, text without comment and string contents.
    fn code(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        let numbered = self.text[..end].lines().enumerate();
        numbered.map(|(number, line)| (number + 1, stripped(line)))
    }

    fn is_test(&self) -> bool {
        self.name.starts_with("tests/")
            || self.name.ends_with("/tests.rs")
            || self.name.contains("/tests/")
    }

    /// The module of [`GROUPS`] that this file is part of; None for what holds a room together.
    fn module(&self) -> Option<&'static str> {
        let inner = self.name.strip_prefix("src/")?.strip_suffix(".rs")?;
        let path = inner.trim_end_matches("/mod").trim_end_matches("/lib").replace('/', "::");
        let own = named(&path);
        let is_free = !inner.contains('/') || !self.crate_folder().is_empty();
        assert!(own.is_some() || is_free, "{inner} is in no group");
        own
    }

    /// The folder of a crate, with a slash; none for the crate that is the whole.
    fn crate_folder(&self) -> &str {
        let end = self.name.strip_prefix("src/").and_then(|rest| rest.find('/'));
        let folder = &self.name[..end.map_or(0, |end| end + 5)];
        if root().join(folder).join("Cargo.toml").exists() { folder } else { "" }
    }

    fn is_below(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.name.starts_with(folder))
    }
}

fn sources() -> Vec<Source> {
    let found = ["src", "python-host", "tests", "benches"].into_iter().flat_map(files);
    let rust = found.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.map(|path| Source { name: relative(&path), text: fs::read_to_string(&path).unwrap() })
        .collect()
}

/// Without the comment, and with empty strings. Strings over several lines are rare enough.
fn stripped(line: &str) -> String {
    let mut out = String::new();
    let mut in_string = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if in_string => {
                letters.next();
            }
            '\'' if !in_string && letters.peek() == Some(&'"') => {
                letters.next();
            }
            '"' => {
                in_string = !in_string;
                out.push('"');
            }
            '/' if !in_string && letters.peek() == Some(&'/') => break,
            _ if in_string => {}
            _ => out.push(letter),
        }
    }
    out
}

/// Names of which `word` is no part.
fn has_word(line: &str, word: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part);
        let after = line[at + word.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}

/// Places of non-test code, outside the given folders, for which `broken` holds.
fn places(allowed: &[&str], broken: impl Fn(&str) -> bool) -> Vec<String> {
    places_in(|source| !source.is_below(allowed), broken)
}

fn places_in(wanted: impl Fn(&Source) -> bool, broken: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = vec![];
    for source in sources().iter().filter(|source| !source.is_test() && wanted(source)) {
        for (number, line) in source.code().filter(|(_, line)| broken(line)) {
            found.push(format!("{}:{number}: {}", source.name, line.trim()));
        }
    }
    found
}

#[track_caller]
fn none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    let sources = sources();
    assert!(sources.len() > 50, "the walk finds no sources");
    let silent = sources.iter().filter(|source| !source.text.starts_with("//!"));
    let names: Vec<String> = silent.map(|source| source.name.clone()).collect();
    none("a file begins with //! and says what it is for", &names);
}

/// The compiler does not miss a file that nothing names.
#[test]
fn every_file_of_the_library_is_a_module() {
    let sources = sources();
    let lines: Vec<&str> = sources.iter().flat_map(|source| source.text.lines()).collect();
    let has_path = |name: &str| {
        lines.iter().any(|line| line.contains("#[path") && line.ends_with(&format!("{name}.rs\"]")))
    };
    let is_named = |name: &str, beside: &str| {
        let parents = ["", "/mod", "/lib"].map(|end| format!("{beside}{end}.rs"));
        let mut parents = sources.iter().filter(|source| parents.contains(&source.name));
        let named = format!("mod {name};");
        parents.any(|source| source.text.lines().any(|line| line.trim().ends_with(&named)))
    };
    let mut stray = vec![];
    for source in sources.iter().filter(|source| source.name.starts_with("src/")) {
        let path = source.name.trim_end_matches(".rs").trim_end_matches("/mod");
        let Some((beside, name)) = path.rsplit_once('/') else { continue };
        let is_root = ["lib", "main", "build"].contains(&name);
        if !is_root && !is_named(name, beside) && !has_path(name) {
            stray.push(source.name.clone());
        }
    }
    none("a file that no `mod` names", &stray);
}

/// The derive macro of `Diagnostic` accepts an error without a remedy.
#[test]
fn every_error_of_the_user_has_its_remedy_beside_it() {
    let mut found = vec![];
    for source in sources() {
        let derived = source.text.split("thiserror::Error, Diagnostic)]").skip(1);
        for definition in derived.filter_map(|rest| rest.split("\n}").next()) {
            let errors = definition.split("#[error(").skip(1);
            let bare = errors
                .filter(|error| !["#[diagnostic(", "#[help]"].iter().any(|it| error.contains(it)));
            found.extend(bare.map(|error| {
                format!("{}: {}", source.name, error.lines().next().unwrap_or_default())
            }));
        }
    }
    none("an error that derives Diagnostic has help: #[diagnostic(help(…))]", &found);
}

/// The compiler refuses `unsafe` where it is not allowed by name.
#[test]
fn unsafe_code_is_allowed_in_three_crates() {
    let allowed = ["src/sys/lib.rs", "src/abi/lib.rs", "python-host/", "examples/"];
    let found = places(&allowed, |line| has_word(line, "unsafe_code"));
    none("unsafe only under src/sys, src/abi and python-host", &found);
}

#[test]
fn the_library_neither_panics_carelessly_nor_prints() {
    let allowed = [
        "src/main.rs",
        "src/cmd/",
        "src/ui/",
        "src/assets/build.rs",
        "src/abi/build.rs",
        "benches/",
    ];
    let words = [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "println!(", "eprintln!("];
    let found = places(&allowed, |line| words.iter().any(|word| line.contains(word)));
    none("no unwrap, todo!, dbg! or println! outside tests, main, cmd and ui", &found);
}

#[test]
fn the_environment_is_read_in_one_place_per_program() {
    let reads = ["env::var(", "env::var_os(", "env::vars(", "env::vars_os(", "env::{var"];
    let mut allowed = ENVIRONMENT.to_vec();
    allowed.extend(["src/assets/build.rs", "src/abi/build.rs", "benches/"]);
    let found = places(&allowed, |line| reads.iter().any(|read| line.contains(read)));
    none("variables are read in src/config/env.rs (the wrapper's in src/compiler/env.rs)", &found);
}

#[test]
fn standard_input_is_opened_in_one_place() {
    let found = places(&["src/sys/stdio.rs"], |line| {
        line.contains("io::stdin(")
            || line.contains(" stdin()")
            || line.contains("Stdio::inherit()")
    });
    let allowed = ["src/compiler/lib.rs:", "src/disk/output/hook.rs:"];
    let found: Vec<String> =
        found.into_iter().filter(|place| !allowed.iter().any(|a| place.starts_with(a))).collect();
    none("descriptor 0 may be somebody else's: sys::stdio::input() is the user's", &found);
}

#[test]
fn decisions_depend_on_neither_files_nor_clock() {
    let pure = |source: &Source| PURE.iter().any(|m| source.is_below(&[&format!("src/{m}/")]));
    let words = ["std::fs", "std::io", "File::", "Instant::now", "SystemTime", "std::process"];
    let found = places_in(pure, |line| words.iter().any(|word| line.contains(word)));
    none(&format!("{PURE:?} do no I/O and read no clock"), &found);
}

fn group(module: &str) -> usize {
    GROUPS.iter().position(|group| group.contains(&module)).unwrap()
}

/// The module of [`GROUPS`] with which a path begins.
fn named(path: &str) -> Option<&'static str> {
    let begins = |name: &&str| path == *name || path.starts_with(&format!("{name}::"));
    GROUPS.concat().into_iter().find(begins)
}

/// Modules that a line names by `crate::PATH` or `crate::{PATH…, PATH…}`; `room` is the crate's, empty for
/// that which is the whole.
fn imports(room: &str, line: &str) -> Vec<&'static str> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let path = |text: &str| text.chars().take_while(|c| part(*c)).collect::<String>();
    let mut found = vec![];
    for (at, start) in line.match_indices("crate::") {
        let rest = &line[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(list.split(',').map(|name| path(name.trim()))),
            None => found.push(path(rest)),
        }
    }
    let inside = |path: String| if room.is_empty() { path } else { format!("{room}::{path}") };
    found.into_iter().filter_map(|path| named(&inside(path))).collect()
}

#[test]
fn modules_import_only_from_groups_before_their_own() {
    let mut found = vec![];
    for source in sources().iter().filter(|source| !source.is_test()) {
        let Some(module) = source.module() else { continue };
        let room = source.crate_folder().trim_start_matches("src/").trim_end_matches('/');
        for (number, line) in source.code() {
            for import in imports(room, &line) {
                let excepted = IMPORT_EXCEPTIONS.contains(&(module, import));
                if import != module && group(import) >= group(module) && !excepted {
                    found.push(format!("{}:{number}: {module} imports {import}", source.name));
                }
            }
        }
    }
    none("import rule of docs/architecture.md", &found);
}

/// C files of the runtime but users' headers: path below `runtime/` without the ending, the ending, text.
fn runtime_files() -> Vec<(String, String, String)> {
    let found = files("runtime").into_iter().filter_map(|path| {
        let name = relative(&path).strip_prefix("runtime/")?.to_owned();
        let (name, ending) = name.rsplit_once('.')?;
        let is_code = ["c", "h"].contains(&ending) && !name.starts_with("include/");
        is_code.then(|| (name.into(), ending.into(), fs::read_to_string(&path).unwrap()))
    });
    found.collect()
}

fn layer(name: &str) -> Option<usize> {
    RUNTIME_LAYERS.iter().position(|layer| layer.contains(&name))
}

#[test]
fn runtime_files_include_only_headers_of_lower_layers() {
    let files = runtime_files();
    assert!(files.len() > 50, "the walk finds no files");
    let mut found = vec![];
    for (name, ending, text) in &files {
        let file = format!("runtime/{name}.{ending}");
        let includes = text.lines().filter_map(|line| line.strip_prefix("#include \""));
        let includes: Vec<&str> =
            includes.filter_map(|line| line.split_once(".h\"")).map(|(name, _)| name).collect();
        if name.starts_with("domains/") {
            if includes != ["waypoints"] {
                found.push(format!("{file}: a domain includes waypoints.h only"));
            }
            continue;
        }
        let Some(own) = layer(name) else {
            found.push(format!("{file}: is in no layer"));
            continue;
        };
        let higher = includes.iter().filter(|include| **include != name);
        let higher = higher.filter(|include| layer(include).is_none_or(|layer| layer >= own));
        found.extend(higher.map(|include| format!("{file}: includes {include}.h")));
    }
    none("RUNTIME_LAYERS of tests/tidy.rs", &found);
    for name in RUNTIME_LAYERS.concat() {
        assert!(files.iter().any(|(file, _, _)| file == name), "there is no runtime/{name}");
    }
}

#[test]
fn runtime_files_begin_with_their_own_headers() {
    let files = runtime_files();
    let mut found = vec![];
    for (name, _, text) in files.iter().filter(|(_, ending, _)| ending == "c") {
        let is_domain = name.starts_with("domains/");
        let is_entry = RUNTIME_ENTRIES.contains(&name.as_str());
        let has_header = files.iter().any(|(file, ending, _)| file == name && ending == "h");
        let first = text.lines().find_map(|line| line.strip_prefix("#include \""));
        let includes_it = first.and_then(|line| line.strip_suffix(".h\"")) == Some(name);
        if !is_domain && (is_entry == has_header || has_header != includes_it) {
            found.push(format!("runtime/{name}.c"));
        }
    }
    none("a .c file has and includes a header of its own name, or is an entry", &found);
}

/// Names of the built-in domains; the files in `runtime/domains/` are their list.
fn domains() -> Vec<String> {
    let names = runtime_files().into_iter().filter_map(|(name, _, _)| {
        let name = name.strip_prefix("domains/waypoints-")?.strip_suffix("-rt")?;
        Some(name.to_owned())
    });
    names.collect()
}

/// What stands between two words of a text, wherever they do.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    let parts = text.split(before).skip(1);
    parts.filter_map(|part| part.split_once(after)).map(|(name, _)| name).collect()
}

#[test]
fn every_place_that_lists_the_built_in_domains_has_all() {
    let domains = domains();
    assert!(domains.len() > 5, "the walk finds no domains");
    let text = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let builtin = text("llvm-passes/waypoints-builtin-pass.cc");
    assert_eq!(between(&builtin, "#include \"waypoints-", "-pass.cc\""), domains);
    assert_eq!(between(&builtin, "DOMAIN(\"", "\","), domains);
    let named = |file: &str, word: &dyn Fn(&str) -> String| {
        let text = text(file);
        let missing = domains.iter().map(|name| word(name)).filter(|word| !text.contains(word));
        none(file, &missing.collect::<Vec<_>>());
    };
    named("docs/domains.md", &|name| format!("| [{name}](domains/{name}.md) |"));
    named("README.md", &|name| format!("`{name}`"));
    named("tests/docs/pages.rs", &|name| format!("is_right(\"{name}\")"));
    named("src/fleet/pastis/engines.rs", &|name| format!("\"FFUZZ-{}\"", name.to_uppercase()));
    for folder in ["llvm-passes", "docs/domains"] {
        let mut found: Vec<String> = vec![];
        for path in files(folder) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let page = name.strip_suffix(".md");
            let pass = name.strip_prefix("waypoints-").and_then(|end| end.strip_suffix("-pass.cc"));
            found.extend(page.or(pass).filter(|name| *name != "builtin").map(str::to_owned));
        }
        assert_eq!(found, domains, "{folder}");
    }
}

#[test]
fn the_architecture_text_names_the_groups() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    for group in GROUPS {
        let words = format!("`{}`", group.join(" "));
        assert!(text.contains(&words), "docs/architecture.md does not name the group {words}");
    }
}

/// Of the repository, as git has it. A target that is run here may leave files, and `git add -A` takes them.
const TOP_LEVEL: &str = ".cargo .ci .config .gitignore CHANGELOG.md CONTRIBUTING.md Cargo.lock Cargo.toml \
    LICENSE-APACHE LICENSE-MIT Makefile README.md SECURITY.md benches clippy.toml demo deny.toml docs examples include \
    integrations llvm-passes python-host runtime rustfmt.toml scripts src tests";

#[test]
fn nothing_else_is_at_the_top_level() {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Ok(listed) = listed else { return };
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let known: BTreeSet<&str> = TOP_LEVEL.split_whitespace().collect();
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let found: BTreeSet<String> =
        names.split('\0').filter(|path| !path.is_empty()).map(first).collect();
    let found: Vec<String> = found.into_iter().filter(|name| !known.contains(&**name)).collect();
    none("the top level has only what belongs there", &found);
}

#[test]
fn files_are_small_and_name_no_machine() {
    // In pieces, or this file would break its own rule.
    let homes =
        [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["/wo", "rk/"]].map(|p| p.concat());
    let mut found = vec![];
    for path in files("") {
        let size = path.symlink_metadata().unwrap().len();
        if size > MAX_FILE {
            found.push(format!("{}: {size} bytes", relative(&path)));
        }
        // Recorded outputs of others stay as they are.
        if path.starts_with(root().join("tests/data")) {
            continue;
        }
        // Binary files name nothing.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if homes.iter().any(|home| line.contains(home.as_str())) {
                found.push(format!("{}:{}: {}", relative(&path), number + 1, line.trim()));
            }
        }
    }
    none("no file over 1 MiB, no path of somebody's machine", &found);
}

fn pages() -> Vec<(PathBuf, String)> {
    let names = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benches/RESULTS.md",
        "docs",
    ];
    let found = names.into_iter().flat_map(files);
    let pages = found.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// Names in a table of a manifest, as Rust spells them.
fn dependencies(manifest: &Path, table: &str) -> Vec<String> {
    let manifest = fs::read_to_string(manifest).unwrap();
    let table = manifest.split(&format!("\n[{table}]\n")).nth(1).unwrap_or_default();
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let name =
        |line: &str| Some(line.split_once(" = ")?.0.replace(".workspace", "").replace('-', "_"));
    lines.filter_map(name).collect()
}

/// What `cargo shear` finds, which `make check` runs where it is installed.
#[test]
fn every_dependency_is_used() {
    let sources = sources();
    let mut folders: Vec<&str> = sources.iter().map(Source::crate_folder).collect();
    folders.sort_unstable();
    folders.dedup();
    assert!(folders.len() > 10, "{folders:?}");
    let mut unused = vec![];
    for folder in folders {
        let own = sources
            .iter()
            .filter(|source| source.name.starts_with("src/") && source.crate_folder() == folder);
        let lines: Vec<String> =
            own.flat_map(|source| source.code()).map(|(_, line)| line).collect();
        for name in dependencies(&root().join(folder).join("Cargo.toml"), "dependencies") {
            let uses = [
                format!("{name}::"),
                format!("use {name};"),
                format!("{name}!"),
                format!("use {name} as"),
            ];
            if !lines.iter().any(|line| uses.iter().any(|u| line.contains(u))) {
                unused.push(format!("{folder}: {name}"));
            }
        }
    }
    none("a dependency that no source names", &unused);
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut found = vec![];
    for (page, text) in pages() {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (target, _) in targets.filter(|(target, _)| !target.contains("://")) {
            let file = target.split('#').next().unwrap();
            if !file.is_empty() && !page.parent().unwrap().join(file).exists() {
                found.push(format!("{}: {target}", relative(&page)));
            }
        }
    }
    none("links lead to files of the repository", &found);
}

/// Lines of a page that are neither in a table nor in a block of code, with their numbers.
fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut found = vec![];
    for (number, line) in (1..).zip(page.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !line.starts_with('|') {
            found.push((number, line));
        }
    }
    found
}

#[test]
fn lines_of_pages_are_short() {
    let mut found = vec![];
    for (page, text) in pages() {
        let name = relative(&page);
        let lines = prose(&text).into_iter().filter(|(_, line)| line.chars().count() > MAX_COLUMNS);
        let lines = lines.filter(|_| !WIDE_PAGES.contains(&name.as_str()));
        found.extend(lines.map(|(number, line)| {
            format!("{name}:{number}: {} columns: {line}", line.chars().count())
        }));
    }
    none(&format!("lines of pages have at most {MAX_COLUMNS} columns"), &found);
}

/// `AFL_…`, `FFUZZ_…` in a text; the bare prefixes stand for all of them.
fn variables(text: &str) -> Vec<&str> {
    let part =
        |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let words = text.split(|letter| !part(letter));
    let ours = |word: &&str| ["AFL_", "FFUZZ_"].iter().any(|p| word.starts_with(p) && word != p);
    words.filter(ours).collect()
}

#[test]
fn pages_name_only_variables_that_exist() {
    let known = ["src/config/env/table.rs", "src/cmd/fuzz/words.rs", "benches/ratios.rs"]
        .map(|file| fs::read_to_string(root().join(file)).unwrap())
        .concat();
    let known = variables(&known);
    let mut found = vec![];
    for (page, text) in pages() {
        for name in variables(&text).into_iter().filter(|name| !known.contains(name)) {
            found.push(format!("{}: {name}", relative(&page)));
        }
    }
    none("variables of the pages are in the tables", &found);
}

#[test]
fn the_wrapper_reads_only_variables_that_are_documented() {
    let code = fs::read_to_string(root().join("src/compiler/env.rs")).unwrap();
    let page = fs::read_to_string(root().join("docs/env.md")).unwrap();
    let documented = variables(&page);
    let code = code.split("#[cfg(test)]").next().unwrap();
    let read = variables(code).into_iter().filter(|name| !name.ends_with('_'));
    let missing = read.filter(|name| !documented.contains(name)).map(str::to_owned);
    none("src/compiler/env.rs and docs/env.md", &missing.collect::<Vec<_>>());
}

/// What `make test` would run, one command a line.
fn commands_of_make_test(words: &[&str]) -> Vec<String> {
    let mut make = Command::new("make");
    // From another make it would take over options and a place in its queue.
    make.args(["-n", "test"]).args(words).current_dir(root());
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("SERVERS");
    let output = make.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Tests that a command names.
fn tests_of(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1]).collect()
}

#[test]
fn servers_are_fetched_when_all_other_tests_have_passed() {
    let commands = commands_of_make_test(&[]);
    let at = |what: &str| commands.iter().position(|line| line.contains(what)).unwrap();
    let servers = at("setup.sh --servers");
    assert!(at("clippy") < at("--no-run") && at("--no-run") < at("--test tidy"), "{commands:#?}");
    assert!(at("--test tidy") < servers, "{commands:#?}");
    let (before, after) = commands.split_at(servers);
    let mut run: Vec<&str> = before.iter().flat_map(|line| tests_of(line)).collect();
    let needing: Vec<&str> = after.iter().flat_map(|line| tests_of(line)).collect();
    for source in sources().iter().filter(|source| source.name.starts_with("tests/")) {
        let talks = [" Server::start(", ":Server::start(", "join(\"pastis\")"];
        let talks = talks.iter().any(|call| source.text.contains(call));
        let Some((group, _)) = source.name[6..].split_once('/') else { continue };
        if !["common", "servers"].contains(&group) {
            assert!(!talks, "{}: its place is tests/servers/", source.name);
        }
    }
    assert_eq!(needing, ["servers"], "see SERVER_TESTS in the Makefile");
    run.extend(needing);
    run.sort_unstable();
    let group = |path: &Path| match path.strip_prefix(root().join("tests")).unwrap() {
        file if file.ends_with("main.rs") => file.parent().map(Path::to_owned),
        file if file.components().count() == 1 => Some(file.with_extension("")),
        _ => None,
    };
    let mut all: Vec<String> =
        files("tests").iter().filter_map(|path| Some(group(path)?.display().to_string())).collect();
    all.sort_unstable();
    assert_eq!(run, all, "each group of tests runs once");
    let without = commands_of_make_test(&["SERVERS="]);
    let fetch = without.iter().find(|line| line.contains("setup.sh --servers")).unwrap();
    assert!(fetch.ends_with("--servers --skip"), "{fetch}");
}

#[test]
fn servers_that_are_not_there_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let said = |word: &str| {
        let mut setup = Command::new(root().join("scripts/setup.sh"));
        let output = setup.args(["--servers", word]).env("CARGO_TARGET_DIR", empty.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    for what in ["FuzzManager server", "PASTIS broker"] {
        let skipped = format!("setup: no {what} is installed: its tests are skipped");
        assert!(said("--skip").contains(&skipped), "{}", said("--skip"));
        let list = said("--list");
        let line = list.lines().find(|line| line.contains(what)).unwrap();
        let number = line.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(number.parse::<u32>().is_ok_and(|number| number > 10), "{line}");
    }
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0, "nothing is installed");
}

#[test]
fn comments_and_strings_are_stripped() {
    assert_eq!(stripped(r#"let a = "unsafe // \" x"; // unsafe"#), r#"let a = ""; "#);
    assert_eq!(imports("", "use crate::{cmin, cmd::fuzz};"), ["cmin", "cmd"]);
    assert_eq!(imports("engine", "use crate::stage::Stage;"), ["engine::stage"]);
    assert!(has_word("unsafe {", "unsafe") && !has_word("unsafe_code", "unsafe"));
}

#[test]
fn tables_and_code_are_no_prose() {
    let page = "one\n| a | b |\n```sh\n| x\n```\ntwo\n";
    assert_eq!(prose(page), [(1, "one"), (6, "two")]);
}
