//! Second moments of users' rows, in integers: replacing one user moves their sum by at most sqrt(2) (R + 2D + 1).
//!
//! A row becomes D integers z, |z| at most 2^14, and a user the matrix V, the sum of z z^T over the user's rows: exact
//! in doubles, as all partial sums are integers below 2^51. So V is positive semidefinite, whatever rounding does.
//! What is summed over users is Y = trunc(t V), where t is a number of 31 bits with t |V| <= R in Frobenius norm, which
//! is checked in integers, and so is |Y| <= R. A target has 2^30 steps and is two integers, of its upper bits and of its
//! lower ones; V is then put together from their products. Proof: docs/proofs/moments.md.

use super::{
    UserVectors, check_length,
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
pub(super) const STEPS: f64 = 4096.0;
const STEP_BITS: u32 = 12;
/// Steps from 0 to the end of a target's range, and the bits of them that are the lower part.
const TARGET_BITS: u32 = 29;
const LOW_BITS: u32 = 15;
/// Rows of a user beyond so many do not count, for exactness: sums of 2^22 products of 2^28 are at most 2^50.
pub(super) const MOST_ROWS: usize = 1 << 22;
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

/// Targets, in the last column of rows, beside features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// What targets are multiplied by, to be as long as features.
    factor: f64,
    /// They are then at most 2^range.
    range: u32,
    /// The weight of a user is this over the Frobenius norm of the second moments of features, at most 1.
    radius: f64,
}

impl Target {
    /// Of a factor, the largest target times it, and the norm of second moments of features from which users count less.
    ///
    /// # Errors
    /// For numbers that are not positive, and for targets beyond 2^8: the square of |V| then fits 128 bits.
    pub fn new(factor: f64, longest: f64, radius: f64) -> Result<Self> {
        check_length("factor", factor)?;
        check_length("radius", radius)?;
        let mut range = 2;
        while f64::from(1_u32 << range) < longest {
            range += 1;
            if range > 8 {
                return Err(Error::invalid("longest", format!("{longest}; at most 256 is taken")));
            }
        }
        Ok(Self { factor, range, radius })
    }

    /// A target as two integers of at most 2^14.
    fn parts(&self, target: f64) -> [f64; 2] {
        let end = f64::from(1_u32 << TARGET_BITS);
        let steps = f64::from(1_u32 << (TARGET_BITS - self.range));
        let whole = integer(clamped(target * self.factor * steps, -end, end));
        let high = (whole + (1 << (LOW_BITS - 1))) >> LOW_BITS;
        [high as f64, (whole - (high << LOW_BITS)) as f64]
    }
}

/// The matrix V of every user, as its upper triangle, row after row, with the number of rows that count behind it.
pub struct Moments<'a> {
    records: &'a dyn Records,
    rows: &'a RowsOfUsers,
    target: Option<Target>,
    kernel: Kernel,
}

/// What V is for a user: its entries, the square of a bound of its norm, and the same of features alone.
struct Whole<'a> {
    entries: &'a [f64],
    squared: u128,
    features: u128,
}

impl<'a> Moments<'a> {
    /// Of records in units, the last number of which is a target where that is said.
    ///
    /// # Errors
    /// For other numbers of rows than of records, and for more than [`MOST_COLUMNS`].
    pub fn new(
        records: &'a dyn Records,
        rows: &'a RowsOfUsers,
        target: Option<Target>,
        kernel: Option<Kernel>,
    ) -> Result<Self> {
        check_rows(records, rows)?;
        let columns = records.columns();
        if columns > MOST_COLUMNS {
            let message = format!("second moments of {columns} columns; at most {MOST_COLUMNS} are taken");
            return Err(Error::too_large(message));
        }
        Ok(Self { records, rows, target, kernel: kernel.unwrap_or_else(Kernel::detect) })
    }

    /// D: how long rows are.
    pub fn columns(&self) -> usize {
        self.records.columns()
    }

    /// How many integers a row is.
    fn parts(&self) -> usize {
        self.columns() + usize::from(self.target.is_some())
    }

