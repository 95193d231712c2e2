//! Discrete Laplace noise on a value in a public range, clamped to it: two digits, each from a certified table.
//!
//! z = clamp(clamp(v) + X). A first draw gives the sign of X and an entry: X = 0, the high digit of |X| - 1, or "far
//! out"; a second draw gives the low digit, or how far out. Both scans read their whole tables. The distribution of z, the
//! conditions that make it private and their proof are in `docs/proofs/discrete_laplace.md`.
//!
//! Paper: [LWY24, Lemma 2.5].

mod build;
mod certificate;
mod distribution;

pub use certificate::certify;

use super::{Table, multiplier::LowerMultiplier};
use crate::{
    Error, Result,
    control::Control,
    ct::{self, Secret},
    exact::{Level, Natural, Rational},
    rng::Source,
};
use zeroize::Zeroize;

/// Releases between two looks at the control, and two requests for random bytes.
const BLOCK: usize = 1 << 9;

/// high - low is at most this.
pub const WIDTH_LIMIT: u64 = 1 << 62;

/// The integers that the noise X is drawn with. L = n 2^h for n entries in `high` and 2^h in `low`.
#[derive(Debug, Clone)]
pub struct Digits {
    /// Z: X = 0 has probability Z / 2^127.
    pub center: Natural,
    /// A: the high digit of |X| - 1 < L is a with probability A(a) / 2^127.
    pub high: Vec<Natural>,
    /// T: |X| > L has probability T / 2^127. With the center and the high digits, the sum is 2^127.
    pub rest: Natural,
    /// B: the low digit is b with probability B(b) / 2^128, of sum 2^128.
    pub low: Vec<Natural>,
    /// s: beyond L, |X| - 1 - L is uniform on 0, ..., 2^s - 1.
    pub flat_bits: u32,
}

impl Digits {
    /// h, for 2^h low digits.
    pub fn low_bits(&self) -> u32 {
        self.low.len().ilog2()
    }

    /// L: |X| - 1 below it is two digits.
    pub fn length(&self) -> u64 {
        (self.high.len() as u64) << self.low_bits()
    }
}

/// Certified noise for values in low, ..., high, and what is scanned to draw it.
#[derive(Debug)]
pub struct DiscreteLaplaceTables {
    digits: Digits,
    /// The center, the high digits and the rest, doubled: the lowest bit is left for the sign.
    entries: Table,
    low_digits: Table,
    low: i64,
    width: u64,
}

impl DiscreteLaplaceTables {
    /// Tables for the multiplier E = e^epsilon of one unit of value, for values in `low`, ..., `high`.
    ///
    /// # Guarantee
    /// [`certify`] has passed for the width `high` - `low`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for E <= 1, E above 1 by less than 2^-32, and ranges that are empty or wider than
    /// 2^62; [`Error::TooLarge`] for tables of more than 2^16 entries; [`Error::Canceled`].
    pub fn new(level: &Level, low: i64, high: i64, control: &Control) -> Result<Self> {
        Self::with_low_bits(level, low, high, None, control)
    }

    /// The same with a given number h of bits for the low digit, where `None` chooses the fastest.
    ///
    /// # Errors
    /// As [`DiscreteLaplaceTables::new`]; for h above 16.
    pub fn with_low_bits(
        level: &Level,
        low: i64,
        high: i64,
        low_bits: Option<u32>,
        control: &Control,
    ) -> Result<Self> {
        let width = high.abs_diff(low);
        if low >= high || width > WIDTH_LIMIT {
            return Err(Error::invalid("bounds", "must have low < high <= low + 2^62"));
        }
        let lower = LowerMultiplier::new(level)?;
        let digits = build::build(&lower, width, low_bits, control)?;
        certificate::certify_with(&digits, &lower, width)?;
        let doubled: Vec<Natural> = certificate::first_draw(&digits).map(|entry| entry << 1_u32).collect();
        let (entries, low_digits) = (Table::new(&doubled)?, Table::new(&digits.low)?);
        Ok(Self { digits, entries, low_digits, low, width })
    }

    /// The integers of the noise.
    pub fn digits(&self) -> &Digits {
        &self.digits
    }

    /// Random bytes of each release: 16 when the first draw says everything, otherwise 32.
    pub fn bytes_per_draw(&self) -> usize {
        if self.digits.low.len() == 1 && self.digits.flat_bits == 0 { 16 } else { 32 }
    }

