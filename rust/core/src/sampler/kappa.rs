//! Half the width of the truncated discrete Laplace noise, as the paper has it: [GKKMMZ23, Definition 8].

use super::check_parameters;
use crate::{
    Error, Result,
    exact::{Integer, Interval, Level, Rational, dyadic::Dyadic, ln::ln},
};
use num_traits::{One, ToPrimitive};
use std::cmp::Ordering;

/// Values of kappa above this are refused.
pub const KAPPA_LIMIT: u64 = 1 << 60;

/// Precision of the first attempt, enough to place every kappa up to the limit between two integers.
const FIRST_BITS: i64 = 160;

/// Beyond this precision the quotient is refused as too near to an integer.
const LAST_BITS: i64 = 1 << 15;

/// 1 + min{c : E^c >= 1/delta}: kappa = 1 + ceil(ln(1/delta) / epsilon), for E > 1 and 0 < delta < 1.
///
/// # Guarantee
/// Exact. The quotient x = ln(1/delta) / ln E is enclosed; if the enclosure holds no integer in its inside, ceil(x) is
/// known. Otherwise x may be that integer m: for irrational E it is not, since e^(m exponent) is then transcendental and
/// delta is not; for rational E the equation E^m = 1/delta is decided in integers. If it fails, more precision decides.
///
/// # Errors
/// [`Error::InvalidArgument`] for parameters outside their ranges; [`Error::TooLarge`] for kappa above 2^60, before any
/// long work, and for an x within about 2^-20000 of an integer without being one.
pub fn kappa(level: &Level, delta: &Rational) -> Result<u64> {
    check_parameters(level, delta)?;
    let delta = &delta.reduced();
    let inverse = delta.recip();
    let mut bits = FIRST_BITS;
    while bits <= LAST_BITS {
        let logarithm = ln_of_level(level, bits);
        if logarithm.lower.sign() == Ordering::Greater {
            let quotient = ln(&inverse, bits).times(&logarithm.reciprocal(bits), bits);
            if quotient.lower.compare(&Dyadic::integer(Integer::from(KAPPA_LIMIT - 1))) == Ordering::Greater {
                return Err(Error::too_large(format!(
                    "kappa would be above 2^60 = {KAPPA_LIMIT}; choose a larger epsilon or delta"
                )));
            }
            let (lower, upper) = (ceiling(&quotient.lower), ceiling(&quotient.upper));
            if lower == upper || (upper == lower + 1 && power_is(level, lower, delta)) {
                return Ok(1 + lower);
            }
        }
        bits *= 2;
    }
    Err(Error::too_large(
        "ln(1/delta) / epsilon is too near to an integer for its ceiling to be found with 32768 bits; \
         choose a delta with fewer digits",
    ))
}

/// Encloses ln E.
fn ln_of_level(level: &Level, bits: i64) -> Interval {
    let exponent = Interval::rational(level.exponent(), bits + 4);
    if level.ratio().is_one() { exponent } else { ln(level.ratio(), bits + 4).plus(&exponent, bits) }
}

/// The ceiling of a positive number that is not far above 2^60.
fn ceiling(x: &Dyadic) -> u64 {
    // A tiny number is not written out.
    if x.compare(&Dyadic::integer(Integer::one())) == Ordering::Greater {
        x.to_rational().ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    } else {
        1
    }
}

/// True when E^m = 1/delta, for delta in lowest terms and m >= 1.
fn power_is(level: &Level, m: u64, delta: &Rational) -> bool {
    if !level.is_rational() {
        return false;
    }
    let ratio = level.ratio().reduced();
    // (a/b)^m is in lowest terms as a/b is, so a^m and b^m are the denominator and the numerator of delta; a >= 2 then
    // bounds m before anything is multiplied out.
    match u32::try_from(m) {
        Ok(power) if (ratio.numer().bits() - 1).saturating_mul(m) < delta.denom().bits() => {
            &ratio.numer().pow(power) == delta.denom() && &ratio.denom().pow(power) == delta.numer()
        }
        _ => false,
    }
}
