//! A distribution on 0, ..., n - 1 as integers over 2^128, drawn by scanning all of it.

use super::words;
use crate::{Error, Result, control::Control, ct, exact::Natural, rng::Source};
use num_traits::{One, ToPrimitive};

/// Integers N(0), ..., N(n - 1) of sum 2^128: the value x is drawn with probability N(x) / 2^128, exactly.
#[derive(Debug, Clone)]
pub struct Table {
    /// N(0) + ... + N(x), for x = 0, ..., n - 2.
    cumulative: Vec<u128>,
}

impl Table {
    /// The distribution with these numerators over 2^128; a value may have none of them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless they sum to 2^128.
    pub fn new<'a>(numerators: impl IntoIterator<Item = &'a Natural>) -> Result<Self> {
        let mut sum = Natural::ZERO;
        let mut sums: Vec<Natural> = numerators
            .into_iter()
            .map(|numerator| {
                sum += numerator;
                sum.clone()
            })
            .collect();
        if sums.pop() != Some(Natural::one() << 128_u32) {
            return Err(Error::invalid("numerators", "must sum to 2^128"));
        }
        // A value that ends at 2^128 before the last one is followed by values of probability 0, which no bits reach.
        let cumulative = sums.iter().map_while(ToPrimitive::to_u128).collect();
        Ok(Self { cumulative })
    }

    /// The value that 128 bits stand for: N(x) of the 2^128 stand for x.
    ///
    /// Secret: `bits` and the result. Public: the table.
    pub fn value(&self, bits: u128) -> u64 {
        userdp_ct_count(&self.cumulative, bits)
    }

    /// One draw, of 16 random bytes. Secret: the result.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn draw(&self, source: &mut Source) -> Result<u64> {
        Ok(self.value(source.bits()?))
    }

    /// Independent draws into a slice; from a seeded source the same as one by one. Secret: the results.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [i64], control: &Control) -> Result<()> {
        words::draw_each(source, draws, control, |bits, _| Ok(self.value(bits).cast_signed()))
    }
}

ct::kernel! {
    /// The number of entries that are at most `bits`, from the whole table. Secret: `bits`. Public: the entries.
    pub fn userdp_ct_count(entries: &[u128], bits: u128) -> u64 {
        entries.iter().fold(0_u64, |count, &entry| count.wrapping_add(ct::at_most_wide(entry, bits)))
    }
}
