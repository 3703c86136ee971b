//! Starting a target with its fork server, its shared memory and its environment.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::TargetError;
use super::channel::{self, Offer, OfferAnswer};
use super::cmplog::{self, AflLog};
use super::delivery::InputDelivery;
use super::emulator::{EmulatorError, StartAt};
use super::handshake::{self, ForkServerHello, NoHello, Wires};
use super::maps::{CLASSIC_MAP, LEGACY_KEYS, Maps};
use super::native;
use super::net::{StandIn, StandInError};
use super::replay::PERSISTENT;
use super::runs::RunChannel;
use super::way::Way;
use ffuzz_config::env::{self, WITHHELD};
use ffuzz_config::options::{NativeEngine, RunMode, TargetOptions};
use ffuzz_inspect::binary::{self, Traits};
use ffuzz_inspect::objects::Objects;
use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::listen::Listener;
use ffuzz_sys::memory::SharedMap;
use ffuzz_sys::process::{self, Launch, OutputTo, Process};
use ffuzz_sys::stdio;
use ffuzz_sys::stop::{Leave, StopRequest};
use ffuzz_sys::strays::{self, Strays};
use ffuzz_sys::wire::{self, WordReader, WordWriter};

/// Descriptors of AFL's protocol in the target.
pub(super) const CONTROL_FD: i32 = 198;
pub(super) const STATUS_FD: i32 = 199;

/// Destination of discarded target output.
const NULL: &str = "/dev/null";

/// Variable of the target with the folder of its instance, as AFL sets it.
const INSTANCE: &str = "__AFL_OUT_DIR";
/// Variable that makes a libFuzzer harness started by hand end by the signal of its crash
/// (`runtime/driver/options.h`).
const HARNESS_SIGNAL: &str = "FFUZZ_HARNESS_SIGNAL";

/// Limits for a target that ends at its start: bytes of output, duration of its second start, length of the
/// reported line.
const PART: usize = 64 << 10;
const LAST_WORDS: Duration = Duration::from_secs(2);
const LONGEST_LINE: usize = 200;

/// Initial size of the offered segment: AFL++'s own default, larger than nearly every target needs. Untouched
/// pages use no memory.
const OFFERED_MAP: usize = 8 << 20;

/// Source of the target's input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InputFrom {
    Stdin,
    File(PathBuf),
    /// The target inherits the fuzzer's stdin.
    Inherit,
}

/// A target that was found and checked, ready to be started.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) options: TargetOptions,
    /// Program and arguments, `@@` replaced.
    pub(super) argv: Vec<OsString>,
    pub(super) input: InputFrom,
    /// Link to the file of the target's stdin.
    stdin_file: PathBuf,
    /// True once the fuzzer has written the input file.
    wrote_input: Arc<AtomicBool>,
    pub(super) traits: Traits,
    instance_dir: Option<PathBuf>,
    way: Arc<Way>,
    /// Library that replaces the network, if inputs come over a socket.
    net: Option<Arc<StandIn>>,
    /// True if the target is started for its comparison log, including that of AFL++.
    logs: bool,
    /// Conditions that end a wait early, both at the start and during a run.
    pub(super) leave: Leave,
}

