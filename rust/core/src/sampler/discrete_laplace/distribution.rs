//! The exact distribution of a release.

use super::Digits;
use crate::{Error, Result, control::Control, exact::Natural, sampler::SIZE_LIMIT};
use num_traits::One;

/// Outputs between two looks at the control.
const BLOCK: u64 = 1 << 12;

/// The numerators of 0, ..., `width` over 2^bits for the value `offset` <= `width`, and bits.
pub(super) fn distribution(
    digits: &Digits,
    offset: u64,
    width: u64,
    control: &Control,
) -> Result<(Vec<Natural>, u32)> {
    if width >= SIZE_LIMIT {
        return Err(Error::too_large(format!(
            "the distribution has {width} + 1 probabilities, above {SIZE_LIMIT}; choose narrower bounds"
        )));
    }
    // What of the second draw is used: all bits for a digit, else those of the flat stretch.
    let second_bits = if digits.low.len() > 1 { 128 } else { digits.flat_bits };
    let bits = 128 + second_bits;
    let mut masses = Vec::new();
    // P[X >= 0], P[X >= 1], ... from their sum with P[X > 0] = P[X < 0]: 2 P[X >= 0] = 1 + P[X = 0].
    let center = &digits.center << (1 + second_bits);
    let mut tail = ((Natural::one() << bits) + &center) >> 1_u32;
    let mut tails = vec![tail.clone()];
    for x in 0..width {
        if x % BLOCK == 0 {
            control.check()?;
        }
        let mass = if x == 0 { center.clone() } else { mass(digits, x - 1, second_bits) };
        tail -= &mass;
        tails.push(tail.clone());
        masses.push(mass);
    }
    let at = |x: u64| usize::try_from(x).unwrap_or(usize::MAX);
    let distribution = (0..=width).map(|z| match z {
        0 => tails[at(offset)].clone(),
        z if z == width => tails[at(width - offset)].clone(),
        z => masses[at(z.abs_diff(offset))].clone(),
    });
    Ok((distribution.collect(), bits))
}

/// The numerator of X = 1 + m over 2^(128 + `second_bits`), for m before the end of the flat stretch.
fn mass(digits: &Digits, m: u64, second_bits: u32) -> Natural {
    if m >= digits.length() {
        return &digits.rest << (second_bits - digits.flat_bits);
    }
    let at = |x: u64| usize::try_from(x).unwrap_or(usize::MAX);
    let low_digit = m & ((1 << digits.low_bits()) - 1);
    // Exact: with a single low digit its numerator is 2^128.
    (&digits.high[at(m >> digits.low_bits())] * &digits.low[at(low_digit)]) >> (128 - second_bits)
}
