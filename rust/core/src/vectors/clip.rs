//! Sums of vectors clipped to a ball, in integers: replacing one user moves the sum by at most 2R in Euclidean norm.

use super::{
    MOST_STEPS, UserVectors, check_length, check_point, fold, inverse_grid, merge_sums,
    norm::{clamped, integer, squared_distance},
};
use crate::{
    Error, Result,
    control::Control,
    simd::{Kernel, dispatch::dispatched},
};

/// A ball around a public center, and a grid in it.
#[derive(Debug, Clone)]
pub struct Ball<'a> {
    center: &'a [f64],
    inverse_grid: f64,
    /// R, in steps of the grid.
    steps: i32,
    /// R times the grid.
    radius: f64,
    /// A vector whose computed squared distance is at most this is inside, without a look at its integers.
    inside: f64,
}

/// The most coordinates for which [`Ball::inside`] is right.
const MOST_COORDINATES: usize = 1 << 26;
/// 1 - 2^-20.
const NEARLY_ONE: f64 = 1.0 - 1.0 / 1_048_576.0;

impl<'a> Ball<'a> {
    /// Of the radius R = floor(radius / grid) in steps of the grid, a power of two.
    ///
    /// # Errors
    /// Unless 1 <= R < 2^31; for a center of another length.
    pub fn new(center: &'a [f64], radius: f64, grid: f64) -> Result<Self> {
        check_point("center", center, center.len())?;
        let inverse_grid = inverse_grid(grid)?;
        // Exact but for the floor, as the grid is a power of two.
        let steps = (check_length("radius", radius)? * inverse_grid).floor();
        if !(1.0..=f64::from(i32::MAX)).contains(&steps) {
            let message =
                format!("{radius} is {steps} steps of the grid, {grid}; from 1 to 2^31 - 1 are accepted");
            return Err(Error::invalid("radius", message));
        }
        let radius = steps * grid;
        // With z the float x - c, the integers of a vector that is not shrunk are trunc(z / grid), as multiplying by a
        // power of two is exact: their squares sum to at most sum z^2 / grid^2. The computed sum of d squares has a
        // relative error below (d / 32 + 40) 2^-53 < 2^-30, and squares that underflow lose at most d 2^-1074, which
        // is nothing beside radius^2 >= 2^-800: both are within the 2^-20 that is left out here.
        let inside = if center.len() <= MOST_COORDINATES { radius * radius * NEARLY_ONE } else { -1.0 };
        #[allow(clippy::cast_possible_truncation)]
        Ok(Self { center, inverse_grid, steps: steps as i32, radius, inside })
    }

    /// Whether a vector of this computed squared distance is certainly inside: its integers, not shrunk, have norm at
    /// most R. False says nothing.
    pub(super) fn has_inside(&self, distance: f64) -> bool {
        distance <= self.inside
    }

    /// The squared distance of a vector from the center, as a float.
    pub(super) fn distance(&self, kernel: Kernel, vector: &[f64]) -> f64 {
        squared_distance(kernel, vector, Some(self.center))
    }

    /// Adds the integers of a vector whose squared distance from the center is known; `integers` is memory.
    fn add_from(
        &self,
        kernel: Kernel,
        vector: &[f64],
        distance: f64,
        integers: &mut [i32],
        sums: &mut [i64],
    ) {
        if self.has_inside(distance) {
            return add_truncated(kernel, sums, vector, self.center, self.inverse_grid);
        }
        self.clip_from(kernel, vector, distance, integers);
        add(kernel, sums, integers);
    }

    /// R.
    pub fn steps(&self) -> i32 {
        self.steps
    }

    /// The integers of one vector: steps of the grid from the center, truncated toward 0, of norm at most R. Returns the
    /// sum of their squares.
    pub fn clip(&self, kernel: Kernel, vector: &[f64], out: &mut [i32]) -> u128 {
        self.clip_from(kernel, vector, self.distance(kernel, vector), out)
    }

    /// The same for a vector whose squared distance from the center is known.
    pub(super) fn clip_from(&self, kernel: Kernel, vector: &[f64], distance: f64, out: &mut [i32]) -> u128 {
        let norm = distance.sqrt();
        let shrink = if norm > self.radius { self.radius / norm } else { 1.0 };
        let mut squared = truncate(kernel, vector, self.center, shrink * self.inverse_grid, self.steps, out);
        // Floating-point arithmetic may have left a little too much: the integers decide.
        let most = u128::from(self.steps.unsigned_abs()).pow(2);
        while squared > most {
            squared = step_toward_zero(out);
        }
        squared
    }
}

/// Moves every integer that is not 0 by one step; the sum of their squares after that.
pub(super) fn step_toward_zero(integers: &mut [i32]) -> u128 {
    let mut squared = 0;
    for y in integers {
        *y -= y.signum();
        squared += u128::from(y.unsigned_abs()).pow(2);
    }
    squared
}

