//! The exponential mechanism on up to 2^64 candidates, given as groups of neighbors with one score each.
//!
//! The candidates are the integers of a range, cut into groups. A group of length l whose score is the gap d above the
//! lowest weighs l w(d), where w(d) is near 2^166 2^(-rho d) and D the largest gap with rho D < 128. A draw takes V
//! uniform on 0..2^384 and R = floor(V S / 2^384) for the sum S of all weights. R lies in the interval of a group, and
//! within it in that of a candidate: both follow from R exactly.
//!
//! # Privacy
//! How candidates are grouped is only a way to write down their scores: the candidates' intervals are those of a
//! mechanism that lists each one with its score, in order, so that cutting a group in two changes nothing. Of the
//! proof for few candidates ([`super`]) everything stays but two numbers. Gaps are clamped where they are worth 128
//! bits, so that 2^64 candidates at the far end weigh about 2^-64 of the best one together. And rounding the `N_i` costs a
//! relative S / (`w_min` 2^384) <= 2^64 2^128 2^-384 hi/lo = 2^-192 hi/lo, far below what 2^24 candidates cost there: the
//! same reserve of 2^-36 covers it. See `docs/proofs/exponential_mechanism.md`.

pub mod draw;

pub use draw::GroupedDraws;

use super::{Power, Rate, gap, largest_gap, shares};
use crate::{
    Error, Result,
    control::Control,
    ct,
    exact::{Level, Natural, Rational},
};
use num_traits::Zero;
use std::fmt;

/// The numerators of a distribution sum to 2 to this.
pub const GROUPED_TOTAL_BITS: u32 = 384;
/// A distribution of more points than this is refused: it would fill gigabytes.
pub const MOST_POINTS: u128 = 1 << 22;
/// The integer part of an exponent of 2 is at most this.
const LARGEST_WHOLE: u64 = 127;
/// Groups or points between two looks at the control.
const STEPS: usize = 1 << 18;

/// rho, the bits of weight that one unit of score is worth, for candidates in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupedRate {
    rate: Rate,
    /// D, the largest gap with rho D < 128.
    largest_gap: u64,
}

impl GroupedRate {
    /// The largest rate at which scores of this sensitivity are drawn with epsilon-DP: that of [`Rate::new`].
    ///
    /// # Errors
    /// As [`Rate::new`].
    pub fn new(level: &Level, sensitivity: u64, monotone: bool) -> Result<Self> {
        let rate = Rate::new(level, sensitivity, monotone)?;
        Ok(Self { rate, largest_gap: largest_gap(rate.multiplier, rate.shift, 7) })
    }

    /// rho, exactly.
    pub fn bits_per_unit(&self) -> Rational {
        self.rate.bits_per_unit()
    }

    /// D: larger gaps weigh the same.
    pub fn largest_gap(&self) -> u64 {
        self.largest_gap
    }

    /// An upper bound of the epsilon that the integers deliver, for any groups.
    ///
    /// # Guarantee
    /// It is below the epsilon asked for: see the proof above.
    pub fn certified_epsilon(&self) -> Rational {
        self.rate.certified_epsilon_with(GROUPED_TOTAL_BITS - 64 - 128)
    }

    /// The weight of one candidate whose score is `gap` above the lowest: from 2^38 - 2 to 2^166. Not constant time.
    pub fn weight(&self, gap: u64) -> Natural {
        let [Power { mantissa, whole }] = self.powers([gap]);
        Natural::from(mantissa) << (LARGEST_WHOLE - whole)
    }

    /// How many of the 2^384 values of the random bits lead into each group: 0 for an empty one. They sum to 2^384.
    /// Not constant time.
    ///
    /// # Errors
    /// [`Error::Canceled`].
    pub fn group_numerators(&self, groups: &Groups<'_>, control: &Control) -> Result<Vec<Natural>> {
        let weights = self.weights(groups, control)?;
        let totals = || groups.lengths().zip(&weights).map(|(length, weight)| weight * length);
        Ok(shares(totals(), &totals().sum(), GROUPED_TOTAL_BITS).collect())
    }

