//! State of the edge map.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Coverage {
    /// Percentage of edges that behave the same in every run.
    pub stability: f64,
    pub edges_found: u64,
    pub map_size: u64,
    pub unstable_edges: u64,
    /// Hit-count bits per found edge (AFL's "count coverage", bits/tuple).
    pub bits_per_edge: f64,
    /// Density of the current seed's map, in percent.
    pub current_density: f64,
    /// Virgin map of the target (0xff = never hit), for the file `fuzz_bitmap`. Only set in the final snapshot and when
    /// `fuzzer_stats` is due, because it is large.
    #[serde(skip)]
    pub virgin_map: Option<Box<[u8]>>,
}

impl Coverage {
    /// Found edges in percent of the map.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    pub fn map_percent(&self) -> f64 {
        self.edges_found as f64 * 100.0 / self.map_size.max(1) as f64
    }
}

impl Join for Coverage {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            stability: all.leading(|c| &c.stability),
            edges_found: all.leading(|c| &c.edges_found),
            map_size: all.leading(|c| &c.map_size),
            unstable_edges: all.leading(|c| &c.unstable_edges),
            bits_per_edge: all.leading(|c| &c.bits_per_edge),
            current_density: all.leading(|c| &c.current_density),
            virgin_map: all.leading(|c| &c.virgin_map),
        }
    }
}
