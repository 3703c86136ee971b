//! The list of jobs: a TOML file, checked as a whole before anything is started. Every mistake has its line
//! and column.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{Job, JobLimits};
use ffuzz_config::env;
use ffuzz_config::net::{NetError, NetOptions};

/// Without `stall_seconds`.
const STALL: u64 = 120;
/// More are a mistake, or the work of a script that has one.
const MOST_JOBS: usize = 100_000;
const MOST_ROUNDS: u32 = 10_000;
/// The list `mutators` of a job without any.
const BUILT_IN: &str = "built-in";
const DELIVERIES: &str = "use \"stdin\", \"argument\" (with @@), \"file:PATH\", or the socket of a server or client: \"tcp:PORT\", \"udp:PORT\", \
     \"unix:PATH\", \"tcp-client[:PORT]\", \"udp-client[:PORT]\"";

/// A mistake in the file, with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    pub path: PathBuf,
    pub line: usize,
    pub column: usize,
    pub problem: String,
    pub remedy: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, problem, .. } = self;
        write!(out, "{}, line {line}, column {column}: {problem}", path.display())
    }
}

/// The checked file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobFile {
    /// Folder for everything that the jobs write.
    pub output: PathBuf,
    /// None: as many as there are cores.
    pub at_once: Option<usize>,
    pub jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    output: Spanned<String>,
    at_once: Option<Spanned<usize>>,
    rounds: Option<Spanned<u32>>,
    mutator_dir: Option<String>,
    #[serde(default)]
    carry_coverage: bool,
    #[serde(default)]
    target: Vec<Target>,
    #[serde(default)]
    mutators: Vec<Mutators>,
    #[serde(default)]
    job: Vec<Spanned<JobTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    name: Spanned<String>,
    command: Spanned<Vec<String>>,
    delivery: Option<Spanned<String>>,
    timeout_ms: Option<u64>,
    memory_mb: Option<u64>,
    extension: Option<String>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutators {
    name: Spanned<String>,
    chain: Spanned<Vec<Module>>,
    #[serde(default)]
    only: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    module: String,
    options: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobTable {
    targets: Option<Vec<Spanned<String>>>,
    mutators: Option<Vec<Spanned<String>>>,
    seeds: Spanned<Vec<Spanned<String>>>,
    execs: Option<u64>,
    seconds: Option<u64>,
    stall_seconds: Option<u64>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
}

struct Place<'a> {
    path: &'a Path,
    text: &'a str,
    /// What relative paths begin at.
    folder: PathBuf,
}

impl Place<'_> {
    fn mistake(&self, at: usize, problem: impl Into<String>, remedy: &str) -> Mistake {
        let before = self.text.get(..at.min(self.text.len())).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        let (path, problem, remedy) = (self.path.to_owned(), problem.into(), remedy.to_owned());
        Mistake { path, line, column, problem, remedy }
    }

    /// Refuses a value of the file.
    fn refuse<T>(
        &self,
        at: Range<usize>,
        problem: impl Into<String>,
        remedy: &str,
    ) -> Result<T, Mistake> {
        Err(self.mistake(at.start, problem, remedy))
    }

    fn absolute(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

impl JobFile {
    /// Reads the text of a file at this path, which need not be absolute.
    ///
    /// `refused`: options of `ffuzz` that a job has keys for, or that jobs cannot share.
    pub fn parse(path: &Path, text: &str, refused: &[&str]) -> Result<Self, Mistake> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        let place = Place { path, text, folder };
        let tables: Tables = toml::from_str(text).map_err(|error| {
            let (at, problem) = (error.span().unwrap_or_default(), error.message());
            let remedy = "docs/jobs.md has all keys, and an example";
            place.mistake(at.start, problem.replace('\n', " "), remedy)
        })?;
        TableReader { place, tables: &tables, refused }.read()
    }
}

struct TableReader<'a> {
    place: Place<'a>,
    refused: &'a [&'a str],
    tables: &'a Tables,
}

