//! The natural logarithm from +, -, *, / of float64 alone, so that every platform and every kernel computes the same bits.
//!
//! Mathematical libraries differ in the last place; IEEE 754's four operations do not, and Rust never fuses them.
//!
//! # Numerics
//! x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1 (exact) and ln x = e ln 2 + 2 atanh(s) with s = f / (2 + f),
//! |s| < 0.1716. The series s + s^3/3 + s^5/5 + ... is cut after s^21: what is left is below 2^-59 of the sum. ln 2 is
//! the sum of a number with 33 bits, whose multiples by e are exact, and a small one. For e != 0 the sum is at least
//! 0.34, so nothing cancels; for e = 0 it is a product of roundings. Together the relative error is below 2^-50.

use crate::simd::dispatch::dispatched;

/// The bits of the float below sqrt(1/2), where significands are cut.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcc;
const ONE: u64 = 0x3ff0_0000_0000_0000;
/// The bits of 2^52, whose significand counts units.
const UNITS: u64 = 0x4330_0000_0000_0000;
/// ln 2 to 33 bits, and what it lacks.
const LN_TWO: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_TWO_REST: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// Splits a positive normal x into (e, m) with x = 2^e m and sqrt(1/2) <= m < sqrt(2), about.
#[inline(always)]
#[allow(clippy::inline_always)]
fn split(x: f64) -> (f64, f64) {
    let shifted = x.to_bits().wrapping_add(ONE - ROOT_HALF) >> 52; // e + 1023
    let e = f64::from_bits(UNITS | shifted) - (4_503_599_627_370_496.0 + 1023.0);
    (e, f64::from_bits(x.to_bits().wrapping_sub(shifted.wrapping_sub(1023) << 52)))
}

/// e ln 2 + ln(1 + f) for 1 + f as `split` gives it.
#[inline(always)]
#[allow(clippy::inline_always)]
fn joined(e: f64, f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let mut tail = 1.0 / 21.0;
    for n in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        tail = tail * z + 1.0 / n;
    }
    let twice = s + s;
    e * LN_TWO + (twice + (twice * (z * tail) + e * LN_TWO_REST))
}

/// ln x for x >= 0, of relative error below 2^-50; minus infinity at 0. Other arguments give some number.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn ln(x: f64) -> f64 {
    // Subnormal numbers become normal ones.
    let small = x < f64::MIN_POSITIVE;
    let (e, m) = split(if small { x * 18_014_398_509_481_984.0 } else { x });
    let value = joined(if small { e - 54.0 } else { e }, m - 1.0);
    if x == 0.0 { f64::NEG_INFINITY } else { value }
}

/// The exponential variable -ln(1 - U), U = (word + 1/2) / 2^64, of relative error below 2^-50.
#[inline(always)]
#[allow(clippy::inline_always)]
pub fn exponential(word: u64) -> f64 {
    let (u, rest) = (midpoint(word), midpoint(!word)); // U and 1 - U, each rounded once
    let (e, m) = split(rest);
    // Near 1 the complement has lost what makes small variables different: there 1 + f is 1 - U.
    -joined(e, if e == 0.0 { -u } else { m - 1.0 })
}

/// (word + 1/2) / 2^64, rounded once: both parts are exact.
#[inline(always)]
#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
fn midpoint(word: u64) -> f64 {
    let (high, low) = (f64::from((word >> 32) as u32), f64::from(word as u32));
    high / 4_294_967_296.0 + (low + 0.5) / 18_446_744_073_709_551_616.0
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn keys_body(words: &[u64], keys: &mut [f64]) {
    for (key, &word) in keys.iter_mut().zip(words) {
        *key = -ln(exponential(word));
    }
}

dispatched! {
    /// The keys -ln E of a race, for the exponential variables E of the words.
    pub fn keys(words: &[u64], keys: &mut [f64])
        = keys_body(words, keys), keys_body(words, keys), keys_body(words, keys);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_logarithms_body(weights: &[f64], sums: &mut [f64]) -> bool {
    let mut fit = true;
    for (sum, &weight) in sums.iter_mut().zip(weights) {
        fit &= (0.0..f64::INFINITY).contains(&weight);
        *sum += ln(weight);
    }
    fit
}

dispatched! {
    /// Adds the logarithms of weights; false when one of them is not a finite number >= 0.
    pub fn add_logarithms(weights: &[f64], sums: &mut [f64]) -> bool
        = add_logarithms_body(weights, sums),
          add_logarithms_body(weights, sums),
          add_logarithms_body(weights, sums);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_body(logarithms: &[f64], sums: &mut [f64]) -> bool {
    let mut fit = true;
    for (sum, &logarithm) in sums.iter_mut().zip(logarithms) {
        fit &= logarithm < f64::INFINITY;
        *sum += logarithm;
    }
    fit
}

dispatched! {
    /// Adds logarithms; false when one of them is neither a finite number nor minus infinity.
    pub fn add(logarithms: &[f64], sums: &mut [f64]) -> bool
        = add_body(logarithms, sums), add_body(logarithms, sums), add_body(logarithms, sums);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn largest_body(sums: &[f64]) -> f64 {
    const LANES: usize = 8;
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let (chunks, rest) = sums.as_chunks::<LANES>();
    let mut lanes = [f64::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, &sum) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, sum);
        }
    }
    lanes.iter().chain(rest).copied().fold(f64::NEG_INFINITY, larger)
}

dispatched! {
    /// The largest of some numbers that are not NaN.
    pub fn largest(sums: &[f64]) -> f64 = largest_body(sums), largest_body(sums), largest_body(sums);
}
