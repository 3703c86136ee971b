//! Coverage, stuck places and finds of a campaign, collected once and written in many formats.
//!
//! A [`survey`] runs the inputs of a campaign and records their coverage. [`data`] has the facts common to all
//! formats, and [`forms`] writes them for users and for other programs.

pub mod answers;
pub mod assemble;
pub mod campaign;
pub mod compare;
pub mod data;
pub mod forms;
pub mod mcp;
pub mod owners;
pub mod stuck;
pub mod survey;
mod texts;
