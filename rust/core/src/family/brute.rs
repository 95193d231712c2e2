//! All pairs of two lists of rows through register tiles.

use super::{problem::Problem, work::Side};
use crate::{
    Result,
    simd::tiles::{Hits, LEFT, Panels, RIGHT, block_f64, block_u32},
};
use rayon::prelude::*;

/// Rows of each side per unit of work, at most and at least.
const BLOCK: usize = 1024;
const SMALL_BLOCK: usize = 64;

/// Masses of each side per unit of work: both packed halves stay in the second-level cache, and a unit ends soon.
const BLOCK_MASSES: usize = 1 << 16;

/// Right panels against which one left panel runs before the next: 64 KiB of fixed point at 64 outputs.
const PANELS: usize = 8;

/// Units of fixed point in 1.
const UNITS: f64 = 2_147_483_648.0;

/// A block with more hits than this share of its pairs is not worth the detour through fixed point.
const MANY_HITS: usize = 32;

/// Offers every pair of x and y that may matter.
///
/// # Numerics
/// Fixed point rounds every mass and every fl(h q) down by less than 2^-31: a sum of k minima is off by less than k
/// units, the sum of p by as much in the other direction, so that the difference is within k units of the tile's
/// number in floats. It serves to find the few pairs that floats then evaluate, where the floor is above both errors.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub(super) fn all_pairs(problem: &Problem<'_>, x: &Side<'_>, y: &Side<'_>, width: usize) -> Result<()> {
    let size = (BLOCK_MASSES / width).clamp(SMALL_BLOCK, BLOCK);
    let starts: Vec<(usize, usize)> =
        (0..x.len()).step_by(size).flat_map(|i| (0..y.len()).step_by(size).map(move |j| (i, j))).collect();
    let part = |side: &Side<'_>, start: usize| Side {
        ids: side.ids[start..side.len().min(start + size)].to_vec().into(),
        rows: side.rows[start * width..side.len().min(start + size) * width].to_vec().into(),
    };
    if let [_] = starts[..] {
        return block(problem, x, y, width);
    }
    starts.into_par_iter().try_for_each(|(i, j)| block(problem, &part(x, i), &part(y, j), width))
}

fn block(problem: &Problem<'_>, x: &Side<'_>, y: &Side<'_>, width: usize) -> Result<()> {
    problem.control.check()?;
    if problem.stopped() || x.len() == 0 || y.len() == 0 {
        return Ok(());
    }
    problem.count(x.len() * y.len());
    let error = (width as f64 + 2.0) / UNITS;
    // Thresholds of unsigned numbers must not come out negative.
    let coarse = problem.floor() - problem.numerics.radius > 8.0 * error && x.len() * y.len() > 1 << 10;
    if coarse && in_fixed_point(problem, x, y, width, error)? {
        return Ok(());
    }
    in_floats(problem, x, y, width)
}

fn in_floats(problem: &Problem<'_>, x: &Side<'_>, y: &Side<'_>, width: usize) -> Result<()> {
    let multiplier = problem.numerics.multiplier;
    let radius = problem.numerics.radius;
    let left = Panels::<f64, LEFT>::pack(x.len(), width, 0.0, |row, output| x.rows[row * width + output]);
    let right = Panels::<f64, RIGHT>::pack(y.len(), width, f64::INFINITY, |row, output| {
        multiplier * y.rows[row * width + output]
    });
    let totals: Vec<f64> = x.rows.chunks_exact(width).map(|row| row.iter().sum()).collect();
    let mut found = Vec::new();
    for first in (0..right.len()).step_by(PANELS) {
        let mut hits = Hits {
            threshold: problem.floor() - radius,
            found: &mut found,
            band: (!problem.is_verdict()).then_some(2.0 * radius),
        };
        let panels = first..right.len().min(first + PANELS);
        block_f64(problem.kernel, (&left, 0..left.len()), &totals, (&right, panels), &mut hits);
        for hit in found.drain(..) {
            problem.offer(hit.value, (x.ids[hit.left as usize], y.ids[hit.right as usize]))?;
        }
        if problem.stopped() {
            break;
        }
    }
    Ok(())
}

/// False when fixed point leaves too many pairs open.
fn in_fixed_point(
    problem: &Problem<'_>,
    x: &Side<'_>,
    y: &Side<'_>,
    width: usize,
    error: f64,
) -> Result<bool> {
    // Products are floored, and saturate: larger than every mass is as good as largest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let fixed = |mass: f64| (mass * UNITS) as u32;
    let scaled = problem.numerics.multiplier * UNITS;
    let left =
        Panels::<u32, LEFT>::pack(x.len(), width, 0, |row, output| fixed(x.rows[row * width + output]));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let right = Panels::<u32, RIGHT>::pack(y.len(), width, u32::MAX, |row, output| {
        (scaled * y.rows[row * width + output]) as u32
    });
    let totals: Vec<u32> = x
        .rows
        .chunks_exact(width)
        .map(|row| row.iter().map(|&mass| fixed(mass)).fold(0, u32::wrapping_add))
        .collect();
    let mut found = Vec::new();
    for first in (0..right.len()).step_by(PANELS) {
        let panels = first..right.len().min(first + PANELS);
        let pairs = x.len() * panels.len() * RIGHT;
        let mut hits = Hits {
            threshold: fixed(problem.floor() - problem.numerics.radius - error),
            found: &mut found,
            band: (!problem.is_verdict())
                .then(|| fixed(2.0 * (error + problem.numerics.radius)).saturating_add(2)),
        };
        block_u32(problem.kernel, (&left, 0..left.len()), &totals, (&right, panels), &mut hits);
        let threshold = hits.threshold;
        found.retain(|hit| hit.value > threshold);
        if found.len() > pairs / MANY_HITS + 64 {
            return Ok(false);
        }
        for hit in found.drain(..) {
            let (i, j) = (hit.left as usize, hit.right as usize);
            let value = pair_value(
                &x.rows[i * width..][..width],
                &y.rows[j * width..][..width],
                problem.numerics.multiplier,
            );
            problem.offer(value, (x.ids[i], y.ids[j]))?;
        }
        if problem.stopped() {
            break;
        }
    }
    Ok(true)
}

/// The number that a float tile gives for one pair.
pub(super) fn pair_value(p: &[f64], q: &[f64], multiplier: f64) -> f64 {
    let (mut total, mut minima) = (0.0, 0.0);
    for (&mass, &other) in p.iter().zip(q) {
        let scaled = multiplier * other;
        total += mass;
        minima += if mass < scaled { mass } else { scaled };
    }
    total - minima
}
