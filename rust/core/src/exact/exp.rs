//! Enclosures of e^x for rational x.

use super::{Integer, Interval, Rational, dyadic::Dyadic};
use num_integer::Integer as _;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Arguments are halved until they are at most 2^-ARGUMENT_BITS: fewer Taylor terms for a few more squarings.
const ARGUMENT_BITS: i64 = 8;

/// Encloses e^x with a relative width below 2^-bits, for |x| < 2^60.
///
/// # Numerics
/// y = x / 2^k with 0 <= y <= 2^-8 is enclosed in fixed point with w fraction bits. Term n of the series is carried
/// as a floor (for the lower sum) and as a ceiling (for the upper sum). The tail after the last term t is at most
/// t (y + y^2 + ...) <= t, since every further factor y / n is at most 1/2. The k squarings round outwards to w bits
/// each; every squaring doubles the relative width and adds 2^-w, so w = bits + 2k + 16 leaves it below 2^-bits
/// (fixed point costs fewer than 2^8 units at the start).
pub fn exp(x: &Rational, bits: i64) -> Interval {
    if x.is_zero() {
        return Interval::integer(1);
    }
    if x.is_negative() {
        return exp(&-x, bits + 4).reciprocal(bits + 4);
    }
    let size = x.numer().bits().cast_signed() - x.denom().bits().cast_signed() + 1; // x < 2^size
    debug_assert!(size <= 61);
    let halvings = (size + ARGUMENT_BITS).max(0);
    let width = bits + 2 * halvings + 16;
    // A tiny x needs its own leading zeros on top, so that e^x - 1 is resolved relative to 1 only: none are needed.
    let places = usize::try_from(width - halvings).unwrap_or(0);
    let (lower_y, upper_y) = {
        let numerator = x.numer() << places;
        (numerator.div_floor(x.denom()), numerator.div_ceil(x.denom()))
    };
    let shift = usize::try_from(width).unwrap_or(0);
    let one = Integer::from(1) << shift;
    let mask_up = &one - 1;
    let (mut lower_sum, mut upper_sum) = (one.clone(), one.clone());
    let (mut lower_term, mut upper_term) = (one.clone(), one);
    let mut n = 0_u32;
    loop {
        n += 1;
        lower_term = ((lower_term * &lower_y) >> shift) / n;
        let product: Integer = upper_term * &upper_y + &mask_up;
        upper_term = (product >> shift).div_ceil(&Integer::from(n));
        lower_sum += &lower_term;
        upper_sum += &upper_term;
        // Ceilings keep the upper term at 1 or more; one unit is all that is left then.
        if upper_term.to_u64().is_some_and(|term| term <= 1) {
            upper_sum += 1;
            break;
        }
    }
    let mut result = Interval {
        lower: Dyadic { mantissa: lower_sum, exponent: -width },
        upper: Dyadic { mantissa: upper_sum, exponent: -width },
    };
    for _ in 0..halvings {
        result = result.times(&result.clone(), width);
    }
    result
}

/// Encloses e^x for every x in an interval with |x| < 2^60.
pub fn exp_interval(x: &Interval, bits: i64) -> Interval {
    Interval {
        lower: exp(&x.lower.to_rational(), bits).lower,
        upper: exp(&x.upper.to_rational(), bits).upper,
    }
}

/// The integer nearest to `e^x 2^bits` for x <= 0 (e^x is irrational unless x = 0, so there are no ties).
pub fn exp_to_integer(x: &Rational, bits: u32) -> Integer {
    exp_rounded(x, bits, Rational::round)
}

/// The largest integer that is not above `e^x 2^bits`, for x <= 0.
pub fn exp_floor(x: &Rational, bits: u32) -> Integer {
    exp_rounded(x, bits, Rational::floor)
}

/// `e^x 2^bits` rounded in one of these ways: at x < 0 it is irrational, so some precision decides.
fn exp_rounded(x: &Rational, bits: u32, round: impl Fn(&Rational) -> Rational) -> Integer {
    debug_assert!(!x.is_positive());
    if x.is_zero() {
        return Integer::from(1) << bits;
    }
    // e^x < 2^x: below half a unit, nothing is left.
    if -x > Rational::from_integer(Integer::from(bits + 1)) {
        return Integer::ZERO;
    }
    // e^x > 1 + x: less than half a unit below e^0, whatever the digits of x are, so rounded as a quarter below is.
    if -x < Rational::new(Integer::from(1), Integer::from(2) << bits) {
        return round(
            &((Rational::from_integer(Integer::from(4) << bits) - Rational::one()) / Integer::from(4)),
        )
        .to_integer();
    }
    let rounded = |end: &Dyadic| round(&(end.to_rational() * (Integer::from(1) << bits))).to_integer();
    let mut precision = i64::from(bits) + 64;
    loop {
        let enclosure = exp(x, precision);
        let lower = rounded(&enclosure.lower);
        if lower == rounded(&enclosure.upper) {
            return lower;
        }
        precision *= 2;
    }
}
