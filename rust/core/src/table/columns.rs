//! The integers that a user adds to a key, and their public ranges.

use super::cells::Cell;
use crate::{Error, Result};

/// One integer of each kept cell of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// 1.
    Users,
    /// The number of rows, at most so many.
    Rows {
        /// The most.
        most: u64,
    },
    /// The sum of a value over the rows, clamped to low..=high, minus a shift.
    Sum {
        /// Which value.
        value: usize,
        /// Which value is 1 in the rows that count and 0 in others, if not all count; 0 is added where none does.
        of: Option<usize>,
        /// The least.
        low: i64,
        /// The most.
        high: i64,
        /// What is taken off.
        shift: i64,
    },
    /// The mean of a value over the rows to the nearest integer (halves up), clamped to 0..=steps, minus a shift.
    Mean {
        /// Which value.
        value: usize,
        /// As of sums; the value is 0 in rows that do not count.
        of: Option<usize>,
        /// The most.
        steps: u64,
        /// What is taken off.
        shift: i64,
    },
    /// The same mean times w = min(rows, most), to the nearest integer (halves up), clamped to 0..=w steps, minus w times a
    /// shift: the sum of w rows that are all like the mean.
    Weighted {
        /// Which value.
        value: usize,
        /// As of means.
        of: Option<usize>,
        /// The most for one row.
        steps: u64,
        /// The most rows.
        most: u64,
        /// What is taken off for every row.
        shift: i64,
    },
    /// isqrt(weight^2 / d) for a user who keeps d keys: the squares of one user's integers add up to at most weight^2.
    Weight {
        /// The weight.
        weight: u64,
    },
}

/// What a column needs of the user beside the cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// How many keys the user keeps, at least 1.
    pub(super) keys: u64,
}

impl Column {
    /// The least and the largest integer of any user.
    ///
    /// # Errors
    /// For a value that rows do not have, an empty range, and a range that does not fit 64-bit integers.
    pub fn range(&self, values: usize) -> Result<(i64, i64)> {
        let wide = || Error::invalid("columns", "a column's integers must fit 64 bits, its shift taken off");
        let fit = |low: i128, high: i128| -> Result<(i64, i64)> {
            Ok((i64::try_from(low).map_err(|_| wide())?, i64::try_from(high).map_err(|_| wide())?))
        };
        if let Some(value) = self.values().into_iter().flatten().find(|&value| value >= values) {
            return Err(Error::invalid("columns", format!("value {value} is not below n_values = {values}")));
        }
        let (low, high) = match *self {
            Self::Users => Ok((1, 1)),
            Self::Rows { most } => fit(0, most.into()),
            Self::Sum { low, high, .. } if low > high => {
                Err(Error::invalid("columns", format!("low = {low} must not be above high = {high}")))
            }
            Self::Sum { low, high, shift, .. } => {
                fit(i128::from(low) - i128::from(shift), i128::from(high) - i128::from(shift))
            }
            Self::Mean { steps, shift, .. } => fit(-i128::from(shift), i128::from(steps) - i128::from(shift)),
            Self::Weighted { steps, most, shift, .. } => {
                // Products of 64-bit numbers and their differences fit 128 bits; a user has from 0 to `most` of them.
                let low = i128::from(shift).checked_neg().and_then(|low| low.checked_mul(most.into()));
                let high =
                    (i128::from(steps) - i128::from(shift)).checked_mul(most.into()).ok_or_else(wide)?;
                fit(low.ok_or_else(wide)?.min(0), high.max(0))
            }
            Self::Weight { weight } => fit(0, weight.into()),
        }?;
        // A user whose rows do not count adds 0.
        Ok(if self.values()[1].is_some() { (low.min(0), high.max(0)) } else { (low, high) })
    }

    /// Which values it reads: its own, and the one that says which rows count.
    const fn values(&self) -> [Option<usize>; 2] {
        match *self {
            Self::Users | Self::Rows { .. } | Self::Weight { .. } => [None, None],
            Self::Sum { value, of, .. } | Self::Mean { value, of, .. } | Self::Weighted { value, of, .. } => {
                [Some(value), of]
            }
        }
    }

    /// The integer of a cell, in [`Column::range`] whatever the values are.
    #[inline]
    pub(super) fn integer(&self, cell: Cell<'_>, kept: Kept) -> i64 {
        let rows = match self.values()[1] {
            // Values are the caller's: whatever they are, from 0 to the number of rows.
            Some(of) => u64::try_from(cell.sums[of].clamp(0, cell.rows.into())).unwrap_or(0),
            None => cell.rows,
        };
        if rows == 0 {
            return 0;
        }
        let integer = match *self {
            Self::Users => 1,
            Self::Rows { most } => i128::from(cell.rows.min(most)),
            Self::Sum { value, low, high, shift, .. } => {
                cell.sums[value].clamp(low.into(), high.into()) - i128::from(shift)
            }
            Self::Mean { value, steps, shift, .. } => {
                share(cell.sums[value], 1, rows, steps) - i128::from(shift)
            }
            Self::Weighted { value, steps, most, shift, .. } => {
                let counted = rows.min(most);
                share(cell.sums[value], counted, rows, steps) - i128::from(counted) * i128::from(shift)
            }
            Self::Weight { weight } => {
                let share = (u128::from(weight).pow(2) / u128::from(kept.keys)).isqrt();
                // At most the weight, which the range holds.
                share.cast_signed()
            }
        };
        // The range was found to fit before any data were read.
        debug_assert!(i64::try_from(integer).is_ok());
        i64::try_from(integer).unwrap_or(0)
    }
}

/// The integer nearest to sum part / rows, halves up, clamped to 0..=part steps; `part` of the rows are counted.
///
/// As rounding is monotone, and maps 0 and part steps to themselves, the sum may be clamped to 0..=rows steps first.
/// Then sum = q rows + r with q <= steps and r < rows, and part q is whole.
fn share(sum: i128, part: u64, rows: u64, steps: u64) -> i128 {
    // No machine has 2^60 rows, so that none of these products comes near 2^127.
    let sum = sum.clamp(0, i128::from(rows) * i128::from(steps)).cast_unsigned();
    let (whole, rest) = divided(sum, rows);
    let (nearest, _) = divided(2 * rest * u128::from(part) + u128::from(rows), 2 * rows);
    (whole * u128::from(part) + nearest).cast_signed()
}

/// Quotient and remainder, by the much faster division of 64 bits where that is possible.
fn divided(a: u128, b: u64) -> (u128, u128) {
    match u64::try_from(a) {
        Ok(a) => ((a / b).into(), (a % b).into()),
        Err(_) => (a / u128::from(b), a % u128::from(b)),
    }
}
