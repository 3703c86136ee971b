//! Distributes commands from outside to the workers, and joins their answers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::control::{Answer, Command, Order, Setting};
use ffuzz_config::options::Schedule;
use ffuzz_event::{Event, Injected, Reply};
use ffuzz_mutate::dictionary::Token;

/// Maximum number of tokens repeated to a restarted worker; manual dictionaries are shorter.
const MOST_TOKENS: usize = 4096;
/// Number of commands for whose answers no client waits.
pub(super) const NOBODY: u64 = 0;
/// Number of the pause for Ctrl-Z, whose answers the fleet itself waits for.
pub(super) const SUSPENSION: u64 = u64::MAX;

/// Settings for every worker, including those started later.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) paused: bool,
    timeout: Option<Duration>,
    schedule: Option<Schedule>,
    tokens: Vec<Token>,
}

impl Standing {
    fn note(&mut self, command: &Command) {
        match command {
            Command::Pause => self.paused = true,
            Command::Resume => self.paused = false,
            Command::Set(Setting { timeout, schedule, token }) => {
                self.timeout = timeout.or(self.timeout);
                self.schedule = schedule.or(self.schedule);
                let room = self.tokens.len() < MOST_TOKENS;
                self.tokens.extend(token.clone().filter(|_| room));
            }
            Command::Inject(_)
            | Command::Stats
            | Command::Blockers
            | Command::Stop
            | Command::Prefer(_)
            | Command::Ask(_) => {}
        }
    }

    /// Commands for a worker that is being started.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let set = |timeout, schedule, token| Command::Set(Setting { timeout, schedule, token });
        if self.timeout.is_some() {
            commands.push(set(self.timeout, None, None));
        }
        // A separate command, because a main may refuse it.
        if self.schedule.is_some() {
            commands.push(set(None, self.schedule, None));
        }
        commands.extend(self.tokens.iter().map(|token| set(None, None, Some(token.clone()))));
        if self.paused {
            commands.push(Command::Pause);
        }
        commands.iter().map(|command| command.to_line(NOBODY)).collect()
    }
}

/// A command that workers are processing.
#[derive(Debug)]
struct OpenCommand {
    order: Order,
    /// Workers that have not answered yet.
    workers: Vec<usize>,
    /// The best answer so far.
    reply: Option<Reply>,
}

/// Commands that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct PendingCommands {
    pub(super) standing: Standing,
    /// Inputs that arrived while no worker ran; the first one that starts gets them.
    waiting: VecDeque<Order>,
    open: BTreeMap<u64, OpenCommand>,
    /// Number of commands so far.
    count: u64,
    injected: Injected,
}

/// Next step for an order.
#[derive(Debug)]
pub(super) enum OrderShare {
    /// Send this line to these workers.
    Line(String, Vec<usize>),
    Answer(Event),
    /// Give the order to a worker that starts later.
    Later,
}

impl PendingCommands {
    /// Distributes a command; `running` are the workers that can receive it, the main first.
    pub(super) fn divide(&mut self, order: Order, running: Vec<usize>) -> OrderShare {
        let command = match &order.command {
            Ok(command) => command,
            Err(error) => return OrderShare::Answer(order.answer(Err(error.clone()))),
        };
        self.standing.note(command);
        if order.is_input() {
            self.injected.received += 1;
            let Some(first) = running.first() else {
                self.waiting.push_back(order);
                return OrderShare::Later;
            };
            return OrderShare::Line(self.give(order, vec![*first]), vec![*first]);
        }
        if running.is_empty() && *command == Command::Blockers {
            return OrderShare::Answer(order.answer(Err("no worker is running".into())));
        }
        if running.is_empty() {
            // Workers get it at their start.
            return OrderShare::Answer(order.answer(Ok(Answer::Done)));
        }
        // The main logs its seeds' comparisons, and imports the others' seeds.
        let asked = if *command == Command::Blockers { vec![running[0]] } else { running };
        OrderShare::Line(self.give(order, asked.clone()), asked)
    }

