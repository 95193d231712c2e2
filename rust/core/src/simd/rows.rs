//! Passes over many rows of the same width, a multiple of [`LANES`].

use super::dispatch::dispatched;

/// Rows are padded with zeros to a multiple of this.
pub const LANES: usize = 8;

type Lane = [f64; LANES];

fn lanes(row: &[f64]) -> &[Lane] {
    row.as_chunks().0
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn sum(lanes: Lane) -> f64 {
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn positive(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn envelope_body(rows: &[f64], lower: &mut [f64], upper: &mut [f64], total: &mut [f64]) {
    for row in rows.chunks_exact(lower.len()) {
        for (((&mass, lower), upper), total) in row.iter().zip(&mut *lower).zip(&mut *upper).zip(&mut *total)
        {
            *lower = if mass < *lower { mass } else { *lower };
            *upper = if mass > *upper { mass } else { *upper };
            *total += mass;
        }
    }
}

dispatched! {
    /// Lowers `lower`, raises `upper` and adds to `total` column by column; any width.
    pub fn envelope(rows: &[f64], lower: &mut [f64], upper: &mut [f64], total: &mut [f64])
        = envelope_body(rows, lower, upper, total),
          envelope_body(rows, lower, upper, total),
          envelope_body(rows, lower, upper, total);
}

/// The largest and the smallest of some numbers, with the places where they are first.
#[derive(Debug, Clone, Copy)]
pub struct Extremes {
    /// The largest number.
    pub largest: f64,
    /// Its place.
    pub largest_at: usize,
    /// The smallest number.
    pub smallest: f64,
    /// Its place.
    pub smallest_at: usize,
}

impl Extremes {
    /// Of no numbers.
    pub const NONE: Self =
        Self { largest: f64::NEG_INFINITY, largest_at: 0, smallest: f64::INFINITY, smallest_at: 0 };

    /// Of two lists, the second starting at `offset`.
    #[must_use]
    pub fn merge(self, other: Self, offset: usize) -> Self {
        let mut merged = self;
        if other.largest > merged.largest {
            (merged.largest, merged.largest_at) = (other.largest, other.largest_at + offset);
        }
        if other.smallest < merged.smallest {
            (merged.smallest, merged.smallest_at) = (other.smallest, other.smallest_at + offset);
        }
        merged
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn event_extremes_body(rows: &[f64], indicator: &[f64]) -> Extremes {
    let mut extremes = Extremes::NONE;
    for (place, row) in rows.chunks_exact(indicator.len()).enumerate() {
        let mut sums = [0.0; LANES];
        for (masses, inside) in lanes(row).iter().zip(lanes(indicator)) {
            for lane in 0..LANES {
                sums[lane] += masses[lane] * inside[lane];
            }
        }
        let mass = sum(sums);
        if mass > extremes.largest {
            (extremes.largest, extremes.largest_at) = (mass, place);
        }
        if mass < extremes.smallest {
            (extremes.smallest, extremes.smallest_at) = (mass, place);
        }
    }
    extremes
}

dispatched! {
    /// The rows that give an event, stated by its indicator, the most and the least mass.
    pub fn event_extremes(rows: &[f64], indicator: &[f64]) -> Extremes
        = event_extremes_body(rows, indicator),
          event_extremes_body(rows, indicator),
          event_extremes_body(rows, indicator);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn above_body(rows: &[f64], separator: &[f64], out: &mut Vec<f64>) {
    out.extend(rows.chunks_exact(separator.len()).map(|row| {
        let mut sums = [0.0; LANES];
        for (masses, levels) in lanes(row).iter().zip(lanes(separator)) {
            for lane in 0..LANES {
                sums[lane] += positive(masses[lane] - levels[lane]);
            }
        }
        sum(sums)
    }));
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn below_body(rows: &[f64], separator: &[f64], multiplier: f64, out: &mut Vec<f64>) {
    out.extend(rows.chunks_exact(separator.len()).map(|row| {
        let mut sums = [0.0; LANES];
        for (masses, levels) in lanes(row).iter().zip(lanes(separator)) {
            for lane in 0..LANES {
                sums[lane] += positive(levels[lane] - multiplier * masses[lane]);
            }
        }
        sum(sums)
    }));
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn both_body(rows: &[f64], separator: &[f64], multiplier: f64, above: &mut Vec<f64>, below: &mut Vec<f64>) {
    for row in rows.chunks_exact(separator.len()) {
        let (mut over, mut under) = ([0.0; LANES], [0.0; LANES]);
        for (masses, levels) in lanes(row).iter().zip(lanes(separator)) {
            for lane in 0..LANES {
                over[lane] += positive(masses[lane] - levels[lane]);
                under[lane] += positive(levels[lane] - multiplier * masses[lane]);
            }
        }
        above.push(sum(over));
        below.push(sum(under));
    }
}

dispatched! {
    /// Appends `sum max(0, p - v)` for every row p.
    pub fn sums_above(rows: &[f64], separator: &[f64], out: &mut Vec<f64>)
        = above_body(rows, separator, out), above_body(rows, separator, out), above_body(rows, separator, out);
}
dispatched! {
    /// Appends `sum max(0, v - h q)` for every row q.
    pub fn sums_below(rows: &[f64], separator: &[f64], multiplier: f64, out: &mut Vec<f64>)
        = below_body(rows, separator, multiplier, out),
          below_body(rows, separator, multiplier, out),
          below_body(rows, separator, multiplier, out);
}
dispatched! {
    /// [`sums_above`] and [`sums_below`] in one pass.
    pub fn sums_above_and_below(
        rows: &[f64],
        separator: &[f64],
        multiplier: f64,
        above: &mut Vec<f64>,
        below: &mut Vec<f64>,
    )
        = both_body(rows, separator, multiplier, above, below),
          both_body(rows, separator, multiplier, above, below),
          both_body(rows, separator, multiplier, above, below);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn dots_body(rows: &[f64], weights: &[f64], out: &mut Vec<f64>) {
    out.extend(rows.chunks_exact(weights.len()).map(|row| {
        let mut sums = [0.0; LANES];
        for (masses, weights) in lanes(row).iter().zip(lanes(weights)) {
            for lane in 0..LANES {
                sums[lane] += masses[lane] * weights[lane];
            }
        }
        sum(sums)
    }));
}

dispatched! {
    /// Appends the inner product of every row with `weights`.
    pub fn inner_products(rows: &[f64], weights: &[f64], out: &mut Vec<f64>)
        = dots_body(rows, weights, out), dots_body(rows, weights, out), dots_body(rows, weights, out);
}
