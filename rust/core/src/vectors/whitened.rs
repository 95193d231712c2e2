//! Users' rows in whitened units, and mean gradients of the logistic loss in these, by weights that see features only.
//!
//! With z a row in units, a constant 1 behind it, and w = min(1, 4 / its largest |z|), a row is x = M z for a public
//! matrix M. Its gradient is w u (sigma(<x, theta>) - y) x, shortened to a public length by w u |x|, not by itself: whatever
//! y is, a row has the same weight, and where x explains y the expected gradient is 0 at one theta for all weights. The
//! weight u of a user is that of the user's second moments, min(1, radius / their norm), from which the matrix is made:
//! steps that are right for these would leap along a direction in which gradients counted more.
//!
//! Rows are read once, in the order of users. Each is read alone, and so is a user.

use super::{
    LARGEST, UserVectors, check_length, check_point, fold,
    gradients::{Loss, add_scaled, dot},
    joint::{Units, WIDEST, check_rows},
    means::Records,
    merge_sums,
    norm::clamped,
    rows::RowsOfUsers,
};
use crate::{Error, Result, control::Control, memory::room, simd::Kernel};
use rayon::prelude::*;

/// What all rows of a user are as a share of them.
const SHARE_STEPS: i64 = 1024;
/// Behind a row: its weight w u, w u |x|, and its target.
const MORE: usize = 3;
/// Rows between two looks at the control.
const BLOCK: usize = 1 << 12;

/// The rows of all users, whitened.
pub struct Whitened {
    dimension: usize,
    numbers: Vec<f64>,
    starts: Vec<usize>,
    kernel: Kernel,
}

impl Whitened {
    /// Of records that are in their region, public units, a matrix, row after row, that takes rows in units, with their
    /// constant, to whitened ones, and the radius of second moments. Targets above 0 are the second class.
    ///
    /// # Errors
    /// For other numbers of rows than of records and targets, for units and matrices that do not fit,
    /// [`Error::Memory`], [`Error::Canceled`].
    pub fn new(
        records: &dyn Records,
        targets: &[f64],
        rows: &RowsOfUsers,
        units: &Units,
        matrix: &[f64],
        radius: f64,
        control: &Control,
    ) -> Result<Self> {
        check_rows(records, rows)?;
        check_length("radius", radius)?;
        if targets.len() != rows.rows() {
            return Err(Error::invalid("labels", format!("{} for {} rows", targets.len(), rows.rows())));
        }
        let (columns, kernel) = (records.columns(), Kernel::detect());
        let dimension = columns + usize::from(units.constant);
        check_point("center", &units.center, columns)?;
        check_point("factor", &units.factor, columns)?;
        check_point("matrix", matrix, dimension * dimension)?;
        // Reads a row in units, and returns its weight.
        let in_units = |row: usize, z: &mut [f64]| {
            records.read(row, &mut z[..columns]);
            let mut widest = WIDEST;
            for ((z, c), f) in z.iter_mut().zip(&units.center).zip(&units.factor) {
                *z = clamped((*z - c) * f, -LARGEST, LARGEST);
                widest = widest.max(z.abs());
            }
            WIDEST / widest
        };
        let width = dimension + MORE;
        let mut numbers = room("X", rows.rows().saturating_mul(width))?;
        numbers.resize(rows.rows() * width, 0.0);
        numbers.par_chunks_mut(BLOCK * width).enumerate().try_for_each(|(block, part)| {
            control.check()?;
            let mut z = vec![1.0; dimension];
            for (place, out) in (block * BLOCK..).zip(part.chunks_exact_mut(width)) {
                let row = rows.at(place);
                let weight = in_units(row, &mut z);
                let (x, more) = out.split_at_mut(dimension);
                for (x, row) in x.iter_mut().zip(matrix.chunks_exact(dimension)) {
                    *x = clamped(dot(kernel, row, &z), -LARGEST, LARGEST);
                }
                more.copy_from_slice(&[weight, weight * dot(kernel, x, x).sqrt(), targets[row]]);
            }
            Ok(())
        })?;
        let starts = rows.starts().to_vec();
        let shortened = (0..starts.len() - 1).into_par_iter().map(|user| {
            control.check()?;
            let (mut z, mut moments) = (vec![1.0; dimension], vec![0.0; dimension * dimension]);
            for place in starts[user]..starts[user + 1] {
                let weight = in_units(rows.at(place), &mut z);
                for (sums, &a) in moments.chunks_exact_mut(dimension).zip(&z) {
                    add_scaled(kernel, sums, &z, weight * weight * a);
                }
            }
            let norm = dot(kernel, &moments, &moments).sqrt() / (starts[user + 1] - starts[user]) as f64;
            // Of no rows it is NaN, and nothing is weighed.
            Ok((radius / norm).min(1.0))
        });
        let shortened = shortened.collect::<Result<Vec<f64>>>()?;
        for (user, &weight) in shortened.iter().enumerate() {
            for row in numbers[starts[user] * width..starts[user + 1] * width].chunks_exact_mut(width) {
                row[dimension] *= weight;
                row[dimension + 1] *= weight;
            }
        }
        Ok(Self { dimension, numbers, starts, kernel })
    }

