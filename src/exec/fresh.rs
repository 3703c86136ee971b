//! A process of its own for each input, with its output: for runs that are analysed in detail.
//!
//! No fork server, no shared memory: a target reads standard input or the file on its command line,
//! as when it is started by hand.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::delivery::{Feed, InputDelivery};
use super::emulator::{TRAIL_ENV, TRAIL_FD, Trail};
use super::launcher::{CONTROL_FD, InputFrom, STATUS_FD, Setup};
use super::net::{RECORD_ENV, Recording, Session, TRANSCRIPT_ENV, TRANSCRIPT_FD, Transcript};
use super::replay::{self, Line, Replay};
use super::{TargetError, exit_kind};
use ffuzz_config::net::NetOptions;
use ffuzz_engine::executor::ExitKind;
use ffuzz_mutators::{Hook, Mutators, Processed};
use ffuzz_sys::breakpoints::{self, Given, Watcher};
use ffuzz_sys::guard::Guard;
use ffuzz_sys::listen::{Limit, Listener};
use ffuzz_sys::process::{self, Launch, Process};
use ffuzz_sys::strays::Strays;
use ffuzz_sys::traced::{self, TraceStop};

/// Number of first bytes, and of last bytes, that are kept of each stream.
const PART: usize = 256 << 10;

/// Exit code of a harness of `ffuzz-cc` that reports a crash by itself (`runtime/driver/crash.c`).
const HARNESS_CRASHED: u8 = 77;

/// How a run is made.
pub struct FreshOptions<'a> {
    /// Added to what the target's options set.
    pub env: &'a [(OsString, OsString)],
    /// Words before the command line: a debugger with its options.
    pub under: &'a [OsString],
    pub limit: Limit,
    /// Called several times when it exceeds the timeout,
    pub look: Option<&'a mut dyn FnMut(&TraceStop)>,
    /// and at each signal that may end it. Some programs behave otherwise then.
    pub traced: bool,
    /// Follows it and all that it starts instead, from breakpoint to breakpoint.
    pub watcher: Option<&'a mut dyn Watcher>,
    /// Largest core file that it may leave, in bytes.
    pub core_limit: u64,
    /// What the names of the inputs begin with that the process gets before its own.
    pub before: Option<&'a Path>,
    /// Where an emulator says which blocks it has executed last.
    pub trail: Option<&'a Trail>,
    /// The messages come from a real peer and are written down.
    pub recording: Option<&'a Recording>,
}

impl FreshOptions<'_> {
    /// A run without tracing.
    #[must_use]
    pub fn within(limit: impl Into<Limit>) -> Self {
        let limit = limit.into();
        Self {
            env: &[],
            under: &[],
            limit,
            look: None,
            traced: false,
            watcher: None,
            core_limit: 0,
            before: None,
            trail: None,
            recording: None,
        }
    }
}

/// How it ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub exit: ExitKind,
    /// Its wait status, if it ended without being killed.
    pub code: Option<u8>,
    /// Why a watcher has not seen all of it.
    pub given_up: Option<Given>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// What a target with a socket did with it.
    pub session: Option<Session>,
    pub duration: Duration,
}

/// A target that is started again for each input.
pub struct Fresh {
    setup: Setup,
    /// The program and its arguments, and the emulator in front of them.
    command: Vec<OsString>,
    delivery: InputDelivery,
    mutators: Mutators,
    /// See [`ffuzz_engine::runner::Runner::send_late`].
    late: bool,
    /// Inputs pass `post_process` before the target gets them.
    process: bool,
    processed: Vec<u8>,
    /// Ends the target's processes if the fuzzer is killed; None on a system without a shell.
    guard: Option<Guard>,
    strays: Strays,
}

impl Fresh {
    /// Starts nothing yet.
    pub fn new(
        mut setup: Setup,
        mutators: Mutators,
        late: bool,
        process: bool,
    ) -> Result<Self, TargetError> {
        setup.name_input_if_needed();
        let delivery = setup.open_delivery()?;
        let (guard, strays) = (Guard::new().ok(), Strays::default());
        let command = setup.command(&setup.argv, false);
        Ok(Self {
            setup,
            command,
            delivery,
            mutators,
            late,
            process,
            processed: Vec::new(),
            guard,
            strays,
        })
    }

