//! The control flow of a target's files, by which the engine finds unreached branches ([`Frontier`]):
//! from the section that a pass of `ffuzz-cc` writes, or from machine code without that section.
//!
//! [`Frontier`]: ffuzz_engine::coverage::frontier::Frontier

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use crate::lines::{self, FileCounters};
use crate::sites;
use ffuzz_engine::coverage::flow::{BlockFlow, FunctionFlow};
use ffuzz_engine::domain::Site;
use ffuzz_engine::executor::Module;

/// The section that `llvm-passes/ffuzz-flow.hpp` writes, and that of clang's counters.
const SECTION: &str = ".ffuzz_flow";
const COUNTERS: &str = "__sancov_cntrs";
/// Maximum table size: a program of some ten million blocks.
const MAX_TABLE: u64 = 64 << 20;

/// Reads the functions of these files, with calls by [`FunctionFlow::name`]. Also returns the files
/// with a damaged table, for which the machine code is read. `counted` returns the counters of a file
/// without compiled ones.
pub fn read(
    modules: &[Module],
    counted: impl Fn(&Path) -> Option<FileCounters>,
) -> (Vec<FunctionFlow>, Vec<PathBuf>) {
    let (mut files, mut damaged) = (Vec::new(), Vec::new());
    for module in modules {
        let Ok(content) = fs::read(&module.file) else { continue };
        let Ok(file) = object::File::parse(&*content) else { continue };
        let counters = &module.counters;
        let own = match counted(&module.file) {
            Some(counted) => lines::functions_of(&file, Some(&counted), counters),
            None => match of_section(&file, counters) {
                Ok(Some(functions)) => functions,
                Ok(None) => lines::functions_of(&file, None, counters),
                Err(Damaged) => {
                    damaged.push(module.file.clone());
                    lines::functions_of(&file, None, counters)
                }
            },
        };
        files.push(own);
    }
    (joined(files), damaged)
}

/// Joins the functions of all files, which may share a name. A call refers to the function of the same
/// file, or else to that of the only other file that has one.
fn joined(mut files: Vec<Vec<FunctionFlow>>) -> Vec<FunctionFlow> {
    let mut owners: HashMap<u64, Vec<usize>> = HashMap::new();
    for (file, functions) in files.iter().enumerate() {
        for function in functions {
            let owners = owners.entry(function.name).or_default();
            if owners.last() != Some(&file) {
                owners.push(file);
            }
        }
    }
    // Hashes have 32 bits and addresses 47, so bits from 48 on are free.
    let name_in = |file: usize, name: u64| name | (file as u64) << 48;
    let owner = |file: usize, call: u64| match &owners.get(&call)?[..] {
        owners if owners.contains(&file) => Some(file),
        [only] => Some(*only),
        _ => None,
    };
    for (file, functions) in files.iter_mut().enumerate() {
        for function in functions {
            function.name = name_in(file, function.name);
            for block in &mut function.blocks {
                let known = |call: &u64| Some(name_in(owner(file, *call)?, *call));
                block.calls = block.calls.iter().filter_map(known).collect();
            }
        }
    }
    files.into_iter().flatten().collect()
}

/// The table has a form that no pass writes.
#[derive(Debug, Eq, PartialEq)]
struct Damaged;

/// Reads the section; None if the file has no table.
fn of_section(
    file: &object::File<'_>,
    counters: &Range<usize>,
) -> Result<Option<Vec<FunctionFlow>>, Damaged> {
    let Some(section) = file.section_by_name(SECTION) else { return Ok(None) };
    let first = file.section_by_name(COUNTERS).ok_or(Damaged)?.address();
    let data = section.data().ok().filter(|data| data.len() as u64 <= MAX_TABLE).ok_or(Damaged)?;
    let log = file.section_by_name(sites::LOG_SECTION).and_then(|section| section.data().ok());
    let lines = Lines::new(&Site::parse(log.unwrap_or_default()));
    let table = FlowTable { data, address: section.address(), first, counters, lines: &lines };
    table.functions().map(Some)
}

/// The comparisons of each line, by [`line_hash`]: column and number, ascending.
struct Lines(HashMap<u32, Vec<(u32, u32)>>);

