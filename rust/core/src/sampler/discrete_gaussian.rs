//! Discrete Gaussian noise on integers: `P[x]` near e^(-x^2 / (2 sigma^2)), by rejection in constant-time trials.
//!
//! |x| = K k + r for cells of a power of two K of integers. A trial draws the cell k from a table near
//! e^(-(K k)^2 / (2 sigma^2)), r uniform below K and a sign, and accepts with a probability near
//! e^(-(x^2 - (K k)^2) / (2 sigma^2)). All of these are integers over powers of two, and so is the distribution of x: it is
//! proportional to integer weights, the table's entry times the numerator of the acceptance. How near it is to the
//! ideal distribution is proved in `docs/proofs/discrete_gaussian.md`.
//!
//! # Timing
//! Trials are independent, so that how many of them are rejected is independent of the x that is accepted. That number
//! is revealed, and nothing else of what is drawn.

mod build;
mod power;

use super::{SIZE_LIMIT, Table};
use crate::{
    Error, Result,
    control::Control,
    ct::{self, Secret, wide},
    exact::{Natural, Rational},
    rng::Source,
};
use zeroize::Zeroize;

/// Releases between two looks at the control, and the most trials of one request for random bytes.
const BLOCK: usize = 1 << 9;
/// Weights between two looks at the control.
const WEIGHTS: u64 = 1 << 12;
/// Random bytes of a trial: two words of 128 bits and one of 64.
const TRIAL_BYTES: usize = 40;
/// Fraction bits of an exponent of 2, of which 6 bits are whole.
const EXPONENT_BITS: u32 = 122;

/// Values are clamped to -2^62, ..., 2^62 before noise is added.
pub const VALUE_LIMIT: i64 = 1 << 62;

/// The noise of one sigma^2, and what is scanned to draw it.
#[derive(Debug)]
pub struct DiscreteGaussian {
    sigma_squared: Rational,
    /// T: the cell is k with probability T(k) / 2^128.
    masses: Vec<Natural>,
    cells: Table,
    distance: Rational,
    slope: Slope,
}

/// How fast the noise decays within a cell, in whole numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slope {
    /// K = 2^`cell_bits`.
    cell_bits: u32,
    /// d / (2 sigma^2 ln 2) is near d rate 2^(places - 250): in units of 2^-122, the high half of (d 2^places) rate.
    rate: u128,
    places: u32,
}

/// What a trial comes to.
#[derive(Clone, Copy)]
pub(crate) struct Trial {
    /// The noise, if it is accepted.
    noise: i64,
    /// 1 when it is accepted, otherwise 0.
    accepted: u64,
}

impl DiscreteGaussian {
    /// The noise of this sigma^2.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] unless 1/100 <= sigma^2 <= 2^112.
    pub fn new(sigma_squared: Rational) -> Result<Self> {
        build::build(sigma_squared)
    }

    /// sigma^2 of the ideal distribution.
    pub fn sigma_squared(&self) -> &Rational {
        &self.sigma_squared
    }

    /// A bound of the total variation between the noise and the ideal distribution on all integers.
    pub fn distance(&self) -> &Rational {
        &self.distance
    }

    /// The largest |x| that is drawn.
    pub fn support(&self) -> u64 {
        ((self.masses.len() as u64) << self.slope.cell_bits) - 1
    }

    /// The weights of x = 0, 1, ..., support: the noise is x, and -x, with probability proportional to them, exactly.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] for more than [`SIZE_LIMIT`] values of x; [`crate::Error::Canceled`].
    pub fn weights(&self, control: &Control) -> Result<Vec<Natural>> {
        if self.support() >= SIZE_LIMIT / 2 {
            return Err(Error::too_large(format!(
                "the distribution has 2 * {} + 1 probabilities, above {SIZE_LIMIT}; choose a smaller sigma_squared on a coarser grid",
                self.support()
            )));
        }
        let cell = 1_u64 << self.slope.cell_bits;
        let mut weights = Vec::new();
        // The mass of the cell times the number of accepting words.
        for (k, mass) in (0_u64..).zip(&self.masses) {
            for low in 0..cell {
                if low % WEIGHTS == 0 {
                    control.check()?;
                }
                weights.push(mass * self.slope.accepting(k, low));
            }
        }
        Ok(weights)
    }

    /// The trial that random bytes stand for: 16 for the acceptance and the sign, 8 for the place in the cell, 16 for the
    /// cell.
    ///
    /// # Timing
    /// Secret: the bytes and the result. Public: the distribution.
    fn trial(&self, bytes: &[u8; TRIAL_BYTES]) -> Trial {
        let words = bytes.as_chunks().0;
        let word = |place: usize| u64::from_le_bytes(words[place]);
        let wide = |place: usize| (u128::from(word(place + 1)) << 64) | u128::from(word(place));
        userdp_ct_discrete_gaussian_trial(&self.slope, self.cells.value(wide(3)), word(2), wide(0))
    }

