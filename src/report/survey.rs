//! What inputs reach: each is run once.

use std::path::{Path, PathBuf};

use miette::Diagnostic;

use crate::data::Source;
use ffuzz_disk::inputs::{self, InputError};
use ffuzz_engine::executor::{ExitKind, Module, RunError, TargetInfo};
use ffuzz_exec::Hooked;
use ffuzz_exec::lines::{Covered, FileCounters, LineMap, LinesError};

/// Why nothing is known.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SurveyError {
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

/// What the inputs that were run have reached.
#[derive(Debug)]
pub struct Survey {
    parts: Vec<Part>,
    inputs: usize,
}

/// A file of the target.
#[derive(Debug)]
struct Part {
    module: Module,
    /// With the reason, if they are unknown.
    lines: Result<LineMap, LinesError>,
}

impl Survey {
    /// Before any run: reads the debug information of the target's files.
    #[must_use]
    pub fn new(target: &dyn TargetInfo) -> Self {
        let part = |module: Module| {
            let counters = target.counter_addresses(&module.file);
            let counted =
                counters.map(|counters| FileCounters { counters, ..FileCounters::default() });
            let lines = LineMap::read(&module.file, counted).and_then(LineMap::with_lines);
            Part { module, lines }
        };
        Self { parts: target.modules().into_iter().map(part).collect(), inputs: 0 }
    }

    /// Refuses a target of which no line is known. `program`: its file.
    pub fn check_lines(&mut self, program: &Path) -> Result<(), SurveyError> {
        if self.parts.iter().any(|part| part.lines.is_ok()) {
            return Ok(());
        }
        let reason = self.parts.drain(..).find_map(|part| part.lines.err());
        Err(reason.map_or_else(|| SurveyError::NoLines(program.to_owned()), Into::into))
    }

    /// Runs files. `ended` gets the end of each run.
    pub fn run(
        &mut self,
        target: &mut Hooked,
        files: &[PathBuf],
        ended: impl Fn(&Path, ExitKind),
    ) -> Result<(), SurveyError> {
        let mut input = Vec::new();
        for path in files {
            inputs::read(path, &mut input)?;
            let run = target.observe(&input)?;
            ended(path, run.exit);
            for Part { module, lines } in &mut self.parts {
                let edges = run.edges.get(module.counters.clone()).unwrap_or_default();
                if let Ok(map) = lines
                    && let Err(error) = map.add(self.inputs, edges)
                {
                    *lines = Err(error);
                }
            }
            self.inputs += 1;
        }
        Ok(())
    }

    /// How many inputs were run.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Lines and functions of all files of the target.
    #[must_use]
    pub fn covered(&self) -> Covered {
        let mut covered = Covered::default();
        for Part { module, lines } in &self.parts {
            if let Ok(lines) = lines {
                lines.collect(module.counters.start, &mut covered);
            }
        }
        covered
    }

    /// The source files below a folder.
    pub fn source_below(&self, root: &Path) -> Result<Source, SurveyError> {
        let covered = self.covered();
        let source = Source::new(&covered, |path| Path::new(path).starts_with(root));
        match source.files.is_empty() {
            true => {
                Err(SurveyError::Elsewhere { files: covered.files.len(), root: root.to_owned() })
            }
            false => Ok(source),
        }
    }

    /// Why the lines of some files are not known.
    pub fn skipped(&self) -> impl Iterator<Item = &LinesError> {
        self.parts.iter().filter_map(|part| part.lines.as_ref().err())
    }
}
