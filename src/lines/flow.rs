//! Blocks of machine code, and which counters say that each was reached, those without one included.
//!
//! clang leaves out the counter of a block from which, or to which, all ways lead: such a block
//! was reached if its only successor, or one whose only predecessor it is, was.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl};

use super::program::Function;

/// A stretch of code that is run from its beginning to its end.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) range: Range<u64>,
    /// It was reached if one of these counters has moved.
    pub(super) counters: Vec<usize>,
}

/// A block as the code has it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Block {
    range: Range<u64>,
    counter: Option<usize>,
    /// Positions of the blocks that may follow, or go before.
    after: Vec<usize>,
    before: Vec<usize>,
}

/// The stretches of a function.
pub(super) fn stretches(function: &Function<'_>, is_x86: bool) -> Vec<Stretch> {
    let blocks = if is_x86 { blocks(function) } else { counted_only(function) };
    let evidence = evidence(&blocks);
    let ranges = blocks.into_iter().map(|block| block.range);
    ranges.zip(evidence).map(|(range, counters)| Stretch { range, counters }).collect()
}

/// For processors whose code is not read here: the first instruction of each block with a counter.
fn counted_only(function: &Function<'_>) -> Vec<Block> {
    let block = |(pc, index): &(u64, usize)| Block {
        range: *pc..pc + 1,
        counter: Some(*index),
        after: vec![],
        before: vec![],
    };
    function.counters.iter().map(block).collect()
}

/// For each block the counters from which it follows that it was reached.
fn evidence(blocks: &[Block]) -> Vec<Vec<usize>> {
    let mut evidence = vec![Vec::new(); blocks.len()];
    for (index, block) in blocks.iter().enumerate() {
        let Some(counter) = block.counter else { continue };
        let mut waiting = vec![index];
        while let Some(index) = waiting.pop() {
            if evidence[index].last() == Some(&counter) {
                continue;
            }
            evidence[index].push(counter);
            let block = &blocks[index];
            let sides = [&block.after, &block.before].into_iter();
            let implied = sides.filter(|side| side.len() == 1).map(|side| side[0]);
            waiting.extend(implied.filter(|other| blocks[*other].counter.is_none()));
        }
    }
    evidence
}

/// Where a block ends, and what may come then.
#[derive(Debug, Default)]
struct Ends {
    /// Beginnings of blocks.
    starts: BTreeSet<u64>,
    /// By the address behind the last instruction.
    targets: BTreeMap<u64, Vec<u64>>,
    /// The same for jumps to a place that is not known before.
    computed: BTreeSet<u64>,
}

impl Ends {
    fn read(function: &Function<'_>) -> Self {
        let range = &function.range;
        let mut ends = Self::default();
        ends.starts.insert(range.start);
        ends.starts.extend(function.counters.iter().map(|(pc, _)| *pc));
        let mut decoder = Decoder::with_ip(64, function.code, range.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
            let targets = match instruction.flow_control() {
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    vec![target, next]
                }
                FlowControl::UnconditionalBranch => vec![target],
                FlowControl::Return | FlowControl::Exception => vec![],
                FlowControl::IndirectBranch => {
                    ends.computed.insert(next);
                    vec![]
                }
                FlowControl::Next
                | FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::Interrupt => continue,
            };
            ends.starts.extend(targets.iter().filter(|target| range.contains(target)));
            ends.starts.extend(Some(next).filter(|next| range.contains(next)));
            ends.targets.insert(next, targets);
        }
        ends
    }
}

fn blocks(function: &Function<'_>) -> Vec<Block> {
    let ends = Ends::read(function);
    let starts: Vec<u64> = ends.starts.iter().copied().collect();
    let position = |address: &u64| starts.binary_search(address).ok();
    let counters: BTreeMap<u64, usize> = function.counters.iter().copied().collect();
    let block = |(index, start): (usize, &u64)| {
        let end = starts.get(index + 1).copied().unwrap_or(function.range.end);
        let mut after: Vec<usize> = match ends.targets.get(&end) {
            Some(targets) => targets.iter().filter_map(position).collect(),
            None => position(&end).into_iter().collect(),
        };
        after.sort_unstable();
        after.dedup();
        let counter = counters.get(start).copied();
        Block { range: *start..end, counter, after, before: vec![] }
    };
    let mut blocks: Vec<Block> = starts.iter().enumerate().map(block).collect();
    for index in 0..blocks.len() {
        for next in blocks[index].after.clone() {
            blocks[next].before.push(index);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `if (a) { f(); if (b) g(); else h(); } end();`: the block of `f` has no counter.
    const CODE: &[u8] = &[
        0x85, 0xff, // 0: test edi, edi
        0x74, 0x0a, // 2: je 14
        0x90, 0x85, 0xf6, // 4: nop; test esi, esi
        0x74, 0x03, // 7: je 12
        0x90, 0xeb, 0x02, // 9: nop; jmp 14
        0x90, 0x90, // 12: nop; nop
        0x90, 0xc3, // 14: nop; ret
    ];

    fn function(counters: Vec<(u64, usize)>) -> Function<'static> {
        Function { range: 0..CODE.len() as u64, code: CODE, counters }
    }

    fn found(counters: Vec<(u64, usize)>) -> Vec<(u64, Vec<usize>)> {
        let stretches = stretches(&function(counters), true).into_iter();
        stretches.map(|stretch| (stretch.range.start, stretch.counters)).collect()
    }

    #[test]
    fn a_block_without_a_counter_was_reached_if_what_only_it_leads_to_was() {
        let found = found(vec![(0, 0), (9, 1), (12, 2)]);
        // f() follows from g() and from h(), and so does end().
        let expected = [(0, vec![0]), (4, vec![1, 2]), (9, vec![1]), (12, vec![2])];
        assert_eq!(found[..4], expected);
        assert_eq!(found[4], (14, vec![1, 2]));
    }

    #[test]
    fn a_counter_is_believed() {
        let all = vec![(0, 0), (4, 1), (9, 2), (12, 3), (14, 4)];
        assert!(found(all).into_iter().map(|(_, counters)| counters).eq((0..5).map(|n| vec![n])));
    }

    #[test]
    fn data_among_code_is_no_end() {
        let code = [0x06, 0x06, 0x90, 0xc3];
        let function = Function { range: 8..12, code: &code, counters: vec![(8, 0)] };
        assert!(blocks(&function).last().is_some_and(|block| block.range.end == 12));
    }
}
