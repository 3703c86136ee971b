//! Events of a session, and their description for the user.

use std::fmt;

use ffuzz_config::net::{NetOptions, Protocol, Side};
use ffuzz_engine::executor::{ExitKind, FirstSession};
use ffuzz_mutate::messages;

/// An action of the target on its sockets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NetEvent {
    /// The target listens for clients; with datagrams, it is bound to a port.
    Listens {
        protocol: Protocol,
        port: u16,
        path: String,
    },
    Accepted {
        connection: u8,
    },
    Connects {
        protocol: Protocol,
        port: u16,
        path: String,
    },
    /// As a client, the target is connected to the fuzzer.
    Opened {
        connection: u8,
        port: u16,
    },
    /// The target received a message or a part of one.
    Taken {
        connection: u8,
        bytes: Vec<u8>,
    },
    /// Bytes sent by one call.
    Answer {
        connection: u8,
        bytes: Vec<u8>,
    },
    EndSeen {
        connection: u8,
    },
    Closed {
        connection: u8,
    },
    /// A call that the replaced network does not support.
    Refused {
        what: String,
    },
    /// The run ends because the target waits in this call for input that cannot come.
    RunEnds {
        call: String,
    },
    /// Two consecutive answers, in the form of the domain `answers`, with their key.
    Answers {
        key: u16,
        pair: String,
    },
}

/// The events of one run, in order.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub events: Vec<NetEvent>,
}

/// Name of a socket in messages.
fn place(protocol: Protocol, port: u16, path: &str) -> String {
    match protocol {
        Protocol::Tcp => format!("TCP port {port}"),
        Protocol::Udp => format!("UDP port {port}"),
        Protocol::Unix => format!("the socket {path}"),
    }
}

fn option(protocol: Protocol, side: Side, port: u16, path: &str) -> String {
    let path = path.to_owned();
    let port = Some(port).filter(|_| path.is_empty());
    NetOptions { side, protocol, port, path, answers: None }.to_string()
}

/// Prints one line for each event on the wire: `>` for received bytes, `<` for sent ones.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            match event {
                NetEvent::Listens { protocol, port, path } => {
                    writeln!(f, "listens on {}", place(*protocol, *port, path))?;
                }
                NetEvent::Connects { protocol, port, path } => {
                    writeln!(f, "connects to {}", place(*protocol, *port, path))?;
                }
                NetEvent::Accepted { connection } => writeln!(f, "{connection} accepted")?,
                NetEvent::Opened { connection, .. } => writeln!(f, "{connection} opened")?,
                NetEvent::Taken { connection, bytes } => {
                    writeln!(f, "{connection} > {}", bytes.escape_ascii())?;
                }
                NetEvent::Answer { connection, bytes } => {
                    writeln!(f, "{connection} < {}", bytes.escape_ascii())?;
                }
                NetEvent::EndSeen { connection } => writeln!(f, "{connection} > end")?,
                NetEvent::Closed { connection } => writeln!(f, "{connection} closed")?,
                NetEvent::Refused { what } => writeln!(f, "there is no stand-in for {what}")?,
                NetEvent::RunEnds { call } => {
                    writeln!(f, "waits in {call} for what does not come")?
                }
                NetEvent::Answers { .. } => {}
            }
        }
        Ok(())
    }
}

impl Session {
    /// Pairs of consecutive answers, with their keys in the domain `answers`.
    pub fn answer_pairs(&self) -> impl Iterator<Item = (u16, &str)> {
        self.events.iter().filter_map(|event| match event {
            NetEvent::Answers { key, pair } => Some((*key, &**pair)),
            _ => None,
        })
    }

    fn any(&self, is_it: impl Fn(&NetEvent) -> bool) -> bool {
        self.events.iter().any(is_it)
    }

