//! Killerbeez modules: foreign code that changes inputs, called inside this process.
//!
//! All their functions come from the table that `init` fills, never from the dynamic linker: every
//! module exports the same names. What they return is checked and copied here.
//!
//! They are loaded with `RTLD_DEEPBIND`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{null_mut, slice_from_raw_parts};
use std::rc::Rc;

use libloading::os::unix::Library;
use miette::Diagnostic;

/// `RTLD_DEEPBIND`: a module calls its own `mutate`, not one that this program or another module
/// exports. `RTLD_NOW`: what is missing is missed now.
const FLAGS: c_int = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;

/// Bit 16 of the flags of `mutate_extended`: bits 0 to 15 are the number of the part.
const MULTIPLE_INPUTS: u64 = 0x10000;
/// Most parts of an input; their numbers have 16 bits.
const MAX_PARTS: usize = 1 << 16;

/// Bytes after a module's buffer that it must not change.
const GUARD: [u8; 64] = [0xa5; 64];

type Create = unsafe extern "C" fn(*mut c_char, *mut c_char, *mut c_char, usize) -> *mut c_void;
type Cleanup = unsafe extern "C" fn(*mut c_void);
type Mutate = unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> c_int;
type MutateExtended = unsafe extern "C" fn(*mut c_void, *mut c_char, usize, u64) -> c_int;
type GetState = unsafe extern "C" fn(*mut c_void) -> *mut c_char;
type FreeState = unsafe extern "C" fn(*mut c_char);
type GetInputInfo = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut *mut usize);
type Help = unsafe extern "C" fn(*mut *mut c_char) -> c_int;

/// What `init` fills: the layout is the interface.
#[repr(C)]
#[derive(Debug)]
struct FunctionTable {
    create: Option<Create>,
    cleanup: Option<Cleanup>,
    mutate: Option<Mutate>,
    mutate_extended: Option<MutateExtended>,
    get_state: Option<GetState>,
    free_state: Option<FreeState>,
    /// What is not called has no type here. `set_state` and `set_input`: a seed or a state gets an
    /// object of its own, because modules do not rewind.
    set_state: *mut c_void,
    get_current_iteration: *mut c_void,
    get_total_iteration_count: *mut c_void,
    get_input_info: Option<GetInputInfo>,
    set_input: *mut c_void,
    help: Option<Help>,
    /// For a module that is built for a longer table.
    spare: [usize; 16],
}

const WHOLE_TABLE: &str =
    "a module has an `init` that fills the whole table of Killerbeez's mutators.h";

/// Why a module cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ModuleError {
    #[error("cannot load the mutator {}: {reason}", path.display())]
    #[diagnostic(help("ldd FILE shows the libraries that it lacks"))]
    Load { path: PathBuf, reason: String },
    #[error("the mutator {} has no function `init`", path.display())]
    #[diagnostic(help("{}", WHOLE_TABLE))]
    NoInit { path: PathBuf },
    #[error("the mutator {} has no {function}", path.display())]
    #[diagnostic(help("{}", WHOLE_TABLE))]
    Incomplete { path: PathBuf, function: &'static str },
}

/// A loaded module.
pub struct ForeignModule {
    create: Create,
    cleanup: Cleanup,
    mutate: Mutate,
    mutate_extended: MutateExtended,
    table: FunctionTable,
    /// Last: the functions are gone with it.
    _library: Library,
}

impl ForeignModule {
    /// Loads a module, which runs code of it.
    pub fn open(path: &Path) -> Result<Rc<Self>, ModuleError> {
        let failed = |error: libloading::Error| {
            // dlerror begins with the path that the message names already.
            let reason = error.to_string();
            let own = format!("{}: ", path.display());
            let reason = reason.strip_prefix(&own).unwrap_or(&reason).to_owned();
            ModuleError::Load { path: path.into(), reason }
        };
        // SAFETY: the user has requested this code; it lives as long as `ForeignModule`.
        let library = unsafe { Library::open(Some(path), FLAGS) }.map_err(failed)?;
        // SAFETY: no function is null and so are all pointers.
        let mut table: FunctionTable = unsafe { std::mem::zeroed() };
        {
            // SAFETY: the interface defines the type of `init`.
            let init =
                unsafe { library.get::<unsafe extern "C" fn(*mut FunctionTable)>(b"init\0") };
            let init = init.map_err(|_| ModuleError::NoInit { path: path.into() })?;
            // SAFETY: the table is at least as long as the interface requires.
            unsafe { init(&raw mut table) };
        }
        let missing = |function| ModuleError::Incomplete { path: path.into(), function };
        Ok(Rc::new(Self {
            create: table.create.ok_or_else(|| missing("create"))?,
            cleanup: table.cleanup.ok_or_else(|| missing("cleanup"))?,
            mutate: table.mutate.ok_or_else(|| missing("mutate"))?,
            mutate_extended: table.mutate_extended.ok_or_else(|| missing("mutate_extended"))?,
            table,
            _library: library,
        }))
    }

