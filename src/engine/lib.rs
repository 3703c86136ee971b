//! The heart of the fuzzer: coverage and domains, the judge, the corpus, the schedule, mutation and the
//! stages. It starts no process, opens no file and reads no clock.

pub mod calibrate;
pub mod corpus;
pub mod coverage;
pub mod domain;
pub mod executor;
pub mod fake;
pub mod feedback;
pub mod fuzzer;
pub mod minimize;
pub mod options;
pub mod runner;
pub mod schedule;
pub mod stage;

use ffuzz_mutate as mutate;
use ffuzz_mutate::messages;
