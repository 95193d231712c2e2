//! A rational lower bound of E = e^epsilon with 128 fraction bits: what the entries of tables are multiplied by.

use crate::{
    Error, Result,
    exact::{Integer, Level, Natural, Rational, dyadic::Dyadic},
};
use num_integer::Integer as _;
use num_traits::{One, Signed};
use std::cmp::Ordering;

/// Fraction bits of the bound and of every table.
pub const BITS: u32 = 128;

/// The bound is cut at 2^64: a larger one would leave no room for a table over 2^128.
const LARGEST_POWER: u32 = 64;

/// `E_lo` = numerator / 2^128 with 1 <= `E_lo` <= E.
#[derive(Debug, Clone)]
pub struct LowerMultiplier {
    numerator: Natural,
}

impl LowerMultiplier {
    /// min(floor(E 2^128), 2^192) / 2^128.
    ///
    /// # Guarantee
    /// The result is compared with the exact level once more, so that it does not exceed E whatever the enclosure was.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for E < 1.
    pub fn new(level: &Level) -> Result<Self> {
        let numerator = floor_of_level(level);
        let unit = Integer::one() << BITS;
        let bound = Rational::new(numerator.clone(), unit.clone());
        if numerator < unit || level.compare(&bound, &Rational::one()) == Ordering::Greater {
            return Err(Error::invalid("epsilon", "must be >= 0"));
        }
        Ok(Self { numerator: numerator.magnitude().clone() })
    }

    /// `E_lo` 2^128.
    pub fn numerator(&self) -> &Natural {
        &self.numerator
    }

    /// floor(`E_lo` a).
    pub fn times(&self, a: &Natural) -> Natural {
        (a * &self.numerator) >> BITS
    }

    /// ceil(a / `E_lo`).
    pub fn divide_up(&self, a: &Natural) -> Natural {
        (a << BITS).div_ceil(&self.numerator)
    }
}

/// min(floor(E 2^128), 2^192).
fn floor_of_level(level: &Level) -> Integer {
    let cap = Rational::from_integer(Integer::one() << LARGEST_POWER);
    if level.compare(&cap, &Rational::one()) != Ordering::Greater {
        return Integer::one() << (BITS + LARGEST_POWER);
    }
    if level.is_rational() {
        return (level.ratio().numer() << BITS).div_floor(level.ratio().denom());
    }
    // e^x < 1 + 2x for 0 < x < 1: nothing is left of an x this small, whatever its digits are.
    if level.ratio().is_one()
        && level.exponent() < &Rational::new(Integer::one(), Integer::one() << (BITS + 1))
    {
        return Integer::one() << BITS;
    }
    let floor = |end: &Dyadic| (end.to_rational() * (Integer::one() << BITS)).floor().to_integer();
    // E 2^128 is irrational, so both ends of a narrow enough enclosure have the same floor.
    let mut bits = i64::from(BITS + LARGEST_POWER);
    loop {
        let enclosure = level.enclosure(bits);
        let lower = floor(&enclosure.lower);
        if lower == floor(&enclosure.upper) {
            debug_assert!(!lower.is_negative());
            return lower;
        }
        bits *= 2;
    }
}
