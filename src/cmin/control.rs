//! libFuzzer's merge control file: the inputs of a merge and the results of the inputs run so far.
//!
//! Format: the number of inputs, the number of inputs in the first corpus, one path per line, then for each input in
//! order `STARTED index size`, `FT index feature…` and `COV index edge…`. An input without `FT` has failed. Features
//! are tuples of this build of the target, so the second line also has a fingerprint, which libFuzzer skips.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::journal::KeptRun;
use super::{CminError, InputSet};
use crate::disk::output;
use crate::engine::executor::ExitKind;
use crate::engine::minimize::cover::Trace;
use crate::sys::file::{self, Locked, settled};

/// Maximum time between two flushes to the disk.
const SYNC: Duration = Duration::from_secs(1);
/// Flag of a feature that is the value of a domain key.
const KEY: u64 = 1 << 63;

/// The control file of a running merge.
#[derive(Debug)]
pub struct ControlFile {
    path: PathBuf,
    file: Locked,
    /// The replaced file: its lock tells processes that have it open that it is in use.
    _replaced: Option<Locked>,
    /// Length of the header in bytes.
    header: u64,
    sizes: Vec<u64>,
    /// Lines of each finished input.
    results: Vec<Option<String>>,
    /// First input whose lines are not written yet; lines are written in order.
    next: usize,
    synced: Instant,
}

/// Contents of a control file.
#[derive(Debug, Default, PartialEq)]
struct Content {
    paths: Vec<PathBuf>,
    known: usize,
    /// None if another program wrote the file.
    fingerprint: Option<u64>,
    results: Vec<InputResult>,
    /// Number of bytes up to the end of the last complete result.
    complete: usize,
}

/// The result of one input.
#[derive(Clone, Debug, PartialEq)]
struct InputResult {
    size: u64,
    /// None: the input failed.
    features: Option<Vec<u64>>,
}

/// Results of an earlier merge.
#[derive(Debug, Default)]
pub struct PastMerge {
    /// Positions of the inputs that remain to be run.
    pub(super) left: Vec<usize>,
    pub(super) runs: Vec<KeptRun>,
    /// True if the file's results are unusable: the build differs, or inputs are missing or have changed.
    pub is_discarded: bool,
}

impl ControlFile {
    /// Creates the file, or loads its results for these inputs. `settings` is a fingerprint of everything else that
    /// affects traces.
    pub fn open(
        path: &Path,
        inputs: &InputSet,
        settings: u64,
    ) -> Result<(Self, PastMerge), CminError> {
        let failed = |error| CminError::write(path, error);
        if let Some(name) = inputs.paths.iter().find(|path| has_line_break(path)) {
            return Err(CminError::LineBreak(name.clone()));
        }
        let head = head(inputs, settings);
        let (replaced, text) = existing(path)?;
        let content = match text.as_slice() {
            [] => Content::default(),
            text => parse(text).ok_or_else(|| CminError::NoControlFile(path.to_owned()))?,
        };
        if !text.is_empty() && content.fingerprint.is_none() {
            return Err(CminError::ForeignControlFile(path.to_owned()));
        }
        let results = match content.fingerprint {
            Some(other) if other != settings => None,
            _ => results_for(inputs, &content),
        };
        let is_usable = results.is_some();
        let results = results.unwrap_or_else(|| vec![None; inputs.paths.len()]);
        let runs =
            results.iter().enumerate().filter_map(|(input, it)| Some(run(input, it.as_ref()?)));
        let runs: Vec<KeptRun> = runs.collect();
        let left = (0..results.len()).filter(|input| results[*input].is_none()).collect();
        let sizes = inputs.sizes.clone();
        let results = runs.iter().fold(vec![None; results.len()], |mut lines, run| {
            lines[run.input] = Some(lines_of(run.input, sizes[run.input], Some(run)));
            lines
        });
        let is_same = is_usable && text.starts_with(&head);
        let file = match replaced {
            Some(mut file) if is_same => {
                file.set_len(content.complete as u64).map_err(failed)?;
                file.seek(SeekFrom::End(0)).map_err(failed)?;
                (file, None)
            }
            replaced => (fresh(path, &head)?, replaced),
        };
        let next = if is_same { content.results.len() } else { 0 };
        let mut control = Self {
            path: path.to_owned(),
            file: file.0,
            _replaced: file.1,
            header: head.len() as u64,
            sizes,
            results,
            next,
            synced: Instant::now(),
        };
        control.write_ready()?;
        Ok((control, PastMerge { left, runs, is_discarded: !is_usable }))
    }

    /// Adds the results of `inputs`; an input without a run shows nothing new.
    pub(super) fn append(&mut self, inputs: &[usize], runs: &[KeptRun]) -> Result<(), CminError> {
        for input in inputs {
            let run = runs.iter().find(|run| run.input == *input);
            self.results[*input] = Some(lines_of(*input, self.sizes[*input], run));
        }
        self.write_ready()
    }

