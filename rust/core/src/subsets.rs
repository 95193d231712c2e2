//! Subsets of n users by rank, and count vectors of users of few kinds. A range of ranks is what work is divided into.

mod colex;
mod counts;
mod revolving;

pub use colex::Subsets;
pub use counts::CountVectors;
pub use revolving::{RevolvingDoor, Swap};
