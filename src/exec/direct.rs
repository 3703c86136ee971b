//! A process per run: `-n` (no instrumentation) and `AFL_NO_FORKSRV`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::delivery::{Feed, InputDelivery};
use super::forkserver::delay::Delay;
use super::launcher::Setup;
use super::maps::{CLASSIC_MAP, LEGACY_KEYS, Maps};
use super::{RunEnd, TargetError, blocked, exit_kind, net};
use ffuzz_config::options::RunMode;
use ffuzz_engine::domain::Domain;
use ffuzz_engine::executor::{
    Executor, ExitKind, FirstSession, Observation, RunError, RunSettings, Spent, StopRequest,
    TargetInfo,
};
use ffuzz_inspect::words;
use ffuzz_mutate::words::Word;
use ffuzz_sys::guard::Guard;
use ffuzz_sys::memory::SharedMap;
use ffuzz_sys::process::{self, Launch, OutputTo, Process};
use ffuzz_sys::stop::Leave;
use ffuzz_sys::strays::Strays;

/// Starts a new process of the program for every run.
#[derive(Debug)]
pub struct Direct {
    setup: Setup,
    maps: Maps,
    segment_id: i32,
    delivery: InputDelivery,
    settings: RunSettings,
    execs: u64,
    spent: Spent,
    strays: Strays,
    /// None if the system has no shell.
    _guard: Option<Guard>,
}

/// Interval between two checks for a request to stop.
const SLICE: Duration = Duration::from_millis(100);

impl Direct {
    /// Prepares the target; the first run shows whether the program starts.
    pub fn new(setup: Setup, timeout: Duration) -> Result<Self, TargetError> {
        let edges = if setup.options.non_instrumented {
            0
        } else {
            setup.options.map_size.unwrap_or(CLASSIC_MAP)
        };
        let bytes = edges.max(CLASSIC_MAP + 4 * LEGACY_KEYS);
        let (segment, segment_id) =
            SharedMap::sysv(bytes).map_err(|source| TargetError::Memory { bytes, source })?;
        let maps = Maps::in_segment(segment, edges, Vec::new());
        let delivery = setup.open_delivery()?;
        let (strays, mut guard) = (Strays::default(), Guard::new().ok());
        // The guard ends the process of a run when the fuzzer ends.
        guard.iter_mut().for_each(|guard| guard.watch(0, Some(strays.mark())));
        Ok(Self {
            setup,
            maps,
            segment_id,
            delivery,
            settings: RunSettings::new(timeout),
            execs: 0,
            spent: Spent::default(),
            strays,
            _guard: guard,
        })
    }

    fn execute(&mut self, mut feed: Feed<'_>) -> Result<RunEnd, TargetError> {
        self.maps.clear();
        feed.before(&mut self.delivery)?;
        let mut env = self.setup.base_env();
        if !self.setup.options.non_instrumented {
            env.push(("__AFL_SHM_ID".into(), Some(self.segment_id.to_string().into())));
            env.push(("AFL_MAP_SIZE".into(), Some(self.map_size().to_string().into())));
            self.setup.way().add_runtime(&mut env);
        }
        let start = Instant::now();
        self.strays.sweep_if_due(start, |_| false, || self.setup.leave.is_asked());
        let mut process = process::launch(Launch {
            argv: &self.setup.argv,
            env: &env,
            stdin: self.setup.stdin_for(&self.delivery)?,
            output: OutputTo::shown(self.setup.options.show_output),
            fds: &[],
            memory_limit: self.setup.options.memory_limit,
            core_limit: 0,
            guarded: false,
            traced: false,
            strays: Some(&self.strays),
            fixed_addresses: self.setup.has_net(),
        })
        .map_err(|source| self.setup.start_error(source))?;
        feed.once_started();
        let status = self.wait(&mut process, start)?;
        let killed = status.is_none();
        drop(process);
        if self.execs == 0 {
            let names = self.setup.missing_libraries(status);
            if !names.is_empty() {
                return Err(TargetError::NoLibrary { names });
            }
        }
        self.execs += 1;
        let is_crash = |code| self.setup.options.is_crash_code(code);
        let exit = exit_kind(status.unwrap_or_default(), killed, is_crash);
        self.maps.collect(true);
        let duration = start.elapsed();
        self.spent.add(duration, None);
        Ok(RunEnd { exit, duration })
    }

    /// Waits for the process; None if it exceeds the timeout.
    fn wait(&mut self, process: &mut Process, start: Instant) -> Result<Option<i32>, TargetError> {
        let (limit, mut delay) = (self.settings.timeout, Delay::new(&self.settings));
        loop {
            let elapsed = start.elapsed();
            let left = limit.saturating_sub(elapsed);
            let slice = if left.is_zero() { SLICE } else { left.min(SLICE) };
            if !delay.allows(process.pid(), elapsed, limit) {
                return Ok(process.try_wait());
            }
            if let Some(status) = process.wait_for(slice) {
                return Ok(Some(status));
            }
            if self.setup.leave.is_due() {
                return Err(TargetError::Interrupted);
            }
        }
    }

    fn observation(&self, outcome: RunEnd) -> Observation<'_> {
        let RunEnd { exit, duration } = outcome;
        let (edges, dsf) = (self.maps.edges(), self.maps.dsf());
        Observation { index: 0, exit, duration, edges, dsf, comparisons: Default::default() }
    }
}

impl Executor for Direct {
    fn info(&self) -> &dyn TargetInfo {
        self
    }

    fn settings(&self) -> &RunSettings {
        &self.settings
    }

    fn settings_mut(&mut self) -> &mut RunSettings {
        &mut self.settings
    }

    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        let outcome = self.execute(Feed::Input(input))?;
        Ok(self.observation(outcome))
    }

    fn reads_input(&mut self, input: &[u8]) -> Result<Option<bool>, RunError> {
        self.delivery.watch(true);
        let run = self.execute(Feed::Input(input));
        let was_read = self.delivery.was_read();
        self.delivery.watch(false);
        // A run that was ended early may not have reached its input.
        let is_whole = run?.exit == ExitKind::Ok;
        Ok(was_read.filter(|was_read| *was_read || is_whole))
    }

    fn observe_sent(
        &mut self,
        late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, RunError> {
        let outcome = self.execute(Feed::Sent { late, send })?;
        Ok(self.observation(outcome))
    }

    fn stop_on(&mut self, request: Option<StopRequest>) {
        self.setup.leave = Leave::from(request);
    }
}

impl TargetInfo for Direct {
    fn first_session(&self, input: &[u8], file: &Path) -> Option<FirstSession> {
        net::first_session(&self.setup.options, input, file, self.settings.timeout)
    }

    fn awaited_socket(&self, input: &[u8], file: &Path) -> Option<String> {
        blocked::awaited_socket(&self.setup, self.settings.timeout, input, file)
    }

    fn map_size(&self) -> usize {
        self.maps.edges().len()
    }

    fn is_harness(&self) -> bool {
        self.setup.traits.is_harness
    }

    fn words(&self) -> (Vec<Word>, Vec<PathBuf>) {
        words::read(self.setup.program(), None)
    }

    fn domains(&self) -> &[Domain] {
        &[]
    }

    fn target_mode(&self) -> String {
        if self.setup.options.non_instrumented { "non_instrumented" } else { "no_fsrv" }.into()
    }

    fn run_mode(&self) -> RunMode {
        RunMode::Exec
    }

    fn execs(&self) -> u64 {
        self.execs
    }

    fn spent(&self) -> Spent {
        self.spent
    }

    fn is_stopping(&self) -> bool {
        self.setup.leave.is_asked()
    }
}
