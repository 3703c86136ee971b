//! Carries out orders from clients of the control socket, between two batches.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::CampaignError;
use super::outside::Outside;
use super::statistics::Statistics;
use crate::config::options::{Options, TimeoutSpec};
use crate::engine::corpus::{SeedId, names};
use crate::engine::fuzzer::Fuzzer;
use crate::event::EventBus;
use crate::fleet::control::{
    Answer, Command, CommandSource, Deliver, Incoming, Order, Preference, Setting,
};
use crate::mutators::Mutators;
use crate::sys::stop::Stop;

/// Capacity of the queue from the clients' threads.
const INBOX: usize = 256;
/// Maximum time for orders before the next batch.
pub(super) const SLICE: Duration = Duration::from_millis(50);
/// Maximum number of comparisons in one answer.
const MOST_BLOCKERS: usize = 100;
/// Interval between two checks of signals during a pause.
const LOOK: Duration = Duration::from_millis(50);

/// Pending orders. [`Statistics::control`] counts their effects.
#[derive(Debug)]
pub(super) struct PendingOrders {
    inbox: Receiver<Incoming>,
    /// Orders taken out of the inbox.
    waiting: VecDeque<Incoming>,
    /// Inputs to run once the starting seeds have been run.
    inputs: VecDeque<Order>,
    /// End of the current preference of seeds.
    preferred_until: Option<Instant>,
}

impl PendingOrders {
    /// Starts listening, if there is a source of orders. A request to stop takes effect immediately, whatever the
    /// campaign is doing.
    pub(super) fn new(
        control: Vec<CommandSource>,
        stop: &Stop,
        bus: &mut EventBus,
    ) -> Result<Option<Self>, CampaignError> {
        if control.is_empty() {
            return Ok(None);
        }
        let (sender, inbox) = sync_channel(INBOX);
        let stop = stop.clone();
        let deliver: Deliver = Arc::new(move |incoming: Incoming| {
            if incoming.is_stop() {
                stop.ask();
            }
            sender.send(incoming).is_ok()
        });
        for place in control {
            let sink = place.serve(Arc::clone(&deliver)).map_err(CampaignError::Control)?;
            sink.into_iter().for_each(|sink| bus.add(sink));
        }
        Ok(Some(Self::from(inbox)))
    }

    /// Returns true if an order can be handled now. Cheap if there is none.
    pub(super) fn are_due(&mut self, statistics: &Statistics) -> bool {
        self.waiting.extend(self.inbox.try_recv());
        // A pause ordered before the first turn begins with that turn.
        let since_start = statistics.control.paused || !self.inputs.is_empty();
        if self.preferred_until.is_some_and(|until| Instant::now() >= until) {
            return true;
        }
        !self.waiting.is_empty() || (statistics.is_fuzzing() && since_start)
    }

    /// The next message that can be handled now.
    pub(super) fn next(&mut self, statistics: &mut Statistics) -> Option<Incoming> {
        let input = if statistics.is_fuzzing() { self.inputs.pop_front() } else { None };
        input.map(Incoming::Order).or_else(|| self.next_new(statistics))
    }

    fn next_new(&mut self, statistics: &mut Statistics) -> Option<Incoming> {
        let next = self.waiting.pop_front().or_else(|| self.inbox.try_recv().ok())?;
        count(&next, statistics);
        Some(next)
    }

    /// Ends a preference whose time has passed.
    pub(super) fn end_preference(&mut self, fuzzer: &mut Fuzzer<Mutators>) {
        if self.preferred_until.is_some_and(|until| Instant::now() >= until) {
            self.preferred_until = None;
            fuzzer.scheduler.prefer(Vec::new());
        }
    }

    /// The next message, or None after a short wait; call it while the campaign is paused.
    pub(super) fn wait_for_next(&mut self, statistics: &mut Statistics) -> Option<Incoming> {
        if let Some(next) = self.next(statistics) {
            return Some(next);
        }
        match self.inbox.recv_timeout(LOOK) {
            Ok(next) => {
                count(&next, statistics);
                Some(next)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // No client is left that could resume the campaign.
                statistics.control.paused = false;
                None
            }
        }
    }