    /// The line for these workers; their answers are awaited.
    fn give(&mut self, order: Order, workers: Vec<usize>) -> String {
        self.count += 1;
        self.injected.forwarded += u64::from(order.is_input());
        let line = order
            .command
            .as_ref()
            .map_or_else(|_| String::new(), |command| command.to_line(self.count));
        self.open.insert(self.count, OpenCommand { order, workers, reply: None });
        line
    }

    /// Commands for a worker at its start, including queued inputs.
    pub(super) fn for_start(&mut self, worker: usize) -> Vec<String> {
        let mut lines = self.standing.lines();
        let waiting = std::mem::take(&mut self.waiting);
        lines.extend(waiting.into_iter().map(|order| self.give(order, vec![worker])));
        lines
    }

    /// Answers to all open commands, when no worker will run any more.
    pub(super) fn answer_remaining(&mut self) -> Vec<Event> {
        let waiting = std::mem::take(&mut self.waiting);
        let open = std::mem::take(&mut self.open);
        let left: Vec<Order> =
            waiting.into_iter().chain(open.into_values().map(|open| open.order)).collect();
        self.injected.answered += left.iter().filter(|order| order.is_input()).count() as u64;
        let end = || Err("the campaign has ended".into());
        left.iter().map(|order| order.answer(end())).collect()
    }

    #[must_use]
    pub(super) fn injected(&self) -> Injected {
        self.injected
    }

    /// Handles a worker's answer; the last one yields the answer to the client.
    pub(super) fn answered(&mut self, worker: usize, reply: Reply) -> Option<Event> {
        let number = reply.id?;
        let open = self.open.get_mut(&number)?;
        open.workers.retain(|other| *other != worker);
        if reply.ok || open.reply.is_none() {
            open.reply = Some(reply);
        }
        self.closed(number)
    }

    /// Answers to commands that a dead worker has left open.
    pub(super) fn ended(&mut self, worker: usize) -> Vec<Event> {
        let left = self.open.iter_mut().filter(|(_, open)| open.workers.contains(&worker));
        let numbers: Vec<u64> = left
            .map(|(number, open)| {
                open.workers.retain(|other| *other != worker);
                *number
            })
            .collect();
        numbers.into_iter().filter_map(|number| self.closed(number)).collect()
    }

