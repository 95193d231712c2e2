//! Draws from the exponential mechanism on groups, in constant time.
//!
//! Only the cumulative weights at the ends of blocks of groups are kept. A scan of them tells the block; its groups are
//! gathered by reading all of them, their weights are made once more, and a scan of those tells the group. What is
//! left of R, over the weight of one candidate, is the place within the group.
//!
//! # Timing
//! Secret: starts, scores, random bits and everything computed from them. Public: the rate, the number of groups and of
//! draws, and the last candidate.

use super::{GroupedRate, Groups, LARGEST_WHOLE, STEPS};
use crate::{
    Result,
    control::Control,
    ct::{
        self, Secret, Zeroize,
        wide::{self, Wide},
    },
    rng::Source,
};
use std::fmt;

/// Groups in a block.
const BLOCK: usize = 256;
/// Weights that are computed side by side, as for listed candidates.
const LANES: usize = 4;
/// Random bytes of one draw.
const BYTES: usize = 48;
/// Signed numbers in the order of unsigned ones have the first bit flipped.
const SIGN: u64 = 1 << 63;

/// What all draws from the same groups share.
pub struct GroupedDraws<'a> {
    rate: GroupedRate,
    groups: Groups<'a>,
    /// The lowest score of a group that is not empty, in the order of unsigned numbers.
    lowest: Secret<u64>,
    /// Cumulative weights at the ends of blocks, of which the last is S.
    sums: Secret<Vec<Wide>>,
}

impl fmt::Debug for GroupedDraws<'_> {
    /// Without anything secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GroupedDraws").field("groups", &self.groups.count()).finish_non_exhaustive()
    }
}

impl<'a> GroupedDraws<'a> {
    /// Prepares draws: reads all groups twice.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub fn new(rate: GroupedRate, groups: Groups<'a>, control: &Control) -> Result<Self> {
        let mut lowest = Secret::new(u64::MAX);
        for part in parts(&groups, STEPS) {
            control.check()?;
            *lowest = ct::min(*lowest, userdp_ct_grouped_lowest(part.starts, part.end, part.scores));
        }
        let mut sums = Secret::new(vec![[0; 2]; groups.count().div_ceil(BLOCK)]);
        let mut sum = Secret::new([0; 2]);
        for (part, sums) in parts(&groups, STEPS).zip(sums.chunks_mut(STEPS / BLOCK)) {
            control.check()?;
            userdp_ct_grouped_sums(&rate, part.starts, part.end, part.scores, *lowest, &sum, sums);
            *sum = total(sums);
        }
        Ok(Self { rate, groups, lowest, sums })
    }

    /// The candidate that 384 bits stand for, the lowest word first. Secret: `bits` and the result.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub fn value(&self, bits: &[u64; 6], control: &Control) -> Result<u64> {
        let target = Secret::new(userdp_ct_grouped_target(bits, &total(&self.sums)));
        let mut rest = Secret::new([0; 2]);
        let number = userdp_ct_grouped_search(&self.sums, &target, &mut rest);
        let mut chosen = Secret::new(Block::default());
        for (part, first) in parts(&self.groups, STEPS).zip((0_u64..).step_by(STEPS / BLOCK)) {
            control.check()?;
            let (lowest, number) = (*self.lowest, number.wrapping_sub(first));
            userdp_ct_grouped_gather(part.starts, part.end, part.scores, lowest, number, &mut chosen);
        }
        let (Block { starts, lengths, gaps }, used) = (&*chosen, used(self.groups.count()));
        Ok(userdp_ct_grouped_point(&self.rate, &starts[..used], &lengths[..used], &gaps[..used], &rest))
    }

    /// Independent draws into a slice, of 48 random bytes each: from a seeded source the same as one by one.
    /// Secret: the results.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`crate::Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [u64], control: &Control) -> Result<()> {
        let most = (STEPS / self.groups.count()).clamp(1, 1 << 10);
        let mut bytes = Secret::new(vec![0; BYTES * most.min(draws.len())]);
        for some in draws.chunks_mut(most) {
            control.advance(some.len())?;
            let bytes = &mut bytes[..BYTES * some.len()];
            source.fill(bytes)?;
            for (draw, bits) in some.iter_mut().zip(bytes.as_chunks::<BYTES>().0) {
                *draw = self.value(&words(bits), control)?;
            }
        }
        Ok(())
    }
}

/// The random bits of one draw, the lowest word first. Secret: they.
///
/// # Errors
/// As [`Source::fill`].
pub fn draw_bits(source: &mut Source) -> Result<Secret<[u64; 6]>> {
    let mut bytes = Secret::new([0; BYTES]);
    source.fill(&mut *bytes)?;
    Ok(Secret::new(words(&bytes)))
}