    /// The command line of its process, with the name of the input's file.
    #[must_use]
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// The process is that of an emulator: a debugger sees nothing of the program.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        self.setup.way().is_emulated()
    }

    /// Name of the input's file.
    #[must_use]
    pub fn input_file(&self) -> &Path {
        match &self.setup.input {
            InputFrom::File(path) => path,
            InputFrom::Stdin | InputFrom::Inherit => Path::new(""),
        }
    }

    /// The socket that inputs come over.
    #[must_use]
    pub fn net(&self) -> Option<&NetOptions> {
        self.setup.options.net.as_ref()
    }

    /// The variables by which a process of the target gets its inputs over that socket.
    #[must_use]
    pub fn net_variables(&self) -> Vec<(OsString, OsString)> {
        self.setup.net_variables()
    }

    /// How its process gets inputs before its own.
    #[must_use]
    pub fn replay(&self) -> Replay {
        Replay::of(&self.setup.traits)
    }

    /// Runs one input.
    pub fn run(&mut self, input: &[u8], options: FreshOptions<'_>) -> Result<Ended, TargetError> {
        let changed = self.process
            && self.mutators.post_process(input, &mut self.processed) == Processed::Changed;
        let mut processed = std::mem::take(&mut self.processed);
        let bytes = if changed { &processed } else { input };
        let sends = self.mutators.has(Hook::FuzzSend);
        let mut mutators = std::mem::take(&mut self.mutators);
        let mut send = || mutators.fuzz_send(bytes);
        let feed = match sends {
            true => Feed::Sent { late: self.late, send: &mut send },
            false => Feed::Input(bytes),
        };
        let ended = self.start(feed, options);
        mutators.post_run();
        self.mutators = mutators;
        processed.clear();
        self.processed = processed;
        ended
    }

    fn start(
        &mut self,
        mut feed: Feed<'_>,
        options: FreshOptions<'_>,
    ) -> Result<Ended, TargetError> {
        feed.before(&mut self.delivery)?;
        let (argv, mut env, mut line) = self.words(&feed, &options)?;
        let is_watched = options.watcher.is_some();
        let start_error = |source: io::Error| match source.raw_os_error() {
            Some(libc::EPERM) if is_watched => TargetError::NotTraceable { source },
            _ => self.setup.start_error(source),
        };
        let mut listener = Listener::new(PART).map_err(start_error)?;
        let pipes = match line.is_some() && self.setup.traits.greets {
            true => Some((replay::orders().map_err(start_error)?, nowhere().map_err(start_error)?)),
            false => None,
        };
        let transcript = self.setup.has_net().then(Transcript::new);
        let transcript = transcript.transpose().map_err(start_error)?;
        let announced = [
            (transcript.is_some(), TRANSCRIPT_ENV, "1".into()),
            (options.trail.is_some(), TRAIL_ENV, TRAIL_FD.to_string()),
            (options.recording.is_some(), RECORD_ENV, "1".into()),
        ];
        let announced = announced.into_iter().filter(|(is_there, ..)| *is_there);
        env.extend(announced.map(|(_, name, value)| (name.into(), Some(value.into()))));
        let fds = pipes.iter().flat_map(|(control, status)| {
            [(control.as_fd(), CONTROL_FD), (status.as_fd(), STATUS_FD)]
        });
        let trail = options.trail.map(|trail| (trail.fd(), TRAIL_FD));
        let recorded = options.recording.iter().flat_map(|recording| recording.fds());
        let record = transcript.as_ref().map(|transcript| (transcript.fd(), TRANSCRIPT_FD));
        let start = Instant::now();
        let mut process = process::launch(Launch {
            argv: &[options.under, &self.setup.command(&argv, options.trail.is_some())].concat(),
            env: &env,
            stdin: self.setup.stdin_for(&self.delivery)?,
            output: listener.output(),
            fds: &fds.chain(trail).chain(record).chain(recorded).collect::<Vec<_>>(),
            // A debugger is no part of the target, and larger than most.
            memory_limit: self.setup.options.memory_limit.filter(|_| options.under.is_empty()),
            core_limit: options.core_limit,
            guarded: false,
            traced: is_watched || line.is_some() || (options.traced && options.look.is_some()),
            strays: Some(&self.strays),
            fixed_addresses: self.setup.has_net(),
        })
        .map_err(start_error)?;
        self.guard
            .iter_mut()
            .for_each(|guard| guard.watch(process.pid(), Some(self.strays.mark())));
        feed.once_started();
        let (session, is_debugged) = (process.pid(), !options.under.is_empty());
        let deliver = line.as_mut().map(|line| ProcessInputs {
            line,
            delivery: &mut self.delivery,
            is_served: pipes.is_some(),
        });
        let (status, given_up) = wait(&mut process, &mut listener, options, deliver);
        drop(process);
        if is_debugged {
            process::end_session(session);
        }
        self.strays.clear();
        self.guard.iter_mut().for_each(Guard::rest);
        let (exit, code) = self.judge(status);
        let [stdout, stderr] = listener.into_output();
        let session = transcript.map(|transcript| transcript.session());
        Ok(Ended { exit, code, given_up, stdout, stderr, session, duration: start.elapsed() })
    }

    /// How a process with this wait status has ended, and its exit code. None: its time was up.
    fn judge(&self, status: Option<i32>) -> (ExitKind, Option<u8>) {
        let is_harness = self.setup.traits.is_harness;
        let is_crash = |code| {
            self.setup.options.is_crash_code(code) || (is_harness && code == HARNESS_CRASHED)
        };
        let exit = exit_kind(status.unwrap_or_default(), status.is_none(), is_crash);
        let code = status.filter(|status| libc::WIFEXITED(*status));
        (exit, code.and_then(|status| u8::try_from(libc::WEXITSTATUS(status)).ok()))
    }

    /// Command line and environment, and the inputs that are delivered one by one.
    fn words(
        &mut self,
        feed: &Feed<'_>,
        options: &FreshOptions<'_>,
    ) -> Result<CommandParts, TargetError> {
        let (mut argv, mut env, mut line) = (self.setup.argv.clone(), self.setup.base_env(), None);
        env.extend(options.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
        if let Some(start) = options.before {
            match (self.replay(), feed) {
                (Replay::Runtime, _) => env.extend(replay::variables(start, self.input_file())),
                (Replay::Words, _) => argv = replay::words(start, &argv, self.input_file()),
                (Replay::Stops, Feed::Input(own)) => {
                    env.push((replay::PERSISTENT.into(), Some("1".into())));
                    line = Some(Line::begin(start, own, &mut self.delivery)?);
                }
                (Replay::Stops, Feed::Sent { .. }) => {}
            }
        }
        Ok((argv, env, line))
    }

    /// Shared libraries that the loader did not find in a run that ended so.
    #[must_use]
    pub fn missing_libraries(&self, ended: &Ended) -> Vec<String> {
        self.setup.missing_libraries(ended.code.map(|code| i32::from(code) << 8))
    }

    /// Messages of the mutators.
    pub fn take_messages(&mut self) -> Vec<String> {
        self.mutators.take_messages()
    }
}

