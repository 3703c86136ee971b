//! `ffuzz domains`: lists the domains that `WAYPOINTS` can name, registers domains and builds them in advance.

use std::ffi::OsString;
use std::process::ExitCode;

use super::exit::Failure;
use super::print;
use crate::assets::Assets;
use crate::compiler::CompilerError;
use crate::compiler::domains::{self, DomainSource, Pair};
use crate::compiler::env::Env;
use crate::compiler::plugin::Workshop;
use crate::compiler::toolchain::{self, Language};
use crate::config::env::AssetPlaces;

const USAGE: &str = "\
usage: ffuzz domains                 list the names that WAYPOINTS can have, and where they come from
       ffuzz domains NAME…           build these for the clang that ffuzz-cc would call
       ffuzz domains /path/to/NAME…  the same for waypoints-NAME-pass.cc and waypoints-NAME-rt.c of a
                                     folder, and register them as NAME
       ffuzz domains @FILE…          check a file of declared domains
       ffuzz domains --remove NAME…  unregister NAME
";

pub(super) fn run(_program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let words: Vec<String> = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        return print(USAGE);
    }
    if let Some(("--remove", names)) = words.split_first().map(|(first, rest)| (&**first, rest)) {
        if names.is_empty() {
            return Err(Failure::usage("--remove needs a name", "ffuzz domains --help"));
        }
        return print(&remove(names).map_err(|error| Failure::of(&error))?);
    }
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        return Err(Failure::usage(format!("unknown option {option}"), "ffuzz domains --help"));
    }
    let text = if words.is_empty() { list() } else { build(words) };
    print(&text.map_err(|error| Failure::of(&error))?)
}

fn list() -> Result<String, CompilerError> {
    let env = Env::read();
    let assets = Assets::open(&env.places)?;
    let line = |pair: &domains::Pair| {
        let origin = if pair.folder == assets.directory { None } else { pair.runtime() };
        let origin = origin.map_or("built in".into(), |file| file.display().to_string());
        format!("{:<12} {origin}\n", pair.name)
    };
    Ok(domains::known(&env, &assets).iter().map(line).collect())
}

fn build(words: Vec<String>) -> Result<String, CompilerError> {
    let env = Env { domains: words, ..Env::read() };
    let assets = Assets::open(&env.places)?;
    let clang = toolchain::find(Language::C, &env)?;
    let workshop = Workshop { assets: &assets, clang: &clang };
    let mut text = String::new();
    for domain in domains::resolve(&env, &assets)? {
        workshop.passes(std::slice::from_ref(&domain))?;
        workshop.runtimes(std::slice::from_ref(&domain))?;
        text += &format!("{}: ready for clang {}\n", domain.name(), clang.major);
        if let DomainSource::Pair(pair) = &domain
            && let Some(word) = env.domains.iter().find(|word| is_path_of(word, pair))
        {
            text += &register(pair, word, &assets)?;
        }
    }
    Ok(text)
}

fn is_path_of(word: &str, pair: &Pair) -> bool {
    word.ends_with(&format!("/{}", pair.name))
}

/// Registers a pair. A built-in domain keeps its name: with two domains of one name, neither could be built.
fn register(pair: &Pair, word: &str, assets: &Assets) -> Result<String, CompilerError> {
    if !domains::is_builtin(&pair.name, assets) {
        return domains::keep(pair, assets).map(|()| String::new());
    }
    let path = std::path::absolute(word).unwrap_or_else(|_| word.into());
    Ok(format!(
        "{name}: not registered, the name is that of a built-in domain\n\
         {name}: hint: use it as WAYPOINTS={}, or rename its files\n",
        path.display(),
        name = pair.name,
    ))
}

fn remove(names: &[String]) -> Result<String, CompilerError> {
    let assets = Assets::open(&AssetPlaces::read())?;
    let mut text = String::new();
    for name in names {
        domains::forget(name, &assets)?;
        text += &format!("{name}: removed\n");
    }
    Ok(text)
}