    /// For each length, the shares of users' rows of w |x| up to it, in steps of 1/1024, rounded down, summed over
    /// users. Users without rows have all of theirs. Lengths rise, so that a user's shares do.
    ///
    /// # Errors
    /// For lengths that are NaN or do not rise, [`Error::Canceled`].
    pub fn shares_within(&self, lengths: &[f64], control: &Control) -> Result<Vec<i64>> {
        if !lengths.is_sorted() {
            return Err(Error::invalid("lengths", "they must rise"));
        }
        let shares = Shares { rows: self, lengths };
        fold(
            &shares,
            control,
            || vec![0; lengths.len()],
            |sums, vector| match vector {
                #[allow(clippy::cast_possible_truncation)]
                Some(shares) => sums.iter_mut().zip(shares).for_each(|(sum, share)| {
                    *sum += (*share as i64).clamp(0, SHARE_STEPS);
                }),
                None => sums.iter_mut().for_each(|sum| *sum += SHARE_STEPS),
            },
            |sums, others| merge_sums(sums, &others),
        )
    }

    /// The numbers of a user's rows, row after row.
    fn of(&self, user: usize) -> impl ExactSizeIterator<Item = (&[f64], &[f64])> {
        let width = self.dimension + MORE;
        let rows = &self.numbers[self.starts[user] * width..self.starts[user + 1] * width];
        rows.chunks_exact(width).map(|row| row.split_at(self.dimension))
    }

    fn users(&self) -> usize {
        self.starts.len() - 1
    }
}

/// The share of every user's rows within each length.
struct Shares<'a> {
    rows: &'a Whitened,
    lengths: &'a [f64],
}

impl UserVectors for Shares<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.lengths.len()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        out.fill(0.0);
        let rows = self.rows.of(user);
        let count = rows.len();
        for (_, more) in rows {
            let first = self.lengths.partition_point(|&length| length < more[1]);
            out[first..].iter_mut().for_each(|share| *share += 1.0);
        }
        for share in out {
            *share = (SHARE_STEPS as f64 * *share / count as f64).floor();
        }
        count > 0
    }
}

/// The mean gradient of every user's rows at a public theta, no row's longer than a public length.
pub struct WhitenedGradients<'a> {
    rows: &'a Whitened,
    theta: &'a [f64],
    longest: f64,
}

impl<'a> WhitenedGradients<'a> {
    /// Of the rows of all users.
    ///
    /// # Errors
    /// For a theta of another dimension or out of range, and for a length out of range.
    pub fn new(rows: &'a Whitened, theta: &'a [f64], longest: f64) -> Result<Self> {
        check_point("theta", theta, rows.dimension)?;
        Ok(Self { rows, theta, longest: check_length("longest", longest)? })
    }
}

impl UserVectors for WhitenedGradients<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.rows.dimension
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        out.fill(0.0);
        let (kernel, rows) = (self.rows.kernel, self.rows.of(user));
        let count = rows.len();
        for (x, more) in rows {
            let prediction = clamped(dot(kernel, x, self.theta), -LARGEST, LARGEST);
            let weight = more[0] * (self.longest / more[1]).min(1.0);
            add_scaled(kernel, out, x, Loss::Logistic.slope(prediction, more[2]) * weight);
        }
        for sum in out {
            *sum = clamped(*sum / count.max(1) as f64, -LARGEST, LARGEST);
        }
        count > 0
    }
}
