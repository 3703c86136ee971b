//! Setup of a campaign; almost constant.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CampaignSetup {
    pub pid: u32,
    /// True if domains guide the campaign (`-p`).
    pub guided_by_domains: bool,
    pub banner: String,
    pub instance: String,
    pub schedule: String,
    pub command_line: String,
}

/// A fleet sets its own process id, name and command line.
impl Join for CampaignSetup {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            pid: all.leading(|s| &s.pid),
            guided_by_domains: all.iter().any(|s| s.guided_by_domains),
            banner: all.leading(|s| &s.banner),
            instance: all.leading(|s| &s.instance),
            schedule: schedules(all),
            command_line: all.leading(|s| &s.command_line),
        }
    }
}

/// The schedule that all workers share, or `mixed`.
fn schedules(all: &All<'_, CampaignSetup>) -> String {
    let first = all.iter().next().map(|s| s.schedule.as_str()).unwrap_or_default();
    let same = all.iter().all(|s| s.schedule == first);
    if same { first.to_owned() } else { "mixed".to_owned() }
}
