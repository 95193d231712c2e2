//! Intervals with outward-rounded dyadic end points.

use super::{Integer, Rational, dyadic::Dyadic, rounding::Direction};
use std::cmp::Ordering;

/// A closed interval that contains the exact number it stands for.
#[derive(Debug, Clone)]
pub struct Interval {
    /// At or below the number.
    pub lower: Dyadic,
    /// At or above the number.
    pub upper: Dyadic,
}

impl Interval {
    /// Exactly one integer.
    pub fn integer(x: impl Into<Integer>) -> Self {
        let x = Dyadic::integer(x.into());
        Self { lower: x.clone(), upper: x }
    }

    /// Encloses a rational to `bits` significant bits.
    pub fn rational(x: &Rational, bits: i64) -> Self {
        Self {
            lower: Dyadic::quotient(x.numer(), x.denom(), bits, false),
            upper: Dyadic::quotient(x.numer(), x.denom(), bits, true),
        }
    }

    fn rounded(lower: Dyadic, upper: Dyadic, bits: i64) -> Self {
        Self { lower: lower.rounded(bits, false), upper: upper.rounded(bits, true) }
    }

    /// The sum, rounded outwards.
    #[must_use]
    pub fn plus(&self, other: &Self, bits: i64) -> Self {
        Self::rounded(self.lower.plus(&other.lower), self.upper.plus(&other.upper), bits)
    }

    /// The difference, rounded outwards.
    #[must_use]
    pub fn minus(&self, other: &Self, bits: i64) -> Self {
        Self::rounded(self.lower.plus(&other.upper.negated()), self.upper.plus(&other.lower.negated()), bits)
    }

    /// The negative, exactly.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { lower: self.upper.negated(), upper: self.lower.negated() }
    }

    /// The product, rounded outwards.
    #[must_use]
    pub fn times(&self, other: &Self, bits: i64) -> Self {
        let products = [
            self.lower.times(&other.lower),
            self.lower.times(&other.upper),
            self.upper.times(&other.lower),
            self.upper.times(&other.upper),
        ];
        let mut lower = &products[0];
        let mut upper = &products[0];
        for product in &products[1..] {
            if product.compare(lower) == Ordering::Less {
                lower = product;
            }
            if product.compare(upper) == Ordering::Greater {
                upper = product;
            }
        }
        Self::rounded(lower.clone(), upper.clone(), bits)
    }

    /// `1 / self` for a positive interval, rounded outwards.
    #[must_use]
    pub fn reciprocal(&self, bits: i64) -> Self {
        debug_assert_eq!(self.lower.sign(), Ordering::Greater);
        let one = Integer::from(1);
        let invert = |x: &Dyadic, up: bool| {
            let quotient = Dyadic::quotient(&one, &x.mantissa, bits, up);
            Dyadic { exponent: quotient.exponent - x.exponent, ..quotient }
        };
        Self { lower: invert(&self.upper, false), upper: invert(&self.lower, true) }
    }

    /// Floats at or below, and at or above.
    pub fn to_f64_bounds(&self) -> (f64, f64) {
        (self.lower.to_f64(Direction::Down), self.upper.to_f64(Direction::Up))
    }

    /// The nearest float of the enclosed number, if both ends agree on it.
    pub fn nearest_f64(&self) -> Option<f64> {
        let lower = self.lower.to_f64(Direction::Nearest);
        let upper = self.upper.to_f64(Direction::Nearest);
        (lower == upper).then_some(upper)
    }
}