    /// Discards all results.
    pub(super) fn clear(&mut self) -> Result<(), CminError> {
        self.results.fill(None);
        self.next = 0;
        let cut = self.file.set_len(self.header).and_then(|()| self.file.seek(SeekFrom::End(0)));
        cut.map(|_| ()).map_err(|error| CminError::write(&self.path, error))
    }

    fn write_ready(&mut self) -> Result<(), CminError> {
        let ready = self.results[self.next..].iter().map_while(Option::as_deref);
        let ready: Vec<&str> = ready.collect();
        self.next += ready.len();
        let text = ready.concat();
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.sync_if_due());
        written.map_err(|error| CminError::write(&self.path, error))
    }

    fn sync_if_due(&mut self) -> io::Result<()> {
        if self.synced.elapsed() >= SYNC {
            settled(self.file.sync_data())?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Flushes the results of a complete merge.
    pub(super) fn finish(self) -> Result<(), CminError> {
        settled(self.file.sync_data()).map_err(|error| CminError::write(&self.path, error))
    }
}

fn has_line_break(path: &Path) -> bool {
    path.as_os_str().as_bytes().contains(&b'\n')
}

fn head(inputs: &InputSet, settings: u64) -> Vec<u8> {
    let numbers = format!("{}\n{} ffuzz {settings:016x}\n", inputs.paths.len(), inputs.known);
    let mut head = numbers.into_bytes();
    for path in &inputs.paths {
        head.extend_from_slice(path.as_os_str().as_bytes());
        head.push(b'\n');
    }
    head
}

/// Opens and locks an existing file, and reads its content.
fn existing(path: &Path) -> Result<(Option<Locked>, Vec<u8>), CminError> {
    let failed = |error| CminError::write(path, error);
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(CminError::NoControlFile(path.to_owned()));
    }
    let mut options = OpenOptions::new();
    let file = match options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
        file => file.map_err(failed)?,
    };
    let mut file = Locked::new(file, false).map_err(|error| match file::is_taken(&error) {
        true => CminError::ControlBusy(path.to_owned()),
        false => failed(error),
    })?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    Ok((Some(file), text))
}

/// Creates a new file with this header and replaces the existing one.
fn fresh(path: &Path, head: &[u8]) -> Result<Locked, CminError> {
    let failed = |error| CminError::write(path, error);
    output::replace_user_file(path, head).map_err(CminError::Control)?;
    let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    Locked::new(file, false).map_err(failed)
}

/// Converts the file's results to positions of these inputs. None if an input that the results depend on is missing or
/// has changed.
fn results_for(inputs: &InputSet, content: &Content) -> Option<Vec<Option<InputResult>>> {
    let mut results = vec![None; inputs.paths.len()];
    let positions: HashMap<&Path, usize> =
        inputs.paths.iter().enumerate().map(|(at, path)| (path.as_path(), at)).collect();
    for (path, result) in content.paths.iter().zip(&content.results) {
        let position = *positions.get(path.as_path())?;
        if inputs.sizes[position] != result.size {
            return None;
        }
        results[position] = Some(result.clone());
    }
    Some(results)
}

fn run(input: usize, result: &InputResult) -> KeptRun {
    let mut trace = Trace::default();
    for feature in result.features.iter().flatten() {
        match feature & KEY {
            0 => trace.edges.push(*feature as u32),
            _ => trace.keys.push((((feature & !KEY) >> 32) as u32, *feature as u32)),
        }
    }
    let exit = match result.features {
        Some(_) => ExitKind::Ok,
        // The file does not contain the signal.
        None => ExitKind::Crash { signal: 0 },
    };
    KeptRun { input, exit, trace }
}

/// Formats the lines of an input; without a run it shows nothing new.
fn lines_of(input: usize, size: u64, run: Option<&KeptRun>) -> String {
    let mut lines = format!("STARTED {input} {size}\n");
    if run.is_some_and(|run| run.exit != ExitKind::Ok) {
        return lines;
    }
    let trace = run.map(|run| &run.trace);
    let edges = || trace.iter().flat_map(|trace| &trace.edges);
    let keys = trace.iter().flat_map(|trace| &trace.keys);
    let keys = keys.map(|(key, value)| KEY | u64::from(*key) << 32 | u64::from(*value));
    let mut line = |name: &str, numbers: &mut dyn Iterator<Item = u64>| {
        let _ = write!(lines, "{name} {input}");
        for number in numbers {
            let _ = write!(lines, " {number}");
        }
        lines.push('\n');
    };
    line("FT", &mut edges().map(|tuple| u64::from(*tuple)).chain(keys));
    line("COV", &mut edges().map(|tuple| u64::from(tuple >> 3)));
    lines
}

