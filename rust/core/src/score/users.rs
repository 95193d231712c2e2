//! Rows grouped by the user they belong to.

use super::order::{CHECK_EVERY, sorted};
use crate::{Error, Result, control::Control};

/// The users of the rows, numbered 0, 1, ... in increasing order of their ids, and the ids in that order.
///
/// Linear time for rows that are sorted by id, and a sort of all rows otherwise: no ids take longer than that.
///
/// # Errors
/// [`Error::TooLarge`] for 2^32 rows and more, [`Error::Cancelled`].
pub fn user_codes(ids: &[i64], control: &Control) -> Result<(Vec<u32>, Vec<i64>)> {
    let mut codes = vec![0; ids.len()];
    let mut distinct = Vec::new();
    let mut visit = |row: usize, id: i64| {
        if distinct.last() != Some(&id) {
            distinct.push(id);
        }
        codes[row] = code(distinct.len() - 1);
    };
    if ids.is_sorted() {
        for (row, &id) in ids.iter().enumerate() {
            visit(row, id);
        }
    } else {
        // Flipping the sign bit puts signed ids into the order of unsigned keys.
        let by_id = sorted(ids.len(), |row| ids[row].cast_unsigned() ^ (1 << 63), code, control)?;
        for records in by_id.chunks(CHECK_EVERY) {
            control.check()?;
            for record in records {
                visit(record.value as usize, ids[record.value as usize]);
            }
        }
    }
    Ok((codes, distinct))
}

/// Row numbers and user numbers are below 2^32 wherever this is called.
fn code(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Which rows are among the first `m` of their user, and how many of each user's rows are.
///
/// # Errors
/// [`Error::InvalidArgument`] for a code that is not below `n_users`, [`Error::Cancelled`].
pub fn first_rows(codes: &[u32], n_users: usize, m: u32, control: &Control) -> Result<(Vec<bool>, Vec<u32>)> {
    let mut sizes = vec![0; n_users];
    let mut kept = Vec::with_capacity(codes.len());
    for codes in codes.chunks(CHECK_EVERY) {
        control.check()?;
        for &code in codes {
            let size = sizes.get_mut(code as usize).ok_or_else(|| {
                Error::invalid("codes", format!("every code must be below the number of users, {n_users}"))
            })?;
            let keep = *size < m;
            *size += u32::from(keep);
            kept.push(keep);
        }
    }
    Ok((kept, sizes))
}
