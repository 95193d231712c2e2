//! Enclosures of ln x for positive rational x.

use super::{Integer, Interval, Rational, dyadic::Dyadic, rounding::Direction};
use num_integer::Integer as _;
use num_traits::{One, Signed, Zero};
use std::sync::OnceLock;

/// Encloses 2 atanh(a/b) = ln((b+a)/(b-a)) for 0 <= a/b <= 1/3, to about `bits` relative bits.
///
/// # Numerics
/// The series is z + z^3/3 + z^5/5 + ... in fixed point, carried as floors for the lower sum and as ceilings for the
/// upper one, with as many more fraction bits as z has leading zeros. After a term t the tail is below
/// t z^2 / (1 - z^2) <= t / 8; the loop ends when the upper power is a single unit, which then bounds the tail.
fn twice_atanh(a: &Integer, b: &Integer, bits: i64) -> Interval {
    if a.is_zero() {
        return Interval::integer(0);
    }
    let zeros = (b.bits().cast_signed() - a.bits().cast_signed()).max(0);
    let width = bits + zeros + 24;
    let shift = usize::try_from(width).unwrap_or(0);
    let scaled = a << shift;
    let (lower_z, upper_z) = (scaled.div_floor(b), scaled.div_ceil(b));
    let round_up = (Integer::one() << shift) - 1;
    let lower_square: Integer = (&lower_z * &lower_z) >> shift;
    let upper_square: Integer = (&upper_z * &upper_z + &round_up) >> shift;
    let (mut lower_sum, mut upper_sum) = (lower_z.clone(), upper_z.clone());
    let (mut lower_power, mut upper_power) = (lower_z, upper_z);
    let mut n = 1_u32;
    while !upper_power.is_one() {
        n += 2;
        lower_power = (lower_power * &lower_square) >> shift;
        upper_power = (upper_power * &upper_square + &round_up) >> shift;
        lower_sum += &lower_power / n;
        upper_sum += upper_power.div_ceil(&Integer::from(n));
    }
    // The last power is at most one unit, and so is the tail behind it.
    upper_sum += 1;
    let double = |mantissa: Integer| Dyadic { mantissa, exponent: 1 - width };
    Interval { lower: double(lower_sum), upper: double(upper_sum) }
}

fn ln_two(bits: i64) -> Interval {
    static SHORT: OnceLock<Interval> = OnceLock::new();
    let compute = |bits| twice_atanh(&Integer::one(), &Integer::from(3), bits);
    if bits <= 256 { SHORT.get_or_init(|| compute(256)).clone() } else { compute(bits) }
}

/// Encloses ln x for x > 0 with a relative width of about 2^-bits.
///
/// # Numerics
/// x = 2^n m with 2/3 <= m <= 4/3 (about), ln x = n ln 2 + 2 atanh((m-1)/(m+1)) and |z| <= 1/5. n = 0 for x near 1, so
/// that nothing cancels there; elsewhere |ln x| > 0.28.
pub fn ln(x: &Rational, bits: i64) -> Interval {
    debug_assert!(x.is_positive());
    let mut n = x.numer().bits().cast_signed() - x.denom().bits().cast_signed();
    let scaled = |n: i64| {
        let places = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
        if n >= 0 {
            (x.numer().clone(), x.denom() << places)
        } else {
            (x.numer() << places, x.denom().clone())
        }
    };
    let (mut a, mut b) = scaled(n); // 1/2 < a/b < 2
    let three = Integer::from(3);
    if &a * &three > &b * Integer::from(4) {
        n += 1;
        (a, b) = scaled(n);
    } else if &a * &three < &b * Integer::from(2) {
        n -= 1;
        (a, b) = scaled(n);
    }
    let fraction = if a >= b {
        twice_atanh(&(&a - &b), &(&a + &b), bits + 8)
    } else {
        twice_atanh(&(&b - &a), &(&a + &b), bits + 8).negated()
    };
    let whole = ln_two(bits + 16).times(&Interval::integer(n), bits + 16);
    whole.plus(&fraction, bits + 16)
}

/// Floats at or below and at or above ln x, usually equal or adjacent.
pub fn ln_bounds(x: &Rational) -> (f64, f64) {
    if x.is_one() { (0.0, 0.0) } else { ln(x, 128).to_f64_bounds() }
}

/// The nearest float of ln x for rational x > 0: ln x is irrational unless x = 1, so some precision decides.
pub fn ln_nearest(x: &Rational) -> f64 {
    if x.is_one() {
        return 0.0;
    }
    let mut bits = 96;
    loop {
        let enclosure = ln(x, bits);
        if let Some(value) = enclosure.nearest_f64() {
            return value;
        }
        if bits > 1 << 20 {
            return enclosure.upper.to_f64(Direction::Up);
        }
        bits *= 2;
    }
}
