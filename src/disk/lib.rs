//! Finds on disk: the folder of an instance, the queues of other instances, and folders that a user names.

pub mod archive;
pub mod coverage;
pub mod find;
pub mod inputs;
pub mod output;
pub mod sessions;
pub mod sync;
