//! Distributions that are drawn from, each known exactly.

pub mod exponential;
