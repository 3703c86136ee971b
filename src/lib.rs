//! `ffuzz`: a coverage-guided fuzzer with domain-specific feedback.
//!
//! The groups of modules below are in the order in which data flows through one execution; a
//! module imports only from groups above its own. `docs/architecture.md` says what each is for.

pub mod config;
pub mod event;
pub mod sys;

pub mod corpus;
pub mod coverage;
pub mod crash;
pub mod domain;
pub mod lines;

pub mod mutate;

pub mod custom;

pub mod feedback;
pub mod target;

pub mod collector;
pub mod control;
pub mod minimize;
pub mod output;
pub mod schedule;
pub mod sync;

pub mod stage;
pub mod triage;

pub mod campaign;
pub mod compiler;
pub mod ui;

pub mod fleet;

pub mod pastis;

pub mod cmd;
