//! Harnesses of libFuzzer, and how OSS-Fuzz builds them: what lies beside one, whether it runs, and what a `Dockerfile`
//! prepares.

pub mod beside;
pub mod check;
pub mod dockerfile;
