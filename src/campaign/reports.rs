//! Reports of a campaign: its events, the log of FuzzFactory, and the warnings of target, mutators and triage.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use super::blocked::Blocked;
use super::cuts::Cuts;
use super::statistics::{Statistics, snapshot};
use crate::config::options::{Options, Wanted};
use crate::crashes::triage::Follower;
use crate::disk::output::OutputDir;
use crate::disk::output::fflog::FuzzFactoryLog;
use crate::engine::corpus::SeedId;
use crate::engine::domain::{KeyGain, KeyNames};
use crate::engine::fuzzer::Fuzzer;
use crate::event::{CampaignSetup, DomainGain, Event, EventBus, MOST_GAINS, Snapshot, StopReason};
use crate::mutators::Mutators;

/// Interval between two snapshots: at most five per second, because users read no faster.
pub(super) const TICK: Duration = Duration::from_millis(200);
/// Snapshots take at most 1/N of the time, so they are rarer with a large corpus.
const TICK_SHARE: u32 = 100;

/// Everything that is reported to users and programs.
pub(super) struct Reports {
    pub(super) bus: EventBus,
    pub(super) log: FuzzFactoryLog,
    /// Names of keys, read from the target's files on first use.
    names: OnceCell<KeyNames>,
    pub(super) blocked: Blocked,
    cuts: Cuts,
    /// Triage of crashes; None if it is switched off.
    pub(super) triage: Option<Follower>,
    /// Constant facts: target, worker and options.
    setup: CampaignSetup,
    wanted: Wanted,
    last_tick: Instant,
    tick_pause: Duration,
}

impl Reports {
    pub(super) fn new(options: &Options, bus: EventBus, output: &OutputDir) -> Self {
        let names = &options.output;
        Self {
            bus,
            log: FuzzFactoryLog::new(output.instance_dir(), output.resumed()),
            names: OnceCell::new(),
            blocked: Blocked::default(),
            cuts: Cuts::default(),
            triage: None,
            setup: CampaignSetup {
                pid: std::process::id(),
                banner: options.banner.clone(),
                instance: names.instance.clone(),
                command_line: join_words(&names.command_line),
                ..CampaignSetup::default()
            },
            wanted: options.seeds.wanted,
            last_tick: Instant::now(),
            tick_pause: TICK,
        }
    }

    pub(super) fn warn(&mut self, message: String) {
        self.bus.send(&Event::Warning { message });
    }

    pub(super) fn note(&mut self, message: String) {
        self.bus.send(&Event::Notice { message });
    }

    /// Names of the target's keys.
    fn names(&self, fuzzer: &Fuzzer<Mutators>) -> &KeyNames {
        let read = || KeyNames::new(fuzzer.target().domains(), fuzzer.target().sites());
        self.names.get_or_init(read)
    }

    /// Reports notes about the target, the mutators and the triage.
    pub(super) fn report_notes(&mut self, fuzzer: &mut Fuzzer<Mutators>) {
        if let Some(reason) = fuzzer.take_restart() {
            self.bus.send(&Event::TargetRestarted { reason });
        }
        let mut notes = fuzzer.mutators.take_messages();
        notes.extend(fuzzer.take_notes());
        for note in notes {
            self.warn(note);
        }
        for note in self.triage.iter_mut().flat_map(Follower::take_notes).collect::<Vec<_>>() {
            self.warn(note);
        }
    }

    /// Returns true if the interval since the last tick has passed.
    pub(super) fn is_tick_due(&self) -> bool {
        self.last_tick.elapsed() >= self.tick_pause
    }

    pub(super) fn tick(&mut self, fuzzer: &mut Fuzzer<Mutators>, statistics: &mut Statistics) {
        let start = Instant::now();
        if let Err(error) = self.log.tick() {
            self.warn(error.to_string());
        }
        self.report_notes(fuzzer);
        let (runs, timeouts) = (fuzzer.target().execs(), statistics.timeouts_here);
        if let Some(warning) = self.cuts.warning(runs, timeouts, fuzzer.timeout()) {
            self.warn(warning);
        }
        statistics.look_at_load(fuzzer);
        let snapshot = self.snapshot(fuzzer, statistics);
        self.bus.send(&Event::Tick(Box::new(snapshot)));
        self.last_tick = Instant::now();
        self.tick_pause = TICK.max((self.last_tick - start) * TICK_SHARE);
    }