/// Little-endian words. Secret: the bytes.
fn words(bytes: &[u8; BYTES]) -> [u64; 6] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|place| u64::from_le_bytes(words[place]))
}

/// The last of the cumulative weights. Secret: the weights.
fn total(sums: &[Wide]) -> Wide {
    sums.last().copied().unwrap_or_default()
}

/// The groups in parts of a public number of groups. Secret: starts and scores.
fn parts<'a>(groups: &Groups<'a>, size: usize) -> impl Iterator<Item = Groups<'a>> {
    let Groups { starts, end, scores } = *groups;
    starts.chunks(size).zip(scores.chunks(size)).enumerate().map(move |(place, (some, scores))| {
        let next = starts.get(place * size + some.len());
        Groups { starts: some, end: next.map_or(end, |&start| u128::from(start)), scores }
    })
}

/// The lengths of neighboring groups, modulo 2^128. Secret: all.
#[inline(always)]
#[allow(clippy::inline_always)] // as in ct
fn lengths(starts: &[u64], end: u128) -> impl Iterator<Item = u128> {
    let ends = starts[1..].iter().map(|&start| u128::from(start)).chain([end]);
    starts.iter().zip(ends).map(|(&start, end)| end.wrapping_sub(u128::from(start)))
}

/// How much of a block this many groups need, in whole lanes.
fn used(count: usize) -> usize {
    count.min(BLOCK).next_multiple_of(LANES)
}

/// The groups of a block; those that it lacks are empty.
pub struct Block {
    starts: [u64; BLOCK],
    lengths: [u128; BLOCK],
    /// How far each score is above the lowest.
    gaps: [u64; BLOCK],
}

impl Default for Block {
    fn default() -> Self {
        Self { starts: [0; BLOCK], lengths: [0; BLOCK], gaps: [0; BLOCK] }
    }
}

impl Zeroize for Block {
    fn zeroize(&mut self) {
        self.starts.zeroize();
        self.lengths.zeroize();
        self.gaps.zeroize();
    }
}

/// The weights of some groups. Secret: lengths, gaps and the results.
#[inline(always)]
#[allow(clippy::inline_always)] // as in ct
#[allow(clippy::cast_possible_truncation)]
fn weights<const N: usize>(rate: &GroupedRate, lengths: &[u128; N], gaps: &[u64; N]) -> [Wide; N] {
    let powers = rate.powers(*gaps);
    std::array::from_fn(|lane| {
        let (length, power) = (lengths[lane], powers[lane]);
        // A length is at most 2^64, so that this is below 2^104.
        let whole_range = u128::from(power.mantissa & ct::mask((length >> 64) as u64)) << 64;
        let product = u128::from(power.mantissa).wrapping_mul(u128::from(length as u64)) | whole_range;
        wide::shifted_left(product, power.whole ^ LARGEST_WHOLE)
    })
}

#[inline(always)]
#[allow(clippy::inline_always)] // as in ct
fn oriented(score: i64) -> u64 {
    score.cast_unsigned() ^ SIGN
}

