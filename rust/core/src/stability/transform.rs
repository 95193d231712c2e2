//! Sums over the stable deletion vectors below every vector t, axis by axis.

use super::{
    prefixes::Prefixes,
    typed::{StableFamily, number_of_vectors},
};
use crate::{Error, Result, control::Control, exact::Natural};
use num_traits::Zero;
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};

/// Numbers that one thread keeps at most: 256 MB of floats.
const MAX_NUMBERS: u128 = 1 << 25;
/// Rows between two looks at the control.
const CHECK_EVERY: usize = 1 << 12;

/// Non-negative numbers that sums are made of: floats, or exact integers.
pub(super) trait Number: Clone + Send + Sync {
    /// 0
    const ZERO: Self;
    /// `sums[i] += factor * terms[i]`
    fn add_scaled(sums: &mut [Self], factor: &Self, terms: &[Self]);
    /// The sum of `a[i] * b[i]`
    fn dot(a: &[Self], b: &[Self]) -> Self;
}

impl Number for f64 {
    const ZERO: Self = 0.0;

    fn add_scaled(sums: &mut [Self], factor: &Self, terms: &[Self]) {
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += factor * term;
        }
    }

    fn dot(a: &[Self], b: &[Self]) -> Self {
        a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
    }
}

impl Number for Natural {
    const ZERO: Self = Self::ZERO;

    fn add_scaled(sums: &mut [Self], factor: &Self, terms: &[Self]) {
        for (sum, term) in sums.iter_mut().zip(terms).filter(|(_, term)| !term.is_zero()) {
            *sum += factor * term;
        }
    }

    fn dot(a: &[Self], b: &[Self]) -> Self {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }
}

/// The sizes of sets that a transform sums over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The sum of `value(|s|) prod C(t_j, s_j)` over the stable s <= t with `first <= |s| <= last`, for every deletion
/// vector t.
///
/// For every first coordinate of t, the first coordinate of s is summed over; then for every second coordinate the
/// second, and so on: the arrays shrink as the vectors multiply, and the innermost loops run along the last coordinate.
pub(super) struct Transform<'a, N> {
    family: &'a StableFamily,
    sizes: Sizes,
    /// Largest coordinate of s, by axis.
    last: Vec<usize>,
    /// Length of an array over this and the later axes.
    lengths: Vec<usize>,
    /// Largest sum of the coordinates of this and the later axes.
    reaches: Vec<usize>,
    /// The value of every size.
    values: Vec<N>,
    /// C(t, 0), C(t, 1), ... for t = 0, ..., D.
    binomials: &'a [Vec<N>],
}

/// Largest coordinate, by axis, of vectors of size `limit` at most.
fn largest(family: &StableFamily, limit: usize) -> Vec<usize> {
    family.counts().iter().map(|&count| count.min(limit)).collect()
}

/// How many multiplications a transform takes.
///
/// # Errors
/// [`Error::TooLarge`] when its arrays do not fit.
pub(super) fn work(family: &StableFamily, sizes: Sizes) -> Result<f64> {
    let last = largest(family, sizes.last);
    let length: u128 = last[1..].iter().map(|&last| last as u128 + 1).product();
    if length > MAX_NUMBERS {
        return Err(Error::too_large(format!(
            "the distribution of the deleted users needs arrays of {length} numbers where {MAX_NUMBERS} are possible; describe \
             users by fewer types, or use an epsilon or delta that needs fewer deletions"
        )));
    }
    let up_to = |counts: &[usize], total: usize| {
        let mut counts = counts.to_vec();
        counts.push(total);
        number_of_vectors(&counts, total) as f64
    };
    let axes = family.types();
    Ok((0..axes)
        .map(|axis| {
            up_to(&family.counts()[..=axis.min(axes.saturating_sub(2))], family.deletions())
                * up_to(&last[axis..], sizes.last)
        })
        .sum())
}

/// Roundings that a float sum of the transform goes through at most.
pub(super) fn roundings(family: &StableFamily, sizes: Sizes) -> usize {
    // A sum of m terms adds m - 1 times; each term has its rounded binomial and its product. And the values are rounded.
    1 + largest(family, sizes.last).iter().map(|last| last + 2).sum::<usize>()
}

impl<'a, N: Number> Transform<'a, N> {
    /// Takes the value of every size 0, ..., last; those below first must be zero.
    pub(super) fn new(
        family: &'a StableFamily,
        sizes: Sizes,
        values: Vec<N>,
        binomials: &'a [Vec<N>],
    ) -> Self {
        let last = largest(family, sizes.last);
        let mut lengths = vec![1; last.len() + 1];
        for axis in (0..last.len()).rev() {
            // The array over all axes is never made.
            lengths[axis] = if axis == 0 { 0 } else { lengths[axis + 1] * (last[axis] + 1) };
        }
        let reaches = (0..last.len()).map(|axis| last[axis..].iter().sum()).collect();
        Self { family, sizes, last, lengths, reaches, values, binomials }
    }

