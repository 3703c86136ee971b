//! The work on a seed. It stops when the stage's share of the time is used up, and goes on later: so everything that it
//! needs then is here. The stage does it, this only holds it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use crate::comparison::{ComparisonKind, OwnLog, Place, SiteCounts};
use crate::corpus::SeedId;
use crate::fuzzer::Effort;
use crate::mutate::depend::{Change, Dependent};
use crate::mutate::repair::Suspect;
use crate::mutate::solve::Edit;

/// The work on one seed.
#[derive(Debug)]
pub(in super::super) struct Work {
    pub(in super::super) id: SeedId,
    /// In earlier slices of this round.
    pub(in super::super) spent: Effort,
    /// Inputs that were begun.
    pub(in super::super) inputs: usize,
    pub(in super::super) lengthened: usize,
    /// Inputs whose copies come next, the last one first; then those that are to be probed.
    pub(in super::super) fresh: Vec<Vec<u8>>,
    pub(in super::super) unprobed: VecDeque<Vec<u8>>,
    pub(in super::super) step: Option<Step>,
}

/// The work on one input.
#[derive(Debug)]
pub(in super::super) enum Step {
    Copies(Copies),
    Probe(Probe),
}

impl Step {
    pub(in super::super) fn input(&self) -> &[u8] {
        match self {
            Self::Copies(copies) => &copies.input,
            Self::Probe(probe) => &probe.input,
        }
    }
}

/// Copies of bytes of the input.
#[derive(Debug)]
pub(in super::super) struct Copies {
    pub(in super::super) input: Vec<u8>,
    pub(in super::super) phase: CopiesPhase,
}

#[derive(Debug)]
pub(in super::super) enum CopiesPhase {
    Begun,
    Learning(OwnLog, Learning),
    Coloring(Coloring),
    Editing(Editing),
}

/// Fields that may have to be repaired.
#[derive(Debug)]
pub(in super::super) struct Learning {
    /// Those that are left.
    pub(in super::super) suspects: VecDeque<Vec<Suspect>>,
    /// What runs have said of the first ones: asked again, they are not run again.
    pub(in super::super) answers: Vec<Option<u64>>,
}

#[derive(Debug)]
pub(in super::super) struct Coloring {
    pub(in super::super) log: OwnLog,
    pub(in super::super) colored: Vec<u8>,
    pub(in super::super) colored_log: OwnLog,
    pub(in super::super) parts: VecDeque<Range<usize>>,
    pub(in super::super) runs_left: usize,
}

#[derive(Debug)]
pub(in super::super) struct Editing {
    pub(in super::super) base: SiteCounts,
    pub(in super::super) edits: Vec<Edit>,
    /// Those that are still to be tried with the log; then the usual runs come.
    pub(in super::super) chosen: VecDeque<Edit>,
    pub(in super::super) extensions: usize,
    pub(in super::super) flipping: Vec<Vec<u8>>,
    pub(in super::super) joint: Vec<Edit>,
    pub(in super::super) tried: BTreeSet<Place>,
    pub(in super::super) is_tried: bool,
    /// Usual runs, and their time.
    pub(in super::super) done: usize,
    pub(in super::super) spent: Duration,
}

/// Operands that are calculated from the input.
#[derive(Debug)]
pub(in super::super) struct Probe {
    pub(in super::super) input: Vec<u8>,
    pub(in super::super) phase: ProbePhase,
}

#[derive(Debug)]
pub(in super::super) enum ProbePhase {
    Begun,
    Probing(Watch, Probing),
    Solving(Solving),
}

/// An open comparison of two numbers.
#[derive(Debug)]
pub(in super::super) struct Watched {
    pub(in super::super) place: Place,
    /// Where the numbers begin, of memory or text.
    pub(in super::super) part: Option<usize>,
    pub(in super::super) kind: ComparisonKind,
    pub(in super::super) bytes: usize,
    pub(in super::super) operands: [u64; 2],
    pub(in super::super) changes: [Vec<Change>; 2],
    /// Where an inserted byte moves one of them, and what they are then.
    pub(in super::super) growth: Option<(usize, [u64; 2])>,
}

/// The open comparisons of one input.
#[derive(Debug)]
pub(in super::super) struct Watch {
    pub(in super::super) all: Vec<Watched>,
    pub(in super::super) by_place: HashMap<Place, usize>,
    pub(in super::super) base: SiteCounts,
    /// By a hash of the site: whether there may be one of it. Most sites of a log are not watched.
    pub(in super::super) sites: Vec<bool>,
}

/// How far the bytes of the input were changed.
#[derive(Debug)]
pub(in super::super) struct Probing {
    pub(in super::super) left: usize,
    /// Insertions that are done: the first one is that of a byte at the end.
    pub(in super::super) insertions: usize,
    /// Kinds of changes that are done, and parts that are left of the next one.
    pub(in super::super) changes: usize,
    pub(in super::super) parts: VecDeque<Range<usize>>,
    /// Bytes whose change ends the run before something open.
    pub(in super::super) stops: Vec<bool>,
    /// These, and those that move what is watched; at first those that are known of the seed.
    pub(in super::super) deciding: Vec<bool>,
    /// Bits of these that are done.
    pub(in super::super) bits: usize,
}

#[derive(Debug)]
pub(in super::super) struct Solving {
    pub(in super::super) base: SiteCounts,
    /// Those that are left.
    pub(in super::super) dependents: VecDeque<Dependent>,
    pub(in super::super) flipping: Vec<Vec<u8>>,
    /// On the first one, if that is begun.
    pub(in super::super) attempts: Option<Attempts>,
}

/// The attempts on one operand. The solvers begin again in each slice; what runs have said is not run again.
#[derive(Debug)]
pub(in super::super) struct Attempts {
    pub(in super::super) left: usize,
    pub(in super::super) extensions: usize,
    pub(in super::super) answers: Vec<Option<[u64; 2]>>,
}
