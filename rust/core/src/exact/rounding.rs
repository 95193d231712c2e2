//! Between f64 and exact numbers, in every rounding direction.

use super::{Integer, Natural, Rational};
use num_traits::{ToPrimitive, Zero};

/// Which neighboring float stands for an exact number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The largest float that is not above.
    Down,
    /// The nearest float, ties to even.
    Nearest,
    /// The smallest float that is not below.
    Up,
}

/// A finite float as `mantissa * 2^exponent` with a non-negative 53-bit mantissa; the sign is dropped.
pub fn decompose(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    // 11 bits fit in i32.
    #[allow(clippy::cast_possible_truncation)]
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    if exponent == 0 { (fraction, -1074) } else { (fraction | (1 << 52), exponent - 1075) }
}

/// The exact value of a finite, non-negative float.
pub fn rational_from_f64(x: f64) -> Rational {
    let (mantissa, exponent) = decompose(x);
    if mantissa == 0 {
        return Rational::zero();
    }
    // In lowest terms by shifting alone: the denominator is a power of two.
    let zeros = mantissa.trailing_zeros();
    let mantissa = Integer::from(mantissa >> zeros);
    let exponent = exponent + zeros.cast_signed();
    let shift = exponent.unsigned_abs() as usize;
    if exponent >= 0 {
        Rational::from_integer(mantissa << shift)
    } else {
        Rational::new_raw(mantissa, Integer::from(1) << shift)
    }
}

/// The shortest decimal that a finite, non-negative float prints as: 1/10 for 0.1.
pub fn printed_decimal(x: f64) -> Rational {
    let text = format!("{x:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number: Integer = [whole, part].concat().parse().unwrap_or_default();
    let power = power.parse::<i64>().unwrap_or(0) - i64::try_from(part.len()).unwrap_or(0);
    let scale = Integer::from(10).pow(u32::try_from(power.unsigned_abs()).unwrap_or(0));
    if power < 0 { Rational::new(number, scale) } else { Rational::from_integer(number * scale) }
}

/// Rounds `(quotient + t) * 2^exponent` with 0 <= t < 1, t = 0 exactly when `exact`; `quotient` has 55 bits or more,
/// or `exact` holds.
fn round_parts(quotient: u64, exact: bool, exponent: i64, direction: Direction) -> f64 {
    let bits = i64::from(64 - quotient.leading_zeros());
    let top = bits - 1 + exponent;
    if top > 1023 {
        return if direction == Direction::Down { f64::MAX } else { f64::INFINITY };
    }
    // Below the normal range the last representable place stays at 2^-1074.
    let last_place = (top - 52).max(-1074);
    let drop = last_place - exponent;
    let (kept, half, rest) = if drop <= 0 {
        debug_assert!(exact && -drop < 64);
        (quotient << -drop, false, false)
    } else if drop > 64 {
        (0, false, true)
    } else {
        let wide = u128::from(quotient);
        let half = (wide >> (drop - 1)) & 1 == 1;
        let below = wide & ((1_u128 << (drop - 1)) - 1) != 0;
        #[allow(clippy::cast_possible_truncation)]
        let kept = (wide >> drop) as u64;
        (kept, half, below || !exact)
    };
    let up = match direction {
        Direction::Down => false,
        Direction::Up => half || rest,
        Direction::Nearest => half && (rest || kept & 1 == 1),
    };
    let mantissa = kept + u64::from(up);
    // Assembled from its bits, so that no processor mode for subnormals matters. 2^53 carries into the exponent, and
    // from the largest float into infinity, as the encoding is made for.
    let biased = (last_place + 1075).unsigned_abs(); // 1 for subnormals and the first normal binade
    if mantissa < 1 << 52 {
        f64::from_bits(mantissa) // last_place is -1074 then
    } else {
        f64::from_bits((biased << 52) + (mantissa - (1 << 52)))
    }
}

/// `numerator / denominator` as a float in the given direction.
pub fn quotient_to_f64(numerator: &Natural, denominator: &Natural, direction: Direction) -> f64 {
    scaled_quotient_to_f64(numerator, denominator, 0, direction)
}

/// `numerator / denominator * 2^exponent` as a float in the given direction.
pub fn scaled_quotient_to_f64(
    numerator: &Natural,
    denominator: &Natural,
    exponent: i64,
    direction: Direction,
) -> f64 {
    if numerator.is_zero() {
        return 0.0;
    }
    // Shift so that the integer quotient has 57 or 58 bits.
    let shift = 57 - (numerator.bits().cast_signed() - denominator.bits().cast_signed());
    let distance = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    let (quotient, remainder) = if shift >= 0 {
        num_integer::Integer::div_rem(&(numerator << distance), denominator)
    } else {
        num_integer::Integer::div_rem(numerator, &(denominator << distance))
    };
    let quotient = quotient.to_u64().unwrap_or(u64::MAX);
    round_parts(quotient, remainder.is_zero(), exponent.saturating_sub(shift), direction)
}

/// A rational of either sign as a float in the given direction.
pub fn rational_to_f64(x: &Rational, direction: Direction) -> f64 {
    let negative = x.numer() < &Integer::zero();
    let flipped = match direction {
        Direction::Down if negative => Direction::Up,
        Direction::Up if negative => Direction::Down,
        other => other,
    };
    let magnitude = quotient_to_f64(x.numer().magnitude(), x.denom().magnitude(), flipped);
    if negative { -magnitude } else { magnitude }
}
