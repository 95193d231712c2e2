//! How many users are in each bin of a coordinate.
//!
//! The bins divide -bound..=bound evenly; what is outside is in the first or the last. Replacing one user takes one out
//! of a bin and puts one into another, in each coordinate. Users without rows are in none.

use super::{UserVectors, check_length, fold};
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
    bins: u64,
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
        Ok(Self { bins, bound, per_unit })
    }

    /// The bin of a number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn of(self, x: f64) -> u64 {
        // The cast truncates, takes NaN and what is negative to 0, and saturates.
        (((x + self.bound) * self.per_unit) as u64).min(self.bins - 1)
    }
}

#[inline(always)]
#[allow(clippy::inline_always, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn places_body(vector: &[f64], bound: f64, per_unit: f64, last: u32, out: &mut [u32]) {
    for (place, x) in out.iter_mut().zip(vector) {
        // As `Bins::of`: there are too few bins for the shorter integers to make a difference.
        *place = (((x + bound) * per_unit) as u32).min(last);
    }
}

dispatched! {
    /// The bins of all coordinates.
    fn places(vector: &[f64], bound: f64, per_unit: f64, last: u32, out: &mut [u32])
        = places_body(vector, bound, per_unit, last, out),
          places_body(vector, bound, per_unit, last, out),
          places_body(vector, bound, per_unit, last, out);
}

/// The number of users in each bin of each coordinate, coordinate after coordinate.
///
/// # Errors
/// [`Error::TooLarge`] for more than [`MOST_COUNTS`] counts, for public numbers out of range, [`Error::Cancelled`].
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
    let (counts, _) = fold(
        vectors,
        control,
        || (vec![0_u32; counts], vec![0_u32; dimension]),
        |(counts, bins), vector| {
            let Some(vector) = vector else { return };
            places(kernel, vector, shape.bound, shape.per_unit, last, bins);
            for (counts, &bin) in counts.chunks_exact_mut(width).zip(&*bins) {
                counts[bin as usize] += 1;
            }
        },
        |(counts, _), (others, _)| counts.iter_mut().zip(others).for_each(|(count, other)| *count += other),
    )?;
    Ok(counts)
}

/// The bins of one coordinate with users in them, in increasing order, and how many are in each.
pub type Occupied = (Vec<u64>, Vec<u32>);

/// The bins with users in them, for each of some coordinates: 8 bytes for each user and each of these coordinates.
///
/// # Errors
/// For coordinates that are not there, for public numbers out of range, [`Error::Cancelled`].
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
