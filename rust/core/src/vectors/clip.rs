//! Sums of vectors clipped to a ball, in integers: replacing one user moves the sum by at most 2R in Euclidean norm.

use super::{
    UserVectors, check_length, check_point, fold, inverse_grid, merge_sums,
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
}

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
        #[allow(clippy::cast_possible_truncation)]
        Ok(Self { center, inverse_grid, steps: steps as i32, radius: steps * grid })
    }

    /// R.
    pub fn steps(&self) -> i32 {
        self.steps
    }

    /// The integers of one vector: steps of the grid from the center, truncated toward 0, of norm at most R.
    pub fn clip(&self, kernel: Kernel, vector: &[f64], out: &mut [i32]) {
        let norm = squared_distance(kernel, vector, Some(self.center)).sqrt();
        let shrink = if norm > self.radius { self.radius / norm } else { 1.0 };
        let mut squared = truncate(kernel, vector, self.center, shrink * self.inverse_grid, self.steps, out);
        // Floating-point arithmetic may have left a little too much: the integers decide.
        let most = u128::from(self.steps.unsigned_abs()).pow(2);
        while squared > most {
            squared = step_toward_zero(out);
        }
    }
}

fn step_toward_zero(integers: &mut [i32]) -> u128 {
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
    fn truncate(vector: &[f64], center: &[f64], factor: f64, most: i32, out: &mut [i32]) -> u128
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

/// The sum over users of `trunc((x - center) s / grid)`, s <= 1 the factor that takes x - center into the ball, and 0
/// for users without rows. Every user's integers have norm at most R = floor(radius / grid), checked in integers:
/// replacing one user moves the sum by at most 2R in Euclidean norm.
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
            ball.clip(kernel, vector, integers);
            add(kernel, sums, integers);
        },
        |(sums, _), (others, _)| merge_sums(sums, &others),
    )?;
    Ok(sums)
}
