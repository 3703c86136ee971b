//! The table of all AFL_* and FFUZZ_* variables.
