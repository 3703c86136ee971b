//! Parses the compiler's command line; changes nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::toolchain::{self, Linker};

/// Last stage that clang runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum BuildStage {
    /// `-E`, `-M`, `-MM`, `-fsyntax-only`: no code is generated.
    Preprocess,
    /// `-c`, `-S`, `-emit-llvm` and similar options.
    Compile,
    #[default]
    Link,
}

/// Output of the link stage.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Product {
    #[default]
    Executable,
    SharedLibrary,
    /// `-r`: links several objects into one.
    Object,
}

/// A parsed command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invocation {
    /// Arguments as given; response files are not expanded.
    pub arguments: Vec<OsString>,
    /// Arguments with expanded response files.
    pub words: Vec<OsString>,
    pub stage: BuildStage,
    pub product: Product,
    /// Files for clang to compile (C family, not assembler), including headers.
    pub sources: Vec<OsString>,
    /// Number of header files, which clang precompiles.
    headers: usize,
    /// True with `-include` or `-include-pch`: a precompiled header must come first.
    pub includes_first: bool,
    /// Number of all input files, including sources and libraries.
    pub inputs: usize,
    /// True if `-x` is in force at the end of the line, so additional files need `-x none`.
    pub language_forced: bool,
    /// The last `-O…`.
    pub level: Option<OsString>,
    /// True with `-fsanitize=fuzzer` or a library with the same purpose.
    pub fuzzer_driver: bool,
    /// True if inputs include Rust libraries: rustc is linking.
    pub links_rust: bool,
    /// True if `-fsanitize=` names anything but libFuzzer's parts.
    pub sanitized: bool,
    /// True if the user sets `-D_FORTIFY_SOURCE=…`.
    pub fortified: bool,
    /// Option that excludes the C library, which the runtime needs.
    freestanding: Option<String>,
    /// Last option that selects another machine.
    foreign: Option<String>,
    /// Option that forbids adding libraries and start files; a build tool such as rustc names them itself.
    pub bare: Option<String>,
    /// `-lc`.
    names_libc: bool,
    /// True for a query to the compiler instead of a compilation.
    query: bool,
    /// `-E`.
    expands: bool,
    /// `-M`, `-MM`: the output is a make rule.
    lists: bool,
    /// The last `-fuse-ld=` or `--ld-path=`.
    linker: Option<String>,
    /// `-o`.
    output: Option<OsString>,
}

/// Options whose value is the next word.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-x",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-include",
    "-include-pch",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-cxx-isystem",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xanalyzer",
    "-T",
    "-u",
    "-e",
    "-z",
    "-arch",
    "-target",
    "--param",
    "-mllvm",
    "-A",
    "-B",
    "-F",
    "-framework",
    "-rpath",
    "-soname",
    "-h",
    "--sysroot",
    "-gcc-toolchain",
    "-working-directory",
    "-dumpdir",
    "-main-file-name",
    "-wrapper",
    "--language",
    "--output",
    "--target",
    "-fmodule-file-home",
];

/// Queries: clang prints an answer and exits.
const QUERIES: &[&str] = &["--version", "--help", "-help", "-dumpversion", "-dumpmachine", "-V"];

impl Invocation {
    /// Parses a command line. `read` returns the content of a response file, or None.
    pub(crate) fn parse(
        arguments: Vec<OsString>,
        read: impl Fn(&OsStr) -> Option<Vec<u8>>,
    ) -> Self {
        let words = expand(&arguments, &read, &mut vec![]);
        let mut invocation = Self { arguments, ..Self::default() };
        invocation.read_words(&words);
        invocation.words = words;
        invocation
    }