impl TableReader<'_> {
    fn read(&self) -> Result<JobFile, Mistake> {
        let Self { place, tables, .. } = self;
        let names = |names: Vec<&Spanned<String>>| self.unique(names);
        names(tables.target.iter().map(|target| &target.name).collect())?;
        names(tables.mutators.iter().map(|mutators| &mutators.name).collect())?;
        if tables.job.is_empty() {
            return place.refuse(0..0, "it has no job", "begin one with [[job]]: docs/jobs.md");
        }
        if let Some(at_once) = &tables.at_once
            && !(1..=1024).contains(at_once.get_ref())
        {
            let remedy = "leave it out for one job per core";
            return place.refuse(at_once.span(), "at_once is not 1 to 1024", remedy);
        }
        let rounds = self.rounds()?;
        let mut jobs = Vec::new();
        for round in 0..rounds {
            for table in &tables.job {
                self.add(table, &mut jobs)?;
                if jobs.len() > MOST_JOBS {
                    let problem =
                        format!("these are more than {MOST_JOBS} jobs in round {}", round + 1);
                    let remedy = "divide the list into several files";
                    return place.refuse(table.span(), problem, remedy);
                }
            }
        }
        let output = place.absolute(tables.output.get_ref());
        let at_once = tables.at_once.as_ref().map(|at_once| *at_once.get_ref());
        Ok(JobFile { output, at_once, jobs: numbered(jobs) })
    }

    fn rounds(&self) -> Result<u32, Mistake> {
        let Some(rounds) = &self.tables.rounds else { return Ok(1) };
        if (1..=MOST_ROUNDS).contains(rounds.get_ref()) {
            return Ok(*rounds.get_ref());
        }
        let problem = format!("rounds is not 1 to {MOST_ROUNDS}");
        self.place.refuse(rounds.span(), problem, "leave it out for one round")
    }

    /// Names become names of folders.
    fn unique(&self, names: Vec<&Spanned<String>>) -> Result<(), Mistake> {
        let mut known = std::collections::HashSet::new();
        for name in names {
            let text = name.get_ref();
            let is_good = !text.is_empty()
                && text.len() <= 64
                && *text == plain(text)
                && !text.starts_with('.');
            if !is_good {
                let problem = format!("the name {text:?} cannot be that of a folder");
                let remedy = "use letters, digits, '-', '_' and '.', at most 64";
                return self.place.refuse(name.span(), problem, remedy);
            }
            if !known.insert(text) {
                let problem = format!("the name {text:?} is given twice");
                return self.place.refuse(name.span(), problem, "choose another");
            }
        }
        Ok(())
    }

    /// The jobs of one table: all its targets with all its mutators and all its seeds.
    fn add(&self, table: &Spanned<JobTable>, jobs: &mut Vec<Job>) -> Result<(), Mistake> {
        let tables = self.tables;
        let job = table.get_ref();
        let limits = self.limits(table)?;
        let targets =
            self.chosen(&job.targets, &tables.target, |target| target.name.get_ref(), "target")?;
        let chains =
            self.chosen(&job.mutators, &tables.mutators, |chain| chain.name.get_ref(), "mutators")?;
        if targets.is_empty() {
            let remedy = "describe one with [[target]]";
            return self.place.refuse(table.span(), "there is no target", remedy);
        }
        let seeds = self.seeds(job)?;
        // An empty list: the built-in stages alone.
        let chains: Vec<Option<&Mutators>> =
            if chains.is_empty() { vec![None] } else { chains.into_iter().map(Some).collect() };
        for target in targets {
            for chain in &chains {
                for (name, path) in &seeds {
                    jobs.push(self.job(target, *chain, name, path, limits, job)?);
                }
            }
        }
        Ok(())
    }

    fn job(
        &self,
        target: &Target,
        chain: Option<&Mutators>,
        seed: &str,
        path: &Path,
        limits: JobLimits,
        table: &JobTable,
    ) -> Result<Job, Mistake> {
        let mut options = self.target_options(target)?;
        options.extend(self.free(&target.options)?);
        options.extend(self.free(&table.options)?);
        let only = chain.and_then(|chain| chain.only.as_ref()).is_some_and(|only| *only.get_ref());
        if let Some(chain) = chain {
            let modules = chain.chain.get_ref();
            let refuse = |problem, remedy| self.place.refuse(chain.chain.span(), problem, remedy);
            match (modules.len(), only) {
                (0, _) => {
                    let remedy = "name a module: chain = [{ module = \"bit_flip\" }]";
                    return refuse("the chain is empty", remedy);
                }
                (2.., true) => {
                    let remedy = "name one, or leave out only";
                    return refuse("only = true with several modules", remedy);
                }
                _ => {}
            }
            if only && path.is_dir() {
                let problem =
                    format!("only = true takes one seed, and {} is a folder", path.display());
                return self.place.refuse(table.seeds.span(), problem, "name its files");
            }
            options.extend(self.mutator_options(modules));
        }
        let covers = !options.iter().any(|word| word == "-n");
        Ok(Job {
            target: target.name.get_ref().clone(),
            mutators: chain.map_or(BUILT_IN.to_owned(), |chain| chain.name.get_ref().clone()),
            seed: seed.to_owned(),
            round: 0,
            limits,
            seeds: path.to_owned(),
            options,
            command: self.command(target)?,
            only,
            carry: self.tables.carry_coverage && covers,
            covers,
            folder: self.place.folder.clone(),
        })
    }

    fn mutator_options(&self, modules: &[Module]) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(folder) = &self.tables.mutator_dir {
            words.extend(["--mutator-dir".into(), self.place.absolute(folder).into()]);
        }
        for Module { module, options } in modules {
            let file = if module.contains('/') {
                self.place.absolute(module).into()
            } else {
                module.into()
            };
            words.extend(["--mutator".into(), file]);
            let options = options.iter().flat_map(|text| ["--mutator-options".into(), text.into()]);
            words.extend(options);
        }
        words
    }

    fn target_options(&self, target: &Target) -> Result<Vec<OsString>, Mistake> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.into(), value.into()]);
        if let Some(ms) = target.timeout_ms {
            add("-t", ms.to_string());
        }
        if let Some(mb) = target.memory_mb {
            add("-m", mb.to_string());
        }
        if let Some(extension) = &target.extension {
            add("-e", extension.clone());
        }
        let names_file = target
            .command
            .get_ref()
            .iter()
            .any(|word| env::placeholder_in(word.as_ref()).is_some());
        let Some(delivery) = &target.delivery else { return Ok(words) };
        words.extend(self.delivery(delivery, names_file)?);
        Ok(words)
    }

    /// The options for this value of `delivery`. `names_file`: the command has `@@`.
    fn delivery(
        &self,
        value: &Spanned<String>,
        names_file: bool,
    ) -> Result<Vec<OsString>, Mistake> {
        let text = value.get_ref();
        let refuse = |problem: String, remedy| self.place.refuse(value.span(), problem, remedy);
        let twice = |what: &str| {
            refuse(format!("delivery {what}, and the command has @@"), "leave out one of them")
        };
        match (text.as_str(), names_file) {
            ("stdin", false) | ("argument", true) => return Ok(Vec::new()),
            ("stdin", true) => return twice("is \"stdin\""),
            ("argument", false) => {
                let problem = "delivery is \"argument\", and the command has no @@";
                return refuse(problem.into(), "write @@ where the file's name belongs");
            }
            _ => {}
        }
        if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return match names_file {
                true => twice("by a file"),
                false => Ok(vec!["-f".into(), self.place.absolute(path).into()]),
            };
        }
        match text.parse::<NetOptions>() {
            Ok(_) if names_file => twice(&format!("over the socket {text:?}")),
            Ok(_) => Ok(vec!["--net".into(), text.into()]),
            Err(NetError::Form(_)) => refuse(format!("{text:?} is no delivery"), DELIVERIES),
            Err(error) => refuse(format!("{text:?} is no delivery: {error}"), DELIVERIES),
        }
    }

    /// A program with a slash is relative to the file.
    fn command(&self, target: &Target) -> Result<Vec<OsString>, Mistake> {
        let words = target.command.get_ref();
        let Some(program) = words.first().filter(|program| !program.is_empty()) else {
            let remedy = "write the program and its arguments: [\"./target\", \"@@\"]";
            return self.place.refuse(target.command.span(), "the command is empty", remedy);
        };
        let program = if program.contains('/') {
            self.place.absolute(program).into()
        } else {
            program.into()
        };
        Ok([program].into_iter().chain(words[1..].iter().map(OsString::from)).collect())
    }

    /// Further options of `ffuzz`.
    fn free(&self, words: &[Spanned<String>]) -> Result<Vec<OsString>, Mistake> {
        for word in words {
            let text = word.get_ref().as_str();
            let name = text.split('=').next().unwrap_or_default();
            let letter = text.get(..2).filter(|_| !text.starts_with("--"));
            let own = self.refused.iter().find(|own| **own == name || Some(**own) == letter);
            if let Some(own) = own {
                let remedy = "jobs have keys for it, or give it themselves: docs/jobs.md";
                let problem = format!("{own} is not an option for jobs");
                return self.place.refuse(word.span(), problem, remedy);
            }
        }
        Ok(words.iter().map(|word| word.get_ref().into()).collect())
    }

    /// Those of these names; all without a list.
    fn chosen<'t, T>(
        &self,
        names: &Option<Vec<Spanned<String>>>,
        all: &'t [T],
        name_of: impl Fn(&T) -> &String,
        what: &str,
    ) -> Result<Vec<&'t T>, Mistake> {
        let Some(names) = names else { return Ok(all.iter().collect()) };
        let find = |name: &Spanned<String>| {
            let found = all.iter().find(|one| name_of(one) == name.get_ref());
            let known = || all.iter().map(&name_of).cloned().collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| {
                let problem = format!("there is no {what} {:?}", name.get_ref());
                self.place.mistake(
                    name.span().start,
                    problem,
                    &format!("the file has: {}", known()),
                )
            })
        };
        names.iter().map(find).collect()
    }

    fn limits(&self, table: &Spanned<JobTable>) -> Result<JobLimits, Mistake> {
        let JobTable { execs, seconds, stall_seconds, .. } = table.get_ref();
        let refuse = |problem, remedy| self.place.refuse(table.span(), problem, remedy);
        if execs.is_none() && seconds.is_none() {
            return refuse("the job has no limit", "give it execs, seconds, or both");
        }
        if [execs, seconds, stall_seconds].contains(&&Some(0)) {
            return refuse("a limit of 0", "limits are at least 1");
        }
        let stall = Duration::from_secs(stall_seconds.unwrap_or(STALL));
        Ok(JobLimits { execs: *execs, seconds: *seconds, stall })
    }

    /// Each with a name that no other seed of the job has.
    fn seeds(&self, job: &JobTable) -> Result<Vec<(String, PathBuf)>, Mistake> {
        let mut seeds: Vec<(String, PathBuf)> = Vec::new();
        if job.seeds.get_ref().is_empty() {
            return self.place.refuse(
                job.seeds.span(),
                "there is no seed",
                "name files or folders",
            );
        }
        for seed in job.seeds.get_ref() {
            let path = self.place.absolute(seed.get_ref());
            let refuse = |problem: String, remedy| self.place.refuse(seed.span(), problem, remedy);
            match path.metadata() {
                Ok(data) if data.is_dir() || data.is_file() && data.len() > 0 => {}
                Ok(_) => {
                    let problem = format!("the seed {:?} is no file with content", seed.get_ref());
                    return refuse(problem, "name files or folders");
                }
                Err(error) => {
                    let problem = format!("cannot read the seed {:?}: {error}", seed.get_ref());
                    return refuse(problem, "paths are relative to the job file");
                }
            }
            let name = plain(&path.file_name().unwrap_or_default().to_string_lossy());
            let name =
                if name.is_empty() || name.starts_with('.') { format!("seed{name}") } else { name };
            let same =
                seeds.iter().filter(|(_, known)| known.file_name() == path.file_name()).count();
            let name = if same == 0 { name } else { format!("{name}-{}", same + 1) };
            let taken = seeds.iter().any(|(known, _)| *known == name);
            seeds.push((if taken { format!("{name}+{}", seeds.len()) } else { name }, path));
        }
        Ok(seeds)
    }
}

