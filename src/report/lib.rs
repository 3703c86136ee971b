//! What a campaign has covered, where it is stuck and what it has found: collected once, shown in many forms.
//!
//! A [`survey`] runs the inputs of a campaign and keeps what they reach. [`data`] are the facts that all forms show, and
//! [`forms`] write them for people and for other programs.

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