    fn read_words(&mut self, words: &[OsString]) {
        let mut language: Option<String> = None;
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let text = word.to_string_lossy();
            if text == "-x" || text == "--language" {
                language = rest.next().map(|word| word.to_string_lossy().into_owned());
            } else if let Some(name) = text.strip_prefix("-x").filter(|name| !name.is_empty()) {
                language = Some(name.to_owned());
            } else if let Some(name) = text.strip_prefix("--language=") {
                language = Some(name.to_owned());
            } else if WITH_VALUE.contains(&&*text) {
                let value = rest.next();
                self.read_value(&text, value);
                if text == "-o" || text == "--output" {
                    self.output = value.cloned();
                }
            } else if text.starts_with('-') && text != "-" {
                self.read_option(&text, word);
            } else {
                self.read_input(word, language.as_deref());
            }
        }
        self.language_forced = language.is_some_and(|name| name != "none");
        if self.headers > 0 && self.headers == self.inputs {
            // Nothing remains for the linker.
            self.reach(BuildStage::Compile);
        }
    }

    fn read_value(&mut self, option: &str, value: Option<&OsString>) {
        let value = value.map(|value| value.to_string_lossy()).unwrap_or_default();
        match option {
            "-include" | "-include-pch" => self.includes_first = true,
            "-D" if value.starts_with("_FORTIFY_SOURCE") => self.fortified = true,
            "-l" if is_engine(&format!("-l{value}")) => self.fuzzer_driver = true,
            "-l" => {
                self.names_libc |= value == "c";
                self.inputs += 1;
            }
            "-Xlinker" if value == "-r" || value == "--relocatable" => {
                self.product = Product::Object;
            }
            "-target" | "--target" => self.read_target(&value),
            _ => {}
        }
    }

    fn read_option(&mut self, text: &str, word: &OsString) {
        match text {
            "-E" | "-M" | "-MM" | "-fsyntax-only" | "--analyze" | "-rewrite-objc" => {
                self.expands |= text == "-E";
                self.lists |= matches!(text, "-M" | "-MM");
                self.reach(BuildStage::Preprocess);
            }
            "-c" | "-S" | "-emit-ast" | "--precompile" | "-fmodule-header" => {
                self.reach(BuildStage::Compile);
            }
            "-shared" | "--shared" | "-dynamiclib" => self.product = Product::SharedLibrary,
            "-r" | "--relocatable" | "-Wl,-r" | "-Wl,--relocatable" => {
                self.product = Product::Object;
            }
            "-nostdlib" | "-nostartfiles" | "-nodefaultlibs" => self.bare = Some(text.to_owned()),
            "-nolibc" | "-ffreestanding" => self.freestanding = Some(text.to_owned()),
            "-m32" | "-mx32" | "-m16" => self.foreign = Some(text.to_owned()),
            "-m64" => self.foreign = None,
            _ if QUERIES.contains(&text) || is_print(text) => self.query = true,
            _ => self.read_joined(text, word),
        }
    }

    fn read_joined(&mut self, text: &str, word: &OsString) {
        if text.starts_with("-o") {
            self.output = Some(OsStr::from_bytes(&word.as_bytes()[2..]).to_owned());
        } else if text.starts_with("-O") {
            self.level = Some(word.clone());
        } else if let Some(list) = text.strip_prefix("-fsanitize=") {
            self.fuzzer_driver |= list.split(',').any(|name| name == "fuzzer");
            self.sanitized |= list.split(',').any(|name| !is_fuzzer_part(name));
        } else if let Some(name) = text.strip_prefix("-fuse-ld=") {
            self.linker = Some(name.to_owned());
        } else if let Some(path) = text.strip_prefix("--ld-path=") {
            self.linker = Some(path.to_owned());
        } else if let Some(target) = text.strip_prefix("--target=") {
            self.read_target(target);
        } else if text.starts_with("-D_FORTIFY_SOURCE") {
            self.fortified = true;
        } else if is_engine(text) {
            self.fuzzer_driver = true;
        } else if text.starts_with("-l") {
            self.names_libc |= text == "-lc";
            self.inputs += 1;
        }
    }

    fn read_target(&mut self, target: &str) {
        self.foreign = is_foreign(target).then(|| format!("--target={target}"));
    }

    fn read_input(&mut self, word: &OsString, language: Option<&str>) {
        self.inputs += 1;
        self.links_rust |= word.as_bytes().ends_with(b".rlib");
        if is_engine(&word.to_string_lossy()) {
            self.fuzzer_driver = true;
        } else if is_header(word, language) {
            self.headers += 1;
            self.sources.push(word.clone());
        } else if is_source(word, language) {
            self.sources.push(word.clone());
        }
    }

    /// Moves to `stage` if it is earlier than the current one: the order of options does not matter.
    fn reach(&mut self, stage: BuildStage) {
        self.stage = match (self.stage, stage) {
            (BuildStage::Preprocess, _) | (_, BuildStage::Preprocess) => BuildStage::Preprocess,
            _ => stage,
        };
    }

    /// False for queries, for calls without input files, and for code that cannot contain the runtime.
    #[must_use]
    pub(crate) fn wants_instrumentation(&self) -> bool {
        !self.query && self.inputs > 0 && self.foreign.is_none() && self.lacks_libc().is_none()
    }

    /// The option that excludes the C library from the product.
    #[must_use]
    pub(crate) fn lacks_libc(&self) -> Option<&str> {
        let without_libc = !self.names_libc && !self.fuzzer_driver;
        let bare = self.bare.as_deref().filter(|_| without_libc);
        self.freestanding.as_deref().or(bare)
    }

    /// The option that selects a machine without a runtime.
    #[must_use]
    pub(crate) fn wrong_machine(&self) -> Option<&str> {
        let works = self.stage != BuildStage::Preprocess && !self.query && self.inputs > 0;
        self.foreign.as_deref().filter(|_| works)
    }

    /// True if the program would get clang's libFuzzer, because it cannot contain the runtime of ffuzz.
    #[must_use]
    pub(crate) fn lacks_driver(&self) -> bool {
        let alien = self.foreign.is_some() || self.freestanding.is_some();
        alien && self.fuzzer_driver && !self.query && self.links() && self.inputs > 0
    }

    /// True if code is generated from at least one source.
    #[must_use]
    pub(crate) fn compiles(&self) -> bool {
        self.stage != BuildStage::Preprocess && !self.sources.is_empty()
    }

    /// The compilation of the preprocessed source that this call prints.
    #[must_use]
    pub(crate) fn of_expanded(&self) -> Option<Self> {
        let expands = self.expands && !self.lists && !self.sources.is_empty();
        expands.then(|| Self { stage: BuildStage::Compile, ..self.clone() })
    }

    /// True if the output is a program or a shared library.
    #[must_use]
    pub(crate) fn links(&self) -> bool {
        self.stage == BuildStage::Link && self.product != Product::Object
    }

    /// True for a query to the compiler instead of a compilation.
    #[must_use]
    pub(crate) fn is_query(&self) -> bool {
        self.query
    }

    /// Output file of a link.
    #[must_use]
    pub(crate) fn product_path(&self) -> &Path {
        self.output.as_deref().map_or(Path::new("a.out"), Path::new)
    }

    /// True for a test of a configure script, which may compare the output.
    #[must_use]
    pub(crate) fn is_probe(&self) -> bool {
        let is_theirs = |path: &Path| path.file_stem() == Some(OsStr::new("conftest"));
        is_theirs(self.product_path()) || self.sources.iter().any(|s| is_theirs(Path::new(s)))
    }

    #[must_use]
    pub(crate) fn source_names(&self) -> Vec<&OsStr> {
        self.sources.iter().map(OsString::as_os_str).collect()
    }

    /// Whether the linker of this call accepts the linker script. Calls that do not link count as accepting it.
    pub(crate) fn linker(&self, default: impl Fn() -> Linker) -> Linker {
        match &self.linker {
            _ if !self.links() => Linker::TakesScript,
            Some(name) => toolchain::by_name(name),
            None => default(),
        }
    }
}

