//! The place of an instruction in the source as its author would say it: in the function that was written, also if the
//! compiler has put that into another one.

use std::rc::Rc;

use addr2line::Context;
use gimli::{Dwarf, EndianRcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection};

type Reader = EndianRcSlice<LittleEndian>;

/// The standard library of Rust, in debug information: nobody looks for anything there.
const STANDARD_LIBRARY: &str = "/rustc/";
/// What a name of Rust ends with: `::h` and a hash.
const HASH: usize = 19;

pub(crate) struct Frames {
    context: Context<Reader>,
}

/// A place in the source.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Frames {
    /// None without debug information that can be read.
    pub(crate) fn read(file: &object::File<'_>) -> Option<Self> {
        let load = |id: SectionId| -> Result<Reader, gimli::Error> {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            Ok(Reader::new(Rc::from(data.unwrap_or_default()), LittleEndian))
        };
        let context = Context::from_dwarf(Dwarf::load(load).ok()?).ok()?;
        Some(Self { context })
    }

    /// The innermost function that is not of the standard library. None if nothing is known.
    pub(crate) fn place(&self, address: u64) -> Option<Frame> {
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        let mut innermost = None;
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file).unwrap_or_default();
            let of_library = file.starts_with(STANDARD_LIBRARY);
            let place = || {
                let function = frame.function.as_ref();
                let name = function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
                Frame {
                    function: without_hash(&name.unwrap_or_default()).to_owned(),
                    file: file.to_owned(),
                    line: location.and_then(|location| location.line).unwrap_or(0),
                    column: location.and_then(|location| location.column).unwrap_or(0),
                }
            };
            if !of_library && !file.is_empty() {
                return Some(place());
            }
            innermost.get_or_insert_with(place);
        }
        innermost
    }
}

/// The name of a function of Rust as it is written.
pub(crate) fn without_hash(name: &str) -> &str {
    let Some(split) = name.len().checked_sub(HASH) else { return name };
    let is_hash = |end: &str| {
        end.strip_prefix("::h").is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    match name.get(split..) {
        Some(end) if is_hash(end) => &name[..split],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_lose_their_hash() {
        assert_eq!(without_hash("h::check::h0c47d132e04e36c9"), "h::check");
        assert_eq!(without_hash("h::check::hello"), "h::check::hello");
        assert_eq!((without_hash("a"), without_hash("é::h0c47d132e04e36c9")), ("a", "é"));
    }

    #[test]
    fn this_test_is_found_in_its_own_program() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let frames = Frames::read(&file).unwrap();
        let address = file
            .symbols()
            .find(|symbol| {
                use object::ObjectSymbol;
                symbol
                    .name()
                    .is_ok_and(|name| name.contains("this_test_is_found_in_its_own_program"))
                    && symbol.kind() == object::SymbolKind::Text
            })
            .map(|symbol| object::ObjectSymbol::address(&symbol))
            .unwrap();
        let frame = frames.place(address).unwrap();
        assert!(frame.file.ends_with("frames.rs") && frame.line > 0, "{frame:?}");
        assert!(frame.function.contains("this_test_is_found"), "{frame:?}");
    }
}