#[inline(always)]
#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
fn truncate_body(vector: &[f64], center: &[f64], factor: f64, most: i32, out: &mut [i32]) -> u128 {
    let end = f64::from(most);
    for ((y, x), c) in out.iter_mut().zip(vector).zip(center) {
        *y = (integer(clamped((x - c) * factor, -end, end).trunc()) as i32).max(-most).min(most);
    }
    // Squares are at most 2^62: the sums of their halves of 32 bits cannot wrap.
    let (mut low, mut high) = (0_u64, 0_u64);
    for &y in &*out {
        let square = i64::from(y).wrapping_mul(i64::from(y)).cast_unsigned();
        low = low.wrapping_add(square & 0xFFFF_FFFF);
        high = high.wrapping_add(square >> 32);
    }
    u128::from(low) + (u128::from(high) << 32)
}

dispatched! {
    /// Truncates `(x - c) * factor` to integers of at most `most`; the sum of their squares.
    pub(super) fn truncate(vector: &[f64], center: &[f64], factor: f64, most: i32, out: &mut [i32]) -> u128
        = truncate_body(vector, center, factor, most, out),
          truncate_body(vector, center, factor, most, out),
          truncate_body(vector, center, factor, most, out);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_body(sums: &mut [i64], integers: &[i32]) {
    for (sum, &y) in sums.iter_mut().zip(integers) {
        *sum = sum.wrapping_add(i64::from(y));
    }
}

dispatched! {
    /// Adds integers to sums that are known not to wrap.
    fn add(sums: &mut [i64], integers: &[i32])
        = add_body(sums, integers),
          add_body(sums, integers),
          add_body(sums, integers);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_truncated_body(sums: &mut [i64], vector: &[f64], center: &[f64], factor: f64) {
    for ((sum, x), c) in sums.iter_mut().zip(vector).zip(center) {
        *sum = sum.wrapping_add(integer(((x - c) * factor).trunc()));
    }
}

dispatched! {
    /// Adds `(x - c) * factor`, truncated to integers that are known to be below 2^31.
    fn add_truncated(sums: &mut [i64], vector: &[f64], center: &[f64], factor: f64)
        = add_truncated_body(sums, vector, center, factor),
          add_truncated_body(sums, vector, center, factor),
          add_truncated_body(sums, vector, center, factor);
}

/// The sum over users of `trunc((x - center) s / grid)`, s <= 1 the factor that takes x - center into the ball, and 0
/// for users without rows. Every user's integers have norm at most R = floor(radius / grid), checked in
/// integers but where the float that decides is far enough from the end of the ball ([`Ball::new`]): replacing one user
/// moves the sum by at most 2R in Euclidean norm.
///
/// # Errors
/// For public numbers out of range ([`Ball::new`]), for a center of another dimension, [`Error::Canceled`].
pub fn clipped_sum(
    vectors: &dyn UserVectors,
    center: &[f64],
    radius: f64,
    grid: f64,
    control: &Control,
) -> Result<Vec<i64>> {
    check_point("center", center, vectors.dimension())?;
    let ball = Ball::new(center, radius, grid)?;
    let kernel = Kernel::detect();
    let dimension = vectors.dimension();
    let (sums, _) = fold(
        vectors,
        control,
        || (vec![0; dimension], vec![0; dimension]),
        |(sums, integers), vector| {
            let Some(vector) = vector else { return };
            ball.add_from(kernel, vector, ball.distance(kernel, vector), integers, sums);
        },
        |(sums, _), (others, _)| merge_sums(sums, &others),
    )?;
    Ok(sums)
}

/// [`clipped_sum`], and the sum over users of the squared distance from the center, cut at (2R)^2 steps of the grid:
/// `floor(min(|x - center|^2 / (2R grid)^2, 1) squares)`, 0 for users without rows. Replacing one user moves the first
/// by at most 2R in Euclidean norm and the second by at most `squares`.
///
/// # Errors
/// Those of [`clipped_sum`], and unless 1 <= squares < 2^31.
pub fn clipped_moments(
    vectors: &dyn UserVectors,
    center: &[f64],
    radius: f64,
    grid: f64,
    squares: u32,
    control: &Control,
) -> Result<(Vec<i64>, i64)> {
    check_point("center", center, vectors.dimension())?;
    let ball = Ball::new(center, radius, grid)?;
    if !(1..=MOST_STEPS).contains(&squares) {
        let message = format!("{squares} is out of range; 1 to {MOST_STEPS} are accepted");
        return Err(Error::invalid("squares", message));
    }
    let (most, end) = (i64::from(squares), f64::from(squares));
    // An ordinary float, as lengths are from 2^-400 to 2^400; a quotient that overflows is infinite and is clamped.
    let largest = (2.0 * ball.radius).powi(2);
    let kernel = Kernel::detect();
    let dimension = vectors.dimension();
    let (sums, second, _) = fold(
        vectors,
        control,
        || (vec![0; dimension], 0, vec![0; dimension]),
        |(sums, second, integers), vector| {
            let Some(vector) = vector else { return };
            let distance = ball.distance(kernel, vector);
            ball.add_from(kernel, vector, distance, integers, sums);
            let part = clamped(distance / largest * end, 0.0, end);
            // The clamp of integers decides what is added, whatever came before.
            *second += integer(part.floor()).max(0).min(most);
        },
        |(sums, second, _), (others, other, _)| {
            merge_sums(sums, &others);
            *second += other;
        },
    )?;
    Ok((sums, second))
}
