//! Algorithms that shrink inputs. Pure: they generate proposals, the caller runs and judges them.

pub mod cover;
pub mod tmin;
pub mod trim;
