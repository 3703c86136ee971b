//! Crash location of a program in an emulator: no debugger can read its frames, but the last executed blocks are known.

use ffuzz_exec::Trail;
use ffuzz_inspect::choice::is_runtime;

use super::frames::{CodeAddress, Modules, StackTrace};
use super::symbols::Symbolizer;
use crate::crash::is_machinery;

/// The function in which the run ended, and the innermost one of the program. Omits library functions between them,
/// which may have returned, and the path from `abort` to the signal.
pub(super) fn trace(
    trail: &Trail,
    signal: i32,
    modules: &mut Modules,
    symbolizer: Option<&Symbolizer>,
) -> StackTrace {
    let places = trail.steps().into_iter().filter_map(|(path, offset)| {
        let address = modules.address(&path, offset)?;
        Some(CodeAddress { address, place: Some((path, address)) })
    });
    let places: Vec<CodeAddress> = places.collect();
    let symbols = symbolizer.map(|known| known.symbols(&places)).unwrap_or_default();
    let name = |index: usize| symbols.get(index).and_then(|all| all.last()?.function.as_deref());
    let aborts = |index: &usize| signal == libc::SIGABRT && name(*index) == Some("abort");
    let last = (0..places.len()).find(aborts).unwrap_or_default();
    let is_own =
        |index: &usize| !is_of_library(&places[*index]) && !name(*index).is_some_and(is_machinery);
    let own = (last..places.len()).find(is_own);
    let mut frames: Vec<CodeAddress> = places.get(last).cloned().into_iter().collect();
    frames.extend(own.filter(|own| *own != last).map(|own| places[own].clone()));
    StackTrace { signal, frames, ..StackTrace::default() }
}

fn is_of_library(place: &CodeAddress) -> bool {
    let name = place.place.as_ref().and_then(|(path, _)| path.file_name());
    name.is_some_and(|name| is_runtime(&name.to_string_lossy()))
}
