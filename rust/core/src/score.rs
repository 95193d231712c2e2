//! User-level scores in integers, of which one user changes each by little.

pub mod counts;
pub mod pairwise;
pub mod surrogate;