    /// An object for one input; None if the module refuses options, state or input; a reason, if any, is
    /// on stderr. `seed` is for modules that ask libc for randomness.
    #[must_use]
    pub fn create(
        self: &Rc<Self>,
        options: Option<&CStr>,
        state: Option<&CStr>,
        input: &[u8],
        seed: u32,
    ) -> Option<Object> {
        // Copies: the interface has no `const`. One more byte is for those that look for an end.
        let mut options = options.map(|text| text.to_bytes_with_nul().to_vec());
        let mut state = state.map(|text| text.to_bytes_with_nul().to_vec());
        let mut bytes = input.to_vec();
        bytes.push(0);
        let raw = |text: &mut Option<Vec<u8>>| {
            text.as_mut().map_or(null_mut(), |text| text.as_mut_ptr().cast())
        };
        // SAFETY: all pointers outlive the call, at whose end the module has copied what it needs.
        let object = unsafe {
            libc::srand(seed);
            (self.create)(
                raw(&mut options),
                raw(&mut state),
                bytes.as_mut_ptr().cast(),
                input.len(),
            )
        };
        (!object.is_null()).then(|| Object { module: Rc::clone(self), object })
    }

    /// The module's help text.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let mut text = null_mut();
        // SAFETY: the module stores a string from malloc, which is ours then.
        unsafe {
            let good = (self.table.help?)(&raw mut text) == 0;
            let copy = copied(text).filter(|_| good);
            libc::free(text.cast());
            copy.map(|text| text.to_string_lossy().into_owned())
        }
    }
}

impl fmt::Debug for ForeignModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").finish_non_exhaustive()
    }
}

/// # Safety
/// `text` is null or ends with a zero byte.
unsafe fn copied(text: *const c_char) -> Option<CString> {
    // SAFETY: as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}

/// What a call brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MutateResult {
    /// Number of bytes of the buffer.
    Made(usize),
    Exhausted,
    Failed,
    /// It wrote past the end of its buffer.
    Overran,
}

/// Memory for a module to write to, with a guard after it.
#[derive(Debug)]
pub struct GuardedBuffer(Vec<u8>);

impl GuardedBuffer {
    #[must_use]
    pub fn new(size: usize) -> Self {
        let mut bytes = vec![0; size];
        bytes.extend_from_slice(&GUARD);
        Self(bytes)
    }

    /// What the module may write to.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - GUARD.len()]
    }

    fn is_intact(&self) -> bool {
        self.0.ends_with(&GUARD)
    }
}

/// A module at work on one input.
#[derive(Debug)]
pub struct Object {
    module: Rc<ForeignModule>,
    object: *mut c_void,
}

impl Object {
    /// Sizes of the input's parts, if the module reports them.
    #[must_use]
    pub fn parts(&self) -> Vec<usize> {
        let Some(info) = self.module.table.get_input_info else { return Vec::new() };
        let (mut count, mut sizes) = (0, null_mut());
        // SAFETY: the module stores a number and an array of that length from malloc, ours then.
        unsafe {
            info(self.object, &raw mut count, &raw mut sizes);
            let count = usize::try_from(count).ok().filter(|count| *count <= MAX_PARTS);
            let known = count.filter(|_| !sizes.is_null());
            let copy = known.map(|count| (*slice_from_raw_parts(sizes, count)).to_vec());
            libc::free(sizes.cast());
            copy.unwrap_or_default()
        }
    }

    /// The next version of the input, or of one part of it. The buffer is zeroed before, because
    /// some modules show what was in it, and the length cut to it, because some exceed it.
    pub fn mutate(&mut self, part: Option<u16>, buffer: &mut GuardedBuffer) -> MutateResult {
        let size = buffer.bytes().len();
        buffer.0[..size].fill(0);
        let bytes = buffer.0.as_mut_ptr().cast();
        // SAFETY: the object lives, the buffer is as large as said.
        let length = unsafe {
            match part {
                None => (self.module.mutate)(self.object, bytes, size),
                Some(part) => {
                    let flags = MULTIPLE_INPUTS | u64::from(part);
                    (self.module.mutate_extended)(self.object, bytes, size, flags)
                }
            }
        };
        match usize::try_from(length) {
            _ if !buffer.is_intact() => MutateResult::Overran,
            Err(_) => MutateResult::Failed,
            Ok(0) => MutateResult::Exhausted,
            Ok(length) => MutateResult::Made(length.min(size)),
        }
    }

    /// The state from which [`ForeignModule::create`] continues; None if the module has none.
    #[must_use]
    pub fn state(&self) -> Option<CString> {
        // SAFETY: the string is the module's until it is given back; it may be a constant, so
        // without `free_state` it stays where it is.
        unsafe {
            let text = (self.module.table.get_state?)(self.object);
            let copy = copied(text);
            if let (false, Some(free)) = (text.is_null(), self.module.table.free_state) {
                free(text);
            }
            copy
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object was made by this module and is not used again.
        unsafe { (self.module.cleanup)(self.object) };
    }
}

/// Loads a library whose symbols every other one then sees, as if this program exported them: for tests.
#[doc(hidden)]
pub fn export_to_all(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: only libraries of the tests are loaded, which have no constructors.
    unsafe { Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_GLOBAL) }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_table_is_that_of_the_interface() {
        let offsets = [
            offset_of!(FunctionTable, create),
            offset_of!(FunctionTable, cleanup),
            offset_of!(FunctionTable, mutate),
            offset_of!(FunctionTable, mutate_extended),
            offset_of!(FunctionTable, get_state),
            offset_of!(FunctionTable, free_state),
            offset_of!(FunctionTable, set_state),
            offset_of!(FunctionTable, get_current_iteration),
            offset_of!(FunctionTable, get_total_iteration_count),
            offset_of!(FunctionTable, get_input_info),
            offset_of!(FunctionTable, set_input),
            offset_of!(FunctionTable, help),
            offset_of!(FunctionTable, spare),
        ];
        assert!(offsets.iter().enumerate().all(|(index, offset)| *offset == index * 8));
    }
}
