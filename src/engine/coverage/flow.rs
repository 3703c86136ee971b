//! Control flow of a target at the granularity of its counters: blocks, their successors and calls.

use std::ops::Range;

use rustc_hash::FxHashMap as HashMap;

/// No block, counter or function.
pub(super) const NONE: u32 = u32::MAX;
/// Maximum number of blocks, about 40 bytes each; further functions are left out.
const MOST_BLOCKS: usize = 1 << 22;

/// A function as a table of a file describes it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FunctionFlow {
    /// Name used by calls in all files of the target.
    pub name: u64,
    /// True if its address is used other than by a call: it may be called by pointer.
    pub has_address: bool,
    /// The first one is the entry.
    pub blocks: Vec<BlockFlow>,
}

/// A block of a function.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BlockFlow {
    /// Index in the edge map.
    pub counter: Option<u32>,
    /// Successors, as positions in the function, each once.
    pub after: Vec<usize>,
    /// Names of called functions.
    pub calls: Vec<u64>,
    /// Comparisons that decide the successor ([`Comparison::site`]).
    ///
    /// [`Comparison::site`]: ffuzz_comparisons::log::Comparison::site
    pub sites: Vec<u32>,
}

/// Blocks of all functions. A function's blocks have consecutive numbers, and a block's dominated blocks follow it
/// directly.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    pub(super) functions: Vec<Function>,
    /// Counter of each block, or NONE.
    pub(super) counters: Vec<u32>,
    /// Immediate dominator of each block, or NONE.
    pub(super) dominators: Vec<u32>,
    /// Number of blocks that each block dominates, itself included.
    dominated: Vec<u32>,
    /// Number of counted blocks before each block; one entry more than blocks.
    counted: Vec<u32>,
    after: Lists,
    /// Called functions by block (`calls`) and by function (`called`, each once).
    calls: Lists,
    called: Lists,
    sites: Lists,
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) blocks: Range<u32>,
    pub(super) has_address: bool,
}

/// Many short lists of numbers.
#[derive(Clone, Debug, Default)]
struct Lists {
    ends: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn push(&mut self, items: impl Iterator<Item = u32>) {
        self.items.extend(items);
        self.ends.push(self.items.len() as u32);
    }

    /// Items of a range of lists.
    fn of(&self, lists: Range<u32>) -> &[u32] {
        let end = |list: u32| match list.checked_sub(1) {
            Some(last) => self.ends[last as usize] as usize,
            None => 0,
        };
        &self.items[end(lists.start)..end(lists.end)]
    }
}

impl Flow {
    /// Builds the flow. Functions without blocks are left out; calls of an ambiguous name are ignored.
    #[must_use]
    pub fn new(functions: &[FunctionFlow]) -> Self {
        let mut room = MOST_BLOCKS;
        let fits = |function: &&FunctionFlow| {
            let size = function.blocks.len();
            let fits = (1..=room).contains(&size);
            room -= if fits { size } else { 0 };
            fits
        };
        let functions: Vec<&FunctionFlow> = functions.iter().filter(fits).collect();
        let mut names = HashMap::default();
        for (number, function) in (0..).zip(&functions) {
            let known = names.entry(function.name).or_insert(number);
            if *known != number {
                *known = NONE;
            }
        }
        let mut flow = Self { counted: vec![0], ..Self::default() };
        for function in functions {
            flow.add(function, &names);
        }
        flow
    }

    fn add(&mut self, function: &FunctionFlow, names: &HashMap<u64, u32>) {
        let first = self.blocks();
        let after: Vec<&[usize]> = function.blocks.iter().map(|block| &*block.after).collect();
        let dominators = dominators(&after);
        let order = by_dominator(&dominators);
        let mut number = vec![NONE; order.len()];
        order.iter().zip(first..).for_each(|(block, at)| number[*block] = at);
        for block in &order {
            let BlockFlow { counter, after, calls, sites } = &function.blocks[*block];
            self.counters.push(counter.unwrap_or(NONE));
            self.dominators.push(dominators[*block].map_or(NONE, |dominator| number[dominator]));
            self.dominated.push(1);
            let counted = self.counted.last().copied().unwrap_or(0);
            self.counted.push(counted + u32::from(counter.is_some()));
            self.after.push(after.iter().map(|to| number[*to]));
            let known = calls.iter().filter_map(|name| names.get(name).copied());
            self.calls.push(known.filter(|function| *function != NONE));
            self.sites.push(sites.iter().copied());
        }
        for block in (first..self.blocks()).rev() {
            let dominator = self.dominators[block as usize];
            if dominator != NONE {
                self.dominated[dominator as usize] += self.dominated[block as usize];
            }
        }
        let blocks = first..self.blocks();
        let mut called = self.calls(blocks.clone()).to_vec();
        called.sort_unstable();
        called.dedup();
        self.called.push(called.into_iter());
        self.functions.push(Function { blocks, has_address: function.has_address });
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.counters.len() as u32
    }

