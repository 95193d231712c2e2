//! Draws from the exponential mechanism, in constant time.
//!
//! For 128 random bits u the draw is the number of cumulative weights that are at most t = floor(u W / 2^128). It is
//! computed in one of two ways, which agree for all scores and bits:
//!
//! * *stored*: all cumulative weights are kept and scanned;
//! * *blocked*: only those at the ends of blocks are kept. A scan of them tells the block; its scores are gathered
//!   by reading all scores, and its weights are made once more and scanned.
//!
//! # Timing
//! Secret: scores, random bits and everything computed from them. Public: the rate, the number of candidates and of
//! draws, and whether scores are minimized or maximized.

use super::{MAX_CANDIDATES, Rate};
use crate::{
    Error, Result,
    control::Control,
    ct::{self, Secret},
    rng::Source,
    sampler::table::userdp_ct_count,
};
use std::fmt;

/// Candidates in a block.
const BLOCK: usize = 256;
/// Up to this many candidates, all cumulative weights are stored. Measured: both orders take equally long at about 4096
/// for one draw, and at about 8192 for each further one.
const MOST_STORED: usize = 4096;
/// Weights that are computed side by side, so that one's products fill the time in which another waits for its own.
const LANES: usize = 4;
/// Candidates read, or draws made, between two looks at the control.
const STEPS: usize = 1 << 18;

/// How draws are computed; the results are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All cumulative weights are kept.
    Stored,
    /// Cumulative weights are kept at the ends of blocks.
    Blocked,
}

/// What all draws from one vector of scores share.
pub struct Draws<'a> {
    rate: Rate,
    scores: &'a [i64],
    /// Scores and this, combined by exclusive or, are unsigned numbers of which the lowest is the best.
    orientation: u64,
    lowest: Secret<u64>,
    /// Cumulative weights, of which the last is W.
    sums: Secret<Vec<u128>>,
    order: Order,
}

impl fmt::Debug for Draws<'_> {
    /// Without anything secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Draws")
            .field("order", &self.order)
            .field("candidates", &self.scores.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Draws<'a> {
    /// Prepares draws of a candidate by its score: lower scores are better, or higher ones with `maximize`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no candidates, or more than 2^24.
    pub fn new(rate: Rate, scores: &'a [i64], maximize: bool) -> Result<Self> {
        let order = if scores.len() <= MOST_STORED { Order::Stored } else { Order::Blocked };
        Self::in_order(order, rate, scores, maximize)
    }

    /// As [`Draws::new`], computed in a given way.
    ///
    /// # Errors
    /// As [`Draws::new`].
    pub fn in_order(order: Order, rate: Rate, scores: &'a [i64], maximize: bool) -> Result<Self> {
        check_candidates(scores.len())?;
        // Signed numbers in the order of unsigned ones have the first bit flipped; a complement reverses them and
        // keeps the gaps.
        let orientation = if maximize { u64::MAX >> 1 } else { 1 << 63 };
        let lowest = Secret::new(userdp_ct_exponential_lowest(scores, orientation));
        let length = if order == Order::Stored { scores.len() } else { scores.len().div_ceil(BLOCK) };
        let mut sums = Secret::new(vec![0; length]);
        let fill = match order {
            Order::Stored => userdp_ct_exponential_sums,
            Order::Blocked => userdp_ct_exponential_block_sums,
        };
        fill(&rate, scores, orientation, *lowest, &mut sums);
        Ok(Self { rate, scores, orientation, lowest, sums, order })
    }

    /// The candidate that 128 bits stand for. Secret: `bits` and the result.
    pub fn value(&self, bits: u128) -> u64 {
        match self.order {
            Order::Stored => userdp_ct_exponential_stored(&self.sums, bits),
            Order::Blocked => userdp_ct_exponential_blocked(
                &self.rate,
                self.scores,
                self.orientation,
                *self.lowest,
                &self.sums,
                bits,
            ),
        }
    }

    /// Independent draws into a slice, of 16 random bytes each: from a seeded source the same as one by one.
    /// Secret: the results.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [i64], control: &Control) -> Result<()> {
        let most = (STEPS / self.scores.len()).clamp(1, 1 << 10);
        let mut bytes = Secret::new(vec![0; 16 * most.min(draws.len())]);
        for some in draws.chunks_mut(most) {
            control.advance(some.len())?;
            let bytes = &mut bytes[..16 * some.len()];
            source.fill(bytes)?;
            for (draw, bits) in some.iter_mut().zip(bytes.as_chunks::<16>().0) {
                *draw = self.value(u128::from_le_bytes(*bits)).cast_signed();
            }
        }
        Ok(())
    }
}

/// Refuses no candidates, and more than the error analysis covers.
///
/// # Errors
/// [`Error::InvalidArgument`] naming `scores`.
pub fn check_candidates(count: usize) -> Result<()> {
    if (1..=MAX_CANDIDATES).contains(&count) {
        return Ok(());
    }
    let message = if count == 0 {
        "is empty; there must be a candidate to choose".to_owned()
    } else {
        format!(
            "has {count} entries, above the {MAX_CANDIDATES} = 2^24 candidates that the proof of privacy covers"
        )
    };
    Err(Error::invalid("scores", message))
}

