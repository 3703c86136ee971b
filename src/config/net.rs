//! The target's socket that takes the inputs (`--net`).

use std::fmt;
use std::str::FromStr;

/// Role of the target on its socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The target listens; the fuzzer connects.
    Server,
    /// The target connects; the fuzzer answers.
    Client,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    Tcp,
    Udp,
    Unix,
}

/// A parsed `--net` with related options. The library in the target reads its [`Display`](fmt::Display) form from
/// `FFUZZ_NET` (`runtime/net/options.h`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NetOptions {
    pub side: Side,
    pub protocol: Protocol,
    /// Port; None: the first one that the target uses.
    pub port: Option<u16>,
    /// Path of a local socket; otherwise empty.
    pub path: String,
    /// Makes answers a domain. The value is the regular expression (POSIX, extended) that distinguishes answers; if it
    /// is empty, their status or first word does.
    pub answers: Option<String>,
}

/// Maximum length of a local socket's path (unix(7)).
const LONGEST_PATH: usize = 107;

/// The reason why a text is no value of `--net`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NetError {
    #[error("{0:?} names no socket")]
    Form(String),
    #[error("{0:?} is no port")]
    Port(String),
    #[error("the path of a local socket has 1 to {LONGEST_PATH} bytes")]
    Path,
}

impl FromStr for NetOptions {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        let (side, protocol) = match word {
            "tcp" => (Side::Server, Protocol::Tcp),
            "udp" => (Side::Server, Protocol::Udp),
            "unix" => (Side::Server, Protocol::Unix),
            "tcp-client" => (Side::Client, Protocol::Tcp),
            "udp-client" => (Side::Client, Protocol::Udp),
            _ => return Err(NetError::Form(text.into())),
        };
        if protocol == Protocol::Unix {
            let path = rest.unwrap_or_default();
            let fits = (1..=LONGEST_PATH).contains(&path.len()) && !path.contains('\0');
            let path = if fits { path.into() } else { return Err(NetError::Path) };
            return Ok(Self { side, protocol, port: None, path, answers: None });
        }
        let port = match (rest, side) {
            (None, Side::Server) => return Err(NetError::Form(text.into())),
            (None, Side::Client) => None,
            (Some(port), _) => match port.parse() {
                Ok(port @ 1..) => Some(port),
                _ => return Err(NetError::Port(port.into())),
            },
        };
        Ok(Self { side, protocol, port, path: String::new(), answers: None })
    }
}

impl fmt::Display for NetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.protocol, self.side) {
            (Protocol::Tcp, Side::Server) => "tcp",
            (Protocol::Udp, Side::Server) => "udp",
            (Protocol::Unix, _) => "unix",
            (Protocol::Tcp, Side::Client) => "tcp-client",
            (Protocol::Udp, Side::Client) => "udp-client",
        })?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None if self.protocol == Protocol::Unix => write!(f, ":{}", self.path),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in
            ["tcp:1883", "udp:53", "unix:/run/x:y", "tcp-client", "tcp-client:443", "udp-client:53"]
        {
            assert_eq!(text.parse::<NetOptions>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_names_no_socket_is_refused() {
        for text in
            ["tcp", "udp", "sctp:1", "", "1883", "tcp:0", "tcp:65536", "tcp:x", "unix:", "unix"]
        {
            assert!(text.parse::<NetOptions>().is_err(), "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(107));
        assert_eq!(long.parse::<NetOptions>(), Err(NetError::Path));
    }
}