    /// One release: a value plus noise.
    ///
    /// # Timing
    /// Secret: the value and the result. Revealed: how many trials were rejected.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn release(&self, source: &mut Source, value: i64) -> Result<i64> {
        let (mut bytes, mut values) = (Secret::new([0; TRIAL_BYTES]), Secret::new([value]));
        self.release_block(source, &mut *bytes, &mut *values)?;
        Ok(values[0])
    }

    /// Replaces each value by its release; from a listed source the same as one by one.
    ///
    /// # Timing
    /// Secret: the values before and after. Public: how many there are. Revealed: how many trials were rejected.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`crate::Error::Canceled`]. All values are then wiped.
    pub fn release_many(&self, source: &mut Source, values: &mut [i64], control: &Control) -> Result<()> {
        let mut bytes = Secret::new(vec![0; TRIAL_BYTES * BLOCK.min(values.len())]);
        let outcome = values.chunks_mut(BLOCK).try_for_each(|block| {
            control.advance(block.len())?;
            self.release_block(source, &mut bytes, block)
        });
        if outcome.is_err() {
            values.zeroize();
        }
        outcome
    }

    /// The same for values with room for the bytes of a trial of each. As many trials are asked for as values are left:
    /// all of them are used.
    fn release_block(&self, source: &mut Source, bytes: &mut [u8], values: &mut [i64]) -> Result<()> {
        let mut left = values;
        while !left.is_empty() {
            let bytes = &mut bytes[..TRIAL_BYTES * left.len()];
            source.fill(bytes)?;
            let done = userdp_revealed_discrete_gaussian_rejections(self, bytes, left);
            left = &mut left[done..];
        }
        Ok(())
    }
}

impl Slope {
    /// The number of the 2^127 words of 127 bits that accept the magnitude `cell` K + `low`: near
    /// 2^127 e^(-(|x|^2 - (`cell` K)^2) / (2 sigma^2)).
    ///
    /// Secret: `cell`, `low` and the result. Public: the slope.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as in ct
    #[allow(clippy::cast_possible_truncation)]
    fn accepting(&self, cell: u64, low: u64) -> u128 {
        let start = cell << self.cell_bits;
        // |x|^2 - start^2, below 2^119.
        let distance = u128::from(low).wrapping_mul(u128::from(low.wrapping_add(start << 1)));
        let exponent = ct::high_product_wide(distance << self.places, self.rate);
        let power = power::power(exponent << (128 - EXPONENT_BITS));
        wide::shifted_right([power, 0], (exponent >> EXPONENT_BITS) as u64)
    }
}

ct::kernel! {
    /// One trial for a cell: `low` has the place in the cell, `bits` the sign and what the acceptance is compared with.
    /// Secret: `cell`, `low`, `bits` and the result. Public: the slope.
    pub(crate) fn userdp_ct_discrete_gaussian_trial(slope: &Slope, cell: u64, low: u64, bits: u128) -> Trial {
        let low = low & (1_u64 << slope.cell_bits).wrapping_sub(1);
        let magnitude = (cell << slope.cell_bits).wrapping_add(low);
        #[allow(clippy::cast_possible_truncation)]
        let negative = bits as u64 & 1;
        // bits / 2 < accepting, and not -0.
        let falls = ct::at_most_wide(slope.accepting(cell, low), bits >> 1) ^ 1;
        let accepted = falls & ((negative & ct::equal(magnitude, 0)) ^ 1);
        let noise = ct::select(negative, magnitude.wrapping_neg(), magnitude).cast_signed();
        Trial { noise, accepted }
    }

    /// The value, clamped to -2^62, ..., 2^62, plus the noise, which is below 2^60. Secret: `value`, `noise` and the
    /// result.
    pub(crate) fn userdp_ct_discrete_gaussian_sum(value: i64, noise: i64) -> i64 {
        ct::clamp(value, -VALUE_LIMIT, VALUE_LIMIT).wrapping_add(noise)
    }
}

ct::revealed! {
    /// Adds the noise of trials that are accepted to the first of the values, and returns how many of them were.
    ///
    /// Revealed: which trials were rejected. Trials are independent, so this is independent of the noise of those that
    /// were accepted. Secret: `trials` but for that, and `values`.
    pub(crate) fn userdp_revealed_discrete_gaussian_rejections(
        noise: &DiscreteGaussian,
        trials: &[u8],
        values: &mut [i64],
    ) -> usize {
        let mut done = 0;
        for trial in trials.as_chunks().0 {
            let trial = noise.trial(trial);
            if trial.accepted == 1 {
                values[done] = userdp_ct_discrete_gaussian_sum(values[done], trial.noise);
                done += 1;
            }
        }
        done
    }
}
