//! How the integers are found: two ladders. Nothing here is trusted; the certificate decides.

use super::Digits;
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Natural, Rational, rounding::Direction, rounding::rational_to_f64},
    sampler::{least::least_reaching, multiplier::LowerMultiplier},
};
use num_integer::Integer as _;
use num_traits::{One, ToPrimitive};

/// The most entries of the two tables together: every release reads all of them.
const ENTRIES_LIMIT: u64 = 1 << 16;

/// Where the digits end, the noise has decayed by this many factors of 2 or, for large scales, by fewer.
const DECAY_BITS: f64 = 96.0;

/// Fraction bits of the geometric sequence beside the high digits. The low ones are all large, and need none.
const FRACTION_BITS: u32 = 64;

/// A second draw of 16 random bytes costs about as much as this many comparisons.
const SECOND_DRAW_STEPS: u64 = 32;

/// Digits for the range 0, ..., `width`.
pub(super) fn build(
    lower: &LowerMultiplier,
    width: u64,
    low_bits: Option<u32>,
    control: &Control,
) -> Result<Digits> {
    let whole = Natural::one() << 128_u32;
    if lower.numerator() < &(&whole + (Natural::one() << 96_u32)) {
        return Err(Error::invalid(
            "scale",
            "must be at most about 2^32 units of value; round the values to a coarser public grid and divide the \
             scale by its step",
        ));
    }
    let excess = lower.numerator() - &whole;
    let (low_bits, high_count) = split(wanted_length(&excess).min(width - 1).max(1), low_bits)?;
    let low = low_digits(lower, low_bits, control)?;
    let (Some(first), Some(last)) = (low.first(), low.last()) else { return Err(unrepresentable()) };

    let length = high_count << low_bits;
    // Whether everything beyond the digits is beyond the range too.
    let is_lumped = width <= length + 1;
    let flat_bits = if is_lumped { 0 } else { flat_bits(width - 1 - length, &excess) };
    let rest = |end: &Natural| {
        if is_lumped { (end * last).div_ceil(&excess) } else { ((end * last) << flat_bits).div_ceil(&whole) }
    };
    let ladder = Ladder::new((lower.numerator() * first) / last, high_count, FRACTION_BITS)?;
    // Z 2^129 <= E_lo A(0) B(0).
    let largest_center = |top: &Natural| (lower.numerator() * top * first) >> 257_u32;
    let (center, high, rest) = ladder.fitted(&(&whole >> 1_u32), largest_center, rest, control)?;
    Ok(Digits { center, high, rest, low, flat_bits })
}

fn unrepresentable() -> Error {
    Error::invalid("scale, bounds", "probabilities over 2^128 cannot hold this noise; choose another scale")
}

/// The length of the decay; near enough from floats.
///
/// For a scale S a carry may be off by a part in S. The last high digit is about 2^(127 - decay) 2^h / S, h is about half
/// of log2 S, and rounding adds a constant to each, so that the decay leaves 2^(1.5 log2 S) of the 2^127.
fn wanted_length(excess: &Natural) -> u64 {
    let unit = Integer::one() << 128_u32;
    let excess = rational_to_f64(&Rational::new(Integer::from(excess.clone()), unit), Direction::Nearest);
    let decay = DECAY_BITS.min(127.0 + 1.5 * excess.log2());
    let length = (decay * std::f64::consts::LN_2 / excess.ln_1p()).ceil();
    // At most 2^39, as the excess is at least 2^-32.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = length as u64;
    length
}

/// (h, n) with n 2^h >= length and the fewest comparisons.
fn split(length: u64, low_bits: Option<u32>) -> Result<(u32, u64)> {
    let most = ENTRIES_LIMIT.ilog2();
    let steps = |h: u32| length.div_ceil(1 << h) + (1 << h) + if h > 0 { SECOND_DRAW_STEPS } else { 0 };
    let h = low_bits.unwrap_or_else(|| (0..=most).min_by_key(|&h| steps(h)).unwrap_or(0));
    if h > most || length.div_ceil(1 << h) + (1 << h) > ENTRIES_LIMIT {
        return Err(Error::too_large(format!(
            "the noise needs tables for {length} magnitudes, which do not fit {ENTRIES_LIMIT} entries; round the values \
             to a coarser public grid and divide the scale by its step, or choose narrower bounds"
        )));
    }
    Ok((h, length.div_ceil(1 << h)))
}

