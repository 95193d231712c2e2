//! Rows that stand for 0, 1, 2, ...: how far apart two of them may be before they can be told apart.
//!
//! Blocks of 2^l rows hold the least and the largest float of every output. With U the largest of block X and L the least
//! of block Y, `sum (U - E L)+` bounds the divergence of every row of X from every row of Y: far from the limit whole
//! blocks are settled at once, and near it they are halved, down to pairs that are decided exactly where floats cannot.

use super::{matrix::PmfMatrix, numerics::Numerics, problem::exceeds};
use crate::{
    Error, Result,
    control::Control,
    exact::{
        Level, Rational,
        rounding::{Direction, rational_to_f64},
    },
};
use rayon::prelude::*;
use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, Ordering},
};

/// The extreme floats of every block of one size, block after block.
struct Extremes {
    lower: Vec<f64>,
    upper: Vec<f64>,
}

struct Search<'a> {
    matrix: &'a PmfMatrix<'a>,
    level: &'a Level,
    delta: &'a Rational,
    /// Floats around delta.
    below: f64,
    above: f64,
    numerics: Numerics,
    /// Blocks of 1, 2, 4, ... rows.
    blocks: Vec<Extremes>,
    failed: AtomicBool,
    control: &'a Control,
}

/// The largest t <= `cap` such that all rows i and j with |i - j| <= t are within (epsilon, delta) of each other, in both
/// directions; None when some row is not even within it of itself (at a negative epsilon).
///
/// # Errors
/// [`Error::TooLarge`] for an epsilon beyond 277; [`Error::Canceled`].
pub fn largest_shift(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    delta: &Rational,
    cap: usize,
    control: &Control,
) -> Result<Option<usize>> {
    let Some(machine) = level.machine() else {
        return Err(Error::too_large(
            "an epsilon beyond 277 is not searched for a largest shift; use a smaller one",
        ));
    };
    let cap = cap.min(matrix.rows().saturating_sub(1));
    let search = Search {
        matrix,
        level,
        delta,
        below: rational_to_f64(delta, Direction::Down),
        above: rational_to_f64(delta, Direction::Up),
        numerics: Numerics::new(machine, matrix.outputs(), matrix.relative_error()),
        blocks: blocks(matrix, cap),
        failed: AtomicBool::new(false),
        control,
    };
    if !search.all_within(&(0..=0))? {
        return Ok(None);
    }
    // Doubling, then halving: `known` holds, `bad` does not.
    let (mut known, mut step) = (0, 1);
    let mut bad = cap + 1;
    while known + 1 < bad {
        let reach = if bad > cap { cap.min(known + step) } else { known.midpoint(bad) };
        if search.all_within(&(known + 1..=reach))? {
            known = reach;
            step *= 2;
        } else {
            bad = reach;
        }
    }
    Ok(Some(known))
}

/// Blocks of at most a quarter of the largest shift: larger ones settle nothing.
fn blocks(matrix: &PmfMatrix<'_>, cap: usize) -> Vec<Extremes> {
    let k = matrix.outputs();
    let mut blocks = vec![Extremes { lower: matrix.masses().to_vec(), upper: matrix.masses().to_vec() }];
    while 4 << blocks.len() <= cap {
        let last = &blocks[blocks.len() - 1];
        let halve = |floats: &[f64], choose: fn(f64, f64) -> f64| {
            let pairs = floats.chunks(2 * k);
            pairs
                .flat_map(|pair| (0..k).map(move |o| choose(pair[o], *pair.get(k + o).unwrap_or(&pair[o]))))
                .collect()
        };
        let next = Extremes { lower: halve(&last.lower, f64::min), upper: halve(&last.upper, f64::max) };
        blocks.push(next);
    }
    blocks
}

