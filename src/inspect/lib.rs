//! What the files of a program contain. Bytes in, facts out: nothing here runs a target.
//!
//! | module | facts |
//! |---|---|
//! | `binary` | markers of compilers and sanitizers, processor, loader |
//! | `objects`, `choice` | the libraries that the loader maps, and which of all files are analyzed |
//! | `blocks`, `callees`, `flow` | basic blocks, callees of calls, control flow with counters |
//! | `lines`, `code` | functions and source lines of counters and blocks |
//! | `sites`, `callbacks`, `words` | names of keys and comparisons, words of the format |
//! | `compares`, `counted`, `detours` | what is counted in a program without instrumentation: comparisons, calls, copies of functions |
//! | `parts`, `modules` | the files behind an edge map, and their builds |
//!
//! Only `objects` starts a process, the loader. All content is untrusted.

pub mod binary;
pub mod blocks;
mod callbacks;
mod callees;
pub mod choice;
pub mod code;
mod comparers;
pub mod compares;
pub mod counted;
pub mod detours;
pub mod flow;
pub mod lines;
pub mod modules;
pub mod objects;
pub mod parts;
pub mod sites;
pub mod words;
