//! Second moments of users' rows, in integers: replacing one user moves their sum by at most sqrt(2) (R + 2D).
//!
//! A row becomes D integers z, |z| at most 2^14, and a user the matrix V, the sum of z z^T over the user's rows: exact
//! in doubles, as all partial sums are integers below 2^51. So V is positive semidefinite, whatever rounding does.
//! What is summed over users is Y = trunc(t V), where t is a number of 31 bits with t |V| <= R in Frobenius norm, which
//! is checked in integers, and so is |Y| <= R. Proof: docs/proofs/moments.md.

use super::{
    UserVectors,
    clip::{step_toward_zero, truncate},
    fold, inverse_grid,
    joint::{WIDEST, check_rows},
    means::Records,
    merge_sums,
    norm::{clamped, integer},
    rows::RowsOfUsers,
};
use crate::{
    Error, Result,
    control::Control,
    simd::{Kernel, dispatch::dispatched},
};

/// Steps in one unit of a row: as integers numbers are at most 2^14.
const STEPS: f64 = 4096.0;
/// Rows of a user beyond so many do not count, for exactness: sums of 2^22 products of 2^28 are at most 2^50.
const MOST_ROWS: usize = 1 << 22;
/// The most columns, the constant included: sums of 2^24 squares of 2^100 fit 128 bits.
pub const MOST_COLUMNS: usize = 1 << 12;
/// Rows that are multiplied at once.
const BATCH: usize = 32;
/// Entries in one register of the products, and how many columns share it.
const LANES: usize = 8;
const TILE: usize = 4;
/// Bits of t.
const BITS: i32 = 31;
/// The largest grid, and the inverse of the least: t then has at most 96 bits behind the point.
const LARGEST_GRID: f64 = (1_u64 << 40) as f64;

/// The matrix V of every user, as its upper triangle, row after row, with the number of rows that count behind it.
pub struct Moments<'a> {
    records: &'a dyn Records,
    rows: &'a RowsOfUsers,
    constant: bool,
    kernel: Kernel,
}

impl<'a> Moments<'a> {
    /// Of records in units; with a constant 1 as their last entry where wanted.
    ///
    /// # Errors
    /// For other numbers of rows than of records, and for more than [`MOST_COLUMNS`].
    pub fn new(
        records: &'a dyn Records,
        rows: &'a RowsOfUsers,
        constant: bool,
        kernel: Option<Kernel>,
    ) -> Result<Self> {
        check_rows(records, rows)?;
        let columns = records.columns() + usize::from(constant);
        if columns > MOST_COLUMNS {
            let message = format!("second moments of {columns} columns; at most {MOST_COLUMNS} are taken");
            return Err(Error::too_large(message));
        }
        Ok(Self { records, rows, constant, kernel: kernel.unwrap_or_else(Kernel::detect) })
    }

    /// D: how long rows are, with the constant.
    pub fn columns(&self) -> usize {
        self.records.columns() + usize::from(self.constant)
    }

    /// The number of users whose mean of z z^T, in units, has at most each Frobenius norm. Users without rows are in
    /// no count; replacing one user changes each by at most 1.
    ///
    /// # Errors
    /// For radii that are NaN, [`Error::Canceled`].
    pub fn norm_counts(&self, radii: &[f64], control: &Control) -> Result<Vec<i64>> {
        if radii.iter().any(|radius| radius.is_nan()) {
            return Err(Error::invalid("radii", "NaN is no radius"));
        }
        fold(
            self,
            control,
            || vec![0; radii.len()],
            |counts, vector| {
                let Some(vector) = vector else { return };
                let (products, count) = split(vector);
                let norm = (self.squared_norm(products) as f64).sqrt() / (count * STEPS * STEPS);
                for (count, &radius) in counts.iter_mut().zip(radii) {
                    *count += i64::from(norm <= radius);
                }
            },
            |counts, others| merge_sums(counts, &others),
        )
    }

    /// The sum over users of the mean of z z^T in steps of a grid, each scaled to Frobenius norm `radius` steps where
    /// it is longer and truncated toward 0: the upper triangle, row after row.
    ///
    /// # Errors
    /// For a radius of 0 or 2^31 steps, a grid that is no power of two from 2^-40 to 2^40, [`Error::Canceled`].
    pub fn clipped_sum(&self, radius: u32, grid: f64, control: &Control) -> Result<Vec<i64>> {
        let inverse = inverse_grid(grid)?;
        if !(1.0 / LARGEST_GRID..=LARGEST_GRID).contains(&grid) {
            return Err(Error::invalid("grid", format!("{grid} is not from 2^-40 to 2^40")));
        }
        let Ok(most) = i32::try_from(radius) else {
            return Err(Error::invalid("radius", format!("{radius} steps; at most 2^31 - 1 are taken")));
        };
        if most == 0 {
            return Err(Error::invalid("radius", "0 steps; at least 1 is needed"));
        }
        let entries = self.dimension() - 1;
        let origin = vec![0.0; entries];
        let (sums, _) = fold(
            self,
            control,
            || (vec![0; entries], vec![0; entries]),
            |(sums, integers), vector| {
                let Some(vector) = vector else { return };
                self.integers(vector, most, inverse, &origin, integers);
                for (sum, &y) in sums.iter_mut().zip(&*integers) {
                    *sum += i64::from(y);
                }
            },
            |(sums, _), (others, _)| merge_sums(sums, &others),
        )?;
        Ok(sums)
    }

