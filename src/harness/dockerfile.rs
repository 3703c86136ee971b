//! The parts of an OSS-Fuzz `Dockerfile` that prepare `build.sh`: sources, further files, variables. Nothing runs as
//! root, and no package is installed.

use std::path::{Component, Path, PathBuf};

/// The relevant instructions, in order.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Dockerfile {
    pub copies: Vec<Copies>,
    pub clones: Vec<GitClone>,
    pub variables: Vec<(String, String)>,
    /// Working directory of the build.
    pub folder: PathBuf,
    /// Debian packages.
    pub packages: Vec<String>,
    /// Commands that are not run.
    pub others: Vec<String>,
}

/// Files to copy from the context, and their destination.
#[derive(Debug, Eq, PartialEq)]
pub struct Copies {
    pub from: Vec<String>,
    pub to: PathBuf,
    /// True if `to` is a folder even if it does not exist.
    pub into_folder: bool,
}

/// A repository to clone.
#[derive(Debug, Eq, PartialEq)]
pub struct GitClone {
    pub words: Vec<String>,
    /// Destination; not contained in `words`.
    pub to: PathBuf,
}

impl GitClone {
    /// The command for display.
    pub fn line(&self) -> String {
        format!("git clone {} {}", self.words.join(" "), self.to.display())
    }
}

impl Dockerfile {
    /// Parses the text; `variables` are those of the contract, such as `SRC`.
    pub fn parse(text: &str, variables: &[(&str, &Path)]) -> Self {
        let mut known: Vec<(String, String)> = variables
            .iter()
            .map(|(name, path)| ((*name).to_owned(), path.display().to_string()))
            .collect();
        let source = known.iter().find(|(name, _)| name == "SRC");
        let source = source.map(|(_, path)| PathBuf::from(path)).unwrap_or_default();
        let mut read = Self { folder: source, ..Self::default() };
        for line in lines(text) {
            let (instruction, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            match &*instruction.to_ascii_uppercase() {
                "WORKDIR" => {
                    let folder = expanded(rest.trim().trim_matches(['"', '\'']), &known);
                    read.folder = below(&read.folder, &folder);
                }
                "COPY" | "ADD" => read.copy(&expanded(rest, &known)),
                "ENV" | "ARG" => {
                    let (name, value) = rest.trim().split_once(['=', ' ']).unwrap_or((rest, ""));
                    let value = expanded(value.trim().trim_matches('"'), &known);
                    if instruction.eq_ignore_ascii_case("ENV") {
                        read.variables.push((name.to_owned(), value.clone()));
                    }
                    known.push((name.to_owned(), value));
                }
                "RUN" => read.run(&expanded(rest, &known)),
                _ => {}
            }
        }
        read
    }

    fn copy(&mut self, rest: &str) {
        let words: Vec<String> = match rest.trim().strip_prefix('[') {
            Some(_) => serde_json::from_str(rest.trim()).unwrap_or_default(),
            None => rest.split_whitespace().map(str::to_owned).collect(),
        };
        let words: Vec<String> = words.into_iter().filter(|word| !word.starts_with("--")).collect();
        if let Some((to, from)) = words.split_last().filter(|(_, from)| !from.is_empty()) {
            let into_folder = to.ends_with('/') || to == "." || from.len() > 1;
            let to = below(&self.folder, to);
            self.copies.push(Copies { from: from.to_vec(), to, into_folder });
        }
    }

    fn run(&mut self, command: &str) {
        let mut folder = self.folder.clone();
        for part in command.replace("&&", "\n").replace("||", "\n").split(['\n', ';']) {
            let words: Vec<String> = part
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '\'']).to_owned())
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match &*words {
                [] => {}
                ["cd", to] => folder = below(&folder, to),
                ["git", "clone", rest @ ..] => match cloned(rest, &folder) {
                    Some(clone) => self.clones.push(clone),
                    None => self.others.push(words.join(" ")),
                },
                ["apt-get" | "apt" | "sudo", ..] => {
                    let names = words.iter().skip_while(|word| **word != "install").skip(1);
                    let names = names.filter(|word| !word.starts_with('-'));
                    self.packages.extend(names.map(|name| (*name).to_owned()));
                }
                _ => self.others.push(words.join(" ")),
            }
        }
    }
}

/// A path relative to a folder, without `.` and `..`.
fn below(folder: &Path, path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Options of `git clone` whose value is the next word.
const WITH_VALUE: [&str; 8] =
    ["-b", "--branch", "--depth", "-j", "--jobs", "-o", "--origin", "--shallow-since"];

fn cloned(words: &[&str], folder: &Path) -> Option<GitClone> {
    let (mut kept, mut places) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(word) {
            kept.extend([(*word).to_owned(), (*words.next()?).to_owned()]);
        } else if word.starts_with('-') {
            kept.push((*word).to_owned());
        } else {
            places.push(*word);
        }
    }
    let (url, to) = match &*places {
        [url] => {
            (*url, url.trim_end_matches('/').rsplit(['/', ':']).next()?.trim_end_matches(".git"))
        }
        [url, to] => (*url, *to),
        _ => return None,
    };
    kept.push(url.to_owned());
    Some(GitClone { words: kept, to: below(folder, to) })
}