    /// Number of messages of this input that were received completely, and number of all its messages.
    fn taken(&self, input: &[u8]) -> (usize, usize) {
        let mut bytes = [0; messages::CONNECTIONS as usize];
        let mut slots: Vec<u8> = Vec::new();
        for event in &self.events {
            if let NetEvent::Taken { connection, bytes: text } = event {
                bytes[usize::from(connection % messages::CONNECTIONS)] += text.len();
            }
        }
        let (mut whole, mut all) = (0, 0);
        for message in messages::messages(input) {
            // The target numbers connections in the order in which the input names them.
            let slot = slots.iter().position(|number| *number == message.connection);
            let slot = slot.unwrap_or_else(|| {
                slots.push(message.connection);
                slots.len() - 1
            });
            all += 1;
            let left = &mut bytes[slot];
            whole += usize::from(*left >= message.bytes.len() && !message.bytes.is_empty());
            *left = left.saturating_sub(message.bytes.len());
        }
        (whole, all)
    }

    /// Number of the target's answers: all data sent between two receives is one answer.
    fn answers(&self) -> usize {
        let talk = self.events.iter().filter_map(|event| match event {
            NetEvent::Answer { .. } => Some(true),
            NetEvent::Taken { .. } | NetEvent::Accepted { .. } | NetEvent::Opened { .. } => {
                Some(false)
            }
            _ => None,
        });
        let talk: Vec<bool> = talk.collect();
        let begins = |at: usize| talk[at] && (at == 0 || !talk[at - 1]);
        (0..talk.len()).filter(|at| begins(*at)).count()
    }

    /// Describes the first run for the user.
    pub(super) fn describe(&self, net: &NetOptions, seed: &[u8], exit: ExitKind) -> FirstSession {
        let refused = self.events.iter().find_map(|event| match event {
            NetEvent::Refused { what } => Some(what.clone()),
            _ => None,
        });
        let (line, remedy) = match self.obstacle(net, exit) {
            Some((line, remedy)) => (line, Some(remedy)),
            None => (self.summary(net, seed), None),
        };
        let line = match refused {
            Some(what) => format!("{line}; there is no stand-in for {what}"),
            None => line,
        };
        FirstSession { line, remedy, is_used: self.has_begun(net) }
    }

    fn summary(&self, net: &NetOptions, seed: &[u8]) -> String {
        let (taken, all) = self.taken(seed);
        let verb = if net.side == Side::Server { "listens" } else { "connects" };
        let answers = match self.answers() {
            0 => "did not answer".to_owned(),
            1 => "answered once".to_owned(),
            times => format!("answered {times} times"),
        };
        let noun = if all == 1 { "message" } else { "messages" };
        let more = self.second_place().map(|place| {
            format!("; it opens {place} during the session, where nobody connects to")
        });
        let more = more.unwrap_or_default();
        format!(
            "--net {net}: the target {verb} there, took {taken} of {all} {noun} of the first seed, and {answers}{more}"
        )
    }

    /// A listener that is opened after the session has begun.
    fn second_place(&self) -> Option<String> {
        let is_start =
            |event: &NetEvent| matches!(event, NetEvent::Accepted { .. } | NetEvent::Opened { .. });
        let later = self.events.iter().skip_while(|event| !is_start(event));
        later.into_iter().find_map(|event| match event {
            NetEvent::Listens {
                protocol: protocol @ (Protocol::Tcp | Protocol::Unix),
                port,
                path,
            } => Some(place(*protocol, *port, path)),
            _ => None,
        })
    }

    /// Reason for a missing session, and the remedy.
    fn obstacle(&self, net: &NetOptions, exit: ExitKind) -> Option<(String, String)> {
        if self.any(|event| matches!(event, NetEvent::Taken { .. })) {
            return None;
        }
        if self.has_begun(net) {
            let line =
                format!("--net {net}: the target opens its socket and receives nothing from it");
            return Some((
                line,
                "look at its output with AFL_DEBUG_CHILD=1: it may have closed the connection"
                    .into(),
            ));
        }
        if self.has_place(net) {
            let line =
                format!("--net {net}: the target listens there and never accepts a connection");
            return Some((line, "look at its output with AFL_DEBUG_CHILD=1".into()));
        }
        if let Some((here, option)) = self.other_place(net) {
            let verb = if net.side == Side::Server { "listens on" } else { "connects to" };
            let line = format!("--net {net}: the target {verb} {here}, not there");
            return Some((line, format!("use --net {option}, or change its configuration")));
        }
        let what =
            if net.side == Side::Server { "listens on a socket" } else { "connects to a socket" };
        let how = match exit {
            ExitKind::Crash { signal } => format!(": it crashes by signal {signal} at its start"),
            ExitKind::Hang => ": its time was up".into(),
            _ => String::new(),
        };
        let line = format!("--net {net}: the target never {what}{how}");
        Some((line, "start it by hand; AFL_DEBUG_CHILD=1 shows its output".into()))
    }

