//! How an input was made, and from which seed.

/// Number of a seed; equal to the number in its file name, dense from 0 and never reused.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    serde::Deserialize,
    serde::Serialize,
)]
pub struct SeedId(pub u32);

impl SeedId {
    /// Position of the seed in the corpus.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Origin of a candidate; the `src:…,op:…` part of a file name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Origin {
    /// The seed that was mutated.
    pub parent: SeedId,
    /// The second seed of a splice.
    pub other: Option<SeedId>,
    /// How it was mutated.
    pub step: Step,
    /// Foreign mutators that took part, one bit each (`custom::bit`).
    pub by: u64,
}

/// One mutation, as in AFL's file names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// A deterministic change at a byte position: `op:flip1,pos:7` or `op:arith16,pos:3,val:be:-4`.
    At { op: &'static str, pos: u32, value: Option<i32>, big_endian: bool },
    /// A stack of random changes: `op:havoc,rep:8`.
    Stacked { op: &'static str, count: u32 },
    /// Made by foreign mutator number `mutator`: `op:NAME`, or its own description.
    Custom { op: &'static str, mutator: u8 },
    /// Imported from another fuzzer, where it has this number: `sync:PEER,src:000017`.
    Synced { peer: &'static str, number: u32 },
    /// Injected by a client of the control socket under this number: `sync:inject,src:000003`.
    Injected { number: u32 },
}

impl Step {
    /// AFL's name of the operation.
    #[must_use]
    pub fn op(&self) -> &'static str {
        match self {
            Self::At { op, .. } | Self::Stacked { op, .. } | Self::Custom { op, .. } => op,
            Self::Synced { .. } | Self::Injected { .. } => "sync",
        }
    }

    /// Position of the changed byte, 0 if there is no single one.
    #[must_use]
    pub fn position(&self) -> u32 {
        match self {
            Self::At { pos, .. } => *pos,
            Self::Stacked { .. }
            | Self::Custom { .. }
            | Self::Synced { .. }
            | Self::Injected { .. } => 0,
        }
    }
}

impl Origin {
    /// Origin of another fuzzer's input, which has no parent here.
    #[must_use]
    pub fn synced(peer: &'static str, number: u32) -> Self {
        Self { step: Step::Synced { peer, number }, ..Self::default() }
    }

    /// Origin of an input from a client of the control socket.
    #[must_use]
    pub fn injected(number: u32) -> Self {
        Self { step: Step::Injected { number }, ..Self::default() }
    }

    /// The mutated seed, if it belongs to this campaign.
    #[must_use]
    pub fn parent(&self) -> Option<SeedId> {
        let foreign = matches!(self.step, Step::Synced { .. } | Step::Injected { .. });
        (!foreign).then_some(self.parent)
    }
}

impl Default for Step {
    fn default() -> Self {
        Self::Stacked { op: "havoc", count: 0 }
    }
}
