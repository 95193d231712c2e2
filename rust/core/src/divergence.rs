//! Divergences of two pmfs, and decided comparisons with a threshold.

pub mod breakpoints;
pub mod hockey_stick;
pub mod information;
pub mod kernel;
pub mod mass_error;

pub use breakpoints::exp_epsilon_at_delta;
pub use hockey_stick::{Difference, Side, Verdict, hockey_stick, hockey_stick_bounds, is_indistinguishable};
