//! Permute-and-flip: a coin for every candidate, and a uniformly random one of those that succeed.
//!
//! Candidate i has the weight `w_i` of the exponential mechanism and its coin succeeds with probability `w_i` / 2^103,
//! which is 1 for the best one. All coins are tossed. Of the N that succeed, J = floor(v N / 2^128) says by its place
//! among them which one is returned, for 128 random bits v. This is the distribution of the first success in a random
//! order of the candidates, but for a relative 2^-104 that the rounding of J costs.
//!
//! # Privacy
//! `docs/proofs/permute_and_flip.md`: pure epsilon-DP at the rate of the exponential mechanism, all roundings included.
//!
//! # Timing
//! Secret: scores, random bits, coins, their number and the draw. Public: the rate, the number of candidates and of
//! draws, and whether scores are minimized or maximized. Every coin is tossed, also those that are sure to succeed.
//!
//! Source: `McKenna`, Sheldon (`NeurIPS` 2020).

mod distribution;

pub use distribution::{EXACT_CANDIDATES, MOST_BOUNDED, bounds, numerators};

use super::{
    Rate,
    draw::{check_candidates, userdp_ct_exponential_lowest, weights},
};
use crate::{
    Result,
    control::Control,
    ct::{self, Bytes, Secret},
    exact::Rational,
    rng::Stream,
};
use std::fmt;

/// Candidates whose random bytes are asked for at a time: a multiple of what `ChaCha20` makes at a time.
const PART: usize = 512;
/// Candidates whose weights are made at a time, a multiple of 64.
const WEIGHTS: usize = 128;
/// Random bytes of a coin, of which the highest 103 bits are used.
const COIN_BYTES: usize = 13;
/// Random bytes of the place among the successes.
const PLACE_BYTES: usize = 16;
/// Up to this many candidates, the weights are kept from one draw to the next.
const MOST_KEPT: usize = 1 << 16;
/// Weights that are computed side by side, as in the exponential mechanism.
const LANES: usize = 4;
/// The rounding of J changes a probability by a relative 2^-104 at most, for up to 2^24 candidates.
const ROUNDING_BITS: u32 = 104;
/// Candidates read between two looks at the control.
const STEPS: usize = 1 << 18;

/// An upper bound of the epsilon that the draws deliver, for any number of candidates that is accepted.
///
/// # Guarantee
/// It is below the epsilon that the rate was made for.
pub fn certified_epsilon(rate: &Rate) -> Rational {
    rate.certified_epsilon_with(ROUNDING_BITS)
}

/// How many random bytes a draw among so many candidates takes: 13 for each coin, up to a multiple of 16, and 16.
pub fn bytes_of_draw(candidates: usize) -> usize {
    (COIN_BYTES * candidates).next_multiple_of(16) + PLACE_BYTES
}

/// What all draws from one vector of scores share.
pub struct Draws<'a> {
    rate: Rate,
    scores: &'a [i64],
    /// As in the exponential mechanism.
    orientation: u64,
    lowest: Secret<u64>,
    /// The weights of all candidates, or room for some of them.
    weights: Secret<Vec<u128>>,
    /// Whether the weights of all candidates are there.
    kept: bool,
    /// Whose coin succeeded: a bit for each candidate.
    successes: Secret<Vec<u64>>,
}

impl fmt::Debug for Draws<'_> {
    /// Without anything secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Draws").field("candidates", &self.scores.len()).finish_non_exhaustive()
    }
}

impl<'a> Draws<'a> {
    /// Prepares `number` draws of a candidate by its score: lower scores are better, or higher ones with `maximize`.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for no candidates, or more than 2^24.
    pub fn new(rate: Rate, scores: &'a [i64], maximize: bool, number: usize) -> Result<Self> {
        check_candidates(scores.len())?;
        let orientation = if maximize { u64::MAX >> 1 } else { 1 << 63 };
        let lowest = Secret::new(userdp_ct_exponential_lowest(scores, orientation));
        let kept = number > 1 && scores.len() <= MOST_KEPT;
        let mut weights = Secret::new(vec![0; if kept { scores.len() } else { WEIGHTS.min(scores.len()) }]);
        if kept {
            userdp_ct_permute_flip_weights(&rate, scores, orientation, *lowest, &mut weights);
        }
        let successes = Secret::new(vec![0; scores.len().div_ceil(64)]);
        Ok(Self { rate, scores, orientation, lowest, weights, kept, successes })
    }

