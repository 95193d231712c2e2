//! The levels of a grid: e^(loss) = offset * step^index, with enclosures of any width.

use crate::exact::{Integer, Interval, Rational, exp::exp, ln::ln};
use num_traits::{One, Signed, Zero};
use std::collections::HashMap;

/// `ratio * e^exponent`, for a positive ratio and any exponent: e^loss of an outcome, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multiplier {
    /// A positive rational.
    pub ratio: Rational,
    /// Of e; of any sign.
    pub exponent: Rational,
}

impl Multiplier {
    /// A rational number.
    pub fn rational(ratio: Rational) -> Self {
        Self { ratio, exponent: Rational::zero() }
    }

    /// A power of e.
    pub fn exponential(exponent: Rational) -> Self {
        Self { ratio: Rational::one(), exponent }
    }

    /// The product with a power of another.
    #[must_use]
    pub fn times_power(&self, other: &Self, power: i64) -> Self {
        // A product takes common divisors of long numbers.
        let power_of_ratio = pow(&other.ratio, power);
        let ratio = if self.ratio.is_one() { power_of_ratio } else { &self.ratio * power_of_ratio };
        Self { ratio, exponent: &self.exponent + &other.exponent * Integer::from(power) }
    }

    /// An enclosure to about so many bits; the exponent must be below 2^59.
    pub fn enclosure(&self, bits: i64) -> Interval {
        let ratio = Interval::rational(&self.ratio, bits + 4);
        if self.exponent.is_zero() {
            return ratio;
        }
        let power = exp(&self.exponent, bits + 4);
        if self.ratio.is_one() { power } else { power.times(&ratio, bits + 4) }
    }

    /// An enclosure of the logarithm, to about so many bits behind the point.
    pub fn ln(&self, bits: i64) -> Interval {
        let exponent = Interval::rational(&self.exponent, bits + 64);
        if self.ratio.is_one() { exponent } else { ln(&self.ratio, bits + 64).plus(&exponent, bits + 64) }
    }
}

fn pow(ratio: &Rational, power: i64) -> Rational {
    let exponent = i32::try_from(power).unwrap_or(i32::MAX);
    ratio.pow(exponent)
}

/// An interval to a power of at least 0; each product rounds outwards, and the bits that it takes are added.
fn interval_power(base: &Interval, power: u64, bits: i64) -> Interval {
    let bits = bits + 2 * i64::from(power.max(1).ilog2()) + 8;
    let mut result = Interval::integer(1);
    for bit in (0..u64::BITS - power.leading_zeros()).rev() {
        result = result.times(&result.clone(), bits);
        if power >> bit & 1 == 1 {
            result = result.times(base, bits);
        }
    }
    result
}

/// offset * step^index for all integers; offsets of a product multiply, so that one is a list of powers.
#[derive(Debug, Clone)]
pub struct Levels {
    /// Above 1.
    pub step: Multiplier,
    /// Factors and how often they enter.
    pub offset: Vec<(Multiplier, u64)>,
}

impl Levels {
    /// Without an offset.
    pub fn multiples_of(step: Multiplier) -> Self {
        Self { step, offset: Vec::new() }
    }

    /// An enclosure of a level, to about so many bits.
    pub fn enclosure(&self, index: i64, bits: i64) -> Interval {
        let mut exponent = &self.step.exponent * Integer::from(index);
        let mut power = signed_power(&self.step.ratio, index.is_negative(), index.unsigned_abs(), bits);
        for (factor, count) in &self.offset {
            exponent += &factor.exponent * Integer::from(*count);
            power = power.times(&signed_power(&factor.ratio, false, *count, bits), bits + 8);
        }
        if exponent.is_zero() { power } else { exp(&exponent, bits + 8).times(&power, bits + 8) }
    }

    /// An enclosure of a level's logarithm, to about so many bits behind the point.
    pub fn ln(&self, index: i64, bits: i64) -> Interval {
        let bits = bits + 64;
        let mut sum = self.step.ln(bits).times(&Interval::integer(index), bits + 64);
        for (factor, count) in &self.offset {
            sum = sum.plus(&factor.ln(bits).times(&Interval::integer(*count), bits + 64), bits + 64);
        }
        sum
    }

    /// The offset alone, as a logarithm in a float: for finding indices that are checked afterwards.
    pub(super) fn offset_and_step(&self) -> (f64, f64) {
        let middle = |interval: Interval| interval.to_f64_bounds().0;
        (middle(self.ln(0, 64)), middle(self.step.ln(64)))
    }
}

fn signed_power(ratio: &Rational, inverse: bool, power: u64, bits: i64) -> Interval {
    if ratio.is_one() || power == 0 {
        return Interval::integer(1);
    }
    debug_assert!(ratio.is_positive());
    let extra = 2 * i64::from(power.ilog2()) + 16;
    let base = if inverse { ratio.recip() } else { ratio.clone() };
    interval_power(&Interval::rational(&base, bits + extra), power, bits)
}

/// Levels without an offset that are asked for often: products of a far and a near power, each made once.
pub(super) struct LevelTable<'a> {
    levels: &'a Levels,
    bits: i64,
    far: HashMap<i64, Interval>,
    near: HashMap<i64, Interval>,
}

impl<'a> LevelTable<'a> {
    pub(super) fn new(levels: &'a Levels, bits: i64) -> Self {
        debug_assert!(levels.offset.is_empty());
        Self { levels, bits: bits + 4, far: HashMap::new(), near: HashMap::new() }
    }

    pub(super) fn enclosure(&mut self, index: i64) -> Interval {
        const WIDTH: i64 = 128;
        let (levels, bits) = (self.levels, self.bits);
        let (far, near) = (index.div_euclid(WIDTH), index.rem_euclid(WIDTH));
        let near = self.near.entry(near).or_insert_with(|| levels.enclosure(near, bits));
        let far = self.far.entry(far).or_insert_with(|| levels.enclosure(far * WIDTH, bits));
        far.times(near, bits)
    }
}