/// The least s for which 2^s values beyond the digits end at least 1 / (`E_lo` - 1) beyond the index that is needed.
fn flat_bits(beyond: u64, excess: &Natural) -> u32 {
    let needed = (Natural::one() << 128_u32).div_ceil(excess) + beyond;
    // Below 2^63: bounds are at most 2^62 wide and the excess is at least 2^-32.
    (needed - 1_u32).bits().to_u32().unwrap_or(u32::MAX)
}

fn low_digits(lower: &LowerMultiplier, low_bits: u32, control: &Control) -> Result<Vec<Natural>> {
    let whole = Natural::one() << 128_u32;
    let count = (1 << low_bits) - 1;
    if count == 0 {
        return Ok(vec![whole]);
    }
    let ladder = Ladder::new(lower.numerator().clone(), count, 0)?;
    let (head, mut rungs, _) = ladder.fitted(&whole, |top| lower.times(top), |_| Natural::ZERO, control)?;
    rungs.insert(0, head);
    Ok(rungs)
}

/// `count` >= 1 integers ceil(y) + c beside a geometric sequence y, c = ceil(1 / (step - 1)).
///
/// Rounding costs at most c + 1 a rung, wherever the rung is, and never takes two rungs further apart than the step:
/// ceil(y) + c <= step y' + 1 + c <= step (y' + c), where y <= step y'.
struct Ladder {
    /// Over 2^128, above 1.
    step: Natural,
    offset: Natural,
    count: u64,
    fraction_bits: u32,
}

impl Ladder {
    fn new(step: Natural, count: u64, fraction_bits: u32) -> Result<Self> {
        let whole = Natural::one() << 128_u32;
        if step <= whole {
            return Err(unrepresentable());
        }
        let offset = whole.div_ceil(&(&step - &whole));
        Ok(Self { step, offset, count, fraction_bits })
    }

    /// The rungs upwards from the lowest one, for which y is `last` / `2^fraction_bits`.
    fn rungs(&self, last: &Natural) -> impl Iterator<Item = Natural> {
        let unit = Natural::one() << self.fraction_bits;
        std::iter::successors(Some(last.clone()), |y| Some((y * &self.step) >> 128_u32))
            .take(usize::try_from(self.count).unwrap_or(usize::MAX))
            .map(move |y| y.div_ceil(&unit) + &self.offset)
    }

    /// (head, rungs from the highest down, rest) of the sum `whole`: the least ladder whose head is at most
    /// `largest_head`(highest rung), where the rest is `rest`(lowest rung).
    fn fitted(
        &self,
        whole: &Natural,
        largest_head: impl Fn(&Natural) -> Natural,
        rest: impl Fn(&Natural) -> Natural,
        control: &Control,
    ) -> Result<(Natural, Vec<Natural>, Natural)> {
        let total = |last: &Natural| {
            control.check()?;
            let (mut sum, mut lowest, mut top) = (Natural::ZERO, None, Natural::ZERO);
            for rung in self.rungs(last) {
                sum += &rung;
                lowest.get_or_insert_with(|| rung.clone());
                top = rung;
            }
            Ok(sum + rest(&lowest.unwrap_or_default()) + largest_head(&top))
        };
        let last = least_reaching(whole, whole << self.fraction_bits, total)?;
        let mut rungs: Vec<Natural> = self.rungs(&last).collect();
        let rest = rest(&rungs[0]);
        rungs.reverse();
        let outer = rungs.iter().sum::<Natural>() + &rest;
        if &outer >= whole {
            return Err(unrepresentable());
        }
        Ok((whole - outer, rungs, rest))
    }
}
