//! The frontier: reached blocks with successors that no run has reached, and how much code lies behind these.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap as HashMap;

use super::flow::{Flow, NONE};

/// Maximum number of unentered functions examined per fork.
const MOST_CALLED: u32 = 64;
/// Number of counters per word.
const WORD: usize = u64::BITS as usize;

/// State of each block, updated from the virgin map, and the forks with ways that no run takes.
#[derive(Debug, Default)]
pub struct Frontier {
    flow: Flow,
    /// Block of each counter and that block's function, or NONE.
    places: Vec<[u32; 2]>,
    /// Counters hit at the last update, one bit each.
    hit: Vec<u64>,
    /// State of each block, and for a reached block the counter that shows it.
    states: Vec<State>,
    shown_by: Vec<u32>,
    /// By function: true if it was entered, and its edges from a reached block to a shut one.
    entered: Vec<bool>,
    edges: Vec<Vec<[u32; 2]>>,
    forks: Vec<Fork>,
    /// By comparison site: the largest [`Fork::behind`] of the forks that it decides.
    behind: HashMap<u32, u32>,
    steps: u64,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// No counter shows it.
    #[default]
    Unknown,
    Reached,
    Shut,
}

/// A reached block with unreached successors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fork {
    /// Numbers in the [`Flow`] of the block and of its first shut successor.
    pub block: u32,
    pub to: u32,
    /// Numbers of shut successors and of all successors.
    pub shut: u32,
    pub ways: u32,
    /// Number of counters behind the shut successors: in blocks that these dominate, and in all unentered functions
    /// called from there, directly or not.
    pub behind: u32,
    /// Number of such functions, at most 64.
    pub functions: u32,
}

/// Possible callers of an unentered function.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Callers {
    /// An entered function.
    Reached,
    /// No entered function, but its address is used.
    ByPointer,
    /// None known, or only unentered functions.
    Nobody,
}

/// A function that no run has entered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unentered {
    /// First counter, and number of counters.
    pub counter: u32,
    pub counters: u32,
    pub callers: Callers,
}

/// Number of functions that no run has entered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NeverEntered {
    /// Called by an entered function.
    pub called: u32,
    /// Not called by one, but their address is used.
    pub by_pointer: u32,
    /// All others.
    pub uncalled: u32,
    /// Counters in all of them.
    pub counters: u32,
}

impl Frontier {
    /// The frontier before any run.
    #[must_use]
    pub fn new(flow: Flow) -> Self {
        let mut places = Vec::new();
        for (function, known) in (0..).zip(&flow.functions) {
            for block in known.blocks.clone() {
                let counter = flow.counters[block as usize];
                if counter != NONE {
                    let counter = counter as usize;
                    if places.len() <= counter {
                        places.resize(counter + 1, [NONE; 2]);
                    }
                    places[counter] = [block, function];
                }
            }
        }
        Self {
            hit: vec![0; places.len().div_ceil(WORD)],
            places,
            states: vec![State::Unknown; flow.blocks() as usize],
            shown_by: vec![NONE; flow.blocks() as usize],
            entered: vec![false; flow.functions.len()],
            edges: vec![Vec::new(); flow.functions.len()],
            flow,
            ..Self::default()
        }
    }

    /// Updates the state from the virgin map, see [`merge`](super::merge). Returns true if the forks may have changed.
    pub fn update(&mut self, virgin: &[u8]) -> bool {
        self.steps = self.hit.len() as u64 + 1;
        let changed = self.take_hits(virgin);
        let has_changed = !changed.is_empty();
        for function in changed {
            self.look_at(function);
        }
        if has_changed {
            self.list();
        }
        has_changed
    }

