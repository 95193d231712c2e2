//! Events: for a fixed event B the best pair is the row with the most mass in B and the row with the least.
//!
//! `max over pairs of d = max over B of (max_i P_i(B) - E min_j P_j(B))`. Alternating between the best pair of an event and
//! the best event of a pair finds a strong pair quickly.

use super::{
    brute::pair_value,
    problem::Problem,
    work::{CHUNK, Side},
};
use crate::{
    Result,
    simd::rows::{Extremes, event_extremes},
};
use rayon::prelude::*;

/// Rounds of one alternation at most; each raises the divergence.
const ROUNDS: usize = 64;

/// The rows with the most and the least mass in an event.
fn extremes(problem: &Problem<'_>, rows: &[f64], indicator: &[f64]) -> Result<Extremes> {
    let width = indicator.len();
    if rows.len() <= CHUNK * width {
        problem.control.check()?;
        return Ok(event_extremes(problem.kernel, rows, indicator));
    }
    let chunks: Vec<Extremes> = rows
        .par_chunks(CHUNK * width)
        .map(|rows| {
            problem.control.check()?;
            Ok(event_extremes(problem.kernel, rows, indicator))
        })
        .collect::<Result<_>>()?;
    Ok(chunks
        .into_iter()
        .enumerate()
        .fold(Extremes::NONE, |all, (chunk, found)| all.merge(found, chunk * CHUNK)))
}

/// Offers the pair of extreme rows, in float arithmetic of the tiles; returns its divergence.
fn offer(problem: &Problem<'_>, side: &Side<'_>, width: usize, found: Extremes) -> Result<f64> {
    let (i, j) = (found.largest_at, found.smallest_at);
    let value = pair_value(
        &side.rows[i * width..][..width],
        &side.rows[j * width..][..width],
        problem.numerics.multiplier,
    );
    problem.offer(value, (side.ids[i], side.ids[j]))?;
    Ok(value)
}

/// The event where row i exceeds h times row j.
fn indicator_of(rows: &[f64], width: usize, (i, j): (usize, usize), multiplier: f64) -> Vec<f64> {
    let (p, q) = (&rows[i * width..][..width], &rows[j * width..][..width]);
    p.iter().zip(q).map(|(&p, &q)| if p > multiplier * q { 1.0 } else { 0.0 }).collect()
}

/// One alternation from an event on; returns the best divergence and its event.
fn climb(
    problem: &Problem<'_>,
    side: &Side<'_>,
    width: usize,
    start: Vec<f64>,
    rounds: usize,
) -> Result<(f64, Vec<f64>)> {
    let (mut best, mut indicator) = (0.0, start);
    for _ in 0..rounds {
        let found = extremes(problem, &side.rows, &indicator)?;
        let value = offer(problem, side, width, found)?;
        if value <= best || problem.stopped() {
            break;
        }
        best = value;
        let pair = (found.largest_at, found.smallest_at);
        indicator = indicator_of(&side.rows, width, pair, problem.numerics.multiplier);
    }
    Ok((best, indicator))
}

/// Alternates from `starts` events on a strided sample of at most `sample` rows, then on all rows from the best event.
pub(super) fn alternate(
    problem: &Problem<'_>,
    side: &Side<'_>,
    width: usize,
    outputs: usize,
    (starts, sample): (usize, usize),
) -> Result<()> {
    if side.len() == 0 {
        return Ok(());
    }
    let sampled = strided(side, width, sample);
    let mut climbed = (0..starts)
        .into_par_iter()
        .map(|start| climb(problem, &sampled, width, starting_event(start, starts, outputs, width), ROUNDS))
        .collect::<Result<Vec<_>>>()?;
    climbed.sort_by(|a, b| b.0.total_cmp(&a.0));
    if let Some((_, event)) = climbed.into_iter().next()
        && sampled.len() < side.len()
        && !problem.stopped()
    {
        climb(problem, side, width, event, 4)?;
    }
    Ok(())
}

/// Every so many rows, so that at most `limit` remain.
pub(super) fn strided<'b>(side: &Side<'b>, width: usize, limit: usize) -> Side<'b> {
    let step = side.len().div_ceil(limit);
    if step <= 1 {
        return side.clone();
    }
    let mut rows = Vec::with_capacity(side.len().div_ceil(step) * width);
    for row in side.rows.chunks_exact(width).step_by(step) {
        rows.extend_from_slice(row);
    }
    Side { ids: side.ids.iter().step_by(step).copied().collect::<Vec<u32>>().into(), rows: rows.into() }
}

/// Single outputs first, then events of a fixed pseudo-random sequence: the search is the same on every run.
fn starting_event(start: usize, starts: usize, outputs: usize, width: usize) -> Vec<f64> {
    let mut state = (start as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..width)
        .map(|output| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let inside = if start < outputs.min(starts / 2) { output == start } else { state >> 40 & 1 == 1 };
            if inside && output < outputs { 1.0 } else { 0.0 }
        })
        .collect()
}