    /// Independent draws into a slice, of [`bytes_of_draw`] random bytes each: from a seeded source the same as one by
    /// one. Secret: the results.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub fn draw_many(&mut self, stream: &mut Stream, draws: &mut [i64], control: &Control) -> Result<()> {
        let whole_parts = (self.scores.len() - 1) / PART;
        // What follows the whole parts of a draw. Without these, the bytes of many draws are asked for together.
        let rest = bytes_of_draw(self.scores.len()) - whole_parts * PART * COIN_BYTES;
        let together = if whole_parts == 0 { (PART * COIN_BYTES / rest).max(1) } else { 1 };
        let size =
            if whole_parts == 0 { rest * together.min(draws.len()) } else { PART * COIN_BYTES + PLACE_BYTES };
        let mut bytes = Secret::new(Bytes::zeros(size));
        for some in draws.chunks_mut(together) {
            control.advance(some.len())?;
            for part in 0..whole_parts {
                if part % (STEPS / PART) == 0 {
                    control.check()?;
                }
                stream.fill(&mut bytes[..PART * COIN_BYTES]);
                self.toss(part * PART, PART, &bytes);
            }
            let bytes = &mut bytes[..rest * some.len()];
            stream.fill(bytes);
            for (draw, bytes) in some.iter_mut().zip(bytes.chunks_exact(rest)) {
                self.toss(whole_parts * PART, self.scores.len() - whole_parts * PART, bytes);
                let mut place = Secret::new([0; PLACE_BYTES]);
                place.copy_from_slice(&bytes[rest - PLACE_BYTES..]);
                let place = u128::from_le_bytes(*place);
                *draw = userdp_ct_permute_flip_chosen(&self.successes, place).cast_signed();
            }
        }
        Ok(())
    }

    /// Tosses the coins of some candidates. `start` is a multiple of 64. Secret: `coins`.
    fn toss(&mut self, start: usize, number: usize, coins: &[u8]) {
        let successes = &mut self.successes[start / 64..];
        if self.kept {
            userdp_ct_permute_flip_coins(&self.weights[start..start + number], coins, successes);
            return;
        }
        let scores = self.scores[start..start + number].chunks(WEIGHTS);
        for ((part, scores), successes) in scores.enumerate().zip(successes.chunks_mut(WEIGHTS / 64)) {
            let weights = &mut self.weights[..scores.len()];
            userdp_ct_permute_flip_weights(&self.rate, scores, self.orientation, *self.lowest, weights);
            userdp_ct_permute_flip_coins(weights, &coins[part * WEIGHTS * COIN_BYTES..], successes);
        }
    }
}

ct::kernel! {
    /// The weights of candidates. Secret: scores, lowest, weights. Public: the rest, and the lengths.
    pub fn userdp_ct_permute_flip_weights(
        rate: &Rate, scores: &[i64], orientation: u64, lowest: u64, weights: &mut [u128],
    ) {
        let ((groups, rest), (into, last)) = (scores.as_chunks::<LANES>(), weights.as_chunks_mut::<LANES>());
        for (group, into) in groups.iter().zip(into) {
            *into = self::weights(rate, group, orientation, lowest);
        }
        for (&score, into) in rest.iter().zip(last) {
            [*into] = self::weights(rate, &[score], orientation, lowest);
        }
    }

    /// Tosses a coin of probability weight / 2^103 for each weight, by 13 bytes, and writes a bit that is 1 where it
    /// succeeds, the lowest first. Secret: weights, coins, successes. Public: the lengths.
    pub fn userdp_ct_permute_flip_coins(weights: &[u128], coins: &[u8], successes: &mut [u64]) {
        let mut bytes = coins;
        for (weights, success) in weights.chunks(64).zip(successes) {
            let mut bits = 0_u64;
            for (place, &weight) in (0_u32..).zip(weights) {
                // The bytes of the place follow the coins, so that there are 16.
                let Some((coin, _)) = bytes.split_first_chunk::<16>() else { break };
                bytes = &bytes[COIN_BYTES..];
                // 13 bytes without their lowest bit.
                let coin = (u128::from_le_bytes(*coin) << 24) >> 25;
                let succeeds = ct::at_most_wide(weight, coin) ^ 1;
                bits |= succeeds << place;
            }
            *success = bits;
        }
    }

    /// The place of success number floor(place N / 2^128), N being the number of successes. Secret: successes, place and
    /// the result. Public: the length.
    #[allow(clippy::cast_possible_truncation)] // below 2^24
    pub fn userdp_ct_permute_flip_chosen(successes: &[u64], place: u128) -> u64 {
        let mut count = 0_u64;
        for &word in successes {
            count = count.wrapping_add(u64::from(word.count_ones()));
        }
        // Below the count, which is at most 2^24.
        let rank = ct::high_product_wide(place, u128::from(count)) as u64;
        // Whole words with at most `rank` successes up to their ends lie before the candidate.
        let (mut before, mut candidate, mut chosen, mut within) = (0_u64, 0_u64, 0_u64, 0_u64);
        for &word in successes {
            let after = before.wrapping_add(u64::from(word.count_ones()));
            let reached = ct::less(rank, before) ^ 1;
            let passed = ct::less(rank, after) ^ 1;
            candidate = candidate.wrapping_add(passed << 6);
            let here = ct::mask(reached & (passed ^ 1));
            chosen |= word & here;
            within |= rank.wrapping_sub(before) & here;
            before = after;
        }
        let mut before = 0_u64;
        for bit in 0..64 {
            before = before.wrapping_add((chosen >> bit) & 1);
            candidate = candidate.wrapping_add(ct::less(within, before) ^ 1);
        }
        candidate
    }
}
