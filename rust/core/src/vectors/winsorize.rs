//! Sums of coordinates clamped to an interval, in integers: replacing one user moves each by at most the steps of it.
//!
//! Paper: [LSAKKMS21, Algorithm 1].

use super::{
    MOST_STEPS, UserVectors, check_point, fold, inverse_grid, merge_sums,
    norm::{clamped, integer},
};
use crate::{
    Error, Result,
    control::Control,
    simd::{Kernel, dispatch::dispatched},
};

#[inline(always)]
#[allow(clippy::inline_always)]
fn winsorize_body(vector: &[f64], low: &[f64], inverse_grid: f64, steps: i32, sums: &mut [i64]) {
    let most = f64::from(steps);
    for ((sum, x), low) in sums.iter_mut().zip(vector).zip(low) {
        let place = clamped((x - low) * inverse_grid + 0.5, 0.0, most);
        // The clamp of integers decides what is added, whatever came before.
        *sum = sum.wrapping_add(integer(place.floor()).max(0).min(i64::from(steps)));
    }
}

dispatched! {
    /// Adds `floor((x - low) / grid + 1/2)`, clamped to `0..=steps`, to every sum.
    fn winsorize(vector: &[f64], low: &[f64], inverse_grid: f64, steps: i32, sums: &mut [i64])
        = winsorize_body(vector, low, inverse_grid, steps, sums),
          winsorize_body(vector, low, inverse_grid, steps, sums),
          winsorize_body(vector, low, inverse_grid, steps, sums);
}

/// The sums over users of `floor((x_j - low_j) / grid + 1/2)`, clamped to `0..=steps`, and `steps / 2` (rounded down)
/// for users without rows: replacing one user moves each sum by at most `steps`.
///
/// # Errors
/// For public numbers out of range, [`Error::Canceled`].
pub fn winsorized_sum(
    vectors: &dyn UserVectors,
    low: &[f64],
    steps: u64,
    grid: f64,
    control: &Control,
) -> Result<Vec<i64>> {
    check_point("low", low, vectors.dimension())?;
    let inverse_grid = inverse_grid(grid)?;
    let steps = match i32::try_from(steps) {
        Ok(steps) if steps > 0 => steps,
        _ => {
            return Err(Error::invalid(
                "steps",
                format!("{steps} is out of range; 1 to {MOST_STEPS} are accepted"),
            ));
        }
    };
    let kernel = Kernel::detect();
    fold(
        vectors,
        control,
        || vec![0; low.len()],
        |sums, vector| match vector {
            Some(vector) => winsorize(kernel, vector, low, inverse_grid, steps, sums),
            None => sums.iter_mut().for_each(|sum| *sum += i64::from(steps / 2)),
        },
        |sums, others| merge_sums(sums, &others),
    )
}
