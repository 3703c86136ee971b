//! What clients of the control socket want, done between two batches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::{Campaign, CampaignError};
use crate::config::options::TimeoutSpec;
use crate::engine::corpus::Origin;
use crate::engine::fuzzer::door::DoorError;
use crate::event::{Event, EventBus, Injected, Outcome};
use crate::fleet::control::{Answer, Command, Control, Incoming, Order, Setting};
use crate::sys::stop::Stop;

/// Orders that the threads of clients have delivered and that wait.
const INBOX: usize = 256;
/// Longest time for orders before the next batch has its turn.
const SLICE: Duration = Duration::from_millis(50);
/// While paused, between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);
/// Orders that wait, and what they have changed.
#[derive(Debug)]
pub(super) struct Orders {
    inbox: Receiver<Incoming>,
    /// Taken out of the inbox.
    waiting: VecDeque<Incoming>,
    /// Until the starting seeds have been run.
    inputs: VecDeque<Order>,
    pub(super) injected: Injected,
    pub(super) paused: bool,
}

impl Orders {
    /// Begins to listen. A wish to stop is heard at once, whatever the campaign is doing.
    pub(super) fn new(
        control: Control,
        stop: &Stop,
        bus: &mut EventBus,
    ) -> Result<Self, CampaignError> {
        let (sender, inbox) = sync_channel(INBOX);
        let stop = stop.clone();
        let deliver = move |incoming: Incoming| {
            if incoming.is_stop() {
                stop.ask();
            }
            sender.send(incoming).is_ok()
        };
        let sink = control.serve(Arc::new(deliver)).map_err(CampaignError::Control)?;
        sink.into_iter().for_each(|sink| bus.add(sink));
        Ok(Self::from(inbox))
    }

    /// Whether an order waits. Costs next to nothing if none does.
    fn wait(&mut self) -> bool {
        self.waiting.extend(self.inbox.try_recv());
        !self.waiting.is_empty()
    }

    fn next(&mut self, fuzzing: bool) -> Option<Incoming> {
        let input = if fuzzing { self.inputs.pop_front() } else { None };
        if let Some(input) = input {
            return Some(Incoming::Order(input));
        }
        let next = self.waiting.pop_front().or_else(|| self.inbox.try_recv().ok())?;
        self.count(&next);
        Some(next)
    }

    /// The next while there is nothing else to do.
    fn wait_for_next(&mut self) -> Result<Incoming, RecvTimeoutError> {
        let Some(next) = self.next(true) else {
            let next = self.inbox.recv_timeout(LOOK)?;
            self.count(&next);
            return Ok(next);
        };
        Ok(next)
    }

    fn count(&mut self, incoming: &Incoming) {
        self.injected.received += u64::from(incoming.is_input());
    }
}

impl From<Receiver<Incoming>> for Orders {
    fn from(inbox: Receiver<Incoming>) -> Self {
        let (waiting, inputs) = (VecDeque::new(), VecDeque::new());
        Self { inbox, waiting, inputs, injected: Injected::default(), paused: false }
    }
}

impl Campaign {
    /// Carries out the orders of clients, and pauses as long as one of them, or Ctrl-Z, says so.
    pub(super) fn obey(&mut self) -> Result<(), CampaignError> {
        let suspended = self.stop.suspend();
        if !suspended.is_zero() {
            self.statistics.leave_out(suspended);
            self.arm_limit();
        }
        let fuzzing = self.statistics.is_fuzzing();
        let Some(orders) = &mut self.orders else { return Ok(()) };
        // A pause that was ordered before the first turn begins with it.
        let is_due = fuzzing && (orders.paused || !orders.inputs.is_empty());
        if !orders.wait() && !is_due {
            return Ok(());
        }
        let start = Instant::now();
        while start.elapsed() < SLICE
            && let Some(next) = self.orders.as_mut().and_then(|orders| orders.next(fuzzing))
        {
            self.take(next)?;
        }
        if fuzzing { self.rest() } else { Ok(()) }
    }