    /// `block` and the blocks that it dominates.
    pub(super) fn behind(&self, block: u32) -> Range<u32> {
        block..block + self.dominated[block as usize]
    }

    /// Number of `blocks` with a counter.
    pub(super) fn counted(&self, blocks: Range<u32>) -> u32 {
        self.counted[blocks.end as usize] - self.counted[blocks.start as usize]
    }

    pub(super) fn after(&self, block: u32) -> &[u32] {
        self.after.of(block..block + 1)
    }

    /// Functions that `blocks` call, possibly repeated.
    pub(super) fn calls(&self, blocks: Range<u32>) -> &[u32] {
        self.calls.of(blocks)
    }

    /// Functions that `function` calls, each once.
    pub(super) fn called_by(&self, function: u32) -> &[u32] {
        self.called.of(function..function + 1)
    }

    pub(super) fn sites(&self, block: u32) -> &[u32] {
        self.sites.of(block..block + 1)
    }
}

/// Orders the blocks so that each is directly followed by those it dominates. The first block stays first.
fn by_dominator(dominators: &[Option<usize>]) -> Vec<usize> {
    let mut dominated = vec![Vec::new(); dominators.len()];
    for (block, dominator) in dominators.iter().enumerate().rev() {
        if let Some(dominator) = dominator {
            dominated[*dominator].push(block);
        }
    }
    let roots = (0..dominators.len()).filter(|block| dominators[*block].is_none());
    let mut open: Vec<usize> = roots.rev().collect();
    let mut order = Vec::with_capacity(dominators.len());
    while let Some(block) = open.pop() {
        order.push(block);
        open.append(&mut dominated[block]);
    }
    order
}

/// Immediate dominators; `after` lists the successors of each block. Paths start at the first block and at blocks
/// without predecessors; a cycle without predecessors starts at any of its blocks (Georgiadis: Linear-Time Algorithms
/// for Dominators and Related Problems, 2005, section 2.3: SEMI-NCA).
#[must_use]
pub fn dominators(after: &[&[usize]]) -> Vec<Option<usize>> {
    let Search { order, mut parents, numbers } = Search::new(after);
    let mut before = vec![Vec::new(); order.len()];
    for (block, after) in after.iter().enumerate() {
        after.iter().for_each(|to| before[numbers[*to]].push(numbers[block]));
    }
    // From here on blocks are numbered in search order. Number 0 is the virtual root of all paths.
    let mut dominators = parents.clone();
    let mut semi: Vec<usize> = (0..order.len()).collect();
    let mut least = semi.clone();
    let mut way = Vec::new();
    for block in (1..order.len()).rev() {
        semi[block] = dominators[block];
        for from in &before[block] {
            let reached = least_on_way(*from, block, &mut parents, &mut least, &semi, &mut way);
            semi[block] = semi[block].min(semi[reached]);
        }
    }
    for block in 1..order.len() {
        while dominators[block] > semi[block] {
            dominators[block] = dominators[dominators[block]];
        }
    }
    let mut found = vec![None; after.len()];
    for (block, dominator) in order.iter().zip(dominators).skip(1) {
        found[*block] = (dominator != 0).then(|| order[dominator]);
    }
    found
}

/// Finds the block with the least semidominator on the path from `block` up to the first block that is not done, and
/// compresses the path. Blocks from `done` on are done.
fn least_on_way(
    block: usize,
    done: usize,
    parents: &mut [usize],
    least: &mut [usize],
    semi: &[usize],
    way: &mut Vec<usize>,
) -> usize {
    way.clear();
    let mut at = block;
    while parents[at] > done {
        way.push(at);
        at = parents[at];
    }
    // `least[at]` is already final. Each other block inherits from the one above.
    let (top, mut best) = (parents[at], least[at]);
    while let Some(at) = way.pop() {
        if semi[best] < semi[least[at]] {
            least[at] = best;
        }
        best = least[at];
        parents[at] = top;
    }
    least[block]
}

