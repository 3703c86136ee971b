//! Frames of a stopped process: unwinding by the compiler's tables in the program (`.eh_frame`), and the modules that
//! contain the addresses.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::elf::PF_X;
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};

use ffuzz_sys::traced::TraceStop;

/// Maximum number of innermost frames read: an endless recursion has tens of thousands.
const MOST: usize = 128;
/// Maximum size of a program file. Devices have no end, and a target may map any file as code.
pub(super) const LARGEST: u64 = 1 << 30;

/// State of a process at a signal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct StackTrace {
    pub(super) signal: i32,
    pub(super) address: Option<u64>,
    pub(super) registers: Vec<(&'static str, u64)>,
    /// The innermost first.
    pub(super) frames: Vec<CodeAddress>,
    /// Trapping instruction of a sanitizer's check, in a debugger's notation.
    pub(super) trap: Option<String>,
}

/// One frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct CodeAddress {
    pub(super) address: u64,
    /// File, and address in the file, within the call instruction; None for code outside files.
    pub(super) place: Option<(PathBuf, u64)>,
}

/// Files of code, read once for all runs.
#[derive(Debug, Default)]
pub(super) struct Modules {
    files: HashMap<PathBuf, Option<Arc<CodeFile>>>,
}

#[derive(Debug)]
struct CodeFile {
    sections: HashMap<&'static str, (Range<u64>, Arc<[u8]>)>,
    /// Segments with code: range in the file, and address. Segments may share a page of the file.
    segments: Vec<(Range<u64>, u64)>,
    /// Stubs that call functions of other files.
    stubs: Vec<Range<u64>>,
}

/// Sections needed to find frames.
const SECTIONS: [&str; 3] = [".text", ".eh_frame", ".eh_frame_hdr"];

fn is_stubs(section: &str) -> bool {
    section.starts_with(".plt") || section == ".MIPS.stubs"
}

impl CodeFile {
    fn read(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        if !about.is_file() || about.len() > LARGEST {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let elf = object::File::parse(&*bytes).ok()?;
        let mut sections = HashMap::new();
        for name in SECTIONS {
            if let Some(section) = elf.section_by_name(name)
                && let Ok(data) = section.data()
            {
                let start = section.address();
                sections.insert(name, (start..start + section.size(), data.into()));
            }
        }
        let segment = |segment: object::Segment<'_, '_>| {
            let (start, size) = segment.file_range();
            (start..start + size, segment.address())
        };
        let is_code = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
        let segments = elf.segments().filter(is_code).map(segment).collect();
        let stubs = elf.sections().filter(|section| section.name().is_ok_and(is_stubs));
        let range = |section: object::Section<'_, '_>| {
            section.address()..section.address() + section.size()
        };
        let stubs = stubs.map(range).collect();
        Some(Self { sections, segments, stubs })
    }

    /// Address of the code at a file offset; None for a stub.
    fn address(&self, offset: u64) -> Option<u64> {
        let found = self.segments.iter().find(|(range, _)| range.contains(&offset));
        let address = found.map(|(range, address)| address + (offset - range.start))?;
        (!self.stubs.iter().any(|stubs| stubs.contains(&address))).then_some(address)
    }

    /// Difference between memory and file addresses if the part from `offset` on is mapped at `start`.
    fn bias(&self, start: u64, offset: u64) -> u64 {
        let holds = |range: &Range<u64>| {
            range.contains(&offset) || (range.start & !0xfff..range.end).contains(&offset)
        };
        let found = self.segments.iter().find(|(range, _)| holds(range));
        let (range, address) = found.cloned().unwrap_or_default();
        start.wrapping_sub(address.wrapping_add(offset).wrapping_sub(range.start))
    }

    fn info(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        let range = |name| self.sections.get(name).map(|(range, _)| range.clone());
        let data = |name| self.sections.get(name).map(|(_, data)| Arc::clone(data));
        ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            text: data(".text"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..ExplicitModuleSectionInfo::default()
        }
    }
}

/// A file's code in memory.
struct Mapped {
    range: Range<u64>,
    path: PathBuf,
    bias: u64,
    file: Arc<CodeFile>,
}

impl Modules {
    /// Trace of a stopped process.
    pub(super) fn trace(&mut self, stop: &TraceStop) -> StackTrace {
        let mapped = self.mapped(&stop.maps());
        let frames = unwind(stop, &mapped).into_iter().map(|address| {
            let lookup = address.address_for_lookup();
            let module = mapped.iter().find(|module| module.range.contains(&lookup));
            let place =
                module.map(|module| (module.path.clone(), lookup.wrapping_sub(module.bias)));
            CodeAddress { address: address.address(), place }
        });
        StackTrace {
            signal: stop.signal,
            address: stop.address,
            frames: frames.collect(),
            registers: stop.registers.clone(),
            trap: trap(stop),
        }
    }

    /// Address of the code at a file offset; None for a stub that calls another file.
    pub(super) fn address(&mut self, path: &Path, offset: u64) -> Option<u64> {
        self.file(path)?.address(offset)
    }

