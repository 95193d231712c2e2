//! Hadamard response: a column in which the item's row of Sylvester's matrix is +1, or one in which it is -1.

use super::{Favor, ITEMS_LIMIT, Items, report_each, split_word};
use crate::{Result, control::Control, ct, exact::Level, rng::Source};

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
