//! Finds on disk: an instance's folder, other instances' queues, and folders named by the user.

pub mod archive;
pub mod coverage;
pub mod find;
pub mod inputs;
pub mod output;
pub mod sessions;
pub mod sync;