/// Parses a control file; None if it is none. Drops an incomplete result at the end.
fn parse(text: &[u8]) -> Option<Content> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let mut complete = 0;
    let mut line = || {
        let line = lines.next()?.strip_suffix(b"\n")?;
        complete += line.len() + 1;
        Some(line)
    };
    let count: usize = str::from_utf8(line()?).ok()?.trim().parse().ok()?;
    let mut words = str::from_utf8(line()?).ok()?.split(' ');
    let known = words.next()?.parse().ok()?;
    let fingerprint = match (words.next(), words.next()) {
        (Some("ffuzz"), Some(number)) => Some(u64::from_str_radix(number, 16).ok()?),
        _ => None,
    };
    let mut paths = Vec::new();
    for _ in 0..count {
        paths.push(PathBuf::from(OsStr::from_bytes(line()?)));
    }
    let mut content = Content { paths, known, fingerprint, results: Vec::new(), complete };
    let (mut started, mut at) = (None, complete);
    for line in lines.map_while(|line| line.strip_suffix(b"\n")) {
        let start = at;
        at += line.len() + 1;
        if content.read(line, &mut started, start..at).is_none() {
            break;
        }
    }
    Some(content)
}

impl Content {
    /// Parses a result line. `started` is the last input without a complete result. None if the line is out of place.
    fn read(
        &mut self,
        line: &[u8],
        started: &mut Option<InputResult>,
        place: Range<usize>,
    ) -> Option<()> {
        let (name, numbers) = str::from_utf8(line).ok()?.split_once(' ')?;
        let numbers: Result<Vec<u64>, _> = numbers.split(' ').map(str::parse).collect();
        let numbers = numbers.ok()?;
        let (index, numbers) = numbers.split_first()?;
        if name == "STARTED" {
            if let Some(failed) = started.take_if(|result| result.features.is_none()) {
                self.results.push(failed);
                self.complete = place.start;
            }
            *started = Some(InputResult { size: *numbers.first()?, features: None });
        }
        let is_next = *index == self.results.len() as u64 && *index < self.paths.len() as u64;
        let result = started.as_mut().filter(|_| is_next)?;
        match name {
            "FT" => result.features = Some(numbers.to_vec()),
            "COV" if result.features.is_some() => {
                self.results.extend(started.take());
                self.complete = place.end;
            }
            "STARTED" => {}
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "3\n1 ffuzz 00000000000000ff\na\nb/c\nd\n\
                        STARTED 0 5\nFT 0 8 17\nCOV 0 1 2\nSTARTED 1 6\nSTARTED 2 7\nFT 2\nCOV 2\n";

    fn written(runs: &[KeptRun], sizes: &[u64]) -> String {
        let find = |input| runs.iter().find(|run| run.input == input);
        sizes.iter().enumerate().map(|(input, size)| lines_of(input, *size, find(input))).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let content = parse(TEXT.as_bytes()).unwrap();
        assert_eq!(
            (content.known, content.fingerprint, content.complete),
            (1, Some(255), TEXT.len())
        );
        assert_eq!(content.paths, ["a", "b/c", "d"].map(PathBuf::from));
        let runs: Vec<KeptRun> =
            content.results.iter().enumerate().map(|(at, it)| run(at, it)).collect();
        assert_eq!(runs[1].exit, ExitKind::Crash { signal: 0 });
        assert!(TEXT.ends_with(&written(&runs, &[5, 6, 7])));
        let trace = Trace { edges: vec![9], keys: vec![(3, u32::MAX), (1 << 30, 0)] };
        let keys = [KeptRun { input: 0, exit: ExitKind::Ok, trace }];
        let text = format!("1\n0\nx\n{}", written(&keys, &[4]));
        let content = parse(text.as_bytes()).unwrap();
        assert_eq!((run(0, &content.results[0]), content.fingerprint), (keys[0].clone(), None));
    }

    #[test]
    fn a_result_that_is_cut_off_is_left_out() {
        let results = TEXT.find("STARTED").unwrap();
        for end in results..TEXT.len() {
            let content = parse(&TEXT.as_bytes()[..end]).unwrap();
            let expected = match end {
                _ if end < TEXT.find("STARTED 1").unwrap() => 0,
                // A failed input is only detected at the next line.
                _ if end < TEXT.find("FT 2").unwrap() => 1,
                _ => 2,
            };
            assert_eq!(content.results.len(), expected, "{end}");
            let again = parse(&TEXT.as_bytes()[..content.complete]).unwrap();
            assert!(again.results.len() + 1 >= expected && again.complete <= content.complete);
        }
        for text in ["", "x\n", "2\n1\na\n", "1\nno\na\n"] {
            assert_eq!(parse(text.as_bytes()), None);
        }
        let garbage = format!("{TEXT}STARTED 7 1\n");
        assert_eq!(parse(garbage.as_bytes()).unwrap().complete, TEXT.len());
    }
}