    /// Collects the current statistics in the groups that `statistics/snapshot.rs` fills.
    pub(super) fn snapshot(
        &mut self,
        fuzzer: &Fuzzer<Mutators>,
        statistics: &mut Statistics,
    ) -> Snapshot {
        let mut snapshot = Snapshot {
            times: statistics.times(),
            cycles: statistics.cycles(fuzzer),
            control: statistics.control.clone(),
            runs: statistics.runs(fuzzer, self.wanted),
            resources: statistics.resources(fuzzer),
            corpus: statistics.corpus(fuzzer),
            coverage: statistics.coverage(fuzzer),
            finds: statistics.finds(fuzzer, self.triage.as_mut()),
            turn: statistics.turn(fuzzer),
            search: snapshot::search(fuzzer, statistics.started.elapsed()),
            setup: CampaignSetup {
                guided_by_domains: fuzzer.guided(),
                schedule: fuzzer.scheduler.schedule().name().into(),
                ..self.setup.clone()
            },
            domains: statistics.domains(fuzzer, |key| self.place(fuzzer, key)),
            mutators: fuzzer.mutators.status(statistics.started.elapsed()),
            workers: Vec::new(),
            blockers: match self.bus.shows_blockers() {
                true => self.blocked.shown(fuzzer),
                false => Vec::new(),
            },
        };
        statistics.add_earlier(&mut snapshot);
        snapshot
    }

    /// Source position of a key; empty if unknown.
    pub(super) fn place(&self, fuzzer: &Fuzzer<Mutators>, key: u32) -> String {
        self.names(fuzzer).place(key).unwrap_or_default()
    }

    /// Writes the rest of the log, and waits for the triage as long as the reason for the end allows.
    pub(super) fn finish(&mut self, fuzzer: &mut Fuzzer<Mutators>, reason: StopReason) {
        self.report_notes(fuzzer);
        if let Err(error) = self.log.flush() {
            self.warn(error.to_string());
        }
        self.triage.iter_mut().for_each(|triage| triage.finish(reason.patience()));
        self.report_notes(fuzzer);
    }

    /// Gains of a waypoint, by domain.
    pub(super) fn domain_gains(
        &self,
        fuzzer: &Fuzzer<Mutators>,
        gains: &[KeyGain],
    ) -> Vec<DomainGain> {
        let domains = fuzzer.judge().aggregates().domains().iter().enumerate();
        let gained = domains.filter_map(|(index, domain)| {
            let of_domain = gains.iter().filter(|gain| domain.holds(gain.key));
            let keys = of_domain.map(|gain| (gain.key, gain.after));
            let (key, value) = domain.reducer.most_remarkable(keys.clone())?;
            Some(DomainGain {
                domain: domain.label(index),
                key,
                value,
                place: self.place(fuzzer, key),
                keys: u32::try_from(keys.count()).unwrap_or(u32::MAX),
            })
        });
        gained.take(MOST_GAINS).collect()
    }

    /// Logs the gains of a run. A key's name precedes its first update.
    pub(super) fn log_gains(&mut self, fuzzer: &Fuzzer<Mutators>, gains: &[KeyGain]) {
        for gain in gains {
            if self.log.meets(gain.key) {
                let name = self.names(fuzzer).line(gain.key);
                self.log.name(gain.key, &name);
            }
            self.log.update(gain.key, gain.value, gain.after, gain.before);
        }
    }

    /// Logs a new seed, whose file is in `output`, with its gains.
    pub(super) fn log_seed(
        &mut self,
        fuzzer: &Fuzzer<Mutators>,
        output: &OutputDir,
        id: SeedId,
        gains: &[KeyGain],
    ) {
        self.log_gains(fuzzer, gains);
        self.log.adding(&output.seed_path(&fuzzer.corpus[id].name));
        if !fuzzer.corpus[id].disabled {
            gains.iter().for_each(|gain| self.log.top_rated(gain.key));
        }
    }
}

fn join_words(words: &[std::ffi::OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
