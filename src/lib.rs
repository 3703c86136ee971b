//! `ffuzz`: a coverage-guided fuzzer with domain-specific feedback.
//!
//! One folder per concern. `docs/architecture.md` begins with a picture of them, and says who may use whom.

pub use ffuzz_abi as abi;
pub use ffuzz_assets as assets;
pub use ffuzz_config as config;
pub use ffuzz_sys as sys;

pub use ffuzz_comparisons as comparisons;
pub use ffuzz_engine as engine;
pub use ffuzz_mutate as mutate;

pub use ffuzz_event as event;

pub use ffuzz_inspect as inspect;
pub use ffuzz_mutators as mutators;

pub use ffuzz_exec as exec;

pub use ffuzz_harness as harness;

pub mod cmin;
pub use ffuzz_crashes as crashes;
pub use ffuzz_disk as disk;
pub use ffuzz_fleet as fleet;
pub use ffuzz_report as report;

pub mod campaign;
pub use ffuzz_compiler as compiler;
pub use ffuzz_ui as ui;

pub mod cmd;
