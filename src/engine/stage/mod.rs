//! Stages: what is done with one seed. A stage uses mutators, executor and judge, and knows no
//! other stage; keeping what it finds is the campaign's work.

pub mod calibrate;
pub mod foreign;
pub mod produce;
