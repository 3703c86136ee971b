//! Feedback maps of a Rust program for the fuzzer `ffuzz`: numbers that a run reports, and that the fuzzer makes
//! larger or smaller. With `-p` it keeps inputs that improve the value of a key.
//!
//! ```
//! waypoints::map!(static ALLOCATED: Max = "allocated", 1);
//!
//! fn reserve(bytes: usize) -> Vec<u8> {
//!     ALLOCATED.max(0, bytes);
//!     Vec::with_capacity(bytes)
//! }
//! # assert!(!waypoints::is_present());
//! # assert_eq!(reserve(3).len(), 0);
//! ```
//!
//! `cargo ffuzz` links the runtime that takes the values. In any other build, for example one of `cargo fuzz` or an
//! ordinary one, the maps do nothing.

#![no_std]

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicI32, Ordering};

/// Which of two values of a key the fuzzer keeps, over all runs. In a run each key begins with the value that any
/// other one improves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Keep {
    /// The larger one; a run begins with 0.
    Max = 0,
    /// The smaller one; a run begins with the largest number.
    Min = 1,
    /// Counts, of which each power of two is kept once; a run begins with 0.
    LogBucket = 2,
    /// All bits that were ever set; a run begins with 0.
    BitUnion = 3,
    /// All bits that were ever clear; a run begins with all bits set.
    BitIntersect = 4,
}

/// A map from keys to numbers of 32 bits. Made by [`map!`].
#[derive(Debug)]
pub struct Map {
    name: &'static CStr,
    keys: u32,
    keep: Keep,
    /// Number of the map in the runtime.
    id: AtomicI32,
}

/// Functions of ffuzz's runtime; null where it is not linked.
#[repr(C)]
struct Runtime {
    new_domain: Option<extern "C" fn(*const c_char, u32, c_int, u32) -> c_int>,
    max: Option<Update>,
    min: Option<Update>,
    or: Option<Update>,
    set: Option<Update>,
    add: Option<Update>,
}

type Update = extern "C" fn(c_int, u32, u32);

// Weak references may stay undefined.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
core::arch::global_asm!(
    ".weak __ffuzz_new_domain",
    ".weak __fuzzfactory_dsf_max",
    ".weak __fuzzfactory_dsf_min",
    ".weak __fuzzfactory_dsf_bitwise_or",
    ".weak __fuzzfactory_dsf_set",
    ".weak __fuzzfactory_dsf_add_saturating",
    ".pushsection .data.rel.ro.waypoints_runtime,\"aw\",%progbits",
    ".p2align 3",
    ".hidden waypoints_runtime",
    ".globl waypoints_runtime",
    "waypoints_runtime:",
    ".quad __ffuzz_new_domain",
    ".quad __fuzzfactory_dsf_max",
    ".quad __fuzzfactory_dsf_min",
    ".quad __fuzzfactory_dsf_bitwise_or",
    ".quad __fuzzfactory_dsf_set",
    ".quad __fuzzfactory_dsf_add_saturating",
    ".popsection",
);

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn runtime() -> &'static Runtime {
    unsafe extern "C" {
        #[link_name = "waypoints_runtime"]
        static RUNTIME: Runtime;
    }
    // SAFETY: the table above has this layout, and nothing writes to it.
    unsafe { &RUNTIME }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn runtime() -> &'static Runtime {
    &Runtime { new_domain: None, max: None, min: None, or: None, set: None, add: None }
}

/// Whether the program was linked by ffuzz, so that maps have an effect.
#[must_use]
pub fn is_present() -> bool {
    runtime().new_domain.is_some()
}

impl Map {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static CStr, keys: u32, keep: Keep) -> Self {
        Self { name, keys, keep, id: AtomicI32::new(-1) }
    }

    /// Called before `main`, as the runtime needs it.
    #[doc(hidden)]
    pub fn register(&self) {
        let initial = match self.keep {
            Keep::Max | Keep::LogBucket | Keep::BitUnion => 0,
            Keep::Min | Keep::BitIntersect => u32::MAX,
        };
        if let Some(new) = runtime().new_domain {
            let id = new(self.name.as_ptr(), self.keys, self.keep as c_int, initial);
            self.id.store(id, Ordering::Relaxed);
        }
    }

    /// Raises the key's value of this run to `value`, if that is larger. Values above 2^32 - 1 count as that.
    pub fn max(&self, key: u32, value: impl TryInto<u32>) {
        self.update(runtime().max, key, value);
    }

    /// Lowers the key's value of this run to `value`, if that is smaller.
    pub fn min(&self, key: u32, value: impl TryInto<u32>) {
        self.update(runtime().min, key, value);
    }

    /// Sets the bits of `value`.
    pub fn or(&self, key: u32, value: u32) {
        self.update(runtime().or, key, value);
    }

    /// Replaces the key's value of this run.
    pub fn set(&self, key: u32, value: impl TryInto<u32>) {
        self.update(runtime().set, key, value);
    }

    /// Adds to the key's value of this run, at most up to 2^32 - 1.
    pub fn add(&self, key: u32, value: impl TryInto<u32>) {
        self.update(runtime().add, key, value);
    }

    /// Keys are taken modulo the number of keys.
    fn update(&self, update: Option<Update>, key: u32, value: impl TryInto<u32>) {
        if let Some(update) = update {
            update(self.id.load(Ordering::Relaxed), key, value.try_into().unwrap_or(u32::MAX));
        }
    }
}

/// Makes a map: `map!(static NAME: KEEP = "name in the fuzzer", number of keys);` with a [`Keep`].
///
/// ```
/// waypoints::map!(pub static DEPTH: Max = "depth", 1);
/// waypoints::map!(
///     /// How often each opcode is executed.
///     static OPCODES: LogBucket = "opcodes", 256
/// );
/// DEPTH.max(0, 3_usize);
/// OPCODES.add(u32::from(b'+'), 1_u32);
/// ```
#[macro_export]
macro_rules! map {
    ($(#[$meta:meta])* $visible:vis static $map:ident: $keep:ident = $name:literal, $keys:expr $(;)?) => {
        $(#[$meta])*
        $visible static $map: $crate::Map = {
            const NAME: &::core::ffi::CStr =
                match ::core::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("the name has a zero byte"),
                };
            $crate::Map::new(NAME, $keys, $crate::Keep::$keep)
        };
        const _: () = {
            extern "C" fn register() {
                $map.register();
            }
            #[used]
            #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.0"))]
            static AT_START: extern "C" fn() = register;
        };
    };
}