    /// As long as the campaign is paused. Of its limits, that time counts for `-V` alone.
    fn rest(&mut self) -> Result<(), CampaignError> {
        while self.orders.as_ref().is_some_and(|orders| orders.paused)
            && self.stop_reason().is_none()
        {
            let start = Instant::now();
            let suspended = self.stop.suspend();
            self.tick_if_due();
            let Some(orders) = &mut self.orders else { break };
            let next = orders.wait_for_next();
            // Nobody is left who could say that it is to go on.
            orders.paused &= !matches!(next, Err(RecvTimeoutError::Disconnected));
            // Before the time is reported: it never goes back.
            let time = start.elapsed();
            self.statistics.leave_out(time);
            self.statistics.paused += time.saturating_sub(suspended);
            self.arm_limit();
            if let Ok(next) = next {
                self.take(next)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, incoming: Incoming) -> Result<(), CampaignError> {
        match incoming {
            Incoming::Order(order) => self.carry_out(order),
            Incoming::Refused(message) => {
                self.bus.send(&Event::Warning { message });
                Ok(())
            }
        }
    }

    fn carry_out(&mut self, order: Order) -> Result<(), CampaignError> {
        let answer = match &order.command {
            Err(error) => Err(error.clone()),
            Ok(Command::Inject(_)) if !self.statistics.is_fuzzing() => {
                self.orders.iter_mut().for_each(|orders| orders.inputs.push_back(order.clone()));
                return Ok(());
            }
            Ok(Command::Inject(data)) => self.inject(data.clone())?.map(Answer::Judged),
            Ok(Command::Pause) => Ok(self.pause(true)),
            Ok(Command::Resume) => Ok(self.pause(false)),
            Ok(Command::Stats) => Ok(Answer::Stats(Box::new(self.snapshot()))),
            Ok(Command::Set(setting)) => self.set(setting).map(|()| Answer::Done),
            // It was asked for when it came.
            Ok(Command::Stop) => Ok(Answer::Done),
        };
        self.answer(&order, answer);
        Ok(())
    }

    fn answer(&mut self, order: &Order, answer: Result<Answer, String>) {
        let input = u64::from(order.is_input());
        self.orders.iter_mut().for_each(|orders| orders.injected.answered += input);
        self.bus.send(&order.answer(answer));
    }

    fn pause(&mut self, paused: bool) -> Answer {
        self.orders.iter_mut().for_each(|orders| orders.paused = paused);
        Answer::Done
    }

    fn inject(&mut self, data: Vec<u8>) -> Result<Result<Outcome, String>, CampaignError> {
        let Some(orders) = &self.orders else { return Ok(Err("nobody listens".into())) };
        let number = u32::try_from(orders.injected.run).unwrap_or(u32::MAX);
        let (start, length) = (Instant::now(), data.len());
        let kept = match self.take_in(data, Origin::injected(number)) {
            Err(error) if error.is_interruption() => {
                return Ok(Err("the campaign has ended".into()));
            }
            kept => kept?,
        };
        self.statistics.sync += start.elapsed();
        let run = u64::from(kept.is_some());
        self.orders.iter_mut().for_each(|orders| orders.injected.run += run);
        let mutation = &self.options.mutation;
        let (min, max) = (mutation.min_len, mutation.max_len);
        Ok(kept.ok_or_else(|| format!("{length} bytes: this campaign takes {min} to {max}")))
    }

    fn set(&mut self, setting: &Setting) -> Result<(), String> {
        let Setting { timeout, schedule, token } = setting;
        if self.options.output.main_node && schedule.is_some_and(|s| !s.is_for_main()) {
            return Err("a main instance has one of the schedules explore and fast".into());
        }
        if let Some(timeout) = *timeout {
            self.options.target.timeout = TimeoutSpec::Fixed(timeout);
            self.fuzzer.admission.options.longest_timeout = None;
            self.fuzzer.set_timeout(timeout);
        }
        if let Some(schedule) = *schedule {
            self.options.schedule = schedule;
            self.fuzzer.scheduler.change_schedule(schedule);
        }
        self.fuzzer.dictionary.add_user(token.clone());
        Ok(())
    }

    /// Nothing is carried out any more: whoever still waits for an answer gets one.
    pub(super) fn dismiss_orders(&mut self) {
        while let Some(next) = self.orders.as_mut().and_then(|orders| orders.next(true)) {
            let Incoming::Order(order) = next else { continue };
            let answer = if order.is_stop() {
                Ok(Answer::Done)
            } else {
                Err("the campaign has ended".into())
            };
            self.answer(&order, answer);
        }
    }
}