impl Setup {
    /// Finds and checks the program. `input_file` is the file for inputs unless the options name
    /// another one (AFL's `.cur_input`); the target gets `instance_dir` in its environment.
    pub fn new(
        options: &TargetOptions,
        input_file: &Path,
        instance_dir: Option<&Path>,
    ) -> Result<Self, TargetError> {
        let program = options.command.first().cloned().unwrap_or_default();
        let program = binary::locate(&program, options.search_path.as_deref())?;
        let engine = options.native.as_ref().map(|native| native.engine);
        let is_emulated = engine.is_some_and(|engine| engine != NativeEngine::Breakpoints);
        let traits = binary::inspect(&program, is_emulated);
        let traits = if options.skip_binary_check || options.non_instrumented {
            traits.unwrap_or_default()
        } else {
            traits?
        };
        if options.guards_heap {
            native::check_guarded(&program, traits)?;
        }
        let way = Way::choose(options, &program, traits)?;
        let net = options.net.as_ref();
        let net = net.map(|net| StandIn::prepare(options, net, &program)).transpose()?;
        let traits = Traits { instrumented: traits.instrumented || way.instruments(), ..traits };
        let mut argv = options.command.clone();
        argv[0] = program.into_os_string();
        let named = options.file.as_deref().unwrap_or(input_file);
        let reads_file = env::substitute(&mut argv[1..], named) || options.file.is_some();
        if net.is_some() && (reads_file || way.is_emulated()) {
            let error = if reads_file { StandInError::File } else { StandInError::Emulated };
            return Err(error.into());
        }
        let input = if reads_file { InputFrom::File(named.into()) } else { InputFrom::Stdin };
        Ok(Self {
            options: options.clone(),
            argv,
            input,
            stdin_file: input_file.into(),
            wrote_input: Arc::default(),
            traits,
            instance_dir: instance_dir.map(Into::into),
            way: Arc::new(way),
            net: net.map(Arc::new),
            logs: false,
            leave: Leave::default(),
        })
    }

    /// Prepares the program for its comparison log; fails if neither `ffuzz-cc` nor AFL++ with `AFL_LLVM_CMPLOG=1`
    /// built it.
    pub fn logging(mut self) -> Result<Self, TargetError> {
        if !self.options.skip_binary_check {
            cmplog::check(self.program(), &self.options.extra_env)?;
        }
        // AFL++ raises the limit by the same amount.
        let limit = &mut self.options.memory_limit;
        *limit = limit.map(|bytes| bytes.saturating_add(cmplog::BYTES as u64));
        self.logs = true;
        Ok(self)
    }

    pub(super) fn logs(&self) -> bool {
        self.logs
    }

    /// Makes a start or a run of the target give up some time after the stop `request`.
    #[must_use]
    pub fn stop_on(mut self, request: StopRequest) -> Self {
        self.leave = Leave::from(Some(request));
        self
    }

    /// Passes the input as a file to a process without a fork server whose harness, started by hand, accepts only
    /// files.
    pub(super) fn name_input_if_needed(&mut self) {
        if self.traits.runs_files && self.argv.len() == 1 && self.input == InputFrom::Stdin {
            self.argv.push(self.stdin_file.clone().into_os_string());
            self.input = InputFrom::File(self.stdin_file.clone());
        }
    }

    /// Lets the target inherit stdin instead of reading inputs from it.
    pub fn inherit_stdin(&mut self) {
        if self.input == InputFrom::Stdin {
            self.input = InputFrom::Inherit;
        }
    }

    /// Returns true if the program has counters of a compiler for fuzzing.
    #[must_use]
    pub(crate) fn is_instrumented(&self) -> bool {
        self.traits.instrumented
    }

    /// Returns true if inputs come over a socket.
    pub(super) fn has_net(&self) -> bool {
        self.net.is_some()
    }

