//! Integer scores of hypotheses on rows that belong to users, and the numbers that choose between such scores.
//!
//! Replacing all the rows of one user changes each of these scores by at most a stated number: the sensitivity. All are
//! counts, never fractions of the number of users.

pub mod binomial;
pub mod counts;
pub mod medians;
mod order;
pub mod pairwise;
pub mod predictions;
pub mod psi;
pub mod scheffe;
pub mod surrogate;
pub mod thresholds;
pub mod user_rows;
pub mod users;