    /// Numbers that each release is compared with.
    pub fn steps_per_draw(&self) -> usize {
        self.digits.high.len() + self.digits.low.len()
    }

    /// A bound of the ratio of the probabilities of any output, for values a unit apart: at most E.
    pub fn largest_ratio(&self) -> Rational {
        certificate::largest_ratio(&self.digits, self.width)
    }

    /// The exact distribution of the release of a value: the numerators of low, ..., high over 2^bits, and bits.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than [`super::SIZE_LIMIT`] outputs; [`Error::Canceled`].
    pub fn distribution(&self, value: i64, control: &Control) -> Result<(Vec<Natural>, u32)> {
        let offset = value.clamp(self.low, self.low.wrapping_add_unsigned(self.width)).abs_diff(self.low);
        distribution::distribution(&self.digits, offset, self.width, control)
    }

    /// The release that random bits stand for. Without a second draw, `second` is 0.
    ///
    /// # Timing
    /// Secret: `value`, the bits and the result. Public: the tables and the range.
    pub fn value(&self, value: i64, bits: u128, second: u128) -> i64 {
        userdp_ct_discrete_laplace(self, value, bits, second)
    }

    /// One release.
    ///
    /// # Timing
    /// Secret: the value and the result.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn release(&self, source: &mut Source, value: i64) -> Result<i64> {
        let bits = source.bits()?;
        let second = if self.bytes_per_draw() == 32 { source.bits()? } else { 0 };
        Ok(self.value(value, bits, second))
    }

    /// Replaces each value by its release; from a seeded source the same as one by one.
    ///
    /// # Timing
    /// Secret: the values before and after. Public: how many there are.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`]. All values are then wiped.
    pub fn release_many(&self, source: &mut Source, values: &mut [i64], control: &Control) -> Result<()> {
        let outcome = self.release_blocks(source, values, control);
        if outcome.is_err() {
            values.zeroize();
        }
        outcome
    }

    fn release_blocks(&self, source: &mut Source, values: &mut [i64], control: &Control) -> Result<()> {
        let mut bytes = Secret::new([0; 32 * BLOCK]);
        let two = self.bytes_per_draw() == 32;
        for block in values.chunks_mut(BLOCK) {
            control.advance(block.len())?;
            source.fill(&mut bytes[..self.bytes_per_draw() * block.len()])?;
            let draws = bytes.as_chunks::<16>().0;
            if two {
                for (value, [bits, second]) in block.iter_mut().zip(draws.as_chunks().0) {
                    *value = self.value(*value, u128::from_le_bytes(*bits), u128::from_le_bytes(*second));
                }
            } else {
                for (value, bits) in block.iter_mut().zip(draws) {
                    *value = self.value(*value, u128::from_le_bytes(*bits), 0);
                }
            }
        }
        Ok(())
    }
}

ct::kernel! {
    #[allow(clippy::cast_possible_truncation)]
    /// One release: clamp(clamp(value) + X), X from two draws. Secret: `value`, the bits and the result. Public: the
    /// tables with the range.
    pub fn userdp_ct_discrete_laplace(
        tables: &DiscreteLaplaceTables,
        value: i64,
        bits: u128,
        second: u128,
    ) -> i64 {
        let digits = &tables.digits;
        let highest = tables.low.wrapping_add_unsigned(tables.width);
        // 0 for the center, 1 + a for the high digit a, n + 1 for the rest.
        let entry = tables.entries.value(bits);
        let low_digit = tables.low_digits.value(second);
        let near = (entry.wrapping_sub(1) << digits.low_bits()).wrapping_add(low_digit);
        // The top flat_bits <= 63 bits of the second draw.
        let far = digits.length().wrapping_add(((second >> 65) as u64) >> (63_u32.wrapping_sub(digits.flat_bits)));
        let is_far = ct::equal(entry, (digits.high.len() as u64).wrapping_add(1));
        let magnitude = ct::select(ct::equal(entry, 0), 0, ct::select(is_far, far, near).wrapping_add(1));
        // What is beyond the range ends at its end, so that no sum overflows.
        let sign = bits as u64 & 1;
        let below = ct::clamp(value, tables.low, highest).wrapping_sub(tables.low).cast_unsigned();
        let above = tables.width.wrapping_sub(below);
        let up = below.wrapping_add(ct::min(magnitude, above));
        let down = below.wrapping_sub(ct::min(magnitude, below));
        tables.low.wrapping_add_unsigned(ct::select(sign, up, down))
    }
}