impl Lines {
    fn new(sites: &[Site]) -> Self {
        let mut lines: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        for site in sites {
            lines
                .entry(line_hash(&site.file, site.line))
                .or_default()
                .push((site.column, site.key));
        }
        lines.values_mut().for_each(|line| line.sort_unstable());
        Self(lines)
    }

    /// Comparisons at this column. The optimiser drops positions. Without a match, takes the next ones,
    /// because an operator such as `&&` precedes the comparison that decides it, or else the last ones.
    fn at(&self, line: u32, column: u32) -> Vec<u32> {
        let all = self.0.get(&line).map_or(&[][..], |line| line);
        let after = all.partition_point(|(at, _)| *at < column);
        let Some((column, _)) = all.get(after).or(all.last()) else { return Vec::new() };
        all.iter().filter(|(at, _)| at == column).map(|(_, site)| *site).collect()
    }
}

/// `lineHash` of `llvm-passes/ffuzz-flow.hpp`: FNV-1a.
fn line_hash(file: &str, line: u32) -> u32 {
    let place = format!("{file}:{line}");
    place.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

struct FlowTable<'a> {
    data: &'a [u8],
    address: u64,
    /// Address of the file's first counter.
    first: u64,
    /// Range of the file's counters in the edge map.
    counters: &'a Range<usize>,
    lines: &'a Lines,
}

impl FlowTable<'_> {
    fn functions(&self) -> Result<Vec<FunctionFlow>, Damaged> {
        let (mut functions, mut at) = (Vec::new(), 0);
        while at < self.data.len() {
            let mut head = NumberReader(&self.data[at..]);
            let len = head.four()? as usize;
            let record = head.0.get(..len).ok_or(Damaged)?;
            functions.push(self.function(record, self.address + at as u64 + 4)?);
            at += 4 + len;
        }
        Ok(functions)
    }

    /// Reads the function of a record at `address`.
    fn function(&self, record: &[u8], address: u64) -> Result<FunctionFlow, Damaged> {
        let mut reader = NumberReader(record);
        let way = reader.four()?.cast_signed();
        let first = address.wrapping_add_signed(way.into()).checked_sub(self.first);
        let first = usize::try_from(first.ok_or(Damaged)?).map_err(|_| Damaged)?;
        let name = reader.four()?.into();
        let head = reader.number()?;
        // A block takes at least one byte.
        let count = usize::try_from(head >> 1).ok().filter(|count| *count <= record.len());
        let count = count.ok_or(Damaged)?;
        let mut next = 0;
        let mut blocks = Vec::with_capacity(count);
        for number in 0..count {
            blocks.push(self.block(&mut reader, number, count, first, &mut next)?);
        }
        match reader.0 {
            [] => Ok(FunctionFlow { name, has_address: head & 1 == 1, blocks }),
            _ => Err(Damaged),
        }
    }

    fn block(
        &self,
        reader: &mut NumberReader<'_>,
        number: usize,
        count: usize,
        first: usize,
        next: &mut usize,
    ) -> Result<BlockFlow, Damaged> {
        let head = reader.number()?;
        let has = |flag: u64| head & flag != 0;
        let mut block = BlockFlow::default();
        if has(2) {
            *next = usize::try_from(reader.number()?).map_err(|_| Damaged)?;
        }
        if has(1) {
            let counter = first.checked_add(*next).filter(|at| *at < self.counters.len());
            let counter = self.counters.start + counter.ok_or(Damaged)?;
            block.counter = Some(u32::try_from(counter).map_err(|_| Damaged)?);
            *next += 1;
        }
        for _ in 0..head >> 4 {
            let after = (number as i64 + 1).checked_add(reader.signed()?).ok_or(Damaged)?;
            let after = usize::try_from(after).ok().filter(|after| *after < count);
            block.after.push(after.ok_or(Damaged)?);
        }
        if has(4) {
            let line = reader.four()?;
            block.sites =
                self.lines.at(line, u32::try_from(reader.number()?).map_err(|_| Damaged)?);
        }
        if has(8) {
            for _ in 0..reader.number()? {
                block.calls.push(reader.four()?.into());
            }
        }
        Ok(block)
    }
}

