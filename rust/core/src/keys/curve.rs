//! The hockey-stick divergence of Gaussian noise at all levels, those below 1 too.

use super::{one, quotient, rest, smaller, zero};
use crate::{
    Error, Result,
    composition::{DEEP, Depth, Point, delta_above},
    exact::{Integer, Level, Rational, dyadic::Dyadic},
};
use num_traits::{One, Signed};
use std::cmp::Ordering;

/// Curves fall: levels beyond this are taken as this.
const LARGEST_LEVEL: i64 = 1024;

/// A level E > 0 of curves, whose logarithm is kept for the next one.
pub(super) struct At {
    level: Dyadic,
    /// Whether the level is below 1: then the curve is that at its inverse, of the other order of the pair.
    below: bool,
    point: Point,
}

impl At {
    pub(super) fn new(level: Dyadic) -> Self {
        let below = level.compare(&one()) == Ordering::Less;
        let highest = Dyadic { mantissa: Integer::one(), exponent: LARGEST_LEVEL };
        let magnitude = level.mantissa.bits().cast_signed() + level.exponent;
        let above = if magnitude.abs() > LARGEST_LEVEL {
            highest.to_rational()
        } else if below {
            level.to_rational().recip()
        } else {
            level.to_rational()
        };
        Self { level, below, point: Point::new(Level::rational(above)) }
    }

    /// At or above the sum of [P - E Q]_+ for N(mu, 1) and N(0, 1): they have equal curves in both orders.
    pub(super) fn curve(&self, mu2: &Rational, depth: Depth) -> Dyadic {
        if !mu2.is_positive() {
            return if self.below { rest(&self.level) } else { zero() };
        }
        let found = delta_above(mu2, &self.point, depth);
        if self.below { smaller(rest(&self.level).plus(&self.level.times(&found)), one()) } else { found }
    }
}

/// At or above the sum of [P - E Q]_+ for N(mu, 1) and N(0, 1), by mu^2, at a level E that may be below 1; by a part in 2^150 or so.
///
/// # Errors
/// Where `mu2` is negative.
pub fn gaussian_hockey_stick(mu2: &Rational, level: &Rational) -> Result<Rational> {
    if mu2.is_negative() {
        return Err(Error::invalid("mu2", "must not be negative"));
    }
    if !level.is_positive() {
        return Ok(Rational::one());
    }
    // The curve falls as the level grows.
    let lowered = Dyadic::quotient(level.numer(), level.denom(), 256, false);
    Ok(At::new(lowered).curve(mu2, DEEP).to_rational())
}

/// x / y as a level, rounded down: what is left of one where outcomes have so much of their probability.
pub(super) fn level_over(x: &Dyadic, y: &Dyadic, bits: i64) -> Dyadic {
    quotient(x, y, bits, false)
}
