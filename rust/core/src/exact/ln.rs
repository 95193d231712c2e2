//! Enclosures of ln x for positive rational x.

use super::{Integer, Interval, Rational, dyadic::Dyadic, rounding::Direction};
use num_traits::{One, Signed, ToPrimitive};
use std::sync::OnceLock;

/// Encloses 2 atanh(z) = ln((1+z)/(1-z)) for rational |z| <= 1/5 or z = 1/3, to about `bits` relative bits.
///
/// # Numerics
/// The series is z + z^3/3 + z^5/5 + ...; after a term t the tail is below t z^2 / (1 - z^2) <= t / 8 for |z| <= 1/3.
fn twice_atanh(z: &Rational, bits: i64) -> Interval {
    let width = bits + 32;
    let z = Interval::rational(z, width);
    if z.upper.mantissa == Integer::ZERO && z.lower.mantissa == Integer::ZERO {
        return Interval::integer(0);
    }
    let square = z.times(&z, width);
    let mut power = z.clone();
    let mut sum = z.clone();
    let mut n = 1_i64;
    loop {
        power = power.times(&square, width);
        n += 2;
        let term = power.times(&Interval::rational(&Rational::new(Integer::one(), n.into()), width), width);
        sum = sum.plus(&term, width);
        let size = |x: &Dyadic| x.mantissa.bits().cast_signed() + x.exponent;
        let magnitude = size(&term.lower).max(size(&term.upper));
        if magnitude < size(&sum.lower).min(size(&sum.upper)) - width {
            // The tail is smaller than the last term: widen by it on both sides.
            let slack = Dyadic { mantissa: Integer::one(), exponent: magnitude };
            let tail = Interval { lower: slack.negated(), upper: slack };
            sum = sum.plus(&tail, width);
            break;
        }
    }
    sum.plus(&sum.clone(), width)
}

fn ln_two(bits: i64) -> Interval {
    static SHORT: OnceLock<Interval> = OnceLock::new();
    let third = || Rational::new(Integer::one(), Integer::from(3));
    if bits <= 256 {
        SHORT.get_or_init(|| twice_atanh(&third(), 300)).clone()
    } else {
        twice_atanh(&third(), bits)
    }
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
    let z = Rational::new(&a - &b, a + b);
    let fraction = twice_atanh(&z, bits + 8);
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

/// A float close to log2 of a positive rational; for size estimates only.
pub fn approximate_log2(x: &Rational) -> f64 {
    let top = |value: &Integer| {
        let drop = value.bits().saturating_sub(60);
        let leading = (value >> drop).to_f64().unwrap_or(f64::MAX);
        leading.log2() + drop as f64
    };
    top(x.numer()) - top(x.denom())
}