/// A depth-first search.
struct Search {
    /// Blocks in search order, after an entry for the virtual root.
    order: Vec<usize>,
    /// Parent of each block, by search order.
    parents: Vec<usize>,
    /// Search number of each block.
    numbers: Vec<usize>,
}

impl Search {
    fn new(after: &[&[usize]]) -> Self {
        let mut has_before = vec![false; after.len()];
        after.iter().copied().flatten().for_each(|to| has_before[*to] = true);
        let roots = (0..after.len()).filter(|block| *block == 0 || !has_before[*block]);
        let mut search = Self { order: vec![0], parents: vec![0], numbers: vec![0; after.len()] };
        for root in roots.chain(0..after.len()) {
            let mut open = vec![(root, 0)];
            while let Some((block, parent)) = open.pop() {
                if search.numbers[block] == 0 {
                    search.numbers[block] = search.order.len();
                    search.order.push(block);
                    search.parents.push(parent);
                    let number = search.numbers[block];
                    open.extend(after[block].iter().rev().map(|to| (*to, number)));
                }
            }
        }
        search
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(after: &[Vec<usize>]) -> Vec<Option<usize>> {
        dominators(&after.iter().map(|after| &**after).collect::<Vec<_>>())
    }

    #[test]
    fn circles_that_nothing_leads_to_are_no_trouble() {
        let after = [vec![1], vec![0, 2], vec![], vec![2]];
        assert_eq!(found(&after), [None, Some(0), None, None]);
    }

    #[test]
    fn a_long_function_takes_no_long_time() {
        // Each block leads on, or to the last one.
        let last = 300_000;
        let mut after: Vec<Vec<usize>> = (0..last).map(|block| vec![block + 1, last]).collect();
        after.push(vec![]);
        let found = found(&after);
        assert_eq!((found[last], found[last - 1]), (Some(0), Some(last - 2)));
    }

    /// Blocks that ways from `starts` reach without coming to `without`.
    fn reached(after: &[Vec<usize>], starts: &[usize], without: usize) -> Vec<bool> {
        let (mut seen, mut open) = (vec![false; after.len()], starts.to_vec());
        while let Some(block) = open.pop() {
            if block != without && !std::mem::replace(&mut seen[block], true) {
                open.extend(&after[block]);
            }
        }
        seen
    }

    /// Where ways begin.
    fn starts(after: &[Vec<usize>]) -> Vec<usize> {
        let has_before = |block: usize| after.iter().flatten().any(|to| *to == block);
        let all = 0..after.len();
        let mut starts: Vec<usize> =
            all.clone().filter(|it| *it == 0 || !has_before(*it)).collect();
        for block in all {
            if !reached(after, &starts, usize::MAX)[block] {
                starts.push(block);
            }
        }
        starts
    }

    /// The one of those without which no way leads to a block that all the others dominate.
    fn by_definition(after: &[Vec<usize>]) -> Vec<Option<usize>> {
        let starts = starts(after);
        let ways: Vec<_> = (0..after.len()).map(|it| reached(after, &starts, it)).collect();
        let is_over = |one: usize, block: usize| one != block && !ways[one][block];
        let over = |block: usize| (0..after.len()).filter(move |one| is_over(*one, block));
        (0..after.len()).map(|block| over(block).max_by_key(|one| over(*one).count())).collect()
    }

    proptest! {
        #[test]
        fn dominators_are_what_their_name_says(
            after in proptest::collection::vec(proptest::collection::vec(0usize..9, 0..4), 9)
        ) {
            prop_assert_eq!(found(&after), by_definition(&after));
        }

        #[test]
        fn what_a_block_dominates_follows_it(
            after in proptest::collection::vec(proptest::collection::vec(0usize..9, 0..4), 9)
        ) {
            let dominators = found(&after);
            let order = by_dominator(&dominators);
            prop_assert_eq!(order[0], 0);
            for (at, block) in order.iter().enumerate() {
                if let Some(dominator) = dominators[*block] {
                    let above = order.iter().position(|it| *it == dominator).unwrap();
                    let between = &order[above + 1..=at];
                    let is_below = |mut it: usize| loop {
                        match dominators[it] {
                            Some(up) if up == dominator => break true,
                            Some(up) => it = up,
                            None => break false,
                        }
                    };
                    prop_assert!(between.iter().all(|it| is_below(*it)));
                }
            }
        }
    }
}
