//! What the stage of comparisons has spent, and its work on a seed. The work stops when the stage's share of the time is
//! used up, and goes on later: so everything that it needs then is here. The stage does it, this only holds it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Effort;
use crate::comparison::{Blockers, ComparisonKind, OwnLog, Place, Results, SiteCounts};
use crate::corpus::SeedId;
use crate::mutate::depend::{Change, Dependent};
use crate::mutate::repair::{Repairs, Suspect};
use crate::mutate::solve::Edit;

/// What logged runs have shown so far. Campaigns keep it from one process to the next.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Learned {
    /// What comparisons have come to, by site.
    pub(crate) results: Results,
    /// What the seeds do not pass; inputs have the numbers of the seeds.
    pub(crate) blockers: Blockers,
    /// Fields of inputs that the target wants to be what it calculates.
    pub(crate) repairs: Repairs,
}

impl Learned {
    /// False for what no process has learned.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.blockers.is_possible() && self.repairs.is_possible()
    }
}

/// The stage as a whole.
#[derive(Debug, Default)]
pub(crate) struct Comparing {
    pub(crate) spent: Effort,
    /// It goes on before another seed begins: logs are large, so there is only one.
    pub(crate) paused: Option<Box<Work>>,
    /// What is left of seeds whose last round was cut.
    pub(crate) cut: HashMap<SeedId, Box<Work>>,
    /// No favored seed is left, until there are others.
    pub(crate) is_idle: bool,
}

/// The work on one seed.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) id: SeedId,
    /// In earlier slices of this round.
    pub(crate) spent: Effort,
    /// Inputs that were begun.
    pub(crate) inputs: usize,
    pub(crate) lengthened: usize,
    /// Inputs whose copies come next, the last one first; then those that are to be probed.
    pub(crate) fresh: Vec<Vec<u8>>,
    pub(crate) unprobed: VecDeque<Vec<u8>>,
    pub(crate) step: Option<Step>,
}

/// The work on one input.
#[derive(Debug)]
pub(crate) enum Step {
    Copies(Copies),
    Probe(Probe),
}

impl Step {
    pub(crate) fn input(&self) -> &[u8] {
        match self {
            Self::Copies(copies) => &copies.input,
            Self::Probe(probe) => &probe.input,
        }
    }
}

/// Copies of bytes of the input.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) input: Vec<u8>,
    pub(crate) phase: CopiesPhase,
}

#[derive(Debug)]
pub(crate) enum CopiesPhase {
    Begun,
    Learning(OwnLog, Learning),
    Coloring(Coloring),
    Editing(Editing),
}

/// Fields that may have to be repaired.
#[derive(Debug)]
pub(crate) struct Learning {
    /// Those that are left.
    pub(crate) suspects: VecDeque<Vec<Suspect>>,
    /// What runs have said of the first ones: asked again, they are not run again.
    pub(crate) answers: Vec<Option<u64>>,
}

#[derive(Debug)]
pub(crate) struct Coloring {
    pub(crate) log: OwnLog,
    pub(crate) colored: Vec<u8>,
    pub(crate) colored_log: OwnLog,
    pub(crate) parts: VecDeque<Range<usize>>,
    pub(crate) runs_left: usize,
}

#[derive(Debug)]
pub(crate) struct Editing {
    pub(crate) base: SiteCounts,
    pub(crate) edits: Vec<Edit>,
    /// Those that are still to be tried with the log; then the usual runs come.
    pub(crate) chosen: VecDeque<Edit>,
    pub(crate) extensions: usize,
    pub(crate) flipping: Vec<Vec<u8>>,
    pub(crate) joint: Vec<Edit>,
    pub(crate) tried: BTreeSet<Place>,
    pub(crate) is_tried: bool,
    /// Usual runs, and their time.
    pub(crate) done: usize,
    pub(crate) spent: Duration,
}

/// Operands that are calculated from the input.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) input: Vec<u8>,
    pub(crate) phase: ProbePhase,
}

#[derive(Debug)]
pub(crate) enum ProbePhase {
    Begun,
    Probing(Watch, Probing),
    Solving(Solving),
}

/// An open comparison of two numbers.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) place: Place,
    /// Where the numbers begin, of memory or text.
    pub(crate) part: Option<usize>,
    pub(crate) kind: ComparisonKind,
    pub(crate) bytes: usize,
    pub(crate) operands: [u64; 2],
    pub(crate) changes: [Vec<Change>; 2],
    /// Where an inserted byte moves one of them, and what they are then.
    pub(crate) growth: Option<(usize, [u64; 2])>,
}

/// The open comparisons of one input.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) all: Vec<Watched>,
    pub(crate) by_place: HashMap<Place, usize>,
    pub(crate) base: SiteCounts,
    /// By a hash of the site: whether there may be one of it. Most sites of a log are not watched.
    pub(crate) sites: Vec<bool>,
}

/// How far the bytes of the input were changed.
#[derive(Debug)]
pub(crate) struct Probing {
    pub(crate) left: usize,
    /// Insertions that are done: the first one is that of a byte at the end.
    pub(crate) insertions: usize,
    /// Kinds of changes that are done, and parts that are left of the next one.
    pub(crate) changes: usize,
    pub(crate) parts: VecDeque<Range<usize>>,
    /// Bytes whose change ends the run before something open.
    pub(crate) stops: Vec<bool>,
    /// These, and those that move what is watched; at first those that are known of the seed.
    pub(crate) deciding: Vec<bool>,
    /// Bits of these that are done.
    pub(crate) bits: usize,
}

#[derive(Debug)]
pub(crate) struct Solving {
    pub(crate) base: SiteCounts,
    /// Those that are left.
    pub(crate) dependents: VecDeque<Dependent>,
    pub(crate) flipping: Vec<Vec<u8>>,
    /// On the first one, if that is begun.
    pub(crate) attempts: Option<Attempts>,
}

/// The attempts on one operand. The solvers begin again in each slice; what runs have said is not run again.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(crate) left: usize,
    pub(crate) extensions: usize,
    pub(crate) answers: Vec<Option<[u64; 2]>>,
}
