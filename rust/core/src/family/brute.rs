//! All pairs of two lists of rows through register tiles.

use super::{problem::Problem, work::Side};
use crate::{
    Result,
    simd::tiles::{Hits, LEFT, Panels, RIGHT, block_f64, block_u32},
};
use rayon::prelude::*;
use std::ops::Range;

/// Masses of the left rows of a unit of work, and of the right rows that they meet at a time: both stay in the caches,
/// and a unit ends soon.
const LEFT_MASSES: usize = 1 << 16;
const RIGHT_MASSES: usize = 1 << 14;

/// Rows of a unit at most.
const LEFT_ROWS: usize = 1024;
const RIGHT_ROWS: usize = 256;

/// Units of fixed point in 1.
const UNITS: f64 = 2_147_483_648.0;

/// Pairs that are not worth the detour through fixed point.
const FEW_PAIRS: usize = 1 << 10;

/// Nor is a block with more hits than one in so many pairs.
const MANY_HITS: usize = 32;

/// Offers every pair of x and y that may matter.
///
/// # Numerics
/// Fixed point rounds every mass and every fl(h q) down by less than 2^-31: a sum of k minima is off by less than k
/// units, the sum of p by as much in the other direction, so that the difference is within k units of the tile's
/// number in floats. It serves to find the few pairs that floats then evaluate, where the floor is above both errors.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub(super) fn all_pairs(problem: &Problem<'_>, x: &Side<'_>, y: &Side<'_>, width: usize) -> Result<()> {
    let error = (width as f64 + 2.0) / UNITS;
    // Thresholds of unsigned numbers must not come out negative.
    if problem.floor() - problem.numerics.radius > 8.0 * error && x.len() * y.len() > FEW_PAIRS {
        return in_fixed_point(problem, x, y, width, error);
    }
    let size = left_panels(width) * LEFT;
    let starts: Vec<(usize, usize)> =
        (0..x.len()).step_by(size).flat_map(|i| (0..y.len()).step_by(size).map(move |j| (i, j))).collect();
    starts.into_par_iter().try_for_each(|(i, j)| {
        let (x, y) = (part(x, i..i + size, width), part(y, j..j + size, width));
        problem.count(x.len() * y.len());
        in_floats(problem, &x, &y, width)
    })
}

/// Left panels per unit of work.
fn left_panels(width: usize) -> usize {
    (LEFT_MASSES / width).clamp(LEFT, LEFT_ROWS) / LEFT
}

/// Right panels that they meet at a time.
fn right_panels(width: usize) -> usize {
    (RIGHT_MASSES / width).clamp(RIGHT, RIGHT_ROWS) / RIGHT
}

/// The number of rows in some panels, without padding.
fn rows_in(panels: &Range<usize>, width: usize, rows: usize) -> usize {
    rows.min(panels.end * width) - panels.start * width
}

/// The rows in a range, as far as there are.
fn part(side: &Side<'_>, range: Range<usize>, width: usize) -> Side<'static> {
    let range = range.start..range.end.min(side.len());
    Side {
        ids: side.ids[range.clone()].to_vec().into(),
        rows: side.rows[range.start * width..range.end * width].to_vec().into(),
    }
}

/// Pairs are found in fixed point, and evaluated in floats.
fn in_fixed_point(problem: &Problem<'_>, x: &Side<'_>, y: &Side<'_>, width: usize, error: f64) -> Result<()> {
    let multiplier = problem.numerics.multiplier;
    // Floored, and saturated: a number larger than every mass is as good as the largest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let fixed = |mass: f64| (mass * UNITS) as u32;
    let left =
        Panels::<u32, LEFT>::pack(x.len(), width, 0, |row, output| fixed(x.rows[row * width + output]));
    let right = Panels::<u32, RIGHT>::pack(y.len(), width, u32::MAX, |row, output| {
        fixed(multiplier * y.rows[row * width + output])
    });
    let totals: Vec<u32> = x
        .rows
        .chunks_exact(width)
        .map(|row| row.iter().map(|&mass| fixed(mass)).fold(0, u32::wrapping_add))
        .collect();
    let band =
        (!problem.is_verdict()).then(|| fixed(2.0 * (error + problem.numerics.radius)).saturating_add(2));
    let (many, some) = (left_panels(width), right_panels(width));
    (0..left.len()).into_par_iter().step_by(many).try_for_each(|first_left| {
        let mut found = Vec::new();
        let lefts = first_left..left.len().min(first_left + many);
        for first_right in (0..right.len()).step_by(some) {
            problem.control.check()?;
            if problem.stopped() {
                break;
            }
            let rights = first_right..right.len().min(first_right + some);
            let pairs = rows_in(&lefts, LEFT, x.len()) * rows_in(&rights, RIGHT, y.len());
            problem.count(pairs);
            let threshold = fixed(problem.floor() - problem.numerics.radius - error);
            let mut hits = Hits { threshold, found: &mut found, band };
            block_u32(problem.kernel, (&left, lefts.clone()), &totals, (&right, rights.clone()), &mut hits);
            let threshold = hits.threshold;
            found.retain(|hit| hit.value > threshold);
            if found.len() > pairs / MANY_HITS + 64 {
                found.clear();
                let x = part(x, lefts.start * LEFT..lefts.end * LEFT, width);
                let y = part(y, rights.start * RIGHT..rights.end * RIGHT, width);
                in_floats(problem, &x, &y, width)?;
                continue;
            }
            for hit in found.drain(..) {
                let (i, j) = (hit.left as usize, hit.right as usize);
                let (p, q) = (&x.rows[i * width..][..width], &y.rows[j * width..][..width]);
                problem.offer(pair_value(p, q, multiplier), (x.ids[i], y.ids[j]))?;
            }
        }
        Ok(())
    })
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
    let some = right_panels(width);
    for first in (0..right.len()).step_by(some) {
        let mut hits = Hits {
            threshold: problem.floor() - radius,
            found: &mut found,
            band: (!problem.is_verdict()).then_some(2.0 * radius),
        };
        let panels = first..right.len().min(first + some);
        block_f64(problem.kernel, (&left, 0..left.len()), &totals, (&right, panels), &mut hits);
        for hit in found.drain(..) {
            problem.offer(hit.value, (x.ids[hit.left as usize], y.ids[hit.right as usize]))?;
        }
        problem.control.check()?;
        if problem.stopped() {
            break;
        }
    }
    Ok(())
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