    /// The number of users whose mean of z z^T, in units, has at most each Frobenius norm: of features alone, where there
    /// is a target. Users without rows are in all counts; replacing one user changes each by at most 1.
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
            || (vec![0; radii.len()], vec![0.0; triangle(self.columns())]),
            |(counts, entries), vector| {
                let norm = vector.map_or(f64::NEG_INFINITY, |vector| self.norm(vector, entries));
                for (count, &radius) in counts.iter_mut().zip(radii) {
                    *count += i64::from(norm <= radius);
                }
            },
            |(counts, _), (others, _)| merge_sums(counts, &others),
        )
        .map(|(counts, _)| counts)
    }

    /// The Frobenius norm of the mean of z z^T, in units, of features alone; `entries` is memory.
    pub(super) fn norm(&self, vector: &[f64], entries: &mut [f64]) -> f64 {
        let (products, count) = split(vector);
        (self.whole(products, entries).features as f64).sqrt() / (count * STEPS * STEPS)
    }

    /// The sum over users of the mean of z z^T in steps of a grid, each times its weight, and scaled to Frobenius norm
    /// `radius` steps where it is longer, and truncated toward 0: the upper triangle, row after row.
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
        let size = triangle(self.columns());
        let origin = vec![0.0; size];
        let (sums, _, _) = fold(
            self,
            control,
            || (vec![0; size], vec![0; size], vec![0.0; size]),
            |(sums, integers, entries), vector| {
                let Some(vector) = vector else { return };
                self.integers(vector, most, inverse, &origin, entries, integers);
                for (sum, &y) in sums.iter_mut().zip(&*integers) {
                    *sum += i64::from(y);
                }
            },
            |(sums, _, _), (others, _, _)| merge_sums(sums, &others),
        )?;
        Ok(sums)
    }

    /// The integers Y of one user.
    fn integers(
        &self,
        vector: &[f64],
        most: i32,
        inverse: f64,
        origin: &[f64],
        entries: &mut [f64],
        out: &mut [i32],
    ) {
        let (products, count) = split(vector);
        let whole = self.whole(products, entries);
        let mut wanted = inverse / (count * STEPS * STEPS);
        if let Some(target) = self.target {
            let norm = (whole.features as f64).sqrt() / (count * STEPS * STEPS);
            wanted *= if norm > target.radius { target.radius / norm } else { 1.0 };
        }
        let factor = factor(whole.squared, most.unsigned_abs(), wanted);
        let limit = u128::from(most.unsigned_abs()).pow(2);
        // Entries and their products are rounded, by less than 2^-18 in steps: an entry of Y is at most the next integer
        // from that of t V, and one step brings it below. The integers decide.
        if self.both_halves(truncate(self.kernel, whole.entries, origin, factor, most, out), out) > limit {
            let squared = step_toward_zero(out);
            if self.both_halves(squared, out) > limit {
                out.fill(0);
            }
        }
    }

    /// The sum of squares of a symmetric matrix, from that of its upper triangle.
    fn both_halves(&self, squared: u128, triangle: &[i32]) -> u128 {
        let diagonal =
            diagonal(self.columns()).map(|place| u128::from(triangle[place].unsigned_abs()).pow(2));
        2 * squared - diagonal.sum::<u128>()
    }

    /// V, of the products of the integers of rows; `memory` is for its upper triangle.
    #[allow(clippy::cast_precision_loss)]
    fn whole<'b>(&self, products: &'b [f64], memory: &'b mut [f64]) -> Whole<'b> {
        let square = |product: &f64| u128::from(integer(*product).unsigned_abs()).pow(2);
        let Some(target) = self.target else {
            let triangle: u128 = products.iter().map(square).sum();
            let on_diagonal: u128 = diagonal(self.columns()).map(|place| square(&products[place])).sum();
            let squared = 2 * triangle - on_diagonal;
            return Whole { entries: products, squared, features: squared };
        };
        // In the steps of features, a target's whole integer is 2^-low of them.
        let low = TARGET_BITS - STEP_BITS - target.range;
        let exact = |product: f64| i128::from(integer(product));
        // All bits are in the integer: the double is rounded once. The bound is rounded up.
        let entry = |whole: i128, bits: u32| {
            let scale = f64::from_bits(u64::from(1023 - bits) << 52);
            (whole as f64 * scale, (whole.unsigned_abs() >> bits) + 1)
        };
        let features = self.columns() - 1;
        let (mut from, mut to) = (0, 0);
        let (mut twice, mut once, mut cross) = (0, 0, 0);
        for column in 0..features {
            let length = features - column;
            let row = &products[from..from + length + 2];
            memory[to..to + length].copy_from_slice(&row[..length]);
            once += square(&row[0]);
            twice += row[1..length].iter().map(square).sum::<u128>();
            let (value, bound) = entry((exact(row[length]) << LOW_BITS) + exact(row[length + 1]), low);
            memory[to + length] = value;
            cross += bound.pow(2);
            from += length + 2;
            to += length + 1;
        }
        let [high, both, lower] = [0, 1, 2].map(|place| exact(products[from + place]));
        let (value, bound) = entry((high << (2 * LOW_BITS)) + (both << (LOW_BITS + 1)) + lower, 2 * low);
        memory[to] = value;
        let features = once + 2 * twice;
        Whole { entries: memory, squared: features + 2 * cross + bound.pow(2), features }
    }
}

/// The number of entries of the upper triangle of a matrix.
fn triangle(columns: usize) -> usize {
    columns * (columns + 1) / 2
}

/// Where entries of the diagonal are.
fn diagonal(columns: usize) -> impl Iterator<Item = usize> {
    (1..=columns).rev().scan(0, |next, step| {
        let place = *next;
        *next += step;
        Some(place)
    })
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
        triangle(self.parts()) + 1
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let rows = self.rows.of(user);
        let counted = rows.len().min(MOST_ROWS);
        out.fill(0.0);
        let (given, columns) = (self.columns(), self.parts());
        // A register may begin at the last column.
        let width = columns + LANES;
        let mut batch = vec![0.0; width * BATCH.min(counted)];
        for first in (0..counted).step_by(BATCH) {
            let size = BATCH.min(counted - first);
            for (index, row) in batch.chunks_exact_mut(width).take(size).enumerate() {
                self.records.read(rows.get(first + index), &mut row[..given]);
                let last = row[given - 1];
                round(self.kernel, &mut row[..given]);
                if let Some(target) = self.target {
                    row[given - 1..=given].copy_from_slice(&target.parts(last));
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
    pub(super) fn round(row: &mut [f64])
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