    /// The integers Y of one user.
    fn integers(&self, vector: &[f64], most: i32, inverse: f64, origin: &[f64], out: &mut [i32]) {
        let (products, count) = split(vector);
        let norm = self.squared_norm(products);
        let factor = factor(norm, most.unsigned_abs(), inverse / (count * STEPS * STEPS));
        let limit = u128::from(most.unsigned_abs()).pow(2);
        // The product is rounded once: an entry of Y is at most the next integer from that of t V, and one step brings
        // it below. The integers decide.
        if self.both_halves(truncate(self.kernel, products, origin, factor, most, out), out) > limit {
            let squared = step_toward_zero(out);
            if self.both_halves(squared, out) > limit {
                out.fill(0);
            }
        }
    }

    /// Where entries of the diagonal are.
    fn diagonal(&self) -> impl Iterator<Item = usize> {
        (1..=self.columns()).rev().scan(0, |next, step| {
            let place = *next;
            *next += step;
            Some(place)
        })
    }

    /// The sum of squares of a symmetric matrix, from that of its upper triangle.
    fn both_halves(&self, squared: u128, triangle: &[i32]) -> u128 {
        let diagonal = self.diagonal().map(|place| u128::from(triangle[place].unsigned_abs()).pow(2));
        2 * squared - diagonal.sum::<u128>()
    }

    /// |V|^2 in steps, exactly.
    fn squared_norm(&self, products: &[f64]) -> u128 {
        let square = |product: &f64| u128::from(integer(*product).unsigned_abs()).pow(2);
        let triangle: u128 = products.iter().map(square).sum();
        let diagonal: u128 = self.diagonal().map(|place| square(&products[place])).sum();
        2 * triangle - diagonal
    }
}

/// The triangle, and the number of rows.
fn split(vector: &[f64]) -> (&[f64], f64) {
    let (products, count) = vector.split_at(vector.len() - 1);
    (products, count[0])
}

/// A number t of at most [`BITS`] bits that is not above `wanted`, at most 2^31, by more than rounding, with t |V| <= R.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn factor(squared_norm: u128, radius: u32, wanted: f64) -> f64 {
    let root = squared_norm.isqrt();
    // At least |V|, at most 2^63.
    let norm = root + u128::from(root * root < squared_norm);
    let wanted = if norm == 0 { wanted } else { wanted.min(f64::from(radius) / norm as f64) };
    // 2^shift times a number below 2^(BITS - shift) is below 2^BITS; where t is tiny it has fewer bits.
    let exponent = (wanted.to_bits() >> 52) as i32 - 1023;
    let shift = (BITS - 1 - exponent).clamp(0, 96);
    let scale = f64::from_bits(((1023 + shift) as u64) << 52);
    let mut numerator = (wanted * scale) as u128;
    // radius 2^shift < 2^127 and numerator norm < 2^96.
    let limit = u128::from(radius) << shift;
    while numerator * norm > limit {
        numerator -= 1;
    }
    numerator as f64 / scale
}

impl UserVectors for Moments<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.columns() * (self.columns() + 1) / 2 + 1
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let rows = self.rows.of(user);
        let counted = rows.len().min(MOST_ROWS);
        out.fill(0.0);
        let (given, columns) = (self.records.columns(), self.columns());
        // A register may begin at the last column.
        let width = columns + LANES;
        let mut batch = vec![0.0; width * BATCH.min(counted)];
        for first in (0..counted).step_by(BATCH) {
            let size = BATCH.min(counted - first);
            for (index, row) in batch.chunks_exact_mut(width).take(size).enumerate() {
                self.records.read(rows.get(first + index), &mut row[..given]);
                round(self.kernel, &mut row[..given]);
                if self.constant {
                    row[given] = STEPS;
                }
            }
            add_products(self.kernel, out, &batch[..size * width], width, columns);
        }
        if let Some(count) = out.last_mut() {
            *count = counted as f64;
        }
        counted > 0
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn round_body(row: &mut [f64]) {
    for x in row {
        *x = integer(clamped(*x, -WIDEST, WIDEST) * STEPS) as f64;
    }
}

dispatched! {
    /// Rounds numbers in units to whole steps.
    fn round(row: &mut [f64])
        = round_body(row),
          round_body(row),
          round_body(row);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_products_body(triangle: &mut [f64], batch: &[f64], width: usize, columns: usize, fused: bool) {
    let mut start = 0;
    for first in (0..columns).step_by(TILE) {
        let tile = TILE.min(columns - first);
        let mut starts = [0; TILE];
        for (index, place) in starts.iter_mut().enumerate().take(tile) {
            *place = start;
            start += columns - first - index;
        }
        for other in (first..columns).step_by(LANES) {
            let mut sums = [[0.0; LANES]; TILE];
            for row in batch.chunks_exact(width) {
                // Beyond the columns there are zeros.
                let (ours, theirs) = (&row[first..first + TILE], &row[other..other + LANES]);
                for index in 0..TILE {
                    for lane in 0..LANES {
                        sums[index][lane] = if fused {
                            ours[index].mul_add(theirs[lane], sums[index][lane])
                        } else {
                            sums[index][lane] + ours[index] * theirs[lane]
                        };
                    }
                }
            }
            for (index, sums) in sums.iter().enumerate().take(tile) {
                let column = first + index;
                let (from, to) = (other.max(column), columns.min(other + LANES));
                let place = starts[index] + from - column;
                let entries = &mut triangle[place..place + to - from];
                for (entry, sum) in entries.iter_mut().zip(&sums[from - other..]) {
                    *entry += sum;
                }
            }
        }
    }
}

dispatched! {
    /// Adds the products of all pairs of columns to the upper triangle: all are exact, so that fusing changes nothing.
    fn add_products(triangle: &mut [f64], batch: &[f64], width: usize, columns: usize)
        = add_products_body(triangle, batch, width, columns, false),
          add_products_body(triangle, batch, width, columns, true),
          add_products_body(triangle, batch, width, columns, true);
}
