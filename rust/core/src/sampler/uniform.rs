//! Uniform integers below a public bound, of fixed words of 128 bits.

use super::words;
use crate::{Error, Result, control::Control, ct, exact::Natural, rng::Source};
use num_traits::{One, ToPrimitive, Zero};

/// 0, ..., bound - 1, each with probability exactly 1 / bound.
///
/// # Guarantee
/// A word w of 128 bits stands for floor(w bound / 2^128). The words whose w bound mod 2^128 is below 2^128 mod bound
/// are rejected and replaced: floor(2^128 / bound) words are left for every value (Lemire, "Fast random integer
/// generation in an interval", 2019). A word is rejected with probability below bound / 2^128, and below 1/2.
#[derive(Debug, Clone)]
pub struct Uniform {
    /// The bound, with 0 in place of 2^128.
    bound: u128,
    /// 2^128 mod bound.
    rejected: u128,
}

impl Uniform {
    /// The integers below this bound.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless 1 <= bound <= 2^128.
    pub fn new(bound: &Natural) -> Result<Self> {
        if bound.is_zero() || bound > &(Natural::one() << 128_u32) {
            return Err(Error::invalid("bound", "must be from 1 to 2^128"));
        }
        let bound = bound.to_u128().unwrap_or(0);
        Ok(Self { bound, rejected: bound.wrapping_neg().checked_rem(bound).unwrap_or(0) })
    }

    /// The value that 128 bits lead to, with other bits from the source in place of rejected ones.
    ///
    /// Secret: `bits` and the result. Public: the bound.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn value(&self, bits: u128, source: &mut Source) -> Result<u128> {
        userdp_revealed_uniform_rejection(self, bits, source)
    }

    /// One draw. Secret: the result.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn draw(&self, source: &mut Source) -> Result<u128> {
        let bits = source.bits()?;
        self.value(bits, source)
    }

    /// Independent draws into a slice, each plus `low`; sums and values beyond 64 bits wrap. Secret: the results.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(
        &self,
        low: i64,
        source: &mut Source,
        draws: &mut [i64],
        control: &Control,
    ) -> Result<()> {
        words::draw_each(source, draws, control, |bits, source| Ok(shifted(low, self.value(bits, source)?)))
    }
}

/// low + value, for a sum that is an i64. Secret: both.
pub fn shifted(low: i64, value: u128) -> i64 {
    #[allow(clippy::cast_possible_truncation)]
    let value = value as u64;
    low.wrapping_add(value.cast_signed())
}

ct::kernel! {
    /// floor(bits bound / 2^128), and 1 unless the bits are rejected. Secret: `bits` and the result. Public: the rest; a
    /// bound of 0 stands for 2^128.
    pub fn userdp_ct_uniform(bound: u128, rejected: u128, bits: u128) -> (u128, u64) {
        if bound == 0 {
            return (bits, 1);
        }
        (ct::high_product_wide(bits, bound), ct::at_most_wide(rejected, bits.wrapping_mul(bound)))
    }
}

ct::revealed! {
    /// The value of the first of `bits` and of the source's words that is not rejected.
    ///
    /// Revealed: how many words were rejected. The words are independent, so this is independent of the value of the
    /// one that was accepted. Secret: `bits` but for that.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn userdp_revealed_uniform_rejection(uniform: &Uniform, bits: u128, source: &mut Source) -> Result<u128> {
        let mut bits = bits;
        loop {
            let (value, accepted) = userdp_ct_uniform(uniform.bound, uniform.rejected, bits);
            if accepted == 1 {
                return Ok(value);
            }
            bits = source.bits()?;
        }
    }
}