/// What a folder can be called, at most 64 characters.
fn plain(text: &str) -> String {
    let good = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.chars().map(|letter| if good(letter) { letter } else { '_' }).take(64).collect()
}

/// Jobs of one place are rounds.
fn numbered(mut jobs: Vec<Job>) -> Vec<Job> {
    let mut rounds: HashMap<PathBuf, u32> = HashMap::new();
    for job in &mut jobs {
        let round = rounds.entry(job.place()).or_default();
        *round += 1;
        job.round = *round;
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GOOD: &str = "output = \"out\"
rounds = 2
mutator_dir = \"m\"
[[target]]
name = \"a\"
command = [\"./a\", \"@@\"]
timeout_ms = 50
[[target]]
name = \"b\"
command = [\"b\"]
delivery = \"stdin\"
[[mutators]]
name = \"bits\"
chain = [{ module = \"bit_flip\", options = '{\"num_bits\": 1}' }]
only = true
[[mutators]]
name = \"two\"
chain = [{ module = \"nop\" }, { module = \"./x.so\" }]
[[job]]
seeds = [\"s\"]
execs = 100
[[job]]
targets = [\"a\"]
mutators = []
seeds = [\"in\"]
seconds = 3
options = [\"-p\"]
";

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("s"), "seed").unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        dir
    }

    #[test]
    fn a_list_is_every_combination_round_by_round() {
        let dir = folder();
        let at = dir.path();
        let file = JobFile::parse(&at.join("jobs.toml"), GOOD, &[]).unwrap();
        let names: Vec<String> = file.jobs.iter().map(Job::name).collect();
        let first = ["a/bits/s", "a/two/s", "b/bits/s", "b/two/s", "a/built-in/in"];
        let second = first.map(|name| format!("{name} round 2"));
        assert_eq!(names[..5], first);
        assert_eq!(names[5..], second);
        let words = |job: &Job| {
            job.options
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let dir = at.join("m").display().to_string();
        let bits = "--mutator bit_flip --mutator-options {\"num_bits\": 1}";
        assert_eq!(words(&file.jobs[0]), format!("-t 50 --mutator-dir {dir} {bits}"));
        assert_eq!(words(&file.jobs[4]), "-t 50 -p");
        assert_eq!(file.jobs[0].command, [at.join("./a").into_os_string(), "@@".into()]);
        assert_eq!(file.jobs[2].command, ["b"]);
        assert!(file.jobs[0].only && !file.jobs[1].only);
    }

    #[test]
    fn the_socket_of_a_target_is_handed_on() {
        let dir = folder();
        for socket in ["tcp:1883", "udp:53", "unix:x", "tcp-client", "tcp-client:80", "udp-client"]
        {
            let text = GOOD.replacen("\"stdin\"", &format!("{socket:?}"), 1);
            let file = JobFile::parse(&dir.path().join("jobs.toml"), &text, &[]).unwrap();
            assert_eq!(file.jobs[0].target, "a");
            assert!(!file.jobs[0].options.contains(&"--net".into()));
            assert_eq!(file.jobs[2].target, "b");
            assert_eq!(file.jobs[2].options[..2], ["--net", socket]);
        }
    }

    #[test]
    fn a_mistake_has_its_place() {
        let dir = folder();
        let path = dir.path().join("jobs.toml");
        let refused = |from: &str, to: &str| {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            let Mistake { line, column, problem, .. } =
                JobFile::parse(&path, &text, &["-o"]).unwrap_err();
            format!("{line}:{column} {problem}")
        };
        for (from, to, said) in [
            ("rounds = 2", "rounds = two", "2:10 "),
            ("rounds = 2", "rounds = 0", "2:10 rounds is not"),
            ("rounds = 2", "ronds = 2", "2:1 unknown field `ronds`"),
            ("output = \"out\"", "", "1:1 missing field `output`"),
            ("seeds = [\"s\"]", "seeds = [\"s\", \"none\"]", "20:15 cannot read the seed \"none\""),
            ("targets = [\"a\"]", "targets = [\"a\", \"c\"]", "23:17 there is no target \"c\""),
            ("execs = 100", "", "19:1 the job has no limit"),
            ("execs = 100", "execs = 0", "19:1 a limit of 0"),
            ("name = \"b\"", "name = \"a\"", "9:8 the name \"a\" is given twice"),
            ("name = \"b\"", "name = \"../b\"", "9:8 the name \"../b\" cannot be"),
            ("\"stdin\"", "\"tcp\"", "11:12 \"tcp\" is no delivery"),
            ("\"stdin\"", "\"sctp:80\"", "11:12 \"sctp:80\" is no delivery"),
            ("\"stdin\"", "\"file:\"", "11:12 \"file:\" is no delivery"),
            ("\"stdin\"", "\"udp:x\"", "11:12 \"udp:x\" is no delivery: \"x\" is no port"),
            ("\"stdin\"", "\"unix:\"", "11:12 \"unix:\" is no delivery: the path of a local"),
            (
                "[\"b\"]\ndelivery = \"stdin\"",
                "[\"b\", \"@@\"]\ndelivery = \"tcp:80\"",
                "11:12 delivery over the socket \"tcp:80\", and the command has @@",
            ),
            ("\"stdin\"", "\"argument\"", "11:12 delivery is \"argument\""),
            ("[\"-p\"]", "[\"-p\", \"-oX\"]", "27:18 -o is not an option for jobs"),
            ("[\"b\"]", "[]", "10:11 the command is empty"),
            ("only = true", "only = 1", "15:8 "),
            ("seeds = [\"s\"]", "seeds = [\"in\"]", "20:9 only = true takes one seed"),
        ] {
            let found = refused(from, to);
            assert!(found.starts_with(said), "{found}, not {said}");
        }
    }
}