    /// Carries out an order and answers it. Returns an input that must be run now, unanswered.
    pub(super) fn carry_out(
        &mut self,
        incoming: Incoming,
        options: &mut Options,
        fuzzer: &mut Fuzzer<Mutators>,
        outside: &mut Outside,
    ) -> Option<Order> {
        let order = match incoming {
            Incoming::Order(order) => order,
            Incoming::Refused(message) => {
                outside.warn(message);
                return None;
            }
        };
        let result = match &order.command {
            Err(error) => Err(error.clone()),
            Ok(Command::Inject(_)) if outside.statistics.is_fuzzing() => return Some(order),
            Ok(Command::Inject(_)) => {
                self.inputs.push_back(order);
                return None;
            }
            Ok(command @ (Command::Pause | Command::Resume)) => {
                outside.statistics.control.paused = matches!(command, Command::Pause);
                Ok(Answer::Done)
            }
            Ok(Command::Blockers) if fuzzer.has_partial_log() && !fuzzer.knows_flow() => {
                Err("a log of AFL++ (-c) does not show what comparisons come to".into())
            }
            Ok(Command::Blockers) => {
                let Outside { reports, output, .. } = outside;
                Ok(Answer::Blockers(reports.blocked.list(fuzzer, output, MOST_BLOCKERS)))
            }
            Ok(Command::Stats) => Ok(Answer::Stats(Box::new(outside.snapshot(fuzzer)))),
            Ok(Command::Set(setting)) => set(setting, options, fuzzer).map(|()| Answer::Done),
            Ok(Command::Prefer(preference)) => self.prefer(preference, fuzzer, outside),
            Ok(Command::Ask(_)) => {
                Err("questions are answered on a socket: --control SOCKET, or ffuzz mcp OUT".into())
            }
            // The stop was requested when the order arrived.
            Ok(Command::Stop) => Ok(Answer::Done),
        };
        answer(&order, result, outside);
        None
    }

    fn prefer(
        &mut self,
        preference: &Preference,
        fuzzer: &mut Fuzzer<Mutators>,
        outside: &Outside,
    ) -> Result<Answer, String> {
        let Preference { inputs, time } = preference;
        let queue = outside.output.instance_dir().join("queue");
        let is_own = |path: &Path| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            folder.is_none_or(|folder| folder.canonicalize().ok() == queue.canonicalize().ok())
        };
        let seed = |path: &PathBuf| {
            let name = names::parse(&path.file_name()?.to_string_lossy())?;
            let id = SeedId(name.id);
            (is_own(path) && id < fuzzer.corpus.next_id()).then_some(id)
        };
        let seeds: Vec<SeedId> = inputs.iter().filter_map(seed).collect();
        if seeds.is_empty() && !inputs.is_empty() {
            return Err("none of these inputs is in the queue".into());
        }
        self.preferred_until = Some(Instant::now() + *time);
        fuzzer.scheduler.prefer(seeds);
        Ok(Answer::Done)
    }

    /// Answers all remaining orders, because none will be carried out.
    pub(super) fn answer_remaining(&mut self, outside: &mut Outside) {
        while let Some(next) = self
            .inputs
            .pop_front()
            .map(Incoming::Order)
            .or_else(|| self.next_new(&mut outside.statistics))
        {
            let Incoming::Order(order) = next else { continue };
            let result = if order.is_stop() {
                Ok(Answer::Done)
            } else {
                Err("the campaign has ended".into())
            };
            answer(&order, result, outside);
        }
    }
}

impl From<Receiver<Incoming>> for PendingOrders {
    fn from(inbox: Receiver<Incoming>) -> Self {
        Self { inbox, waiting: VecDeque::new(), inputs: VecDeque::new(), preferred_until: None }
    }
}

fn count(incoming: &Incoming, statistics: &mut Statistics) {
    statistics.control.injected.received += u64::from(incoming.is_input());
}

pub(super) fn answer(order: &Order, result: Result<Answer, String>, outside: &mut Outside) {
    outside.statistics.control.injected.answered += u64::from(order.is_input());
    outside.reports.bus.send(&order.answer(result));
}

fn set(
    setting: &Setting,
    options: &mut Options,
    fuzzer: &mut Fuzzer<Mutators>,
) -> Result<(), String> {
    let Setting { timeout, schedule, token } = setting;
    if options.output.main_node && schedule.is_some_and(|s| !s.is_for_main()) {
        return Err("a main instance has one of the schedules explore and fast".into());
    }
    if let Some(timeout) = *timeout {
        options.target.timeout = TimeoutSpec::Fixed(timeout);
        fuzzer.admission.options.longest_timeout = None;
        fuzzer.set_timeout(timeout);
        fuzzer.allow_for_load(false);
    }
    if let Some(schedule) = *schedule {
        fuzzer.scheduler.change_schedule(schedule);
    }
    fuzzer.dictionary.add_user(token.clone());
    Ok(())
}
