//! Enclosures of e^x in 128-bit integers, for x from 0 to 2^10: a hundred nanoseconds for 123 bits.
//!
//! # Numerics
//! x = n ln 2 + r with an integer n and 0 <= r < 0.6932, and e^x = 2^n e^r. In fixed point, with all roundings downwards:
//!
//! * *Argument.* X = floor(2^128 x) is short of 2^128 x by less than 1, and N = n `LN_2_HIGH` + floor(n (`LN_2_LOW` + 1)
//!   / 2^64) + 1 exceeds 2^128 n ln 2 by less than 1.01; N = 0 for n = 0. So R = X - N is at most 2^128 r, and short of it
//!   by less than 2.01.
//! * *Multiple.* n = floor(floor(2^32 x) `INVERSE_LN_2` / 2^64) is at most x / ln 2, and above x / ln 2 - (1 + 2^-21). With
//!   `INVERSE_LN_2` below 2^32 / ln 2 by a part of 10^-10, x exceeds n ln 2 by at least that part whenever n > 0, so that R is positive.
//! * *Series.* S(i) = sum over j >= i of r^(j - i) / j! obeys S(i) = 1 / i! + r S(i + 1), and e^r = S(0). In units of
//!   2^-126, c(i) = floor(2^126 / i!), s(33) = c(33) and s(i) = c(i) + floor(s(i + 1) R / 2^128). Then
//!   0 <= 2^126 S(i) - s(i) < 8: at the start it is below 1 + 2^126 r S(34) < 2; a step takes a shortfall d to less than
//!   1 + 1 + 2.01 S(i + 1) / 4 + r d < 2 + 0.33 + 0.6932 * 8 < 8 for i >= 1, where S(i + 1) <= S(2) < 0.65; and at i = 0,
//!   where c(0) is exact and S(1) < 1.45, to less than 1 + 0.73 + 0.6932 * 8 < 8.
//!
//! So m = s(0) obeys m <= 2^126 e^r < m + 8, and is from 2^126 to 2^127.01. No float is computed with.

use super::{Integer, Interval, Rational, dyadic::Dyadic, rounding::decompose};

/// floor(2^128 ln 2).
const LN_2_HIGH: u128 = 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af;
/// The next 64 bits of ln 2.
const LN_2_LOW: u64 = 0x40f3_4326_7298_b62d;
/// floor(2^32 / ln 2).
const INVERSE_LN_2: u64 = 6_196_328_018;

/// Arguments must be below this.
const LIMIT: u64 = 1 << 10;

/// Bits of fraction of mantissas.
const FRACTION_BITS: i32 = 126;

/// The last term of the series.
const LAST: usize = 33;

/// Mantissas are below the exact number by less than this.
const WIDTH: u128 = 8;

/// floor(2^126 / i!): flooring after each division is flooring after all of them.
const INVERSE_FACTORIALS: [u128; LAST + 1] = {
    let mut terms = [1 << FRACTION_BITS; LAST + 1];
    let mut i = 1;
    while i <= LAST {
        terms[i] = terms[i - 1] / i as u128;
        i += 1;
    }
    terms
};

/// Encloses e^x between `mantissa 2^exponent` and `(mantissa + 8) 2^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    mantissa: u128,
    exponent: i32,
}

/// floor(a b / 2^128).
fn high_product(a: u128, b: u128) -> u128 {
    const LOW: u128 = (1 << 64) - 1;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
    // Each sum is at most (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1.
    let middle = a_high * b_low + ((a_low * b_low) >> 64);
    let other = a_low * b_high + (middle & LOW);
    a_high * b_high + (middle >> 64) + (other >> 64)
}

/// The nearest float, and the float nearest to what is missing.
fn two_floats(x: u128) -> (f64, f64) {
    // Integers are cast to the nearest float, ties to even.
    let high = x as f64;
    // x has at most 127.01 bits: the cast is exact, and the difference has at most 75 bits and a sign.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rest = x.wrapping_sub(high as u128).cast_signed();
    (high, rest as f64)
}

impl Power {
    /// Encloses e^x for a finite float x >= 0; the sign is dropped. `None` from 2^10 on.
    pub fn of_float(x: f64) -> Option<Self> {
        let (mantissa, exponent) = decompose(x);
        if exponent >= 0 {
            return None; // x >= 2^52, since 0 has exponent -1074
        }
        let places = exponent.unsigned_abs();
        let whole = mantissa.checked_shr(places).unwrap_or(0);
        let fraction = match places {
            1..=128 => u128::from(mantissa) << (128 - places),
            _ => u128::from(mantissa).checked_shr(places - 128).unwrap_or(0),
        };
        Self::of_parts(whole, fraction)
    }

    /// Encloses e^x for a rational x >= 0. `None` from 2^10 on.
    pub fn of_rational(x: &Rational) -> Option<Self> {
        if x.numer().bits() > x.denom().bits() + 10 {
            return None; // x > 2^10
        }
        let scaled: Integer = (x.numer() << 128) / x.denom();
        let mut digits = scaled.iter_u64_digits();
        let mut digit = || digits.next().unwrap_or(0);
        let fraction = u128::from(digit()) | (u128::from(digit()) << 64);
        Self::of_parts(digit(), fraction)
    }

    /// Encloses e^x for `x = whole + fraction / 2^128`, or less than 2^-128 above.
    fn of_parts(whole: u64, fraction: u128) -> Option<Self> {
        if whole >= LIMIT {
            return None;
        }
        // 42 bits by 33, shifted to 11: the casts lose nothing.
        #[allow(clippy::cast_possible_truncation)]
        let multiple = {
            let leading = (whole << 32) | (fraction >> 96) as u64;
            ((u128::from(leading) * u128::from(INVERSE_LN_2)) >> 64) as u64
        };
        let rest = if multiple == 0 {
            fraction
        } else {
            // The difference is below 2^128: modulo that it is what it is.
            let low = (u128::from(multiple) * (u128::from(LN_2_LOW) + 1)) >> 64;
            fraction.wrapping_sub(LN_2_HIGH.wrapping_mul(multiple.into()).wrapping_add(low + 1))
        };
        debug_assert!(rest >> 96 < 2_977_271_330, "r < 0.6932");
        let mut sum = INVERSE_FACTORIALS[LAST];
        for term in INVERSE_FACTORIALS[..LAST].iter().rev() {
            sum = term + high_product(sum, rest);
        }
        let multiple = i32::try_from(multiple).ok()?;
        Some(Self { mantissa: sum, exponent: multiple - FRACTION_BITS })
    }

    /// The enclosure as an interval.
    pub fn interval(&self) -> Interval {
        let end = |mantissa: u128| Dyadic { mantissa: mantissa.into(), exponent: self.exponent.into() };
        Interval { lower: end(self.mantissa), upper: end(self.mantissa + WIDTH) }
    }

    /// The float nearest to e^x, and the float nearest to what is missing, when the enclosure settles both and e^x is
    /// below 2^400.
    ///
    /// # Guarantee
    /// The same pair for every number in the enclosure, and below it by up to 2^-127 of itself: rounding is monotone.
    pub fn two_floats(&self) -> Option<(f64, f64)> {
        let pair = two_floats(self.mantissa - 1);
        if pair != two_floats(self.mantissa + WIDTH) || self.exponent + FRACTION_BITS > 398 {
            return None;
        }
        // Both are 0 or integers, and the exponent is from -126 to 272: the products are exact.
        let scale = f64::from_bits(u64::from((1023 + self.exponent).unsigned_abs()) << 52);
        Some((pair.0 * scale, pair.1 * scale))
    }
}