    /// Variables with which a process started by hand gets its inputs over the socket.
    pub(super) fn net_variables(&self) -> Vec<(OsString, OsString)> {
        let Some(net) = &self.net else { return Vec::new() };
        let extra = self.options.extra_env.iter();
        let mut env: Vec<_> =
            extra.map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        let before = env.len();
        net.add(&mut env);
        let own = env.into_iter().skip(before);
        own.filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Coverage method of the target.
    pub(super) fn way(&self) -> &Way {
        &self.way
    }

    /// Command line that runs the target with these `words` directly. `is_server`: an emulator also loads its
    /// plugin.
    pub(super) fn command(&self, words: &[OsString], is_server: bool) -> Vec<OsString> {
        self.way.command(words, is_server)
    }

    pub(super) fn program(&self) -> &Path {
        Path::new(&self.argv[0])
    }

    pub(super) fn persistent(&self) -> bool {
        !matches!(self.options.run_mode, RunMode::Fork | RunMode::Snapshot)
            && (self.traits.persistent || self.options.force_persistent)
    }

    /// Returns true if the program supports a channel, of any version.
    pub(super) fn takes_channel(&self) -> bool {
        self.traits.takes_channel
    }

    pub(super) fn deferred(&self) -> bool {
        self.traits.deferred || self.options.force_deferred
    }

    /// Opens the file or pipe for inputs, which is unused if the target requests shared memory.
    pub(super) fn open_delivery(&self) -> Result<InputDelivery, TargetError> {
        match &self.input {
            InputFrom::Stdin => InputDelivery::stdin(&self.stdin_file),
            InputFrom::File(path) => {
                let (keep, ours) = (self.options.keep_input_file, Arc::clone(&self.wrote_input));
                let mut delivery =
                    InputDelivery::Named { path: path.clone(), keep, ours, watched: false };
                // Some targets open the file before their fork server starts.
                delivery.deliver(&[])?;
                Ok(delivery)
            }
            InputFrom::Inherit => Ok(InputDelivery::Inherit),
        }
    }

    pub(super) fn stdin_for(&self, delivery: &InputDelivery) -> Result<Stdio, TargetError> {
        match delivery {
            InputDelivery::Stdin { file, path, .. } => file
                .try_clone()
                .map(Stdio::from)
                .map_err(|source| TargetError::Deliver { path: path.clone(), source }),
            InputDelivery::Inherit => stdio::input()
                .map(Stdio::from)
                .map_err(|source| TargetError::Deliver { path: "standard input".into(), source }),
            _ => Ok(Stdio::null()),
        }
    }

    pub(super) fn start_error(&self, source: std::io::Error) -> TargetError {
        let path = self.program().to_owned();
        let no_descriptor = [Some(libc::EBADF), Some(libc::EMFILE)];
        if no_descriptor.contains(&source.raw_os_error()) {
            return TargetError::OpenFiles { most: STATUS_FD };
        }
        if source.kind() == std::io::ErrorKind::NotFound && !Path::new(NULL).exists() {
            return TargetError::NoNull;
        }
        match binary::loader(&path).filter(|loader| !loader.exists()) {
            Some(loader) if source.kind() == std::io::ErrorKind::NotFound => {
                TargetError::NoLoader { loader }
            }
            _ => TargetError::Start { path, source },
        }
    }

    /// Likely reason for a process that ended immediately. `said` is the last line of its output.
    fn early_end(&self, status: Option<i32>, said: Option<String>) -> TargetError {
        let names = self.missing_libraries(status);
        if !names.is_empty() {
            return TargetError::NoLibrary { names };
        }
        let is_killed_by =
            |signal| status.is_some_and(|s| libc::WIFSIGNALED(s) && libc::WTERMSIG(s) == signal);
        if is_killed_by(libc::SIGXFSZ) {
            return TargetError::FileSize;
        }
        let said = said.map_or(String::new(), |line| format!(", after the line {line:?}"));
        let how = describe_end(status) + &said;
        let is_limited = self.options.memory_limit.is_some();
        if let Some(error) = self.way.early_end(status, &how, is_limited) {
            return error;
        }
        let addresses = process::address_limit().filter(|_| self.traits.sanitizer);
        let (memory_limit, deferred) = (self.options.memory_limit, self.deferred());
        TargetError::DiedAtStart { how, memory_limit, deferred, addresses }
    }

    /// Names of missing shared libraries. The loader then exits with 127; called as by `ldd`, it lists them and
    /// does not start the program.
    pub(super) fn missing_libraries(&self, status: Option<i32>) -> Vec<String> {
        let by_loader = status.is_some_and(|s| libc::WIFEXITED(s) && libc::WEXITSTATUS(s) == 127);
        if !by_loader || binary::loader(self.program()).is_none() {
            return Vec::new();
        }
        let objects = Objects::of(self.program(), &self.options.extra_env);
        objects.map(|objects| objects.missing).unwrap_or_default()
    }

    fn init_timeout(&self, run: Duration) -> Duration {
        self.options.init_timeout.unwrap_or(run * 10)
    }

    /// Variables that every start sets or removes, so that a process without a fork server behaves as if started
    /// by hand.
    pub(super) fn base_env(&self) -> Vec<(OsString, Option<OsString>)> {
        let mut env: Vec<(OsString, Option<OsString>)> = [
            "__AFL_SHM_ID",
            "__AFL_SHM_FUZZ_ID",
            cmplog::ENV,
            PERSISTENT,
            "__AFL_DEFER_FORKSRV",
            "AFL_CHILD_SYNC_SHM",
            // If set, AFL++ 4.22 targets send no hello.
            "AFL_OLD_FORKSERVER",
            channel::ENV,
        ]
        .into_iter()
        .chain(WITHHELD)
        .map(|name| (name.into(), None))
        .collect();
        let mut set = |name: &str, value: OsString| env.push((name.into(), Some(value)));
        set(HARNESS_SIGNAL, "1".into());
        if let Some(dir) = &self.instance_dir {
            set(INSTANCE, dir.clone().into_os_string());
        }
        let extra = self.options.extra_env.iter();
        env.extend(extra.map(|(name, value)| (name.clone(), Some(value.clone()))));
        if let Some(net) = &self.net {
            net.add(&mut env);
        }
        env
    }
}

/// Ends processes that earlier fuzzers left running for this instance folder, which must not be in use. Returns
/// their number.
pub fn end_abandoned(instance: &Path) -> usize {
    strays::end_abandoned(INSTANCE, instance.as_os_str())
}

/// A fork server after its hello.
#[derive(Debug)]
pub(super) struct ServerSession {
    pub(super) process: Process,
    /// Dropped after the process, whose leftovers it removes.
    pub(super) strays: Strays,
    pub(super) control: WordWriter,
    pub(super) status: WordReader,
    pub(super) maps: Maps,
    /// Log of an AFL++ program that was started for it.
    pub(super) log: Option<AflLog>,
    /// None if runs use AFL's pipes.
    pub(super) runs: Option<RunChannel>,
    /// Error that keeps the target from using the channel.
    pub(super) refused: Option<std::io::Error>,
    pub(super) delivery: InputDelivery,
    pub(super) dictionary: Vec<Vec<u8>>,
}

/// Memory that a start offers to the program.
struct Offers {
    segment: (SharedMap, i32),
    input: Option<(SharedMap, i32)>,
    log: Option<(SharedMap, i32)>,
    channel: Offer,
}

impl ServerSession {
    /// Starts the target; `timeout` is that of a run.
    pub(super) fn start(setup: &Setup, timeout: Duration) -> Result<Self, TargetError> {
        let asked = setup.options.map_size;
        let offered = asked.unwrap_or(OFFERED_MAP);
        let start = |map| {
            let (last, first) = setup.way.starts().split_last().unwrap_or((&StartAt::Input, &[]));
            for at in first {
                match Self::start_with(setup, timeout, map, *at) {
                    Err(TargetError::Emulator(EmulatorError::NoStart { .. })) => {}
                    started => return started,
                }
            }
            Self::start_with(setup, timeout, map, *last)
        };
        match start(offered)? {
            Startup::Ready(session) => Ok(*session),
            Startup::Larger(map_size) => match start(map_size)? {
                Startup::Ready(session) => Ok(*session),
                Startup::Larger(again) => Err(TargetError::Protocol {
                    what: format!("its map grew from {map_size} to {again} bytes"),
                }),
            },
        }
    }

