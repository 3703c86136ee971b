//! Safe wrappers of the kernel. `unsafe` may stand here, in `abi` and in `python-host/`; every
//! resource has one owner that releases it in `Drop`.

#![allow(unsafe_code, reason = "this is the fence: raw kernel interfaces end here")]

pub mod affinity;
pub mod alarm;
pub mod breakpoints;
pub mod clock;
pub mod file;
pub mod futex;
pub mod guard;
pub mod listen;
pub mod load;
pub mod memory;
pub mod network;
pub mod privilege;
pub mod process;
pub mod regular;
pub mod remedy;
pub mod stdio;
pub mod stop;
pub mod strays;
pub mod subprocess;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod traced;
pub mod underway;
pub mod waits;
pub mod watch;
pub mod wire;
