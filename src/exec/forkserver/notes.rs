//! Notes about a target that runs slower, or reports less coverage, than possible; each is reported once.

use super::ForkServer;
use crate::launcher::describe_end;
use ffuzz_config::options::RunMode;

/// Number of children that end between two runs before this is reported: the user may have killed a single
/// one.
const MANY_IDLE_ENDS: u32 = 3;

/// Kinds of notes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum ModeNote {
    OtherRuntime,
    Refused,
    CopiedCounters,
    LateModule,
    IdleEnds,
    NewMap,
    Breakpoints,
    Emulated,
    FalseCrash,
    Threads,
}

impl ForkServer {
    /// Notes about the current session that were not reported yet.
    pub(super) fn notes_of_session(&mut self) -> Vec<String> {
        let emulated = self.setup.way().note().map(|text| (ModeNote::Emulated, text));
        let found =
            [emulated, self.no_channel(), self.counters(), self.late_module(), self.idle_ends()];
        let new = found.into_iter().flatten().filter(|(kind, _)| self.reported.insert(*kind));
        new.map(|(_, text)| text).collect()
    }

    /// Notes a changed map size. `before`, `now`: its edges before and after a restart.
    pub(super) fn note_new_map(&mut self, before: usize, now: usize) {
        if before != now && self.reported.insert(ModeNote::NewMap) {
            self.notes.push(format!(
                "the target's map had {before} edges and has {now} after a restart: edge numbers may have changed; \
                 make it load the same libraries in every start"
            ));
        }
    }

    fn no_channel(&self) -> Option<(ModeNote, String)> {
        let session = &self.session;
        if let Some(error) = &session.refused {
            let text = format!(
                "the target cannot map ffuzz's shared memory ({error}): runs use AFL's pipes; \
                 allow it more memory (-m)"
            );
            return Some((ModeNote::Refused, text));
        }
        let is_other = match session.maps.channel() {
            Some(_) => session.runs.is_none(),
            None => self.setup.takes_channel(),
        };
        let text = "the target's runtime is of another version of ffuzz: runs use AFL's pipes; \
                    rebuild it for more speed";
        (is_other && self.setup.options.run_mode != RunMode::Pipe)
            .then(|| (ModeNote::OtherRuntime, text.into()))
    }

    fn counters(&self) -> Option<(ModeNote, String)> {
        let text = "the target's linker did not place its counters on pages of their own: they are copied \
                    after each run; use ld or lld";
        let copied = self.session.maps.channel().is_some_and(|channel| channel.counters_are_copied);
        copied.then(|| (ModeNote::CopiedCounters, text.into()))
    }

    fn late_module(&self) -> Option<(ModeNote, String)> {
        let (name, count) = self.session.maps.channel()?.late()?;
        let more = if count > 1 { " and others" } else { "" };
        let text = format!(
            "the target loads {name:?}{more} only when it runs: its edges are not counted; \
             AFL_PRELOAD={name} loads it at the start"
        );
        Some((ModeNote::LateModule, text))
    }

    fn idle_ends(&self) -> Option<(ModeNote, String)> {
        let (count, status) = self.session.runs.as_ref()?.idle_ends();
        let how = describe_end(Some(status));
        let text = format!(
            "the target's process exits between two runs ({how}), so each batch needs a new one: \
             leave system calls of ffuzz out of its filters (futex), and memory to its limits"
        );
        (count >= MANY_IDLE_ENDS).then_some((ModeNote::IdleEnds, text))
    }
}
