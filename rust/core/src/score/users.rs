//! Rows grouped by the user they belong to.

use super::order::{CHECK_EVERY, check_rows, sorted};
use crate::{
    Error, Result,
    control::Control,
    memory::{room, zeros},
};

/// Ids that span no more than this and the number of rows are numbered by a table of all ids between.
const SMALL_SPAN: u64 = 1 << 16;

/// The users of the rows, numbered 0, 1, ... in increasing order of their ids, and the ids in that order.
///
/// Linear time for rows that are sorted by id and for ids that are close together, and a sort of the rows otherwise: no
/// ids take longer than that.
///
/// # Errors
/// [`Error::TooLarge`] for 2^32 rows and more, [`Error::Canceled`].
pub fn user_codes(ids: &[i64], control: &Control) -> Result<(Vec<u32>, Vec<i64>)> {
    check_rows(ids.len())?;
    let (low, high) = ids.iter().fold((i64::MAX, i64::MIN), |(low, high), &id| (low.min(id), high.max(id)));
    let in_order = ids.is_sorted();
    if !in_order && high.abs_diff(low) <= ids.len() as u64 + SMALL_SPAN {
        return dense_codes(ids, low, high, control);
    }
    let mut codes = room("ids", ids.len())?;
    codes.resize(ids.len(), 0);
    let mut distinct = Vec::new();
    let mut visit = |row: usize| {
        if distinct.last() != Some(&ids[row]) {
            distinct.push(ids[row]);
        }
        codes[row] = code(distinct.len() - 1);
    };
    if in_order {
        for row in 0..ids.len() {
            if row % CHECK_EVERY == 0 {
                control.check()?;
            }
            visit(row);
        }
    } else {
        // Flipping the sign bit puts signed ids into the order of unsigned keys.
        let by_id = sorted(ids.len(), |row| ids[row].cast_unsigned() ^ (1 << 63), code, control)?;
        for records in by_id.chunks(CHECK_EVERY) {
            control.check()?;
            for record in records {
                visit(record.value as usize);
            }
        }
    }
    Ok((codes, distinct))
}

/// The same by a table of all ids in low..=high.
#[allow(clippy::cast_possible_truncation)]
fn dense_codes(ids: &[i64], low: i64, high: i64, control: &Control) -> Result<(Vec<u32>, Vec<i64>)> {
    let place = |id: i64| id.abs_diff(low) as usize;
    let mut present = vec![false; place(high) + 1];
    for ids in ids.chunks(CHECK_EVERY) {
        control.check()?;
        for &id in ids {
            present[place(id)] = true;
        }
    }
    let mut numbers = vec![0; present.len()];
    let mut distinct = Vec::new();
    for ((number, id), present) in numbers.iter_mut().zip(low..=high).zip(present) {
        *number = code(distinct.len());
        if present {
            distinct.push(id);
        }
    }
    let mut codes = room("ids", ids.len())?;
    for ids in ids.chunks(CHECK_EVERY) {
        control.check()?;
        codes.extend(ids.iter().map(|&id| numbers[place(id)]));
    }
    Ok((codes, distinct))
}

/// The number of a row or a user, of which there are fewer than 2^32.
fn code(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Which rows are among the first `m` of their user, and how many of each user's rows are.
///
/// # Errors
/// [`Error::InvalidArgument`] for a code that is not below `n_users`, [`Error::Canceled`].
pub fn first_rows(codes: &[u32], n_users: usize, m: u32, control: &Control) -> Result<(Vec<bool>, Vec<u32>)> {
    let mut sizes = zeros("n_users", n_users, "number the users without gaps")?;
    let mut kept = room("codes", codes.len())?;
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
