//! How many users are in each bin of a coordinate.
//!
//! The bins divide -bound..=bound evenly; what is outside is in the first or the last. Replacing one user takes one out
//! of a bin and puts one into another, in each coordinate. Users without rows are in none.
//!
//! Paper: [LSAKKMS21, Algorithm 6].

use super::{
    UserVectors, check_length, fold,
    norm::{clamped, integer},
};
use crate::{
    Error, Result,
    control::Control,
    simd::{Kernel, dispatch::dispatched},
};
use rayon::prelude::*;
use std::ops::Range;

/// The most counts that are kept, by every thread.
pub const MOST_COUNTS: usize = 1 << 23;
/// The most bins.
pub const MOST_BINS: u64 = 1 << 62;

/// The bins of -bound..=bound.
#[derive(Debug, Clone, Copy)]
struct Bins {
    number: u64,
    bound: f64,
    /// Bins over 2 bound.
    per_unit: f64,
}

impl Bins {
    fn new(bins: u64, bound: f64) -> Result<Self> {
        if !(1..=MOST_BINS).contains(&bins) {
            return Err(Error::invalid("bins", format!("{bins} is out of range; 1 to 2^62 are accepted")));
        }
        let per_unit = bins as f64 / (2.0 * check_length("bound", bound)?);
        Ok(Self { number: bins, bound, per_unit })
    }

    /// The bin of a number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn of(self, x: f64) -> u64 {
        // The cast truncates, takes NaN and what is negative to 0, and saturates.
        (((x + self.bound) * self.per_unit) as u64).min(self.number - 1)
    }
}

#[inline(always)]
#[allow(clippy::inline_always, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn places_body(vector: &[f64], bound: f64, per_unit: f64, last: u32, out: &mut [u32]) {
    let end = f64::from(last);
    for (place, x) in out.iter_mut().zip(vector) {
        *place = (integer(clamped((x + bound) * per_unit, 0.0, end).floor()) as u32).min(last);
    }
}

dispatched! {
    /// The bins of all coordinates, as by [`Bins::of`].
    fn places(vector: &[f64], bound: f64, per_unit: f64, last: u32, out: &mut [u32])
        = places_body(vector, bound, per_unit, last, out),
          places_body(vector, bound, per_unit, last, out),
          places_body(vector, bound, per_unit, last, out);
}

/// The number of users in each bin of each coordinate, coordinate after coordinate.
///
/// # Errors
/// [`Error::TooLarge`] for more than [`MOST_COUNTS`] counts, for public numbers out of range, [`Error::Canceled`].
#[allow(clippy::cast_possible_truncation)]
pub fn bin_counts(vectors: &dyn UserVectors, bins: u64, bound: f64, control: &Control) -> Result<Vec<u32>> {
    let dimension = vectors.dimension();
    let shape = Bins::new(bins, bound)?;
    let counts = usize::try_from(bins).ok().and_then(|bins| bins.checked_mul(dimension));
    let Some(counts) = counts.filter(|&counts| counts <= MOST_COUNTS) else {
        return Err(Error::too_large(format!(
            "{bins} bins in {dimension} coordinates are more than {MOST_COUNTS} counts; list the occupied bins instead, \
             or take fewer"
        )));
    };
    let (kernel, last, width) = (Kernel::detect(), (bins - 1) as u32, bins as usize);
    let mut histograms = fold(
        vectors,
        control,
        || Histograms { width, counts: vec![0; counts], waiting: Vec::with_capacity(dimension * AT_ONCE) },
        |histograms, vector| {
            let Some(vector) = vector else { return };
            let start = histograms.waiting.len();
            histograms.waiting.resize(start + dimension, 0);
            places(kernel, vector, shape.bound, shape.per_unit, last, &mut histograms.waiting[start..]);
            if histograms.waiting.len() >= dimension * AT_ONCE {
                histograms.count();
            }
        },
        |histograms, mut others| {
            others.count();
            histograms.counts.iter_mut().zip(others.counts).for_each(|(count, other)| *count += other);
        },
    )?;
    histograms.count();
    Ok(histograms.counts)
}

/// Users whose bins are counted together.
const AT_ONCE: usize = 32;
/// Counts of so many coordinates' bins stay in the fastest memory.
const COUNTS_AT_ONCE: usize = 1 << 12;

/// Counts of the bins of coordinates, and the bins of users who are not counted yet.
struct Histograms {
    /// Bins in a coordinate.
    width: usize,
    counts: Vec<u32>,
    waiting: Vec<u32>,
}

impl Histograms {
    /// Counts those who wait: a few coordinates of all of them, then the next few.
    fn count(&mut self) {
        let dimension = self.counts.len() / self.width;
        let coordinates = (COUNTS_AT_ONCE / self.width).max(1);
        for (block, counts) in self.counts.chunks_mut(coordinates * self.width).enumerate() {
            for bins in self.waiting.chunks_exact(dimension) {
                for (counts, &bin) in counts.chunks_exact_mut(self.width).zip(&bins[block * coordinates..]) {
                    counts[bin as usize] += 1;
                }
            }
        }
        self.waiting.clear();
    }
}

/// The bins of one coordinate with users in them, in increasing order, and how many are in each.
pub type Occupied = (Vec<u64>, Vec<u32>);

/// The bins with users in them, for each of some coordinates: 8 bytes for each user and each of these coordinates.
///
/// # Errors
/// For coordinates that are not there, for public numbers out of range, [`Error::Canceled`].
pub fn occupied_bins(
    vectors: &dyn UserVectors,
    coordinates: Range<usize>,
    bins: u64,
    bound: f64,
    control: &Control,
) -> Result<Vec<Occupied>> {
    let shape = Bins::new(bins, bound)?;
    if coordinates.start > coordinates.end || coordinates.end > vectors.dimension() {
        let message = format!("{coordinates:?} are not all below the dimension, {}", vectors.dimension());
        return Err(Error::invalid("coordinates", message));
    }
    let listed = fold(
        vectors,
        control,
        || vec![Vec::new(); coordinates.len()],
        |listed, vector| {
            let Some(vector) = vector else { return };
            for (listed, &x) in listed.iter_mut().zip(&vector[coordinates.clone()]) {
                listed.push(shape.of(x));
            }
        },
        |listed, others| listed.iter_mut().zip(others).for_each(|(listed, other)| listed.extend(other)),
    )?;
    listed
        .into_par_iter()
        .map(|mut places: Vec<u64>| {
            control.check()?;
            places.sort_unstable();
            let (mut bins, mut counts): Occupied = (Vec::new(), Vec::new());
            for equal in places.chunk_by(|a, b| a == b) {
                bins.push(equal[0]);
                counts.push(u32::try_from(equal.len()).unwrap_or(u32::MAX));
            }
            Ok((bins, counts))
        })
        .collect()
}
