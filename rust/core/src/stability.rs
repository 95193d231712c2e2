//! Stable deletions: which sets of users, once deleted, leave only data on which an algorithm behaves alike.
//!
//! From n users D are deleted in all. A set S of at most D users is *unstable* when some *bad* pair of deletion sets
//! T, T' of size D, one whose kept data the algorithm tells apart, contains S in both; otherwise S is *stable*. Supersets
//! of stable sets are stable. Users with the same data are of one *type*, and a set counts by its deletion vector: how
//! many users of each type it holds. [`StableFamily`] is the one engine for users grouped by type and for labeled
//! users, each a type of its own.
//!
//! Source: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per User"
//! (`NeurIPS` 2023), Algorithm 1.
//!
//! Paper: [GKKMMZ23, Lemma 18], [GKKMMZ23, Algorithm 1].

mod bad_pairs;
mod choices;
mod counting;
mod cover;
mod distribution;
mod draws;
mod order;
mod outputs;
mod pools;
mod prefixes;
mod sampling;
mod scaled;
mod search;
mod transform;
mod typed;
mod windows;

pub use cover::outside_smallest_cover;
pub use distribution::{Distribution, Mixture};
pub use draws::{draw_of_rows, draw_of_window};
pub use pools::{Closeness, Key, Keys};
pub use search::{MAX_LESSONS, Problem, Question, Smallest, StableSearch, Work};
pub use typed::StableFamily;
pub use windows::{Totals, WindowTotal, smallest_window};
