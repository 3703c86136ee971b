//! Copies of functions that count blocks, and edges that no block stands for, as SanitizerCoverage does; and the jumps
//! that lead from the originals to them. A block has no counter of its own if those after it show how often it ran.
//!
//! A copy is used only where all that leads into the function is known ([`Blocks::is_closed`]), so that no jump
//! takes the place of something that is reached in its middle. Calls are made from their original place: what a
//! function returns to, and what an exception unwinds through, is what it is without copies. The code that follows a
//! call and has no room for a jump runs in its original place, too, until the next jump to the copy.

mod function;
mod writer;

use crate::blocks::{Blocks, branches, code};
use ffuzz_config::options::NativeDomain;
use function::Function;
use writer::Writer;

/// What the runtime adds to a file.
#[derive(Debug, Default)]
pub(super) struct Detours {
    /// The copies, as if they stood at address 0 of the file.
    pub(super) code: Vec<u8>,
    /// Address in the file, and place in the code that it leads to; ascending.
    pub(super) jumps: Vec<(u32, u32)>,
    /// Places in the code of 32-bit distances to addresses of the file, to which the runtime adds what is missing
    /// (`runtime/native/detours.c`). Everything else in the code is relative to itself.
    pub(super) fields: Vec<u32>,
    /// Number of counters after those of the blocks.
    pub(super) edges: u32,
    /// Of each block.
    pub(super) counted_by: Vec<CountedBy>,
}

/// What the copies count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Amount {
    /// Coverage: one byte for each block and edge.
    #[default]
    Hits,
    /// The executions of each block as well, in eight bytes.
    Executions,
}

impl Amount {
    /// What these domains need.
    pub(super) fn of(domains: &[NativeDomain]) -> Self {
        match domains.iter().any(|domain| domain.counts_blocks()) {
            true => Self::Executions,
            false => Self::Hits,
        }
    }
}

/// What shows that a block ran. Only the first one needs a breakpoint in the original place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum CountedBy {
    #[default]
    Breakpoint,
    Copy,
    /// The counters after it; its copy has none.
    Others,
}

/// Those of a file.
pub(super) fn of(file: &object::File<'_>, blocks: &Blocks, amount: Amount) -> Detours {
    let (mut functions, mut others) = (Vec::new(), Vec::new());
    for (range, is_closed) in blocks.ranges.iter().zip(&blocks.is_closed) {
        let Some(bytes) = code(file, range) else { continue };
        match Function::read(bytes, range, blocks).filter(|_| *is_closed) {
            Some(function) => functions.push(function),
            None => others.extend(branches(bytes, range.start)),
        }
    }
    let arrivals = function::arrivals(&functions, &others, blocks);
    let mut writer = Writer::new(blocks, &arrivals, amount);
    functions.iter().for_each(|function| writer.write(function));
    writer.finish()
}
