//! Many processes and machines: the control socket of an instance, the workers of `-j N`, the jobs of a list,
//! the engine of a PASTIS broker.

pub mod control;
pub mod jobs;
pub mod pastis;
pub mod workers;