/// The weights of some candidates. Secret: scores, lowest and the results.
#[inline(always)]
#[allow(clippy::inline_always)] // as in ct
pub(super) fn weights<const N: usize>(
    rate: &Rate,
    scores: &[i64; N],
    orientation: u64,
    lowest: u64,
) -> [u128; N] {
    rate.weights_of_gaps(scores.map(|score| (score.cast_unsigned() ^ orientation).wrapping_sub(lowest)))
}

ct::kernel! {
    /// The lowest oriented score. Secret: the scores and the result. Public: how many there are.
    pub fn userdp_ct_exponential_lowest(scores: &[i64], orientation: u64) -> u64 {
        let mut lowest = [u64::MAX; LANES];
        let (groups, rest) = scores.as_chunks::<LANES>();
        for group in groups {
            for (least, score) in lowest.iter_mut().zip(group) {
                *least = ct::min(*least, score.cast_unsigned() ^ orientation);
            }
        }
        let lowest = lowest.into_iter().fold(u64::MAX, ct::min);
        rest.iter().fold(lowest, |least, score| ct::min(least, score.cast_unsigned() ^ orientation))
    }

    /// The cumulative weights of all candidates. Secret: scores, lowest, sums. Public: the rest, and the lengths.
    pub fn userdp_ct_exponential_sums(
        rate: &Rate, scores: &[i64], orientation: u64, lowest: u64, sums: &mut [u128],
    ) {
        // At most 2^24 weights of at most 2^103: no sum wraps.
        let mut sum = 0_u128;
        let ((groups, rest), (ends, last_ends)) = (scores.as_chunks::<LANES>(), sums.as_chunks_mut::<LANES>());
        for (group, ends) in groups.iter().zip(ends) {
            for (end, weight) in ends.iter_mut().zip(weights(rate, group, orientation, lowest)) {
                sum = sum.wrapping_add(weight);
                *end = sum;
            }
        }
        for (&score, end) in rest.iter().zip(last_ends) {
            let [weight] = weights(rate, &[score], orientation, lowest);
            sum = sum.wrapping_add(weight);
            *end = sum;
        }
    }

    /// The cumulative weights at the ends of blocks. Secret: scores, lowest, sums. Public: the rest, and the lengths.
    pub fn userdp_ct_exponential_block_sums(
        rate: &Rate, scores: &[i64], orientation: u64, lowest: u64, sums: &mut [u128],
    ) {
        let mut sum = 0_u128;
        for (block, end) in scores.chunks(BLOCK).zip(sums) {
            let (groups, rest) = block.as_chunks::<LANES>();
            for group in groups {
                for weight in weights(rate, group, orientation, lowest) {
                    sum = sum.wrapping_add(weight);
                }
            }
            for &score in rest {
                let [weight] = weights(rate, &[score], orientation, lowest);
                sum = sum.wrapping_add(weight);
            }
            *end = sum;
        }
    }

    /// The candidate that `bits` stand for, from all cumulative weights. Secret: both and the result.
    pub fn userdp_ct_exponential_stored(sums: &[u128], bits: u128) -> u64 {
        userdp_ct_count(sums, target(sums, bits))
    }

    /// The candidate that `bits` stand for, from the cumulative weights at the ends of blocks. Secret: scores, lowest,
    /// sums, bits and the result. Public: the rest, and the lengths.
    pub fn userdp_ct_exponential_blocked(
        rate: &Rate, scores: &[i64], orientation: u64, lowest: u64, sums: &[u128], bits: u128,
    ) -> u64 {
        let target = target(sums, bits);
        let block = userdp_ct_count(sums, target);
        // A last block that is shorter has candidates of score 0 behind it, which t does not reach.
        let mut chosen = Secret::new([0_i64; BLOCK]);
        let mut before = 0_u128;
        let mut start = 0_u128;
        for ((number, candidates), &end) in (0_u64..).zip(scores.chunks(BLOCK)).zip(sums) {
            let mask = ct::mask(ct::equal(number, block));
            for (slot, score) in chosen.iter_mut().zip(candidates) {
                *slot |= score & mask.cast_signed();
            }
            before |= start & (u128::from(mask) << 64 | u128::from(mask));
            start = end;
        }
        let mut ends = Secret::new([0_u128; BLOCK]);
        userdp_ct_exponential_sums(rate, &*chosen, orientation, lowest, &mut *ends);
        let within = userdp_ct_count(&*ends, target.wrapping_sub(before));
        block.wrapping_mul(BLOCK as u64).wrapping_add(within)
    }
}

/// floor(bits W / 2^128). Secret: both and the result.
#[inline(always)]
#[allow(clippy::inline_always)] // as in ct
fn target(sums: &[u128], bits: u128) -> u128 {
    ct::high_product_wide(bits, sums.last().copied().unwrap_or(0))
}
