//! Resolves the words of `WAYPOINTS` to pairs of files (pass and runtime file), found by name or path, or to domains
//! declared in a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::declared::{self, Declaration};
use super::env::Env;
use super::{CompilerError, LARGEST_TEXT};
use ffuzz_assets::{Assets, AssetsError};
use ffuzz_sys::file;

/// One domain of a target.
#[derive(Clone, Debug)]
pub enum DomainSource {
    Pair(Pair),
    Declared(Declaration),
}

impl DomainSource {
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pair(pair) => &pair.name,
            Self::Declared(declared) => &declared.name,
        }
    }

    /// Folder or file of the domain, for messages.
    #[must_use]
    pub fn origin(&self) -> &Path {
        match self {
            Self::Pair(pair) => &pair.folder,
            Self::Declared(declared) => &declared.file,
        }
    }
}

/// The files `waypoints-NAME-pass` and `waypoints-NAME-rt`, as sources or built.
#[derive(Clone, Debug)]
pub struct Pair {
    pub name: String,
    pub folder: PathBuf,
}

impl Pair {
    /// Path of the file with this ending, if it exists. Links are resolved, so that the files next to it are found.
    #[must_use]
    pub fn file(&self, end: &str) -> Option<PathBuf> {
        let path = self.folder.join(format!("waypoints-{}-{end}", self.name));
        path.canonicalize().ok().filter(|path| path.is_file())
    }

    /// The runtime file: the source, or the built file if there is no source.
    #[must_use]
    pub fn runtime(&self) -> Option<PathBuf> {
        self.file("rt.c").or_else(|| self.file("rt.o"))
    }

    fn has_pass(&self) -> bool {
        let embedded = || Self { folder: self.folder.join("src"), ..self.clone() }.file("pass.cc");
        self.file("pass.cc").or_else(|| self.file("pass.so")).or_else(embedded).is_some()
    }

    /// Checks that both files exist; None if neither does.
    fn complete(self) -> Result<Option<Self>, CompilerError> {
        match (self.has_pass(), self.runtime().is_some()) {
            (true, true) => Ok(Some(self)),
            (false, false) => Ok(None),
            (has_pass, _) => {
                let end = if has_pass { "rt.c" } else { "pass.cc" };
                let missing = self.folder.join(format!("waypoints-{}-{end}", self.name));
                Err(CompilerError::HalfADomain { name: self.name, missing })
            }
        }
    }

    fn is_same_as(&self, other: &Self) -> bool {
        self.runtime() == other.runtime()
    }
}

/// Resolves the domains in `WAYPOINTS`, in order; their names are unique.
pub fn resolve(env: &Env, assets: &Assets) -> Result<Vec<DomainSource>, CompilerError> {
    let mut domains: Vec<DomainSource> = vec![];
    for word in &env.domains {
        for domain in find(word, env, assets)? {
            match domains.iter().find(|other| other.name() == domain.name()) {
                None => domains.push(domain),
                Some(DomainSource::Pair(other)) if matches!(&domain, DomainSource::Pair(pair) if pair.is_same_as(other)) =>
                    {}
                Some(other) => return Err(namesakes(other, &domain)),
            }
        }
    }
    Ok(domains)
}

fn namesakes(first: &DomainSource, second: &DomainSource) -> CompilerError {
    CompilerError::Namesakes {
        name: second.name().to_owned(),
        first: first.origin().to_owned(),
        second: second.origin().to_owned(),
    }
}

/// Resolves one word: `@FILE`, a path with a slash, or a name.
fn find(word: &str, env: &Env, assets: &Assets) -> Result<Vec<DomainSource>, CompilerError> {
    if let Some(file) = word.strip_prefix('@') {
        let declared = read_declarations(Path::new(file), env)?;
        return Ok(declared.into_iter().map(DomainSource::Declared).collect());
    }
    let pair = if word.contains('/') { by_path(word)? } else { by_name(word, env, assets)? };
    Ok(vec![DomainSource::Pair(pair)])
}

