//! Room for numbers that arguments ask for.
//!
//! An allocation that fails ends the whole process, and one that the system grants but cannot back ends it later. So
//! everything whose length comes from a caller's arguments is allocated here: lengths that a number alone states, such as
//! a count of users, have a public limit, and copies of what is there already only need the memory.

use crate::{Error, Result};

/// The most bytes that a number among the arguments may ask for at a time: 2 GiB.
pub const MOST_BYTES: usize = 1 << 31;

/// An empty list with room for `len` entries.
///
/// # Errors
/// [`Error::Memory`] naming the argument.
pub fn room<T>(argument: &'static str, len: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| no_room::<T>(argument, len))?;
    Ok(list)
}

/// A copy of a list.
///
/// # Errors
/// [`Error::Memory`] naming the argument.
pub fn copied<T: Copy>(argument: &'static str, list: &[T]) -> Result<Vec<T>> {
    let mut copy = room(argument, list.len())?;
    copy.extend_from_slice(list);
    Ok(copy)
}

/// Makes a list longer, with nothing (0, or what else is the default) at its new places.
///
/// # Errors
/// [`Error::Memory`] naming the argument.
pub fn lengthened<T: Clone + Default>(argument: &'static str, list: &mut Vec<T>, len: usize) -> Result<()> {
    list.try_reserve(len.saturating_sub(list.len())).map_err(|_| no_room::<T>(argument, len))?;
    list.resize(len.max(list.len()), T::default());
    Ok(())
}

/// `len` times nothing (0, or what else is the default), where a number among the arguments states `len`.
///
/// # Errors
/// [`Error::TooLarge`] beyond [`MOST_BYTES`], with the estimate and the advice; [`Error::Memory`]. Both name the argument.
pub fn zeros<T: Clone + Default>(argument: &'static str, len: usize, advice: &str) -> Result<Vec<T>> {
    let mut list = limited(argument, len, advice)?;
    list.resize(len, T::default());
    Ok(list)
}

/// Room for `len` entries, where a number among the arguments states `len`.
///
/// # Errors
/// As [`zeros`].
pub fn limited<T>(argument: &'static str, len: usize, advice: &str) -> Result<Vec<T>> {
    if len.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > MOST_BYTES) {
        return Err(Error::too_large(format!(
            "{argument}: {len} entries take {}, where at most {} are given at a time; {advice}",
            size::<T>(len),
            size::<u8>(MOST_BYTES),
        )));
    }
    room(argument, len)
}

fn no_room<T>(argument: &'static str, len: usize) -> Error {
    Error::memory(format!("{argument}: there is no memory for {len} entries, {} in all", size::<T>(len)))
}

/// The size of a list in words.
fn size<T>(len: usize) -> String {
    format!("{:.3} GiB", len as f64 * size_of::<T>() as f64 / f64::from(1 << 30))
}