ct::kernel! {
    /// 1 when a group ends before it begins, or no group has a candidate; otherwise 0. Secret: starts and the result.
    /// Public: their number, `end`.
    pub fn userdp_ct_grouped_disorder(starts: &[u64], end: u128) -> u64 {
        let below = |a: u64, b: u64| u64::from(a.overflowing_sub(b).1);
        let falls = starts.windows(2).fold(0, |falls, pair| falls | below(pair[1], pair[0]));
        let (first, last) = (starts.first().copied().unwrap_or(0), starts.last().copied().unwrap_or(0));
        let beyond = ct::at_most_wide(u128::from(last), end) ^ 1;
        let none = ct::at_most_wide(end, u128::from(first));
        ct::barrier(falls | beyond | none)
    }

    /// The lowest score of a group that is not empty, in the order of unsigned numbers, or the highest number. Secret:
    /// starts, end, scores and the result. Public: their number.
    pub fn userdp_ct_grouped_lowest(starts: &[u64], end: u128, scores: &[i64]) -> u64 {
        lengths(starts, end).zip(scores).fold(u64::MAX, |lowest, (length, &score)| {
            let empty = ct::mask(ct::at_most_wide(length, 0));
            ct::min(lowest, oriented(score) | empty)
        })
    }

    /// The cumulative weights of the groups of a block, after those before it. Secret: lengths, gaps, before, ends.
    /// Public: the rate, and how many there are: a multiple of the lanes.
    pub fn userdp_ct_grouped_ends(
        rate: &GroupedRate, lengths: &[u128], gaps: &[u64], before: &Wide, ends: &mut [Wide],
    ) {
        // At most 2^64 candidates of weight at most 2^166: no sum wraps.
        let mut sum = *before;
        let (lengths, gaps, ends) =
            (lengths.as_chunks::<LANES>().0, gaps.as_chunks::<LANES>().0, ends.as_chunks_mut::<LANES>().0);
        for ((lengths, gaps), ends) in lengths.iter().zip(gaps).zip(ends) {
            for (end, weight) in ends.iter_mut().zip(weights(rate, lengths, gaps)) {
                sum = wide::add(sum, weight);
                *end = sum;
            }
        }
    }

    /// The cumulative weights at the ends of blocks, after those of the groups before. Secret: starts, end, scores,
    /// lowest, before, sums. Public: the rate, and the lengths of the slices.
    pub fn userdp_ct_grouped_sums(
        rate: &GroupedRate, starts: &[u64], end: u128, scores: &[i64], lowest: u64, before: &Wide, sums: &mut [Wide],
    ) {
        let mut block = Secret::new(Block::default());
        let mut ends = Secret::new([[0; 2]; BLOCK]);
        let mut sum = *before;
        for (part, block_end) in parts(&Groups { starts, end, scores }, BLOCK).zip(sums) {
            for (slot, &score) in block.gaps.iter_mut().zip(part.scores) {
                *slot = oriented(score).wrapping_sub(lowest);
            }
            block.lengths[part.count()..].fill(0);
            for (slot, length) in block.lengths.iter_mut().zip(lengths(part.starts, part.end)) {
                *slot = length;
            }
            let used = used(part.count());
            userdp_ct_grouped_ends(rate, &block.lengths[..used], &block.gaps[..used], &sum, &mut ends[..used]);
            sum = ends[used - 1];
            *block_end = sum;
        }
    }

    /// floor(bits S / 2^384). Secret: bits, sum and the result.
    pub fn userdp_ct_grouped_target(bits: &[u64; 6], sum: &Wide) -> Wide {
        wide::high_product(bits, *sum)
    }

    /// The number of cumulative weights that are at most a target, and what the target is above the last of them.
    /// Secret: ends, target, rest and the result. Public: how many there are.
    pub fn userdp_ct_grouped_search(ends: &[Wide], target: &Wide, rest: &mut Wide) -> u64 {
        let (mut count, mut before) = (0_u64, [0; 2]);
        for &end in ends {
            let passed = wide::at_most(end, *target);
            count = count.wrapping_add(passed);
            before = wide::select(passed, end, before);
        }
        *rest = wide::subtract(*target, before);
        count
    }

    /// The groups of the block of a number, if it is among these; all of them are read. Secret: starts,
    /// end, scores, lowest, number and what is written. Public: how many there are.
    pub fn userdp_ct_grouped_gather(
        starts: &[u64], end: u128, scores: &[i64], lowest: u64, number: u64, chosen: &mut Block,
    ) {
        for (part, place) in parts(&Groups { starts, end, scores }, BLOCK).zip(0_u64..) {
            let bit = ct::equal(number, place);
            let (mask, wide_mask) = (ct::mask(bit), wide::mask_wide(bit));
            for (slot, &start) in chosen.starts.iter_mut().zip(part.starts) {
                *slot |= start & mask;
            }
            for (slot, length) in chosen.lengths.iter_mut().zip(lengths(part.starts, part.end)) {
                *slot |= length & wide_mask;
            }
            for (slot, &score) in chosen.gaps.iter_mut().zip(part.scores) {
                *slot |= oriented(score).wrapping_sub(lowest) & mask;
            }
        }
    }

    /// The candidate of a block at a place in its weights. Secret: starts, lengths, gaps, place and the result. Public:
    /// the rate, and how many there are.
    pub fn userdp_ct_grouped_point(
        rate: &GroupedRate, starts: &[u64], lengths: &[u128], gaps: &[u64], place: &Wide,
    ) -> u64 {
        let mut ends = Secret::new([[0; 2]; BLOCK]);
        let ends = &mut ends[..lengths.len()];
        userdp_ct_grouped_ends(rate, lengths, gaps, &[0; 2], ends);
        let mut rest = Secret::new([0; 2]);
        let number = userdp_ct_grouped_search(ends, place, &mut rest);
        let (mut first, mut gap) = (0_u64, 0_u64);
        for ((index, &start), &other) in (0_u64..).zip(starts).zip(gaps) {
            let mask = ct::mask(ct::equal(number, index));
            first |= start & mask;
            gap |= other & mask;
        }
        let [power] = rate.powers([gap]);
        let rest = wide::shifted_right(*rest, power.whole ^ LARGEST_WHOLE);
        first.wrapping_add(wide::quotient(rest, power.mantissa))
    }
}
