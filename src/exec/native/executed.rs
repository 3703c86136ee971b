//! Names of the keys of `perf` in a program without source: blocks whose executions are counted in
//! copies.

use std::path::Path;

use ffuzz_config::options::NativeDomain;
use ffuzz_engine::domain::Site;

use super::counted::{identity, key};
use crate::trace::Code;

/// Keys of a file. Functions without a copy have none.
pub(super) fn sites(path: &Path) -> Vec<Site> {
    let Some(code) = Code::decoded(path) else { return Vec::new() };
    let (identity, blocks) = (identity(path), code.blocks());
    let closed = blocks.ranges.iter().zip(&blocks.is_closed).filter(|(_, is_closed)| **is_closed);
    let starts = closed.flat_map(|(range, _)| {
        let first = blocks.starts.partition_point(|at| *at < range.start);
        blocks.starts[first..].iter().take_while(|at| **at < range.end)
    });
    let domain = NativeDomain::Perf.name();
    let site = |at: &u64| code.site(domain, key(identity, *at as u32), *at, "block");
    starts.map(site).collect()
}
