//! Distributions that are drawn from, each known exactly.
//!
//! Noise is a table of integers over 2^128: certified when it is built, drawn by scanning it whole.
//!
//! A privacy claim about a table rests on a rational number that is proved not to exceed e^epsilon and on comparisons
//! of integers ([`multiplier`]), and on nothing else.

pub mod categorical;
pub mod coin;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod exponential;
pub mod inversion;
pub mod kappa;
mod least;
pub mod multiplier;
pub mod negative_binomial;
pub mod refusal;
pub mod table;
pub mod tdlap;
pub mod uniform;
pub mod words;

pub use categorical::Categorical;
pub use coin::Coin;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplaceTables;
pub use inversion::{Geometric, TwoSidedGeometric};
pub use kappa::kappa;
pub use negative_binomial::{NegativeBinomialMasses, NegativeBinomialTable};
pub use refusal::RefusalTable;
pub use table::Table;
pub use tdlap::{KappaRule, TruncatedDiscreteLaplaceTable};
pub use uniform::Uniform;

use crate::{
    Error, Result,
    exact::{Integer, Level, Rational, rounding::Direction, rounding::rational_to_f64},
};
use num_traits::{One, Signed};
use std::cmp::Ordering;

/// The most noise values on one side of a table, and the most steps of a refusal table.
pub const SIZE_LIMIT: u64 = 1 << 20;

/// Refuses epsilon <= 0 and delta outside (0, 1).
fn check_parameters(level: &Level, delta: &Rational) -> Result<()> {
    let one = Rational::one();
    if level.compare(&one, &one) != Ordering::Less {
        return Err(Error::invalid("epsilon", "must be > 0 here"));
    }
    if !delta.is_positive() || delta >= &one {
        let shown = rational_to_f64(delta, Direction::Nearest);
        return Err(Error::invalid("delta", format!("must be in (0, 1) here, ends excluded; got {shown:e}")));
    }
    Ok(())
}

/// floor(delta 2^128) as an integer, at least 1.
fn delta_units(delta: &Rational) -> Result<crate::exact::Natural> {
    let units: Integer = (delta.numer() << 128_u32) / delta.denom();
    if !units.is_positive() {
        return Err(Error::invalid("delta", "is below 2^-128, the smallest probability of a table"));
    }
    Ok(units.magnitude().clone())
}