    /// Cost of the last update, in steps of a few nanoseconds.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// False if the control flow of the target is not known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.flow.blocks() > 0
    }

    /// All forks, those with most counters behind them first; ties by block number.
    #[must_use]
    pub fn forks(&self) -> &[Fork] {
        &self.forks
    }

    /// Largest [`Fork::behind`] of the forks that a comparison decides; 0 if unknown.
    #[must_use]
    pub fn behind(&self, site: u32) -> u32 {
        self.behind.get(&site).copied().unwrap_or(0)
    }

    /// Comparisons that decide the successor of `block`.
    #[must_use]
    pub fn sites(&self, block: u32) -> &[u32] {
        self.flow.sites(block)
    }

    /// A counter that is hit only in runs that reach `block`; None if `block` is unreached.
    #[must_use]
    pub fn counter_of(&self, block: u32) -> Option<u32> {
        let is_reached = self.states[block as usize] == State::Reached;
        is_reached.then(|| self.shown_by[block as usize])
    }

    /// First counter of `block` or of the blocks it dominates; None if they have none.
    #[must_use]
    pub fn first_counter(&self, block: u32) -> Option<u32> {
        let behind = self.flow.behind(block).map(|block| self.flow.counters[block as usize]);
        behind.into_iter().find(|counter| *counter != NONE)
    }

    /// Counters behind a fork, see [`Fork::behind`].
    #[must_use]
    pub fn counters_behind(&self, fork: &Fork) -> Vec<u32> {
        let is_shut = |to: &&u32| self.states[**to as usize] == State::Shut;
        let ways = self.flow.after(fork.block).iter().filter(is_shut).copied();
        let mut counters = Vec::new();
        let (mut seen, mut open) = (vec![0; self.entered.len()], Vec::new());
        self.each_behind(ways, &mut seen, 1, &mut open, |blocks| {
            let all = blocks.map(|block| self.flow.counters[block as usize]);
            counters.extend(all.filter(|counter| *counter != NONE));
        });
        counters
    }

    /// First counter of each shut successor of a fork.
    #[must_use]
    pub fn shut_ways(&self, fork: &Fork) -> Vec<u32> {
        let is_shut = |to: &&u32| self.states[**to as usize] == State::Shut;
        let ways = self.flow.after(fork.block).iter().filter(is_shut);
        ways.filter_map(|to| self.first_counter(*to)).collect()
    }

    /// Calls `visit` with the blocks that `ways` dominate and with the blocks of unentered functions called from there,
    /// directly or not, at most 64. Returns the number of these functions and of the calls examined. Skips functions
    /// marked with `number` in `seen`.
    fn each_behind(
        &self,
        ways: impl Iterator<Item = u32>,
        seen: &mut [u32],
        number: u32,
        open: &mut Vec<u32>,
        mut visit: impl FnMut(Range<u32>),
    ) -> (u32, u64) {
        open.clear();
        for to in ways {
            let own = self.flow.behind(to);
            open.extend_from_slice(self.flow.calls(own.clone()));
            visit(own);
        }
        let (mut functions, mut calls) = (0, open.len() as u64);
        while let Some(function) = open.pop() {
            let at = function as usize;
            if self.entered[at] || std::mem::replace(&mut seen[at], number) == number {
                continue;
            }
            functions += 1;
            visit(self.flow.functions[at].blocks.clone());
            if functions == MOST_CALLED {
                break;
            }
            let called = self.flow.called_by(function);
            calls += called.len() as u64;
            open.extend_from_slice(called);
        }
        (functions, calls)
    }

    /// Counts the unentered functions by their possible callers.
    #[must_use]
    pub fn never_entered(&self) -> NeverEntered {
        let mut never = NeverEntered::default();
        for Unentered { counters, callers, .. } in self.unentered() {
            never.counters += counters;
            match callers {
                Callers::Reached => never.called += 1,
                Callers::ByPointer => never.by_pointer += 1,
                Callers::Nobody => never.uncalled += 1,
            }
        }
        never
    }

    /// Unentered functions in table order.
    #[must_use]
    pub fn unentered(&self) -> Vec<Unentered> {
        let mut called = vec![false; self.entered.len()];
        for (function, is_entered) in self.entered.iter().enumerate() {
            if *is_entered {
                let callees = self.flow.called_by(function as u32);
                callees.iter().for_each(|callee| called[*callee as usize] = true);
            }
        }
        let functions = self.flow.functions.iter().enumerate();
        let others = functions.filter(|(function, _)| !self.entered[*function]);
        let unentered = others.filter_map(|(function, known)| {
            let of_block = |block: u32| Some(self.flow.counters[block as usize]);
            let mut counters = known.blocks.clone().filter_map(of_block);
            let counter = counters.find(|counter| *counter != NONE)?;
            let callers = match (called[function], known.has_address) {
                (true, _) => Callers::Reached,
                (false, true) => Callers::ByPointer,
                (false, false) => Callers::Nobody,
            };
            Some(Unentered { counter, counters: self.flow.counted(known.blocks.clone()), callers })
        });
        unentered.collect()
    }

    fn is_hit(&self, counter: usize) -> bool {
        self.hit.get(counter / WORD).is_some_and(|word| word >> (counter % WORD) & 1 == 1)
    }

    /// Updates `hit`; returns the functions with a newly hit counter.
    fn take_hits(&mut self, virgin: &[u8]) -> Vec<usize> {
        let mut changed = Vec::new();
        for (index, virgin) in virgin.chunks(WORD).enumerate().take(self.hit.len()) {
            let mut hit = 0;
            for (bit, classes) in virgin.iter().enumerate() {
                hit |= u64::from(*classes != 0xff) << bit;
            }
            let mut new = hit & !self.hit[index];
            self.hit[index] |= hit;
            while new != 0 {
                let counter = index * WORD + new.trailing_zeros() as usize;
                new &= new - 1;
                let function = self.places.get(counter).map_or(NONE, |[_, function]| *function);
                if function != NONE {
                    changed.push(function as usize);
                }
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Computes the states of a function's blocks and its shut edges.
    fn look_at(&mut self, function: usize) {
        let blocks = self.flow.functions[function].blocks.clone();
        self.steps += 4 * u64::from(blocks.end - blocks.start);
        self.entered[function] = true;
        let mut open = Vec::new();
        for block in blocks.clone() {
            let counter = self.flow.counters[block as usize];
            self.states[block as usize] = match counter {
                NONE => State::Unknown,
                _ if self.is_hit(counter as usize) => State::Reached,
                _ => State::Shut,
            };
            if self.states[block as usize] == State::Reached {
                self.shown_by[block as usize] = counter;
                open.push(block);
            }
        }
        // A block without a counter is reached if it is the dominator or the only successor of a reached block.
        while let Some(block) = open.pop() {
            let only = match self.flow.after(block) {
                [only] => *only,
                _ => NONE,
            };
            for implied in [only, self.flow.dominators[block as usize]] {
                if implied != NONE && self.states[implied as usize] == State::Unknown {
                    self.states[implied as usize] = State::Reached;
                    self.shown_by[implied as usize] = self.shown_by[block as usize];
                    open.push(implied);
                }
            }
        }
        // A block is shut if all its successors are. Most successors have higher numbers.
        for block in blocks.clone().rev() {
            let after = self.flow.after(block);
            let is_shut = |to: &u32| self.states[*to as usize] == State::Shut;
            if self.states[block as usize] == State::Unknown
                && !after.is_empty()
                && after.iter().all(is_shut)
            {
                self.states[block as usize] = State::Shut;
            }
        }
        let edges = &mut self.edges[function];
        edges.clear();
        for block in blocks {
            let after = self.flow.after(block);
            if after.len() > 1 && self.states[block as usize] == State::Reached {
                let shut = after.iter().filter(|to| self.states[**to as usize] == State::Shut);
                edges.extend(shut.map(|to| [block, *to]));
            }
        }
    }

    /// Lists the forks of all functions in order, with the amount of code behind each.
    fn list(&mut self) {
        let mut seen = vec![0u32; self.entered.len()];
        let mut open = Vec::new();
        let mut steps = self.entered.len() as u64;
        let (mut forks, mut behind) = (std::mem::take(&mut self.forks), HashMap::default());
        forks.clear();
        let of_function = self.edges.iter().flat_map(|edges| edges.chunk_by(|a, b| a[0] == b[0]));
        for (number, edges) in (1..).zip(of_function) {
            let [block, to] = edges[0];
            let (shut, ways) = (edges.len() as u32, self.flow.after(block).len() as u32);
            let mut fork = Fork { block, to, shut, ways, behind: 0, functions: 0 };
            let to = edges.iter().map(|[_, to]| *to);
            let (functions, calls) = self.each_behind(to, &mut seen, number, &mut open, |blocks| {
                fork.behind += self.flow.counted(blocks);
            });
            fork.functions = functions;
            steps += 8 + calls;
            for site in self.flow.sites(block) {
                let most = behind.entry(*site).or_default();
                *most = fork.behind.max(*most);
            }
            forks.push(fork);
        }
        (self.forks, self.behind) = (forks, behind);
        self.steps += steps;
        self.forks.sort_unstable_by_key(|fork| (Reverse(fork.behind), fork.block));
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::{BlockFlow, FunctionFlow};
    use super::*;

    fn block(counter: Option<u32>, after: &[usize], calls: &[u64], sites: &[u32]) -> BlockFlow {
        BlockFlow { counter, after: after.to_vec(), calls: calls.to_vec(), sites: sites.to_vec() }
    }

    fn function(name: u64, blocks: Vec<BlockFlow>) -> FunctionFlow {
        FunctionFlow { name, has_address: name % 2 == 1, blocks }
    }

    /// `if (a) { if (b) f(); else g(); h(); }`, where f calls h, and nothing calls the last two.
    fn program() -> Frontier {
        let functions = [
            function(
                2,
                vec![
                    block(Some(0), &[1, 5], &[], &[100]),
                    block(None, &[2, 3], &[], &[101]),
                    block(Some(1), &[4], &[4], &[]),
                    block(Some(2), &[4], &[6], &[]),
                    block(None, &[5], &[8], &[]),
                    block(Some(3), &[], &[], &[]),
                ],
            ),
            function(4, vec![block(Some(4), &[1], &[8], &[]), block(Some(5), &[], &[], &[])]),
            function(6, vec![block(Some(6), &[], &[], &[])]),
            function(8, (10..20).map(|counter| block(Some(counter), &[], &[], &[])).collect()),
            function(9, vec![block(Some(30), &[], &[], &[])]),
            function(10, vec![block(Some(31), &[], &[], &[])]),
        ];
        Frontier::new(Flow::new(&functions))
    }

    fn virgin(hit: &[usize]) -> Vec<u8> {
        let mut virgin = vec![0xff; 40];
        hit.iter().for_each(|counter| virgin[*counter] = 0xfe);
        virgin
    }

    #[test]
    fn an_edge_that_no_run_takes_is_shut_and_what_it_leads_to_lies_behind() {
        let mut frontier = program();
        assert!(frontier.forks().is_empty());
        frontier.update(&virgin(&[0, 3]));
        // Two counters of the function, two of f, one of g, ten of h.
        let seen: Vec<_> = frontier.forks().iter().map(|it| (it.behind, it.functions)).collect();
        assert_eq!(seen, [(15, 3)]);
        assert_eq!((frontier.behind(100), frontier.behind(101)), (15, 0));
        let fork = frontier.forks()[0];
        assert_eq!((fork.shut, fork.ways, frontier.sites(fork.block)), (1, 2, &[100][..]));
        assert_eq!(
            (frontier.counter_of(fork.block), frontier.counter_of(fork.to)),
            (Some(0), None)
        );
        assert_eq!(frontier.first_counter(fork.to), Some(1));
        let mut behind = frontier.counters_behind(&fork);
        behind.sort_unstable();
        assert_eq!(behind, [1, 2, 4, 5, 6].into_iter().chain(10..20).collect::<Vec<_>>());
        let unentered = frontier.unentered().into_iter();
        let unentered: Vec<_> = unentered.map(|it| (it.counter, it.counters, it.callers)).collect();
        assert_eq!(unentered[..2], [(4, 2, Callers::Reached), (6, 1, Callers::Reached)]);
        assert_eq!(
            unentered[2..],
            [(10, 10, Callers::Reached), (30, 1, Callers::ByPointer), (31, 1, Callers::Nobody)]
        );
        let expected = NeverEntered { called: 3, by_pointer: 1, uncalled: 1, counters: 15 };
        assert_eq!(frontier.never_entered(), expected);

        // Through a block without a counter, and the ten of h are open now.
        frontier.update(&virgin(&[0, 1, 3, 4, 10]));
        let seen: Vec<_> = frontier.forks().iter().map(|it| (it.behind, it.functions)).collect();
        assert_eq!(seen, [(2, 1)]);
        assert_eq!((frontier.behind(100), frontier.behind(101)), (0, 2));
        assert_eq!(frontier.counter_of(frontier.forks()[0].block), Some(1));
    }

    #[test]
    fn what_no_counter_tells_is_no_edge() {
        // The counter of the last block stands for the one before, which it may also be reached without.
        let blocks = vec![
            block(Some(0), &[1, 2], &[], &[]),
            block(None, &[3], &[], &[]),
            block(None, &[3], &[], &[]),
            block(None, &[], &[], &[]),
        ];
        let mut frontier = Frontier::new(Flow::new(&[function(2, blocks)]));
        frontier.update(&virgin(&[0]));
        assert!(frontier.forks().is_empty());
        // Nor where only one way leads on: a call that does not return has no other side.
        let blocks = vec![block(Some(0), &[1], &[], &[]), block(Some(1), &[], &[], &[])];
        let mut frontier = Frontier::new(Flow::new(&[function(2, blocks)]));
        frontier.update(&virgin(&[0]));
        assert!(frontier.forks().is_empty());
    }

    #[test]
    fn a_name_of_two_functions_is_that_of_none() {
        let twice = || function(4, vec![block(Some(9), &[], &[], &[])]);
        let caller = vec![
            block(Some(0), &[1, 2], &[], &[]),
            block(Some(1), &[], &[4], &[]),
            block(Some(2), &[], &[], &[]),
        ];
        let functions = [function(2, caller), twice(), twice()];
        let mut frontier = Frontier::new(Flow::new(&functions));
        frontier.update(&virgin(&[0, 2]));
        assert_eq!((frontier.forks()[0].behind, frontier.forks()[0].functions), (1, 0));
    }

    #[test]
    fn a_large_program_takes_bounded_time() {
        // A million blocks, and each function calls the next three.
        let functions: Vec<FunctionFlow> = (0..50_000u32)
            .map(|number| {
                let first = number * 20;
                let blocks = (0..20).map(|at| {
                    let after: &[usize] = if at < 18 { &[at + 1, at + 2] } else { &[] };
                    let calls = (1..4).map(|next| u64::from(number + next));
                    BlockFlow {
                        calls: calls.collect(),
                        ..block(Some(first + at as u32), after, &[], &[])
                    }
                });
                FunctionFlow { name: number.into(), has_address: false, blocks: blocks.collect() }
            })
            .collect();
        let mut frontier = Frontier::new(Flow::new(&functions));
        let mut virgin = vec![0xff; 1_000_000];
        (0..1_000_000).step_by(40).for_each(|counter| virgin[counter] = 0);
        assert!(frontier.update(&virgin));
        let steps = frontier.steps();
        assert!(steps < 20_000_000, "{steps}");
        assert!(frontier.forks().len() >= 25_000);
        assert!(frontier.forks().iter().all(|fork| fork.functions <= MOST_CALLED));
        // Nothing has changed.
        assert!(!frontier.update(&virgin) && frontier.steps() < 20_000);
    }
}
