//! The form of Killerbeez's tracer: edges, each a pair of addresses, in the order of their first execution.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::args::Args;
use crate::cmd::exit::Failure;
use crate::cmd::tool::print;
use crate::exec::trace::{Code, Run, Step, Tracer};

/// From the end of one block to another, in the same thread.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Edge {
    from: (u32, u32),
    to: (u32, u32),
}

/// Each edge once.
fn edges(steps: &[Step]) -> Vec<Edge> {
    let (mut last, mut known) = (HashMap::new(), HashSet::new());
    let edge = |step: &Step| {
        let from = last.insert(step.thread, step.place())?;
        let edge = Edge { from, to: step.place() };
        known.insert(edge).then_some(edge)
    };
    steps.iter().filter_map(edge).collect()
}

/// Writes them to stdout or a file, or to one file for each module.
pub(super) fn write(args: &Args, tracer: &Tracer, run: &Run) -> Result<(), Failure> {
    let address = |(file, block): (u32, u32)| {
        let (_, bias) = run.loaded.iter().find(|(number, _)| *number == file)?;
        Some(bias.wrapping_add(tracer.files()[file as usize].address(block as usize)))
    };
    let mut parts: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for edge in edges(&run.steps) {
        let Some((from, to)) = address(edge.from).zip(address(edge.to)) else { continue };
        let part = parts.entry(if args.per_module { edge.to.0 } else { 0 }).or_default();
        if args.binary {
            part.extend(from.to_le_bytes());
            part.extend(to.to_le_bytes());
        } else {
            let mut line = String::new();
            let _ = writeln!(line, "{from:016x}:{to:016x}");
            part.extend(line.bytes());
        }
    }
    if !args.per_module {
        let all = parts.into_values().next().unwrap_or_default();
        return print(&all, args.output.as_deref());
    }
    for (file, part) in parts {
        print(&part, Some(&name(args, &tracer.files()[file as usize])))?;
    }
    Ok(())
}

/// `OUT_libx.so.txt`, or `.dat` for the binary form.
fn name(args: &Args, code: &Code) -> PathBuf {
    let mut name = args.output.clone().unwrap_or_default().into_os_string();
    let ending = if args.binary { "dat" } else { "txt" };
    name.push(format!("_{}.{ending}", code.name));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_those_of_each_thread() {
        let step = |block, thread| Step { file: 0, block, thread };
        let steps = [step(1, 0), step(9, 1), step(2, 0), step(1, 0), step(8, 1), step(2, 0)];
        let pairs: Vec<_> = edges(&steps).iter().map(|edge| (edge.from.1, edge.to.1)).collect();
        assert_eq!(pairs, [(1, 2), (2, 1), (9, 8)]);
    }
}