    /// The sums, in lexicographic order of the vectors by axis.
    ///
    /// # Errors
    /// [`Error::Canceled`].
    pub(super) fn sums(&self, control: &Control) -> Result<Vec<N>> {
        let axes = self.last.len();
        let first_coordinates = self.coordinates(0, self.family.deletions());
        control.set_total(first_coordinates.clone().count());
        let sums: Vec<Vec<N>> = first_coordinates
            .into_par_iter()
            .map(|t| {
                let mut arrays: Vec<Vec<N>> =
                    self.lengths[1..axes].iter().map(|&length| vec![N::ZERO; length]).collect();
                let mut sums = Vec::new();
                let remaining = self.family.deletions() - t;
                if let Some((first, arrays)) = arrays.split_first_mut() {
                    self.start(t, remaining, first, control)?;
                    self.descend(1, remaining, first, arrays, &mut sums, control)?;
                }
                control.advance(1)?;
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        Ok(sums.into_iter().flatten().collect())
    }

    /// The values that coordinate t of an axis can take when `remaining` deletions are left.
    fn coordinates(&self, axis: usize, remaining: usize) -> RangeInclusive<usize> {
        let counts = self.family.counts();
        let capacity: usize = counts[axis + 1..].iter().sum();
        remaining.saturating_sub(capacity)..=counts[axis].min(remaining)
    }

    /// Sums over the first coordinate of s, from the heights.
    fn start(&self, t: usize, remaining: usize, sums: &mut [N], control: &Control) -> Result<()> {
        let Sizes { first, last } = self.sizes;
        let highest = self.last.len() - 1;
        let strides = self.family.strides();
        for s in 0..=t.min(self.last[0]) {
            let room = remaining.min(last - s);
            let mut prefixes = Prefixes::new(&self.last[1..highest], &strides[1..], room);
            for walked in 0.. {
                if walked % CHECK_EVERY == 0 {
                    control.check()?;
                }
                let size = s + prefixes.size;
                let height = self.family.height(s * strides[0] + prefixes.cell);
                let from = height.max(first.saturating_sub(size));
                let to = self.last[highest].min(room - prefixes.size);
                if from <= to {
                    let row: usize = prefixes
                        .coordinates
                        .iter()
                        .zip(&self.lengths[2..])
                        .map(|(s, length)| s * length)
                        .sum();
                    let terms = &self.values[size + from..=size + to];
                    N::add_scaled(&mut sums[row + from..=row + to], &self.binomials[t][s], terms);
                }
                if prefixes.advance().is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sums over the coordinates of s from this axis on, for all vectors that begin as chosen.
    fn descend(
        &self,
        axis: usize,
        remaining: usize,
        array: &[N],
        arrays: &mut [Vec<N>],
        sums: &mut Vec<N>,
        control: &Control,
    ) -> Result<()> {
        let Some((next, arrays)) = arrays.split_first_mut() else {
            let row = &self.binomials[remaining];
            let length = row.len().min(array.len());
            sums.push(N::dot(&row[..length], &array[..length]));
            return Ok(());
        };
        for t in self.coordinates(axis, remaining) {
            let room = remaining - t;
            // The term of s = 0, of factor 1, is the one that reaches furthest: what lies beyond is never read.
            self.blocks(axis + 1, room.min(self.sizes.last), 0, &mut |block| {
                next[block.clone()].clone_from_slice(&array[block]);
            });
            for (s, rest) in array.chunks_exact(self.lengths[axis + 1]).take(t + 1).enumerate().skip(1) {
                control.check()?;
                let factor = &self.binomials[t][s];
                self.blocks(axis + 1, room.min(self.sizes.last - s), 0, &mut |block| {
                    N::add_scaled(&mut next[block.clone()], factor, &rest[block]);
                });
            }
            self.descend(axis + 1, room, next, arrays, sums, control)?;
        }
        Ok(())
    }

    /// Visits the blocks of an array over this and the later axes that hold its coordinates of sum at most `room`.
    fn blocks(&self, axis: usize, room: usize, start: usize, visit: &mut impl FnMut(Range<usize>)) {
        if axis + 1 == self.last.len() {
            visit(start..start + self.last[axis].min(room) + 1);
        } else if room >= self.reaches[axis] {
            visit(start..start + self.lengths[axis]);
        } else {
            for s in 0..=self.last[axis].min(room) {
                self.blocks(axis + 1, room - s, start + s * self.lengths[axis + 1], visit);
            }
        }
    }
}