impl Search<'_> {
    /// True when all rows whose distance is among `shifts` are within (epsilon, delta).
    fn all_within(&self, shifts: &RangeInclusive<usize>) -> Result<bool> {
        self.failed.store(false, Ordering::Relaxed);
        let largest = *shifts.end();
        let mut size = self.blocks.len() - 1;
        while size > 0 && 4 << size > largest {
            size -= 1;
        }
        let count = self.matrix.rows().div_ceil(1 << size);
        (0..count).into_par_iter().with_min_len(64).try_for_each(|x| {
            self.control.check()?;
            let first = x + (*shifts.start() >> size).saturating_sub(1);
            for y in first..count.min(x + (largest >> size) + 2) {
                self.settle(size, x, y, shifts)?;
            }
            Ok(())
        })?;
        Ok(!self.failed.load(Ordering::Relaxed))
    }

    /// Looks at the pairs with a row in block x, one in block y >= x, and a distance among `shifts`.
    fn settle(&self, size: usize, x: usize, y: usize, shifts: &RangeInclusive<usize>) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) || (y << size) >= self.matrix.rows() {
            return Ok(());
        }
        let apart = (y - x) << size;
        let spread = (1 << size) - 1;
        if apart + spread < *shifts.start() || apart.saturating_sub(spread) > *shifts.end() {
            return Ok(());
        }
        if size == 0 {
            let within = self.pair_within(x, y)? && self.pair_within(y, x)?;
            if !within {
                self.failed.store(true, Ordering::Relaxed);
            }
            return Ok(());
        }
        if self.bound(size, x, y).1 <= self.below && self.bound(size, y, x).1 <= self.below {
            return Ok(());
        }
        for (i, j) in [(2 * x, 2 * y), (2 * x, 2 * y + 1), (2 * x + 1, 2 * y), (2 * x + 1, 2 * y + 1)] {
            if i <= j {
                self.settle(size - 1, i, j, shifts)?;
            }
        }
        Ok(())
    }

    /// Floats below and above `sum (U - E L)+`, with U the largest masses of block x and L the least of block y.
    fn bound(&self, size: usize, x: usize, y: usize) -> (f64, f64) {
        let k = self.matrix.outputs();
        let upper = &self.blocks[size].upper[x * k..][..k];
        let lower = &self.blocks[size].lower[y * k..][..k];
        let (mut sum, mut total) = (0.0, 0.0);
        for (u, l) in upper.iter().zip(lower) {
            let scaled = self.numerics.multiplier * l;
            sum += (u - scaled).max(0.0);
            total += u + scaled;
        }
        let slack = self.numerics.sum_slack(total);
        ((sum - slack).next_down(), (sum + slack).next_up())
    }

    fn pair_within(&self, i: usize, j: usize) -> Result<bool> {
        let (lower, upper) = self.bound(0, i, j);
        if upper <= self.below {
            return Ok(true);
        }
        Ok(lower <= self.above && !exceeds(self.matrix, (i, j), self.level, self.delta, self.control)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::hockey_stick::is_indistinguishable;

    fn slow(matrix: &PmfMatrix<'_>, level: &Level, delta: &Rational, cap: usize) -> Option<usize> {
        let mut largest = None;
        for shift in 0..=cap.min(matrix.rows() - 1) {
            for i in 0..matrix.rows() - shift {
                let (p, q) = (matrix.pmf(i), matrix.pmf(i + shift));
                if !is_indistinguishable(&p, &q, level, delta, &Control::new()).unwrap().holds {
                    return largest;
                }
            }
            largest = Some(shift);
        }
        largest
    }

    #[test]
    fn every_shift_is_that_of_all_pairs() {
        let control = Control::new();
        let rational = |n: i64, d: i64| Rational::new(n.into(), d.into());
        let mut found = std::collections::BTreeSet::new();
        for scale in [1.0, 3.0, 7.3, 20.0, 150.0, 1e4] {
            for kind in 0..4_u32 {
                let masses: Vec<f64> = (0..150)
                    .flat_map(|row| {
                        let jump = if kind == 3 && row > 90 { 2.0 } else { 0.0 };
                        let x = (f64::from(row) - 75.0) / scale + jump;
                        let p = if kind == 2 {
                            0.25 + 0.5 * f64::from(row % 2)
                        } else {
                            1.0 / (1.0 + (-x).exp())
                        };
                        // 1 - p misses a sum of 1 at times.
                        [p, if kind == 1 { 1.0 / (1.0 + x.exp()) } else { 1.0 - p }]
                    })
                    .collect();
                let matrix = PmfMatrix::normalized(masses, 2, &control).unwrap();
                for level in
                    [Level::rational(rational(2, 1)), Level::from_epsilon(0.3), Level::from_epsilon(-0.1)]
                {
                    for delta in [rational(1, 1_000_000), rational(1, 20), rational(1, 5)] {
                        let expected = slow(&matrix, &level, &delta, 120);
                        assert_eq!(largest_shift(&matrix, &level, &delta, 120, &control).unwrap(), expected);
                        found.insert(expected);
                    }
                }
            }
        }
        assert!(found.len() > 10, "{found:?}");
    }
}
