//! From scores as they come to integers on a public grid, exactly.
//!
//! A score x becomes floor(x / g) for the granularity g = 2^e. Scores that differ by at most Delta become integers that
//! differ by at most ceil(Delta / g), and scores that move in one direction still do.
//!
//! # Timing
//! Not constant time: it stops at the first score that it refuses.

use crate::{
    Error, Result,
    exact::{Integer, Rational},
};
use num_traits::{One, Signed, ToPrimitive};

/// The exponents of the powers of two that are float64 numbers.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1074..=1023;
/// Fraction bits of a float64.
const MANTISSA_BITS: u32 = 52;

/// A power of two, and whether scores must be multiples of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granularity {
    exponent: i32,
    exact: bool,
}

impl Granularity {
    /// Scores must be integers.
    pub fn integers() -> Self {
        Self { exponent: 0, exact: true }
    }

    /// Scores are rounded down to multiples of a power of two.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless it is a power of two from 2^-1074 to 2^1023.
    pub fn floor_to(granularity: &Rational) -> Result<Self> {
        let is_power = |number: &Integer| number.is_positive() && number.magnitude().count_ones() == 1;
        let log_two = |number: &Integer| i32::try_from(number.bits()).map_or(i32::MAX, |bits| bits - 1);
        if is_power(granularity.numer()) && is_power(granularity.denom()) {
            // In lowest terms one of them is 1.
            let exponent = log_two(granularity.numer()) - log_two(granularity.denom());
            if EXPONENTS.contains(&exponent) {
                return Ok(Self { exponent, exact: false });
            }
        }
        let message = "must be a power of two from 2^-1074 to 2^1023, such as 1, 0.25 or 2**-20";
        Err(Error::invalid("granularity", message))
    }

    /// ceil(sensitivity / granularity): what integers on the grid change by at most.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless it is from 1 to 2^62 - 1.
    pub fn sensitivity(&self, sensitivity: &Rational) -> Result<u64> {
        let one = Integer::one();
        let power = Rational::from_integer(&one << self.exponent.unsigned_abs());
        let steps = if self.exponent < 0 { sensitivity * power } else { sensitivity / power };
        if self.exact && !steps.is_integer() {
            let message = "must be an integer, as the scores are, unless a granularity is given";
            return Err(Error::invalid("sensitivity", message));
        }
        let steps = steps.ceil().to_integer();
        steps.to_u64().filter(|steps| (1..1 << 62).contains(steps)).ok_or_else(|| {
            let unit = if self.exact { "" } else { " steps of the granularity" };
            Error::invalid("sensitivity", format!("must be above 0 and below 2^62{unit}"))
        })
    }

    /// The grid points at or below float scores, or their negatives.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the first score that is NaN, infinite, outside of an i64 or not an integer.
    pub fn of_floats(&self, scores: &[f64], negate: bool) -> Result<Vec<i64>> {
        convert(scores, |&score| {
            if !score.is_finite() {
                return Err(format!("is {score}; it must be finite"));
            }
            let (mantissa, exponent) = decoded(if negate { -score } else { score });
            self.point(mantissa, exponent).map_err(|reason| format!("is {score:?}; {reason}"))
        })
    }

    /// The grid points at or below integer scores, or their negatives.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the first score that leads outside of an i64.
    pub fn of_integers(&self, scores: &[i64], negate: bool) -> Result<Vec<i64>> {
        convert(scores, |&score| {
            let value = if negate { -i128::from(score) } else { i128::from(score) };
            self.point(value, 0).map_err(|reason| format!("is {score}; {reason}"))
        })
    }

    /// floor(mantissa 2^exponent / granularity), for |mantissa| <= 2^63.
    fn point(self, mantissa: i128, exponent: i32) -> std::result::Result<i64, &'static str> {
        let shift = exponent - self.exponent;
        let point = if shift < 0 {
            // Shifts of signed integers round down, and 127 places leave 0 or -1.
            let places = shift.unsigned_abs().min(127);
            let point = mantissa >> places;
            if self.exact && point << places != mantissa {
                return Err("it must be an integer; give a granularity to round down to its multiples");
            }
            Some(point)
        } else if mantissa == 0 {
            Some(0)
        } else {
            // 2^63 2^63 fits an i128, and no integer but 0 fits an i64 after 64 places.
            (shift < 64).then(|| mantissa << shift)
        };
        point.and_then(|point| i64::try_from(point).ok()).ok_or(if self.exact {
            "it must be from -2^63 to 2^63 - 1"
        } else {
            "it must be from -2^63 to 2^63 - 1 steps of the granularity"
        })
    }
}

/// Converts all scores, or names the first that cannot be.
fn convert<T>(scores: &[T], convert: impl Fn(&T) -> std::result::Result<i64, String>) -> Result<Vec<i64>> {
    let named = |(index, score)| {
        convert(score)
            .map_err(|reason| Error::invalid("scores", format!("the score at index {index} {reason}")))
    };
    scores.iter().enumerate().map(named).collect()
}

/// (m, e) with x = m 2^e, for a finite float.
fn decoded(x: f64) -> (i128, i32) {
    let bits = x.to_bits();
    let fraction = i128::from(bits & ((1 << MANTISSA_BITS) - 1));
    #[allow(clippy::cast_possible_truncation)] // 11 bits
    let biased = ((bits >> MANTISSA_BITS) & 0x7ff) as i32;
    let (magnitude, exponent) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << MANTISSA_BITS, biased - 1075) };
    (if x.is_sign_negative() { -magnitude } else { magnitude }, exponent)
}
