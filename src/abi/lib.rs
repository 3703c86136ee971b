//! Foreign binary interfaces: AFL++'s mutator libraries, Killerbeez modules, and the library that hosts
//! Python. Raw structures end here; outside there are safe handles. The kernel's side is [`ffuzz_sys`].

#![allow(unsafe_code, reason = "this is the fence: foreign binary interfaces end here")]

pub mod killerbeez;
pub mod library;
#[cfg(feature = "python")]
pub mod python;
