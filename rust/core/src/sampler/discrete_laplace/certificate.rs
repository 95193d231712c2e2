//! What the privacy of the release rests on, in integers.

use super::Digits;
use crate::{
    Error, Result,
    exact::{Integer, Level, Natural, Rational},
    sampler::multiplier::LowerMultiplier,
};
use num_traits::{One, Zero};

/// A ratio of two positive numbers that must not exceed E, and the premise that this is.
struct Ratio {
    numerator: Natural,
    denominator: Natural,
    premise: &'static str,
}

/// Checks digits for the range 0, ..., `width`, `width` >= 1, and the multiplier E of one unit.
///
/// # Guarantee
/// When it passes: X is a distribution; its probabilities are positive and change by at most a factor E from |x| to
/// |x| + 1 <= `width` - 1; and so do those of X >= x from x to x + 1 <= `width`. So the release of a value is private
/// at epsilon = ln E for values a unit apart.
///
/// # Errors
/// [`Error::InvalidArgument`] saying which premise fails.
pub fn certify(digits: &Digits, level: &Level, width: u64) -> Result<()> {
    certify_with(digits, &LowerMultiplier::new(level)?, width)
}

pub(super) fn certify_with(digits: &Digits, lower: &LowerMultiplier, width: u64) -> Result<()> {
    let refused =
        |premise: &str| Err(Error::invalid("scale, bounds", format!("the tables are refused: {premise}")));
    if digits.high.is_empty() || !digits.low.len().is_power_of_two() {
        return refused("they need a high digit, and a power of 2 of low ones");
    }
    if digits.flat_bits > 63 || digits.low_bits() > 32 || digits.high.len() > 1 << 30 {
        return refused("magnitudes do not fit 64 bits");
    }
    if first_draw(digits).chain(&digits.low).any(Zero::is_zero) {
        return refused("a probability is 0");
    }
    if first_draw(digits).sum::<Natural>() != Natural::one() << 127_u32 {
        return refused("the probabilities of the first draw do not sum to 1");
    }
    if digits.low.iter().sum::<Natural>() != Natural::one() << 128_u32 {
        return refused("the probabilities of the low digit do not sum to 1");
    }
    if mass_beyond(digits, width).is_none() {
        return refused("the flat stretch ends within the range");
    }
    // In integers: numerator / denominator <= E_lo <= E.
    let exceeds = |ratio: &Ratio| &ratio.numerator << 128_u32 > &ratio.denominator * lower.numerator();
    match ratios(digits, width).find(exceeds) {
        Some(ratio) => refused(ratio.premise),
        None => Ok(()),
    }
}

/// Z, A(0), ..., A(n - 1), T.
pub(super) fn first_draw(digits: &Digits) -> impl Iterator<Item = &Natural> {
    std::iter::once(&digits.center).chain(&digits.high).chain(std::iter::once(&digits.rest))
}

/// The largest of the certified ratios.
pub(super) fn largest_ratio(digits: &Digits, width: u64) -> Rational {
    let larger = |a: Ratio, b: Ratio| {
        if &a.numerator * &b.denominator < &b.numerator * &a.denominator { b } else { a }
    };
    let found = ratios(digits, width).reduce(larger);
    found.map_or_else(Rational::one, |ratio| {
        Rational::new(Integer::from(ratio.numerator), Integer::from(ratio.denominator))
    })
}

/// L + 2^s - (`width` - 1) when the range reaches into the flat stretch (`width` >= L + 2): how many of its values are
/// beyond `width` - 1. `None` when the stretch does not get there.
fn mass_beyond(digits: &Digits, width: u64) -> Option<Natural> {
    let end = Natural::from(digits.length()) + (Natural::one() << digits.flat_bits) + 1_u32;
    (end > Natural::from(width)).then(|| end - width)
}

/// Every ratio of probabilities that bounds one of the release, for nonempty digits that reach beyond the range.
fn ratios(digits: &Digits, width: u64) -> impl Iterator<Item = Ratio> {
    let Digits { center, high, rest, low, .. } = digits;
    let (first, last, end) = (&low[0], &low[low.len() - 1], &high[high.len() - 1]);
    let both_ways = |a: Natural, b: Natural, premise: &'static str| {
        [
            Ratio { numerator: a.clone(), denominator: b.clone(), premise },
            Ratio { numerator: b, denominator: a, premise },
        ]
    };
    // Over 2^256: X = 0 is 2 Z 2^128, and |X| = 1 on one side is A(0) B(0).
    let around_zero =
        both_ways(center << 129_u32, &high[0] * first, "0 and 1 differ by more than a factor e^epsilon");
    let low_steps = low.windows(2).flat_map(move |pair| {
        both_ways(pair[0].clone(), pair[1].clone(), "two low digits differ by more than a factor e^epsilon")
    });
    let carries = high.windows(2).flat_map(move |pair| {
        both_ways(&pair[0] * last, &pair[1] * first, "a carry changes by more than a factor e^epsilon")
    });
    // The last digits, and all that is beyond them on one side.
    let (last_digits, beyond) = (end * last, rest << 128_u32);
    let outside = if width <= digits.length() + 1 {
        let premise = "what is beyond the digits is too light";
        vec![Ratio { numerator: &last_digits + &beyond, denominator: beyond, premise }]
    } else {
        // Each value of the flat stretch is beyond / 2^s.
        let [down, up] = both_ways(
            last_digits << digits.flat_bits,
            beyond,
            "the flat stretch is not level with the digits",
        );
        let mass = mass_beyond(digits, width).unwrap_or_default();
        let premise = "the flat stretch is too short";
        vec![down, up, Ratio { numerator: &mass + 1_u32, denominator: mass, premise }]
    };
    around_zero.into_iter().chain(low_steps).chain(carries).chain(outside)
}
