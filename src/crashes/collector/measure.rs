//! Source coverage for the server: which lines the inputs of a campaign reach, and its upload.

use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use serde_json::json;

use super::coverage::SourceCoverage;
use super::{Client, CollectorError, Settings};
use ffuzz_disk::inputs::{self, InputError};
use ffuzz_engine::executor::{ExitKind, Module, RunError};
use ffuzz_exec::Hooked;
use ffuzz_exec::lines::{LineMap, LinesError, Reached};

/// Why nothing was measured.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MeasureError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Lines(#[from] LinesError),
    #[error("{} has no source lines of its edges", .0.display())]
    #[diagnostic(help("build it with ffuzz-cc -g, or give an lcov file"))]
    NoLines(PathBuf),
    #[error("none of the {files} source files is below {}", root.display())]
    #[diagnostic(help("name the folder of the sources with --root"))]
    Elsewhere { files: usize, root: PathBuf },
}

/// What inputs reach.
#[derive(Debug)]
pub struct Measured {
    reached: Reached,
    /// Files of the program whose lines are unknown.
    pub skipped: Vec<LinesError>,
}

impl Measured {
    /// Lines of the source files below `root`.
    pub fn below(&self, root: &Path) -> Result<SourceCoverage, MeasureError> {
        let coverage = SourceCoverage::of(&self.reached, root);
        if coverage.files.is_empty() {
            let files = self.reached.len();
            return Err(MeasureError::Elsewhere { files, root: root.to_owned() });
        }
        Ok(coverage)
    }
}

/// A file's lines, and its part of the edge map.
type Part = (Result<LineMap, LinesError>, Range<usize>);

/// Runs all inputs. `program` is the target's file; `ended` gets the end of each run.
pub fn measure(
    target: &mut Hooked,
    program: &Path,
    inputs: &[PathBuf],
    ended: impl Fn(&Path, ExitKind),
) -> Result<Measured, MeasureError> {
    let modules = target.info().modules().into_iter();
    let mut parts: Vec<Part> =
        modules.map(|Module { file, counters }| (LineMap::read(&file), counters)).collect();
    if !parts.iter().any(|(map, _)| map.is_ok()) {
        let error = parts.into_iter().find_map(|(map, _)| map.err());
        return Err(error.map_or(MeasureError::NoLines(program.to_owned()), Into::into));
    }
    run_all(target, inputs, &mut parts, ended)?;
    let (mut reached, mut skipped) = (Reached::new(), Vec::new());
    for (map, _) in parts {
        match map {
            Ok(map) => map.collect(&mut reached),
            Err(error) => skipped.push(error),
        }
    }
    Ok(Measured { reached, skipped })
}

fn run_all(
    target: &mut Hooked,
    inputs: &[PathBuf],
    parts: &mut [Part],
    ended: impl Fn(&Path, ExitKind),
) -> Result<(), MeasureError> {
    let mut input = Vec::new();
    for path in inputs {
        inputs::read(path, &mut input)?;
        let run = target.observe(&input)?;
        ended(path, run.exit);
        for (map, counters) in parts.iter_mut() {
            let edges = run.edges.get(counters.clone()).unwrap_or_default();
            let added = map.as_mut().map_or(Ok(()), |map| map.add(edges));
            if let Err(error) = added {
                *map = Err(error);
            }
        }
    }
    Ok(())
}

/// What an upload says of the measured sources; what is not given is taken from the coverage.
#[derive(Clone, Debug)]
pub struct SourceFacts {
    /// Name of the repository at the server.
    pub repository: Option<String>,
    pub revision: Option<String>,
    pub branch: Option<String>,
    pub description: String,
}

/// Sends coverage to the server.
pub fn upload(
    settings: &Settings,
    facts: &SourceFacts,
    coverage: &SourceCoverage,
) -> Result<(), CollectorError> {
    let server = settings.server()?;
    let revision = facts.revision.as_ref().or(coverage.revision.as_ref());
    let branch = facts.branch.as_ref().or(coverage.branch.as_ref());
    let fields = json!({
        "repository": needed(facts.repository.as_ref(), "repository")?,
        "revision": needed(revision, "revision")?,
        "branch": branch.cloned().unwrap_or_default(),
        "tools": server.tool,
        "client": server.client,
        "description": facts.description,
        "coverage": coverage.tree().to_string(),
    });
    Client::new(server)?.coverage(&fields)
}

fn needed<'a>(given: Option<&'a String>, key: &'static str) -> Result<&'a String, CollectorError> {
    given.ok_or(CollectorError::Missing { key })
}
