//! Commands from outside, divided among the workers, and their answers, put together.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::options::Schedule;
use crate::control::{Answer, Command, Order, Setting};
use crate::event::{Event, Reply};
use crate::mutate::dictionary::Token;

/// Tokens that a worker is told again when it is started; a dictionary by hand is shorter.
const MOST_TOKENS: usize = 4096;
/// The number of commands whose answer nobody waits for.
const NOBODY: u64 = 0;

/// What every worker has to know, also one that is started later.
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
            Command::Inject(_) | Command::Stats | Command::Stop => {}
        }
    }

    /// For a worker that begins.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let set = |timeout, schedule, token| Command::Set(Setting { timeout, schedule, token });
        if self.timeout.is_some() {
            commands.push(set(self.timeout, None, None));
        }
        // On its own: a main may refuse it.
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

/// A command that workers are at.
#[derive(Debug)]
struct Open {
    order: Order,
    /// Who has not answered yet.
    workers: Vec<usize>,
    /// The best answer so far.
    reply: Option<Reply>,
}

/// Commands that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) standing: Standing,
    open: BTreeMap<u64, Open>,
    /// Numbers given so far.
    count: u64,
}

/// What is to be done with an order.
#[derive(Debug)]
pub(super) enum Share {
    /// This line goes to these workers.
    Line(String, Vec<usize>),
    Answer(Event),
}

impl Orders {
    /// Divides an order; `running` are the workers that can be told, the main first.
    pub(super) fn divide(&mut self, order: Order, running: Vec<usize>) -> Share {
        let command = match &order.command {
            Ok(command) => command,
            Err(error) => return Share::Answer(order.answer(Err(error.clone()))),
        };
        self.standing.note(command);
        let workers: Vec<usize> = match command {
            Command::Inject(_) => running.into_iter().take(1).collect(),
            _ => running,
        };
        if workers.is_empty() {
            // They are told at their start; an input is not.
            let missed = matches!(command, Command::Inject(_));
            let answer = if missed { Err("no worker is running".into()) } else { Ok(Answer::Done) };
            return Share::Answer(order.answer(answer));
        }
        self.count += 1;
        let line = command.to_line(self.count);
        self.open.insert(self.count, Open { order, workers: workers.clone(), reply: None });
        Share::Line(line, workers)
    }

    /// What a worker answers: the answer to the client, if it is the last.
    pub(super) fn answered(&mut self, worker: usize, reply: Reply) -> Option<Event> {
        let number = reply.id?;
        let open = self.open.get_mut(&number)?;
        open.workers.retain(|other| *other != worker);
        if reply.ok || open.reply.is_none() {
            open.reply = Some(reply);
        }
        self.closed(number)
    }

    /// The answers to what a worker has left behind.
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
        let Open { order, reply, .. } = self.open.remove(&number)?;
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

    fn reply(share: &Share, ok: bool) -> Reply {
        let Share::Line(line, _) = share else { panic!("{share:?}") };
        Reply { id: Command::parse(line.as_bytes()).0, ok, ..Reply::default() }
    }

    fn shown(event: Option<Event>) -> Option<(u64, Option<u64>, bool)> {
        event.map(|event| match event {
            Event::Reply(reply) => (reply.client, reply.id, reply.ok),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn all_are_told_and_the_last_answer_counts() {
        let mut orders = Orders::default();
        let schedule = Some(Schedule::Rare);
        let set = Command::Set(Setting { schedule, ..Setting::default() });
        let share = orders.divide(order(9, set), vec![0, 1]);
        assert!(matches!(&share, Share::Line(_, workers) if *workers == [0, 1]));
        assert_eq!(shown(orders.answered(1, reply(&share, true))), None);
        // The main refuses it; one that takes it is enough.
        let last = orders.answered(0, reply(&share, false));
        assert_eq!(shown(last), Some((5, Some(9), true)));
        assert_eq!(shown(orders.answered(0, reply(&share, true))), None);
    }

    #[test]
    fn an_input_is_for_one_and_is_not_lost_without_a_word() {
        let mut orders = Orders::default();
        let inject = || order(3, Command::Inject(vec![1]));
        let share = orders.divide(inject(), vec![1, 2]);
        assert!(matches!(&share, Share::Line(_, workers) if *workers == [1]));
        assert!(orders.ended(2).is_empty());
        let left = orders.ended(1).pop();
        assert_eq!(shown(left), Some((5, Some(3), false)));
        let nobody = orders.divide(inject(), vec![]);
        assert!(matches!(nobody, Share::Answer(Event::Reply(reply)) if !reply.ok));
    }

    #[test]
    fn one_that_is_started_later_is_told_what_was_set() {
        let mut orders = Orders::default();
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
            assert!(matches!(share, Share::Answer(Event::Reply(reply)) if reply.ok));
        }
        let told: Vec<_> = orders.standing.lines();
        let told: Vec<_> = told.iter().map(|line| Command::parse(line.as_bytes())).collect();
        let only = |setting| (Some(NOBODY), Ok(Command::Set(setting)));
        let token = |text: &[u8]| Setting { token: Token::new(text), ..Setting::default() };
        assert_eq!(
            told,
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
