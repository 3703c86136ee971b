//! `ffuzz`: a coverage-guided fuzzer with domain-specific feedback.
//!
//! One folder per concern; a module imports only from those above its own. `docs/architecture.md` begins
//! with a picture of them.

pub mod abi;
pub mod assets;
pub mod config;
pub use ffuzz_sys as sys;

pub use ffuzz_engine as engine;

pub mod event;

pub mod mutators;

pub mod exec;

pub mod cmin;
pub mod crashes;
pub mod disk;
pub mod fleet;

pub mod campaign;
pub mod compiler;
pub mod ui;

pub mod cmd;