type CommandParts = (Vec<OsString>, Vec<(OsString, Option<OsString>)>, Option<Line>);

/// The inputs of one process.
struct ProcessInputs<'a> {
    line: &'a mut Line,
    delivery: &'a mut InputDelivery,
    /// A fork server starts it.
    is_served: bool,
}

/// What a fork server writes to nobody.
fn nowhere() -> io::Result<File> {
    File::options().write(true).open("/dev/null")
}

/// Waits for the end of a process that was started with these options. Returns its wait status, None if its
/// time was up, and why it was not followed to its end.
fn wait(
    process: &mut Process,
    listener: &mut Listener,
    options: FreshOptions<'_>,
    deliver: Option<ProcessInputs<'_>>,
) -> (Option<i32>, Option<Given>) {
    let limit = options.limit;
    let status = match (options.watcher, options.look, deliver) {
        (Some(watcher), _, _) => {
            let followed = breakpoints::follow(process, listener, limit, watcher);
            return (followed.status, followed.given_up);
        }
        (None, mut look, Some(ProcessInputs { line, delivery, is_served })) => {
            let next = |stop: &TraceStop| match &mut look {
                _ if stop.is_own => line.next(delivery, stop.thread),
                Some(look) => look(stop),
                None => {}
            };
            let status = match is_served {
                true => traced::wait_served(process, listener, limit, next),
                false => traced::wait(process, listener, limit, next),
            };
            // Stopped after its last input, and ended: as if it had ended well.
            if line.is_over { Some(0) } else { status }
        }
        (None, Some(look), None) if options.traced => traced::wait(process, listener, limit, look),
        (None, Some(look), None) => traced::wait_untraced(process, listener, limit, look),
        (None, None, None) => listener.wait(process, limit),
    };
    (status, None)
}
