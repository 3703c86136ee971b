//! `ffuzz`: a coverage-guided fuzzer with domain-specific feedback.
//!
//! The modules below are listed in the order in which data flows through one execution; a module
//! imports only from modules above it (`docs/architecture.md` holds the full rule).

pub mod config;
pub mod event; // plain data that the campaign reports: Event, Snapshot, EventBus
pub mod sys; // safe wrappers of the kernel: memory, processes, pipes, clocks, signals // options and environment variables, checked and resolved

pub mod corpus;
pub mod coverage; // edge map: hit-count classes, virgin map, novelty
pub mod domain; // domain maps: registry, reducers, aggregates, waypoint decision // Seed, SeedId, Corpus, AFL file names

pub mod custom; // foreign mutators: AFL++'s hooks, and the chain of all that are loaded
pub mod feedback; // Judge: observation → verdict
pub mod schedule;
pub mod target; // what is run: delivery, fork server, channel, Executor, Observation // favoured set, energy, choice of the next seed

pub mod minimize; // algorithms that shrink an input, given a closure that judges it
pub mod mutate; // Candidate; deterministic steps, havoc, splice, dictionary
pub mod output; // output directory in AFL's layout, fuzzer_stats, plot_data, logs

pub mod campaign; // owns all of the above and the loop
pub mod compiler;
pub mod stage; // calibrate, trim, fuzz
pub mod ui; // event sinks for people: full screen, plain lines // the compiler wrapper: arguments, toolchain, embedded runtime and passes

pub mod fleet; // several workers: one process each, shown as one

pub mod cmd; // one file per command
