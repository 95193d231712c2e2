//! Numbers `mantissa * 2^exponent`, the end points of intervals.

use super::{
    Integer, Rational,
    rounding::{Direction, scaled_quotient_to_f64},
};
use num_bigint::Sign;
use num_integer::Integer as _;
use num_traits::{One, Signed, Zero};
use std::cmp::Ordering;

/// The number `mantissa * 2^exponent`.
#[derive(Debug, Clone)]
pub struct Dyadic {
    /// Any integer.
    pub mantissa: Integer,
    /// Any exponent; arithmetic keeps it far from overflow.
    pub exponent: i64,
}

fn magnitude_bits(x: &Integer) -> i64 {
    x.bits().cast_signed()
}

fn shift_left(x: &Integer, places: i64) -> Integer {
    x << usize::try_from(places).unwrap_or(usize::MAX)
}

impl Dyadic {
    /// An integer.
    pub fn integer(mantissa: Integer) -> Self {
        Self { mantissa, exponent: 0 }
    }

    /// `numerator / denominator` (denominator positive) to `bits` significant bits, rounded up or down.
    pub fn quotient(numerator: &Integer, denominator: &Integer, bits: i64, up: bool) -> Self {
        if numerator.is_zero() {
            return Self::integer(Integer::zero());
        }
        let places = bits + 1 - (magnitude_bits(numerator) - magnitude_bits(denominator));
        let (numerator, denominator) = if places >= 0 {
            (shift_left(numerator, places), denominator.clone())
        } else {
            (numerator.clone(), shift_left(denominator, -places))
        };
        let mantissa = if up { numerator.div_ceil(&denominator) } else { numerator.div_floor(&denominator) };
        Self { mantissa, exponent: -places }
    }

    /// Rounded to at most `bits` significant bits, up or down.
    #[must_use]
    pub fn rounded(self, bits: i64, up: bool) -> Self {
        let drop = magnitude_bits(&self.mantissa) - bits;
        if drop <= 0 {
            return self;
        }
        let places = usize::try_from(drop).unwrap_or(usize::MAX);
        let floor = &self.mantissa >> places; // an arithmetic shift: toward minus infinity
        let inexact = (&floor << places) != self.mantissa;
        let mantissa = if up && inexact { floor + 1 } else { floor };
        Self { mantissa, exponent: self.exponent + drop }
    }

    fn aligned(&self, other: &Self) -> (Integer, Integer, i64) {
        let exponent = self.exponent.min(other.exponent);
        (
            shift_left(&self.mantissa, self.exponent - exponent),
            shift_left(&other.mantissa, other.exponent - exponent),
            exponent,
        )
    }

    /// The exact sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if self.mantissa.is_zero() {
            return other.clone();
        }
        if other.mantissa.is_zero() {
            return self.clone();
        }
        let (a, b, exponent) = self.aligned(other);
        Self { mantissa: a + b, exponent }
    }

    /// The exact product.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self { mantissa: &self.mantissa * &other.mantissa, exponent: self.exponent + other.exponent }
    }

    /// The negative.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { mantissa: -&self.mantissa, exponent: self.exponent }
    }

    /// -1, 0 or 1 as an ordering against zero.
    pub fn sign(&self) -> Ordering {
        match self.mantissa.sign() {
            Sign::Minus => Ordering::Less,
            Sign::NoSign => Ordering::Equal,
            Sign::Plus => Ordering::Greater,
        }
    }

    /// The exact comparison of two positive numbers or zero, without aligning them when their sizes differ.
    pub fn compare(&self, other: &Self) -> Ordering {
        let (sign, other_sign) = (self.sign(), other.sign());
        if sign != other_sign || sign == Ordering::Equal {
            return sign.cmp(&other_sign);
        }
        let size = magnitude_bits(&self.mantissa) + self.exponent;
        let other_size = magnitude_bits(&other.mantissa) + other.exponent;
        if size != other_size {
            return if sign == Ordering::Greater { size.cmp(&other_size) } else { other_size.cmp(&size) };
        }
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }

    /// The float in the given direction.
    pub fn to_f64(&self, direction: Direction) -> f64 {
        let negative = self.mantissa.is_negative();
        let flipped = match direction {
            Direction::Down if negative => Direction::Up,
            Direction::Up if negative => Direction::Down,
            other => other,
        };
        let one = num_bigint::BigUint::one();
        let magnitude = scaled_quotient_to_f64(self.mantissa.magnitude(), &one, self.exponent, flipped);
        if negative { -magnitude } else { magnitude }
    }

    /// The exact rational; only for exponents of moderate size.
    pub fn to_rational(&self) -> Rational {
        if self.exponent >= 0 {
            Rational::from_integer(shift_left(&self.mantissa, self.exponent))
        } else {
            Rational::new(self.mantissa.clone(), shift_left(&Integer::one(), -self.exponent))
        }
    }
}