/// Joins continued lines (with a final backslash) and removes comments.
fn lines(text: &str) -> Vec<String> {
    let (mut lines, mut open) = (Vec::new(), String::new());
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        match line.trim_end().strip_suffix('\\') {
            Some(start) => open.push_str(&format!("{start} ")),
            None => {
                open.push_str(line);
                lines.push(std::mem::take(&mut open).trim().to_owned());
            }
        }
    }
    lines.push(open.trim().to_owned());
    lines.retain(|line| !line.is_empty());
    lines
}

/// Expands `$NAME` and `${NAME}`, and replaces the container's folders of `SRC`, `WORK` and `OUT` at the start of
/// paths; unknown variables stay.
fn expanded(text: &str, known: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (name, folder) in [("SRC", "/src"), ("WORK", "/work"), ("OUT", "/out")] {
        let Some((_, ours)) = known.iter().find(|(known, _)| known == name) else { continue };
        text = with_folder(&text, folder, ours);
    }
    // Longer names first: SRC would match in SRC_DIR.
    let mut known: Vec<_> = known.iter().rev().collect();
    known.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in known {
        text = text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    text
}

/// Replaces a folder at the start of a path.
fn with_folder(text: &str, folder: &str, ours: &str) -> String {
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(folder) {
        let is_part = |c: char| c.is_alphanumeric() || "._-/}$".contains(c);
        let (before, after) = (&rest[..at], &rest[at + folder.len()..]);
        let starts = !before.ends_with(is_part);
        let ends = !after.starts_with(|c: char| c != '/' && is_part(c));
        replaced.push_str(before);
        replaced.push_str(if starts && ends { ours } else { folder });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_container_are_ours() {
        let known =
            [("SRC".to_owned(), "/o/src".to_owned()), ("OUT".to_owned(), "/o/out".to_owned())];
        for (text, wanted) in [
            ("git clone u /src/lz4", "git clone u /o/src/lz4"),
            ("a /src", "a /o/src"),
            ("b=/out;/src/x", "b=/o/out;/o/src/x"),
            ("$SRC/src/srcs /usr/src/x /srcs ./src", "/o/src/src/srcs /usr/src/x /srcs ./src"),
        ] {
            assert_eq!(expanded(text, &known), wanted);
        }
        let outside = Dockerfile::parse("COPY a ../../etc/x\n", &[("SRC", Path::new("/s"))]);
        assert_eq!(outside.copies[0].to, Path::new("/etc/x"));
        let read = Dockerfile::parse(
            "RUN git clone u /src/lz4\nWORKDIR \"/src/lz4\"\n",
            &[("SRC", Path::new("/s"))],
        );
        assert_eq!(
            (read.clones[0].to.to_str(), read.folder.to_str()),
            (Some("/s/lz4"), Some("/s/lz4"))
        );
    }

    #[test]
    fn sources_files_and_packages_are_found() {
        let text = "# a comment\nFROM gcr.io/oss-fuzz-base/base-builder\n\
                    RUN apt-get update && apt-get install -y make \\\n  # why\n  autoconf zip\n\
                    RUN git clone --depth 1 https://h/madler/zlib.git && \\\n cd zlib && git clone -b v2 git@h:a/b sub\n\
                    WORKDIR libpng\nENV MODE=fast DEPTH\nENV ROOT $SRC/libpng\n\
                    COPY build.sh *.dict $SRC/\nCOPY . ${ROOT}/x\nCOPY [\"a b\", \"./\"]\nRUN wget http://h/x\n";
        let read = Dockerfile::parse(text, &[("SRC", Path::new("/s"))]);
        let clone = |words: &[&str], to: &str| GitClone {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            to: to.into(),
        };
        assert_eq!(
            read.clones,
            [
                clone(&["--depth", "1", "https://h/madler/zlib.git"], "/s/zlib"),
                clone(&["-b", "v2", "git@h:a/b"], "/s/zlib/sub"),
            ]
        );
        assert_eq!(read.clones[0].line(), "git clone --depth 1 https://h/madler/zlib.git /s/zlib");
        assert_eq!(read.packages, ["make", "autoconf", "zip"]);
        assert_eq!(read.folder, Path::new("/s/libpng"));
        let places: Vec<_> =
            read.copies.iter().map(|copy| (copy.to.to_str().unwrap(), copy.into_folder)).collect();
        assert_eq!(places, [("/s", true), ("/s/libpng/x", false), ("/s/libpng", true)]);
        assert_eq!(read.copies[2].from, ["a b"]);
        assert_eq!(read.others, ["wget http://h/x"]);
        assert_eq!(read.variables[1], ("ROOT".to_owned(), "/s/libpng".to_owned()));
    }
}
