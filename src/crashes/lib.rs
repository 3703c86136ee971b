//! Crashes: reports of a dying program, the bugs that cause them, and the server that gets the reports.

pub mod collector;
pub mod crash;
pub mod forms;
pub mod triage;
