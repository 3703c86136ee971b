//! Copies of functions that count blocks and critical edges, as SanitizerCoverage does, and the jumps from the
//! originals to the copies. A block has no counter of its own if later blocks show how often it ran.
//!
//! A copy is used only where everything that leads into the function is known ([`Blocks::is_closed`]), so that no
//! jump overwrites code that is entered in its middle. Calls are made from their original place, so return addresses
//! and unwinding are the same as without copies. Code after a call without room for a jump also runs in its original
//! place, until the next jump to the copy.

mod function;
mod writer;

use std::fs;
use std::path::Path;

use crate::blocks::{Blocks, branches, code};
use crate::choice::is_language;
use ffuzz_config::options::NativeDomain;
use function::Function;
use writer::Writer;

/// Code and jumps that the runtime adds to a file.
#[derive(Debug, Default)]
pub struct Detours {
    /// Code of the copies, as if it stood at address 0 of the file.
    pub code: Vec<u8>,
    /// Address of each jump in the file, and its destination as an offset in `code`; ascending.
    pub jumps: Vec<(u32, u32)>,
    /// Offsets in `code` of 32-bit distances to addresses of the file, which the runtime relocates
    /// (`runtime/native/detours.c`). All other code is position-independent.
    pub fields: Vec<u32>,
    /// Number of counters after those of the blocks.
    pub edges: u32,
    /// How each block is counted.
    pub counted_by: Vec<CountedBy>,
}

/// Kinds of counters in the copies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Amount {
    /// Coverage: one byte for each block and edge.
    #[default]
    Hits,
    /// In addition, the executions of each block in eight bytes.
    Executions,
}

impl Amount {
    /// Counters that these domains need.
    pub fn of(domains: &[NativeDomain]) -> Self {
        match domains.iter().any(|domain| domain.counts_blocks()) {
            true => Self::Executions,
            false => Self::Hits,
        }
    }
}

/// Counter of a block's executions. Only [`Self::Breakpoint`] needs a breakpoint in the original.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CountedBy {
    #[default]
    Breakpoint,
    Copy,
    /// The counters of later blocks; the copy has none for this block.
    Others,
}

/// Detours of a file.
pub fn of(file: &object::File<'_>, blocks: &Blocks, amount: Amount) -> Detours {
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

/// Numbers of counted blocks and edges of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    /// Blocks counted by copies of their functions, not by breakpoints.
    pub blocks: usize,
    /// Edges that the copies count in addition.
    pub edges: usize,
}

impl Copied {
    /// Counts those of a file with these `blocks`. The language runtime has no copies.
    #[must_use]
    pub fn of(path: &Path, blocks: &Blocks) -> Self {
        let Ok(bytes) = fs::read(path) else { return Self::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Self::default() };
        let detours = match is_language(path) {
            true => Detours::default(),
            false => of(&file, blocks, Amount::Hits),
        };
        let counted = detours.counted_by.iter().filter(|by| **by != CountedBy::Breakpoint);
        Self { blocks: counted.count(), edges: detours.edges as usize }
    }
}