    fn start_with(
        setup: &Setup,
        timeout: Duration,
        map: usize,
        at: StartAt,
    ) -> Result<Startup, TargetError> {
        let runs = setup.options.run_mode != RunMode::Pipe;
        let mut offers = Offers::new(map, setup.input != InputFrom::Inherit, runs)?;
        if setup.logs {
            let memory = |source| TargetError::Memory { bytes: cmplog::BYTES, source };
            offers.log = Some(SharedMap::sysv(cmplog::BYTES).map_err(memory)?);
        }
        let delivery = setup.open_delivery()?;
        let terms = Terms { offers, map, at, delivery, strays: Strays::default() };
        let output = OutputTo::shown(setup.options.show_output);
        let Launched { mut process, mut control, mut status } = launch(setup, &terms, output)?;
        let timeout = setup.init_timeout(timeout);
        let leave = setup.leave.clone();
        let mut wires = Wires { status: &mut status, control: &mut control, timeout, leave };
        let hello = match handshake::greet(&mut wires) {
            Ok(hello) => hello,
            Err(NoHello::Error(TargetError::NoHello { .. })) if process.waits_for_input() => {
                return Err(TargetError::ReadsEarly);
            }
            Err(NoHello::Error(error)) => return Err(error),
            Err(NoHello::Ended) => {
                let status = process.wait_for(Duration::from_secs(1));
                drop(process);
                return Err(setup.early_end(status, last_line(setup, &terms)));
            }
        };
        let launched = Launched { process, control, status };
        Self::finish(setup, terms, hello, launched)
    }

