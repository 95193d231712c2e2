//! Combinatorial dimensions of a finite class of concepts, given as a 0/1 matrix.
//!
//! [`Concepts`] is the matrix without what no dimension sees: repeated concepts, constant points, points that repeat or
//! negate another. [`VersionSpaces`] answers what the Littlestone dimension of the class and of its subsets is, with a
//! mistake tree to show for it, and runs the standard optimal algorithm on them. [`shattered`] finds a largest shattered
//! set, [`growth`] the most patterns that a number of points can show.

mod concepts;
mod littlestone;
mod standard_optimal;
mod vc;

pub use concepts::Concepts;
pub use littlestone::{MistakeTree, VersionSpaces};
pub use standard_optimal::Prediction;
pub use vc::{growth, shattered};
