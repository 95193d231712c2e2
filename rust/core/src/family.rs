//! Many pmfs over the same outputs: the worst of listed pairs, and of all pairs.

pub mod listed;
pub mod matrix;
pub mod scores;

pub use listed::{Family, Pairs, Worst};
pub use matrix::{ExactRows, PmfMatrix};