    fn finish(
        setup: &Setup,
        terms: Terms,
        hello: ForkServerHello,
        launched: Launched,
    ) -> Result<Startup, TargetError> {
        let Terms { offers, delivery, strays, .. } = terms;
        let (mut refused, mut log) = (None, None);
        let mut maps = match offers.channel.accept()? {
            OfferAnswer::Accepted(channel) => Maps::in_channel(channel),
            answer => {
                if let OfferAnswer::Refused(error) = answer {
                    refused = Some(error);
                }
                if let Some((map, _)) = offers.log {
                    log = Some(AflLog::new(map, hello.runtime, setup.program())?);
                }
                let (segment, _) = offers.segment;
                let blind = setup.options.non_instrumented;
                let edges = if blind { 0 } else { hello.edges(setup.options.map_size) };
                if edges > segment.len() {
                    return Ok(Startup::Larger(edges.next_multiple_of(64)));
                }
                Maps::in_segment(segment, edges, hello.domains)
            }
        };
        let delivery = match offers.input {
            Some((map, _)) if hello.shared_input => InputDelivery::Shared { map },
            _ => delivery,
        };
        let dictionary =
            if setup.options.ignore_auto_dictionary { Vec::new() } else { hello.dictionary };
        let runs = maps.take_runs();
        let Launched { process, control, status } = launched;
        Ok(Startup::Ready(Box::new(Self {
            process,
            strays,
            control,
            status,
            maps,
            log,
            runs,
            refused,
            delivery,
            dictionary,
        })))
    }
}

enum Startup {
    Ready(Box<ServerSession>),
    /// The target needs a map of this size, in bytes.
    Larger(usize),
}

impl Offers {
    fn new(map: usize, with_input: bool, runs: bool) -> Result<Self, TargetError> {
        let memory = |bytes| move |source| TargetError::Memory { bytes, source };
        // A FuzzFactory target always writes to its domain array.
        let bytes = map.max(CLASSIC_MAP + 4 * LEGACY_KEYS).next_multiple_of(64);
        let segment = SharedMap::sysv(bytes).map_err(memory(bytes))?;
        let bytes = MAX_INPUT + 4;
        let input =
            with_input.then(|| SharedMap::sysv(bytes)).transpose().map_err(memory(bytes))?;
        let channel = Offer::new(runs).map_err(memory(4096))?;
        Ok(Self { segment, input, log: None, channel })
    }
}

/// What a process is started with, the first time and once more for its last line.
struct Terms {
    offers: Offers,
    map: usize,
    at: StartAt,
    delivery: InputDelivery,
    strays: Strays,
}

/// A process that was started, and its pipes.
struct Launched {
    status: WordReader,
    control: WordWriter,
    process: Process,
}

fn launch(setup: &Setup, terms: &Terms, output: OutputTo<'_>) -> Result<Launched, TargetError> {
    let Terms { offers, map, at, delivery, strays } = terms;
    let start_error = |source| setup.start_error(source);
    let (control_theirs, control) = wire::pipe().map_err(start_error)?;
    let (status, status_theirs) = wire::pipe().map_err(start_error)?;
    let mut env = setup.base_env();
    let mut set = |name: &str, value: String| env.push((name.into(), Some(value.into())));
    if setup.persistent() {
        set(PERSISTENT, "1".into());
    }
    if setup.deferred() {
        set("__AFL_DEFER_FORKSRV", "1".into());
    }
    set("__AFL_SHM_ID", offers.segment.1.to_string());
    set("AFL_MAP_SIZE", map.to_string());
    if let Some((_, id)) = &offers.input {
        set("__AFL_SHM_FUZZ_ID", id.to_string());
    }
    if let Some((_, id)) = &offers.log {
        set(cmplog::ENV, id.to_string());
        set(cmplog::MARK, "1".into());
    }
    // Without the channel the target writes its coverage to private memory.
    if !setup.options.non_instrumented {
        set(channel::ENV, channel::TARGET_FD.to_string());
    }
    let mut fds = vec![
        (control_theirs.as_fd(), CONTROL_FD),
        (status_theirs.as_fd(), STATUS_FD),
        (offers.channel.fd(), channel::TARGET_FD),
    ];
    setup.way.add_server(&mut env, &setup.input, *at)?;
    fds.extend(setup.way.descriptor());
    let argv = setup.way.command(&setup.argv, true);
    let process = process::launch(Launch {
        argv: &argv,
        env: &env,
        stdin: setup.stdin_for(delivery)?,
        output,
        fds: &fds,
        memory_limit: setup.options.memory_limit,
        core_limit: 0,
        guarded: true,
        traced: false,
        strays: Some(strays),
        fixed_addresses: setup.has_net(),
    })
    .map_err(start_error)?;
    Ok(Launched { process, control: control.into(), status: status.into() })
}

/// Starts a target that ends at its start once more, and returns the telling line of its standard error. None if
/// that is shown anyway.
fn last_line(setup: &Setup, terms: &Terms) -> Option<String> {
    if setup.options.show_output {
        return None;
    }
    let mut listener = Listener::new(PART).ok()?;
    let Launched { mut process, control, status } = launch(setup, terms, listener.output()).ok()?;
    // Closed so that it does not wait for orders.
    drop((control, status));
    listener.wait(&mut process, LAST_WORDS);
    drop(process);
    let [_, stderr] = listener.into_output();
    telling_line(&String::from_utf8_lossy(&stderr))
}

/// The first line of a sanitizer's report, which names the cause, or else the last line with text.
fn telling_line(output: &str) -> Option<String> {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let report = lines().find(|line| line.contains("Sanitizer") && line.contains("ERROR: "));
    let line = report.or_else(|| lines().next_back())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(LONGEST_LINE).collect())
}

/// Describes how a process ended.
pub(super) fn describe_end(status: Option<i32>) -> String {
    match status {
        None => "it closed the connection but still ran".into(),
        Some(status) if libc::WIFSIGNALED(status) => {
            format!("killed by signal {}", libc::WTERMSIG(status))
        }
        Some(status) => format!("exit code {}", libc::WEXITSTATUS(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_names_the_cause_is_the_one_shown() {
        assert_eq!(telling_line("a\ncannot open x\x1b[0m\n\n").unwrap(), "cannot open x[0m");
        let report = "x\n==1==ERROR: AddressSanitizer failed to allocate\n==1==ABORTING\n";
        assert_eq!(
            telling_line(report).unwrap(),
            "==1==ERROR: AddressSanitizer failed to allocate"
        );
        assert_eq!(telling_line(" \n"), None);
    }
}