/// Reads numbers from the front.
struct NumberReader<'a>(&'a [u8]);

impl NumberReader<'_> {
    fn four(&mut self) -> Result<u32, Damaged> {
        let (bytes, rest) = self.0.split_first_chunk::<4>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// Reads an unsigned LEB128.
    fn number(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Damaged)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    /// Reads a signed number, whose lowest bit is the sign.
    fn signed(&mut self) -> Result<i64, Damaged> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(data: &[u8]) -> Result<Vec<FunctionFlow>, Damaged> {
        let lines = Lines([(7, vec![(3, 70), (9, 71), (9, 72), (20, 73)])].into_iter().collect());
        let table =
            FlowTable { data, address: 1000, first: 900, counters: &(100..164), lines: &lines };
        table.functions()
    }

    /// Two blocks. The first has counter 3 of the file and a condition at line 7, column 5; it leads to
    /// both blocks and calls 5. The second has no counter.
    fn record(at: u64) -> Vec<u8> {
        let way = 903u64.wrapping_sub(1000 + at + 4) as u32;
        let body = [
            &way.to_le_bytes()[..],
            &9u32.to_le_bytes(),
            &[5, 16 * 2 + 13, 1, 0],
            &7u32.to_le_bytes(),
            &[5, 1],
            &5u32.to_le_bytes(),
            &[0],
        ]
        .concat();
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let first = record(0);
        let table = [first.clone(), record(first.len() as u64)].concat();
        let blocks = vec![
            BlockFlow {
                counter: Some(103),
                after: vec![0, 1],
                calls: vec![5],
                sites: vec![71, 72],
            },
            BlockFlow::default(),
        ];
        let function = FunctionFlow { name: 9, has_address: true, blocks };
        assert_eq!(parsed(&table), Ok(vec![function.clone(), function]));
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let good = record(0);
        for cut in 1..good.len() {
            assert_eq!(parsed(&good[..cut]), Err(Damaged), "{cut}");
        }
        for (at, byte) in (0..good.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut bad = good.clone();
            bad[at] = byte;
            for function in parsed(&bad).unwrap_or_default() {
                assert!(function.blocks.iter().flat_map(|it| &it.after).all(|after| *after < 2));
            }
        }
        // The length, the counter, the number of blocks, and a successor.
        for (at, byte) in [(0, 2), (6, 1), (12, 200), (14, 40)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(parsed(&bad), Err(Damaged), "{at}");
        }
    }

    #[test]
    fn a_condition_without_a_place_of_its_own_is_the_next_on_its_line() {
        let site = |column: u32, key: u32| Site {
            file: "/a.c".into(),
            line: 6,
            column,
            ..Site::of_key("log", key, "i32 ==")
        };
        let lines = Lines::new(&[site(48, 2), site(8, 1), site(48, 3)]);
        let at = |column| lines.at(line_hash("/a.c", 6), column);
        let found = [at(8), at(37), at(48), at(50), lines.at(line_hash("/a.c", 7), 8)];
        assert_eq!(found, [vec![1], vec![2, 3], vec![2, 3], vec![2, 3], vec![]]);
    }

    #[test]
    fn a_call_is_of_the_own_file_or_of_the_only_other_one() {
        let function = |name: u64, calls: &[u64]| FunctionFlow {
            name,
            has_address: false,
            blocks: vec![BlockFlow { calls: calls.to_vec(), ..BlockFlow::default() }],
        };
        let files = vec![
            vec![function(1, &[1, 2, 3, 4])],
            vec![function(1, &[1, 2]), function(2, &[]), function(4, &[])],
            vec![function(4, &[])],
        ];
        let all = joined(files);
        let names: Vec<u64> = all.iter().map(|function| function.name).collect();
        let called = |at: usize| -> Vec<Option<usize>> {
            let calls = all[at].blocks[0].calls.iter();
            calls.map(|call| names.iter().position(|name| name == call)).collect()
        };
        // No file has 3, and two others have 4.
        assert_eq!(called(0), [Some(0), Some(2)]);
        assert_eq!(called(1), [Some(1), Some(2)]);
    }
}
