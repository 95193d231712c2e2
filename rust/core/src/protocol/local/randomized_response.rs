//! k-ary randomized response: the item itself, or any other one; and the one bit of an item that its user reports.

use super::{Favor, ITEMS_LIMIT, Items, report_each, split_word};
use crate::{
    Error, Result,
    control::Control,
    ct,
    exact::{Level, Natural},
    rng::Source,
    sampler::Uniform,
};

/// Symbols 0, ..., k - 1: an item's own with the coin's probability, each other one equally likely.
#[derive(Debug, Clone)]
pub struct RandomizedResponse {
    items: Items,
    favor: Favor,
    /// How far another symbol is: 1, ..., k - 1, less 1.
    offset: Uniform,
}

impl RandomizedResponse {
    /// The randomizer of k items.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for k outside 2, ..., [`ITEMS_LIMIT`], a default that is no item, and as
    /// [`Favor::new`].
    pub fn new(level: &Level, items: u64, default: u64) -> Result<Self> {
        Ok(Self {
            items: Items::new(items, default, ITEMS_LIMIT)?,
            favor: Favor::new(level, 1, items)?,
            offset: Uniform::new(&Natural::from(items - 1))?,
        })
    }

    /// The coin.
    pub fn favor(&self) -> &Favor {
        &self.favor
    }

    /// A report of every item. Each takes 16 random bytes for the coin and 16 for the offset.
    ///
    /// Secret: the items and the reports.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`crate::Error::Canceled`].
    #[allow(clippy::cast_possible_truncation)] // below k
    pub fn report_many(
        &self,
        items: &[i64],
        source: &mut Source,
        reports: &mut [i64],
        control: &Control,
    ) -> Result<()> {
        report_each(items, (32, 1), source, reports, control, |item, bytes, source, place| {
            let (coin, rest) = split_word(bytes);
            let offset = self.offset.value(split_word(rest).0, source)? as u64;
            let item = self.items.read(item);
            let against = self.favor.against(coin);
            let symbol = userdp_ct_local_other(item, self.items.count, against, offset.wrapping_add(1));
            place[0] = symbol.cast_signed();
            Ok(())
        })
    }
}

/// Of every row the entry at its place, if the row is of zeros and ones, otherwise 0. As many rows as places.
///
/// Secret: the rows and the bits. Public: how many rows there are, how long they are, and the places.
///
/// # Errors
/// [`Error::InvalidArgument`] for rows of different lengths, and a place that is beyond its row.
pub fn bits_of_rows(rows: &[i64], places: &[u64]) -> Result<Vec<i64>> {
    let width = rows.len().checked_div(places.len()).unwrap_or(0);
    if width * places.len() != rows.len() {
        return Err(Error::invalid("rows", "must be one of the same length for every place"));
    }
    if places.iter().any(|&place| place >= width as u64) {
        return Err(Error::invalid("places", "must be below the length of the rows"));
    }
    let rows = rows.chunks_exact(width.max(1));
    Ok(rows.zip(places).map(|(row, &place)| userdp_ct_local_bit(row, place).cast_signed()).collect())
}

ct::kernel! {
    /// `item`, or with `against` = 1 the item `offset` places further round the circle of `items`. Secret: `item`,
    /// `against`, `offset` and the result. Public: `items`.
    pub fn userdp_ct_local_other(item: u64, items: u64, against: u64, offset: u64) -> u64 {
        let moved = item.wrapping_add(offset & ct::mask(against));
        let beyond = ct::less(moved, items) ^ 1;
        moved.wrapping_sub(items & ct::mask(beyond))
    }

    /// The entry at `place` of a row of zeros and ones, and 0 of any other row: all of `row` is read. Secret: `row` and
    /// the result. Public: `place`.
    pub fn userdp_ct_local_bit(row: &[i64], place: u64) -> u64 {
        let (mut bit, mut others) = (0_u64, 0_u64);
        for (index, &entry) in row.iter().enumerate() {
            let entry = entry.cast_unsigned();
            bit |= entry & ct::mask(ct::equal(index as u64, place));
            // Zeros and ones have no bit but the lowest.
            others |= entry >> 1;
        }
        bit & ct::mask(ct::equal(others, 0))
    }
}
