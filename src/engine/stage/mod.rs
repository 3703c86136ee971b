//! Parts of stages: calibration, and the producers of candidates. The stages of a campaign, which run and
//! keep, are in `src/campaign/stages/`.

pub mod calibrate;
pub mod foreign;
pub mod produce;
