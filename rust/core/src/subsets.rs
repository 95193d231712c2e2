//! Subsets of n users by rank, count vectors of users of few kinds, and sums of users with a number each. A range of ranks
//! is what work is divided into.

mod colex;
mod counts;
mod revolving;
mod sums;

pub use colex::Subsets;
pub use counts::CountVectors;
pub use revolving::{RevolvingDoor, Swap};
pub use sums::{DeletedSums, MAX_REACHABLE_BITS};
