//! Finds on disk: the folder of an instance, and the queues of other instances.

pub mod coverage;
pub mod output;
pub mod sync;
