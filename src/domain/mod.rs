//! Domain-specific feedback: registry, reducers, aggregates.
//!
//! Padhye, Lemieux, Sen, Simon, Vijayakumar: FuzzFactory: Domain-Specific Fuzzing with Waypoints,
//! OOPSLA 2019. A domain is a map of 32-bit values with a reducer; an input whose value moves the
//! aggregate of a key is a waypoint.

/// How a value joins the aggregate of its key. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Reducer {
    Max = 0,
    Min = 1,
    LogBucket = 2,
    BitUnion = 3,
    BitIntersect = 4,
}

/// One domain: keys `start..start + size` of the DSF array.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Domain {
    /// Empty for targets of the original FuzzFactory, which send no names.
    pub name: String,
    pub start: u32,
    pub size: u32,
    pub reducer: Reducer,
    pub initial: u32,
}
