//! Many processes and machines: the control socket of an instance, the workers of `-j N`, the engine of a
//! PASTIS broker.

pub mod control;
pub mod pastis;
pub mod workers;
