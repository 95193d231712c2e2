//! The one bit of an item that its user reports.

use crate::{Error, Result, ct};

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
