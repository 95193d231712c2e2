//! Many pmfs over the same outputs: the worst of listed pairs, and of all pairs.
//!
//! [`search`] answers for all ordered pairs. Its stages discard what certainly does not matter, each with a proven
//! bound: equal rows once, outputs on which no pair differs enough, pairs below a strong incumbent by separators, and
//! register tiles for what is left; pairs that floats cannot decide go to exact arithmetic.

mod brute;
mod events;
mod exhaustive;
pub mod listed;
pub mod listing;
pub mod matrix;
mod numerics;
mod ordering;
mod problem;
mod pure;
pub mod scores;
pub mod search;
mod separator;
mod shifts;
mod work;

pub use exhaustive::{Arithmetic, exhaustive_maximum};
pub use listed::{Family, Pairs, Worst};
pub use listing::{BadPairs, list_bad_pairs};
pub use matrix::{ExactRows, PmfMatrix};
pub use search::{maximum, maximum_against, maximum_band, verdict};
pub use shifts::largest_shift;
