//! Hadamard response: a column in which the item's row of Sylvester's matrix is +1, or one in which it is -1; and the
//! transform by that matrix of the counts of columns.

use super::{Favor, ITEMS_LIMIT, Items, report_each, split_word};
use crate::{Error, Result, control::Control, ct, exact::Level, rng::Source};

/// Steps between two looks at the control.
const CHECK_EVERY: usize = 1 << 20;

/// Symbols 0, ..., K - 1 for the least power of two K > k. Item u has row u + 1 of the K x K matrix with entries
/// (-1)^(number of ones of row & column); row 0 is constant, and nobody's.
#[derive(Debug, Clone)]
pub struct HadamardResponse {
    items: Items,
    favor: Favor,
    columns: u64,
}

impl HadamardResponse {
    /// The randomizer of k items.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for k outside 2, ..., [`ITEMS_LIMIT`], a default that is no item, and as
    /// [`Favor::new`].
    pub fn new(level: &Level, items: u64, default: u64) -> Result<Self> {
        Ok(Self {
            items: Items::new(items, default, ITEMS_LIMIT)?,
            favor: Favor::new(level, 1, 2)?,
            columns: (items + 1).next_power_of_two(),
        })
    }

    /// The coin.
    pub fn favor(&self) -> &Favor {
        &self.favor
    }

    /// K.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// A report of every item. Each takes 16 random bytes for the coin and 16 for the column.
    ///
    /// Secret: the items and the reports.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`crate::Error::Canceled`].
    #[allow(clippy::cast_possible_truncation)] // only low bits are used
    pub fn report_many(
        &self,
        items: &[i64],
        source: &mut Source,
        reports: &mut [i64],
        control: &Control,
    ) -> Result<()> {
        report_each(items, (32, 1), source, reports, control, |item, bytes, _, place| {
            let (coin, rest) = split_word(bytes);
            let row = self.items.read(item).wrapping_add(1);
            let against = self.favor.against(coin);
            let word = split_word(rest).0 as u64;
            place[0] = userdp_ct_local_column(row, self.columns, against, word).cast_signed();
            Ok(())
        })
    }
}

/// Replaces counts of columns by the sums S(row) = sum over columns of (-1)^(number of ones of row & column) times the
/// count, in K log2 K steps. The counts are public.
///
/// # Errors
/// [`Error::InvalidArgument`] unless there are a power of two many, of absolute values that sum to less than 2^63;
/// [`Error::Canceled`].
pub fn walsh_hadamard(counts: &mut [i64], control: &Control) -> Result<()> {
    if !counts.len().is_power_of_two() {
        return Err(Error::invalid("counts", format!("must be a power of two many; got {}", counts.len())));
    }
    // Every number on the way is a signed sum of counts.
    let total = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(count.unsigned_abs()));
    if total.is_none_or(|total| total > i64::MAX.unsigned_abs()) {
        return Err(Error::invalid("counts", "must sum to less than 2^63"));
    }
    let mut half = 1;
    while half < counts.len() {
        for (index, pair) in counts.chunks_exact_mut(2 * half).enumerate() {
            if index * half % CHECK_EVERY == 0 {
                control.check()?;
            }
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                // Wrapping: the sums are checked above.
                (*a, *b) = (a.wrapping_add(*b), a.wrapping_sub(*b));
            }
        }
        half *= 2;
    }
    Ok(())
}

ct::kernel! {
    /// The column of the word's low bits, moved to its neighbor along the lowest one of `row` if the entry there is not
    /// (-1)^against. Secret: `row`, `against`, `word` and the result. Public: `columns`, a power of two.
    ///
    /// Moving is a bijection between the columns of either sign: the result is uniform among those of the right sign.
    pub fn userdp_ct_local_column(row: u64, columns: u64, against: u64, word: u64) -> u64 {
        let column = word & columns.wrapping_sub(1);
        let negative = u64::from((row & column).count_ones()) & 1;
        let lowest = row & row.wrapping_neg();
        column ^ (lowest & ct::mask(negative ^ against))
    }
}
