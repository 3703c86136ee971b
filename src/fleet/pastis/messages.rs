//! The messages between a PASTIS broker and its engines: protocol buffers, one envelope per message.
//!
//! Field numbers are those of the protocol. Unknown fields and values are no error, because a newer
//! broker may send some.

use prost::Message as _;

/// One message; the field defines its kind.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Envelope {
    #[prost(oneof = "Message", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub message: Option<Message>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Message {
    #[prost(message, tag = "1")]
    Seed(SeedMessage),
    #[prost(message, tag = "2")]
    Data(Data),
    #[prost(message, boxed, tag = "3")]
    Start(Box<StartMessage>),
    #[prost(message, tag = "4")]
    Stop(StopMessage),
    #[prost(message, tag = "5")]
    Hello(HelloMessage),
    #[prost(message, tag = "6")]
    Log(Log),
    #[prost(message, tag = "7")]
    Telemetry(Telemetry),
    /// Full coverage, which a fuzzer never reports.
    #[prost(message, tag = "8")]
    Covered(CoveredMessage),
}

/// An input, in both directions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SeedMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub bytes: Vec<u8>,
    #[prost(enumeration = "SeedKind", tag = "2")]
    pub kind: i32,
}

/// Data about an alert, as JSON: see [`super::alerts`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Data {
    #[prost(string, tag = "1")]
    pub json: String,
}

#[derive(Clone, Eq, Hash, PartialEq, prost::Message)]
pub struct EngineMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    /// Python module of its descriptor.
    #[prost(string, tag = "3")]
    pub module: String,
}

/// The order to fuzz a target.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StartMessage {
    #[prost(string, tag = "1")]
    pub file_name: String,
    /// An ELF file, or a ZIP archive that contains it.
    #[prost(bytes = "vec", tag = "2")]
    pub package: Vec<u8>,
    /// Alert report as JSON; empty if there is none.
    #[prost(bytes = "vec", tag = "3")]
    pub report: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub engine: Option<EngineMessage>,
    #[prost(enumeration = "ExecMode", tag = "5")]
    pub exec_mode: i32,
    #[prost(enumeration = "FuzzMode", tag = "6")]
    pub fuzz_mode: i32,
    /// All crashes, or only alerts; ignored, because both are always searched.
    #[prost(int32, tag = "7")]
    pub check_mode: i32,
    #[prost(string, tag = "8")]
    pub coverage_mode: String,
    #[prost(enumeration = "SeedLocation", tag = "9")]
    pub seed_location: i32,
    #[prost(string, tag = "10")]
    pub engine_args: String,
    /// Arguments without the program.
    #[prost(string, repeated, tag = "11")]
    pub argv: Vec<String>,
    /// Variables as `NAME=VALUE`; brokers up to 1.0.13 lack this field.
    #[prost(string, repeated, tag = "12")]
    pub environment: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StopMessage {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CoveredMessage {}

/// Description of this client: the first message of every connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HelloMessage {
    #[prost(enumeration = "Architecture", tag = "1")]
    pub architecture: i32,
    #[prost(uint32, tag = "2")]
    pub cpus: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "3")]
    pub memory: u64,
    #[prost(message, repeated, tag = "4")]
    pub engines: Vec<EngineMessage>,
    #[prost(string, tag = "5")]
    pub host: String,
    #[prost(enumeration = "Platform", tag = "6")]
    pub platform: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Log {
    #[prost(string, tag = "1")]
    pub message: String,
    #[prost(enumeration = "Level", tag = "2")]
    pub level: i32,
}

/// Statistics of the campaign; 0 means unknown.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Telemetry {
    #[prost(enumeration = "EngineState", tag = "1")]
    pub state: i32,
    #[prost(uint32, tag = "2")]
    pub execs_per_sec: u32,
    #[prost(uint64, tag = "3")]
    pub execs: u64,
    #[prost(uint32, tag = "4")]
    pub cycles: u32,
    #[prost(uint32, tag = "5")]
    pub hangs: u32,
    #[prost(uint32, tag = "6")]
    pub blocks: u32,
    #[prost(uint32, tag = "7")]
    pub edges: u32,
    #[prost(uint32, tag = "8")]
    pub paths: u32,
    /// Time in Unix seconds.
    #[prost(uint64, tag = "9")]
    pub last_find: u64,
    /// Load in percent.
    #[prost(float, tag = "10")]
    pub cpu: f32,
    #[prost(float, tag = "11")]
    pub memory: f32,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub enum SeedKind {
    Input = 0,
    Crash = 1,
    Hang = 2,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ExecMode {
    Auto = 0,
    SingleExec = 1,
    Persistent = 2,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum FuzzMode {
    Auto = 0,
    Instrumented = 1,
    BinaryOnly = 2,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub enum SeedLocation {
    Stdin = 0,
    Argv = 1,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub enum Architecture {
    X86 = 0,
    X86_64 = 1,
    ArmV7 = 2,
    Aarch64 = 3,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Platform {
    Any = 0,
    Linux = 1,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub enum EngineState {
    Running = 0,
    Idle = 1,
}

/// Log levels. The schema numbers debug and info 0 and 1, which brokers do not accept.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, prost::Enumeration)]
#[repr(i32)]
pub enum Level {
    Unnamed = 0,
    Debug = 10,
    Info = 20,
    Warning = 2,
    Error = 3,
    Critical = 4,
}

impl Message {
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        Envelope { message: Some(self) }.encode_to_vec()
    }

    /// Decodes a message; None if it is invalid or of an unknown kind.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Envelope::decode(bytes).ok()?.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_what_the_schema_says() {
        let seed =
            Message::Seed(SeedMessage { bytes: b"ab".to_vec(), kind: SeedKind::Crash as i32 });
        assert_eq!(seed.clone().to_bytes(), b"\x0a\x06\x0a\x02ab\x10\x01");
        assert_eq!(Message::from_bytes(&seed.clone().to_bytes()), Some(seed));
        assert_eq!(Message::Stop(StopMessage {}).to_bytes(), b"\x22\x00");
    }

    #[test]
    fn unknown_fields_are_skipped_and_nonsense_is_nothing() {
        // Field 99 after the seed of an input.
        let bytes = b"\x0a\x07\x0a\x01x\x9a\x06\x01y";
        let Some(Message::Seed(seed)) = Message::from_bytes(bytes) else { panic!("no seed") };
        assert_eq!((seed.bytes.as_slice(), seed.kind), (b"x".as_slice(), 0));
        // An unknown kind, and bytes that are no protocol buffer.
        assert_eq!(Message::from_bytes(b"\x4a\x00"), None);
        assert_eq!(Message::from_bytes(b"\x0a\xff"), None);
        assert_eq!(Message::from_bytes(b""), None);
    }

    #[test]
    fn a_start_of_an_older_broker_has_no_environment() {
        let start = StartMessage {
            file_name: "t".into(),
            argv: vec!["@@".into()],
            ..StartMessage::default()
        };
        let Some(Message::Start(read)) =
            Message::from_bytes(&Message::Start(Box::new(start.clone())).to_bytes())
        else {
            panic!("no start")
        };
        assert_eq!(*read, start);
        assert!(read.environment.is_empty());
    }
}