    fn closed(&mut self, number: u64) -> Option<Event> {
        if !self.open.get(&number)?.workers.is_empty() {
            return None;
        }
        let OpenCommand { order, reply, .. } = self.open.remove(&number)?;
        if order.is_input() {
            self.injected.answered += 1;
            self.injected.run += u64::from(reply.as_ref().is_some_and(|reply| reply.ok));
        }
        Some(match reply {
            Some(reply) => Event::Reply(Reply { client: order.client, id: order.id, ..reply }),
            None => order.answer(Err("the worker ended before it had an answer".into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(id: u64, command: Command) -> Order {
        Order { client: 5, id: Some(id), command: Ok(command) }
    }

    fn reply(share: &OrderShare, ok: bool) -> Reply {
        let OrderShare::Line(line, _) = share else { panic!("{share:?}") };
        Reply { id: Command::parse(line.as_bytes()).0, ok, ..Reply::default() }
    }

    fn shown(event: Option<Event>) -> Option<(u64, Option<u64>, bool)> {
        event.map(|event| match event {
            Event::Reply(reply) => (reply.client, reply.id, reply.ok),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn all_get_it_and_the_last_answer_counts() {
        let mut orders = PendingCommands::default();
        let schedule = Some(Schedule::Rare);
        let set = Command::Set(Setting { schedule, ..Setting::default() });
        let share = orders.divide(order(9, set), vec![0, 1]);
        assert!(matches!(&share, OrderShare::Line(_, workers) if *workers == [0, 1]));
        assert_eq!(shown(orders.answered(1, reply(&share, true))), None);
        // The main refuses it; one accepting worker is enough.
        let last = orders.answered(0, reply(&share, false));
        assert_eq!(shown(last), Some((5, Some(9), true)));
        assert_eq!(shown(orders.answered(0, reply(&share, true))), None);
    }

    #[test]
    fn an_input_is_for_one_and_is_not_lost_without_a_word() {
        let mut orders = PendingCommands::default();
        let inject = || order(3, Command::Inject(vec![1]));
        let share = orders.divide(inject(), vec![1, 2]);
        assert!(matches!(&share, OrderShare::Line(_, workers) if *workers == [1]));
        assert!(orders.ended(2).is_empty());
        let left = orders.ended(1).pop();
        assert_eq!(shown(left), Some((5, Some(3), false)));
        assert_eq!(counts(&orders), [1, 1, 0, 1]);
    }

    fn counts(orders: &PendingCommands) -> [u64; 4] {
        let Injected { received, forwarded, run, answered } = orders.injected();
        [received, forwarded, run, answered]
    }

    #[test]
    fn inputs_wait_for_a_worker_and_are_answered_at_the_end_at_last() {
        let mut orders = PendingCommands::default();
        for id in 1..=3 {
            let inject = order(id, Command::Inject(vec![u8::try_from(id).unwrap()]));
            assert!(matches!(orders.divide(inject, vec![]), OrderShare::Later));
        }
        assert_eq!(counts(&orders), [3, 0, 0, 0]);
        let lines = orders.for_start(4);
        let read = |line: &String| Command::parse(line.as_bytes()).1;
        let inputs: Vec<_> = [1, 2, 3].map(|byte| Ok(Command::Inject(vec![byte]))).into();
        assert_eq!(lines.iter().map(read).collect::<Vec<_>>(), inputs);
        assert!(orders.for_start(5).is_empty());
        let id = Command::parse(lines[0].as_bytes()).0;
        let done = orders.answered(4, Reply { id, ok: true, ..Reply::default() });
        assert_eq!(shown(done), Some((5, Some(1), true)));
        let gone = orders.ended(4);
        assert_eq!(gone.len(), 2);
        assert!(matches!(
            orders.divide(order(4, Command::Inject(vec![4])), vec![]),
            OrderShare::Later
        ));
        let last = orders.answer_remaining().pop();
        assert_eq!(shown(last), Some((5, Some(4), false)));
        assert_eq!(counts(&orders), [4, 3, 1, 4]);
    }

    #[test]
    fn one_that_is_started_later_gets_what_was_set() {
        let mut orders = PendingCommands::default();
        let set = |timeout, token: &[u8]| Setting {
            timeout: Some(Duration::from_millis(timeout)),
            token: Token::new(token),
            schedule: None,
        };
        for command in [
            Command::Set(set(50, b"a")),
            Command::Pause,
            Command::Resume,
            Command::Set(set(70, b"b")),
            Command::Pause,
        ] {
            let share = orders.divide(order(1, command), vec![]);
            assert!(matches!(share, OrderShare::Answer(Event::Reply(reply)) if reply.ok));
        }
        let commands: Vec<_> = orders.standing.lines();
        let commands: Vec<_> =
            commands.iter().map(|line| Command::parse(line.as_bytes())).collect();
        let only = |setting| (Some(NOBODY), Ok(Command::Set(setting)));
        let token = |text: &[u8]| Setting { token: Token::new(text), ..Setting::default() };
        assert_eq!(
            commands,
            [
                only(Setting { token: None, ..set(70, b"") }),
                only(token(b"a")),
                only(token(b"b")),
                (Some(NOBODY), Ok(Command::Pause)),
            ]
        );
        let answer = Reply { id: Some(NOBODY), ok: true, ..Reply::default() };
        assert!(orders.answered(0, answer).is_none());
    }
}
