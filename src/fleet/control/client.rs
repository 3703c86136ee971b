//! A client of a campaign's control socket: one command at a time.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Time limit for a reply: an input may wait until the campaign has run its seeds.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A connection to the control socket.
#[derive(Debug)]
pub struct SocketClient {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    /// Number of commands sent.
    count: u64,
}

impl SocketClient {
    /// Connects to a socket.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(LONGEST_WAIT))?;
        stream.set_write_timeout(Some(LONGEST_WAIT))?;
        let lines = BufReader::new(stream.try_clone()?);
        Ok(Self { stream, lines, count: 0 })
    }

    /// Sends a command and reads until its reply. Returns the fields specific to this reply, or its error. Skips
    /// other events.
    pub fn order(&mut self, mut command: Value) -> Result<Value, String> {
        self.count += 1;
        command["id"] = self.count.into();
        let failed = |error: io::Error| format!("the campaign does not answer: {error}");
        self.stream.write_all(super::line(&command).as_bytes()).map_err(failed)?;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).map_err(failed)? == 0 {
                return Err("the campaign has ended".into());
            }
            let Ok(Value::Object(mut reply)) = serde_json::from_str(&line) else { continue };
            if reply.get("event") != Some(&"reply".into()) || reply.get("id") != command.get("id") {
                continue;
            }
            reply.retain(|name, _| name != "event" && name != "id");
            return match reply.remove("ok") {
                Some(Value::Bool(true)) => Ok(Value::Object(reply)),
                _ => {
                    let error = reply.get("error").and_then(Value::as_str);
                    Err(error.unwrap_or("the campaign refused it").to_owned())
                }
            };
        }
    }
}
