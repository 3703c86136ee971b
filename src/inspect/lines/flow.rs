//! Blocks of machine code, and the counters that prove that a block was reached, even one without a counter.
//!
//! clang omits the counter of a block if the counters of other blocks imply it: every path to or from those
//! blocks leads through it. Such a block was reached if one of those was.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{ConditionCode, FlowControl, Mnemonic};

use super::program::{Function, Last, decoder};
use ffuzz_engine::coverage::flow::{BlockFlow, FunctionFlow, dominators};

/// A range of code that runs from its beginning to its end.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) range: Range<u64>,
    /// Its own counter.
    pub(super) counter: Option<usize>,
    /// Counters of which any one proves that the stretch was reached, the own one included.
    pub(super) counters: Vec<usize>,
}

/// A block of the machine code.
#[derive(Clone, Debug, Eq, PartialEq)]
struct CodeBlock {
    range: Range<u64>,
    counter: Option<usize>,
    /// Indices of the blocks that may follow.
    after: Vec<usize>,
}

/// Splits a function into stretches.
pub(super) fn stretches(function: &Function<'_>, is_x86: bool, last: &Last) -> Vec<Stretch> {
    if function.counters.is_empty() {
        return vec![Stretch { range: function.range.clone(), counter: None, counters: vec![] }];
    }
    let blocks = if is_x86 { blocks(function, last) } else { counted_only(function) };
    let evidence = evidence(&blocks);
    let stretch =
        |(CodeBlock { range, counter, .. }, counters)| Stretch { range, counter, counters };
    blocks.into_iter().zip(evidence).map(stretch).collect()
}

/// Calls in a function, tail jumps included: address and destination.
pub(super) fn calls(function: &Function<'_>) -> Vec<(u64, u64)> {
    let is_call = |flow| matches!(flow, FlowControl::Call | FlowControl::UnconditionalBranch);
    let mut decoder = decoder(function.code, function.range.start);
    let found = decoder.iter().filter(|instruction| is_call(instruction.flow_control()));
    found.map(|instruction| (instruction.ip(), instruction.near_branch_target())).collect()
}

/// Converts a function for the engine, with callees named by address. `counters`: range of the file's counters in the
/// edge map. `compared`: address and site of each comparison, ascending; the last one of a block decides its successor.
pub(super) fn function_flow(
    function: &Function<'_>,
    last: &Last,
    counters: &Range<usize>,
    compared: &[(u64, u32)],
) -> FunctionFlow {
    let blocks = blocks(function, last);
    let site = |block: &CodeBlock| {
        let before = compared.partition_point(|(at, _)| *at < block.range.end);
        let last = compared[..before].last().filter(|(at, _)| block.range.contains(at));
        last.map(|(_, site)| *site)
    };
    let mut flow: Vec<BlockFlow> = blocks
        .iter()
        .map(|block| BlockFlow {
            counter: block.counter.and_then(|number| u32::try_from(counters.start + number).ok()),
            after: block.after.clone(),
            calls: Vec::new(),
            sites: if block.after.len() > 1 { site(block).into_iter().collect() } else { vec![] },
        })
        .collect();
    for (place, target) in calls(function) {
        let block = blocks.partition_point(|block| block.range.start <= place);
        if !function.range.contains(&target)
            && let Some(block) = block.checked_sub(1)
        {
            flow[block].calls.push(target);
        }
    }
    FunctionFlow { name: function.range.start, has_address: true, blocks: flow }
}

/// First instruction of each block with a counter, for processors whose code is not decoded.
fn counted_only(function: &Function<'_>) -> Vec<CodeBlock> {
    let block = |(pc, index): &(u64, usize)| CodeBlock {
        range: *pc..pc + 1,
        counter: Some(*index),
        after: vec![],
    };
    function.counters.iter().map(block).collect()
}

/// For each block, the counters that imply that it was reached: those of blocks to which, or from which,
/// every path leads through it.
fn evidence(blocks: &[CodeBlock]) -> Vec<Vec<usize>> {
    let after: Vec<&[usize]> = blocks.iter().map(|block| &*block.after).collect();
    let (earlier, later) = (dominators(&after), postdominators(&after));
    let mut evidence = vec![Vec::new(); blocks.len()];
    for (index, block) in blocks.iter().enumerate() {
        let Some(counter) = block.counter else { continue };
        let mut waiting = vec![index];
        while let Some(index) = waiting.pop() {
            if evidence[index].last() == Some(&counter) {
                continue;
            }
            evidence[index].push(counter);
            let implied = [later[index], earlier[index]].into_iter().flatten();
            // A block with a counter needs no other evidence, and covers the blocks after it.
            waiting.extend(implied.filter(|other| blocks[*other].counter.is_none()));
        }
    }
    evidence
}