/// True for libFuzzer's parts of a `-fsanitize=` list: `fuzzer` and `fuzzer-no-link`.
#[must_use]
pub(crate) fn is_fuzzer_part(name: &str) -> bool {
    name == "fuzzer" || name == "fuzzer-no-link"
}

/// True for the names by which build scripts link libFuzzer.
#[must_use]
pub(crate) fn is_engine(text: &str) -> bool {
    matches!(text, "-lFuzzer" | "-lFuzzingEngine")
        || text.ends_with("/libFuzzer.a")
        || text.ends_with("/libFuzzingEngine.a")
        || matches!(text, "libFuzzer.a" | "libFuzzingEngine.a")
}

fn is_print(text: &str) -> bool {
    text.starts_with("-print-") || text.starts_with("--print-")
}

/// True for a target other than Linux on the machine that the runtime was built for.
fn is_foreign(target: &str) -> bool {
    let ours = target.starts_with(std::env::consts::ARCH)
        || target.starts_with("amd64") && cfg!(target_arch = "x86_64");
    let linux = !target.contains('-') || target.contains("linux");
    !ours || !linux || target.ends_with("x32")
}

/// True with `-x c++-header` and similar, or for a file name that clang treats as a header.
fn is_header(file: &OsStr, language: Option<&str>) -> bool {
    match language {
        Some("none") | None => {
            let extension = Path::new(file).extension().unwrap_or_default();
            ["h", "H", "hh", "hp", "hpp", "hxx"].iter().any(|known| extension == *known)
        }
        Some(name) => name.ends_with("-header"),
    }
}

fn is_source(file: &OsStr, language: Option<&str>) -> bool {
    match language {
        Some("none") | None => {
            let extension = Path::new(file).extension().unwrap_or_default();
            let known = [
                "c", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "i", "ii", "m", "mm", "M", "bc",
                "ll", "cppm",
            ];
            known.iter().any(|known| extension == *known)
        }
        Some(name) => !name.starts_with("assembler"),
    }
}

/// Expands `@file` recursively, as clang does. `within` holds the enclosing files: a file that contains itself is left
/// unexpanded, so that clang rejects it.
fn expand(
    arguments: &[OsString],
    read: &impl Fn(&OsStr) -> Option<Vec<u8>>,
    within: &mut Vec<OsString>,
) -> Vec<OsString> {
    let mut words = vec![];
    for argument in arguments {
        let file = argument.as_bytes().strip_prefix(b"@").map(OsStr::from_bytes);
        let file = file.filter(|file| !within.iter().any(|outer| outer == file));
        match file.and_then(|file| Some((file, read(file)?))) {
            Some((file, content)) => {
                within.push(file.to_owned());
                words.extend(expand(&split(&content), read, within));
                within.pop();
            }
            None => words.push(argument.clone()),
        }
    }
    words
}

/// Encodes words as the content of a response file.
pub(crate) fn quoted(words: &[OsString]) -> Vec<u8> {
    let mut content = vec![];
    for word in words {
        content.push(b'"');
        for byte in word.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                content.push(b'\\');
            }
            content.push(*byte);
        }
        content.extend(b"\"\n");
    }
    content
}

/// Splits a response file into words by GNU quoting rules (blanks, quotes, backslash).
fn split(content: &[u8]) -> Vec<OsString> {
    let mut words = vec![];
    let mut word: Option<Vec<u8>> = None;
    let mut quote: Option<u8> = None;
    let mut bytes = content.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (byte, Some(open)) if byte == open => quote = None,
            (byte, None) if byte.is_ascii_whitespace() => words.extend(word.take()),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests;
