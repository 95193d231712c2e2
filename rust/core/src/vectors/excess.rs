//! What clipping to a ball leaves out, in integers: each part of it moves by at most R for one replaced user, or 2R.

use super::{UserVectors, check_point, clip::Ball, fold, merge_sums};
use crate::{Error, Result, control::Control, simd::Kernel};

/// The most distances at which users are counted: the last is below 2^62 steps.
pub const MOST_RUNGS: usize = 30;

/// Sums over users of what is beyond a ball of R steps around a center, all cut at R for each user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// The vectors beyond the ball, those longer than R cut: a user's has a Euclidean norm of at most R.
    pub pull: Vec<i64>,
    /// For i = 1, 2, ..: how far beyond 2^i R users are, over 2^i, at most R each.
    pub beyond: Vec<i64>,
}

/// Sums over users of what is beyond the ball of R = floor(radius / grid) steps.
///
/// A user's vector is y, truncated to the grid and taken into the ball of `floor(reach / grid)` steps as by
/// [`Ball::clip`]; q is its norm in steps, rounded up. With s = min(max(q - R, 0), R), `pull` has y s / q, truncated, and
/// `beyond[i - 1]` has min(max(q - 2^i R, 0), 2^i R) over 2^i, rounded down. Users without rows have zeros. Replacing
/// one user moves `pull` by at most 2R in Euclidean norm, as q is at least the norm of y, and each of `beyond` by at most
/// R.
///
/// # Errors
/// For public numbers out of range ([`Ball::new`]), for more than [`MOST_RUNGS`], [`Error::Canceled`].
pub fn clipping_excess(
    vectors: &dyn UserVectors,
    center: &[f64],
    radius: f64,
    reach: f64,
    grid: f64,
    rungs: usize,
    control: &Control,
) -> Result<Excess> {
    check_point("center", center, vectors.dimension())?;
    if rungs > MOST_RUNGS {
        let message = format!("{rungs} is out of range; 0 to {MOST_RUNGS} are accepted");
        return Err(Error::invalid("rungs", message));
    }
    let ball = Ball::new(center, radius, grid)?;
    let inner = u64::from(ball.steps().unsigned_abs());
    let outer = Ball::new(center, reach, grid)?;
    let kernel = Kernel::detect();
    let dimension = vectors.dimension();
    let (sums, _) = fold(
        vectors,
        control,
        || (Excess { pull: vec![0; dimension], beyond: vec![0; rungs] }, vec![0; dimension]),
        |(sums, integers), vector| {
            let Some(vector) = vector else { return };
            let distance = outer.distance(kernel, vector);
            // Its integers, which being taken into a ball only makes smaller, have norm at most R.
            if ball.has_inside(distance) {
                return;
            }
            let norm = norm_above(outer.clip_from(kernel, vector, distance, integers));
            if norm <= inner {
                return;
            }
            let share = (norm - inner).min(inner).cast_signed();
            for (sum, &y) in sums.pull.iter_mut().zip(&*integers) {
                // Below 2^62; truncated toward 0, so that no coordinate grows.
                *sum += i64::from(y) * share / norm.cast_signed();
            }
            for (rung, sum) in (1_u32..).zip(&mut sums.beyond) {
                let end = inner << rung;
                *sum += (norm.saturating_sub(end).min(end) >> rung).cast_signed();
            }
        },
        |(sums, _), (others, _)| {
            merge_sums(&mut sums.pull, &others.pull);
            merge_sums(&mut sums.beyond, &others.beyond);
        },
    )?;
    Ok(sums)
}

/// The root of a sum of squares of at most 2^62, rounded up.
fn norm_above(squared: u128) -> u64 {
    let squared = u64::try_from(squared).unwrap_or(u64::MAX);
    let root = squared.isqrt();
    root + u64::from(root * root < squared)
}