    /// How many of the 2^384 values of the random bits lead to each point of the range, in order. They are positive
    /// and sum to 2^384. Not constant time.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 2^22 points; [`Error::Canceled`].
    pub fn numerators(&self, groups: &Groups<'_>, control: &Control) -> Result<Vec<Natural>> {
        let points: u128 = groups.lengths().sum();
        if points > MOST_POINTS {
            let message =
                format!("the distribution of {points} points would fill gigabytes (limit {MOST_POINTS})");
            return Err(Error::too_large(message));
        }
        let weights = self.weights(groups, control)?;
        let each = || {
            let repeated = |(length, weight)| (0..length).map(move |_| Natural::clone(weight));
            groups.lengths().zip(&weights).flat_map(repeated)
        };
        let total = groups.lengths().zip(&weights).map(|(length, weight)| weight * length).sum();
        let mut numerators = Vec::new();
        for (place, numerator) in shares(each(), &total, GROUPED_TOTAL_BITS).enumerate() {
            if place % STEPS == 0 {
                control.check()?;
            }
            numerators.push(numerator);
        }
        Ok(numerators)
    }

    /// The weight of one candidate of each group, and 0 where a group has none.
    fn weights(&self, groups: &Groups<'_>, control: &Control) -> Result<Vec<Natural>> {
        let candidates = || groups.lengths().zip(groups.scores);
        let lowest =
            candidates().filter(|(length, _)| *length > 0).map(|(_, &score)| score).min().unwrap_or(0);
        candidates()
            .enumerate()
            .map(|(place, (length, &score))| {
                if place % STEPS == 0 {
                    control.check()?;
                }
                Ok(if length > 0 { self.weight(gap(score, lowest)) } else { Natural::zero() })
            })
            .collect()
    }

    /// See [`Rate::powers_of_gaps`]. Secret: the gaps and the results. Public: the rate.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as in ct
    fn powers<const N: usize>(&self, gaps: [u64; N]) -> [Power; N] {
        self.rate.powers_of_gaps(gaps, self.largest_gap)
    }
}

/// A range of integers, cut into groups of neighbors that have one score each; lower scores are better.
#[derive(Clone, Copy)]
pub struct Groups<'a> {
    /// Where each group begins; it ends before the next one does. A group that begins where the next one does is empty.
    starts: &'a [u64],
    /// One above the last candidate.
    end: u128,
    scores: &'a [i64],
}

impl fmt::Debug for Groups<'_> {
    /// Without anything secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Groups").field("groups", &self.starts.len()).finish_non_exhaustive()
    }
}

impl<'a> Groups<'a> {
    /// The groups `starts[j]..=starts[j + 1] - 1`, and the last one up to and including `last`. Groups may be empty, but
    /// not all of them; the score of an empty one does not matter.
    ///
    /// # Timing
    /// Secret: starts and scores. Public: their number, `last`, and that they are in order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless starts and scores are as many, at least one, and `starts` does not fall,
    /// begins at most at `last` and ends at most one above it.
    pub fn new(starts: &'a [u64], scores: &'a [i64], last: u64) -> Result<Self> {
        if starts.len() != scores.len() {
            let message = format!("has {} entries where starts has {}", scores.len(), starts.len());
            return Err(Error::invalid("scores", message));
        }
        if starts.is_empty() {
            return Err(Error::invalid("starts", "is empty; there must be a candidate to choose"));
        }
        let end = u128::from(last) + 1;
        userdp_revealed_grouped_disorder(draw::userdp_ct_grouped_disorder(starts, end))?;
        Ok(Self { starts, end, scores })
    }

    /// The number of groups, empty ones included.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The lengths of the groups. Not constant time.
    fn lengths(&self) -> impl Iterator<Item = u128> {
        let ends = self.starts[1..].iter().map(|&start| u128::from(start)).chain([self.end]);
        self.starts.iter().zip(ends).map(|(&start, end)| end - u128::from(start))
    }
}

ct::revealed! {
    /// An error for the bit 1.
    ///
    /// Revealed: whether starts are in order and hold a candidate. They are and do for every data set, unless the
    /// program that made them is wrong; nothing else about them is. Secret: `disorder` but for that.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for the bit 1.
    pub fn userdp_revealed_grouped_disorder(disorder: u64) -> Result<()> {
        if ct::barrier(disorder) == 1 {
            let message = "must not fall, begin at most at last, and end at most at last + 1";
            return Err(Error::invalid("starts", message));
        }
        Ok(())
    }
}