    fn file(&mut self, path: &Path) -> Option<&Arc<CodeFile>> {
        let read = || CodeFile::read(path).map(Arc::new);
        self.files.entry(path.into()).or_insert_with(read).as_ref()
    }

    fn mapped(&mut self, maps: &str) -> Vec<Mapped> {
        let mut mapped = Vec::new();
        for (range, offset, path) in maps.lines().filter_map(code_mapping) {
            if let Some(file) = self.file(Path::new(path)) {
                let bias = file.bias(range.start, offset);
                mapped.push(Mapped { range, path: path.into(), bias, file: Arc::clone(file) });
            }
        }
        mapped
    }
}

/// Parses `START-END r-xp OFFSET DEV INODE PATH` of executable code from a file.
fn code_mapping(line: &str) -> Option<(Range<u64>, u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    words.next().filter(|rights| rights.contains('x'))?;
    let offset = number(words.next()?)?;
    let path = &line[line.find('/')?..];
    Some((number(start)?..number(end)?, offset, path))
}

/// Decodes `ud1 N(%eax),%eax`: clang's trap with the number of the check.
#[cfg(target_arch = "x86_64")]
fn trap(stop: &TraceStop) -> Option<String> {
    let bytes = stop.word(stop.register("rip"))?.to_le_bytes();
    match bytes.strip_prefix(&[0x67, 0x0f, 0xb9])? {
        [0x00, ..] => Some("ud1    (%eax),%eax".to_owned()),
        [0x40, number, ..] => Some(format!("ud1    {number:#x}(%eax),%eax")),
        _ => None,
    }
}

/// Decodes `brk`, whose operand contains the number of the check.
#[cfg(target_arch = "aarch64")]
fn trap(stop: &TraceStop) -> Option<String> {
    let code = stop.word(stop.register("pc"))? as u32;
    (code & 0xffe0_001f == 0xd420_0000).then(|| format!("brk\t#{:#x}", code >> 5 & 0xffff))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn trap(_: &TraceStop) -> Option<String> {
    None
}

#[cfg(target_arch = "x86_64")]
fn unwind(stop: &TraceStop, mapped: &[Mapped]) -> Vec<FrameAddress> {
    let [pc, sp, bp] = ["rip", "rsp", "rbp"].map(|name| stop.register(name));
    let regs = framehop::x86_64::UnwindRegsX86_64::new(pc, sp, bp);
    frames::<framehop::x86_64::UnwinderX86_64<Arc<[u8]>>>(stop, mapped, pc, regs)
}

#[cfg(target_arch = "aarch64")]
fn unwind(stop: &TraceStop, mapped: &[Mapped]) -> Vec<FrameAddress> {
    let [pc, lr, sp, fp] = ["pc", "x30", "sp", "x29"].map(|name| stop.register(name));
    let regs = framehop::aarch64::UnwindRegsAarch64::new(lr, sp, fp);
    frames::<framehop::aarch64::UnwinderAarch64<Arc<[u8]>>>(stop, mapped, pc, regs)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn unwind(_: &TraceStop, _: &[Mapped]) -> Vec<FrameAddress> {
    Vec::new()
}

fn frames<U>(stop: &TraceStop, mapped: &[Mapped], pc: u64, regs: U::UnwindRegs) -> Vec<FrameAddress>
where
    U: Unwinder<Module = Module<Arc<[u8]>>> + Default,
    U::Cache: Default,
{
    let mut unwinder = U::default();
    for module in mapped {
        let name = module.path.display().to_string();
        unwinder.add_module(Module::new(
            name,
            module.range.clone(),
            module.bias,
            module.file.info(),
        ));
    }
    let (mut cache, mut read) = (U::Cache::default(), |at| stop.word(at).ok_or(()));
    let mut found = unwinder.iter_frames(pc, regs, &mut cache, &mut read);
    let mut frames = Vec::new();
    while frames.len() < MOST
        && let Ok(Some(frame)) = found.next()
    {
        frames.push(frame);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_end_are_read() {
        assert!(CodeFile::read(Path::new("/dev/zero")).is_none());
        assert!(CodeFile::read(&std::env::current_exe().unwrap()).is_some());
        let large = tempfile::NamedTempFile::new().unwrap();
        large.as_file().set_len(LARGEST + 1).unwrap();
        assert!(CodeFile::read(large.path()).is_none());
    }

    #[test]
    fn only_code_from_files_is_a_module() {
        let line = "7f00-8f00 r-xp 00001000 08:01 12   /lib/a b.so";
        assert_eq!(code_mapping(line), Some((0x7f00..0x8f00, 0x1000, "/lib/a b.so")));
        for line in ["7f00-8f00 rw-p 00001000 08:01 12 /lib/a", "7f00-8f00 r-xp 0 0:0 0 [vdso]", ""]
        {
            assert_eq!(code_mapping(line), None);
        }
    }
}
