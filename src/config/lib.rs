//! Options and environment, checked and resolved once. Later parts see only their own struct.

pub mod env;
pub mod net;
pub mod options;
pub mod sanitizers;
