//! Many small records sorted by a 64-bit key.

use crate::{Error, Result, control::Control, memory::room};
use rayon::prelude::*;

/// Records between two looks at the control.
pub(super) const CHECK_EVERY: usize = 1 << 16;

/// The keys are first spread over 2^11 ranges of equal width, which one after the other fit a cache.
const RANGE_BITS: u32 = 11;

/// Ranges sorted between two looks at the control.
const RANGES_AT_ONCE: usize = 128;

/// A key and what belongs to it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    pub(super) key: u64,
    pub(super) value: u32,
}

/// Refuses as many rows as no u32 counts.
pub(super) fn check_rows(rows: usize) -> Result<()> {
    match u32::try_from(rows) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::too_large(format!("{rows} rows are too many; at most 2^32 - 1 are taken"))),
    }
}

/// The records 0, ..., len - 1 by key; equal keys in any order.
///
/// Counts keys by range, puts every record into the place of its range, and sorts the ranges in parallel: 16 bytes
/// per record, and never more than len log len comparisons, whatever the keys.
///
/// # Errors
/// [`Error::TooLarge`] for 2^32 records and more, [`Error::Canceled`].
pub(super) fn sorted(
    len: usize,
    key: impl Fn(usize) -> u64,
    value: impl Fn(usize) -> u32,
    control: &Control,
) -> Result<Vec<Record>> {
    check_rows(len)?;
    let (low, high) = (0..len).fold((u64::MAX, 0), |(low, high), index| {
        let key = key(index);
        (key.min(low), key.max(high))
    });
    let width = (u64::BITS - high.saturating_sub(low).leading_zeros()).saturating_sub(RANGE_BITS);
    let range = |index: usize| usize::try_from((key(index) - low) >> width).unwrap_or(usize::MAX);

    // place[r] is where range r begins, and in the end where it stopped.
    let mut place = vec![0; (1 << RANGE_BITS) + 1];
    for index in 0..len {
        place[range(index) + 1] += 1;
    }
    for r in 1..place.len() {
        place[r] += place[r - 1];
    }
    let mut records = room("points", len)?;
    records.resize(len, Record::default());
    for index in 0..len {
        if index % CHECK_EVERY == 0 {
            control.check()?;
        }
        let place = &mut place[range(index)];
        records[*place] = Record { key: key(index), value: value(index) };
        *place += 1;
    }

    let (mut rest, mut done, mut parts) = (records.as_mut_slice(), 0, Vec::with_capacity(1 << RANGE_BITS));
    for &end in &place[..1 << RANGE_BITS] {
        let (part, later) = rest.split_at_mut(end - done);
        parts.push(part);
        (rest, done) = (later, end);
    }
    for parts in parts.chunks_mut(RANGES_AT_ONCE) {
        control.check()?;
        parts.par_iter_mut().for_each(|part| part.par_sort_unstable_by_key(|record| record.key));
    }
    Ok(records)
}