    /// Returns true if the target has a connection or, as a server of datagrams, its socket.
    fn has_begun(&self, net: &NetOptions) -> bool {
        self.any(|event| matches!(event, NetEvent::Accepted { .. } | NetEvent::Opened { .. }))
            || (net.protocol == Protocol::Udp && net.side == Side::Server && self.has_place(net))
    }

    /// Returns true if the socket of the option was opened.
    fn has_place(&self, net: &NetOptions) -> bool {
        self.any(|event| match (event, net.side) {
            (NetEvent::Listens { protocol, port, path }, Side::Server)
            | (NetEvent::Connects { protocol, port, path }, Side::Client) => {
                *protocol == net.protocol
                    && *path == net.path
                    && net.port.is_none_or(|wanted| wanted == *port)
            }
            _ => false,
        })
    }

    /// The first other socket, and the option that selects it.
    fn other_place(&self, net: &NetOptions) -> Option<(String, String)> {
        self.events.iter().find_map(|event| match (event, net.side) {
            (NetEvent::Listens { protocol, port, path }, side @ Side::Server)
            | (NetEvent::Connects { protocol, port, path }, side @ Side::Client)
                if *protocol != Protocol::Unix || side == Side::Server =>
            {
                Some((place(*protocol, *port, path), option(*protocol, side, *port, path)))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> NetOptions {
        text.parse().unwrap()
    }

    fn listens(port: u16) -> NetEvent {
        NetEvent::Listens { protocol: Protocol::Tcp, port, path: String::new() }
    }

    fn told(events: &[NetEvent], option: &str) -> (String, String) {
        let session = Session { events: events.into() };
        let told = session.describe(&net(option), b"\x02\0\0\0ab\x01\0\0\0c", ExitKind::Ok);
        (told.line, told.remedy.unwrap_or_default())
    }

    #[test]
    fn a_session_is_summed_up() {
        let taken = |bytes: &[u8]| NetEvent::Taken { connection: 0, bytes: bytes.into() };
        let answer = || NetEvent::Answer { connection: 0, bytes: b"x".into() };
        let events = [
            listens(80),
            NetEvent::Accepted { connection: 0 },
            answer(),
            taken(b"a"),
            taken(b"b"),
            answer(),
            answer(),
        ];
        let (line, remedy) = told(&events, "tcp:80");
        assert_eq!(
            line,
            "--net tcp:80: the target listens there, took 1 of 2 messages of the first seed, and answered 2 times"
        );
        assert_eq!(remedy, "");
    }

    #[test]
    fn what_is_in_the_way_has_a_remedy() {
        let accepted = NetEvent::Accepted { connection: 0 };
        let refused = NetEvent::Refused { what: "socket(…, SOCK_RAW)".into() };
        for (events, option, line, remedy) in [
            (
                &[listens(1884)][..],
                "tcp:1883",
                "listens on TCP port 1884, not there",
                "--net tcp:1884",
            ),
            (&[listens(1883)], "tcp:1883", "never accepts", "AFL_DEBUG_CHILD"),
            (&[listens(1883), accepted], "tcp:1883", "receives nothing", "closed the connection"),
            (&[], "udp:53", "never listens", "by hand"),
            (&[refused], "udp:53", "no stand-in for socket(…, SOCK_RAW)", "by hand"),
            (&[], "tcp-client", "never connects", "by hand"),
        ] {
            let told = told(events, option);
            assert!(told.0.contains(line) && told.1.contains(remedy), "{told:?}");
        }
    }
}