fn read_declarations(file: &Path, env: &Env) -> Result<Vec<Declaration>, CompilerError> {
    let folders = [PathBuf::new()].into_iter().chain(env.domain_path.clone());
    let path = folders.map(|folder| folder.join(file)).find(|path| path.is_file());
    let path = path.unwrap_or_else(|| file.to_owned());
    let text = file::read_text(&path, LARGEST_TEXT)
        .map_err(|source| CompilerError::Declarations { path: path.clone(), source })?;
    declared::parse(&path, &text).map_err(CompilerError::Declared)
}

fn by_path(word: &str) -> Result<Pair, CompilerError> {
    let path = Path::new(word);
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let pair = Pair { name: name.clone(), folder: folder.clone() };
    pair.complete()?.ok_or(CompilerError::NoDomainThere { name, folder })
}

fn by_name(name: &str, env: &Env, assets: &Assets) -> Result<Pair, CompilerError> {
    let mut found: Option<Pair> = None;
    for folder in folders(env, assets) {
        let Some(pair) = Pair { name: name.to_owned(), folder }.complete()? else { continue };
        match &found {
            None => found = Some(pair),
            Some(other) if other.is_same_as(&pair) => {}
            Some(other) => {
                return Err(namesakes(
                    &DomainSource::Pair(other.clone()),
                    &DomainSource::Pair(pair),
                ));
            }
        }
    }
    found.ok_or_else(|| {
        let known: Vec<String> = known(env, assets).into_iter().map(|pair| pair.name).collect();
        CompilerError::UnknownDomain { name: name.to_owned(), known: known.join(", ") }
    })
}

/// Search folders: `FFUZZ_DOMAIN_PATH`, domains registered with `ffuzz domains`, built-in ones.
fn folders(env: &Env, assets: &Assets) -> Vec<PathBuf> {
    let own = [assets.kept_domains(), assets.directory.clone()];
    env.domain_path.iter().cloned().chain(own).collect()
}

/// All domains that can be found by name, sorted.
#[must_use]
pub fn known(env: &Env, assets: &Assets) -> Vec<Pair> {
    let mut seen = BTreeSet::new();
    let mut pairs: Vec<Pair> = vec![];
    for folder in folders(env, assets) {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let middle = file.strip_prefix("waypoints-");
            let name =
                middle.and_then(|end| end.strip_suffix("-rt.c").or(end.strip_suffix("-rt.o")));
            let Some(name) = name else { continue };
            let pair = Pair { name: name.to_owned(), folder: folder.clone() };
            if matches!(pair.clone().complete(), Ok(Some(_))) && seen.insert(pair.name.clone()) {
                pairs.push(pair);
            }
        }
    }
    pairs.sort_by(|a, b| a.name.cmp(&b.name));
    pairs
}

/// True if `name` is a domain that comes with ffuzz.
#[must_use]
pub fn is_builtin(name: &str, assets: &Assets) -> bool {
    Pair { name: name.to_owned(), folder: assets.directory.clone() }.runtime().is_some()
}

/// Registers a pair by name. Creates links to its files, so later changes to them take effect.
pub fn keep(pair: &Pair, assets: &Assets) -> Result<(), CompilerError> {
    let folder = assets.kept_domains();
    ffuzz_assets::private_folder(&folder)?;
    remove_links(&pair.name, &folder)?;
    for end in ENDS {
        if let Some(file) = pair.file(end) {
            let link = folder.join(format!("waypoints-{}-{end}", pair.name));
            std::os::unix::fs::symlink(file, &link)
                .map_err(|source| AssetsError::Unpack { path: folder.clone(), source })?;
        }
    }
    Ok(())
}

/// Removes a name registered with [`keep`].
pub fn forget(name: &str, assets: &Assets) -> Result<(), CompilerError> {
    if remove_links(name, &assets.kept_domains())? {
        return Ok(());
    }
    Err(CompilerError::NotKept { name: name.to_owned(), builtin: is_builtin(name, assets) })
}

/// Endings of the files of a pair.
const ENDS: [&str; 4] = ["pass.cc", "pass.so", "rt.c", "rt.o"];

/// Removes the links of a pair; returns true if any existed.
fn remove_links(name: &str, folder: &Path) -> Result<bool, CompilerError> {
    let mut found = false;
    for end in ENDS {
        match fs::remove_file(folder.join(format!("waypoints-{name}-{end}"))) {
            Ok(()) => found = true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(AssetsError::Unpack { path: folder.to_owned(), source }.into());
            }
        }
    }
    Ok(found)
}