/// For each block, the first one on every path from it to an end of the function.
fn postdominators(after: &[&[usize]]) -> Vec<Option<usize>> {
    // Add a block that follows all ends, and reverse the graph.
    let mut before = vec![Vec::new(); after.len() + 1];
    let (end, blocks) = before.split_at_mut(1);
    for (block, after) in after.iter().enumerate() {
        after.iter().for_each(|to| blocks[*to].push(block + 1));
        end[0].extend(after.is_empty().then_some(block + 1));
    }
    let before: Vec<&[usize]> = before.iter().map(|before| &**before).collect();
    let found = dominators(&before).into_iter().skip(1);
    found.map(|block| block.and_then(|block| block.checked_sub(1))).collect()
}

/// Block boundaries and possible successors.
#[derive(Debug, Default)]
struct Ends {
    /// Start addresses of blocks.
    starts: BTreeSet<u64>,
    /// Successors, by the address after a block's last instruction.
    targets: BTreeMap<u64, Vec<u64>>,
    /// Ends of blocks with a jump to an unknown destination, in the same form.
    computed: BTreeSet<u64>,
}

impl Ends {
    fn read(function: &Function<'_>, last: &Last) -> Self {
        let range = &function.range;
        let mut ends = Self::default();
        ends.starts.insert(range.start);
        ends.starts.extend(function.counters.iter().map(|(pc, _)| *pc));
        let mut decoder = decoder(function.code, range.start);
        let mut asks_for_log = false;
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
            asks_for_log |= last.reads_log_flag(&instruction);
            let targets = match instruction.flow_control() {
                // Only the branch without logging belongs to the function.
                FlowControl::ConditionalBranch if std::mem::take(&mut asks_for_log) => {
                    let is_set = instruction.condition_code() == ConditionCode::ne;
                    vec![if is_set { next } else { target }]
                }
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    vec![target, next]
                }
                FlowControl::UnconditionalBranch => vec![target],
                FlowControl::Return | FlowControl::Exception => vec![],
                FlowControl::IndirectBranch => {
                    ends.computed.insert(next);
                    vec![]
                }
                FlowControl::Call | FlowControl::IndirectCall if last.ends(&instruction) => vec![],
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

fn blocks(function: &Function<'_>, last: &Last) -> Vec<CodeBlock> {
    let ends = Ends::read(function, last);
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
        CodeBlock { range: *start..end, counter, after }
    };
    let mut blocks: Vec<CodeBlock> = starts.iter().enumerate().map(block).collect();
    // Padding before a loop is no path to it.
    let reached: BTreeSet<usize> = blocks.iter().flat_map(|block| block.after.clone()).collect();
    for (index, block) in blocks.iter_mut().enumerate().skip(1) {
        if !reached.contains(&index) && is_filling(function, &block.range) {
            block.after.clear();
        }
    }
    blocks
}

/// Returns true if the code does nothing (nops only).
fn is_filling(function: &Function<'_>, range: &Range<u64>) -> bool {
    let place = |address: u64| (address - function.range.start) as usize;
    let code = function.code.get(place(range.start)..place(range.end)).unwrap_or_default();
    decoder(code, range.start).iter().all(|instruction| instruction.mnemonic() == Mnemonic::Nop)
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
        let stretches = stretches(&function(counters), true, &Last::default()).into_iter();
        stretches.map(|stretch| (stretch.range.start, stretch.counters)).collect()
    }

    #[test]
    fn a_block_without_a_counter_was_reached_if_what_only_it_leads_to_was() {
        let found = found(vec![(0, 0), (9, 1), (12, 2)]);
        // g() and h() prove f(); every counter proves end(), which all paths reach.
        let expected = [(0, vec![0]), (4, vec![1, 2]), (9, vec![1]), (12, vec![2])];
        assert_eq!(found[..4], expected);
        assert_eq!(found[4], (14, vec![0, 1, 2]));
    }

    #[test]
    fn a_loop_behind_a_block_says_that_it_was_reached() {
        // f(); do { g(); } while (a); h();: the first and the last block have no counter.
        let code = [0x90, 0x90, 0x85, 0xff, 0x75, 0xfb, 0x90, 0xc3];
        let function = Function { range: 0..8, code: &code, counters: vec![(1, 0), (6, 1)] };
        let found = stretches(&function, true, &Last::default()).into_iter();
        let found: Vec<_> = found.map(|it| (it.range.start, it.counters)).collect();
        assert_eq!(found, [(0, vec![0]), (1, vec![0]), (6, vec![1])]);
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
        assert!(
            blocks(&function, &Last::default()).last().is_some_and(|block| block.range.end == 12)
        );
    }
}
