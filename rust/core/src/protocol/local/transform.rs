//! The fast Walsh-Hadamard transform of integers.

use crate::{Error, Result, control::Control};

/// Steps between two looks at the control.
const CHECK_EVERY: usize = 1 << 20;

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
