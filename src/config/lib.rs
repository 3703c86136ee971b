//! Options and environment, checked and resolved once; later parts see only their own struct.

pub mod env;
pub mod net;
pub mod options;
pub mod sanitizers;
