//! The maps of a running target, in the channel or in AFL's SysV segment.

use super::channel::Channel;
use super::runs::RunChannel;
use ffuzz_engine::domain::{Domain, DsfView};
use ffuzz_inspect::modules::Named;
use ffuzz_sys::memory::SharedMap;

/// AFL's classic map size, and the offset of the DSF array in a FuzzFactory segment.
pub(super) const CLASSIC_MAP: usize = 1 << 16;
/// Maximum number of DSF keys of a FuzzFactory target: 4 domains of 65536.
pub(super) const LEGACY_KEYS: usize = 4 << 16;

/// Where the maps are.
#[derive(Debug)]
enum MapStorage {
    Channel(Box<Channel>),
    Segment { segment: SharedMap, map_size: usize, keys: usize },
}

/// Edge map and domain maps, cleared before a run and read after it.
#[derive(Debug)]
pub(super) struct Maps {
    place: MapStorage,
    domains: Vec<Domain>,
    /// Keys to check after the last run; valid unless `everything`.
    touched: Vec<u32>,
    /// True if the whole DSF array must be checked or cleared.
    everything: bool,
    /// True if nothing must be cleared, because the target did it.
    clean: bool,
}

impl Maps {
    pub(super) fn in_channel(mut channel: Box<Channel>) -> Self {
        let domains = std::mem::take(&mut channel.domains);
        Self {
            place: MapStorage::Channel(channel),
            domains,
            touched: Vec::new(),
            everything: true,
            clean: false,
        }
    }

    /// Maps in AFL's segment. `domains` is empty except for targets of the original FuzzFactory.
    pub(super) fn in_segment(segment: SharedMap, map_size: usize, domains: Vec<Domain>) -> Self {
        let keys = domains.last().map_or(0, Domain::end) as usize;
        let place = MapStorage::Segment { segment, map_size, keys };
        Self { place, domains, touched: Vec::new(), everything: true, clean: false }
    }

    pub(super) fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Modules whose counters do not overlap (checked).
    pub(super) fn modules(&self) -> &[Named] {
        self.channel().map_or(&[], |channel| &channel.modules)
    }

    pub(super) fn edges(&self) -> &[u8] {
        match &self.place {
            MapStorage::Channel(channel) => channel.edges(),
            MapStorage::Segment { segment, map_size, .. } => segment.bytes(0, *map_size),
        }
    }

    /// Bytes of the edge map that stay 0 because nothing counts there: with copies of functions, and without.
    pub(super) fn absent(&self) -> [usize; 2] {
        self.channel().map_or([0; 2], |channel| channel.absent)
    }

    /// Empties the comparison log; call it before a run that is logged.
    pub(super) fn clear_log(&mut self) {
        if let MapStorage::Channel(channel) = &mut self.place {
            channel.clear_log();
        }
    }

    /// Resets all maps to their state before a run.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.clean) {
            return;
        }
        match &mut self.place {
            MapStorage::Channel(channel) => {
                channel.edges_mut().fill(0);
                channel.forget_touched();
                let values = channel.dsf_mut();
                clear_domains(values, &self.domains, (!self.everything).then_some(&self.touched));
            }
            MapStorage::Segment { segment, map_size, keys } => {
                segment.bytes_mut(0, *map_size).fill(0);
                clear_domains(segment.words_mut(CLASSIC_MAP, *keys), &self.domains, None);
            }
        }
        self.touched.clear();
        self.everything = false;
    }

    /// Reads the touched keys after a run; `complete` is false if the run was killed, possibly between a
    /// value and its list entry. Then everything is checked.
    pub(super) fn collect(&mut self, complete: bool) {
        self.everything = match &self.place {
            MapStorage::Channel(channel) => !(channel.copy_touched(&mut self.touched) && complete),
            MapStorage::Segment { .. } => true,
        };
    }

    /// Restores the edge map of an earlier run.
    pub(super) fn restore_edges(&mut self, edges: &[u8]) {
        if let MapStorage::Channel(channel) = &mut self.place {
            channel.edges_mut().copy_from_slice(edges);
        }
    }

    /// Keys and values that the last run changed, for [`Self::restore_keys`].
    pub(super) fn changed_keys(&self) -> Vec<(u32, u32)> {
        let mut keys = Vec::new();
        self.dsf().for_each_changed(|_, key, value| keys.push((key, value)));
        keys
    }

    /// Restores the domain maps of an earlier run.
    pub(super) fn restore_keys(&mut self, keys: &[(u32, u32)]) {
        let MapStorage::Channel(channel) = &mut self.place else { return };
        let values = channel.dsf_mut();
        clear_domains(values, &self.domains, (!self.everything).then_some(&self.touched));
        for (key, value) in keys {
            values[*key as usize] = *value;
        }
        self.touched = keys.iter().map(|(key, _)| *key).collect();
        self.everything = false;
    }

    /// Notes that the target has cleared the maps itself.
    pub(super) fn note_clean(&mut self) {
        self.clean = true;
    }

    pub(super) fn take_runs(&mut self) -> Option<RunChannel> {
        match &mut self.place {
            MapStorage::Channel(channel) => channel.runs.take(),
            MapStorage::Segment { .. } => None,
        }
    }

    pub(super) fn dsf(&self) -> DsfView<'_> {
        let values = match &self.place {
            MapStorage::Channel(channel) => channel.dsf(),
            MapStorage::Segment { segment, keys, .. } => segment.words(CLASSIC_MAP, *keys),
        };
        let touched = (!self.everything).then_some(self.touched.as_slice());
        DsfView { domains: &self.domains, values, touched }
    }

    /// Describes the domains in one line.
    pub(super) fn keys(&self) -> String {
        let keys = self.domains.iter();
        let keys = keys.map(|d| format!("{}:{}:{}", d.size, d.reducer.name(), d.initial));
        keys.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn channel(&self) -> Option<&Channel> {
        match &self.place {
            MapStorage::Channel(channel) => Some(channel),
            MapStorage::Segment { .. } => None,
        }
    }
}

fn clear_domains(values: &mut [u32], domains: &[Domain], touched: Option<&Vec<u32>>) {
    let Some(touched) = touched else {
        for domain in domains {
            values[domain.range()].fill(domain.initial);
        }
        return;
    };
    for key in touched {
        if let Some(domain) = domains.iter().find(|domain| *key < domain.end()) {
            values[*key as usize] = domain.initial;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::domain::Reducer;

    fn legacy(domains: Vec<Domain>) -> Maps {
        let (segment, _) = SharedMap::sysv(CLASSIC_MAP + 4 * LEGACY_KEYS).unwrap();
        Maps::in_segment(segment, CLASSIC_MAP, domains)
    }

    #[test]
    fn a_legacy_segment_is_preset_to_initial_values() {
        let name = String::new();
        let min = Domain { name, start: 0, size: 3, reducer: Reducer::Min, initial: u32::MAX };
        let mut maps = legacy(vec![min]);
        maps.clear();
        maps.collect(true);
        assert_eq!(maps.dsf().values, [u32::MAX; 3]);
        let mut changed = 0;
        maps.dsf().for_each_changed(|_, _, _| changed += 1);
        assert_eq!(changed, 0);
    }
}
