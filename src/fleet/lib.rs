//! Many processes and machines: the control socket of an instance, the workers of `-j N`, the jobs of a list,
//! the harnesses of a repository, the engine of a PASTIS broker.

pub mod ci;
pub mod control;
pub mod follow;
pub mod jobs;
pub mod pastis;
pub mod workers;
