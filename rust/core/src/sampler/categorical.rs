//! Indices with probabilities proportional to public integers.

use super::{SIZE_LIMIT, Uniform, table::userdp_ct_count, words};
use crate::{Error, Result, control::Control, exact::Natural, rng::Source};
use num_traits::ToPrimitive;

/// The index i with probability exactly w(i) / (w(0) + ... + w(k - 1)).
#[derive(Debug, Clone)]
pub struct Categorical {
    /// w(0) + ... + w(i), for i = 0, ..., k - 2.
    cumulative: Vec<u128>,
    /// Below w(0) + ... + w(k - 1).
    uniform: Uniform,
}

impl Categorical {
    /// The indices of these weights.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless their total is from 1 to 2^128; [`Error::TooLarge`] for more than
    /// [`SIZE_LIMIT`] weights.
    pub fn new(weights: &[Natural]) -> Result<Self> {
        if weights.len() as u64 > SIZE_LIMIT {
            return Err(Error::too_large(format!(
                "weights has {} entries, and every draw reads them all; at most {SIZE_LIMIT} are accepted: split the \
                 outcomes into groups and draw a group first",
                weights.len()
            )));
        }
        let mut total = Natural::ZERO;
        let mut sums: Vec<Natural> = weights
            .iter()
            .map(|weight| {
                total += weight;
                total.clone()
            })
            .collect();
        sums.pop();
        let uniform = Uniform::new(&total)
            .map_err(|_| Error::invalid("weights", "must have a total from 1 to 2^128"))?;
        // An index that ends at 2^128 before the last one is followed by weights of 0, which nothing reaches.
        Ok(Self { cumulative: sums.iter().map_while(ToPrimitive::to_u128).collect(), uniform })
    }

    /// The number of values below the total that each draw is compared with.
    pub fn steps(&self) -> usize {
        self.cumulative.len()
    }

    /// The index that 128 bits lead to, with other bits from the source in place of rejected ones.
    ///
    /// Secret: `bits` and the result. Public: the weights.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn value(&self, bits: u128, source: &mut Source) -> Result<u64> {
        Ok(userdp_ct_count(&self.cumulative, self.uniform.value(bits, source)?))
    }

    /// One draw. Secret: the result.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn draw(&self, source: &mut Source) -> Result<u64> {
        let bits = source.bits()?;
        self.value(bits, source)
    }

    /// Independent draws into a slice. Secret: the results.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [i64], control: &Control) -> Result<()> {
        words::draw_each(source, draws, control, |bits, source| {
            self.value(bits, source).map(u64::cast_signed)
        })
    }
}
