//! Algorithms that shrink inputs. Pure: they propose, the caller runs and judges.

pub mod cover;
pub mod tmin;
pub mod trim;
